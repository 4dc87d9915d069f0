//! `serve` over SSH, with the OpenSSH client.

mod hostile;
pub(crate) mod site;

use std::net::TcpStream;
use std::path::Path;
use std::process::Command;

use rustix::process::Signal;
use test_support::git::reference;
use test_support::{report_missing_reference, skip};

use crate::serve::{Server, repository, wait_until};
use crate::support::{Scratch, process, pronto_path, stderr, stdout};

use crate::stored::{Place, Root, in_a_directory_only, in_both_places};
use site::Site;

in_both_places!(
    clients_clone_fetch_and_push,
    clients_get_archives,
    a_large_push_and_its_clone_arrive,
    keys_of_each_type_log_in_and_others_do_not,
    other_ways_to_log_in_are_refused,
    roles_rules_names_and_commands_are_checked,
    anonymous_needs_no_key_and_reads_what_it_may,
    the_host_key_is_kept,
    a_reload_changes_rights_and_requests_under_way_are_finished,
);

in_a_directory_only!(
    /// A store has no single repository that needs no configuration.
    a_server_without_a_configuration_lets_anonymous_read,
);

fn clients_clone_fetch_and_push(place: Place) {
    let Some(mut site) = Site::new(place, "") else {
        return;
    };
    clone_fetch_and_push(&site);
    let served = site.root.served("team/a").display().to_string();
    site.succeed("alice", &["-C", &served, "fsck", "--strict"]);
    let log = site.end();
    assert_eq!(log.contains("\"store\":{"), site.root.is_store(), "{log}");
    assert!(log.contains("\"protocol\":\"ssh\""), "{log}");
    assert!(log.contains("\"user\":\"alice\""), "{log}");
    assert!(!log.contains("\"status\":500"), "{log}");
}

fn clone_fetch_and_push(site: &Site) {
    let mut programs = vec![Path::new("git"), pronto_path()];
    match reference() {
        Some(git) => programs.push(git),
        None => report_missing_reference(&"SSH with git 2.55"),
    }
    let url = site.url("team/a.git");
    for (number, program) in programs.into_iter().enumerate() {
        for version in ["0", "1", "2"] {
            let name = format!("clone{number}{version}");
            let protocol = format!("protocol.version={version}");
            let run = |arguments: &[&str]| {
                let arguments = [&["-c", &protocol][..], arguments].concat();
                let output = site.client(program, "alice", &arguments);
                let text = stderr(&output);
                assert!(output.status.success(), "{program:?} {arguments:?}: {text}");
            };
            let branch = format!("HEAD:refs/heads/{name}");
            run(&["clone", "-q", &url, &name]);
            site.succeed(
                "alice",
                &["-C", &name, "commit", "-q", "--allow-empty", "-m", &name],
            );
            run(&["-C", &name, "push", "-q", "origin", &branch]);
            // Nothing to push.
            run(&["-C", &name, "push", "-q", "origin", &branch]);
            let other = format!("HEAD:refs/heads/x{name}");
            site.succeed("alice", &["-C", "work", "push", "-q", &url, &other]);
            run(&["-C", &name, "fetch", "-q", "origin"]);
            site.succeed("alice", &["-C", &name, "fsck", "--strict"]);
            run(&["-C", &name, "push", "-q", "origin", &format!(":{name}")]);
        }
    }
    let new = site.url("new/b");
    site.succeed("alice", &["-C", "work", "push", "-q", &new, "main"]);
    site.succeed("alice", &["clone", "-q", "--depth=1", &new, "shallow"]);
}

fn clients_get_archives(place: Place) {
    let Some(mut site) = Site::new(place, "") else {
        return;
    };
    let url = site.url("team/a.git");
    site.succeed("alice", &["-C", "work", "push", "-q", &url, "main"]);
    site.succeed(
        "alice",
        &["-C", "work", "archive", "-o", "../own.tar", "main"],
    );
    let read = |name: &str| std::fs::read(site.path(name)).expect("an archive");
    let remote = format!("--remote={url}");
    for program in [Path::new("git"), pronto_path()] {
        let run = |arguments: &[&str]| {
            let arguments = [&["archive", &remote][..], arguments].concat();
            site.client(program, "alice", &arguments)
        };
        let output = run(&["-o", "theirs.tar", "main"]);
        assert!(output.status.success(), "{program:?}: {}", stderr(&output));
        assert_eq!(read("theirs.tar"), read("own.tar"), "{program:?}");
        assert_eq!(stdout(&run(&["--list"])), "tar\ntgz\ntar.gz\nzip\n");
        let output = run(&["-o", "theirs.tar", "main^0"]);
        let said = stderr(&output);
        assert!(
            said.contains("remote: fatal: no such ref: main^0"),
            "{said}"
        );
        assert_eq!(output.status.code(), Some(1), "{program:?}: {said}");
    }
    // Pronto keeps the old file.
    assert_eq!(read("theirs.tar"), read("own.tar"));
    let log = site.end();
    assert!(log.contains("\"service\":\"git-upload-archive\""), "{log}");
    assert!(!log.contains("\"status\":500"), "{log}");
}

fn a_large_push_and_its_clone_arrive(place: Place) {
    let Some(site) = Site::new(place, "") else {
        return;
    };
    let mut random = test_support::Random::new(7);
    std::fs::write(site.path("work/noise"), random.bytes(12 << 20)).expect("a file");
    site.succeed("alice", &["-C", "work", "add", "."]);
    site.succeed("alice", &["-C", "work", "commit", "-q", "-m", "noise"]);
    let url = site.url("team/a");
    site.succeed("alice", &["-C", "work", "push", "-q", &url, "main"]);
    site.succeed("alice", &["clone", "-q", &url, "clone"]);
    let read = |name: &str| std::fs::read(site.path(name)).expect("a file");
    assert!(read("work/noise") == read("clone/noise"));
    // The answer to a refused push comes while the client still sends.
    std::fs::write(site.path("work/noise"), random.bytes(12 << 20)).expect("a file");
    site.succeed(
        "alice",
        &["-C", "work", "commit", "-q", "--amend", "-am", "x"],
    );
    let text = site.fail("alice", &["-C", "work", "push", &url, "main:new", ":main"]);
    assert!(text.contains("you may not delete this ref"), "{text}");
}

fn keys_of_each_type_log_in_and_others_do_not(place: Place) {
    let Some(site) = Site::new(place, "[limits]\nfailures_per_minute = 1000000\n") else {
        return;
    };
    let listed = |key: &str| {
        let url = site.url("team/a");
        let output = site.client(Path::new("git"), key, &["ls-remote", &url]);
        (output.status.success(), stderr(&output))
    };
    for (name, kind) in [
        ("nistp256", &["-t", "ecdsa", "-b", "256"][..]),
        ("nistp384", &["-t", "ecdsa", "-b", "384"]),
        ("nistp521", &["-t", "ecdsa", "-b", "521"]),
        ("rsa", &["-t", "rsa", "-b", "2048"]),
    ] {
        site.make_key(name, kind);
        let (is_good, text) = listed(name);
        assert!(
            !is_good && text.contains("Permission denied (publickey)"),
            "{text}"
        );
        let print = site.serve(&["user", "key", "add", "alice", &format!("{name}.pub")]);
        assert!(print.starts_with("SHA256:"), "{print}");
        wait_until(|| listed(name).0);
        let keys = site.serve(&["user", "key", "list", "alice"]);
        assert!(
            keys.contains(&format!("alice\t{}\t", print.trim())),
            "{keys}"
        );
        site.serve(&["user", "key", "remove", "alice", print.trim()]);
        wait_until(|| !listed(name).0);
    }
    site.make_key("small", &["-t", "rsa", "-b", "1024"]);
    for (name, file) in [
        ("alice", "small.pub"),
        ("alice", "bob.pub"),
        ("alice", "alice"),
        ("nobody", "small.pub"),
    ] {
        let output = site.try_serve(&["user", "key", "add", name, file]);
        assert_eq!(output.status.code(), Some(128), "{file}");
    }
}

fn other_ways_to_log_in_are_refused(place: Place) {
    let Some(mut site) = Site::new(place, "") else {
        return;
    };
    site.make_key("rsa", &["-t", "rsa", "-b", "2048"]);
    site.serve(&["user", "key", "add", "alice", "rsa.pub"]);
    for options in [
        &["-oPreferredAuthentications=password"][..],
        &["-oPreferredAuthentications=keyboard-interactive"],
        &["-oPreferredAuthentications=none"],
        // Signatures with SHA-1.
        &["-oPubkeyAcceptedAlgorithms=ssh-rsa"],
    ] {
        let mut command = site.ssh("rsa");
        let command = command.args(options).arg("git-upload-pack 'team/a'");
        let output = command.output().expect("ssh runs");
        let text = stderr(&output);
        assert_eq!(output.status.code(), Some(255), "{options:?}: {text}");
        assert!(text.contains("Permission denied"), "{options:?}: {text}");
    }
    // Neither a shell nor a terminal, a subsystem or forwarding.
    let output = site.ssh("alice").output().expect("ssh runs");
    let text = stderr(&output);
    assert!(
        text.contains("You are alice. This server serves Git"),
        "{text}"
    );
    let output = site
        .ssh("alice")
        .args(["-s", "sftp"])
        .output()
        .expect("ssh runs");
    assert!(!output.status.success());
    let forwarded = ["-oExitOnForwardFailure=yes", "-R", "0:127.0.0.1:1", "-N"];
    let output = site
        .ssh("alice")
        .args(forwarded)
        .output()
        .expect("ssh runs");
    assert!(!output.status.success(), "{}", stderr(&output));
    let output = site.ssh("alice").args(["-W", "127.0.0.1:1"]).output();
    assert!(!output.expect("ssh runs").status.success());
    site.make_key("stranger", &["-t", "ed25519"]);
    let output = site.ssh("stranger").output().expect("ssh runs");
    assert!(stderr(&output).contains("Permission denied (publickey)"));
    let log = site.end();
    assert!(log.contains("\"reason\":\"no user has this key\""), "{log}");
}

fn roles_rules_names_and_commands_are_checked(place: Place) {
    let Some(mut site) = Site::new(place, "") else {
        return;
    };
    let (team, private) = (site.url("team/a"), site.url("private"));
    site.succeed("bob", &["ls-remote", &team]);
    let refused = |key: &str, arguments: &[&str], reason: &str| {
        let text = site.fail(key, arguments);
        assert!(text.contains(reason), "{arguments:?}: {text}");
        text
    };
    let push = ["-C", "work", "push", &team, "main:x"];
    let text = refused(
        "bob",
        &push,
        "pronto: you may not push to this repository (request ",
    );
    let id = text.split("(request ").nth(1).expect("an id");
    let id = id.split(')').next().expect("an id").to_owned();
    let secret = site.url("secret");
    refused(
        "bob",
        &["ls-remote", &secret],
        "there is no repository 'secret'",
    );
    refused(
        "bob",
        &["ls-remote", &private],
        "there is no repository 'private'",
    );
    refused(
        "alice",
        &["ls-remote", &secret],
        "there is no repository 'secret'",
    );
    let outside = site.url("../root/open");
    refused("alice", &["ls-remote", &outside], "invalid repository name");
    let push = ["-C", "work", "push", "--force", &team, "main:y", ":main"];
    refused("alice", &push, "you may not delete this ref");
    site.succeed(
        "alice",
        &[
            "-C",
            "work",
            "commit",
            "-q",
            "--amend",
            "--allow-empty",
            "-m",
            "other",
        ],
    );
    let push = ["-C", "work", "push", "--force", &team, "main"];
    refused("alice", &push, "non-fast-forward");
    for (command, reason) in [
        ("ls", "git-receive-pack and git-upload-archive (request "),
        (
            "git-upload-nothing 'team/a'",
            "git-receive-pack and git-upload-archive",
        ),
        ("git-upload-pack 'team/a'; ls", "unbalanced quote"),
        ("git-upload-pack", "exactly one repository"),
    ] {
        let output = site.ssh("alice").arg(command).output().expect("ssh runs");
        assert_eq!(output.status.code(), Some(128), "{command}");
        assert!(
            stderr(&output).contains(reason),
            "{command}: {}",
            stderr(&output)
        );
    }
    let log = site.end();
    let line = log.lines().find(|line| line.contains(&id));
    let line = line.expect("the request is in the log");
    assert!(
        line.contains("\"status\":403") && line.contains("\"user\":\"bob\""),
        "{line}"
    );
}

fn anonymous_needs_no_key_and_reads_what_it_may(place: Place) {
    let Some(site) = Site::new(place, "") else {
        return;
    };
    site.make_key("stranger", &["-t", "ed25519"]);
    let anonymous = |name: &str| format!("ssh://anonymous@{}/{name}", site.address());
    let (open, team) = (anonymous("open"), anonymous("team/a"));
    site.succeed("stranger", &["clone", "-q", &open, "clone"]);
    let text = site.fail("stranger", &["ls-remote", &team]);
    assert!(
        text.contains("permission denied: no user has this key"),
        "{text}"
    );
    let text = site.fail("stranger", &["-C", "work", "push", &open, "main:x"]);
    assert!(
        text.contains("permission denied: no user has this key"),
        "{text}"
    );
    let text = site.fail("stranger", &["ls-remote", &site.url("open")]);
    assert!(text.contains("Permission denied (publickey)"), "{text}");
}

fn the_host_key_is_kept(place: Place) {
    use std::os::unix::fs::PermissionsExt as _;
    let Some(mut site) = Site::new(place, "") else {
        return;
    };
    let key = site.path("pronto-ssh-host-key");
    let mode = std::fs::metadata(&key).expect("it is made").permissions();
    assert_eq!(mode.mode() & 0o7777, 0o600);
    let fingerprint = site.fingerprint();
    let shown = Command::new("/usr/bin/ssh-keygen")
        .arg("-lf")
        .arg(&key)
        .output();
    let shown = stdout(&shown.expect("ssh-keygen runs"));
    assert!(shown.contains(&fingerprint), "{shown}");
    site.succeed("alice", &["ls-remote", &site.url("open")]);
    site.end();
    site.start();
    assert_eq!(site.fingerprint(), fingerprint);
    site.succeed("alice", &["ls-remote", &site.url("open")]);
    site.end();
    std::fs::remove_file(&key).expect("it is there");
    let checked = site.try_serve(&["--check"]);
    assert!(
        checked.status.success() && !key.exists(),
        "{}",
        stderr(&checked)
    );
    site.start();
    assert_ne!(site.fingerprint(), fingerprint);
    let text = site.fail("alice", &["ls-remote", &site.url("open")]);
    assert!(text.contains("Host key verification failed"), "{text}");
}

fn a_server_without_a_configuration_lets_anonymous_read() {
    if !Path::new("/usr/bin/ssh").exists() {
        skip!("there is no ssh");
    }
    let scratch = Scratch::new();
    let work = repository(&scratch);
    let server = Server::start(&work, &["--ssh", "127.0.0.1:0", "."], "git clone");
    let line = server
        .lines
        .iter()
        .find_map(|line| line.strip_prefix("serving at ssh://"));
    let url = format!("ssh://anonymous@{}work", line.expect("it serves SSH"));
    let site = Site {
        root: Root::new(scratch.path(), Place::Directory),
        scratch,
        server: None,
    };
    let ssh = "ssh -F/dev/null -oStrictHostKeyChecking=no -oUserKnownHostsFile=/dev/null";
    let output = process("git")
        .args(["clone", "-q", &url, "clone"])
        .current_dir(site.scratch.path())
        .env("GIT_SSH_COMMAND", ssh)
        .output()
        .expect("git runs");
    assert!(output.status.success(), "{}", stderr(&output));
    let left = std::fs::read_dir(&work).expect("a directory");
    assert_eq!(left.count(), 1, "no file is left in the served directory");
}

fn a_reload_changes_rights_and_requests_under_way_are_finished(place: Place) {
    let Some(mut site) = Site::new(place, "") else {
        return;
    };
    let url = site.url("team/a");
    site.succeed("bob", &["ls-remote", &url]);
    let config = site.path("server.toml");
    let text = std::fs::read_to_string(&config).expect("text");
    std::fs::write(&config, text.replace("bob", "carol")).expect("a file");
    site.running().signal(Signal::HUP);
    let bob = || {
        let output = site.client(Path::new("git"), "bob", &["ls-remote", &url]);
        output.status.success()
    };
    wait_until(|| !bob());
    // The hook ends when the server is asked to.
    let (begun, go) = (site.path("begun"), site.path("go"));
    let hook = format!(
        "#!/bin/sh\n: >'{}'\nwhile ! test -e '{}'; do sleep 0.05; done\n",
        begun.display(),
        go.display()
    );
    let hooks = site.root.directory("team/a").join("hooks");
    std::fs::create_dir_all(&hooks).expect("a directory");
    crate::support::write_program(&hooks.join("pre-receive"), &hook);
    site.root.publish("team/a");
    std::thread::scope(|scope| {
        let push = scope.spawn(|| site.git(&["-C", "work", "push", &url, "main:late"]));
        wait_until(|| begun.exists());
        site.running().signal(Signal::TERM);
        wait_until(|| TcpStream::connect(site.address()).is_err());
        std::fs::write(&go, "").expect("a file");
        let output = push.join().expect("git runs");
        assert!(output.status.success(), "{}", stderr(&output));
    });
    let log = site.server.take().expect("it ran").end();
    assert!(log.contains("\"event\":\"reloaded\""), "{log}");
    assert!(
        log.contains("\"connections\":0,\"event\":\"drained\""),
        "{log}"
    );
}
