//! Decides the number of workers by trials: it changes the number, measures the throughput, and
//! keeps or reverts the change.

use std::sync::LazyLock;
use std::sync::atomic::Ordering::Relaxed;
use std::time::{Duration, Instant};

use super::tuner::Waits;

/// Looking sooner than this would measure noise.
const SHORTEST_WINDOW: Duration = Duration::from_millis(8);
/// The window while it is unknown whether a remote system answers many requests at once. The gain
/// of more workers is then larger than chance.
const FIRST_WINDOW: Duration = Duration::from_millis(1);
/// The number of windows without waiting after which the first windows end.
const FIRST_WINDOWS: u32 = 4;
/// The same before and during a change that is not obviously right: items differ in size, and
/// chance would decide about short windows.
const LONG_WINDOW: Duration = Duration::from_millis(60);
/// Items that must have been done within a window for it to mean anything.
const FEWEST_ITEMS: u64 = 4;
/// Workers that compute more than this share of their time, or of what the cores have, wait too
/// little for more to help.
const BUSY: f64 = 0.7;
/// Workers that compute less than this share mostly wait: for a network, say.
const WAITING: f64 = 0.4;
/// Above this share of what the cores have, workers beyond their number are in each other's way.
const SATURATED: f64 = 0.9;
/// The gain for which added workers are kept.
const EARNED: f64 = 1.10;
/// The gain for which workers are removed. A disk that seeks gains far more than chance does.
const CALMED: f64 = 1.25;

/// The number of workers that start at once when workers that only read wait.
const BOLD: usize = 16;

/// Windows in which they waited, after which it is believed.
const CERTAIN: u32 = 2;

/// The state of the review at one moment.
#[derive(Debug)]
pub(super) struct Controller {
    most: usize,
    /// Asked for when there is something to decide: what is done by then needs no more threads.
    cores: LazyLock<usize>,
    target: usize,
    looked: Instant,
    window: Duration,
    items: u64,
    wall: u64,
    cpu: u64,
    trial: Option<Trial>,
    /// Windows to let pass before the next trial, and how many after the next failure.
    pause: u32,
    next_pause: u32,
    /// After a failed attempt with more workers, fewer are tried.
    try_fewer: bool,
    /// The smallest number of workers once readers have waited.
    floor: Option<usize>,
    /// The number of consecutive windows in which they have waited.
    waited: u32,
    /// The number of remaining first windows without waiting; `None` after them.
    first: Option<u32>,
    /// More of them once got much more done, so fewer never do.
    is_far: bool,
}

/// A change of the number whose effect is being measured.
#[derive(Debug)]
struct Trial {
    before: usize,
    rate_before: f64,
    /// The first window after a change contains half of the old number and is ignored.
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

    /// The same, but as soon as workers wait there are many, and many remain: those that only read
    /// are hardly in each other's way, and a processor that one leaves another one takes.
    pub(super) fn bold(self) -> Self {
        Controller {
            floor: Some(BOLD.min(self.most)),
            window: SHORTEST_WINDOW,
            first: None,
            ..self
        }
    }

    /// The new number of workers, if it changes now.
    pub(super) fn review(&mut self, now: Instant, waits: &Waits) -> Option<usize> {
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
            // Of how long each took: what is under way at the borders of a window does not count
            // for either, and would decide about short windows.
            None => self.target as f64 * done / took,
            // Readers wait for something to read, which is not counted.
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
            // A processor that others take for a moment looks like waiting once.
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
                        // Perhaps by chance: measure longer.
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
            // Fewer are never better, and more only where they wait most of the time.
            None if self.floor.is_some() && !load.is_waiting() => {}
            None if load.is_busy() => {}
            None if (self.try_fewer || !load.is_waiting()) && self.window == SHORTEST_WINDOW => {
                self.window = LONG_WINDOW;
            }
            None => self.begin_trial(rate, load.worker),
        }
    }

    /// Makes windows long enough to distinguish a gain from chance.
    fn settle_down(&mut self) {
        self.first = None;
        self.window = SHORTEST_WINDOW;
    }

    /// The number that needs no trial.
    fn obvious(&self, load: Load) -> Option<usize> {
        let cores = (*self.cores).min(self.most);
        // What they waited for has passed, or it never was the waiting that kept them.
        let too_few = self.target < cores && load.worker >= BUSY;
        let too_many = self.target > cores && load.cores >= SATURATED && self.floor.is_none();
        (too_few || too_many).then_some(cores)
    }

    fn begin_trial(&mut self, rate: f64, busy: f64) {
        let target = if self.try_fewer && self.floor.is_none() {
            (self.target / 2).max(1)
        } else {
            // As many as would keep the cores busy, but at most four times as many at once.
            let wanted = (*self.cores as f64 / busy.max(0.001)).ceil() as usize;
            wanted
                .clamp(self.target + 1, self.target * 4)
                .min(self.most)
        };
        self.try_fewer = false;
        // The gain of a few more could not be distinguished from chance.
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

/// The gain of more workers over a slow connection: at least a third of the added share.
fn steep(before: usize, after: usize) -> f64 {
    1.0 + (after as f64 / before as f64 - 1.0) / 3.0
}

/// The processor time of a window.
#[derive(Clone, Copy)]
struct Load {
    /// Of the time of the workers: the rest they waited, for the file system or for a core.
    worker: f64,
    /// Of the time of the cores.
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

    /// Runs windows in which `rate` returns the throughput with a number of workers, each of which
    /// would compute for the share `busy` of its time if it had a core.
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
        // A network file system: every worker adds as much as the one before.
        assert_eq!(settle(|workers| workers as f64, 0.01), 64);
        // It serves eight at a time.
        let eight = settle(|workers| workers.min(8) as f64, 0.05);
        assert!((8..=32).contains(&eight), "{eight}");
        // A disk that seeks: the more, the worse.
        assert_eq!(settle(|workers| 10.0 / workers as f64, 0.1), 1);
        // Busy cores.
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
        // Beyond some number there is no more to gain: it stays.
        for _ in 0..200 {
            controller.decide(32.0, far);
            assert!(controller.target >= 32);
        }
        // A disk that seeks: one attempt, which is taken back as soon as it is seen to bring nothing.
        let mut controller = Controller::new(2, 64, || 2);
        for (rate, target) in [(1.0, 8), (1.0, 8), (1.05, 2)] {
            controller.decide(rate, far);
            assert_eq!(controller.target, target);
        }
        assert_eq!(controller.window, SHORTEST_WINDOW);
        // Another process uses the processors for a moment, and no worker waits.
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
        // Once may be chance.
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
