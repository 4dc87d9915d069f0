//! A monitor of a repository on a network file system, which does not support sockets: the socket
//! is in another directory.

use std::path::Path;

use slowfs::Model;

use super::faults::Place;
use crate::support::{Scratch, process, pronto, run, stderr, stdout};

/// Returns the name of the socket for the worktree at `path`.
fn name(path: &Path) -> String {
    let script = "printf %s \"$1\" | sha1sum | cut -d ' ' -f 1";
    let output = process("sh").args(["-c", script, "sh"]).arg(path).output();
    format!(
        ".git-fsmonitor-{}",
        stdout(&output.expect("it runs")).trim()
    )
}

#[test]
fn a_repository_on_a_network_file_system_has_its_socket_elsewhere() {
    let Some(place) = Place::on(Scratch::new(), Model::default()) else {
        return;
    };
    let (work, scratch) = (place.work(), place.scratch.path());
    let (sockets, home) = (scratch.join("sockets"), scratch.join("home"));
    for directory in [&sockets, &home] {
        std::fs::create_dir(directory).expect("a directory");
    }
    let configure = |key: &str, value: &str| {
        assert!(run("git", &work, &["config", key, value]).status.success());
    };
    place.git(&["init", "-q"]);
    std::fs::write(work.join("file"), "1\n").expect("a file");
    place.git(&["add", "."]);
    place.git(&["commit", "-qm1"]);
    let call = |arguments: &[&str]| {
        let mut command = pronto();
        command
            .args(arguments)
            .current_dir(&work)
            .env("HOME", &home);
        command.output().expect("it starts")
    };
    let refused = call(&["fsmonitor--daemon", "run"]);
    let reported = stderr(&refused);
    assert!(
        reported.contains("is incompatible with fsmonitor"),
        "{reported}"
    );
    configure("fsmonitor.allowRemote", "true");
    let name = name(&work.canonicalize().expect("it is there"));
    for (directory, configured) in [(&home, ""), (&sockets, "~/../sockets")] {
        configure("fsmonitor.socketDir", configured);
        let started = call(&["fsmonitor--daemon", "start"]);
        assert!(started.status.success(), "{}", stderr(&started));
        assert!(directory.join(&name).exists());
        assert!(!work.join(".git/fsmonitor--daemon.ipc").exists());
        assert!(call(&["fsmonitor--daemon", "status"]).status.success());
        let status = || call(&["-c", "core.fsmonitor=true", "status", "--porcelain"]);
        assert_eq!(stdout(&status()), "");
        std::fs::write(work.join("file"), "other\n").expect("a file");
        std::fs::write(work.join("new"), "new\n").expect("a file");
        assert_eq!(stdout(&status()), " M file\n?? new\n");
        std::fs::write(work.join("file"), "1\n").expect("a file");
        std::fs::remove_file(work.join("new")).expect("it is there");
        assert_eq!(stdout(&status()), "");
        let stopped = call(&["fsmonitor--daemon", "stop"]);
        assert!(stopped.status.success(), "{}", stderr(&stopped));
        assert!(!directory.join(&name).exists());
    }
}
