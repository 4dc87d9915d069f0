//! Tests of lock files.

use super::*;
use test_support::{Need, lacks};

fn cannot_be_had(target: &Path) -> bool {
    let error = LockFile::acquire(target, Marking::Marked, Duration::ZERO).map(|_| ());
    error.is_err_and(|error| error.kind() == ErrorKind::Held)
}

fn lock(target: &Path, marking: Marking, patience: Duration) -> LockFile {
    LockFile::acquire(target, marking, patience).expect("nobody has it")
}

/// Drops `lock` as if its process were killed: the files stay, the descriptor is closed.
fn kill(lock: LockFile) {
    lock.guard.keep();
    if let Some(process) = lock.process {
        process.keep();
    }
}

#[test]
fn a_lock_is_waited_for() {
    let directory = tempfile::tempdir().expect("a directory");
    let target = directory.path().join("file");
    for marking in [Marking::Marked, Marking::Plain] {
        let first = lock(&target, marking, Duration::ZERO);
        assert!(cannot_be_had(&target));
        let waiter = std::thread::spawn({
            let target = target.clone();
            move || LockFile::acquire(target, marking, Duration::MAX)
        });
        drop(first);
        let next = waiter.join().expect("no panic").expect("it was given back");
        assert!(next.path().exists());
    }
    assert!(!cannot_be_had(&target));
}

#[test]
fn an_old_lock_is_not_waited_for_long() {
    let directory = tempfile::tempdir().expect("a directory");
    let target = directory.path().join("file");
    let first = lock(&target, Marking::Plain, Duration::ZERO);
    let long_ago = std::time::SystemTime::now() - 2 * OLD;
    let file = first.file().expect("it is open");
    file.set_modified(long_ago).expect("it is ours");
    let error = LockFile::acquire(&target, Marking::Marked, Duration::MAX);
    assert_eq!(error.expect_err("it is held").kind(), ErrorKind::Held);
}

#[test]
fn the_lock_of_a_dead_holder_is_taken_over() {
    let directory = tempfile::tempdir().expect("a directory");
    let target = directory.path().join("file");
    let mut first = lock(&target, Marking::Marked, Duration::ZERO);
    if !first.created.as_ref().is_some_and(|file| file.is_marked) {
        lacks!(Need::NamelessFiles, "its file has a name");
    }
    first.write(b"half of it").expect("it can be written");
    assert!(cannot_be_had(&target));
    let record = directory.path().join("file~pid.lock");
    std::fs::write(&record, "pid 1\n").expect("it can be written");
    let path = first.path().to_owned();
    assert!(is_held(&path));
    kill(first);
    assert!(!is_held(&path));
    let next = lock(&target, Marking::Plain, Duration::ZERO);
    let file = next.file().expect("it is open");
    assert_eq!(file.metadata().expect("it is open").len(), 0);
    assert!(!record.exists(), "it names a process that holds nothing");
    assert!(cannot_be_had(&target));
    let mut next = next;
    let created = next.created.as_mut().expect("it is open");
    created.unmark().expect("it can be");
    kill(next);
    assert!(cannot_be_had(&target), "without a mark nobody knows");
    assert!(is_held(&path));
    assert!(!is_held(&target.with_extension("other")));
}

#[test]
fn a_lock_that_others_get_is_waited_for_longer() {
    let directory = tempfile::tempdir().expect("a directory");
    let target = directory.path().join("file");
    let path = directory.path().join("file.lock");
    let first = lock(&target, Marking::Plain, Duration::ZERO);
    let now = Instant::now();
    let mut wait = LockWait::begin(&path, PATIENCE);
    wait.deadline = Some(now);
    assert!(!wait.pause(&path), "the same holder has it");
    let file = first.file().expect("it is open");
    let earlier = std::time::SystemTime::now() - Duration::from_secs(1);
    file.set_modified(earlier).expect("it is ours");
    wait.deadline = Some(now);
    assert!(wait.pause(&path), "it has changed");
    wait.deadline = Some(now);
    assert!(!wait.pause(&path), "it has not changed since");
    let mut wait = LockWait::begin(&path, Duration::from_millis(1));
    wait.deadline = Some(now);
    wait.seen = None;
    assert!(!wait.pause(&path), "a time that is configured is kept");
}

#[test]
fn only_the_lock_that_is_recorded_names_its_holder() {
    let directory = tempfile::tempdir().expect("a directory");
    let (target, other) = (
        directory.path().join("file"),
        directory.path().join("other"),
    );
    let mut first = lock(&target, Marking::Marked, Duration::ZERO);
    first.record_process();
    let second = lock(&other, Marking::Marked, Duration::ZERO);
    let record = directory.path().join("file~pid.lock");
    let content = std::fs::read(&record).expect("it is recorded");
    assert_eq!(recorded_process(&content), Some(std::process::id().into()));
    assert!(!directory.path().join("other~pid.lock").exists());
    drop(first);
    assert!(!record.exists());
    drop(second);
}
