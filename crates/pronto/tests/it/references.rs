//! Tests of reading refs.

use std::ops::ControlFlow;

use pronto::refs::HeadValue;

use crate::support::Sandbox;

#[test]
fn loose_and_packed_references_are_one_sorted_list() {
    let sandbox = Sandbox::new();
    sandbox.repository("r");
    for name in ["a", "b/c", "z"] {
        sandbox.git("r", &["branch", name]);
    }
    sandbox.git("r", &["tag", "-m", "t", "v1"]);
    sandbox.git("r", &["pack-refs", "--all"]);
    sandbox.git("r", &["commit", "-q", "--allow-empty", "-m", "two"]);
    sandbox.git("r", &["branch", "-f", "b/c"]);
    sandbox.git("r", &["branch", "b/d"]);
    sandbox.git(
        "r",
        &["symbolic-ref", "refs/remotes/o/HEAD", "refs/heads/a"],
    );
    let repository = sandbox.open("r");
    let mut lines = Vec::new();
    let visit = |found: pronto::refs::ReferenceRef<'_>| {
        lines.push(format!("{} {}", found.id, found.name));
        Ok(ControlFlow::Continue(()))
    };
    repository
        .refs()
        .for_each("refs/", visit)
        .expect("readable");
    assert_eq!(lines.join("\n"), sandbox.git("r", &["show-ref"]));
    let names = |prefix: &str| -> Vec<String> {
        let all = repository.refs().all(prefix).expect("readable");
        all.iter().map(|found| found.name.to_string()).collect()
    };
    assert_eq!(names("refs/heads/b"), ["refs/heads/b/c", "refs/heads/b/d"]);
    assert_eq!(names("refs/heads/b/d"), ["refs/heads/b/d"]);
    let tag = repository
        .refs()
        .find("refs/tags/v1")
        .expect("readable")
        .expect("there");
    let commit = sandbox.git("r", &["rev-parse", "v1^{}"]);
    assert_eq!(tag.peeled.map(|id| id.to_string()), Some(commit));
}

#[test]
fn head_is_on_a_branch_or_not() {
    let sandbox = Sandbox::new();
    sandbox.git("", &["init", "-q", "-b", "main", "r"]);
    let repository = sandbox.open("r");
    let unborn = HeadValue::Unborn {
        name: "refs/heads/main".into(),
    };
    assert_eq!(repository.head().expect("a head"), unborn);
    sandbox.git("r", &["commit", "-q", "--allow-empty", "-m", "one"]);
    let id = sandbox.git("r", &["rev-parse", "HEAD"]);
    let head = repository.head().expect("a head");
    assert_eq!(head.branch(), Some("main".into()));
    assert_eq!(head.id().map(|id| id.to_string()), Some(id));
    sandbox.git("r", &["checkout", "-q", "--detach"]);
    assert!(matches!(
        repository.head().expect("a head"),
        HeadValue::Detached { .. }
    ));
}
