//! Aliases run natively if their commands are native.

use std::process::Output;

use crate::support::{Scratch, install, process, pronto, stderr, stdout};

const ALIASES: &str = "[alias]\n\tv = version\n\tfull = v --build-options\n\tquoted = \"version '--build-options'\"\n\
    \tround = about\n\tabout = round\n\tself = self\n\tsays = !echo from-shell\n\tlog = version\n\
    \teverything = log -1\n\tenv = --bare version\n\topen = version 'x\n[alias \"sub section\"]\n\tcommand = version\n";

fn home() -> Scratch {
    let scratch = Scratch::new();
    std::fs::write(scratch.path().join(".gitconfig"), ALIASES).expect("a configuration");
    scratch
}

fn native(home: &Scratch, arguments: &[&str]) -> Output {
    let mut command = pronto();
    command
        .env("HOME", home.path())
        .env("PRONTO_NO_FALLBACK", "1");
    command
        .args(arguments)
        .current_dir(home.path())
        .output()
        .expect("it runs")
}

#[test]
fn simple_aliases_are_native_and_may_name_each_other() {
    let home = home();
    let line = format!("pronto version {}\n", env!("CARGO_PKG_VERSION"));
    assert_eq!(stdout(&native(&home, &["v"])), line);
    assert_eq!(stdout(&native(&home, &["V"])), line);
    assert_eq!(stdout(&native(&home, &["sub section"])), line);
    assert!(stdout(&native(&home, &["full"])).contains("default-hash"));
    assert!(stdout(&native(&home, &["quoted"])).contains("default-hash"));
    assert_eq!(
        stdout(&native(&home, &["-c", "alias.other=version", "other"])),
        line
    );
    let wrong = native(&home, &["v", "--zap"]);
    assert_eq!(wrong.status.code(), Some(129));
}

#[test]
fn alias_loops_are_reported_as_in_git() {
    let home = home();
    for name in ["round", "self"] {
        let ours = native(&home, &[name]);
        let theirs = process("git")
            .arg(name)
            .env("HOME", home.path())
            .current_dir(home.path())
            .output()
            .expect("git runs");
        assert_eq!(stderr(&ours), stderr(&theirs));
        assert_eq!(ours.status.code(), theirs.status.code());
    }
}

#[test]
fn other_aliases_go_to_git() {
    let home = home();
    let output = pronto()
        .arg("says")
        .env("HOME", home.path())
        .output()
        .expect("it runs");
    assert_eq!(stdout(&output), "from-shell\n");
    for name in ["log", "everything", "says", "env", "open", "no-such"] {
        let output = native(&home, &[name]);
        assert_eq!(output.status.code(), Some(128), "{name}");
        let expected = format!("fatal: command '{name}' is not implemented natively\n");
        assert!(stderr(&output).starts_with(&expected), "{name}");
    }
}

#[test]
fn a_program_takes_precedence_over_an_alias() {
    let home = home();
    home.script("bin", "git-v", "#!/bin/sh\necho program\n");
    let output = pronto()
        .arg("v")
        .env("HOME", home.path())
        .env("PATH", crate::support::path_with(&home.path().join("bin")))
        .output()
        .expect("it runs");
    assert_eq!(stdout(&output), "program\n");
}

#[test]
fn called_as_git_an_alias_shadows_a_command_of_pronto() {
    let scratch = home();
    let config = std::fs::read_to_string(scratch.path().join(".gitconfig")).expect("it is there");
    let config = config.replace("\tv = version\n", "\tv = version\n\tsync = !echo theirs\n");
    std::fs::write(scratch.path().join(".gitconfig"), config).expect("a configuration");
    let git = install(&scratch, "bin", "git", |from, to| {
        std::os::unix::fs::symlink(from, to)
    });
    let run = |program: &std::path::Path| {
        let mut command = process(program);
        let command = command
            .env("HOME", scratch.path())
            .current_dir(scratch.path());
        command.args(["sync", "x"]).output().expect("it runs")
    };
    assert_eq!(stdout(&run(&git)), "theirs x\n");
    assert!(stderr(&run(crate::support::pronto_path())).contains("not a git repository"));
}
