//! What status remembers in the index for the next one.

use crate::support::Sandbox;
use pronto::status::Options;
use pronto_hash::Kind;
use pronto_index::Index;
use pronto_io::interrupt::Interrupt;
use std::path::Path;

fn index(sandbox: &Sandbox) -> Index {
    Index::open(&sandbox.root.join("a/.git/index"), Kind::Sha1).expect("it is sound")
}

fn write(sandbox: &Sandbox, path: &str, content: &str) {
    let path = sandbox.root.join("a").join(path);
    std::fs::create_dir_all(path.parent().expect("it is below")).expect("a directory");
    std::fs::write(path, content).expect("a file");
}

/// Files in directories, committed; without cached trees.
fn without_trees(sandbox: &Sandbox) {
    sandbox.repository("a");
    for path in ["f", "d/f", "d/e/f", "e/f", "x/y/z/f"] {
        write(sandbox, path, path);
    }
    sandbox.git("a", &["add", "."]);
    sandbox.git("a", &["commit", "-qm", "two"]);
    // `update-index --index-info` writes none.
    let listing = sandbox.git("a", &["ls-files", "-s"]);
    std::fs::remove_file(sandbox.root.join("a/.git/index")).expect("it is there");
    for line in listing.lines() {
        let (left, path) = line.split_once('\t').expect("a tab");
        let mut left = left.split(' ');
        let (mode, id) = (left.next().expect("a mode"), left.next().expect("an id"));
        let info = format!("{mode},{id},{path}");
        sandbox.git("a", &["update-index", "--add", "--cacheinfo", &info]);
    }
}

fn status(sandbox: &Sandbox, options: &Options) -> usize {
    let repository = sandbox.open("a");
    let report = repository.status(options, &Interrupt::new());
    report.expect("nothing is broken").entries.len()
}

#[test]
fn missing_and_stale_cached_trees_are_repaired() {
    let sandbox = Sandbox::new();
    without_trees(&sandbox);
    let known = || {
        index(&sandbox)
            .cached_tree()
            .map(|trees| trees.known_count())
    };
    assert!(known().unwrap_or(0) < 7);
    let quiet = Options {
        write_back: false,
        ..Options::default()
    };
    status(&sandbox, &quiet);
    assert!(known().unwrap_or(0) < 7);
    status(&sandbox, &Options::default());
    assert_eq!(known(), Some(7));
    let root = sandbox.git("a", &["rev-parse", "HEAD^{tree}"]);
    let trees = index(&sandbox).cached_tree().expect("it was written");
    assert_eq!(trees.root().id().map(|id| format!("{id}")), Some(root));
    // Git writes the same trees from it.
    sandbox.git("a", &["fsck", "--strict"]);
    let tree = sandbox.git("a", &["write-tree"]);
    assert_eq!(tree, sandbox.git("a", &["rev-parse", "HEAD^{tree}"]));

    // What differs is not known; what git has forgotten and does not differ is.
    write(&sandbox, "d/f", "other");
    sandbox.git("a", &["add", "d/f"]);
    assert_eq!(known(), Some(5));
    status(&sandbox, &Options::default());
    assert_eq!(known(), Some(5));
    sandbox.git("a", &["reset", "-q", "HEAD", "d/f"]);
    status(&sandbox, &Options::default());
    assert_eq!(known(), Some(7));
    write(&sandbox, "x/y/new", "announced");
    sandbox.git("a", &["add", "-N", "x/y/new"]);
    status(&sandbox, &Options::default());
    assert_eq!(known(), Some(4));
    let tree = sandbox.git("a", &["write-tree"]);
    assert_eq!(tree, sandbox.git("a", &["rev-parse", "HEAD^{tree}"]));
    sandbox.git("a", &["fsck", "--strict"]);
}

#[test]
fn nobody_is_disturbed_by_a_repair() {
    let sandbox = Sandbox::new();
    without_trees(&sandbox);
    let path = sandbox.root.join("a/.git/index");
    let lock = sandbox.root.join("a/.git/index.lock");
    let before = std::fs::read(&path).expect("it is there");
    std::fs::write(&lock, "").expect("it is writable");
    status(&sandbox, &Options::default());
    assert_eq!(std::fs::read(&path).expect("it is there"), before);
    std::fs::remove_file(&lock).expect("it is still there");
    status(&sandbox, &Options::default());
    assert_ne!(std::fs::read(&path).expect("it is there"), before);
    let left = std::fs::read_dir(sandbox.root.join("a/.git")).expect("it is there");
    let left: Vec<_> = left
        .map(|entry| entry.expect("an entry").file_name())
        .filter(|name| Path::new(name).to_string_lossy().starts_with("index"))
        .collect();
    assert_eq!(left, ["index"]);
}
