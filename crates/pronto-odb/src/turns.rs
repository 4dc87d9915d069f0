//! The lock between processes that write objects and processes that delete objects.
//!
//! A writer holds a shared lock from its first decision that an object need not be written until
//! its refs are set. A pruner holds the lock exclusively while it decides again and deletes. Both
//! locks are advisory locks (`flock`) on directories of every repository: the *gate* is
//! `objects/pack`, the lock itself `objects`. No file is created. On a file system without advisory
//! locks, only the modification times of files protect objects, as in Git. See
//! `docs/design/locks.md`.

use std::fs::File;
use std::hash::{BuildHasher, RandomState};
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use pronto_io::lock_wait::ReportedWait;
use rustix::fs::{FlockOperation, OFlags};
use rustix::io::Errno;

use crate::error::{Error, ErrorKind};

/// The timeout of a writer at the gate. The gate only provides fairness, so the writer proceeds
/// after the timeout.
const AT_GATE: Duration = Duration::from_secs(5);
/// The timeout of a writer that waits for a pruner; a pruner holds the lock only while it deletes.
const FOR_PRUNER: Duration = Duration::from_secs(60);
/// The time for which a pruner blocks new writers while it waits for active ones.
const FOR_WRITERS: Duration = Duration::from_millis(200);
/// The first pause of a wait, and the longest one.
const SHORTEST_PAUSE: Duration = Duration::from_micros(500);
const LONGEST_PAUSE: Duration = Duration::from_millis(10);
/// The time for which a pruner lets writers proceed before it closes the gate again: the initial
/// and the largest value.
const FIRST_REST: Duration = Duration::from_millis(50);
const LONGEST_REST: Duration = Duration::from_millis(800);

/// The shared lock of one store and of its quarantines.
#[derive(Debug)]
pub(crate) struct Writing {
    objects: PathBuf,
    /// The number of the current turn of writing; zero between turns.
    turn: AtomicU32,
    state: Mutex<TurnState>,
}

#[derive(Debug, Default)]
struct TurnState {
    /// The locked directory; `None` between turns, and on file systems without advisory locks.
    held: Option<File>,
    turns: u32,
    /// The number of live [`WritingTurn`]s.
    counted: usize,
}

/// A turn of writing, which ends when the last `WritingTurn` of the store is dropped.
#[derive(Debug)]
#[must_use = "objects may be pruned when it is dropped"]
pub struct WritingTurn {
    writing: Arc<Writing>,
}

impl Drop for WritingTurn {
    fn drop(&mut self) {
        let state = self.writing.state.lock();
        let mut state = state.unwrap_or_else(PoisonError::into_inner);
        state.counted -= 1;
        if state.counted == 0 {
            self.writing.turn.store(0, Ordering::Release);
            state.held = None;
        }
    }
}

impl Writing {
    pub(crate) fn new(objects: &Path) -> Writing {
        Writing {
            objects: objects.to_owned(),
            turn: AtomicU32::new(0),
            state: Mutex::default(),
        }
    }

    /// Takes the shared lock, unless the store holds it already. Returns the number of the turn.
    /// The first call costs five system calls.
    ///
    /// # Errors
    /// Fails with `ErrorKind::Io` if a pruner does not release the lock in time.
    #[inline]
    pub(crate) fn begin(&self) -> Result<u32, Error> {
        match self.turn.load(Ordering::Acquire) {
            0 => self.take(),
            turn => Ok(turn),
        }
    }

    #[cold]
    fn take(&self) -> Result<u32, Error> {
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        let turn = self.turn.load(Ordering::Acquire);
        if turn != 0 {
            return Ok(turn);
        }
        let gate = directory(&self.objects.join("pack"));
        if let Some(gate) = &gate {
            let shared = FlockOperation::NonBlockingLockShared;
            let _ = wait_for(gate, shared, AT_GATE, &self.objects);
        }
        if let Some(objects) = directory(&self.objects) {
            let shared = FlockOperation::NonBlockingLockShared;
            match wait_for(&objects, shared, FOR_PRUNER, &self.objects) {
                LockAttempt::Yes => state.held = Some(objects),
                LockAttempt::Never => {}
                LockAttempt::No => {
                    let message = "timeout: another process is pruning objects";
                    return Err(Error::new(ErrorKind::Io, message).at_path(&self.objects));
                }
            }
        }
        state.turns = state.turns.wrapping_add(1).max(1);
        self.turn.store(state.turns, Ordering::Release);
        Ok(state.turns)
    }

    /// Begins a turn of writing without the shared lock.
    fn pass(&self) {
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        state.turns = state.turns.wrapping_add(1).max(1);
        self.turn.store(state.turns, Ordering::Release);
    }

    pub(crate) fn finish(&self) {
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        self.turn.store(0, Ordering::Release);
        state.held = None;
    }

    /// Registers one more [`WritingTurn`].
    pub(crate) fn count_turn(self: &Arc<Self>) -> WritingTurn {
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        state.counted += 1;
        WritingTurn {
            writing: Arc::clone(self),
        }
    }

    /// Takes the exclusive lock to delete objects of the directory `objects`. Waits for at most
    /// `patience`; returns `None` on a timeout.
    pub(crate) fn begin_pruning(
        self: &Arc<Self>,
        objects: &Path,
        patience: Duration,
    ) -> Option<Pruning> {
        self.finish();
        let deadline = Instant::now() + patience;
        let mut rest = FIRST_REST;
        loop {
            if let Some(held) = try_to_prune(objects) {
                // The exclusive lock also covers the writes of this store.
                self.pass();
                let writing = Arc::clone(self);
                return Some(Pruning { held, writing });
            }
            if Instant::now() >= deadline {
                return None;
            }
            std::thread::sleep(varied(rest));
            rest = (rest * 2).min(LONGEST_REST);
        }
    }
}

/// The exclusive lock to delete objects. While it is held, no process that uses this lock writes
/// objects or sets refs. Dropping the value lets writers proceed.
#[derive(Debug)]
#[must_use = "objects may be deleted as long as it is there"]
pub struct Pruning {
    /// The locked directory; `None` on a file system without advisory locks.
    held: Option<File>,
    writing: Arc<Writing>,
}

impl Drop for Pruning {
    fn drop(&mut self) {
        self.held = None;
        self.writing.finish();
    }
}

/// Takes the exclusive lock; `None` if writers hold the lock for longer than the gate may be
/// closed.
fn try_to_prune(objects: &Path) -> Option<Option<File>> {
    let exclusive = FlockOperation::NonBlockingLockExclusive;
    let gate = directory(&objects.join("pack"));
    if let Some(gate) = &gate
        && wait_for(gate, exclusive, FOR_WRITERS, objects) == LockAttempt::No
    {
        return None;
    }
    let Some(held) = directory(objects) else {
        return Some(None);
    };
    match wait_for(&held, exclusive, FOR_WRITERS, objects) {
        LockAttempt::Yes => Some(Some(held)),
        LockAttempt::Never => Some(None),
        LockAttempt::No => None,
    }
}

/// Marks a directory as in use until the returned file is closed; `None` if this is not possible.
pub(crate) fn mark_in_use(path: &Path) -> Option<File> {
    let directory = directory(path)?;
    let locked = rustix::fs::flock(&directory, FlockOperation::NonBlockingLockShared);
    locked.is_ok().then_some(directory)
}

/// Returns whether a process has marked the directory as in use.
pub(crate) fn is_in_use(path: &Path) -> bool {
    let exclusive = FlockOperation::NonBlockingLockExclusive;
    let locked = directory(path).map(|directory| rustix::fs::flock(&directory, exclusive));
    locked == Some(Err(Errno::WOULDBLOCK))
}

/// The result of an attempt to take a lock.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum LockAttempt {
    Yes,
    /// Other processes hold the lock.
    No,
    /// The file system does not support advisory locks.
    Never,
}

/// Retries to take the lock on `directory` for `patience`. A blocking call is not used, because it has no
/// timeout. A long wait is reported as one for `objects`.
fn wait_for(
    directory: &File,
    how: FlockOperation,
    patience: Duration,
    objects: &Path,
) -> LockAttempt {
    let mut since = None;
    let mut report: Option<ReportedWait> = None;
    let mut pause = SHORTEST_PAUSE;
    loop {
        match rustix::fs::flock(directory, how) {
            Ok(()) => return LockAttempt::Yes,
            Err(Errno::WOULDBLOCK | Errno::INTR) => {}
            Err(_) => return LockAttempt::Never,
        }
        if since.get_or_insert_with(Instant::now).elapsed() >= patience {
            return LockAttempt::No;
        }
        report.get_or_insert_default().look(objects);
        std::thread::sleep(varied(pause));
        pause = (pause * 2).min(LONGEST_PAUSE);
    }
}

/// Returns a random duration between a half and one and a half of `pause`, so that processes do not
/// retry at the same time.
fn varied(pause: Duration) -> Duration {
    let share = RandomState::new().hash_one(Instant::now()) % 1024;
    pause.mul_f64(0.5 + share as f64 / 1024.0)
}

fn directory(path: &Path) -> Option<File> {
    let flags = i32::try_from(OFlags::DIRECTORY.bits()).ok()?;
    let mut open = File::options();
    open.read(true).custom_flags(flags).open(path).ok()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Options, Store};
    use gix_object::Kind;

    fn store(directory: &Path) -> Store {
        std::fs::create_dir_all(directory.join("pack")).expect("a directory");
        Store::open(directory, Options::default()).expect("it can be opened")
    }

    #[test]
    fn writers_and_pruners_take_turns() {
        let directory = tempfile::tempdir().expect("a directory");
        let (writer, other) = (store(directory.path()), store(directory.path()));
        let pruner = store(directory.path());
        writer.write(Kind::Blob, b"a").expect("it can be written");
        other.write(Kind::Blob, b"a").expect("it is there");
        assert!(pruner.begin_pruning(Duration::ZERO).is_none());
        drop(other);
        assert!(pruner.begin_pruning(Duration::ZERO).is_none());
        writer.finish_writing();
        let pruning = pruner.begin_pruning(Duration::ZERO);
        assert!(pruning.is_some(), "nobody writes");
        let again = writer.clone();
        let late =
            std::thread::spawn(move || again.write(Kind::Blob, b"b").map(|_| Instant::now()));
        std::thread::sleep(Duration::from_millis(50));
        let released = Instant::now();
        drop(pruning);
        let written = late.join().expect("no panic").expect("the lock was free");
        assert!(written >= released, "a writer waits for the pruner");
        assert!(pruner.begin_pruning(Duration::ZERO).is_none());
        writer.finish_writing();
        assert!(pruner.begin_pruning(Duration::ZERO).is_some());
    }

    #[test]
    fn a_quarantine_shares_the_lock_of_its_store() {
        let directory = tempfile::tempdir().expect("a directory");
        let (receiver, pruner) = (store(directory.path()), store(directory.path()));
        let quarantine = crate::Quarantine::begin(&receiver).expect("it can be made");
        assert!(pruner.begin_pruning(Duration::ZERO).is_some());
        let into = quarantine.store();
        into.write(Kind::Blob, b"a").expect("it can be written");
        assert!(pruner.begin_pruning(Duration::ZERO).is_none());
        drop(quarantine);
        receiver.finish_writing();
        assert!(pruner.begin_pruning(Duration::ZERO).is_some());
    }

    #[test]
    fn own_writing_ends_before_pruning() {
        let directory = tempfile::tempdir().expect("a directory");
        let store = store(directory.path());
        store.write(Kind::Blob, b"a").expect("it can be written");
        assert!(store.begin_pruning(Duration::ZERO).is_some());
    }
}
