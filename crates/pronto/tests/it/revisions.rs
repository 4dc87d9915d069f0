//! Compares parsed revisions with `git rev-parse`.

use pronto::revision::ExpectedType;
use pronto::{Error, ErrorKind};

use crate::support::Sandbox;

/// A history with a merge, tags of tags, a remote, a detached checkout and a conflict-free index.
fn history() -> Sandbox {
    let sandbox = Sandbox::new();
    sandbox.repository("r");
    let git = |arguments: &[&str]| sandbox.git("r", arguments);
    std::fs::create_dir_all(sandbox.root.join("r/dir/sub")).expect("directories");
    for (file, text) in [("a", "a"), ("dir/b", "b"), ("dir/sub/c", "c")] {
        std::fs::write(sandbox.root.join("r").join(file), text).expect("a file");
    }
    git(&["add", "."]);
    git(&["commit", "-q", "-m", "two: files\n\nwith a body"]);
    git(&["checkout", "-q", "-b", "side", "HEAD~1"]);
    git(&["commit", "-q", "--allow-empty", "-m", "three, aside"]);
    git(&["checkout", "-q", "main"]);
    git(&["merge", "-q", "-m", "four: merge", "side"]);
    git(&["tag", "light", "HEAD~1"]);
    git(&["tag", "-m", "tag", "heavy", "HEAD"]);
    git(&["tag", "-m", "tag of tag", "heavier", "heavy"]);
    git(&["tag", "-m", "tag of tree", "leafy", "HEAD^{tree}"]);
    git(&["branch", "light"]);
    git(&["config", "branch.main.remote", "origin"]);
    git(&["config", "branch.main.merge", "refs/heads/trunk"]);
    git(&[
        "config",
        "remote.origin.fetch",
        "+refs/heads/*:refs/remotes/origin/*",
    ]);
    git(&["update-ref", "refs/remotes/origin/trunk", "HEAD~1"]);
    git(&[
        "symbolic-ref",
        "refs/remotes/origin/HEAD",
        "refs/remotes/origin/trunk",
    ]);
    git(&["checkout", "-q", "--detach", "side"]);
    git(&["checkout", "-q", "main"]);
    sandbox
}

#[test]
fn every_way_of_naming_leads_where_git_goes() {
    let sandbox = history();
    let repository = sandbox.open("r");
    let whole = sandbox.git("r", &["rev-parse", "HEAD"]);
    let short = &whole[..8];
    let described = format!("heavy-3-g{short}");
    let specs = [
        "HEAD",
        "@",
        "main",
        "heads/main",
        "refs/heads/main",
        "light",
        "tags/light",
        "heavy",
        "heavier^{}",
        "heavier^{commit}",
        "heavier^{tag}",
        "heavier^{tree}",
        "heavy^{object}",
        "heavy^0",
        "leafy^{tree}",
        "leafy^{}",
        "leafy:a",
        "HEAD^",
        "HEAD^2",
        "HEAD^3",
        "HEAD~2",
        "HEAD~3",
        "HEAD~9",
        "HEAD^^{tree}",
        "HEAD^2~1",
        "HEAD~0",
        "HEAD^0",
        "main@{0}",
        "main@{1}",
        "main@{2}",
        "@{1}",
        "HEAD@{2}",
        "@{-1}",
        "@{-2}",
        "@{-3}",
        "@{-9}",
        "@{-1}~1",
        "@{u}",
        "main@{upstream}",
        "@{U}~1",
        "@@{u}",
        "origin",
        "origin/trunk",
        "origin/HEAD",
        "HEAD:",
        "HEAD:a",
        "HEAD:dir",
        "HEAD:dir/",
        "HEAD:dir/sub/c",
        "HEAD:nothing",
        "HEAD:a/b",
        "HEAD:./dir/b",
        ":a",
        ":0:dir/b",
        ":1:a",
        ":dir",
        ":/two",
        ":/three",
        ":/nothing at all",
        "HEAD^{/three}",
        "HEAD^{/body}",
        "HEAD^{/^four}",
        "HEAD^{/!-merge}",
        "HEAD^{/}",
        "HEAD^{/nothing}",
        &whole,
        short,
        &whole.to_uppercase(),
        &described,
        "nothing",
        "HEAD^{nonsense}",
        "HEAD^{",
        "HEAD~x",
        "",
        "^",
        "HEAD^-1",
        "main..side",
        "@{",
        "@{}",
        "0000000000000000000000000000000000000000",
        "abc",
        "refs/heads/*",
        "a b",
        "main@{99999999999}",
    ];
    for spec in specs {
        let output = std::process::Command::new("git")
            .args(["rev-parse", "-q", "--verify", spec])
            .current_dir(sandbox.root.join("r"))
            .env("HOME", &sandbox.root)
            .output()
            .expect("git can be started");
        let theirs = output
            .status
            .success()
            .then(|| String::from_utf8_lossy(&output.stdout).trim().to_owned());
        let ours = repository
            .try_resolve(spec, ExpectedType::Anything)
            .ok()
            .flatten();
        assert_eq!(ours.map(|id| id.to_string()), theirs, "{spec:?}");
    }
}

#[test]
fn what_cannot_be_is_explained() {
    let sandbox = history();
    let (repository, notices) = sandbox.open_noticing("r/dir");
    let reason = |spec: &str| -> Option<String> {
        match repository.try_resolve(spec, ExpectedType::Anything) {
            Ok(Some(id)) => panic!("{spec} is {id}"),
            Ok(None) => repository.explain_missing(spec.into()).err(),
            Err(error) => Some(error),
        }
        .map(|error: Error| error.message().to_owned())
    };
    for (spec, message) in [
        ("main@{40}", "log for 'main' only has 3 entries"),
        ("side@{u}", "no upstream configured for branch 'side'"),
        ("none@{u}", "no such branch: 'none'"),
        ("HEAD:none", "path 'none' does not exist in 'HEAD'"),
        (
            ":none",
            "path 'none' does not exist (neither on disk nor in the index)",
        ),
        (
            ":2:a",
            "path 'a' is in the index, but not at stage 2\nhint: Did you mean ':0:a'?",
        ),
        ("none:a", "invalid object name 'none'."),
        (
            "HEAD:b",
            "path 'dir/b' exists, but not 'b'\nhint: Did you mean 'HEAD:dir/b' aka 'HEAD:./b'?",
        ),
        (
            "heavy^{blob}",
            "heavy^{blob}: expected blob type, but the object dereferences to tree type",
        ),
    ] {
        assert_eq!(reason(spec).as_deref(), Some(message), "{spec}");
    }
    let error = repository.resolve("nothing").expect_err("it names nothing");
    assert_eq!(error.kind(), ErrorKind::UnknownRevision);
    assert_eq!(
        repository
            .resolve("light")
            .expect("a tag first")
            .to_string()
            .len(),
        40
    );
    let notices = notices.take();
    assert!(
        matches!(notices.last(), Some(pronto::Notice::AmbiguousName(name)) if name == "light"),
        "{notices:?}"
    );
}

#[test]
fn short_ids_that_several_objects_have_are_listed_or_decided_by_kind() {
    let sandbox = Sandbox::new();
    sandbox.repository("r");
    for number in 0..300 {
        std::fs::write(
            sandbox.root.join(format!("r/f{number}")),
            format!("{number}\n"),
        )
        .expect("a file");
    }
    sandbox.git("r", &["add", "."]);
    sandbox.git("r", &["commit", "-q", "-m", "many"]);
    let all = sandbox.git(
        "r",
        &[
            "cat-file",
            "--batch-all-objects",
            "--batch-check=%(objectname)",
        ],
    );
    let ids: Vec<&str> = all.lines().collect();
    let repository = sandbox.open("r");
    for id in ids.iter().step_by(30) {
        let short = repository
            .abbreviate_to(&repository.resolve(id).expect("it is there"), 4)
            .expect("readable");
        assert_eq!(short, sandbox.git("r", &["rev-parse", "--short=4", id]));
    }
    let shared = ids.windows(2).find(|pair| pair[0][..4] == pair[1][..4]);
    if let Some(pair) = shared {
        let error = repository.resolve(&pair[0][..4]).expect_err("two have it");
        assert_eq!(error.kind(), ErrorKind::Ambiguous);
        assert!(
            error
                .hint()
                .is_some_and(|hint| hint.starts_with("The candidates are:\n  "))
        );
    }
}

#[test]
fn merge_bases_are_the_best_common_ancestors() {
    let sandbox = history();
    let repository = sandbox.open("r");
    for (left, right) in [
        ("main", "side"),
        ("main~1", "side"),
        ("main", "main"),
        ("light", "main"),
    ] {
        let theirs = sandbox.git("r", &["merge-base", "--all", left, right]);
        let id = |name| repository.resolve_commit(name).expect("it is there");
        let ours = repository
            .merge_bases(id(left), id(right))
            .expect("readable");
        let ours: Vec<String> = ours.iter().map(ToString::to_string).collect();
        assert_eq!(ours.join("\n"), theirs, "{left} {right}");
    }
}
