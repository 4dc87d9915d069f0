//! `worktree add --recurse-submodules`: submodules are checked out from existing objects.

use std::os::unix::fs::MetadataExt;
use std::path::Path;

use crate::support::{self, Scratch, pronto_path, run, stderr};

fn git(directory: &Path, arguments: &[&str]) -> String {
    let local = ["-c", "protocol.file.allow=always"];
    support::git(directory, &[&local[..], arguments].concat())
}

/// A repository with one file, and with `module` as its submodule `below/NAME`.
fn repository(place: &Path, name: &str, module: Option<&str>) {
    let work = place.join(name);
    std::fs::create_dir(&work).expect("a directory");
    git(&work, &["init", "-q", "-b", "main"]);
    std::fs::write(work.join("file"), name).expect("a file");
    git(&work, &["add", "."]);
    if let Some(module) = module {
        let url = place.join(module).display().to_string();
        let path = format!("below/{module}");
        git(&work, &["submodule", "--quiet", "add", &url, &path]);
    }
    git(&work, &["commit", "-qm", name]);
}

/// `top` with a submodule that has one, cloned to `work`; the sources are gone.
fn cloned(place: &Path) {
    repository(place, "inner", None);
    repository(place, "middle", Some("inner"));
    repository(place, "top", Some("middle"));
    git(
        place,
        &["clone", "-q", "--recurse-submodules", "top", "work"],
    );
    for gone in ["inner", "middle"] {
        std::fs::remove_dir_all(place.join(gone)).expect("it was there");
    }
}

/// Git checks out the submodules.
fn pronto(directory: &Path, arguments: &[&str]) {
    let mut command = support::pronto();
    command.args(arguments).current_dir(directory);
    let output = command.output().expect("it starts");
    let said = stderr(&output);
    assert!(output.status.success(), "{arguments:?}: {said}");
}

fn check(top: &Path) {
    for (path, content) in [
        ("below/middle/file", "middle"),
        ("below/middle/below/inner/file", "inner"),
    ] {
        let found = std::fs::read_to_string(top.join(path)).expect("it is there");
        assert_eq!(found, content);
        let module = top.join(path);
        let module = module.parent().expect("a directory");
        git(module, &["fsck", "--strict"]);
        assert_eq!(git(module, &["status", "--porcelain"]), "");
        assert_eq!(git(module, &["rev-parse", "origin/main"]).len(), 40);
    }
    let states = git(top, &["submodule", "status", "--recursive"]);
    assert_eq!(states.lines().count(), 2, "{states}");
    assert!(
        states
            .lines()
            .all(|line| !line.starts_with(['-', '+', 'U'])),
        "{states}"
    );
    assert_eq!(git(top, &["status", "--porcelain"]), "");
}

#[test]
fn submodules_of_a_new_worktree_come_from_the_current_one() {
    let scratch = Scratch::new();
    let place = scratch.path();
    cloned(place);
    let work = place.join("work");
    let add = ["worktree", "add", "-q", "--recurse-submodules", "../new"];
    pronto(&work, &add);
    check(&place.join("new"));
    // One that is created from a linked worktree, by configuration.
    git(&work, &["config", "worktree.recurseSubmodules", "true"]);
    pronto(&place.join("new"), &["worktree", "add", "-q", "../second"]);
    check(&place.join("second"));
    let object = |module: &Path| {
        let blob = git(module, &["rev-parse", "HEAD:file"]);
        let directory = git(module, &["rev-parse", "--git-path", "objects"]);
        let (directory, file) = (
            module.join(directory),
            format!("{}/{}", &blob[..2], &blob[2..]),
        );
        directory.join(file).metadata().ok().map(|file| file.ino())
    };
    let objects =
        ["work", "new", "second"].map(|top| object(&place.join(top).join("below/middle")));
    assert!(
        objects.iter().all(|found| *found == objects[0]),
        "{objects:?}"
    );
    // They are independent: a commit in one does not appear in the others.
    let module = place.join("new/below/middle");
    git(&module, &["commit", "-q", "--allow-empty", "-m", "more"]);
    check(&place.join("second"));
    pronto(&work, &["worktree", "remove", "--force", "../new"]);
    check(&place.join("second"));
    let left = git(&work, &["worktree", "list"]);
    assert_eq!(left.lines().count(), 2, "{left}");
}

#[test]
fn submodules_are_left_alone_without_the_option() {
    let scratch = Scratch::new();
    let place = scratch.path();
    cloned(place);
    let work = place.join("work");
    pronto(&work, &["worktree", "add", "-q", "../new"]);
    assert!(!place.join("new/below/middle/file").exists());
    let add = [
        "worktree",
        "add",
        "--no-checkout",
        "--recurse-submodules",
        "../other",
    ];
    let output = run(pronto_path(), &work, &add);
    assert_eq!(output.status.code(), Some(128));
    assert!(stderr(&output).contains("cannot be used together"));
}
