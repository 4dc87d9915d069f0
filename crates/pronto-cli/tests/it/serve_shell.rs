//! `shell` behind the sshd of OpenSSH.

use std::path::Path;
use std::process::Output;

use test_support::skip;

use crate::serve::repository;
use crate::servers::Ssh;
use crate::stored::{Place, Root, in_a_directory_only, in_both_places};
use crate::support::{Scratch, process, pronto, stderr, stdout};

in_both_places!(the_same_rules_hold_behind_sshd,);

in_a_directory_only!(
    /// No repository is served.
    lines_for_sshd_are_quoted_and_chosen_by_fingerprint,
);

const ACCESS: &str = r#"
root = "root"
create_on_push = true
[[grant]]
repository = "team/**"
users = ["alice"]
role = "admin"
[[rule]]
repository = "**"
refs = "refs/heads/main"
delete = false
"#;

struct Site {
    scratch: Scratch,
    ssh: Ssh,
}

impl Site {
    fn new(place: Place) -> Option<Self> {
        let Some(ssh) = Ssh::start() else {
            skip!("sshd does not start");
        };
        let site = Site {
            scratch: Scratch::new(),
            ssh,
        };
        repository(&site.scratch);
        let root = Root::new(site.scratch.path(), place);
        let text = format!("{ACCESS}{}", root.section("cache"));
        std::fs::write(site.scratch.join("server.toml"), text).expect("a file");
        site.serve(&["user", "add", "alice"]);
        let key = site.ssh.public_key();
        let key = key.to_str().expect("a path");
        site.serve(&["user", "key", "add", "alice", key]);
        let lines = site.serve(&["user", "key", "authorized"]);
        assert!(
            lines.starts_with("command=\"'/") && lines.contains("--user alice\",restrict ssh-")
        );
        site.ssh.authorize(&lines);
        Some(site)
    }

    fn serve(&self, arguments: &[&str]) -> String {
        let output = pronto()
            .args(["serve", "--config", "server.toml"])
            .args(arguments)
            .current_dir(self.scratch.path())
            .output()
            .expect("it starts");
        assert!(
            output.status.success(),
            "{arguments:?}: {}",
            stderr(&output)
        );
        stdout(&output)
    }

    fn git(&self, arguments: &[&str]) -> Output {
        process("git")
            .args(arguments)
            .current_dir(self.scratch.path())
            .env("HOME", self.scratch.path())
            .env("GIT_SSH_COMMAND", self.ssh.command())
            .output()
            .expect("git runs")
    }

    fn succeed(&self, arguments: &[&str]) {
        let output = self.git(arguments);
        assert!(
            output.status.success(),
            "{arguments:?}: {}",
            stderr(&output)
        );
    }

    fn fail(&self, arguments: &[&str], reason: &str) {
        let output = self.git(arguments);
        let text = stderr(&output);
        assert!(!output.status.success() && text.contains(reason), "{text}");
    }

    fn url(&self, name: &str) -> String {
        self.ssh.url(&Path::new("/").join(name))
    }
}

fn the_same_rules_hold_behind_sshd(place: Place) {
    let Some(site) = Site::new(place) else { return };
    let url = site.url("team/a");
    site.succeed(&["-C", "work", "push", "-q", &url, "main"]);
    for version in ["0", "1", "2"] {
        let (protocol, name) = (format!("protocol.version={version}"), format!("c{version}"));
        site.succeed(&["-c", &protocol, "clone", "-q", &url, &name]);
        site.succeed(&["-C", &name, "fsck", "--strict"]);
    }
    let remote = format!("--remote={url}");
    site.succeed(&["archive", "-o", "a.tar", &remote, "main"]);
    site.succeed(&["-C", "work", "archive", "-o", "../b.tar", "main"]);
    let read = |name: &str| std::fs::read(site.scratch.join(name)).expect("an archive");
    assert_eq!(read("a.tar"), read("b.tar"));
    site.fail(&["archive", &remote, "main~0"], "no such ref: main~0");
    site.fail(
        &["-C", "work", "push", &url, ":main"],
        "you may not delete this ref",
    );
    site.fail(
        &["ls-remote", &site.url("secret")],
        "there is no repository 'secret'",
    );
    site.fail(
        &["-C", "work", "push", &site.url("other"), "main"],
        "there is no repository 'other'",
    );
    let port = site.ssh.port().to_string();
    let run = |command: &[&str]| {
        let mut ssh = process(site.ssh.wrapper());
        let ssh = ssh.args(["-p", &port, "127.0.0.1"]).args(command);
        let output = ssh.output().expect("ssh runs");
        assert_eq!(output.status.code(), Some(128), "{command:?}");
        stderr(&output)
    };
    assert!(run(&[]).contains("you are alice"));
    assert!(run(&["ls"]).contains("git-receive-pack and git-upload-archive"));
    // A user who is removed may do nothing, even if sshd still knows the key.
    site.serve(&["user", "remove", "alice"]);
    site.fail(&["ls-remote", &url], "no user 'alice'");
}

fn lines_for_sshd_are_quoted_and_chosen_by_fingerprint() {
    let scratch = Scratch::new();
    let directory = scratch.join("it's \"here\"");
    std::fs::create_dir(&directory).expect("a directory");
    std::fs::write(directory.join("s.toml"), "").expect("a file");
    let key = "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAILM+rvN+ot98qgEN796jTiQfZfG1KaT0PtFDJ/XFSqti c";
    std::fs::write(directory.join("k.pub"), key).expect("a file");
    let serve = |arguments: &[&str]| {
        let mut command = pronto();
        command
            .args(["serve", "--config", "s.toml"])
            .args(arguments);
        let output = command.current_dir(&directory).output().expect("it starts");
        assert!(output.status.success(), "{}", stderr(&output));
        stdout(&output)
    };
    serve(&["user", "add", "a"]);
    let print = serve(&["user", "key", "add", "a", "k.pub"]);
    let lines = serve(&["user", "key", "authorized", print.trim()]);
    assert!(
        lines.contains("/it'\\''s \\\"here\\\"/s.toml' --user a\",restrict ssh-"),
        "{lines}"
    );
    assert_eq!(serve(&["user", "key", "authorized", "SHA256:x"]), "");
}
