//! The trees of a first commit with many directories, which are stored in a pack and not as loose
//! objects.

use std::path::Path;

use crate::support::{Scratch, process, pronto, run, stderr, stdout};

/// Writes a directory with one file for each number.
fn make(top: &Path, numbers: std::ops::Range<usize>) {
    for number in numbers {
        let directory = top.join(format!("{:02}/{number:03}", number / 10));
        std::fs::create_dir_all(&directory).expect("directories");
        std::fs::write(directory.join("f"), format!("{number}\n")).expect("a file");
    }
}

fn pronto_in(top: &Path, arguments: &[&str]) -> String {
    let who = [
        "-c",
        "user.name=a",
        "-c",
        "user.email=a@example.com",
        "-c",
        "maintenance.auto=false",
    ];
    let mut command = pronto();
    let output = command.current_dir(top).args(who).args(arguments).output();
    let output = output.expect("it runs");
    assert!(
        output.status.success(),
        "{arguments:?}: {}",
        stderr(&output)
    );
    stdout(&output)
}

/// Returns the numbers of loose objects and of packs.
fn counted(top: &Path) -> (usize, usize) {
    let said = stdout(&run("git", top, &["count-objects", "-v"]));
    let number = |key: &str| {
        let line = said.lines().find_map(|line| line.strip_prefix(key));
        line.expect("git says it").parse().expect("a number")
    };
    (number("count: "), number("packs: "))
}

fn assert_sound(top: &Path) {
    let mut fsck = process("git");
    fsck.current_dir(top).args(["fsck", "--strict"]);
    let fsck = fsck.output().expect("git runs");
    assert!(fsck.status.success(), "{}", stderr(&fsck));
}

#[test]
fn many_trees_are_written_as_a_pack() {
    let scratch = Scratch::new();
    let top = scratch.path();
    pronto_in(top, &["init", "-q", "-b", "main"]);
    make(top, 0..150);
    // The blobs are in a pack already.
    pronto_in(top, &["add", "."]);
    assert_eq!(counted(top), (0, 1));
    pronto_in(top, &["commit", "-q", "-m", "many"]);
    assert_eq!(counted(top), (1, 2), "only the commit is loose");

    // A few more objects are loose: two blobs, four trees and a commit.
    make(top, 150..152);
    pronto_in(top, &["add", "."]);
    pronto_in(top, &["commit", "-q", "-m", "few"]);
    assert_eq!(counted(top), (1 + 2 + 4 + 1, 2));

    // Existing objects are not written again.
    std::fs::remove_file(top.join(".git/index")).expect("it is there");
    pronto_in(top, &["add", "."]);
    let tree = pronto_in(top, &["write-tree"]);
    let expected = stdout(&run("git", top, &["rev-parse", "HEAD^{tree}"]));
    assert_eq!(tree, expected);
    assert_eq!(counted(top), (8, 2));

    assert_sound(top);
    let status = run("git", top, &["status", "--porcelain"]);
    assert_eq!(stdout(&status), "");
}

#[test]
fn a_first_commit_packs_fewer_trees() {
    let scratch = Scratch::new();
    let top = scratch.path();
    pronto_in(top, &["init", "-q", "-b", "main"]);
    make(top, 0..20);
    pronto_in(top, &["add", "."]);
    assert_eq!(counted(top), (20, 0));
    pronto_in(top, &["commit", "-q", "-m", "first"]);
    assert_eq!(counted(top), (20 + 1, 1));
    make(top, 20..40);
    pronto_in(top, &["add", "."]);
    pronto_in(top, &["commit", "-q", "-m", "second"]);
    // Twenty files, as many directories, two above them and the top; the commit.
    assert_eq!(counted(top), (21 + 20 + 20 + 2 + 1 + 1, 1));
    assert_sound(top);
}
