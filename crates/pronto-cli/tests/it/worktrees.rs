//! Worktrees whose creating process is killed, and worktrees without commits, which git supports
//! since 2.42.

use std::path::{Path, PathBuf};
use std::process::Output;

use crate::support::{Scratch, git, pronto_path, run, stderr, stdout};

fn pronto(directory: &Path, arguments: &[&str]) -> Output {
    run(pronto_path(), directory, arguments)
}

fn repository(scratch: &Scratch) -> PathBuf {
    let work = scratch.path().join("work");
    std::fs::create_dir(&work).expect("a directory");
    git(&work, &["init", "-q", "-b", "main"]);
    std::fs::write(work.join(".gitattributes"), "*.txt filter=deadly\n").expect("a file");
    for name in ["a.txt", "b", "c"] {
        std::fs::write(work.join(name), name).expect("a file");
    }
    git(&work, &["add", "."]);
    git(&work, &["commit", "-qm", "one"]);
    work
}

/// Returns the state that must not change when a new worktree fails.
fn essence(work: &Path) -> Vec<String> {
    vec![
        git(work, &["fsck", "--full", "--strict"]),
        git(work, &["status", "--porcelain"]),
        git(work, &["rev-parse", "HEAD", "main"]),
        git(work, &["symbolic-ref", "HEAD"]),
    ]
}

#[test]
fn worktrees_of_killed_processes_are_pruned() {
    let scratch = Scratch::new();
    let work = repository(&scratch);
    let before = essence(&work);
    // The shell of the filter kills the process that waits for it.
    git(
        &work,
        &["config", "filter.deadly.smudge", "kill -9 $PPID; cat"],
    );
    let killed = pronto(&work, &["worktree", "add", "-q", "../new"]);
    assert!(!killed.status.success(), "{}", stderr(&killed));
    assert_eq!(essence(&work), before);
    assert!(work.join(".git/worktrees/new/locked").exists());
    // Git treats it as a locked worktree and keeps it.
    git(&work, &["worktree", "prune"]);
    assert!(work.join(".git/worktrees/new").exists());
    let pruned = pronto(&work, &["worktree", "prune", "-v"]);
    assert_eq!(
        stderr(&pruned),
        "Removing worktrees/new: its creation was interrupted\n"
    );
    assert!(!work.join(".git/worktrees").exists());
    assert_eq!(essence(&work), before);
    git(&work, &["config", "--unset", "filter.deadly.smudge"]);
    std::fs::remove_dir_all(scratch.path().join("new")).expect("it was made");
    let again = pronto(&work, &["worktree", "add", "-q", "../new"]);
    assert!(again.status.success(), "{}", stderr(&again));
    assert_eq!(
        git(&scratch.path().join("new"), &["status", "--porcelain"]),
        ""
    );
}

#[test]
fn a_worktree_under_construction_is_not_pruned() {
    let scratch = Scratch::new();
    let work = repository(&scratch);
    let prune = format!(
        "(cd '{}' && unset GIT_DIR GIT_WORK_TREE && '{}' worktree prune -v && git worktree prune -v) >&2; cat",
        work.display(),
        pronto_path().display()
    );
    git(&work, &["config", "filter.deadly.smudge", &prune]);
    let made = pronto(&work, &["worktree", "add", "-q", "../new"]);
    assert_eq!(stderr(&made), "");
    assert!(made.status.success());
    assert!(!work.join(".git/worktrees/new/locked").exists());
    assert!(work.join(".git/worktrees/new/gitdir").exists());
}

#[test]
fn a_failed_worktree_leaves_nothing() {
    let scratch = Scratch::new();
    let work = repository(&scratch);
    git(&work, &["config", "filter.deadly.smudge", "false"]);
    git(&work, &["config", "filter.deadly.required", "true"]);
    let failed = pronto(&work, &["worktree", "add", "../new"]);
    assert_eq!(failed.status.code(), Some(128));
    assert!(!scratch.path().join("new").exists());
    let left = std::fs::read_dir(work.join(".git/worktrees"));
    assert_eq!(left.map(Iterator::count).unwrap_or(0), 0);
}

#[test]
fn a_worktree_without_commits() {
    let scratch = Scratch::new();
    let work = repository(&scratch);
    let made = pronto(&work, &["worktree", "add", "--orphan", "../new"]);
    assert_eq!(stderr(&made), "Preparing worktree (new branch 'new')\n");
    assert_eq!(stdout(&made), "");
    let new = scratch.path().join("new");
    assert_eq!(git(&new, &["symbolic-ref", "HEAD"]), "refs/heads/new");
    assert_eq!(git(&new, &["status", "--porcelain"]), "");
    let named = pronto(&work, &["worktree", "add", "--orphan", "-b", "x", "../y"]);
    assert!(named.status.success(), "{}", stderr(&named));
    for (arguments, message) in [
        (
            &["--orphan", "-b", "main", "../z"][..],
            "fatal: a branch named 'main' already exists\n",
        ),
        (
            &["--orphan", "--detach", "../z"],
            "fatal: options '--orphan' and '--detach' cannot be used together\n",
        ),
        (
            &["--orphan", "../z", "main"],
            "fatal: option '--orphan' and commit-ish cannot be used together\n",
        ),
    ] {
        let refused = pronto(&work, &[&["worktree", "add"], arguments].concat());
        assert_eq!(stderr(&refused), message);
        assert_eq!(refused.status.code(), Some(128));
    }
    assert!(!scratch.path().join("z").exists());
}
