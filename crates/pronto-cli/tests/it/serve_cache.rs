//! The caches of the server: lists of refs, and packs that equal fetches share.

use rustix::process::Signal;

use crate::serve::{Server, git_succeeds};
use crate::stored::{Behind, Place, in_a_directory_only, in_both_places};
use crate::support::{Scratch, pronto, stdout};

in_both_places!(lists_of_refs_follow_the_refs,);

in_a_directory_only!(
    /// The repositories of a store have bitmaps, so that clones need no shared pack.
    equal_fetches_share_a_pack_until_refs_move,
);

/// A list of refs that is kept is the one that git lists, whatever happened to the refs.
fn lists_of_refs_follow_the_refs(place: Place) {
    let scratch = Scratch::new();
    let run = |arguments: &[&str], input: &str| {
        let file = scratch.join("input");
        std::fs::write(&file, input).expect("a file");
        let mut command = crate::support::process("git");
        command.args(["-C", "work", "-c", "user.name=a", "-c", "user.email=a@x"]);
        command.args(arguments);
        command
            .current_dir(scratch.path())
            .env("HOME", scratch.path());
        command.stdin(std::fs::File::open(&file).expect("a file"));
        let output = command.output().expect("git runs");
        assert!(output.status.success(), "{output:?}");
        stdout(&output)
    };
    crate::serve::repository(&scratch);
    let head = run(&["rev-parse", "HEAD"], "").trim().to_owned();
    let many = (0..2000).map(|number| format!("create refs/heads/b/{number} {head}\n"));
    run(&["update-ref", "--stdin"], &many.collect::<String>());
    run(&["tag", "-m", "annotated", "v1"], "");
    run(&["pack-refs", "--all"], "");
    // A file that was just written is not trusted.
    std::thread::sleep(std::time::Duration::from_secs(3));
    let behind = (place == Place::Store).then(|| Behind::new(scratch.path()));
    let work = scratch.join("work");
    let server = match &behind {
        None => Server::start(&work, &["."], "git clone "),
        Some(behind) => {
            behind.publish(&work.join(".git"), "work");
            let config = format!(
                "[http]\nmetrics = \"loopback\"\nlisten = [\"127.0.0.1:0\"]\n{}",
                behind.section("cache")
            );
            std::fs::write(scratch.join("s.toml"), config).expect("a file");
            Server::start(scratch.path(), &["--config", "s.toml"], "git clone ")
        }
    };
    let url = server.url();
    let check = || {
        let listed = run(&["ls-remote", "."], "");
        assert_eq!(run(&["ls-remote", &url], ""), listed);
        assert_eq!(run(&["ls-remote", &url], ""), listed);
        let branches = run(&["ls-remote", ".", "refs/heads/*"], "");
        assert_eq!(run(&["ls-remote", &url, "refs/heads/*"], ""), branches);
    };
    let other = "refs/heads/b/7";
    let steps: [&[&str]; 9] = [
        &["status"],
        &["commit", "-q", "--allow-empty", "-m", "two"],
        &["update-ref", other, "main"],
        &["update-ref", other, "main~1"],
        &["update-ref", "-d", "refs/heads/b/8"],
        &["symbolic-ref", "refs/heads/alias", "refs/heads/b/9"],
        &["update-ref", "refs/heads/b/9", "main"],
        &["symbolic-ref", "HEAD", "refs/heads/b/10"],
        &["pack-refs", "--all"],
    ];
    for step in steps {
        run(step, "");
        if let Some(behind) = &behind {
            behind.publish(&work.join(".git"), "work");
        }
        check();
    }
    server.signal(Signal::TERM);
    server.end();
}

/// Returns the number of packs that the server made, and the number of requests that it answered from the cache.
fn counters(server: &Server) -> (u32, u32) {
    let url = server.url();
    let base = url.rsplit_once('/').expect("a path").0;
    let output = crate::support::process("curl")
        .args(["-sf", &format!("{base}/metrics")])
        .output()
        .expect("curl is installed");
    let text = stdout(&output);
    let value = |name: &str| {
        let line = text.lines().find_map(|line| line.strip_prefix(name));
        let line = line.unwrap_or_else(|| panic!("no {name}: {text}"));
        line.trim().parse().expect("a number")
    };
    (
        value("pronto_server_packs_made_total"),
        value("pronto_server_packs_shared_total"),
    )
}

fn equal_fetches_share_a_pack_until_refs_move() {
    let scratch = Scratch::new();
    let work = scratch.path().join("work");
    let run = |directory: &std::path::Path, arguments: &[&str]| {
        git_succeeds(&scratch, directory, arguments);
    };
    run(scratch.path(), &["init", "-q", "-b", "main", "work"]);
    for number in 0..4 {
        std::fs::write(work.join("file"), format!("{number}\n")).expect("a file");
        run(&work, &["add", "file"]);
        run(&work, &["commit", "-q", "-m", "x"]);
    }
    let cache = scratch.path().join("cache");
    std::fs::create_dir(&cache).expect("a directory");
    let config = format!(
        "root = \"work\"\n[http]\nmetrics = \"loopback\"\nlisten = [\"127.0.0.1:0\"]\n[cache]\ndirectory = {cache:?}\n"
    );
    std::fs::write(scratch.path().join("pronto-server.toml"), config).expect("a file");
    let arguments = ["--config", "pronto-server.toml"];
    let server = Server::start(scratch.path(), &arguments, "git clone ");
    let url = server.url();
    let clone = |name: &str, arguments: &[&str]| {
        let rest = ["clone", "-q", "--bare", &url, name];
        run(scratch.path(), &[&rest[..], arguments].concat());
        run(&scratch.path().join(name), &["fsck", "--full", "--strict"]);
    };
    clone("a", &["--depth=1"]);
    assert_eq!(counters(&server), (1, 0));
    clone("b", &["--depth=1"]);
    assert_eq!(counters(&server), (1, 1));
    clone("c", &["--depth=2"]);
    clone("d", &[]);
    clone("e", &[]);
    assert_eq!(counters(&server), (3, 2));
    run(&work, &["tag", "-a", "-m", "new", "v1"]);
    run(&work, &["commit", "-q", "--allow-empty", "-m", "new"]);
    clone("f", &["--depth=1"]);
    clone("g", &[]);
    assert_eq!(counters(&server), (5, 2));
    // With bitmaps there is nothing to gain.
    run(&work, &["repack", "-adbq"]);
    clone("h", &[]);
    assert_eq!(counters(&server), (5, 2));
    assert_eq!(std::fs::read_dir(&cache).expect("it is there").count(), 0);
    server.signal(Signal::TERM);
    server.end();
    // The clients have the same as clones without a cache.
    let output = pronto()
        .args(["-C", "g", "rev-list", "--count", "--all"])
        .current_dir(scratch.path())
        .output()
        .expect("it runs");
    assert_eq!(stdout(&output).trim(), "5");
}
