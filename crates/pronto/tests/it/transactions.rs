//! Tests of ref transactions.

use pronto::ErrorKind;
use pronto::refs::{ExpectedValue, RefName};
use pronto_hash::ObjectId;

use crate::support::Sandbox;

fn id(hex: &str) -> ObjectId {
    ObjectId::from_hex(hex.as_bytes()).expect("an id")
}

fn name(text: &str) -> RefName {
    RefName::new(text).expect("a name")
}

fn two_commits() -> (Sandbox, ObjectId, ObjectId) {
    let sandbox = Sandbox::new();
    sandbox.repository("r");
    let one = sandbox.git("r", &["rev-parse", "HEAD"]);
    sandbox.git("r", &["commit", "-q", "--allow-empty", "-m", "two"]);
    let two = sandbox.git("r", &["rev-parse", "HEAD"]);
    (sandbox, id(&one), id(&two))
}

#[test]
fn head_and_its_branch_are_logged_together() {
    let (sandbox, one, two) = two_commits();
    let repository = sandbox.open("r");
    let mut change = repository.transaction();
    change.update(
        "HEAD",
        one,
        ExpectedValue::Object(two),
        "reset:  moving\nto one",
    );
    change.commit().expect("it can be changed");
    assert_eq!(
        sandbox.git("r", &["rev-parse", "refs/heads/main"]),
        one.to_string()
    );
    for name in ["HEAD", "refs/heads/main"] {
        let log = repository
            .refs()
            .log(name)
            .expect("readable")
            .expect("there");
        let line = log.newest_first().next().expect("a line");
        assert_eq!((line.old, line.new), (two, one));
        assert_eq!(line.message, "reset: moving to one");
        assert_eq!(line.who, "C O Mitter <committer@example.com>");
        assert_eq!((line.seconds, line.zone), (1_112_911_993, "-0700".into()));
    }
    let mut change = repository.transaction();
    change.update("refs/heads/main", two, ExpectedValue::Anything, "back");
    change.commit().expect("it can be changed");
    let log = repository
        .refs()
        .log("HEAD")
        .expect("readable")
        .expect("there");
    assert_eq!(log.newest_first().next().expect("a line").message, "back");
    assert_eq!(sandbox.git("r", &["fsck", "--strict"]), "");
}

#[test]
fn symbolic_and_detached_heads() {
    let (sandbox, one, two) = two_commits();
    let repository = sandbox.open("r");
    let mut change = repository.transaction();
    change.detach("HEAD", one, ExpectedValue::Anything, "away");
    change.commit().expect("it can be changed");
    assert_eq!(repository.head().expect("a head").name(), None);
    assert_eq!(sandbox.git("r", &["rev-parse", "main"]), two.to_string());
    let mut change = repository.transaction();
    change.set_symbolic("HEAD", name("refs/heads/main"), Some("home".into()));
    change.commit().expect("it can be changed");
    assert_eq!(
        sandbox.git("r", &["symbolic-ref", "HEAD"]),
        "refs/heads/main"
    );
    let log = repository
        .refs()
        .log("HEAD")
        .expect("readable")
        .expect("there");
    let line = log.newest_first().next().expect("a line");
    assert_eq!(
        (line.old, line.new, line.message),
        (one, two, "home".into())
    );
}

#[test]
fn nothing_changes_unless_everything_can() {
    let (sandbox, one, two) = two_commits();
    sandbox.git("r", &["branch", "a/b"]);
    sandbox.git("r", &["pack-refs", "--all"]);
    let repository = sandbox.open("r");
    let refused = |name: &str, id: ObjectId, expected: ExpectedValue| {
        let mut change = repository.transaction();
        change.update("refs/heads/first", one, ExpectedValue::Missing, "");
        change.update(name, id, expected, "");
        let error = change.commit().expect_err("it must be refused").to_string();
        assert_eq!(
            repository
                .refs()
                .find("refs/heads/first")
                .expect("readable"),
            None
        );
        error
    };
    let lock = |name: &str, why: &str| format!("cannot lock ref '{name}': {why}");
    for (name, expected, message) in [
        (
            "refs/heads/a",
            ExpectedValue::Anything,
            lock(
                "refs/heads/a",
                "'refs/heads/a/b' exists; cannot create 'refs/heads/a'",
            ),
        ),
        (
            "refs/heads/main/x",
            ExpectedValue::Anything,
            lock(
                "refs/heads/main/x",
                "'refs/heads/main' exists; cannot create 'refs/heads/main/x'",
            ),
        ),
        (
            "refs/heads/first/x",
            ExpectedValue::Anything,
            lock(
                "refs/heads/first",
                "cannot process 'refs/heads/first' and 'refs/heads/first/x' at the same time",
            ),
        ),
        (
            "refs/heads/main",
            ExpectedValue::Object(one),
            lock(
                "refs/heads/main",
                &format!("is at {two} but expected {one}"),
            ),
        ),
        (
            "refs/heads/main",
            ExpectedValue::Missing,
            lock("refs/heads/main", "reference already exists"),
        ),
        (
            "refs/heads/none",
            ExpectedValue::Object(one),
            lock(
                "refs/heads/none",
                "unable to resolve reference 'refs/heads/none'",
            ),
        ),
        (
            "refs/heads/bad..name",
            ExpectedValue::Anything,
            "refusing to update ref with bad name 'refs/heads/bad..name'".into(),
        ),
        (
            "refs/heads/first",
            ExpectedValue::Anything,
            "multiple updates for ref 'refs/heads/first' not allowed".into(),
        ),
    ] {
        assert_eq!(refused(name, one, expected), message);
    }
    std::fs::write(sandbox.root.join("r/.git/refs/heads/held.lock"), "").expect("a lock");
    let error = refused("refs/heads/held", one, ExpectedValue::Anything);
    assert!(
        error.starts_with("cannot lock ref 'refs/heads/held': Unable to create '"),
        "{error}"
    );
    assert!(error.ends_with("or the lock file may be stale"), "{error}");
}

#[test]
fn removed_references_are_gone_for_good() {
    let (sandbox, _, two) = two_commits();
    for name in ["a/b", "a/c", "loose/x"] {
        sandbox.git("r", &["branch", name]);
    }
    sandbox.git("r", &["tag", "-m", "t", "v1"]);
    sandbox.git("r", &["pack-refs", "--all"]);
    sandbox.git("r", &["branch", "-f", "a/b", "HEAD~1"]);
    let repository = sandbox.open("r");
    let mut change = repository.transaction();
    change.delete("refs/heads/a/b", ExpectedValue::Anything);
    change.delete("refs/heads/loose/x", ExpectedValue::Object(two));
    change.commit().expect("they can be removed");
    let left = sandbox.git("r", &["for-each-ref", "--format=%(refname)"]);
    assert_eq!(left, "refs/heads/a/c\nrefs/heads/main\nrefs/tags/v1");
    assert!(!sandbox.root.join("r/.git/logs/refs/heads/a/b").exists());
    assert!(!sandbox.root.join("r/.git/refs/heads/loose").exists());
    assert!(!sandbox.root.join("r/.git/packed-refs.lock").exists());
    let mut change = repository.transaction();
    change.update("refs/heads/a/c/d", two, ExpectedValue::Missing, "");
    change.delete("refs/heads/a/c", ExpectedValue::Anything);
    assert_eq!(
        change.commit().expect_err("both at once").kind(),
        ErrorKind::NameConflict
    );
}

#[test]
fn the_hook_sees_every_state_and_may_refuse() {
    let (sandbox, one, two) = two_commits();
    let hook = sandbox.root.join("r/.git/hooks/reference-transaction");
    let script = "#!/bin/sh\nread line\necho \"$1 $line\" >>\"$GIT_DIR/seen\" || echo \"$1 $line\" \
                  >>.git/seen\ncase $line in *refused) test \"$1\" != prepared;; esac\n";
    std::fs::create_dir_all(hook.parent().expect("a parent")).expect("a directory");
    std::fs::write(&hook, script).expect("a hook");
    let executable = std::os::unix::fs::PermissionsExt::from_mode(0o755);
    std::fs::set_permissions(&hook, executable).expect("it is ours");
    let mut environment = sandbox.environment("r");
    environment.set("GIT_DIR", ".git");
    let repository = pronto::Repository::discover(".", &environment).expect("a repository");
    let mut change = repository.transaction();
    change.update("refs/heads/main", one, ExpectedValue::Object(two), "x");
    change.commit().expect("the hook lets it pass");
    let mut change = repository.transaction();
    change.update("refs/heads/refused", one, ExpectedValue::Anything, "x");
    let error = change.commit().expect_err("the hook refuses");
    assert_eq!(error.kind(), ErrorKind::Hook);
    assert_eq!(
        repository
            .refs()
            .find("refs/heads/refused")
            .expect("readable"),
        None
    );
    let seen = std::fs::read_to_string(sandbox.root.join("r/.git/seen")).expect("it ran");
    let null = "0".repeat(40);
    let expected = format!(
        "preparing {two} {one} refs/heads/main\nprepared {two} {one} refs/heads/main\n\
         committed {two} {one} refs/heads/main\npreparing {null} {one} refs/heads/refused\n\
         prepared {null} {one} refs/heads/refused\naborted {null} {one} refs/heads/refused\n"
    );
    assert_eq!(seen, expected);
}

#[test]
fn a_new_repository_gets_its_references_at_once() {
    let (sandbox, one, two) = two_commits();
    sandbox.git("", &["init", "-q", "-b", "main", "new"]);
    let objects = sandbox.root.join("r/.git/objects");
    let alternates = sandbox.root.join("new/.git/objects/info/alternates");
    std::fs::write(alternates, objects.to_str().expect("text")).expect("it is ours");
    let repository = sandbox.open("new");
    let mut change = repository.transaction();
    change.update("refs/remotes/origin/main", two, ExpectedValue::Missing, "");
    change.update("refs/tags/v1", one, ExpectedValue::Missing, "");
    change.update("refs/remotes/origin/a/b", one, ExpectedValue::Missing, "");
    change.set_symbolic(
        "refs/remotes/origin/HEAD",
        name("refs/remotes/origin/main"),
        None,
    );
    change.commit_initial().expect("they can be made");
    let refs = sandbox.git(
        "new",
        &["for-each-ref", "--format=%(refname) %(objectname)"],
    );
    let expected = format!(
        "refs/remotes/origin/HEAD {two}\nrefs/remotes/origin/a/b {one}\n\
         refs/remotes/origin/main {two}\nrefs/tags/v1 {one}"
    );
    assert_eq!(refs, expected);
    assert!(!sandbox.root.join("new/.git/refs/tags/v1").exists());
}

#[test]
fn no_change_leads_out_of_the_repository() {
    let (sandbox, one, two) = two_commits();
    sandbox.repository("neighbour");
    let before = sandbox.git("neighbour", &["rev-parse", "refs/heads/main"]);
    for target in [
        "refs/heads/../../../../neighbour/.git/refs/heads/main",
        "../../neighbour/.git/refs/heads/main",
        "refs/../config",
        "config",
        "/tmp/reference",
        "refs/heads/a..b",
        "refs/heads/a.lock",
    ] {
        let head = sandbox.root.join("r/.git/refs/heads/link");
        std::fs::write(head, format!("ref: {target}\n")).expect("it is ours");
        let repository = sandbox.open("r");
        let mut change = repository.transaction();
        change.update("refs/heads/link", one, ExpectedValue::Anything, "");
        let error = change.commit().expect_err("it leads elsewhere");
        assert_eq!(error.kind(), ErrorKind::Reference, "{target}");
        assert!(repository.refs().resolve("refs/heads/link").is_err());
        assert_eq!(
            repository
                .refs()
                .log(target)
                .expect("no file is read")
                .map(|_| ()),
            None
        );
        let mut change = repository.transaction();
        change.set_symbolic("refs/heads/link", name("refs/heads/main"), None);
        change.commit().expect("a broken one can be replaced");
        assert_eq!(sandbox.git("r", &["rev-parse", "link"]), two.to_string());
    }
    let after = sandbox.git("neighbour", &["rev-parse", "refs/heads/main"]);
    assert_eq!(after, before);
}
