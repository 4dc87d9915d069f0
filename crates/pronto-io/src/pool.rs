//! Workers that share a sequence of items. Each takes the next few items from the front, so the
//! items are processed in order, and no worker has a slice of its own left at the end. If workers
//! on neighbouring items would wait for one another, items are grouped, and a group belongs to one
//! worker while other groups are unclaimed.
//!
//! The number of workers is given, or follows measurements. While workers mostly wait (a network
//! file system), more are added as long as throughput rises. If it does not rise, or falls (a disk
//! that must seek), they are removed again.

use std::ops::{ControlFlow, Range};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering::Relaxed};
use std::sync::{Mutex, OnceLock, PoisonError};
use std::thread::Scope;
use std::time::{Duration, Instant};

pub use groups::ends_of_groups;
pub use tuner::{Clock, Tuner, waits};

mod groups;
mod measured;
mod sizing;
mod tuner;

use groups::Groups;

/// The number of workers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Workers {
    /// This many, or one if it is zero.
    Exactly(usize),
    /// Starts with one per core, fewer for few items; then as many as get the most done, up to
    /// `most`.
    Adaptive {
        /// The bound on the number of workers.
        most: usize,
    },
}

impl Workers {
    /// Adapts between one worker and 64.
    pub const ADAPTIVE: Workers = Workers::Adaptive { most: 64 };
}

/// The statistics of a [`run`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Summary {
    /// The most workers that there were at one time; of [`Workers::Exactly`], those that were started.
    pub most_workers: usize,
    /// Whether every item was handed out; otherwise a worker broke off.
    pub complete: bool,
}

/// The most items that a worker takes at once.
const LARGEST_BATCH: usize = 64;

/// The time for one batch above which a worker takes smaller batches.
const LONG_BATCH: Duration = Duration::from_millis(1);

/// Starting a thread costs about as much as this many items of quick work.
const ITEMS_WORTH_A_THREAD: usize = 16;

/// Returns how many threads this process may run at once: its processors, or its share of them.
/// Determined once by a dozen system calls, so call it only if there is work for several threads.
pub fn cores() -> usize {
    static CORES: OnceLock<usize> = OnceLock::new();
    *CORES.get_or_init(|| std::thread::available_parallelism().map_or(1, usize::from))
}

/// Works through items `0..count`. Each worker makes a state for itself with `begin`, calls
/// `work` with it and the next few items, over and over, and gives the state to `end`.
///
/// With one worker (or one item) everything runs on the calling thread; otherwise the calling
/// thread is one of the workers. `work` breaks to stop all workers after what they hold now.
///
/// # Panics
/// Panics of `work` are passed on once all workers have stopped.
pub fn run<S>(
    workers: Workers,
    count: usize,
    begin: impl Fn() -> S + Sync,
    work: impl Fn(&mut S, Range<usize>) -> ControlFlow<()> + Sync,
    end: impl Fn(S) + Sync,
) -> Summary {
    run_groups(workers, &[count], begin, work, end)
}

/// Does the same for items in consecutive groups that end at `ends` (ascending; the last is the
/// number of items). Two workers share a group only when all groups have been begun, and items that
/// are taken together belong to one group. Returns what [`run`] returns, and may be called from any
/// thread.
///
/// Costs a counter for each group. A worker without a group, and each newly started one, scans all
/// of them.
///
/// # Panics
/// As [`run`].
pub fn run_groups<S>(
    workers: Workers,
    ends: &[usize],
    begin: impl Fn() -> S + Sync,
    work: impl Fn(&mut S, Range<usize>) -> ControlFlow<()> + Sync,
    end: impl Fn(S) + Sync,
) -> Summary {
    let count = ends.last().copied().unwrap_or(0);
    let (start, most) = match workers {
        Workers::Exactly(number) => (number.max(1), number.max(1)),
        Workers::Adaptive { most } => {
            let worth_starting = 1 + count / ITEMS_WORTH_A_THREAD;
            let start = match worth_starting.min(most) {
                // No query is necessary.
                0 | 1 => 1,
                several => cores().min(several),
            };
            (start, most.max(1))
        }
    };
    let start = start.min(count.max(1));
    let row = Row {
        groups: Groups::new(ends),
        stopped: AtomicBool::new(false),
        start,
        alive: AtomicUsize::new(0),
        most_alive: AtomicUsize::new(0),
        tuner: (count > 1 && (most > start || matches!(workers, Workers::Adaptive { .. })))
            .then(|| Tuner::new(start, most.min(count.max(1)))),
        job: Job { begin, work, end },
    };
    let started = std::thread::scope(|scope| {
        let spawned = (1..start).filter(|_| row.spawn(scope)).count();
        row.join();
        row.work_through(scope);
        spawned + 1
    });
    Summary {
        most_workers: match workers {
            Workers::Exactly(_) => started,
            Workers::Adaptive { .. } => row.most_alive.load(Relaxed),
        },
        complete: !row.stopped.load(Relaxed),
    }
}

struct Row<'a, J> {
    groups: Groups<'a>,
    stopped: AtomicBool,
    /// The number of workers at the start.
    start: usize,
    alive: AtomicUsize,
    most_alive: AtomicUsize,
    /// Only when the number adapts.
    tuner: Option<Tuner>,
    job: J,
}

struct Job<B, W, E> {
    begin: B,
    work: W,
    end: E,
}

impl<S, B, W, E> Row<'_, Job<B, W, E>>
where
    B: Fn() -> S + Sync,
    W: Fn(&mut S, Range<usize>) -> ControlFlow<()> + Sync,
    E: Fn(S) + Sync,
{
    /// Starts a worker; returns whether that was possible.
    fn spawn<'scope, 'row: 'scope>(&'row self, scope: &'scope Scope<'scope, 'row>) -> bool {
        self.join();
        let spawned = std::thread::Builder::new()
            .name("worker".into())
            .spawn_scoped(scope, || self.work_through(scope));
        if spawned.is_err() {
            // If no thread can be started, the existing workers continue.
            self.alive.fetch_sub(1, Relaxed);
        }
        spawned.is_ok()
    }

    fn join(&self) {
        let alive = self.alive.fetch_add(1, Relaxed) + 1;
        self.most_alive.fetch_max(alive, Relaxed);
    }

    fn work_through<'scope, 'row: 'scope>(&'row self, scope: &'scope Scope<'scope, 'row>) {
        let stop_on_panic = StopOnPanic(&self.stopped);
        let mut state = None;
        let (mut batch, mut group) = (1, None);
        let mut clock = self.tuner.as_ref().map(|_| Clock::start());
        while let Some(items) = self.take(&mut group, batch) {
            let (taken, began) = (items.len(), Instant::now());
            let state = state.get_or_insert_with(&self.job.begin);
            if (self.job.work)(state, items).is_break() {
                self.stopped.store(true, Relaxed);
            }
            batch = if began.elapsed() > LONG_BATCH {
                taken.div_ceil(2)
            } else {
                (batch * 2).min(LARGEST_BATCH)
            };
            if let (Some(tuner), Some(clock)) = (&self.tuner, &mut clock) {
                tuner.record(clock, taken as u64);
                self.review(tuner, scope);
                if self.leaves(tuner.target()) {
                    break;
                }
            }
        }
        if let Some(state) = state {
            (self.job.end)(state);
        }
        std::mem::forget(stop_on_panic);
    }

    /// The next items, fewer when the end is near, so that all workers finish together.
    fn take(&self, group: &mut Option<usize>, batch: usize) -> Option<Range<usize>> {
        if self.stopped.load(Relaxed) {
            return None;
        }
        self.groups.take(group, batch, self.target())
    }

    /// Returns the target number of workers.
    fn target(&self) -> usize {
        self.tuner.as_ref().map_or(self.start, Tuner::target)
    }

    /// Runs the periodic review in the calling worker: reads the measurements and sets the worker
    /// count.
    fn review<'scope, 'row: 'scope>(&'row self, tuner: &Tuner, scope: &'scope Scope<'scope, 'row>) {
        let Some(target) = tuner.review() else {
            return;
        };
        let left = self.groups.left();
        let alive = self.alive.load(Relaxed);
        for _ in alive..target.min(alive + left) {
            self.spawn(scope);
        }
    }

    /// Whether this worker is one too many; if so, it counts itself out.
    fn leaves(&self, target: usize) -> bool {
        self.alive
            .fetch_update(Relaxed, Relaxed, |alive| {
                (alive > target).then(|| alive - 1)
            })
            .is_ok()
    }
}

/// A worker that panics stops the others, so that the panic gets out soon.
struct StopOnPanic<'a>(&'a AtomicBool);

impl Drop for StopOnPanic<'_> {
    fn drop(&mut self) {
        self.0.store(true, Relaxed);
    }
}

/// The result slots of items that workers fill in any order: each item's slot is written once.
#[derive(Debug)]
pub struct Gather<T>(Mutex<Vec<T>>);

impl<T> Default for Gather<T> {
    fn default() -> Self {
        Gather(Mutex::new(Vec::new()))
    }
}

impl<T> Gather<T> {
    /// Adds what one worker found. Meant for the end of a worker, not for every item.
    pub fn add(&self, mut found: Vec<T>) {
        let mut all = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if all.is_empty() {
            *all = found;
        } else {
            all.append(&mut found);
        }
    }

    /// Everything that was added, in no particular order.
    pub fn into_inner(self) -> Vec<T> {
        self.0.into_inner().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::atomic::AtomicU64;
    use std::time::Duration;

    fn sum(workers: Workers, count: usize, pause: Duration) -> (u64, Summary) {
        let total = AtomicU64::new(0);
        let summary = run(
            workers,
            count,
            || 0_u64,
            |sum, items| {
                for item in items {
                    *sum += item as u64;
                    if !pause.is_zero() {
                        std::thread::sleep(pause);
                    }
                }
                ControlFlow::Continue(())
            },
            |sum| {
                total.fetch_add(sum, Relaxed);
            },
        );
        (total.into_inner(), summary)
    }

    #[test]
    fn every_item_is_worked_on_once_whatever_the_number_of_workers() {
        for workers in [
            Workers::Exactly(0),
            Workers::Exactly(1),
            Workers::Exactly(7),
            Workers::ADAPTIVE,
        ] {
            for count in [0, 1, 2, 100, 10_000] {
                let expected = (count as u64) * (count as u64).saturating_sub(1) / 2;
                let (total, summary) = sum(workers, count, Duration::ZERO);
                assert_eq!(total, expected);
                assert!(summary.complete);
            }
        }
        assert_eq!(
            sum(Workers::Exactly(1), 10, Duration::ZERO).1.most_workers,
            1
        );
    }

    #[test]
    fn work_that_waits_gets_more_workers() {
        let (_, summary) = sum(Workers::ADAPTIVE, 1500, Duration::from_millis(1));
        let cores = cores();
        assert!(summary.most_workers > cores, "{summary:?}");
    }

    #[test]
    fn breaking_off_stops_all_workers() {
        let worked = AtomicU64::new(0);
        let summary = run(
            Workers::Exactly(3),
            1_000_000,
            || (),
            |(), items| {
                worked.fetch_add(items.len() as u64, Relaxed);
                ControlFlow::Break(())
            },
            |()| {},
        );
        assert!(!summary.complete);
        assert!(worked.into_inner() < 1000);
    }
}
