//! The manual in the program: pages, subcommands, the pager, and wrong names.

use std::path::Path;
use std::process::Output;

use test_support::skip;

use crate::support::{Scratch, install, process, pronto, pronto_path, stderr, stdout};

/// The program that runs another one on a terminal.
const SCRIPT: &str = "/usr/bin/script";

fn call(words: &[&str]) -> Output {
    pronto().args(words).output().expect("it runs")
}

/// Runs pronto on a terminal, with environment variables. Returns what the terminal gets.
fn on_terminal(arguments: &str, variables: &[(&str, &str)]) -> String {
    let line = format!("'{}' {arguments}", pronto_path().display());
    let output = process(SCRIPT)
        .args(["-qec", &line, "/dev/null"])
        .env("TERM", "xterm")
        .env("COLUMNS", "70")
        .envs(variables.iter().copied())
        .output()
        .expect("it starts");
    stdout(&output).replace("\r\n", "\n")
}

#[test]
fn a_page_is_printed_without_man_and_without_git() {
    let output = pronto()
        .args(["help", "status"])
        .env("PATH", "/nonexistent")
        .output()
        .expect("it runs");
    let page = stdout(&output);
    assert_eq!(output.status.code(), Some(0), "{}", stderr(&output));
    assert!(page.starts_with("PRONTO-STATUS(1)"), "{page}");
    assert!(page.contains("\nNAME\n       pronto-status - "), "{page}");
    assert!(page.contains("\nEXAMPLES\n"), "{page}");
    assert!(!page.contains('\u{8}') && page.lines().all(|line| line.len() < 200));
    assert_eq!(stdout(&call(&["status", "--help"])), page);
    assert!(stdout(&call(&["help", "pronto"])).starts_with("PRONTO(1)"));
}

#[test]
fn subcommands_have_pages_of_their_own() {
    let page = stdout(&call(&["help", "serve", "user", "add"]));
    assert!(page.starts_with("PRONTO-SERVE-USER-ADD(1)"), "{page}");
    assert!(page.contains("\nOPTIONS OF THE COMMANDS ABOVE\n"), "{page}");
    assert_eq!(stdout(&call(&["serve", "user", "add", "--help"])), page);
    assert_eq!(stdout(&call(&["serve", "help", "user", "add"])), page);
    let page = stdout(&call(&["serve", "user", "--help"]));
    assert!(page.starts_with("PRONTO-SERVE-USER(1)"), "{page}");
    assert!(page.contains("\nCOMMANDS\n       add    "), "{page}");
    let page = stdout(&call(&["help", "worktree", "add"]));
    assert!(page.starts_with("PRONTO-WORKTREE(1)"), "{page}");
}

#[test]
fn a_terminal_gets_the_page_through_the_pager_of_git() {
    if !Path::new(SCRIPT).exists() {
        skip!("there is no script");
    }
    let scratch = Scratch::new();
    let home = scratch.path().to_str().expect("it is text");
    std::fs::write(
        scratch.join(".gitconfig"),
        "[core]\n\tpager = sed s/^/configured:/\n",
    )
    .expect("a file");
    let paged = |arguments: &str, variables: &[(&str, &str)]| on_terminal(arguments, variables);
    let git_pager = ("GIT_PAGER", "sed s/^/first:/");
    let pager = ("PAGER", "sed s/^/last:/");
    let shown = paged("help status", &[git_pager, pager, ("HOME", home)]);
    assert!(shown.starts_with("first:PRONTO-STATUS(1)"), "{shown}");
    let shown = paged("help status", &[pager, ("HOME", home)]);
    assert!(shown.starts_with("configured:PRONTO-STATUS(1)"), "{shown}");
    let shown = paged("status --help", &[pager]);
    assert!(shown.starts_with("last:PRONTO-STATUS(1)"), "{shown}");
    // Bold letters are printed twice.
    assert!(
        shown.contains("last:N\u{8}NA\u{8}AM\u{8}ME\u{8}E\n"),
        "{shown:?}"
    );
    for (arguments, variables) in [
        ("-P help status", [git_pager]),
        ("help status", [("GIT_PAGER", "cat")]),
        ("help status", [("GIT_PAGER", "")]),
        ("help status", [("GIT_PAGER", "no-such-pager")]),
    ] {
        let shown = paged(arguments, &variables);
        assert!(
            shown.starts_with("PRONTO-STATUS(1)"),
            "{arguments}: {shown}"
        );
        assert!(!shown.contains('\u{8}'), "{arguments}: {shown:?}");
    }
    let options = ("GIT_PAGER", "echo \"$LESS $LV $GIT_PAGER_IN_USE\" #");
    assert_eq!(paged("help status", &[options]), "FRX -c true\n");
    assert_eq!(
        paged("help status", &[options, ("LESS", "-M")]),
        "-M -c true\n"
    );
    // The list is short enough for a terminal.
    let shown = paged("help", &[git_pager]);
    assert!(shown.starts_with("usage: pronto"), "{shown}");
}

#[test]
fn a_wrong_name_gets_the_most_similar_one_and_others_go_to_git() {
    for (words, similar) in [
        (&["help", "stroe"][..], "store"),
        (&["help", "comit"], "commit"),
        (&["help", "rebsae"], "rebase"),
        (&["help", "store", "improt"], "import"),
        (&["store", "help", "improt"], "import"),
    ] {
        let output = call(words);
        let said = stderr(&output);
        let expected = format!("hint: did you mean '{similar}'?\n");
        assert!(said.starts_with("error: unknown command '"), "{said}");
        assert!(said.ends_with(&expected), "{words:?}: {said}");
        assert_eq!(output.status.code(), Some(1), "{words:?}");
        assert_eq!(stdout(&output), "");
    }
    let scratch = Scratch::new();
    let git = scratch.script("bin", "git", "#!/bin/sh\necho \"git: $*\"\nexit 16\n");
    for name in ["log", "hooks", "gitignore", "quite-another-name"] {
        let output = pronto()
            .args(["help", name])
            .env("PRONTO_GIT", &git)
            .output()
            .expect("it runs");
        assert_eq!(stdout(&output), format!("git: help {name}\n"));
        assert_eq!(output.status.code(), Some(16));
    }
    let refused = pronto()
        .args(["help", "log"])
        .env("PRONTO_NO_FALLBACK", "1")
        .output()
        .expect("it runs");
    assert_eq!(refused.status.code(), Some(128));
    assert!(stderr(&refused).starts_with("fatal: a manual for 'log' is not implemented natively"));
}

#[test]
fn the_list_and_the_pages_say_which_part_is_native() {
    let list = stdout(&call(&["help"]));
    for (name, part) in [
        ("pull", "only with --netsync"),
        ("commit", "only with -q and a message from -m or -F"),
        ("reflog", "without 'show'"),
    ] {
        let line = list
            .lines()
            .find(|line| line.starts_with(&format!("   {name} ")));
        let line = line.expect(name);
        assert!(line.ends_with(&format!(" [{part}]")), "{line}");
        let page = stdout(&call(&["help", name]));
        let words: Vec<&str> = page.split_whitespace().collect();
        let expected = format!("runs a part of this command: {part}. git runs");
        assert!(words.join(" ").contains(&expected), "{page}");
    }
}

#[test]
fn under_the_name_git_the_documentation_is_that_of_git() {
    let scratch = Scratch::new();
    let link = |from: &Path, to: &Path| std::os::unix::fs::symlink(from, to);
    let ours = install(&scratch, "bin", "git", link);
    let theirs = scratch.script("real", "git", "#!/bin/sh\necho \"theirs: $*\"\n");
    for arguments in [&["help", "status"][..], &["status", "--help"], &["help"]] {
        let output = process(&ours)
            .args(arguments)
            .env("PRONTO_GIT", &theirs)
            .output()
            .expect("it runs");
        let expected = format!("theirs: {}\n", arguments.join(" "));
        assert_eq!(stdout(&output), expected);
    }
}
