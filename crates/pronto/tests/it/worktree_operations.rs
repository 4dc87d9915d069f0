//! Tests the operations on index and files through the public API. Stock git checks each result.

use bstr::{BStr, BString};
use pronto::attributes::State;
use pronto::diff::{Against, Depth};
use pronto::reset::Mode;
use pronto::sparse_checkout::sparse::Definition;
use pronto::status::Divergence;
use pronto::switch::NewBranch;
use pronto::write_tree::WrittenTree;
use pronto::{ErrorKind, Repository};
use pronto::{
    add, attributes, checkout_paths, clean, commit, diff, refresh, reset, status, switch,
};
use pronto_io::interrupt::Interrupt;

use crate::support::Sandbox;

/// A repository with the files `a`, `b` and `d/c` in one commit.
fn sandbox() -> Sandbox {
    let sandbox = Sandbox::new();
    sandbox.git("", &["init", "-q", "-b", "main", "r"]);
    sandbox.git("r", &["config", "user.name", "A U Thor"]);
    sandbox.git("r", &["config", "user.email", "author@example.com"]);
    for path in ["a", "b", "d/c"] {
        write(&sandbox, path, path);
    }
    sandbox.git("r", &["add", "."]);
    sandbox.git("r", &["commit", "-q", "-m", "one"]);
    sandbox
}

fn write(sandbox: &Sandbox, path: &str, content: &str) {
    let path = sandbox.root.join("r").join(path);
    std::fs::create_dir_all(path.parent().expect("it is below")).expect("a directory");
    std::fs::write(path, content).expect("a file");
}

fn read(sandbox: &Sandbox, path: &str) -> Option<String> {
    std::fs::read_to_string(sandbox.root.join("r").join(path)).ok()
}

fn add_all(repository: &Repository) {
    let options = add::Options {
        pathspec: repository.pathspec([BStr::new(".")]).expect("a pathspec"),
        ..add::Options::default()
    };
    let report = add::add(repository, &options, &Interrupt::new());
    assert!(!report.expect("it can be added").failed);
}

#[test]
fn files_are_staged_and_committed() {
    let sandbox = sandbox();
    write(&sandbox, "a", "changed");
    write(&sandbox, "new", "new");
    let repository = sandbox.open("r");
    add_all(&repository);
    assert_eq!(sandbox.git("r", &["status", "--porcelain"]), "M  a\nA  new");
    let tree = pronto::write_tree::write_tree(&repository, None, false, &Interrupt::new());
    let WrittenTree::Tree(tree) = tree.expect("it can be written") else {
        panic!("a tree is written");
    };
    assert_eq!(tree.to_string(), sandbox.git("r", &["write-tree"]));
    let options = commit::Options {
        message: "two".into(),
        ..commit::Options::default()
    };
    let repository = sandbox.open("r");
    let made = commit::commit(&repository, &options, &Interrupt::new());
    let commit::Outcome::Done(id) = made.expect("it can be committed") else {
        panic!("it has a message");
    };
    assert_eq!(id.to_string(), sandbox.git("r", &["rev-parse", "HEAD"]));
    assert_eq!(
        tree.to_string(),
        sandbox.git("r", &["rev-parse", "HEAD^{tree}"])
    );
    assert_eq!(sandbox.git("r", &["status", "--porcelain"]), "");
    sandbox.git("r", &["fsck", "--strict"]);
}

#[test]
fn a_commit_without_message_is_not_made() {
    let sandbox = sandbox();
    let before = sandbox.git("r", &["rev-parse", "HEAD"]);
    let options = commit::Options {
        allow_empty: true,
        ..commit::Options::default()
    };
    let made = commit::commit(&sandbox.open("r"), &options, &Interrupt::new());
    assert_eq!(made.expect("it is no error"), commit::Outcome::EmptyMessage);
    assert_eq!(sandbox.git("r", &["rev-parse", "HEAD"]), before);
}

#[test]
fn differences_have_their_paths() {
    let sandbox = sandbox();
    write(&sandbox, "a", "changed");
    sandbox.git("r", &["rm", "-q", "--cached", "b"]);
    let repository = sandbox.open("r");
    let (options, interrupt) = (diff::Options::default(), Interrupt::new());
    let paths = |found: pronto::Result<diff::Found>| -> Vec<String> {
        let found = found.expect("it can be compared");
        assert!(found.problems.is_empty());
        let paths = found.differences.iter();
        paths
            .map(|difference| difference.path.to_string())
            .collect()
    };
    assert_eq!(
        paths(diff::files(&repository, 2, &options, &interrupt)),
        ["a"]
    );
    let tree = repository.resolve_tree("HEAD").expect("a tree");
    let against = |against| {
        paths(diff::index(
            &repository,
            tree,
            against,
            &options,
            &interrupt,
        ))
    };
    assert_eq!(against(Against::Index), ["b"]);
    assert_eq!(against(Against::Files), ["a", "b"]);
    let depth = Depth {
        recursive: true,
        ..Depth::default()
    };
    let trees = diff::trees(&repository, (None, Some(tree)), depth, &options, &interrupt);
    assert_eq!(paths(trees), ["a", "b", "d/c"]);
}

#[test]
fn a_reset_moves_branch_index_and_files() {
    let sandbox = sandbox();
    let first = sandbox.git("r", &["rev-parse", "HEAD"]);
    write(&sandbox, "a", "changed");
    sandbox.git("r", &["commit", "-qam", "two"]);
    let second = sandbox.git("r", &["rev-parse", "HEAD"]);
    let repository = sandbox.open("r");
    let to = reset::target(&repository, "HEAD~1".into(), false);
    let to = to.expect("a commit");
    for (mode, content, seen) in [
        (Mode::Soft, "changed", "M  a"),
        (Mode::Mixed, "changed", "M a"),
        (Mode::Hard, "a", ""),
    ] {
        sandbox.git("r", &["reset", "-q", "--hard", &second]);
        let options = reset::Options {
            to: to.clone(),
            mode,
            pathspec: repository.pathspec([]).expect("it matches all"),
            intent_to_add: false,
            refresh: true,
        };
        let outcome = reset::reset(&sandbox.open("r"), &options, &(), &Interrupt::new());
        let reset::Outcome::Done(report) = outcome.expect("it can be reset") else {
            panic!("nothing is lost");
        };
        assert!(report.failed.is_empty());
        assert_eq!(sandbox.git("r", &["rev-parse", "HEAD"]), first);
        assert_eq!(read(&sandbox, "a").as_deref(), Some(content));
        assert_eq!(sandbox.git("r", &["status", "--porcelain"]).trim(), seen);
    }
}

#[test]
fn a_new_branch_is_made_and_left() {
    let sandbox = sandbox();
    let repository = sandbox.open("r");
    let options = switch::Options {
        create: Some(NewBranch {
            name: "side".into(),
            ..NewBranch::default()
        }),
        ..switch::Options::default()
    };
    let outcome = switch::switch(&repository, &options, &(), &Interrupt::new());
    assert!(matches!(
        outcome.expect("it can be made"),
        switch::Outcome::Done(_)
    ));
    assert_eq!(
        sandbox.git("r", &["symbolic-ref", "HEAD"]),
        "refs/heads/side"
    );
    write(&sandbox, "b", "of the side");
    sandbox.git("r", &["commit", "-qam", "two"]);
    let repository = sandbox.open("r");
    let back = |repository: &Repository| {
        let options = switch::Options {
            to: switch::start_at(repository, "main").expect("it can be read"),
            ..switch::Options::default()
        };
        switch::switch(repository, &options, &(), &Interrupt::new())
    };
    // What the switch would overwrite is in its way.
    write(&sandbox, "b", "not committed");
    assert!(matches!(
        back(&repository).expect("it is no error"),
        switch::Outcome::Refused(_)
    ));
    assert_eq!(read(&sandbox, "b").as_deref(), Some("not committed"));
    sandbox.git("r", &["checkout", "-q", "b"]);
    assert!(matches!(
        back(&repository).expect("it can be switched"),
        switch::Outcome::Done(_)
    ));
    assert_eq!(read(&sandbox, "b").as_deref(), Some("b"));
    assert_eq!(
        sandbox.git("r", &["symbolic-ref", "HEAD"]),
        "refs/heads/main"
    );
}

#[test]
fn paths_come_back_from_the_index() {
    let sandbox = sandbox();
    write(&sandbox, "a", "changed");
    std::fs::remove_file(sandbox.root.join("r/d/c")).expect("it is there");
    let repository = sandbox.open("r");
    let options = checkout_paths::Options {
        source: None,
        pathspec: repository
            .pathspec([BStr::new("a"), BStr::new("d")])
            .expect("pathspecs"),
        overlay: true,
        stage: None,
        merge: None,
        ignore_unmerged: false,
        index: false,
        worktree: true,
        ignore_skip_worktree: false,
    };
    let report = checkout_paths::checkout_paths(&repository, &options, &(), &Interrupt::new());
    let report = report.expect("they can be written");
    assert!(report.errors.is_empty() && report.failed.is_empty());
    assert_eq!(report.updated, 2);
    assert_eq!(read(&sandbox, "a").as_deref(), Some("a"));
    assert_eq!(sandbox.git("r", &["status", "--porcelain"]), "");
}

#[test]
fn clean_removes_what_is_untracked_and_nothing_else() {
    let sandbox = sandbox();
    write(&sandbox, ".gitignore", "*.o\n");
    for path in ["new", "x.o", "deep/new"] {
        write(&sandbox, path, "new");
    }
    let repository = sandbox.open("r");
    let mut options = clean::Options {
        pathspec: repository.pathspec([]).expect("it matches all"),
        directories: true,
        dry_run: true,
        ..clean::Options::default()
    };
    let said = clean::clean(&repository, &options, &Interrupt::new());
    assert_eq!(said.expect("it can be told").len(), 3);
    assert!(read(&sandbox, "new").is_some(), "nothing happens yet");
    options.dry_run = false;
    let said = clean::clean(&repository, &options, &Interrupt::new());
    assert_eq!(said.expect("it can be removed").len(), 3);
    assert_eq!(read(&sandbox, "new"), None);
    assert_eq!(read(&sandbox, "deep/new"), None);
    assert!(read(&sandbox, "x.o").is_some() && read(&sandbox, "a").is_some());
}

#[test]
fn ignored_paths_and_attributes_are_told() {
    let sandbox = sandbox();
    write(&sandbox, ".gitignore", "# objects\n*.o\n");
    write(&sandbox, ".gitattributes", "*.c text eol=lf\n");
    let repository = sandbox.open("r");
    let rules = status::check_ignored(&repository, true, |check| {
        ["x.o", "x.c"].map(|path| check.decide(path.into()).expect("it can be told"))
    });
    let [ignored, other] = rules.expect("there is a work tree");
    let rule = ignored.expect("a line decides");
    assert_eq!((rule.line, rule.text), (2, BString::from("*.o")));
    assert_eq!(other, None);
    let names = vec!["text".to_owned(), "eol".to_owned(), "diff".to_owned()];
    let selection = attributes::Selection::Named(names);
    let mut check = attributes::check(&repository, selection, false).expect("they can be read");
    let states = check.states("x.c".into()).expect("they can be told");
    assert_eq!(
        states,
        [
            ("text", State::Set),
            ("eol", State::Value(std::sync::Arc::new("lf".into()))),
            ("diff", State::Unspecified),
        ]
    );
}

#[test]
fn stale_stat_data_are_refreshed() {
    let sandbox = sandbox();
    let file = std::fs::File::options()
        .write(true)
        .open(sandbox.root.join("r/a"));
    let past = std::time::SystemTime::UNIX_EPOCH + std::time::Duration::from_secs(1_000_000_000);
    file.expect("it is there")
        .set_modified(past)
        .expect("it is ours");
    assert_ne!(sandbox.git("r", &["diff-files"]), "");
    let repository = sandbox.open("r");
    let options = refresh::Options {
        pathspec: repository.pathspec([]).expect("it matches all"),
        ..refresh::Options::default()
    };
    refresh::refresh_index(&repository, &options, &Interrupt::new()).expect("it can be written");
    assert_eq!(sandbox.git("r", &["diff-files"]), "");
}

#[test]
fn sparse_directories_leave_the_worktree_and_return() {
    let sandbox = sandbox();
    write(&sandbox, "e/f", "f");
    sandbox.git("r", &["add", "."]);
    sandbox.git("r", &["commit", "-qm", "two"]);
    sandbox.git("r", &["sparse-checkout", "init", "--cone"]);
    let mut repository = sandbox.open("r");
    assert!(repository.is_sparse_checkout().expect("it is configured"));
    let definition = Definition::Directories(["e".into()].into());
    let applied = pronto::sparse_checkout::set(&repository, &definition, &(), &Interrupt::new());
    assert!(applied.expect("it can be applied").failed.is_empty());
    assert_eq!(read(&sandbox, "d/c"), None);
    assert!(read(&sandbox, "e/f").is_some() && read(&sandbox, "a").is_some());
    assert_eq!(sandbox.git("r", &["sparse-checkout", "list"]), "e");
    assert_eq!(
        repository.sparse_definition().expect("it can be read"),
        Some(definition)
    );
    let applied = pronto::sparse_checkout::disable(&mut repository, &(), &Interrupt::new());
    assert!(applied.expect("it can be undone").failed.is_empty());
    assert!(read(&sandbox, "d/c").is_some());
    assert_eq!(sandbox.git("r", &["status", "--porcelain"]), "");
}

#[test]
fn a_branch_knows_how_far_it_is_from_its_upstream() {
    let sandbox = sandbox();
    sandbox.git("r", &["branch", "base"]);
    sandbox.git("r", &["branch", "-q", "--set-upstream-to=base"]);
    sandbox.git("r", &["commit", "-q", "--allow-empty", "-m", "two"]);
    let repository = sandbox.open("r");
    let head = repository.head().expect("a head").id();
    let upstream = status::upstream(
        &repository,
        "refs/heads/main".into(),
        head,
        true,
        &Interrupt::new(),
    );
    let upstream = upstream.expect("it can be told").expect("it has one");
    assert_eq!(upstream.name, "refs/heads/base");
    assert_eq!(
        upstream.divergence,
        Some(Divergence::Counted {
            ahead: 1,
            behind: 0
        })
    );
}

#[test]
fn status_tells_each_kind_of_change() {
    let sandbox = sandbox();
    write(&sandbox, "a", "changed");
    write(&sandbox, "new", "new");
    sandbox.git("r", &["rm", "-q", "b"]);
    let repository = sandbox.open("r");
    let options = status::Options {
        pathspec: repository.pathspec([]).expect("it matches all"),
        ..status::Options::default()
    };
    let report = status::status(&repository, &options, &Interrupt::new());
    let report = report.expect("it can be told");
    let changed: Vec<String> = report
        .entries
        .iter()
        .map(|entry| entry.path.to_string())
        .collect();
    assert_eq!(changed, ["a", "b"]);
    assert_eq!(report.untracked, [BString::from("new")]);
    assert!(report.ignored.is_empty() && report.problems.is_empty());
}

#[test]
fn a_bare_repository_has_no_files_to_work_on() {
    let sandbox = Sandbox::new();
    sandbox.git("", &["init", "-q", "--bare", "r"]);
    let repository = sandbox.open("r");
    let error = repository.require_work_tree().expect_err("it is bare");
    assert_eq!(*error.kind(), ErrorKind::NoWorkTree);
}
