//! `worktree add --carry`: a new worktree receives ignored files of the current worktree.

use std::os::unix::fs::{MetadataExt, PermissionsExt, symlink};
use std::path::{Path, PathBuf};
use std::process::Output;
use std::time::{Duration, SystemTime};

use rustix::fs::{CWD, FileType, Mode, mknodat};

use test_support::{Need, need};

use crate::support::{Scratch, git, pronto_path, run, stderr};

fn write(path: &Path, content: &str) {
    let parent = path.parent().expect("it has one");
    std::fs::create_dir_all(parent).expect("a directory");
    std::fs::write(path, content).expect("a file");
}

fn read(path: &Path) -> String {
    std::fs::read_to_string(path).expect("it is there")
}

fn repository(place: &Path) -> PathBuf {
    let work = place.join("work");
    std::fs::create_dir(&work).expect("a directory");
    git(&work, &["init", "-q", "-b", "main"]);
    write(
        &work.join(".gitignore"),
        "node_modules/\n*.o\ndist/\nplaces/\n",
    );
    write(&work.join("packages/a/file"), "tracked");
    git(&work, &["add", "."]);
    git(&work, &["commit", "-qm", "one"]);
    work
}

fn add(work: &Path, arguments: &[&str]) -> Output {
    let command = ["worktree", "add", "-q"];
    run(pronto_path(), work, &[&command[..], arguments].concat())
}

/// Adds the worktree `new` beside `work`, and returns the output.
fn added(work: &Path, arguments: &[&str]) -> (PathBuf, String) {
    let arguments = [&["--carry-reflink=auto"], arguments, &["../new"]].concat();
    let made = add(work, &arguments);
    assert!(made.status.success(), "{}", stderr(&made));
    (work.with_file_name("new"), stderr(&made))
}

fn set_time(path: &Path, nanoseconds: u64) {
    let time = SystemTime::UNIX_EPOCH + Duration::from_nanos(nanoseconds);
    let file = std::fs::File::open(path).expect("it is there");
    file.set_modified(time).expect("it has a time");
}

/// Mode and time.
fn stat_data(path: &Path) -> (u32, i64, i64) {
    let metadata = path.symlink_metadata().expect("it is there");
    (metadata.mode(), metadata.mtime(), metadata.mtime_nsec())
}

#[test]
fn modes_and_times_are_kept() {
    let scratch = Scratch::new();
    let work = repository(scratch.path());
    let modules = work.join("node_modules");
    write(&modules.join("a/bin/run"), "#!/bin/sh\n");
    write(&modules.join("a/secret"), "secret");
    write(&modules.join("a/none"), "");
    write(&work.join("packages/a/node_modules/b/index.js"), "b");
    write(&work.join("outside/file"), "outside");
    std::fs::create_dir(modules.join("empty")).expect("a directory");
    symlink("../../../outside", modules.join("a/link")).expect("a link");
    let mode = |path: &str, mode| {
        let permissions = std::fs::Permissions::from_mode(mode);
        std::fs::set_permissions(modules.join(path), permissions).expect("it is there");
    };
    mode("a/bin/run", 0o755);
    mode("a/secret", 0o600);
    mode("empty", 0o700);
    mode("a/bin", 0o555);
    for (at, path) in (0..).zip(["a/bin/run", "a/secret", "a/none", "a/bin", "empty", "a"]) {
        set_time(&modules.join(path), 1_600_000_000_123_456_789 + at);
    }
    let (new, said) = added(&work, &["--carry", "node_modules"]);
    assert_eq!(said, "");
    for path in [
        "node_modules",
        "node_modules/a",
        "node_modules/a/bin",
        "node_modules/a/bin/run",
        "node_modules/a/secret",
        "node_modules/a/none",
        "node_modules/a/link",
        "node_modules/empty",
        "packages/a/node_modules/b/index.js",
    ] {
        assert_eq!(
            stat_data(&new.join(path)),
            stat_data(&work.join(path)),
            "{path}"
        );
    }
    assert_eq!(read(&new.join("node_modules/a/secret")), "secret");
    let target = std::fs::read_link(new.join("node_modules/a/link"));
    assert_eq!(target.expect("a link"), Path::new("../../../outside"));
    assert!(!new.join("outside").exists());
    assert_eq!(git(&new, &["status", "--porcelain"]), "");
    // The files are independent of each other.
    for (one, other) in [(&work, &new), (&new, &work)] {
        let path = "packages/a/node_modules/b/index.js";
        let before = read(&other.join(path));
        std::fs::write(one.join(path), "changed").expect("a file");
        assert_eq!(read(&other.join(path)), before);
        std::fs::write(other.join(path), "b").expect("a file");
        std::fs::write(one.join(path), "b").expect("a file");
    }
}

#[test]
fn only_ignored_and_named_files_are_carried() {
    let scratch = Scratch::new();
    let work = repository(scratch.path());
    write(&work.join("dist/kept.o"), "tracked");
    git(&work, &["add", "-f", "dist/kept.o"]);
    git(&work, &["commit", "-qm", "two"]);
    write(&work.join("dist/kept.o"), "changed");
    write(&work.join("dist/other"), "other");
    write(&work.join("x.o"), "x");
    write(&work.join("notes"), "untracked");
    write(&work.join("untracked/deep/y.o"), "y");
    write(&work.join("node_modules/c/z.o"), "z");
    // A nested repository is skipped unless it is below a carried path.
    git(scratch.path(), &["init", "-q", "work/nested"]);
    write(&work.join("nested/n.o"), "n");
    mknodat(CWD, work.join("dist/pipe"), FileType::Fifo, Mode::RWXU, 0).expect("a pipe");
    let patterns = [
        "--carry=*",
        "--carry=!node_modules",
        "--carry=!node_modules/**",
    ];
    let (new, said) = added(&work, &patterns);
    assert_eq!(
        said,
        "warning: not carried: 'dist/pipe': it is not a file, directory or symbolic link\n"
    );
    assert_eq!(read(&new.join("dist/kept.o")), "tracked");
    assert_eq!(read(&new.join("dist/other")), "other");
    assert_eq!(read(&new.join("x.o")), "x");
    assert_eq!(read(&new.join("untracked/deep/y.o")), "y");
    for path in ["notes", "nested", "node_modules/c", "dist/pipe"] {
        assert!(!new.join(path).exists(), "{path}");
    }
}

#[test]
fn files_of_the_commit_are_not_replaced() {
    let scratch = Scratch::new();
    let work = repository(scratch.path());
    git(&work, &["checkout", "-qb", "other"]);
    write(&work.join("dist/app"), "tracked");
    write(&work.join("dist/way/file"), "tracked");
    symlink("../../work", work.join("dist/link")).expect("a link");
    git(&work, &["add", "-f", "dist"]);
    git(&work, &["commit", "-qm", "two"]);
    git(&work, &["checkout", "-q", "main"]);
    write(&work.join("dist/app"), "built");
    write(&work.join("dist/way"), "a file");
    write(&work.join("dist/link/through"), "a directory");
    write(&work.join("dist/more"), "more");
    let made = add(
        &work,
        &["--carry=dist", "--carry-reflink=auto", "../new", "other"],
    );
    assert!(made.status.success(), "{}", stderr(&made));
    let lines: Vec<String> = ["dist/app", "dist/link", "dist/way"]
        .map(|path| {
            format!("warning: not carried: '{path}': the new worktree already has a file there\n")
        })
        .into();
    assert_eq!(stderr(&made), lines.concat());
    let new = scratch.path().join("new");
    assert_eq!(git(&new, &["status", "--porcelain"]), "");
    assert_eq!(read(&new.join("dist/app")), "tracked");
    assert_eq!(read(&new.join("dist/more")), "more");
    assert!(!work.join("through").exists());
}

#[test]
fn worktrees_are_not_carried() {
    let scratch = Scratch::new();
    let work = repository(scratch.path());
    git(&work, &["worktree", "add", "-q", "places/old"]);
    write(&work.join("places/data"), "data");
    let carry = ["--carry=places", "--carry-reflink=auto", "places/new"];
    let made = add(&work, &carry);
    assert!(made.status.success(), "{}", stderr(&made));
    assert_eq!(
        stderr(&made),
        "warning: not carried: 'places/old': it is another worktree or a submodule\n"
    );
    let new = work.join("places/new/places");
    assert_eq!(read(&new.join("data")), "data");
    assert!(!new.join("new").exists() && !new.join("old").exists());
}

#[test]
fn configured_patterns_are_carried() {
    let scratch = Scratch::new();
    let work = repository(scratch.path());
    git(&work, &["config", "worktree.carry", "node_modules/"]);
    git(&work, &["config", "--add", "worktree.carry", "/x.o"]);
    git(&work, &["config", "worktree.carryReflink", "never"]);
    for path in ["node_modules/a", "x.o", "y.o", "dist/x.o"] {
        write(&work.join(path), path);
    }
    let there = |new: &str| {
        let new = scratch.path().join(new);
        ["node_modules/a", "x.o", "y.o", "dist/x.o"].map(|path| new.join(path).exists())
    };
    for (arguments, expected) in [
        (&["../1"][..], [true, true, false, false]),
        (&["--carry=y.o", "../2"], [true, true, true, false]),
        (&["--carry=!x.o", "../3"], [true, false, false, false]),
        (&["--carry=", "../4"], [false; 4]),
        (
            &["--carry=", "--carry=*.o", "../5"],
            [false, true, true, true],
        ),
        (&["--no-checkout", "../6"], [false; 4]),
    ] {
        let made = add(&work, arguments);
        assert!(made.status.success(), "{arguments:?}: {}", stderr(&made));
        let new = arguments[arguments.len() - 1];
        assert_eq!(there(&new[3..]), expected, "{arguments:?}");
    }
    for (arguments, message) in [
        (
            &["--carry-reflink=often", "../7"][..],
            "fatal: bad value 'often' for '--carry-reflink': use 'auto', 'always' or 'never'\n",
        ),
        (
            &["--carry=x", "--no-checkout", "../7"],
            "fatal: options '--carry' and '--no-checkout' cannot be used together\n",
        ),
    ] {
        assert_eq!(stderr(&add(&work, arguments)), message);
    }
    assert!(!scratch.path().join("7").exists());
}

#[test]
fn nothing_is_created_if_blocks_cannot_be_shared() {
    need!(Need::SharedMemory);
    let memory = tempfile::tempdir_in("/dev/shm").expect("a directory");
    let work = repository(memory.path());
    write(&work.join("dist/file"), "content");
    let refused = add(&work, &["--carry=dist", "--carry-reflink=always", "../new"]);
    assert!(!refused.status.success());
    let said = stderr(&refused);
    assert!(said.contains("--carry-reflink=auto copies them"), "{said}");
    assert!(said.contains(&work.display().to_string()), "{said}");
    assert!(!memory.path().join("new").exists());
    assert!(!work.join(".git/worktrees").exists());
    assert_eq!(git(&work, &["branch", "--list", "new"]), "");
    // To another file system, where files cannot be cloned.
    let scratch = Scratch::new();
    let here = repository(scratch.path());
    write(&here.join("dist/file"), "content");
    let place = memory.path().join("far");
    let far = place.to_string_lossy();
    let refused = add(&here, &["--carry=dist", "--carry-reflink=always", &far]);
    let said = stderr(&refused);
    assert!(said.contains("--carry-reflink=auto copies them"), "{said}");
    assert!(!place.exists());
    assert_eq!(git(&here, &["worktree", "list"]).lines().count(), 1);
    // Without the option, files are copied where blocks cannot be shared.
    let made = add(&here, &["--carry=dist", "-f", &far]);
    assert!(made.status.success(), "{}", stderr(&made));
    assert_eq!(read(&place.join("dist/file")), "content");
    let made = add(&work, &["--carry=dist", "../new"]);
    assert!(made.status.success(), "{}", stderr(&made));
    assert_eq!(read(&memory.path().join("new/dist/file")), "content");
}
