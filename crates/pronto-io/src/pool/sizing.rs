//! Finds the number of workers by trials: changes the number, measures the throughput, and keeps or
//! reverts the change.

use std::sync::LazyLock;
use std::sync::atomic::Ordering::Relaxed;
use std::time::{Duration, Instant};

use super::measured::WorkerMeasurements;

/// The minimum length of a measurement. A shorter window would measure noise.
const SHORTEST_WINDOW: Duration = Duration::from_millis(8);
/// The window while it is unknown whether a remote system serves many requests at once. In that
/// case the gain of more workers is larger than noise.
const FIRST_WINDOW: Duration = Duration::from_millis(1);
/// The number of windows without waiting after which the longer windows are used.
const FIRST_WINDOWS: u32 = 4;
/// The window before and during a trial that can lose throughput. Because items differ in size,
/// short windows would measure noise.
const LONG_WINDOW: Duration = Duration::from_millis(60);
/// The minimum number of finished items in a valid window.
const FEWEST_ITEMS: u64 = 4;
/// The share of computing time, of the workers or of the cores, above which workers wait too little
/// for more workers to help.
const BUSY: f64 = 0.7;
/// The share of computing time below which workers mostly wait, for example for a network.
const WAITING: f64 = 0.4;
/// The share of the cores' time above which workers in excess of the cores compete with one
/// another.
const SATURATED: f64 = 0.9;
/// The gain in throughput for which added workers are kept.
const EARNED: f64 = 1.10;
/// The gain in throughput for which workers are removed. On a disk that seeks, the gain is much
/// larger than noise.
const CALMED: f64 = 1.25;

/// The number of workers that read-only work starts at once as soon as workers wait.
const BOLD: usize = 16;

/// The number of consecutive windows with waiting readers that proves the waiting.
const CERTAIN: u32 = 2;

/// The state of the trials.
#[derive(Debug)]
pub(super) struct Controller {
    most: usize,
    /// The number of cores, which is determined at the first decision. Short work ends before that.
    cores: LazyLock<usize>,
    target: usize,
    looked: Instant,
    window: Duration,
    items: u64,
    wall: u64,
    cpu: u64,
    trial: Option<Trial>,
    /// The number of windows before the next trial, and the number after the next failed trial.
    pause: u32,
    next_pause: u32,
    /// Whether the next trial has fewer workers, because a trial with more workers has failed.
    try_fewer: bool,
    /// The number of workers that read-only work starts at once when workers wait; `None` for other
    /// work.
    floor: Option<usize>,
    /// The number of consecutive windows in which readers have waited.
    waited: u32,
    /// The number of remaining first windows without waiting; `None` after the first windows.
    first: Option<u32>,
    /// Whether more workers have once gained much throughput. Then no trial with fewer workers is
    /// made.
    is_far: bool,
}

/// A change of the number of workers whose effect is being measured.
#[derive(Debug)]
struct Trial {
    before: usize,
    rate_before: f64,
    /// Whether the first window after the change has passed. That window includes the old number
    /// and is ignored.
    settled: bool,
}

impl Controller {
    pub(super) fn new(start: usize, most: usize, cores: fn() -> usize) -> Self {
        Controller {
            most,
            cores: LazyLock::new(cores),
            target: start,
            looked: Instant::now(),
            window: FIRST_WINDOW,
            items: 0,
            wall: 0,
            cpu: 0,
            trial: None,
            pause: 0,
            next_pause: 2,
            try_fewer: false,
            floor: None,
            waited: 0,
            first: Some(FIRST_WINDOWS),
            is_far: false,
        }
    }

    /// Returns a controller for workers that only read, which hardly compete with one another. As
    /// soon as such workers wait, their number rises to a high minimum without a trial, and stays
    /// there.
    pub(super) fn bold(self) -> Self {
        Controller {
            floor: Some(BOLD.min(self.most)),
            window: SHORTEST_WINDOW,
            first: None,
            ..self
        }
    }

    /// Evaluates a window and returns the new number of workers if the number changes.
    pub(super) fn review(&mut self, now: Instant, waits: &WorkerMeasurements) -> Option<usize> {
        let elapsed = now.duration_since(self.looked);
        let items = waits.items.load(Relaxed);
        if elapsed < self.window || items - self.items < FEWEST_ITEMS.max(self.target as u64) {
            return None;
        }
        let (wall, cpu) = (
            waits.wall_nanoseconds.load(Relaxed),
            waits.cpu_nanoseconds.load(Relaxed),
        );
        let (done, took) = (
            (items - self.items) as f64,
            (wall - self.wall).max(1) as f64,
        );
        let rate = match self.floor {
            // Computed from the durations of the items: items that cross the borders of a short
            // window would distort a count of finished items.
            None => self.target as f64 * done / took,
            // The time in which readers wait for input is not in `took`.
            Some(_) => done / elapsed.as_nanos() as f64,
        };
        let computed = (cpu - self.cpu) as f64;
        let available = elapsed.as_nanos() as f64 * *self.cores as f64;
        let load = Load {
            worker: computed / took,
            cores: computed / available.max(1.0),
        };
        (self.looked, self.items, self.wall, self.cpu) = (now, items, wall, cpu);
        let before = self.target;
        self.decide(rate, load);
        (self.target != before).then_some(self.target)
    }

    fn decide(&mut self, rate: f64, load: Load) {
        if let Some(target) = self.obvious(load) {
            self.target = target;
            self.trial = None;
            self.settle_down();
            return;
        }
        if let Some(floor) = self.floor
            && self.target < floor
        {
            // A single window with waiting can result from another process that uses the
            // processors.
            self.waited = if load.is_busy() { 0 } else { self.waited + 1 };
            if self.waited >= CERTAIN {
                self.target = floor;
                self.pause = 1;
            }
            return;
        }
        match &mut self.trial {
            Some(trial) if !trial.settled => trial.settled = true,
            Some(trial) => {
                let (before, gained) = (trial.before, rate / trial.rate_before);
                let grew = self.target > before;
                if self.first.is_some() {
                    if gained > steep(before, self.target) {
                        (self.trial, self.is_far) = (None, true);
                        if load.is_waiting() {
                            self.begin_trial(rate, load.worker);
                        }
                        return;
                    }
                    self.settle_down();
                    if gained > EARNED {
                        // The gain may be noise: measure longer.
                        return;
                    }
                }
                self.trial = None;
                self.window = SHORTEST_WINDOW;
                if gained > if grew { EARNED } else { CALMED } {
                    self.next_pause = 2;
                    self.try_fewer = !grew;
                } else {
                    self.target = before;
                    self.try_fewer = grew && !self.is_far;
                    self.pause = self.next_pause;
                    self.next_pause = (self.next_pause * 2).min(64);
                }
            }
            None if self.pause > 0 => self.pause -= 1,
            None if self.first.is_some() && !load.is_waiting() => {
                self.first = self.first.and_then(|left| left.checked_sub(1));
                if self.first.is_none() {
                    self.settle_down();
                }
            }
            // Fewer workers never help here, and more workers help only if workers wait most of the
            // time.
            None if self.floor.is_some() && !load.is_waiting() => {}
            None if load.is_busy() => {}
            None if (self.try_fewer || !load.is_waiting()) && self.window == SHORTEST_WINDOW => {
                self.window = LONG_WINDOW;
            }
            None => self.begin_trial(rate, load.worker),
        }
    }

    /// Ends the first windows: later windows are long enough to distinguish a gain from noise.
    fn settle_down(&mut self) {
        self.first = None;
        self.window = SHORTEST_WINDOW;
    }

    /// Returns a number of workers that is right without a trial.
    fn obvious(&self, load: Load) -> Option<usize> {
        let cores = (*self.cores).min(self.most);
        // Too few: the workers are computing and no longer wait, so each core can have a worker.
        let too_few = self.target < cores && load.worker >= BUSY;
        let too_many = self.target > cores && load.cores >= SATURATED && self.floor.is_none();
        (too_few || too_many).then_some(cores)
    }

    fn begin_trial(&mut self, rate: f64, busy: f64) {
        let target = if self.try_fewer && self.floor.is_none() {
            (self.target / 2).max(1)
        } else {
            // Enough workers to keep the cores busy, but at most four times as many at once.
            let wanted = (*self.cores as f64 / busy.max(0.001)).ceil() as usize;
            wanted
                .clamp(self.target + 1, self.target * 4)
                .min(self.most)
        };
        self.try_fewer = false;
        // The gain of a few more workers would be indistinguishable from noise.
        let is_little = target > self.target && target < self.target + self.target / 2;
        if target == self.target || is_little {
            return;
        }
        self.trial = Some(Trial {
            before: self.target,
            rate_before: rate,
            settled: false,
        });
        self.target = target;
    }
}

/// Returns the gain that more workers must have over a slow connection: at least a third of the
/// added share.
fn steep(before: usize, after: usize) -> f64 {
    1.0 + (after as f64 / before as f64 - 1.0) / 3.0
}

/// The shares of computing time in a window.
#[derive(Clone, Copy)]
struct Load {
    /// The share of the workers' time. The rest is waiting for the file system or for a core.
    worker: f64,
    /// The share of the cores' time.
    cores: f64,
}

impl Load {
    fn is_busy(self) -> bool {
        self.worker >= BUSY || self.cores >= BUSY
    }

    fn is_waiting(self) -> bool {
        self.worker < WAITING && self.cores < WAITING
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Runs windows until the number of workers is stable. `rate` returns the throughput for a
    /// number of workers. Each worker would compute for the share `busy` of its time if it had a
    /// core.
    fn settle(rate: impl Fn(usize) -> f64, busy: f64) -> usize {
        let mut controller = Controller::new(2, 64, || 2);
        let mut time_at = [0; 65];
        for _ in 0..200 {
            let cores = (busy * controller.target as f64 / 2.0).min(1.0);
            let worker = busy.min(2.0 / controller.target as f64);
            controller.decide(rate(controller.target), Load { worker, cores });
            time_at[controller.target] += 1;
        }
        let most = time_at.iter().max().copied().unwrap_or(0);
        time_at.iter().position(|time| *time == most).unwrap_or(0)
    }

    #[test]
    fn the_number_follows_what_gets_done() {
        // A network file system: every worker adds the same throughput.
        assert_eq!(settle(|workers| workers as f64, 0.01), 64);
        // A file system that serves eight requests at a time.
        let eight = settle(|workers| workers.min(8) as f64, 0.05);
        assert!((8..=32).contains(&eight), "{eight}");
        // A disk that seeks: throughput falls with the number of workers.
        assert_eq!(settle(|workers| 10.0 / workers as f64, 0.1), 1);
        // The cores are busy.
        assert_eq!(settle(|_| 1.0, 0.95), 2);
    }

    #[test]
    fn far_away_there_are_many_after_a_few_short_windows() {
        let far = Load {
            worker: 0.01,
            cores: 0.01,
        };
        let mut controller = Controller::new(2, 64, || 2);
        let mut targets = Vec::new();
        for _ in 0..6 {
            assert_eq!(controller.window, FIRST_WINDOW);
            let rate = controller.target as f64;
            controller.decide(rate, far);
            targets.push(controller.target);
        }
        assert_eq!(targets, [8, 8, 32, 32, 64, 64]);
        // Beyond some number there is nothing to gain, so the number stays.
        for _ in 0..200 {
            controller.decide(32.0, far);
            assert!(controller.target >= 32);
        }
        // A disk that seeks: one trial, which is reverted because it gains nothing.
        let mut controller = Controller::new(2, 64, || 2);
        for (rate, target) in [(1.0, 8), (1.0, 8), (1.05, 2)] {
            controller.decide(rate, far);
            assert_eq!(controller.target, target);
        }
        assert_eq!(controller.window, SHORTEST_WINDOW);
        // Another process uses the processors for a moment. No worker waits.
        let near = Load {
            worker: 0.95,
            cores: 0.95,
        };
        let mut controller = Controller::new(2, 64, || 2);
        for _ in 0..=FIRST_WINDOWS {
            controller.decide(1.0, near);
        }
        assert_eq!((controller.target, controller.window), (2, SHORTEST_WINDOW));
    }

    #[test]
    fn readers_that_wait_are_many() {
        let mut controller = Controller::new(2, 64, || 2).bold();
        let busy = Load {
            worker: 0.95,
            cores: 0.95,
        };
        controller.decide(1.0, busy);
        assert_eq!(controller.target, 2);
        let waits = Load {
            worker: 0.5,
            cores: 0.5,
        };
        // A single window may be noise.
        for load in [waits, busy, waits] {
            controller.decide(1.0, load);
            assert_eq!(controller.target, 2);
        }
        controller.decide(1.0, waits);
        assert_eq!(controller.target, BOLD);
        for rate in [2.0, 1.0, 3.0] {
            controller.decide(rate, busy);
            assert_eq!(controller.target, BOLD);
        }
    }

    #[test]
    fn cores_are_not_left_without_work() {
        let mut controller = Controller::new(2, 64, || 2);
        controller.target = 1;
        let load = Load {
            worker: 0.9,
            cores: 0.45,
        };
        controller.decide(1.0, load);
        assert_eq!(controller.target, 2);
    }

    #[test]
    fn busy_cores_are_not_shared_by_more_workers() {
        let mut controller = Controller::new(14, 64, || 2);
        let load = Load {
            worker: 0.14,
            cores: 0.98,
        };
        controller.decide(1.0, load);
        assert_eq!(controller.target, 2);
    }
}
