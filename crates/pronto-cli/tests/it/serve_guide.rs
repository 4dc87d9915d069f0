//! The commands on the pages of `docs/` and in `README.md`, executed as they are written there.

use std::path::Path;

use test_support::s3::{BUCKET, S3Server, variables};
use test_support::{free_port, skip};

use crate::guides::{Reader, blocks};

/// Stands for systemd, which tests do not have: stops and starts the server of the guide.
const SYSTEMCTL: &str = r#"#!/bin/sh
stop() {
    kill $(cat "$GUIDE/pid")
    while kill -0 $(cat "$GUIDE/pid") 2> /dev/null; do sleep 0.02; done
}
start() {
    : > "$GUIDE/out"
    pronto serve --config "$SITE/pronto-server.toml" > "$GUIDE/out" 2>> "$GUIDE/err" &
    echo $! > "$GUIDE/pid"
    until grep -q "serving at" "$GUIDE/out"; do kill -0 $! || exit 1; sleep 0.02; done
}
case $1 in
    stop) stop ;;
    start) start ;;
    restart) stop; start ;;
    reload) kill -HUP $(cat "$GUIDE/pid") ;;
    *) exit 1 ;;
esac
"#;

/// Stands for the journal: the log of the server.
const JOURNALCTL: &str = "#!/bin/sh\ncat \"$GUIDE/err\"\n";

/// Reads its own configuration, because it takes the home directory from the list of users.
const SSH: &str = "#!/bin/sh\nexec /usr/bin/ssh -F \"$HOME/.ssh/config\" \"$@\"\n";

#[test]
fn the_guides_of_servers_work_as_they_are_written() {
    for program in ["openssl", "ssh", "ssh-keygen", "jq"] {
        if !Path::new("/usr/bin").join(program).exists() {
            skip!("{program} is not installed");
        }
    }
    let Some(bucket) = S3Server::start() else {
        skip!("the S3 server is not installed");
    };
    let mut reader = Reader::new();
    for (name, value) in variables(bucket.address()) {
        reader.variable(name, value);
    }
    for port in ["8418", "2222", "9419"] {
        reader.name(port, free_port().to_string());
    }
    reader.name("0.0.0.0:", "127.0.0.1:");
    // This is what the page says for one's own machine.
    reader.name("git.example.org", "localhost");
    reader.name("s3://company-git/", format!("s3://{BUCKET}/"));
    for directory in [
        "/srv/git",
        "/backup",
        "/usr/local/bin",
        "/tmp/new",
        "/tmp/before.git",
        "/scratch",
    ] {
        reader.place(directory);
    }
    let above = reader.scratch.join("srv");
    reader.name("tar -C /srv ", format!("tar -C {} ", above.display()));
    let other = reader.scratch.join("company-backup");
    std::fs::create_dir_all(other.join("repositories")).expect("a directory");
    reader.name("gs://company-backup", format!("file://{}", other.display()));
    let site = reader.scratch.join("srv/git");
    reader.variable("SITE", site.to_str().expect("text"));
    for (name, text) in [
        ("systemctl", SYSTEMCTL),
        ("journalctl", JOURNALCTL),
        ("ssh", SSH),
    ] {
        reader.program(name, text);
    }
    assert!(reader.follow("docs/serve.md") >= 9);
    assert!(reader.follow("docs/operate.md") >= 12);
    assert!(reader.follow("docs/store.md") >= 1);
}

#[test]
fn the_guide_of_worktrees_works_as_it_is_written() {
    assert_eq!(Reader::new().follow("docs/worktrees.md"), 2);
}

#[test]
fn the_commands_of_the_readme_work_or_say_why_they_do_not_run() {
    assert_eq!(Reader::new().follow("README.md"), 1);
}

#[test]
fn other_pages_have_no_commands() {
    let pages = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs");
    for entry in std::fs::read_dir(pages).expect("a directory") {
        let name = entry.expect("readable").file_name();
        let name = name.to_str().expect("text");
        let is_followed = ["serve.md", "operate.md", "store.md", "worktrees.md"].contains(&name);
        if name.ends_with(".md") && !is_followed {
            let count = blocks(&format!("docs/{name}")).len();
            assert_eq!(count, 0, "{name} is followed by no test");
        }
    }
}
