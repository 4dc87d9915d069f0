//! The programs that pronto starts: the configured git, no program if that is disabled, and never a
//! program in the current directory.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use crate::support::{self, Scratch, process, pronto_path, stderr};

fn git(directory: &Path, arguments: &[&str]) {
    let local = ["-c", "protocol.file.allow=always"];
    support::git(directory, &[&local[..], arguments].concat());
}

/// A repository with a submodule.
fn with_submodule(scratch: &Scratch) {
    let path = scratch.path();
    for name in ["inner", "outer"] {
        git(path, &["init", "-q", "-b", "main", name]);
        git(
            &path.join(name),
            &["commit", "-q", "--allow-empty", "-m", "one"],
        );
    }
    let outer = path.join("outer");
    git(
        &outer,
        &["submodule", "--quiet", "add", "../inner", "module"],
    );
    git(&outer, &["commit", "-qm", "two"]);
}

/// Creates a program called `name` in its own directory that reports that it ran.
fn trap(scratch: &Scratch, directory: &str, name: &str) -> (PathBuf, PathBuf) {
    let mark = scratch.path().join(format!("{directory}-ran"));
    let text = format!("#!/bin/sh\n: >'{}'\nexit 0\n", mark.display());
    let program = scratch.script(directory, name, &text);
    (program, mark)
}

fn path_of(directory: &Path) -> String {
    let rest = std::env::var("PATH").expect("there is a PATH");
    format!("{}:{rest}", directory.display())
}

fn pronto(directory: &Path) -> Command {
    let mut command = process(pronto_path());
    command
        .current_dir(directory)
        .env("HOME", directory)
        .env("GIT_ALLOW_PROTOCOL", "file")
        .env("GIT_AUTHOR_NAME", "a")
        .env("GIT_AUTHOR_EMAIL", "a@x")
        .env("GIT_COMMITTER_NAME", "a")
        .env("GIT_COMMITTER_EMAIL", "a@x");
    command
}

fn output(command: &mut Command) -> Output {
    command.output().expect("it starts")
}

#[test]
fn submodules_of_a_clone_use_the_chosen_git() {
    let scratch = Scratch::new();
    with_submodule(&scratch);
    let (evil, ran) = trap(&scratch, "evil", "git");
    let (chosen, called) = trap(&scratch, "chosen", "git");
    let path = path_of(evil.parent().expect("it has one"));
    let clone = ["clone", "-q", "--recurse-submodules", "outer"];
    let forbidden = output(
        pronto(scratch.path())
            .args(clone)
            .arg("one")
            .env("PATH", &path)
            .env("PRONTO_NO_FALLBACK", "1"),
    );
    assert_eq!(forbidden.status.code(), Some(128), "{forbidden:?}");
    let reported = stderr(&forbidden);
    assert!(
        reported
            .contains("this command needs git, but PRONTO_NO_FALLBACK forbids pronto to run it"),
        "{reported}"
    );
    assert!(!ran.exists());
    let done = output(
        pronto(scratch.path())
            .args(clone)
            .arg("two")
            .env("PATH", &path)
            .env("PRONTO_GIT", &chosen),
    );
    assert!(done.status.success(), "{done:?}");
    assert!(called.exists() && !ran.exists());
    // The real git does it.
    let done = output(pronto(scratch.path()).args(clone).arg("three"));
    assert!(done.status.success(), "{done:?}");
    assert!(scratch.path().join("three/module/.git").exists());
}

#[test]
fn the_server_of_a_path_is_this_program() {
    let scratch = Scratch::new();
    git(scratch.path(), &["init", "-q", "-b", "main", "origin"]);
    let origin = scratch.path().join("origin");
    git(&origin, &["commit", "-q", "--allow-empty", "-m", "one"]);
    git(scratch.path(), &["clone", "-q", "origin", "copy"]);
    git(&origin, &["commit", "-q", "--allow-empty", "-m", "two"]);
    let copy = scratch.path().join("copy");
    let (evil, ran) = trap(&scratch, "evil", "git");
    let (chosen, called) = trap(&scratch, "chosen", "git");
    let path = path_of(evil.parent().expect("it has one"));
    let fetch = |variable: &str, value: &Path| {
        let mut command = pronto(&copy);
        command.arg("fetch").env("PATH", &path).env(variable, value);
        output(&mut command)
    };
    let done = fetch("PRONTO_GIT", &chosen);
    assert!(done.status.success(), "{done:?}");
    assert!(!called.exists() && !ran.exists());
    let reported = stderr(&done);
    assert!(reported.contains("main       -> origin/main"), "{reported}");
}

#[test]
fn programs_of_the_current_directory_are_not_run() {
    let scratch = Scratch::new();
    for name in ["ssh", "git", "git-upload-pack", "sh"] {
        let (program, _) = trap(&scratch, "work", name);
        assert!(program.exists());
    }
    let here = scratch.path().join("work");
    let ran = scratch.path().join("work-ran");
    let calls: [&[&str]; 4] = [
        &["clone", "-q", "host:path", "one"],
        &["fetch", "host:path"],
        &["nothing"],
        &["log"],
    ];
    for path in [":", ".", "", ":/usr/bin:/bin", "work:.:./"] {
        for call in calls {
            let mut command = pronto(&here);
            command.env("PATH", path).env("GIT_ALLOW_PROTOCOL", "ssh");
            // The real ssh, if installed, reaches no host.
            command
                .env("GIT_SSH_VARIANT", "ssh")
                .env("PRONTO_GIT", "/bin/false");
            let _ = output(command.args(call));
            assert!(!ran.exists(), "PATH='{path}': {call:?}");
        }
        let mut command = pronto(&here);
        let _ = output(command.env("PATH", path).arg("nothing"));
        assert!(!ran.exists(), "PATH='{path}'");
        let mut command = pronto(&here);
        command.env("PATH", path).env("PRONTO_GIT", "git");
        let _ = output(command.arg("nothing"));
        assert!(!ran.exists(), "PRONTO_GIT=git, PATH='{path}'");
    }
    fs::remove_dir_all(&here).expect("it is there");
}
