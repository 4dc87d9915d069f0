//! A pool of workers that share a sequence of items. Each worker takes the next few items from the
//! front, so the items are processed in order, and no worker finishes much later than the others.
//! If workers on neighbouring items would wait for one another, items are grouped. A group belongs
//! to one worker while other groups are unclaimed.
//!
//! The number of workers is fixed or follows measurements. While workers mostly wait (for a network
//! file system), workers are added as long as throughput rises. If throughput does not rise, or
//! falls (on a disk that must seek), the added workers are removed.

use std::ops::{ControlFlow, Range};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering::Relaxed};
use std::sync::{Mutex, OnceLock, PoisonError};
use std::thread::Scope;
use std::time::{Duration, Instant};

pub use groups::ends_of_groups;
pub use tuner::{Tuner, WorkerClock, waits};

mod groups;
mod measured;
mod sizing;
mod tuner;

use groups::ItemGroups;

/// The number of workers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Workers {
    /// A fixed number of workers, at least one.
    Exactly(usize),
    /// An adaptive number of workers, at most `most`. The pool starts with one worker for each
    /// core, fewer for few items, and then changes the number towards the highest throughput.
    Adaptive {
        /// The maximum number of workers.
        most: usize,
    },
}

impl Workers {
    /// An adaptive number between one and 64 workers.
    pub const ADAPTIVE: Workers = Workers::Adaptive { most: 64 };
}

/// The statistics of a [`run`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PoolSummary {
    /// The largest number of workers at the same time; with [`Workers::Exactly`], the number of
    /// started workers.
    pub most_workers: usize,
    /// Whether every item was handed out. `false` if a worker broke off.
    pub complete: bool,
}

/// The maximum number of items that a worker takes at once.
const LARGEST_BATCH: usize = 64;

/// The duration of a batch from which on a worker takes smaller batches.
const LONG_BATCH: Duration = Duration::from_millis(1);

/// The number of quick items whose work costs as much as the start of a thread.
const ITEMS_WORTH_A_THREAD: usize = 16;

/// Returns the number of threads that this process may run at once: the number of processors, or
/// the limit of its cgroup. Determined once with about a dozen system calls, so call this only if
/// there is work for several threads.
pub fn cores() -> usize {
    static CORES: OnceLock<usize> = OnceLock::new();
    *CORES.get_or_init(|| std::thread::available_parallelism().map_or(1, usize::from))
}

/// Processes the items `0..count`. Each worker creates a state with `begin`, calls `work` with the
/// state and the next few items until no item is left, and passes the state to `end`.
///
/// With one worker, or one item, everything runs on the calling thread; otherwise the calling
/// thread is one of the workers. If `work` returns `Break`, all workers stop after their current
/// items.
///
/// # Panics
/// A panic of `work` is propagated after all workers have stopped.
pub fn run<S>(
    workers: Workers,
    count: usize,
    begin: impl Fn() -> S + Sync,
    work: impl Fn(&mut S, Range<usize>) -> ControlFlow<()> + Sync,
    end: impl Fn(S) + Sync,
) -> PoolSummary {
    run_groups(workers, &[count], begin, work, end)
}

/// Processes items like [`run`], in consecutive groups that end at `ends` (ascending; the last is
/// the number of items). Two workers share a group only if no group is unclaimed. Items that are
/// taken together belong to one group. May be called from any thread.
///
/// Costs a counter for each group. A worker without a group, and each newly started worker, scans
/// all groups.
///
/// # Panics
/// Panics like [`run`].
pub fn run_groups<S>(
    workers: Workers,
    ends: &[usize],
    begin: impl Fn() -> S + Sync,
    work: impl Fn(&mut S, Range<usize>) -> ControlFlow<()> + Sync,
    end: impl Fn(S) + Sync,
) -> PoolSummary {
    let count = ends.last().copied().unwrap_or(0);
    let (start, most) = match workers {
        Workers::Exactly(number) => (number.max(1), number.max(1)),
        Workers::Adaptive { most } => {
            let worth_starting = 1 + count / ITEMS_WORTH_A_THREAD;
            let start = match worth_starting.min(most) {
                // The number of cores is not needed.
                0 | 1 => 1,
                several => cores().min(several),
            };
            (start, most.max(1))
        }
    };
    let start = start.min(count.max(1));
    let row = WorkerPool {
        groups: ItemGroups::new(ends),
        stopped: AtomicBool::new(false),
        start,
        alive: AtomicUsize::new(0),
        most_alive: AtomicUsize::new(0),
        tuner: (count > 1 && (most > start || matches!(workers, Workers::Adaptive { .. })))
            .then(|| Tuner::new(start, most.min(count.max(1)))),
        job: PoolJob { begin, work, end },
    };
    let started = std::thread::scope(|scope| {
        let spawned = (1..start).filter(|_| row.spawn(scope)).count();
        row.join();
        row.work_through(scope);
        spawned + 1
    });
    PoolSummary {
        most_workers: match workers {
            Workers::Exactly(_) => started,
            Workers::Adaptive { .. } => row.most_alive.load(Relaxed),
        },
        complete: !row.stopped.load(Relaxed),
    }
}

struct WorkerPool<'a, J> {
    groups: ItemGroups<'a>,
    stopped: AtomicBool,
    /// The number of workers at the start, if the number is fixed.
    start: usize,
    alive: AtomicUsize,
    most_alive: AtomicUsize,
    /// `None` if the number of workers is fixed.
    tuner: Option<Tuner>,
    job: J,
}

struct PoolJob<B, W, E> {
    begin: B,
    work: W,
    end: E,
}

impl<S, B, W, E> WorkerPool<'_, PoolJob<B, W, E>>
where
    B: Fn() -> S + Sync,
    W: Fn(&mut S, Range<usize>) -> ControlFlow<()> + Sync,
    E: Fn(S) + Sync,
{
    /// Starts a worker. Returns whether the thread could be started.
    fn spawn<'scope, 'row: 'scope>(&'row self, scope: &'scope Scope<'scope, 'row>) -> bool {
        self.join();
        let spawned = std::thread::Builder::new()
            .name("worker".into())
            .spawn_scoped(scope, || self.work_through(scope));
        if spawned.is_err() {
            // If the thread cannot be started, the existing workers continue.
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
        let mut clock = self.tuner.as_ref().map(|_| WorkerClock::start());
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

    /// Takes the next items: fewer near the end, so that all workers finish at the same time.
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

    /// Evaluates the measurements in the calling worker, and starts workers up to the new target.
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

    /// Returns whether there are more workers than `target`. If so, the calling worker is no longer
    /// counted and must end.
    fn leaves(&self, target: usize) -> bool {
        self.alive
            .fetch_update(Relaxed, Relaxed, |alive| {
                (alive > target).then(|| alive - 1)
            })
            .is_ok()
    }
}

/// Stops the other workers if a worker panics, so that the panic is propagated soon.
struct StopOnPanic<'a>(&'a AtomicBool);

impl Drop for StopOnPanic<'_> {
    fn drop(&mut self) {
        self.0.store(true, Relaxed);
    }
}

/// Collects the results of several workers, in any order.
#[derive(Debug)]
pub struct Gather<T>(Mutex<Vec<T>>);

impl<T> Default for Gather<T> {
    fn default() -> Self {
        Gather(Mutex::new(Vec::new()))
    }
}

impl<T> Gather<T> {
    /// Appends the results of one worker. Call this at the end of a worker, not for every item.
    pub fn add(&self, mut found: Vec<T>) {
        let mut all = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if all.is_empty() {
            *all = found;
        } else {
            all.append(&mut found);
        }
    }

    /// Returns all results, in no particular order.
    pub fn into_inner(self) -> Vec<T> {
        self.0.into_inner().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::atomic::AtomicU64;
    use std::time::Duration;

    fn sum(workers: Workers, count: usize, pause: Duration) -> (u64, PoolSummary) {
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
