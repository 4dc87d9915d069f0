//! Stacks: records hidden by newer tables, transactions, compaction.

use std::ops::ControlFlow;
use std::path::Path;

use bstr::{BStr, BString};
use pronto_hash::Kind;
use pronto_refs::reftable::{
    Additions, ErrorKind, LogExpiryLimits, LogRecord, RefRecord, RefValue, ReftableStack,
    StackOptions, StackSnapshot,
};

use crate::support::{id, log};

fn options() -> StackOptions {
    let mut options = StackOptions::default();
    options.auto_compact = false;
    options
}

fn open(directory: &Path, options: StackOptions) -> ReftableStack {
    ReftableStack::open(directory, Kind::Sha1, options).expect("a stack")
}

/// Runs a transaction that sets `name` to the object `number`, or deletes it, with a reflog entry.
fn update(stack: &ReftableStack, name: &str, number: Option<u64>) {
    let mut transaction = stack.begin().expect("nobody has the lock");
    let update_index = transaction.next_update_index();
    let (object, pair) = (
        id(Kind::Sha1, number.unwrap_or(0)),
        [id(Kind::Sha1, 1), id(Kind::Sha1, 2)],
    );
    let mut additions = Additions::at(update_index);
    additions.refs.push(RefRecord {
        name: BStr::new(name),
        update_index,
        value: number.map_or(RefValue::Deletion, |_| RefValue::Direct(&object)),
    });
    additions.logs.push(log(name, update_index, &pair));
    transaction.add(&mut additions).expect("fine records");
    transaction.commit().expect("nothing is in the way");
}

fn names(snapshot: &StackSnapshot) -> Vec<BString> {
    let mut names = Vec::new();
    let mut refs = snapshot.refs().expect("no fault");
    while let Some(record) = refs.next().expect("no fault") {
        names.push(record.name.into());
    }
    names
}

fn logged(snapshot: &StackSnapshot, name: &str) -> Vec<u64> {
    let mut indexes = Vec::new();
    let mut logs = snapshot.log_of(name).expect("no fault");
    while let Some(record) = logs.next().expect("no fault") {
        assert_eq!(record.name, name);
        indexes.push(record.update_index);
    }
    indexes
}

#[test]
fn newer_tables_hide_older_ones() {
    let directory = tempfile::tempdir().expect("a directory");
    let stack = open(directory.path(), options());
    let before = stack.snapshot().expect("empty");
    for (name, number) in [
        ("refs/a/x", Some(1)),
        ("refs/b/y", Some(2)),
        ("refs/b/z", Some(1)),
    ] {
        update(&stack, name, number);
    }
    update(&stack, "refs/b/y", None);
    update(&stack, "refs/a/x", Some(3));
    let snapshot = stack.snapshot().expect("five tables");
    assert_eq!(snapshot.tables().len(), 5);
    assert!(names(&before).is_empty());
    assert_eq!(names(&snapshot), ["refs/a/x", "refs/b/z"]);
    assert!(snapshot.find("refs/b/y").expect("no fault").is_none());
    let found = snapshot
        .find("refs/a/x")
        .expect("no fault")
        .expect("it is there");
    assert_eq!(
        (found.update_index, found.value),
        (5, RefValue::Direct(&id(Kind::Sha1, 3)))
    );
    let mut below = snapshot.refs_with_prefix("refs/b/").expect("no fault");
    assert_eq!(
        below.next().expect("no fault").map(|record| record.name),
        Some("refs/b/z".into())
    );
    assert!(below.next().expect("no fault").is_none());
    let mut found = Vec::new();
    let visit = |record: RefRecord<'_>| {
        found.push(BString::from(record.name));
        ControlFlow::Continue(())
    };
    snapshot
        .find_object(&id(Kind::Sha1, 1), visit)
        .expect("no fault");
    assert_eq!(found, ["refs/b/z"]);
    assert_eq!(logged(&snapshot, "refs/a/x"), [5, 1]);
    assert_eq!(logged(&snapshot, "refs/b/y"), [4, 2]);
}

#[test]
fn compaction_changes_nothing_that_can_be_seen() {
    let directory = tempfile::tempdir().expect("a directory");
    let stack = open(directory.path(), options());
    for number in 0..40 {
        update(
            &stack,
            &format!("refs/heads/x{}", number % 9),
            (number % 5 > 0).then_some(number),
        );
    }
    let before = stack.snapshot().expect("forty tables");
    let seen = names(&before);
    assert!(stack.auto_compact().expect("nobody else does"));
    let between = stack.snapshot().expect("fewer tables");
    assert_eq!(names(&between), seen);
    stack.compact_all(None).expect("nobody else does");
    let after = stack.snapshot().expect("one table");
    assert_eq!(after.tables().len(), 1);
    assert_eq!(names(&after), seen);
    assert_eq!(names(&before), seen, "a snapshot stays readable");
    for number in 0..9 {
        let name = format!("refs/heads/x{number}");
        assert_eq!(logged(&after, &name), logged(&before, &name));
    }
    // Only the list and its table remain.
    let left = std::fs::read_dir(directory.path())
        .expect("it is there")
        .count();
    assert_eq!(left, 2);
    assert!(!stack.compact_all(None).expect("nothing to do"));
}

#[test]
fn automatic_compaction_keeps_few_tables() {
    let directory = tempfile::tempdir().expect("a directory");
    let stack = open(directory.path(), StackOptions::default());
    for number in 0..200 {
        update(&stack, &format!("refs/heads/x{number}"), Some(number));
        let tables = stack.snapshot().expect("no fault").tables().len();
        assert!(tables <= 9, "{tables} tables after {number}");
    }
    assert_eq!(names(&stack.snapshot().expect("no fault")).len(), 200);
    assert!(!stack.needs_compaction().expect("no fault"));
}

#[test]
fn entries_of_reflogs_expire_and_are_deleted() {
    let directory = tempfile::tempdir().expect("a directory");
    let stack = open(directory.path(), options());
    for number in 0..6 {
        update(&stack, "refs/heads/main", Some(number));
    }
    let mut transaction = stack.begin().expect("nobody has the lock");
    let update_index = transaction.next_update_index();
    let mut additions = Additions::at(update_index);
    additions.logs.push(LogRecord {
        name: BStr::new("refs/heads/main"),
        update_index: 5,
        entry: None,
    });
    transaction.add(&mut additions).expect("a fine record");
    transaction.commit().expect("nothing is in the way");
    assert_eq!(
        logged(&stack.snapshot().expect("no fault"), "refs/heads/main"),
        [6, 4, 3, 2, 1]
    );
    let expiry = LogExpiryLimits {
        before: 0,
        below: 3,
    };
    assert!(stack.compact_all(Some(&expiry)).expect("nobody else does"));
    assert_eq!(
        logged(&stack.snapshot().expect("no fault"), "refs/heads/main"),
        [6, 4, 3]
    );
    let expiry = LogExpiryLimits {
        before: u64::MAX,
        below: 0,
    };
    assert!(stack.compact_all(Some(&expiry)).expect("one table will do"));
    assert!(logged(&stack.snapshot().expect("no fault"), "refs/heads/main").is_empty());
}

#[test]
fn a_stack_without_anything_left_has_no_tables() {
    let directory = tempfile::tempdir().expect("a directory");
    let stack = open(directory.path(), options());
    update(&stack, "refs/heads/main", Some(1));
    update(&stack, "refs/heads/main", None);
    let expiry = LogExpiryLimits {
        before: u64::MAX,
        below: 0,
    };
    assert!(stack.compact_all(Some(&expiry)).expect("nobody else does"));
    assert_eq!(stack.snapshot().expect("no fault").tables().len(), 0);
    update(&stack, "refs/heads/main", Some(2));
    assert_eq!(
        names(&stack.snapshot().expect("no fault")),
        ["refs/heads/main"]
    );
}

#[test]
fn locks_shut_others_out() {
    let directory = tempfile::tempdir().expect("a directory");
    let stack = open(directory.path(), options());
    update(&stack, "refs/heads/a", Some(1));
    update(&stack, "refs/heads/b", Some(1));
    let transaction = stack.begin().expect("nobody has the lock");
    let error = stack.begin().expect_err("it is held");
    assert_eq!(error.kind(), ErrorKind::Locked);
    drop(transaction);
    let names: Vec<String> = std::fs::read_to_string(directory.path().join("tables.list"))
        .expect("it is there")
        .lines()
        .map(str::to_owned)
        .collect();
    let held = directory.path().join(format!("{}.lock", names[0]));
    std::fs::write(&held, "").expect("it is ours");
    let error = stack.compact_all(None).expect_err("one of them is locked");
    assert_eq!(error.kind(), ErrorKind::Locked);
    update(&stack, "refs/heads/c", Some(1));
    // Two tables are not locked.
    assert!(stack.auto_compact().expect("these are free"));
    assert_eq!(stack.snapshot().expect("no fault").tables().len(), 2);
}

#[test]
fn a_transaction_that_is_dropped_leaves_nothing() {
    let directory = tempfile::tempdir().expect("a directory");
    let stack = open(directory.path(), options());
    let mut transaction = stack.begin().expect("nobody has the lock");
    let update_index = transaction.next_update_index();
    let mut additions = Additions::at(update_index);
    let object = id(Kind::Sha1, 1);
    additions.refs.push(RefRecord {
        name: BStr::new("refs/heads/main"),
        update_index,
        value: RefValue::Direct(&object),
    });
    transaction.add(&mut additions).expect("a fine record");
    drop(transaction);
    let left = std::fs::read_dir(directory.path())
        .expect("it is there")
        .count();
    assert_eq!(left, 0);
}

#[test]
fn tables_that_nobody_names_are_removed() {
    let directory = tempfile::tempdir().expect("a directory");
    let stack = open(directory.path(), options());
    update(&stack, "refs/heads/a", Some(1));
    update(&stack, "refs/heads/a", Some(2));
    let stray = directory
        .path()
        .join("0x000000000001-0x000000000001-00000000.ref");
    let named = stack.snapshot().expect("no fault");
    let path = named.tables().next().expect("two tables").path().to_owned();
    std::fs::copy(path, &stray).expect("it is ours");
    std::fs::write(directory.path().join("broken.ref"), "x").expect("it is ours");
    assert_eq!(stack.clean().expect("nobody has the lock"), 1);
    assert!(!stray.exists());
    assert_eq!(
        names(&stack.snapshot().expect("no fault")),
        ["refs/heads/a"]
    );
}

#[test]
fn lists_that_lead_astray_are_errors() {
    let directory = tempfile::tempdir().expect("a directory");
    let list = directory.path().join("tables.list");
    for (content, kind) in [
        ("../x.ref\n", ErrorKind::Corrupt),
        ("x.ref", ErrorKind::Corrupt),
        ("x.ref\n", ErrorKind::Missing),
    ] {
        std::fs::write(&list, content).expect("it is ours");
        let error = ReftableStack::open(directory.path(), Kind::Sha1, options()).expect_err("no");
        assert_eq!(error.kind(), kind, "{error}");
    }
}
