//! Tests the plumbing of the index and of files through the public API. Stock git checks each
//! result.

use bstr::BStr;
use gix_object::Kind as ObjectKind;
use pronto::Watch;
use pronto::read_tree::{Mode, ReadTrees};
use pronto::update_index::{AllowedChanges, Event, IndexAction, UpdateStop};
use pronto::{checkout_index, hash_object, merge, read_tree, update_index};

use crate::support::Sandbox;

#[test]
fn contents_are_hashed_and_stored() {
    let sandbox = Sandbox::with_files();
    sandbox.write("content", "text\r\n");
    let repository = sandbox.open("r");
    let hasher = hash_object::content_hasher(&repository, ObjectKind::Blob, false);
    let id = hasher
        .expect("the configuration is valid")
        .content(b"text\r\n", None)
        .expect("it can be hashed")
        .to_string();
    assert_eq!(id, sandbox.git("r", &["hash-object", "content"]));
    assert_eq!(sandbox.git_or_nothing("r", &["cat-file", "-t", &id]), "");

    sandbox.write(".gitattributes", "*.txt text\n");
    let repository = sandbox.open("r");
    let mut hasher = hash_object::content_hasher(&repository, ObjectKind::Blob, true)
        .expect("the configuration is valid");
    let file = std::fs::File::open(sandbox.root.join("r/content")).expect("it is there");
    let stored = hasher.file(&file, Some(BStr::new("x.txt")));
    let stored = stored.expect("it can be stored").to_string();
    assert_ne!(stored, id);
    assert_eq!(sandbox.git("r", &["cat-file", "-s", &stored]), "5");
}

#[test]
fn entries_are_added_changed_and_removed() {
    let sandbox = Sandbox::with_files();
    sandbox.write("new", "new");
    let allowed = AllowedChanges {
        add: true,
        ..AllowedChanges::default()
    };
    let mut options = update_index::Options::default();
    options.actions = vec![
        IndexAction::Update("new".into(), allowed),
        IndexAction::Executable("a".into(), true),
        IndexAction::Remove("b".into()),
    ];
    let repository = sandbox.open("r");
    update_index::update_index(&repository, &options, &Watch::none())
        .expect("the index can be written");
    assert_eq!(
        sandbox.git("r", &["diff", "--cached", "--name-status"]),
        "M\ta\nD\tb\nA\tnew"
    );
    let entry = sandbox.git("r", &["ls-files", "-s", "a"]);
    assert!(entry.starts_with("100755 "), "{entry}");
}

#[test]
fn a_path_that_may_not_be_added_changes_nothing() {
    let sandbox = Sandbox::with_files();
    sandbox.write("new", "new");
    let mut options = update_index::Options::default();
    options.actions = vec![IndexAction::Update("new".into(), AllowedChanges::default())];
    let repository = sandbox.open("r");
    let events = update_index::update_index(&repository, &options, &Watch::none());
    let failure = events.expect_err("a refused path ends the update");
    assert!(matches!(&failure.error, UpdateStop::NotUpdated(path) if path == "new"));
    let events = failure.report.expect("it was refused on the way");
    assert!(matches!(events[..], [Event::Refused(_)]));
    assert_eq!(sandbox.git("r", &["status", "--porcelain"]), "?? new");
}

fn merging() -> read_tree::Options {
    let mut options = read_tree::Options::default();
    options.mode = Mode::Merge;
    options.trivial = false;
    options.aggressive = false;
    options.update = true;
    options.index_only = false;
    options.dry_run = false;
    options.ignore_sparse = false;
    options.output = None;
    options
}

#[test]
fn trees_are_read_into_index_and_files() {
    let sandbox = Sandbox::with_files();
    let first = sandbox.git("r", &["rev-parse", "HEAD^{tree}"]);
    sandbox.write("a", "changed");
    sandbox.write("e", "added");
    sandbox.git("r", &["add", "."]);
    sandbox.git("r", &["commit", "-q", "-m", "two"]);
    let repository = sandbox.open("r");
    let trees = ["HEAD", "HEAD~1"].map(|name| repository.resolve_tree(name).expect("a tree"));
    let read = |options: &read_tree::Options| {
        let watch = Watch::none();
        let done = read_tree::read_trees(&repository, &trees, options, &watch);
        done.expect("the trees can be read")
    };
    // A local change stops it.
    sandbox.write("e", "not committed");
    assert!(matches!(read(&merging()), ReadTrees::Refused(_)));
    assert_eq!(sandbox.read("e").as_deref(), Some("not committed"));
    sandbox.git("r", &["checkout", "-q", "e"]);
    let mut dry = merging();
    dry.dry_run = true;
    assert!(matches!(read(&dry), ReadTrees::Done(_)));
    assert_eq!(sandbox.read("a").as_deref(), Some("changed"));
    assert!(matches!(read(&merging()), ReadTrees::Done(_)));
    assert_eq!(sandbox.git("r", &["write-tree"]), first);
    assert_eq!(sandbox.read("a").as_deref(), Some("a"));
    assert_eq!(sandbox.read("e"), None);
}

#[test]
fn files_are_copied_from_the_index() {
    let sandbox = Sandbox::with_files();
    sandbox.write("a", "changed");
    std::fs::remove_file(sandbox.root.join("r/d/c")).expect("it is there");
    let repository = sandbox.open("r");
    let copy = |force| {
        let mut options = checkout_index::Options::default();
        options.all_below = Some("".into());
        options.force = force;
        options.update_index = true;
        let watch = Watch::none();
        let report = checkout_index::checkout_index(&repository, &options, &watch);
        report.expect("the index can be read")
    };
    let report = copy(false);
    assert_eq!(report.refused, ["a"]);
    assert!(report.is_incomplete());
    assert_eq!(sandbox.read("a").as_deref(), Some("changed"));
    assert_eq!(sandbox.read("d/c").as_deref(), Some("d/c"));
    assert!(!copy(true).is_incomplete());
    assert_eq!(sandbox.git("r", &["status", "--porcelain"]), "");
}

#[test]
fn texts_are_merged_as_by_git() {
    let sandbox = Sandbox::with_files();
    let base = "one\ntwo\nthree\nfour\nfive\n";
    let ours = base.replace("one", "ONE");
    for (theirs, conflicts) in [
        (base.replace("five", "FIVE"), 0),
        (base.replace("one", "eins"), 1),
    ] {
        for (name, text) in [("ours", &*ours), ("base", base), ("theirs", &*theirs)] {
            sandbox.write(name, text);
        }
        let mut options = merge::Options::default();
        options.joins_over_punctuation = true;
        options.names = ["ours", "base", "theirs"].map(|name| Some(name.into()));
        let merged = merge::merge(
            ours.as_bytes(),
            base.as_bytes(),
            theirs.as_bytes(),
            &options,
        );
        assert_eq!(merged.conflicts, conflicts);
        let expected = sandbox.git_or_nothing("r", &["merge-file", "-p", "ours", "base", "theirs"]);
        assert_eq!(String::from_utf8_lossy(&merged.text).trim_end(), expected);
    }
}
