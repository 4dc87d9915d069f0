//! Directories with few files are not opened if only tracked files matter. Status reports the same
//! as git, even if another file type has replaced a file or a directory.

use std::fs;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::Path;

use crate::support::{Scratch, pronto, run, stderr, stdout};

/// Enough for several threads.
const DIRECTORIES: usize = 800;
const FILES_OF_EACH: usize = 4;

fn directory(number: usize) -> String {
    format!("a{:02}/b{:02}/c{number}", number / 100, number / 10 % 10)
}

fn history(top: &Path) {
    run("git", top, &["init", "-q"]);
    for number in 0..DIRECTORIES {
        let at = top.join(directory(number));
        fs::create_dir_all(&at).expect("a directory");
        for file in 0..FILES_OF_EACH {
            fs::write(at.join(format!("f{file}")), "content\n").expect("a file");
        }
    }
    fs::create_dir_all(top.join("large")).expect("a directory");
    for file in 0..100 {
        fs::write(top.join(format!("large/f{file}")), "content\n").expect("a file");
    }
    run("git", top, &["add", "."]);
    run(
        "git",
        top,
        &[
            "-c",
            "user.name=a",
            "-c",
            "user.email=a@b",
            "commit",
            "-qm",
            "1",
        ],
    );
}

fn assert_same(top: &Path, what: &str) -> String {
    let asked: [&[&str]; 3] = [
        &["status", "--porcelain=v2", "-uno"],
        &["diff-files"],
        &["status", "--porcelain"],
    ];
    let mut said = String::new();
    for arguments in asked {
        let expected = run("git", top, arguments);
        let mut command = pronto();
        command.current_dir(top).args(arguments);
        let output = command.env("GIT_OPTIONAL_LOCKS", "0").output();
        let output = output.expect("it runs");
        assert_eq!(stdout(&output), stdout(&expected), "{what}: {arguments:?}");
        assert_eq!(stderr(&output), stderr(&expected), "{what}: {arguments:?}");
        said.push_str(&stdout(&output));
    }
    said
}

#[test]
fn replaced_files_and_directories_are_detected() {
    let scratch = Scratch::new();
    let top = &scratch.path().join("top");
    fs::create_dir(top).expect("a directory");
    history(top);
    assert_eq!(assert_same(top, "nothing"), "");

    let at = |number| top.join(directory(number));
    fs::write(at(5).join("f0"), "longer than before\n").expect("a file");
    fs::write(at(5).join("f1"), "CONTENT\n").expect("a file");
    fs::remove_file(at(15).join("f3")).expect("it is there");
    fs::remove_file(at(16).join("f3")).expect("it is there");
    symlink("f2", at(16).join("f3")).expect("a link");
    fs::remove_file(at(17).join("f0")).expect("it is there");
    fs::create_dir(at(17).join("f0")).expect("a directory");
    let executable = fs::Permissions::from_mode(0o755);
    fs::set_permissions(at(18).join("f0"), executable).expect("its owner may");
    assert_same(top, "files");

    fs::remove_dir_all(at(101)).expect("it is there");
    fs::remove_dir_all(at(102)).expect("it is there");
    fs::write(at(102), "a file\n").expect("a file");
    // The same files behind a symbolic link.
    fs::rename(at(103), top.join("elsewhere")).expect("renamed");
    symlink(top.join("elsewhere"), at(103)).expect("a link");
    assert_same(top, "directories");

    // Also above: the link leads out of the worktree.
    fs::rename(top.join("a03"), scratch.path().join("outside")).expect("renamed");
    symlink(scratch.path().join("outside"), top.join("a03")).expect("a link");
    fs::rename(top.join("a04/b04"), scratch.path().join("below")).expect("renamed");
    symlink("../../below", top.join("a04/b04")).expect("a link");
    let said = assert_same(top, "directories above");
    let deleted = said.lines().filter(|line| line.starts_with(" D a03/"));
    assert_eq!(deleted.count(), 100 * FILES_OF_EACH);

    fs::remove_dir_all(top.join("a05")).expect("it is there");
    fs::create_dir(at(201).join("new")).expect("a directory");
    assert_same(top, "all of it");
}
