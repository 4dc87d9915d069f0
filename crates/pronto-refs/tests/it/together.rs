//! Git and pronto write, read and compact at the same time.

use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use bstr::BStr;
use pronto_hash::Kind;
use pronto_refs::reftable::{
    Additions, RefRecord, RefValue, ReftableStack, StackOptions, StackSnapshot,
};

use crate::support::{Repository, id};

fn count(snapshot: &StackSnapshot) -> usize {
    let mut count = 0;
    let mut refs = snapshot.refs_with_prefix("refs/").expect("no fault");
    while refs.next().expect("no fault").is_some() {
        count += 1;
    }
    count
}

fn create(stack: &ReftableStack, name: &str) {
    let mut transaction = stack.begin().expect("the lock is waited for");
    let update_index = transaction.next_update_index();
    assert!(
        transaction
            .snapshot()
            .find(name)
            .expect("no fault")
            .is_none()
    );
    let object = id(stack.kind(), 1);
    let mut additions = Additions::at(update_index);
    additions.refs.push(RefRecord {
        name: BStr::new(name),
        update_index,
        value: RefValue::Direct(&object),
    });
    transaction.add(&mut additions).expect("a fine record");
    transaction.commit().expect("nothing is in the way");
}

fn patient() -> StackOptions {
    let mut options = StackOptions::default();
    options.lock_timeout = Duration::MAX;
    options
}

#[test]
fn threads_write_and_read_at_once() {
    let directory = tempfile::tempdir().expect("a directory");
    let is_over = AtomicBool::new(false);
    std::thread::scope(|scope| {
        let reader = scope.spawn(|| {
            let stack =
                ReftableStack::open(directory.path(), Kind::Sha1, patient()).expect("a stack");
            let mut last = 0;
            while !is_over.load(Ordering::Relaxed) {
                let now = count(&stack.snapshot().expect("compaction is no error"));
                assert!(now >= last, "nothing is deleted");
                last = now;
            }
        });
        let writers: Vec<_> = (0..3)
            .map(|writer| {
                let directory = directory.path();
                scope.spawn(move || {
                    let stack =
                        ReftableStack::open(directory, Kind::Sha1, patient()).expect("a stack");
                    for number in 0..60 {
                        create(&stack, &format!("refs/heads/{writer}/{number}"));
                    }
                })
            })
            .collect();
        for writer in writers {
            writer.join().expect("no panic");
        }
        is_over.store(true, Ordering::Relaxed);
        reader.join().expect("no panic");
    });
    let stack = ReftableStack::open(directory.path(), Kind::Sha1, patient()).expect("a stack");
    assert_eq!(count(&stack.snapshot().expect("no fault")), 180);
}

#[test]
fn git_and_we_write_at_once() {
    let Some(repository) = Repository::new("sha1") else {
        return;
    };
    repository.run(&["config", "reftable.lockTimeout", "-1"], "");
    let commit = repository.commits(1)[0].to_string();
    let tables = repository.tables();
    let stack = ReftableStack::open(&tables, Kind::Sha1, patient()).expect("a stack");
    std::thread::scope(|scope| {
        let ours = scope.spawn(|| {
            for number in 0..100 {
                create(&stack, &format!("refs/ours/{number}"));
                if number % 25 == 0 {
                    // Git may be compacting too.
                    let _ = stack.compact_all(None);
                }
            }
        });
        let theirs = scope.spawn(|| {
            for number in 0..60 {
                let name = format!("refs/heads/{number}");
                repository.run(&["update-ref", &name, &commit], "");
            }
        });
        let reader = scope.spawn(|| {
            let mut last = 0;
            for _ in 0..40 {
                let listed = repository.run(&["for-each-ref", "--format=%(refname)"], "");
                let now = listed.lines().count();
                assert!(now >= last, "nothing is deleted");
                last = now;
            }
        });
        for thread in [ours, theirs, reader] {
            thread.join().expect("no panic");
        }
    });
    assert_eq!(count(&stack.snapshot().expect("no fault")), 160);
    let listed = repository.run(&["for-each-ref", "--format=%(refname)"], "");
    assert_eq!(listed.lines().count(), 160);
    repository.run(&["refs", "verify"], "");
}
