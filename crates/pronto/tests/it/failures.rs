//! Tests of the kinds of errors, and of failures in outcomes as errors.

use bstr::BStr;
use pronto::push::PushStatus;
use pronto::{Environment, ErrorKind, Repository, Watch};
use pronto::{add, checkout_paths, clone, commit, push, push_remote, reset, switch};

use crate::support::Sandbox;

/// Returns an environment that finds git, which serves local repositories.
fn environment(sandbox: &Sandbox, directory: &str) -> Environment {
    let mut environment = sandbox.environment(directory);
    environment.set("PATH", std::env::var_os("PATH").unwrap_or_default());
    environment
}

fn commit_all(repository: &Repository, message: &str) -> pronto::Result<commit::Outcome> {
    let staged = add::add(repository, &add::Options::default(), &Watch::none())?;
    assert!(!staged.into_result()?.failed);
    let mut options = commit::Options::default();
    options.message = message.into();
    commit::commit(repository, &options, &Watch::none())
}

fn switch_to(repository: &Repository, branch: &str) -> pronto::Result<switch::Outcome> {
    let mut options = switch::Options::default();
    options.to = switch::start_at(repository, branch)?;
    Ok(switch::switch(repository, &options, &Watch::none())?)
}

fn clone_of(sandbox: &Sandbox, name: &str, directory: &str) -> pronto::Result<clone::Outcome> {
    let address = sandbox.root.join(name);
    clone::clone(
        BStr::new(address.as_os_str().as_encoded_bytes()),
        &sandbox.root.join(directory),
        &clone::Options::default(),
        &environment(sandbox, ""),
        &Watch::none(),
    )
}

#[test]
fn a_commit_by_nobody_has_the_advice_of_git_and_changes_nothing() {
    let sandbox = Sandbox::new();
    sandbox.git("", &["init", "-q", "-b", "main", "r"]);
    sandbox.git("r", &["config", "user.useConfigOnly", "true"]);
    sandbox.write("a", "a");
    let mut given = sandbox.environment("r");
    given.remove("GIT_COMMITTER_NAME");
    let repository = Repository::discover(".", &given).expect("a repository");
    let error = commit_all(&repository, "one").expect_err("nobody commits");
    assert_eq!(error.kind(), ErrorKind::Identity);
    let advice = error.hint().expect("git has advice");
    assert!(
        advice.contains("git config --global user.email"),
        "{advice}"
    );
    given.set("GIT_AUTHOR_NAME", "A U Thor");
    given.set("GIT_AUTHOR_EMAIL", "author@example.com");
    let repository = Repository::discover(".", &given).expect("a repository");
    let error = commit_all(&repository, "one").expect_err("the committer has no name");
    assert_eq!(error.kind(), ErrorKind::Identity);
    assert!(!repository.git_path("COMMIT_EDITMSG").exists());
}

#[test]
fn unmerged_files_and_malformed_messages_are_not_unsupported() {
    let sandbox = Sandbox::with_files();
    sandbox.git("r", &["checkout", "-q", "-b", "side"]);
    sandbox.write("a", "side");
    sandbox.git("r", &["commit", "-qam", "side"]);
    sandbox.git("r", &["checkout", "-q", "main"]);
    sandbox.write("a", "main");
    sandbox.git("r", &["commit", "-qam", "main"]);
    let repository = sandbox.open("r");
    let mut options = commit::Options::default();
    options.message = b"a\0b".into();
    let error = commit::commit(&repository, &options, &Watch::none()).expect_err("it has NUL");
    assert_eq!(error.kind(), ErrorKind::InvalidInput);
    sandbox.git("r", &["read-tree", "-m", "main~1", "main", "side"]);
    options.message = "two".into();
    let error = commit::commit(&repository, &options, &Watch::none()).expect_err("a conflict");
    assert_eq!(error.kind(), ErrorKind::Refused, "{error}");
}

#[test]
fn clones_name_a_missing_source_and_an_occupied_directory() {
    let sandbox = Sandbox::with_files();
    let kind = |name, directory| {
        clone_of(&sandbox, name, directory)
            .expect_err("it fails")
            .kind()
    };
    assert_eq!(kind("nowhere", "copy"), ErrorKind::NotARepository);
    assert_eq!(kind("r", "r"), ErrorKind::AlreadyExists);
    let cloned = clone_of(&sandbox, "r", "copy").and_then(clone::Outcome::into_result);
    assert!(cloned.is_ok());
}

#[test]
fn refusals_and_failures_are_results() {
    let sandbox = Sandbox::with_files();
    let repository = sandbox.open("r");
    let report = switch_to(&repository, "main").and_then(switch::Outcome::into_result);
    assert!(report.expect("nothing to do").failed.is_empty());
    sandbox.git("r", &["checkout", "-q", "-b", "side"]);
    sandbox.write("a", "side");
    let done = commit_all(&repository, "side").and_then(commit::Outcome::into_result);
    assert_eq!(repository.head().expect("a head").id(), done.ok());
    let nothing = commit_all(&repository, "again").and_then(commit::Outcome::into_result);
    assert_eq!(
        nothing.expect_err("nothing to commit").kind(),
        ErrorKind::Refused
    );
    sandbox.write("a", "local");
    let refused = switch_to(&repository, "main").and_then(switch::Outcome::into_result);
    let error = refused.expect_err("local changes would be lost");
    assert_eq!(error.kind(), ErrorKind::Refused);
    let message =
        "Your local changes to the following files would be overwritten by checkout:\n\ta";
    assert_eq!(error.message(), message);

    let pathspec = || {
        repository
            .literal_pathspec([BStr::new("missing")])
            .expect("a path")
    };
    let mut options = add::Options::default();
    options.pathspec = pathspec();
    let staged = add::add(&repository, &options, &Watch::none());
    let error = staged
        .map_err(pronto::Error::from)
        .and_then(add::Report::into_result);
    assert!(error.is_err());
    let options = checkout_paths::Options::new(pathspec());
    let restored = checkout_paths::checkout_paths(&repository, &options, &Watch::none());
    let error = restored
        .and_then(checkout_paths::Report::into_result)
        .expect_err("no such path");
    let message = "pathspec 'missing' did not match any file(s) known to git";
    assert_eq!(
        (error.kind(), error.message()),
        (ErrorKind::Refused, message)
    );
    let target = reset::target(&repository, "HEAD".into(), false).expect("a commit");
    let reset = reset::reset(&repository, &reset::Options::new(target), &Watch::none());
    let reset = reset
        .expect("it can be reset")
        .into_result()
        .expect("it is done");
    assert_eq!(reset.unstaged.len(), 1);
}

#[test]
fn a_push_is_that_of_git_without_arguments() {
    let sandbox = Sandbox::with_files();
    sandbox.git("", &["clone", "-q", "--bare", "r", "o.git"]);
    sandbox.git("", &["clone", "-q", "--bare", "r", "second.git"]);
    let repository = || Repository::discover(".", &environment(&sandbox, "r")).expect("it exists");
    let push = |change: &dyn Fn(&mut push_remote::Options)| {
        let repository = repository();
        let mut options = push_remote::Options::configured(repository.config())?;
        change(&mut options);
        push_remote::push_remote(&repository, &options, &Watch::none())
    };
    let error = push(&|_| ()).expect_err("no remote is configured");
    assert_eq!(error.kind(), ErrorKind::InvalidInput);
    let url = |name: &str| sandbox.root.join(name).display().to_string();
    sandbox.git("r", &["remote", "add", "origin", &url("o.git")]);
    sandbox.git(
        "r",
        &["config", "--add", "remote.origin.url", &url("second.git")],
    );
    sandbox.git("r", &["config", "push.autoSetupRemote", "true"]);
    sandbox.write("a", "changed");
    sandbox.git("r", &["commit", "-qam", "two"]);
    let pushed = push(&|_| ()).expect("it can be pushed");
    let urls: Vec<_> = pushed.iter().map(|one| one.url.to_string()).collect();
    assert_eq!(urls, [url("o.git"), url("second.git")]);
    let head = sandbox.git("r", &["rev-parse", "HEAD"]);
    for name in ["o.git", "second.git"] {
        assert_eq!(sandbox.git(name, &["rev-parse", "main"]), head);
    }
    let upstream = sandbox.git("r", &["rev-parse", "--abbrev-ref", "main@{u}"]);
    assert_eq!(upstream, "origin/main");

    sandbox.git("r", &["commit", "-q", "--amend", "-m", "another"]);
    let pushed = push(&|options| options.refspecs = vec!["main".into()]).expect("it connects");
    let first = pushed.into_iter().next().expect("one result for each URL");
    let status = |outcome: &push::Outcome| outcome.refs.iter().map(|it| it.status).next();
    assert_eq!(
        status(&first.outcome),
        Some(PushStatus::RejectNonFastForward)
    );
    let error = first
        .outcome
        .into_result()
        .expect_err("it is no fast-forward");
    assert_eq!(error.to_string(), "refs/heads/main: non-fast-forward");
    let pushed = push(&|options| options.push.force = true).expect("it connects");
    assert!(
        pushed
            .into_iter()
            .all(|one| one.outcome.into_result().is_ok())
    );
}
