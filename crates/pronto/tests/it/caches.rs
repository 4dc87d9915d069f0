//! Tests of the caches that status stores in the index.

use crate::support::Sandbox;
use pronto::Watch;
use pronto::status::{Options, StatusItem, Untracked};
use pronto_hash::Kind;
use pronto_index::Index;
use std::path::Path;
use std::time::{Duration, SystemTime};
use test_support::Random;

fn index(sandbox: &Sandbox) -> Index {
    Index::open(&sandbox.root.join("a/.git/index"), Kind::Sha1).expect("it is sound")
}

fn write(sandbox: &Sandbox, path: &str, content: &str) {
    let path = sandbox.root.join("a").join(path);
    std::fs::create_dir_all(path.parent().expect("it is below")).expect("a directory");
    std::fs::write(path, content).expect("a file");
}

/// Committed files in directories, without cached trees.
fn without_trees(sandbox: &Sandbox) {
    sandbox.repository("a");
    for path in ["f", "d/f", "d/e/f", "e/f", "x/y/z/f"] {
        write(sandbox, path, path);
    }
    sandbox.git("a", &["add", "."]);
    sandbox.git("a", &["commit", "-qm", "two"]);
    // `update-index --index-info` writes no cached trees.
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

/// Runs status without waiting for other processes that hold the index.
fn at_once() -> Options {
    let mut options = Options::default();
    options.settle = Duration::ZERO;
    options
}

fn status(sandbox: &Sandbox, options: &Options) -> usize {
    let repository = sandbox.open("a");
    let report = pronto::status::status(&repository, options, &Watch::none());
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
    let mut quiet = at_once();
    quiet.write_back = false;
    status(&sandbox, &quiet);
    assert!(known().unwrap_or(0) < 7);
    status(&sandbox, &at_once());
    assert_eq!(known(), Some(7));
    let root = sandbox.git("a", &["rev-parse", "HEAD^{tree}"]);
    let trees = index(&sandbox).cached_tree().expect("it was written");
    assert_eq!(trees.root().id().map(|id| format!("{id}")), Some(root));
    // git writes the same trees from it.
    sandbox.git("a", &["fsck", "--strict"]);
    let tree = sandbox.git("a", &["write-tree"]);
    assert_eq!(tree, sandbox.git("a", &["rev-parse", "HEAD^{tree}"]));

    // Trees of changed directories are not cached. Trees that git has invalidated without a
    // difference are.
    write(&sandbox, "d/f", "other");
    sandbox.git("a", &["add", "d/f"]);
    assert_eq!(known(), Some(5));
    status(&sandbox, &at_once());
    assert_eq!(known(), Some(5));
    sandbox.git("a", &["reset", "-q", "HEAD", "d/f"]);
    status(&sandbox, &at_once());
    assert_eq!(known(), Some(7));
    write(&sandbox, "x/y/new", "announced");
    sandbox.git("a", &["add", "-N", "x/y/new"]);
    status(&sandbox, &at_once());
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
    status(&sandbox, &at_once());
    assert_eq!(std::fs::read(&path).expect("it is there"), before);
    std::fs::remove_file(&lock).expect("it is still there");
    status(&sandbox, &at_once());
    assert_ne!(std::fs::read(&path).expect("it is there"), before);
    let left = std::fs::read_dir(sandbox.root.join("a/.git")).expect("it is there");
    let left: Vec<_> = left
        .map(|entry| entry.expect("an entry").file_name())
        .filter(|name| Path::new(name).to_string_lossy().starts_with("index"))
        .collect();
    assert_eq!(left, ["index"]);
}

fn random_path(random: &mut Random) -> String {
    let depth = random.below(3);
    let mut path = String::new();
    for _ in 0..depth {
        let directory = *random.one_of(&["d", "e", "d-x", "build"]);
        path.push_str(directory);
        path.push('/');
    }
    path + *random.one_of(&["f", "g", "x.o", "h"])
}

/// Sets back the times of a directory and everything below it, except for repositories.
fn age(directory: &Path) {
    let past = SystemTime::now() - Duration::from_secs(3600);
    for entry in std::fs::read_dir(directory).expect("it is there") {
        let entry = entry.expect("it lists");
        let kind = entry.file_type().expect("the system says it");
        if kind.is_dir() && entry.file_name() != ".git" {
            age(&entry.path());
        } else if kind.is_file() {
            let file = std::fs::File::open(entry.path()).expect("it is there");
            file.set_modified(past).expect("it is ours");
        }
    }
    let directory = std::fs::File::open(directory).expect("it is there");
    directory.set_modified(past).expect("it is ours");
}

/// Makes one change, if it is possible.
fn change(sandbox: &Sandbox, random: &mut Random) {
    let top = sandbox.root.join("a");
    let path = top.join(random_path(random));
    let folder = path.parent().expect("it is below").to_owned();
    match random.below(12) {
        0..4 => {
            let _ = std::fs::create_dir_all(&folder);
            let _ = std::fs::write(&path, format!("{}", random.below(1000)));
        }
        4 | 5 => drop(std::fs::remove_file(&path)),
        6 if folder != top => drop(std::fs::remove_dir_all(&folder)),
        7 if folder != top => {
            let target = top.join(*random.one_of(&["d", "moved", "e", "build"]));
            let _ = std::fs::rename(&folder, target);
        }
        8 => {
            let _ = std::fs::create_dir_all(&folder);
            let content = *random.one_of(&["*.o\n", "", "build\n", "f\n!g\n", "d/\n"]);
            let _ = std::fs::write(folder.join(".gitignore"), content);
        }
        9 => drop(sandbox.git_or_nothing("a", &["add", "-f", &random_path(random)])),
        10 => drop(sandbox.git_or_nothing("a", &["rm", "-rq", "--cached", &random_path(random)])),
        11 => {
            let content = *random.one_of(&["*.tmp\n", "h\n", ""]);
            let _ = std::fs::write(top.join(".git/info/exclude"), content);
        }
        _ => drop(std::fs::create_dir_all(&folder)),
    }
}

/// Returns changed and untracked paths without any cache.
fn truth(sandbox: &Sandbox, mode: &str) -> Vec<String> {
    let mode = format!("-u{mode}");
    let without = ["--no-optional-locks", "-c", "core.untrackedCache=false"];
    let status = ["status", "--porcelain", "-z", "--no-renames", &mode];
    let reported = sandbox.git("a", &[&without[..], &status].concat());
    reported
        .split('\0')
        .filter(|line| !line.is_empty())
        .map(|line| line[3..].to_owned())
        .collect()
}

fn reported(sandbox: &Sandbox, untracked: Untracked) -> Vec<String> {
    let mut options = at_once();
    options.untracked = untracked;
    options.renames = None;
    let report = pronto::status::status(&sandbox.open("a"), &options, &Watch::none());
    let report = report.expect("nothing is broken");
    let entries = report.entries.iter().map(|entry| entry.path.to_string());
    entries
        .chain(report.untracked.iter().map(ToString::to_string))
        .collect()
}

#[test]
fn the_untracked_cache_never_changes_an_answer() {
    let sandbox = Sandbox::new();
    sandbox.repository("a");
    write(&sandbox, "d/f", "x");
    write(&sandbox, "keep", "x");
    sandbox.git("a", &["add", "."]);
    sandbox.git("a", &["commit", "-qm", "two"]);
    sandbox.git("a", &["config", "core.untrackedCache", "true"]);
    let mut random = Random::new(11);
    for round in 0..150 {
        for _ in 0..=random.below(3) {
            change(&sandbox, &mut random);
        }
        if random.below(12) == 0 {
            // Only directories older than the index are cached.
            age(&sandbox.root.join("a"));
        }
        let (mode, name) = match random.below(3) {
            0 => (Untracked::All, "all"),
            _ => (Untracked::Normal, "normal"),
        };
        assert_eq!(
            reported(&sandbox, mode),
            truth(&sandbox, name),
            "{round} {name}"
        );
        if random.below(4) == 0 {
            sandbox.git("a", &["status"]);
        }
        assert_eq!(
            reported(&sandbox, mode),
            truth(&sandbox, name),
            "{round} again"
        );
    }
    assert!(index(&sandbox).untracked_cache().is_some());
}

#[test]
fn git_goes_by_the_untracked_cache_that_status_wrote() {
    let sandbox = Sandbox::new();
    sandbox.repository("a");
    for path in [".gitignore", "d/.gitignore", "d/e/f", "g/h/i"] {
        write(&sandbox, path, "*.o\n");
    }
    sandbox.git("a", &["add", "."]);
    sandbox.git("a", &["commit", "-qm", "two"]);
    for path in ["u/v/w", "d/new", "d/x.o", "g/j/k.o", "g/h/.gitignore"] {
        write(&sandbox, path, "x");
    }
    std::fs::create_dir(sandbox.root.join("a/hollow")).expect("a directory");
    sandbox.git("a", &["init", "-q", "nested"]);
    sandbox.git("a", &["config", "core.untrackedCache", "true"]);
    age(&sandbox.root.join("a"));
    assert_eq!(
        reported(&sandbox, Untracked::Normal),
        truth(&sandbox, "normal")
    );
    let counts = |sandbox: &Sandbox| {
        let log = sandbox.root.join("log");
        let variable = ["trace2.perfTarget=", &log.to_string_lossy()].concat();
        // Only global configuration counts for traces.
        let (_, path) = variable.split_once('=').expect("it was put there");
        sandbox.git("", &["config", "--global", "trace2.perfTarget", path]);
        sandbox.git("a", &["status"]);
        sandbox.git("", &["config", "--global", "--unset", "trace2.perfTarget"]);
        let text = std::fs::read_to_string(&log).expect("git wrote it");
        std::fs::remove_file(&log).expect("it is there");
        [
            "node-creation",
            "gitignore-invalidation",
            "directory-invalidation",
            "opendir",
        ]
        .map(|key| {
            text.split(&format!("..{key}:")).nth(1).map(|rest| {
                rest.split_whitespace()
                    .next()
                    .unwrap_or_default()
                    .to_owned()
            })
        })
        .map(|count| count.unwrap_or_else(|| text.clone()))
    };
    assert_eq!(counts(&sandbox), ["0", "0", "0", "0"]);
    // And the reverse: directories that git has read are not read again.
    sandbox.git("a", &["update-index", "--no-untracked-cache"]);
    sandbox.git("a", &["update-index", "--force-untracked-cache"]);
    sandbox.git("a", &["status"]);
    let before = std::fs::read(sandbox.root.join("a/.git/index")).expect("it is there");
    assert_eq!(
        reported(&sandbox, Untracked::Normal),
        truth(&sandbox, "normal")
    );
    let after = std::fs::read(sandbox.root.join("a/.git/index")).expect("it is there");
    assert_eq!(before, after);
}

#[test]
fn status_comes_in_pieces_and_in_time() {
    let sandbox = Sandbox::new();
    without_trees(&sandbox);
    write(&sandbox, "d/f", "changed");
    write(&sandbox, "new/file", "x");
    std::fs::remove_file(sandbox.root.join("a/x/y/z/f")).expect("it is there");
    let repository = std::sync::Arc::new(sandbox.open("a"));
    // Twice, because it may stay open.
    for _ in 0..2 {
        let items = pronto::status::items(&repository, Options::default(), None);
        let items: Result<Vec<StatusItem>, _> = items.expect("it starts").collect();
        let mut items = items.expect("nothing fails");
        let Some(StatusItem::Complete(report)) = items.pop() else {
            panic!("the report comes last");
        };
        let mut seen: Vec<String> = items
            .iter()
            .filter_map(StatusItem::path)
            .map(ToString::to_string)
            .collect();
        seen.sort();
        assert_eq!(seen, ["d/f", "new/", "x/y/z/f"]);
        assert_eq!(report.entries.len() + report.untracked.len(), 3);
    }
    let none = Some(Duration::ZERO);
    let items = pronto::status::items(&repository, Options::default(), none);
    let last = items.expect("it starts").last().expect("there is one");
    assert!(matches!(
        last.expect("it does not fail"),
        StatusItem::OutOfTime | StatusItem::Complete(_)
    ));
    // The end of the walk is not needed.
    let mut items =
        pronto::status::items(&repository, Options::default(), None).expect("it starts");
    assert!(items.next().is_some());
    items.interrupt().trigger();
}
