//! Distributes the directories of a worktree to threads. Each thread works depth first on the
//! directories that it found, and gives away the widest part if another thread is idle.
//!
//! Initially there is one thread for each processor. If threads mostly wait (a network file system, a
//! cold disk), more threads are started while throughput rises.

use super::ignore_files::IgnoreFiles;
use super::pace::CallPace;
use super::scan::Scanner;
use super::task::DirectoryTask;
use super::votes::ReadAheadVotes;
use super::{OnStatusPath, Outcome, StatusJob, Untracked};
use crate::ignore::Reader;
use crate::{Error, ErrorKind};
use bstr::BStr;
use pronto_io::dir::Directory;
use pronto_io::file_system::FileSystem;
use pronto_io::interrupt::Interrupted;
use pronto_io::pool::{self, Tuner};
use std::rc::Rc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Condvar, Mutex, PoisonError};
use std::thread::Scope;

/// The number of index entries that justify a thread.
const ENTRIES_PER_THREAD: usize = 2000;

/// The largest number of threads that wait for a slow file system.
const MOST_THREADS: usize = 64;

/// Returns a suitable number of threads for an index of `entries` entries: one for a small index, and
/// at most the number of processors.
pub fn default_threads(entries: usize) -> usize {
    match entries / ENTRIES_PER_THREAD {
        0 => 1,
        more => pool::cores().min(more + 1),
    }
}

/// The state that the threads share.
struct StatusWalk<'a> {
    job: &'a StatusJob<'a>,
    on_path: Option<&'a OnStatusPath<'a>>,
    root: &'a Directory,
    /// Whether the file system is local.
    is_local: bool,
    ignore_files: Option<&'a Reader<'a>>,
    shared: TaskQueue,
    /// The number of running threads.
    alive: AtomicUsize,
    /// The tuner, if the number of threads depends on the measured throughput.
    tuner: Option<Tuner>,
    /// Whether there are more threads than processors: they wait for the file system, and share even
    /// the files of one directory.
    is_wide: AtomicBool,
    ahead: ReadAheadVotes,
    ended: Mutex<Vec<Result<Outcome, Error>>>,
}

struct TaskQueue {
    given: Mutex<QueuedTasks>,
    wake: Condvar,
    /// The number of waiting threads. Threads with work to give away read it without the lock.
    hungry: AtomicUsize,
    stop: AtomicBool,
}

struct QueuedTasks {
    tasks: Vec<DirectoryTask>,
    working: usize,
}

pub(super) fn run(
    job: &StatusJob<'_>,
    on_path: Option<&OnStatusPath<'_>>,
    root: &Directory,
) -> Result<Outcome, Error> {
    let entries = job.index.len();
    let (start, tuner) = match job.options.threads {
        Some(threads) => (threads.max(1), None),
        None => {
            let start = default_threads(entries);
            (start, Some(Tuner::for_readers(start, MOST_THREADS)))
        }
    };
    let top = DirectoryTask::Tracked {
        entries: 0..entries,
        prefix_len: 0,
        ignored: false,
        place: Scanner::top_place(job),
    };
    let known = job.ignore_files.map(|read| IgnoreFiles::new(read));
    let read = known
        .as_ref()
        .map(|known| |directory: &BStr| known.get(directory));
    let walk = StatusWalk {
        job,
        on_path,
        root,
        is_local: start > 1 && root.file_system().is_ok_and(FileSystem::is_local),
        ignore_files: read.as_ref().map(|read| read as &Reader<'_>),
        shared: TaskQueue::new(top),
        alive: AtomicUsize::new(1),
        tuner,
        is_wide: AtomicBool::new(false),
        ahead: ReadAheadVotes::default(),
        ended: Mutex::default(),
    };
    std::thread::scope(|scope| {
        for _ in 1..start {
            walk.spawn(scope);
        }
        walk.work(scope);
    });
    let ended = walk.ended.into_inner();
    let mut all = Outcome::default();
    for outcome in ended.unwrap_or_else(PoisonError::into_inner) {
        all.absorb(outcome?);
    }
    Ok(all)
}

impl<'a> StatusWalk<'a> {
    fn spawn<'scope>(&'scope self, scope: &'scope Scope<'scope, '_>) {
        self.alive.fetch_add(1, Ordering::Relaxed);
        self.shared.lock().working += 1;
        let spawned = std::thread::Builder::new()
            .name("status".into())
            .spawn_scoped(scope, || self.work(scope));
        if spawned.is_err() {
            // If no thread can be started, the existing ones continue.
            self.alive.fetch_sub(1, Ordering::Relaxed);
            self.shared.leave(&mut Vec::new());
        }
    }

    fn work<'scope>(&'scope self, scope: &'scope Scope<'scope, '_>) {
        let _stop = StopScanOnPanic(&self.shared);
        let mut scanner = Scanner::new(
            self.job,
            self.ignore_files,
            self.root,
            self.own_top(),
            self.pace(),
            &self.ahead,
        );
        let ended = match self.scan_all(&mut scanner, scope) {
            Ok(()) => Ok(scanner.into_outcome()),
            Err(error) => {
                self.shared.stop.store(true, Ordering::Relaxed);
                self.shared.finish();
                Err(error)
            }
        };
        let mut all = self.ended.lock().unwrap_or_else(PoisonError::into_inner);
        all.push(ended);
    }

    fn scan_all<'scope>(
        &'scope self,
        scanner: &mut Scanner<'a>,
        scope: &'scope Scope<'scope, '_>,
    ) -> Result<(), Error> {
        let mut own: Vec<DirectoryTask> = Vec::new();
        loop {
            let task = match own.pop() {
                Some(task) => task,
                None => {
                    let Some(task) = self.shared.take() else {
                        return Ok(());
                    };
                    // The wait for a task is not a wait for the file system.
                    scanner.start_clock();
                    task
                }
            };
            if self.shared.stop.load(Ordering::Relaxed) {
                continue;
            }
            let interrupted =
                |reason: Interrupted| Error::new(ErrorKind::Interrupted, reason.to_string());
            self.job.interrupt.check().map_err(interrupted)?;
            let first = own.len();
            scanner.scan(task, &mut own)?;
            scanner.on_path(self.on_path);
            // Tasks were found in order; the next one is taken from the end.
            own[first..].reverse();
            if own.len() > 1 && self.shared.hungry.load(Ordering::Relaxed) > 0 {
                self.shared.give(&mut own);
            }
            if let Some(tuner) = &self.tuner {
                self.review(tuner, scope);
                if self.leaves(tuner.target()) {
                    self.shared.leave(&mut own);
                    return Ok(());
                }
            }
        }
    }

    /// Opens a separate handle of the top for a thread that only examines files, if that is faster.
    fn own_top(&self) -> Option<Rc<Directory>> {
        let helps = self.job.options.untracked == Untracked::No && self.is_local;
        let opened = helps.then(|| self.root.open_beneath(b""));
        opened?.ok().map(Rc::new)
    }

    fn pace(&self) -> CallPace<'_> {
        CallPace::new(self.tuner.as_ref(), &self.is_wide)
    }

    /// Performs the periodic review in the calling thread: reads the measurements and sets the number
    /// of threads.
    fn review<'scope>(&'scope self, tuner: &Tuner, scope: &'scope Scope<'scope, '_>) {
        let Some(target) = tuner.review() else {
            return;
        };
        let is_wide = target > pool::cores();
        self.is_wide.store(is_wide, Ordering::Relaxed);
        for _ in self.alive.load(Ordering::Relaxed)..target {
            self.spawn(scope);
        }
    }

    /// Returns whether this thread exceeds the number of threads. The thread is not counted any more
    /// then.
    fn leaves(&self, target: usize) -> bool {
        let fewer = |alive| (alive > target).then(|| alive - 1);
        self.alive
            .fetch_update(Ordering::Relaxed, Ordering::Relaxed, fewer)
            .is_ok()
    }
}

impl TaskQueue {
    /// Creates the state for one thread.
    fn new(task: DirectoryTask) -> TaskQueue {
        TaskQueue {
            given: Mutex::new(QueuedTasks {
                tasks: vec![task],
                working: 1,
            }),
            wake: Condvar::new(),
            hungry: AtomicUsize::new(0),
            stop: AtomicBool::new(false),
        }
    }

    /// Waits for a task. Returns `None` if all threads wait.
    fn take(&self) -> Option<DirectoryTask> {
        let mut given = self.lock();
        if let Some(task) = given.tasks.pop() {
            return Some(task);
        }
        given.working -= 1;
        self.hungry.fetch_add(1, Ordering::Relaxed);
        loop {
            // The last thread that worked may have left tasks behind.
            if let Some(task) = given.tasks.pop() {
                given.working += 1;
                self.hungry.fetch_sub(1, Ordering::Relaxed);
                return Some(task);
            }
            if given.working == 0 {
                self.wake.notify_all();
                return None;
            }
            given = self
                .wake
                .wait(given)
                .unwrap_or_else(PoisonError::into_inner);
        }
    }

    /// Gives away the tasks that would be processed last: the widest directories.
    fn give(&self, own: &mut Vec<DirectoryTask>) {
        let half = own.len() / 2;
        self.lock().tasks.extend(own.drain(..half));
        self.wake.notify_all();
    }

    /// Ends a worker. Other workers take its remaining tasks.
    fn leave(&self, own: &mut Vec<DirectoryTask>) {
        let mut given = self.lock();
        given.working -= 1;
        given.tasks.append(own);
        self.wake.notify_all();
    }

    /// Ends a worker before all work is done.
    fn finish(&self) {
        let mut given = self.lock();
        given.working -= 1;
        given.tasks.clear();
        self.wake.notify_all();
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, QueuedTasks> {
        self.given.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A guard that stops the walk if a worker panics, so that other workers do not wait for it.
struct StopScanOnPanic<'a>(&'a TaskQueue);

impl Drop for StopScanOnPanic<'_> {
    fn drop(&mut self) {
        if std::thread::panicking() {
            self.0.stop.store(true, Ordering::Relaxed);
            self.0.finish();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn task() -> DirectoryTask {
        DirectoryTask::Tracked {
            entries: 0..1,
            prefix_len: 0,
            ignored: false,
            place: None,
        }
    }

    #[test]
    fn what_the_last_one_leaves_is_done_by_who_waits() {
        let shared = TaskQueue::new(task());
        shared.lock().tasks.clear();
        shared.lock().working = 2;
        std::thread::scope(|scope| {
            let waiting = scope.spawn(|| (shared.take().is_some(), shared.take().is_some()));
            while shared.hungry.load(Ordering::Relaxed) == 0 {
                std::thread::yield_now();
            }
            shared.leave(&mut vec![task()]);
            let taken = waiting.join().expect("it does not panic");
            assert_eq!(taken, (true, false));
        });
    }
}
