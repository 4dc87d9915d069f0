//! Options before the command and options of commands, parsed as in Git.

use std::path::Path;

use crate::support::{Scratch, install, process, pronto, stderr, stdout};

fn version_line() -> String {
    format!("pronto version {}\n", env!("CARGO_PKG_VERSION"))
}

#[test]
fn version_has_three_spellings() {
    for call in [
        &["version"][..],
        &["--version"],
        &["-v"],
        &["--no-pager", "-c", "a.b=c", "version"],
    ] {
        let output = pronto().args(call).output().expect("it runs");
        assert_eq!(
            (stdout(&output), output.status.code()),
            (version_line(), Some(0)),
            "{call:?}"
        );
    }
}

#[test]
fn options_of_commands_may_be_abbreviated() {
    let output = pronto()
        .args(["version", "--build"])
        .output()
        .expect("it runs");
    assert!(stdout(&output).contains("\ndefault-hash: sha1\n"));
    let output = pronto()
        .args(["version", "--build", "--no-build-opt"])
        .output()
        .expect("it runs");
    assert_eq!(stdout(&output), version_line());
}

#[test]
fn directory_options_accumulate_and_missing_ones_are_reported() {
    let scratch = Scratch::new();
    std::fs::create_dir_all(scratch.path().join("a/b")).expect("directories");
    let in_scratch = |arguments: &[&str]| {
        pronto()
            .args(arguments)
            .current_dir(scratch.path())
            .output()
            .expect("it runs")
    };
    let output = in_scratch(&["-C", "a", "-C", "b", "-C", "", "version"]);
    assert_eq!(output.status.code(), Some(0));
    let ours = in_scratch(&["-C", "a", "-C", "c", "version"]);
    let theirs = process("git")
        .args(["-C", "a", "-C", "c", "version"])
        .current_dir(scratch.path())
        .output()
        .expect("git runs");
    assert_eq!(stderr(&ours), stderr(&theirs));
    assert_eq!(ours.status.code(), theirs.status.code());
}

#[test]
fn config_env_reports_missing_parts_as_git_does() {
    for argument in [
        "--config-env=a.b",
        "--config-env=a.b=",
        "--config-env=a.b=NO_SUCH_VARIABLE",
    ] {
        let ours = pronto()
            .args([argument, "version"])
            .output()
            .expect("it runs");
        let theirs = process("git")
            .args([argument, "version"])
            .output()
            .expect("git runs");
        assert_eq!(stderr(&ours), stderr(&theirs));
        assert_eq!(ours.status.code(), theirs.status.code());
    }
}

#[test]
fn native_commands_are_listed_one_per_line() {
    let output = pronto().arg("--list-native").output().expect("it runs");
    let listed = stdout(&output);
    assert!(listed.lines().any(|line| line == "version"));
    assert!(listed.lines().is_sorted());
}

#[test]
fn help_and_usage_have_their_exit_codes() {
    let output = pronto().arg("help").output().expect("it runs");
    assert!(stdout(&output).contains("\n   version "));
    assert_eq!(output.status.code(), Some(0));
    assert_eq!(pronto().output().expect("it runs").status.code(), Some(1));
    let usage = pronto().args(["version", "-h"]).output().expect("it runs");
    assert_eq!(usage.status.code(), Some(129));
    assert!(stdout(&usage).starts_with("usage: pronto version"));
}

#[test]
fn the_usage_of_a_command_is_that_of_git() {
    let scratch = Scratch::new();
    let link = |from: &Path, to: &Path| std::os::unix::fs::symlink(from, to);
    let ours = install(&scratch, "bin", "git", link);
    let theirs = scratch.script("real", "git", "#!/bin/sh\necho \"theirs: $*\"\nexit 129\n");
    for arguments in [
        ["status", "-h"],
        ["reset", "--help-all"],
        ["reset", "--no-soft"],
    ] {
        let output = process(&ours)
            .args(arguments)
            .env("PRONTO_GIT", &theirs)
            .output()
            .expect("it runs");
        assert_eq!(
            stdout(&output),
            format!("theirs: {}\n", arguments.join(" "))
        );
        assert_eq!(output.status.code(), Some(129));
    }
    for (name, begins) in [
        ("status", "usage: git status "),
        ("netsync", "usage: git netsync "),
    ] {
        let output = process(&ours)
            .args([name, "-h"])
            .env("PRONTO_NO_FALLBACK", "1")
            .output()
            .expect("it runs");
        assert!(stdout(&output).starts_with(begins), "{}", stdout(&output));
        assert_eq!(output.status.code(), Some(129));
    }
}

/// Every command below a command of pronto's own, with the names that lead to it.
fn nested() -> Vec<(Vec<String>, clap::Command)> {
    fn walk(
        command: &clap::Command,
        path: &[String],
        found: &mut Vec<(Vec<String>, clap::Command)>,
    ) {
        for below in command.get_subcommands() {
            let path = [path, &[below.get_name().to_owned()]].concat();
            walk(below, &path, found);
            found.push((path, below.clone()));
        }
    }
    let mut found = Vec::new();
    for command in pronto_cli::commands::definition().get_subcommands() {
        walk(command, &[command.get_name().to_owned()], &mut found);
    }
    found
}

#[test]
fn commands_below_a_command_have_usage_and_name_what_is_missing() {
    let commands = nested();
    assert!(commands.len() > 20, "{}", commands.len());
    for (path, definition) in commands {
        let called = path.join(" ");
        let usage = pronto().args(&path).arg("-h").output().expect("it runs");
        let begins = format!("usage: pronto {called}");
        assert!(stdout(&usage).starts_with(&begins), "{}", stdout(&usage));
        assert_eq!(usage.status.code(), Some(129));
        let manual = pronto()
            .args(&path)
            .arg("--help")
            .output()
            .expect("it runs");
        assert_eq!(manual.status.code(), Some(0), "{called}");
        let unknown = pronto()
            .args(&path)
            .arg("--unheard-of")
            .output()
            .expect("it runs");
        let said = stderr(&unknown);
        assert!(said.contains("'--unheard-of'"), "{called}: {said}");
        assert!(
            said.contains(&format!("'pronto {called} -h'")),
            "{called}: {said}"
        );
        assert_eq!(unknown.status.code(), Some(129), "{called}");
        let required = definition
            .get_positionals()
            .find(|operand| operand.is_required_set());
        if let Some(operand) = required {
            let missing = pronto().args(&path).output().expect("it runs");
            let said = stderr(&missing);
            assert!(said.contains(&operand.to_string()), "{called}: {said}");
            assert_eq!(missing.status.code(), Some(129), "{called}");
        }
    }
}

#[test]
fn a_wrong_name_below_a_command_is_compared_with_the_right_ones() {
    for (words, similar) in [
        (&["store", "improt", "a", "b"][..], "import"),
        (&["store", "-q", "verfy"], "verify"),
        (&["netsync", "trsut"], "trust"),
        (&["serve", "user", "lits"], "list"),
        (&["serve", "user", "key", "ad"], "add"),
    ] {
        let output = pronto().args(words).output().expect("it runs");
        let said = stderr(&output);
        assert!(
            said.contains(&format!("did you mean '{similar}'")),
            "{said}"
        );
        assert_eq!(output.status.code(), Some(129));
    }
    for words in [
        &["store"][..],
        &["store", "-q"],
        &["netsync"],
        &["serve", "user"],
    ] {
        let output = pronto().args(words).output().expect("it runs");
        assert!(
            stderr(&output).contains("missing subcommand"),
            "{}",
            stderr(&output)
        );
        assert_eq!(output.status.code(), Some(129));
    }
    let output = pronto()
        .args(["serve", "--write", "user", "list"])
        .output()
        .expect("it runs");
    assert!(
        stderr(&output).contains("'--write' is not an option of"),
        "{}",
        stderr(&output)
    );
}
