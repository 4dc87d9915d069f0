//! Sharing the directories of a worktree between threads: each works depth first on what it
//! found itself, and gives away the widest part of it when another one has nothing to do.

use super::remember::Place;
use super::scan::Scanner;
use super::{Job, Outcome, Tell};
use crate::{Error, ErrorKind};
use bstr::BString;
use pronto_io::{dir::Directory, pool};
use std::ops::Range;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Condvar, Mutex, PoisonError};

/// Entries of an index that are worth a thread.
const ENTRIES_PER_THREAD: usize = 2000;

/// A directory to look at.
#[derive(Debug)]
pub(super) enum Task {
    /// One with tracked files: their positions, and the length of its path with the slash.
    Tracked {
        /// The entries below.
        entries: Range<usize>,
        /// How much of their paths is the directory's.
        prefix_len: usize,
        /// It is ignored, so nothing untracked in it counts unless ignored files do.
        ignored: bool,
        /// Where it is in the untracked cache, if there is one.
        place: Option<Place>,
    },
    /// One without tracked files, whose files are named one by one.
    Untracked {
        /// Its path with a slash at its end.
        path: BString,
    },
}

/// How many threads pay for an index of `entries` entries, or for an unknown number of untracked
/// files if it is small.
pub fn default_threads(entries: usize) -> usize {
    match entries / ENTRIES_PER_THREAD {
        0 => 1,
        more => pool::cores().min(more + 1),
    }
}

/// What the threads share.
pub(super) struct Shared {
    given: Mutex<Given>,
    wake: Condvar,
    /// Threads that wait: read without the lock by those that have work to give.
    hungry: AtomicUsize,
    stop: AtomicBool,
}

struct Given {
    tasks: Vec<Task>,
    working: usize,
}

pub(super) fn run(
    (job, tell): (&Job<'_>, Option<&Tell<'_>>),
    root: &Directory,
) -> Result<Outcome, Error> {
    let entries = job.index.len();
    let threads = job
        .options
        .threads
        .unwrap_or_else(|| default_threads(entries))
        .max(1);
    let shared = Shared {
        given: Mutex::new(Given {
            tasks: vec![Task::Tracked {
                entries: 0..entries,
                prefix_len: 0,
                ignored: false,
                place: Scanner::top_place(job),
            }],
            working: threads,
        }),
        wake: Condvar::new(),
        hungry: AtomicUsize::new(0),
        stop: AtomicBool::new(false),
    };
    let mut outcomes = Vec::with_capacity(threads);
    std::thread::scope(|scope| {
        let others: Vec<_> = (1..threads)
            .map(|_| scope.spawn(|| work((job, tell), root, &shared)))
            .collect();
        outcomes.push(work((job, tell), root, &shared));
        for other in others {
            outcomes.push(
                other
                    .join()
                    .unwrap_or_else(|panic| std::panic::resume_unwind(panic)),
            );
        }
    });
    let mut all = Outcome::default();
    for outcome in outcomes {
        all.absorb(outcome?);
    }
    Ok(all)
}

fn work(
    (job, tell): (&Job<'_>, Option<&Tell<'_>>),
    root: &Directory,
    shared: &Shared,
) -> Result<Outcome, Error> {
    let _stop = StopOnPanic(shared);
    let mut scanner = Scanner::new(job, root);
    let mut own: Vec<Task> = Vec::new();
    loop {
        let task = match own.pop() {
            Some(task) => task,
            None => match shared.take() {
                Some(task) => task,
                None => return Ok(scanner.into_outcome()),
            },
        };
        if shared.stop.load(Ordering::Relaxed) {
            continue;
        }
        if let Err(reason) = job.interrupt.check() {
            shared.stop.store(true, Ordering::Relaxed);
            shared.finish();
            return Err(Error::new(ErrorKind::Interrupted, reason.to_string()));
        }
        let first = own.len();
        if let Err(error) = scanner.scan(task, &mut own) {
            shared.stop.store(true, Ordering::Relaxed);
            shared.finish();
            return Err(error);
        }
        scanner.tell(tell);
        // Found in order; the next one is taken from the end.
        own[first..].reverse();
        if own.len() > 1 && shared.hungry.load(Ordering::Relaxed) > 0 {
            shared.give(&mut own);
        }
    }
}

impl Shared {
    /// Waits for a task; `None` when everyone waits.
    fn take(&self) -> Option<Task> {
        let mut given = self.lock();
        if let Some(task) = given.tasks.pop() {
            return Some(task);
        }
        given.working -= 1;
        self.hungry.fetch_add(1, Ordering::Relaxed);
        loop {
            if given.working == 0 {
                self.wake.notify_all();
                return None;
            }
            if let Some(task) = given.tasks.pop() {
                given.working += 1;
                self.hungry.fetch_sub(1, Ordering::Relaxed);
                return Some(task);
            }
            given = self
                .wake
                .wait(given)
                .unwrap_or_else(PoisonError::into_inner);
        }
    }

    /// Gives away what is furthest from being worked on: the widest directories.
    fn give(&self, own: &mut Vec<Task>) {
        let half = own.len() / 2;
        self.lock().tasks.extend(own.drain(..half));
        self.wake.notify_all();
    }

    /// A worker ends before the work does.
    fn finish(&self) {
        let mut given = self.lock();
        given.working -= 1;
        given.tasks.clear();
        self.wake.notify_all();
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, Given> {
        self.given.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A worker that panics must not leave the others waiting for it.
struct StopOnPanic<'a>(&'a Shared);

impl Drop for StopOnPanic<'_> {
    fn drop(&mut self) {
        if std::thread::panicking() {
            self.0.stop.store(true, Ordering::Relaxed);
            self.0.finish();
        }
    }
}
