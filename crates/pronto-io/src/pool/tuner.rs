//! Measures workers and proposes their number.

use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};
use std::time::{Duration, Instant};

use super::measured::WorkerMeasurements;
use super::sizing::Controller;

/// The duration of an item below which the item cannot have blocked, so that the CPU clock is not
/// read.
const QUICK: Duration = Duration::from_micros(5);

/// The total duration of items after which both clocks are read. The reads take about a hundredth
/// of this time.
const WORTH_A_LOOK: Duration = Duration::from_micros(100);

/// The maximum number of items between two clock reads.
const MOST_PER_LOOK: u64 = 16;

/// The number of quick items that are added to the shared counters at once.
const ITEMS_AT_ONCE: u64 = 256;

/// Measures the throughput of workers and finds the number of workers with the highest throughput.
/// May be used from any thread.
#[derive(Debug)]
pub struct Tuner {
    waits: WorkerMeasurements,
    controller: Mutex<Controller>,
    target: AtomicUsize,
}

impl Tuner {
    /// Creates a tuner that begins with `start` workers and uses at most `most`.
    pub fn new(start: usize, most: usize) -> Tuner {
        Tuner::with(Controller::new(start, most, super::cores), start)
    }

    /// Creates a tuner for workers that only read, which hardly compete with one another. As soon
    /// as such workers wait, their number rises without a trial.
    pub fn for_readers(start: usize, most: usize) -> Tuner {
        let controller = Controller::new(start, most, super::cores);
        Tuner::with(controller.bold(), start)
    }

    fn with(controller: Controller, start: usize) -> Tuner {
        Tuner {
            waits: WorkerMeasurements::default(),
            controller: Mutex::new(controller),
            target: AtomicUsize::new(start),
        }
    }

    /// Returns the target number of workers.
    pub fn target(&self) -> usize {
        self.target.load(Relaxed)
    }

    /// Records that a worker has finished `items` since the clock was started or recorded last.
    /// Returns the number of items after which to call this again: one for slow items, up to 16 for
    /// quick ones. Costs a clock read, and a system call if the items were slow.
    pub fn record(&self, clock: &mut WorkerClock, items: u64) -> u64 {
        let wall = clock.lap(items);
        let few = clock.items < ITEMS_AT_ONCE;
        if !(is_quick(wall, items) && few) {
            let (items, wall, cpu) = clock.take();
            self.waits.items.fetch_add(items, Relaxed);
            self.waits
                .wall_nanoseconds
                .fetch_add(wall.as_nanos() as u64, Relaxed);
            self.waits
                .cpu_nanoseconds
                .fetch_add(cpu.min(wall).as_nanos() as u64, Relaxed);
        }
        let next = WORTH_A_LOOK.as_nanos() * u128::from(items) / wall.as_nanos().max(1);
        u64::try_from(next).map_or(MOST_PER_LOOK, |next| next.clamp(1, MOST_PER_LOOK))
    }

    /// Evaluates the measurements, if the window has passed and no other worker is evaluating them.
    /// Returns the new number of workers if the number changes.
    pub fn review(&self) -> Option<usize> {
        let mut controller = self.controller.try_lock().ok()?;
        let target = controller.review(Instant::now(), &self.waits)?;
        self.target.store(target, Relaxed);
        Some(target)
    }
}

/// Measures the elapsed time and the processor time of one worker. Belongs to one thread.
#[derive(Debug)]
pub struct WorkerClock {
    wall: Instant,
    /// The processor time of the thread at the last lap.
    cpu: Duration,
    items: u64,
    took: Duration,
    computed: Duration,
}

impl WorkerClock {
    /// Starts the clock. Costs a system call.
    pub fn start() -> WorkerClock {
        WorkerClock {
            wall: Instant::now(),
            cpu: thread_time(),
            items: 0,
            took: Duration::ZERO,
            computed: Duration::ZERO,
        }
    }

    /// Resumes the clock after the thread waited for work. The waiting time is not measured. Costs
    /// one clock read.
    pub fn resume(&mut self) {
        self.wall = Instant::now();
    }

    /// Adds `items` that were finished since the last lap. Returns the duration of the lap.
    fn lap(&mut self, items: u64) -> Duration {
        let now = Instant::now();
        let wall = now.duration_since(self.wall);
        let computed = if is_quick(wall, items) {
            self.cpu += wall;
            wall
        } else {
            let before = std::mem::replace(&mut self.cpu, thread_time());
            self.cpu.saturating_sub(before)
        };
        self.wall = now;
        self.items += items;
        self.took += wall;
        self.computed += computed;
        wall
    }

    fn take(&mut self) -> (u64, Duration, Duration) {
        let taken = (self.items, self.took, self.computed);
        (self.items, self.took, self.computed) = (0, Duration::ZERO, Duration::ZERO);
        taken
    }
}

/// Returns whether `items` were too fast to have blocked.
fn is_quick(wall: Duration, items: u64) -> bool {
    wall.as_nanos() < QUICK.as_nanos() * u128::from(items)
}

/// Returns the number of voluntary context switches of this thread: waits for an answer, a device
/// or another thread, but not for a processor. Returns `None` if the system does not count these.
/// Costs a system call.
pub fn waits() -> Option<u64> {
    #[cfg(target_os = "linux")]
    {
        let mut usage = std::mem::MaybeUninit::<libc::rusage>::zeroed();
        // SAFETY: `usage` is a valid place for the answer, and zeroes are a valid one as well.
        let usage = unsafe {
            if libc::getrusage(libc::RUSAGE_THREAD, usage.as_mut_ptr()) != 0 {
                return None;
            }
            usage.assume_init()
        };
        u64::try_from(usage.ru_nvcsw).ok()
    }
    #[cfg(not(target_os = "linux"))]
    None
}

/// Returns the processor time of this thread through the C library. rustix looks up the kernel's
/// vDSO function itself and crashes where there is none (under valgrind).
fn thread_time() -> Duration {
    let mut time = libc::timespec {
        tv_sec: 0,
        tv_nsec: 0,
    };
    // SAFETY: `time` is a valid place for the answer, which nothing else uses meanwhile.
    let failed = unsafe { libc::clock_gettime(libc::CLOCK_THREAD_CPUTIME_ID, &raw mut time) };
    if failed != 0 {
        return Duration::ZERO;
    }
    Duration::new(time.tv_sec.unsigned_abs(), time.tv_nsec as u32)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    #[cfg(target_os = "linux")]
    fn waiting_is_counted_and_computing_is_not() {
        let before = waits().expect("the system says it");
        for _ in 0..10 {
            std::thread::sleep(Duration::from_millis(1));
        }
        let after = waits().expect("the system says it");
        assert!(after >= before + 10, "{before} {after}");
    }

    #[test]
    fn who_waits_from_the_start_has_not_computed() {
        let tuner = Tuner::new(1, 8);
        let mut clock = WorkerClock::start();
        std::thread::sleep(Duration::from_millis(20));
        assert_eq!(tuner.record(&mut clock, 1), 1);
        let computed = tuner.waits.cpu_nanoseconds.load(Relaxed);
        assert!(computed < 10_000_000, "{computed}");
        assert!(tuner.waits.wall_nanoseconds.load(Relaxed) >= 20_000_000);
    }
}
