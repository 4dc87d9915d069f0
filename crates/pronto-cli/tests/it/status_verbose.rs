//! `status -v`: git writes the diff, pronto writes the rest, and the output equals that of git.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::support::{Scratch, git, process, pronto_path, stderr, stdout};

/// A git that only runs `diff` commands.
const ONLY_DIFF: &str = "#!/bin/sh\ncase \" $* \" in *' diff '*) exec git \"$@\" ;; esac\necho \"not: $*\" >&2\nexit 9\n";

/// A file that is renamed and changed, one that is changed twice, and one with intent to add.
fn repository(scratch: &Scratch) -> PathBuf {
    let top = scratch.path().join("repository");
    fs::create_dir_all(top.join("sub")).expect("a directory");
    git(&top, &["init", "-q"]);
    let lines: String = (0..40).map(|line| format!("line {line}\n")).collect();
    fs::write(top.join("old"), &lines).expect("a file");
    fs::write(top.join("sub/twice"), "one\n").expect("a file");
    git(&top, &["add", "."]);
    git(&top, &["commit", "-q", "-m", "base"]);
    git(&top, &["mv", "old", "sub/new"]);
    fs::write(top.join("sub/new"), lines.replace("line 7\n", "seven\n")).expect("a file");
    fs::write(top.join("sub/twice"), "two\n").expect("a file");
    git(&top, &["add", "."]);
    fs::write(top.join("sub/twice"), "three\n").expect("a file");
    fs::write(top.join("meant"), "meant\n").expect("a file");
    git(&top, &["add", "-N", "meant"]);
    fs::write(top.join("other"), "").expect("a file");
    top
}

/// Runs the same call with both programs.
fn compare(scratch: &Scratch, directory: &Path, arguments: &[&str]) {
    let only_diff = scratch.path().join("bin/git");
    let call = |mut command: Command| {
        let output = command
            .args(arguments)
            .env("PRONTO_GIT", &only_diff)
            .current_dir(directory)
            .output()
            .expect("it starts");
        assert_eq!(stderr(&output), "", "{arguments:?}");
        (output.status.code(), stdout(&output))
    };
    let (ours, expected) = (call(process(pronto_path())), call(process("git")));
    assert_eq!(ours, expected, "{arguments:?}");
}

#[test]
fn changes_are_shown_as_in_git() {
    let scratch = Scratch::new();
    scratch.script("bin", "git", ONLY_DIFF);
    let top = repository(&scratch);
    let calls: [&[&str]; 16] = [
        &["status", "-v"],
        &["status", "-vv"],
        &["status", "-v", "-v", "--no-verbose"],
        &["status", "-v", "-s"],
        &["status", "-v", "--porcelain=v2"],
        &["status", "-v", "--no-renames"],
        &["status", "-v", "-M100%"],
        &["status", "-vv", "--find-renames=30", "--show-stash"],
        &["status", "-vv", ":/sub/twice"],
        &["status", "-v", ":/sub/twice"],
        &["status", "-vv", "nothing"],
        &["-c", "diff.noPrefix=true", "status", "-vv"],
        &["-c", "diff.mnemonicPrefix=true", "status", "-v"],
        &["-c", "color.ui=always", "status", "-vv"],
        &["-c", "status.renames=copies", "status", "-v"],
        &["-c", "status.displayCommentPrefix=true", "status", "-vv"],
    ];
    for call in calls {
        compare(&scratch, &top, call);
        compare(&scratch, &top.join("sub"), call);
    }
    git(&top, &["reset", "-q", "--hard"]);
    for call in &calls[..2] {
        compare(&scratch, &top, call);
    }
    fs::write(top.join("sub/twice"), "four\n").expect("a file");
    for call in &calls[..2] {
        compare(&scratch, &top, call);
    }
}

#[test]
fn before_the_first_commit_everything_is_new() {
    let scratch = Scratch::new();
    scratch.script("bin", "git", ONLY_DIFF);
    let top = scratch.path().join("repository");
    fs::create_dir(&top).expect("a directory");
    git(&top, &["init", "-q"]);
    compare(&scratch, &top, &["status", "-v"]);
    fs::write(top.join("file"), "one\n").expect("a file");
    git(&top, &["add", "file"]);
    compare(&scratch, &top, &["status", "-v"]);
    compare(&scratch, &top, &["status", "-vv"]);
}

#[test]
fn conflicts_are_named() {
    let scratch = Scratch::new();
    scratch.script("bin", "git", ONLY_DIFF);
    let top = repository(&scratch);
    git(&top, &["reset", "-q", "--hard"]);
    for (branch, text) in [("left", "left\n"), ("right", "right\n")] {
        git(&top, &["checkout", "-q", "-B", branch, "HEAD"]);
        fs::write(top.join("sub/twice"), text).expect("a file");
        git(&top, &["commit", "-q", "-a", "-m", branch]);
        git(&top, &["checkout", "-q", "--detach", "HEAD~1"]);
    }
    git(&top, &["checkout", "-q", "left"]);
    let merge = process("git")
        .args(["merge", "-q", "right"])
        .env("GIT_COMMITTER_NAME", "a")
        .env("GIT_COMMITTER_EMAIL", "a@x")
        .current_dir(&top)
        .output()
        .expect("git starts");
    assert!(!merge.status.success());
    compare(&scratch, &top, &["status", "-v"]);
}
