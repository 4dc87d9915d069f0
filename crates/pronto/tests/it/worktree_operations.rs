//! Tests the operations on index and files through the public API. Stock git checks each result.

use bstr::{BStr, BString};
use pronto::Watch;
use pronto::attributes::AttributeState;
use pronto::diff::{Against, TreeDiffDepth};
use pronto::reset::Mode;
use pronto::sparse_checkout::sparse::SparseDefinition;
use pronto::status::Divergence;
use pronto::switch::NewBranch;
use pronto::write_tree::WrittenTree;
use pronto::{ErrorKind, Repository};
use pronto::{
    add, attributes, checkout_paths, clean, commit, diff, refresh, reset, status, switch,
};

use crate::support::Sandbox;

fn add_all(repository: &Repository) {
    let mut options = add::Options::default();
    options.pathspec = repository.pathspec([BStr::new(".")]).expect("a pathspec");
    let report = add::add(repository, &options, &Watch::none());
    assert!(!report.expect("it can be added").failed);
}

#[test]
fn files_are_staged_and_committed() {
    let sandbox = Sandbox::with_files();
    sandbox.write("a", "changed");
    sandbox.write("new", "new");
    let repository = sandbox.open("r");
    add_all(&repository);
    assert_eq!(sandbox.git("r", &["status", "--porcelain"]), "M  a\nA  new");
    let tree = pronto::write_tree::write_tree(&repository, None, false, &Watch::none());
    let WrittenTree::Tree(tree) = tree.expect("it can be written") else {
        panic!("a tree is written");
    };
    assert_eq!(tree.to_string(), sandbox.git("r", &["write-tree"]));
    let mut options = commit::Options::default();
    options.message = "two".into();
    let repository = sandbox.open("r");
    let made = commit::commit(&repository, &options, &Watch::none());
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
    let sandbox = Sandbox::with_files();
    let before = sandbox.git("r", &["rev-parse", "HEAD"]);
    let mut options = commit::Options::default();
    options.allow_empty = true;
    let made = commit::commit(&sandbox.open("r"), &options, &Watch::none());
    assert_eq!(made.expect("it is no error"), commit::Outcome::EmptyMessage);
    assert_eq!(sandbox.git("r", &["rev-parse", "HEAD"]), before);
}

#[test]
fn differences_have_their_paths() {
    let sandbox = Sandbox::with_files();
    sandbox.write("a", "changed");
    sandbox.git("r", &["rm", "-q", "--cached", "b"]);
    let repository = sandbox.open("r");
    let (options, watch) = (diff::Options::default(), Watch::none());
    let paths = |found: pronto::Result<diff::DiffResult>| -> Vec<String> {
        let found = found.expect("it can be compared");
        assert!(found.problems.is_empty());
        let paths = found.differences.iter();
        paths
            .map(|difference| difference.path.to_string())
            .collect()
    };
    assert_eq!(paths(diff::files(&repository, 2, &options, &watch)), ["a"]);
    let tree = repository.resolve_tree("HEAD").expect("a tree");
    let against = |against| paths(diff::index(&repository, tree, against, &options, &watch));
    assert_eq!(against(Against::Index), ["b"]);
    assert_eq!(against(Against::Files), ["a", "b"]);
    let depth = TreeDiffDepth {
        recursive: true,
        ..TreeDiffDepth::default()
    };
    let trees = diff::trees(&repository, None, Some(tree), depth, &options, &watch);
    assert_eq!(paths(trees), ["a", "b", "d/c"]);
}

#[test]
fn a_reset_moves_branch_index_and_files() {
    let sandbox = Sandbox::with_files();
    let first = sandbox.git("r", &["rev-parse", "HEAD"]);
    sandbox.write("a", "changed");
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
        let mut options = reset::Options::new(to.clone());
        options.mode = mode;
        options.pathspec = repository.pathspec([]).expect("it matches all");
        options.intent_to_add = false;
        let outcome = reset::reset(&sandbox.open("r"), &options, &Watch::none());
        let reset::Outcome::Done(report) = outcome.expect("it can be reset") else {
            panic!("nothing is lost");
        };
        assert!(report.failed.is_empty());
        assert_eq!(sandbox.git("r", &["rev-parse", "HEAD"]), first);
        assert_eq!(sandbox.read("a").as_deref(), Some(content));
        assert_eq!(sandbox.git("r", &["status", "--porcelain"]).trim(), seen);
    }
}

#[test]
fn a_new_branch_is_made_and_left() {
    let sandbox = Sandbox::with_files();
    let repository = sandbox.open("r");
    let mut branch = NewBranch::default();
    branch.name = "side".into();
    let mut options = switch::Options::default();
    options.create = Some(branch);
    let outcome = switch::switch(&repository, &options, &Watch::none());
    assert!(matches!(
        outcome.expect("it can be made"),
        switch::Outcome::Done(_)
    ));
    assert_eq!(
        sandbox.git("r", &["symbolic-ref", "HEAD"]),
        "refs/heads/side"
    );
    sandbox.write("b", "of the side");
    sandbox.git("r", &["commit", "-qam", "two"]);
    let repository = sandbox.open("r");
    let back = |repository: &Repository| {
        let mut options = switch::Options::default();
        options.to = switch::start_at(repository, "main").expect("it can be read");
        switch::switch(repository, &options, &Watch::none())
    };
    // A file that the switch would overwrite stops it.
    sandbox.write("b", "not committed");
    assert!(matches!(
        back(&repository).expect("it is no error"),
        switch::Outcome::Refused(_)
    ));
    assert_eq!(sandbox.read("b").as_deref(), Some("not committed"));
    sandbox.git("r", &["checkout", "-q", "b"]);
    assert!(matches!(
        back(&repository).expect("it can be switched"),
        switch::Outcome::Done(_)
    ));
    assert_eq!(sandbox.read("b").as_deref(), Some("b"));
    assert_eq!(
        sandbox.git("r", &["symbolic-ref", "HEAD"]),
        "refs/heads/main"
    );
}

#[test]
fn paths_come_back_from_the_index() {
    let sandbox = Sandbox::with_files();
    sandbox.write("a", "changed");
    std::fs::remove_file(sandbox.root.join("r/d/c")).expect("it is there");
    let repository = sandbox.open("r");
    let mut options = checkout_paths::Options::new(
        repository
            .pathspec([BStr::new("a"), BStr::new("d")])
            .expect("pathspecs"),
    );
    options.source = None;
    options.overlay = true;
    options.stage = None;
    options.merge = None;
    options.ignore_unmerged = false;
    options.index = false;
    options.worktree = true;
    options.ignore_skip_worktree = false;
    let report = checkout_paths::checkout_paths(&repository, &options, &Watch::none());
    let report = report.expect("they can be written");
    assert!(report.errors.is_empty() && report.failed.is_empty());
    assert_eq!(report.updated, 2);
    assert_eq!(sandbox.read("a").as_deref(), Some("a"));
    assert_eq!(sandbox.git("r", &["status", "--porcelain"]), "");
}

#[test]
fn clean_removes_what_is_untracked_and_nothing_else() {
    let sandbox = Sandbox::with_files();
    sandbox.write(".gitignore", "*.o\n");
    for path in ["new", "x.o", "deep/new"] {
        sandbox.write(path, "new");
    }
    let repository = sandbox.open("r");
    let mut options = clean::Options::default();
    options.pathspec = repository.pathspec([]).expect("it matches all");
    options.directories = true;
    options.dry_run = true;
    let said = clean::clean(&repository, &options, &Watch::none());
    assert_eq!(said.expect("it can be told").len(), 3);
    assert!(sandbox.read("new").is_some(), "nothing happens yet");
    options.dry_run = false;
    let said = clean::clean(&repository, &options, &Watch::none());
    assert_eq!(said.expect("it can be removed").len(), 3);
    assert_eq!(sandbox.read("new"), None);
    assert_eq!(sandbox.read("deep/new"), None);
    assert!(sandbox.read("x.o").is_some() && sandbox.read("a").is_some());
}

#[test]
fn ignored_paths_and_attributes_are_told() {
    let sandbox = Sandbox::with_files();
    sandbox.write(".gitignore", "# objects\n*.o\n");
    sandbox.write(".gitattributes", "*.c text eol=lf\n");
    let repository = sandbox.open("r");
    let rules = status::check_ignored(&repository, true, |check| {
        ["x.o", "x.c"].map(|path| check.decide(path.into()).expect("it can be told"))
    });
    let [ignored, other] = rules.expect("there is a work tree");
    let rule = ignored.expect("a line decides");
    assert_eq!((rule.line, rule.text), (2, BString::from("*.o")));
    assert_eq!(other, None);
    let names = vec!["text".to_owned(), "eol".to_owned(), "diff".to_owned()];
    let selection = attributes::AttributeSelection::Named(names);
    let mut check = attributes::check(&repository, selection, false).expect("they can be read");
    let states = check.states("x.c".into()).expect("they can be told");
    let states = states.into_iter().map(|found| (found.name, found.state));
    assert_eq!(
        states.collect::<Vec<_>>(),
        [
            ("text", AttributeState::Set),
            (
                "eol",
                AttributeState::Value(std::sync::Arc::new("lf".into()))
            ),
            ("diff", AttributeState::Unspecified),
        ]
    );
}

#[test]
fn stale_stat_data_are_refreshed() {
    let sandbox = Sandbox::with_files();
    let file = std::fs::File::options()
        .write(true)
        .open(sandbox.root.join("r/a"));
    let past = std::time::SystemTime::UNIX_EPOCH + std::time::Duration::from_secs(1_000_000_000);
    file.expect("it is there")
        .set_modified(past)
        .expect("it is ours");
    assert_ne!(sandbox.git("r", &["diff-files"]), "");
    let repository = sandbox.open("r");
    let mut options = refresh::Options::default();
    options.pathspec = repository.pathspec([]).expect("it matches all");
    refresh::refresh_index(&repository, &options, &Watch::none()).expect("it can be written");
    assert_eq!(sandbox.git("r", &["diff-files"]), "");
}

#[test]
fn sparse_directories_leave_the_worktree_and_return() {
    let sandbox = Sandbox::with_files();
    sandbox.write("e/f", "f");
    sandbox.git("r", &["add", "."]);
    sandbox.git("r", &["commit", "-qm", "two"]);
    sandbox.git("r", &["sparse-checkout", "init", "--cone"]);
    let mut repository = sandbox.open("r");
    assert!(repository.is_sparse_checkout().expect("it is configured"));
    let definition = SparseDefinition::Directories(["e".into()].into());
    let applied = pronto::sparse_checkout::set(&repository, &definition, &Watch::none());
    assert!(applied.expect("it can be applied").failed.is_empty());
    assert_eq!(sandbox.read("d/c"), None);
    assert!(sandbox.read("e/f").is_some() && sandbox.read("a").is_some());
    assert_eq!(sandbox.git("r", &["sparse-checkout", "list"]), "e");
    assert_eq!(
        repository.sparse_definition().expect("it can be read"),
        Some(definition)
    );
    let applied = pronto::sparse_checkout::disable(&mut repository, &Watch::none());
    assert!(applied.expect("it can be undone").failed.is_empty());
    assert!(sandbox.read("d/c").is_some());
    assert_eq!(sandbox.git("r", &["status", "--porcelain"]), "");
}

#[test]
fn a_branch_knows_how_far_it_is_from_its_upstream() {
    let sandbox = Sandbox::with_files();
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
        &Watch::none(),
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
    let sandbox = Sandbox::with_files();
    sandbox.write("a", "changed");
    sandbox.write("new", "new");
    sandbox.git("r", &["rm", "-q", "b"]);
    let repository = sandbox.open("r");
    let mut options = status::Options::default();
    options.pathspec = repository.pathspec([]).expect("it matches all");
    let report = status::status(&repository, &options, &Watch::none());
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
    assert_eq!(error.kind(), ErrorKind::NoWorkTree);
}

#[test]
fn failures_after_a_change_have_the_report_of_what_was_done() {
    let sandbox = Sandbox::with_files();
    sandbox.git("r", &["branch", "side"]);
    let first = sandbox.git("r", &["rev-parse", "HEAD"]);
    sandbox.write("a", "changed");
    sandbox.git("r", &["commit", "-qam", "two"]);
    let repository = sandbox.open("r");
    let lock = |name: &str| sandbox.root.join("r/.git").join(format!("{name}.lock"));
    // The switch updates the files and the index before `HEAD`, which is locked.
    std::fs::write(lock("HEAD"), "").expect("a lock");
    let mut options = switch::Options::default();
    options.to = switch::start_at(&repository, "side").expect("it can be read");
    let failure = switch::switch(&repository, &options, &Watch::none());
    let failure = failure.expect_err("HEAD is locked");
    assert_eq!(failure.kind(), ErrorKind::Locked, "{failure}");
    let report = failure.report.expect("files have moved");
    assert_eq!(report.new_head, switch::NewHead::Stayed);
    assert!(report.failed.is_empty());
    assert_eq!(sandbox.read("a").as_deref(), Some("a"));
    // The same call completes the switch.
    std::fs::remove_file(lock("HEAD")).expect("it is there");
    let outcome = switch::switch(&repository, &options, &Watch::none());
    assert!(matches!(outcome, Ok(switch::Outcome::Done(_))));
    sandbox.git("r", &["checkout", "-q", "main"]);
    std::fs::write(lock("refs/heads/main"), "").expect("a lock");
    let repository = sandbox.open("r");
    let to = reset::target(&repository, BStr::new(&first), false).expect("a commit");
    let mut options = reset::Options::new(to);
    options.mode = Mode::Hard;
    options.pathspec = repository.pathspec([]).expect("it matches all");
    let failure = reset::reset(&repository, &options, &Watch::none());
    let failure = failure.expect_err("the branch is locked");
    assert_eq!(failure.kind(), ErrorKind::Locked, "{failure}");
    assert!(failure.report.expect("files have moved").head.is_none());
    // A failure before any change has no report. `?` converts the failure into an error of the
    // library.
    let mut options = switch::Options::default();
    options.create = Some(NewBranch::default());
    let failure = switch::switch(&repository, &options, &Watch::none());
    let failure = failure.expect_err("a branch needs a name");
    assert!(failure.report.is_none());
    let kind = failure.kind();
    assert_eq!(pronto::Error::from(failure).kind(), kind);
}

#[test]
fn an_addition_that_fails_has_its_events_and_changes_nothing() {
    let sandbox = Sandbox::with_files();
    sandbox.write("new", "new");
    let repository = sandbox.open("r");
    let mut options = add::Options::default();
    options.pathspec = repository
        .pathspec([BStr::new("new"), BStr::new("missing")])
        .expect("a pathspec");
    let failure = add::add(&repository, &options, &Watch::none());
    let failure = failure.expect_err("a path is missing");
    assert!(failure.report.is_some());
    assert_eq!(sandbox.git("r", &["status", "--porcelain"]), "?? new");
}

#[test]
fn the_record_of_a_lock_is_that_of_its_repository() {
    let sandbox = Sandbox::with_files();
    sandbox.git("r", &["config", "core.lockfilePid", "true"]);
    let recording = sandbox.open("r");
    sandbox.git("r", &["config", "core.lockfilePid", "false"]);
    // Opening another repository changes nothing for the first one.
    let silent = sandbox.open("r");
    let record = sandbox.root.join("r/.git/gc.log~pid.lock");
    let log = pronto::maintenance::begin_gc_log(&recording).expect("it is free");
    assert!(record.exists());
    log.end(false).expect("it can be removed");
    let log = pronto::maintenance::begin_gc_log(&silent).expect("it is free");
    assert!(!record.exists());
    log.end(false).expect("it can be removed");
}
