//! Compares default options of the library with the commands without options.

use std::path::Path;

use bstr::{BStr, ByteSlice};
use pronto::push::PushRemote;
use pronto::remote::Remote;
use pronto::{Repository, Watch};
use pronto::{
    add, checkout_paths, clean, clone, commit, fetch, push, read_tree, refresh, reset, status,
    switch,
};

use crate::support::Sandbox;

/// The hooks whose runs are compared. Operations with other hooks are left to git.
const HOOKS: &[&str] = &["post-checkout", "pre-push", "reference-transaction"];

/// Returns a clone `r` of `o.git` with local changes, a second branch on both sides and hooks.
fn scene() -> Sandbox {
    let sandbox = Sandbox::with_files();
    sandbox.git("r", &["branch", "side"]);
    sandbox.git("r", &["tag", "-a", "-m", "v1", "v1"]);
    sandbox.git("", &["clone", "-q", "--bare", "r", "o.git"]);
    let origin = sandbox.root.join("o.git").display().to_string();
    sandbox.git("r", &["remote", "add", "origin", &origin]);
    sandbox.git("r", &["fetch", "-q"]);
    sandbox.git("r", &["branch", "-q", "--set-upstream-to=origin/main"]);
    sandbox.write("a", "second");
    sandbox.git("r", &["commit", "-q", "-a", "-m", "two"]);
    sandbox.git("r", &["tag", "-a", "-m", "v2", "v2"]);
    // The other side has news.
    sandbox.git("", &["clone", "-q", "-b", "side", "o.git", "other"]);
    sandbox.git("other", &["commit", "-q", "--allow-empty", "-m", "news"]);
    sandbox.git(
        "other",
        &["push", "-q", "origin", "side", "HEAD:refs/heads/new"],
    );
    for hook in HOOKS {
        let path = sandbox.root.join("r/.git/hooks").join(hook);
        let log = sandbox.root.join("hooks.log").display().to_string();
        let text = format!("#!/bin/sh\ntest -t 0 || cat >/dev/null\necho {hook} >>{log}\n");
        test_support::write_program(&path, &text);
    }
    sandbox.write("a", "changed");
    sandbox.write("new", "new");
    std::fs::remove_file(sandbox.root.join("r/b")).expect("it exists");
    sandbox
}

/// Describes everything that an operation may change: refs, reflogs, the index, files, hooks that ran,
/// and the refs of the other side.
fn describe(sandbox: &Sandbox, ran: &str) -> String {
    // The first look refreshes no index: what the operation left is shown.
    let files = sandbox.git(
        "r",
        &["--no-optional-locks", "diff-files", "--raw", "--abbrev=4"],
    );
    let index = sandbox.git("r", &["ls-files", "-s", "-t"]);
    let untracked = sandbox.git("r", &["ls-files", "-o"]);
    let refs = sandbox.git("r", &["for-each-ref"]);
    let head = sandbox.git_or_nothing("r", &["symbolic-ref", "HEAD"]);
    let reflog = sandbox.git_or_nothing("r", &["reflog", "--format=%H %gs"]);
    let there = sandbox.git("o.git", &["for-each-ref"]);
    let log = std::fs::read_to_string(sandbox.root.join("hooks.log")).unwrap_or_default();
    let fetched =
        std::fs::read_to_string(sandbox.root.join("r/.git/FETCH_HEAD")).unwrap_or_default();
    let root = sandbox.root.display().to_string();
    [
        ran, &files, &index, &untracked, &refs, &head, &reflog, &there, &log, &fetched,
    ]
    .join("\n--\n")
    .replace(&root, "ROOT")
}

/// Runs `git` with `arguments` in one scene and `operation` in another one, and compares the results.
fn compare(arguments: &[&str], prepare: &[&[&str]], operation: impl Fn(&Repository, &Watch<'_>)) {
    let (theirs, ours) = (scene(), scene());
    for sandbox in [&theirs, &ours] {
        for arguments in prepare {
            sandbox.git("r", arguments);
        }
        _ = std::fs::remove_file(sandbox.root.join("hooks.log"));
    }
    let Some(git) = test_support::git::reference() else {
        test_support::skip!("git 2.55 is missing", test_support::NO_REFERENCE);
    };
    let output = theirs.run(git, "r", arguments);
    assert!(output.status.success(), "git {arguments:?}: {output:?}");
    let mut environment = ours.environment("r");
    environment.set("PATH", std::env::var_os("PATH").unwrap_or_default());
    environment.set("GIT_AUTHOR_NAME", "A U Thor");
    environment.set("GIT_AUTHOR_EMAIL", "author@example.com");
    environment.set("GIT_AUTHOR_DATE", "1112911993 -0700");
    let repository = Repository::discover(Path::new("."), &environment).expect("a repository");
    operation(&repository, &Watch::none());
    let ran = arguments.join(" ");
    similar(&describe(&theirs, &ran), &describe(&ours, &ran));
}

fn similar(theirs: &str, ours: &str) {
    assert!(theirs == ours, "git:\n{theirs}\n\npronto:\n{ours}");
}

#[test]
fn default_options_of_staging_are_those_of_git() {
    compare(&["add", "."], &[], |repository, watch| {
        let mut options = add::Options::default();
        options.pathspec = repository.pathspec([BStr::new(".")]).expect("a pathspec");
        assert!(!add::add(repository, &options, watch).expect("added").failed);
    });
    compare(
        &["update-index", "-q", "--refresh", "--unmerged"],
        &[&["add", "."]],
        |repository, watch| {
            let options = refresh::Options::default();
            let refreshed = refresh::refresh_index(repository, &options, watch).expect("refreshed");
            assert_eq!(refreshed.outdated, []);
        },
    );
    compare(&["read-tree", "HEAD"], &[], |repository, watch| {
        let tree = repository.resolve_tree("HEAD").expect("a tree");
        let options = read_tree::Options::default();
        read_tree::read_trees(repository, &[tree], &options, watch).expect("read");
    });
    compare(&["status"], &[], |repository, watch| {
        let report = status::status(repository, &status::Options::default(), watch);
        assert_eq!(report.expect("a status").untracked, ["new"]);
    });
}

#[test]
fn default_options_of_moving_are_those_of_git() {
    compare(
        &["reset", "HEAD~1"],
        &[&["add", "."]],
        |repository, watch| {
            let to = reset::target(repository, "HEAD~1".into(), false).expect("a commit");
            let outcome = reset::reset(repository, &reset::Options::new(to), watch);
            assert!(matches!(outcome, Ok(reset::Outcome::Done(_))));
        },
    );
    compare(
        &["switch", "-q", "side"],
        &[&["checkout", "-q", "."]],
        |repository, watch| {
            let mut options = switch::Options::default();
            options.to = switch::start_at(repository, "side").expect("a branch");
            let outcome = switch::switch(repository, &options, watch);
            assert!(matches!(outcome, Ok(switch::Outcome::Done(_))));
        },
    );
    compare(&["restore", "."], &[], |repository, watch| {
        let pathspec = repository.pathspec([BStr::new(".")]).expect("a pathspec");
        let mut options = checkout_paths::Options::new(pathspec);
        // `restore` leaves the index alone, as the documentation of the options says.
        options.index = false;
        _ = checkout_paths::checkout_paths(repository, &options, watch).expect("restored");
    });
    compare(&["clean", "-f"], &[], |repository, watch| {
        clean::clean(repository, &clean::Options::default(), watch).expect("cleaned");
    });
}

#[test]
fn default_options_of_commit_and_exchange_are_those_of_git() {
    compare(
        &["commit", "-q", "-m", "three"],
        &[&["add", "."]],
        |repository, watch| {
            let mut options = commit::Options::default();
            options.message = "three\n".into();
            let outcome = commit::commit(repository, &options, watch);
            assert!(matches!(outcome, Ok(commit::Outcome::Done(_))));
        },
    );
    compare(&["fetch", "-q"], &[], |repository, watch| {
        let origin = Remote::find(repository, "origin".into()).expect("a remote");
        let outcome = fetch::fetch(repository, &origin, &fetch::Options::default(), watch);
        assert!(!outcome.expect("fetched").failed);
    });
    for settings in [
        &[][..],
        &["push.followTags=true"],
        &["push.default=current"],
    ] {
        let prepare: Vec<Vec<&str>> = settings
            .iter()
            .map(|setting| {
                let (key, value) = setting.split_once('=').expect("key=value");
                vec!["config", key, value]
            })
            .collect();
        let prepare: Vec<&[&str]> = prepare.iter().map(Vec::as_slice).collect();
        compare(&["push", "-q"], &prepare, |repository, watch| {
            let destination = PushRemote::default_of(repository).expect("origin");
            let mut options = push::Options::configured(repository.config()).expect("settings");
            let defaults = push::default_specs(repository, &destination, false).expect("specs");
            options.specs = defaults.specs;
            options.set_upstream = defaults.set_upstream;
            let url = destination.urls[0].as_bstr();
            let outcome = push::push(repository, &destination, url, &options, watch);
            assert!(!outcome.expect("pushed").has_errors());
        });
    }
}

#[test]
fn default_options_of_a_clone_are_those_of_git() {
    let sandbox = scene();
    let origin = sandbox.root.join("o.git").display().to_string();
    sandbox.git("", &["clone", "-q", &origin, "theirs"]);
    let mut environment = sandbox.environment("");
    environment.set("PATH", std::env::var_os("PATH").unwrap_or_default());
    let options = clone::Options::default();
    let place = sandbox.root.join("ours");
    _ = clone::clone(
        origin.as_bytes().as_bstr(),
        &place,
        &options,
        &environment,
        &Watch::none(),
    )
    .expect("cloned");
    let look = |directory: &str| {
        [
            &["for-each-ref"][..],
            &["ls-files", "-s"],
            &["config", "--local", "--list"],
        ]
        .map(|arguments| sandbox.git(directory, arguments))
    };
    assert_eq!(look("theirs"), look("ours"));
}
