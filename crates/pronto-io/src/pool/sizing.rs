//! Decides how many workers there should be, by trying: it changes the number, looks whether more
//! gets done, and keeps the change or takes it back.

use std::sync::atomic::Ordering::Relaxed;
use std::time::{Duration, Instant};

use super::Waits;

/// Looking sooner than this would measure noise.
const SHORTEST_WINDOW: Duration = Duration::from_millis(8);
/// Items that must have been done within a window for it to mean anything.
const FEWEST_ITEMS: u64 = 4;
/// Workers that compute more than this share of their time wait too little for more to help.
const BUSY: f64 = 0.7;

/// What is known at one moment of looking.
pub(super) struct Controller {
    most: usize,
    cores: usize,
    target: usize,
    looked: Instant,
    items: u64,
    wall: u64,
    cpu: u64,
    trial: Option<Trial>,
    /// Windows to let pass before the next trial, and how many after the next failure.
    pause: u32,
    next_pause: u32,
    /// After a failed attempt with more workers, fewer are tried.
    try_fewer: bool,
}

/// A change of the number whose effect is being measured.
struct Trial {
    before: usize,
    rate_before: f64,
    /// The first window after a change is half the old number: it is not looked at.
    settled: bool,
}

impl Controller {
    pub(super) fn new(start: usize, most: usize, cores: usize) -> Self {
        Controller {
            most,
            cores,
            target: start,
            looked: Instant::now(),
            items: 0,
            wall: 0,
            cpu: 0,
            trial: None,
            pause: 0,
            next_pause: 2,
            try_fewer: false,
        }
    }

    /// The new number of workers, if it changes now.
    pub(super) fn review(&mut self, now: Instant, waits: &Waits) -> Option<usize> {
        let elapsed = now.duration_since(self.looked);
        let items = waits.items.load(Relaxed);
        if elapsed < SHORTEST_WINDOW || items - self.items < FEWEST_ITEMS.max(self.target as u64) {
            return None;
        }
        let (wall, cpu) = (
            waits.wall_nanoseconds.load(Relaxed),
            waits.cpu_nanoseconds.load(Relaxed),
        );
        let rate = (items - self.items) as f64 / elapsed.as_secs_f64();
        let busy = (cpu - self.cpu) as f64 / (wall - self.wall).max(1) as f64;
        (self.looked, self.items, self.wall, self.cpu) = (now, items, wall, cpu);
        let before = self.target;
        self.decide(rate, busy);
        (self.target != before).then_some(self.target)
    }

    fn decide(&mut self, rate: f64, busy: f64) {
        match &mut self.trial {
            Some(trial) if !trial.settled => trial.settled = true,
            Some(trial) => {
                let (before, gained) = (trial.before, rate / trial.rate_before);
                self.trial = None;
                let grew = self.target > before;
                // More workers must earn their keep; fewer must do better to be preferred.
                if gained > if grew { 1.10 } else { 1.03 } {
                    self.next_pause = 2;
                    self.try_fewer = !grew;
                } else {
                    self.target = before;
                    self.try_fewer = grew;
                    self.pause = self.next_pause;
                    self.next_pause = (self.next_pause * 2).min(64);
                }
            }
            None if self.pause > 0 => self.pause -= 1,
            None if busy < BUSY => self.begin_trial(rate, busy),
            None => {}
        }
    }

    fn begin_trial(&mut self, rate: f64, busy: f64) {
        let target = if self.try_fewer {
            (self.target / 2).max(1)
        } else {
            // As many as would keep the cores busy, but at most four times as many at once.
            let wanted = (self.cores as f64 / busy.max(0.001)).ceil() as usize;
            wanted
                .clamp(self.target + 1, self.target * 4)
                .min(self.most)
        };
        self.try_fewer = false;
        if target == self.target {
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

#[cfg(test)]
mod tests {
    use super::*;

    /// Runs windows in which `rate` says how much gets done with so many workers.
    fn settle(rate: impl Fn(usize) -> f64, busy: f64) -> usize {
        let mut controller = Controller::new(2, 64, 2);
        let mut time_at = [0; 65];
        for _ in 0..200 {
            controller.decide(rate(controller.target), busy);
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
}
