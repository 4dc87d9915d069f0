//! Measures the progress of a thread of the walk.

use std::sync::atomic::{AtomicBool, Ordering::Relaxed};

use pronto_io::pool::{Tuner, WorkerClock};

/// The number of calls before a thread first reads the clock.
const CALLS_PER_LAP: u64 = 16;

/// Counts the file system calls of one thread, and reports their duration to its tuner.
pub(super) struct CallPace<'a> {
    /// The tuner, if the number of threads is adaptive.
    tuner: Option<&'a Tuner>,
    /// Whether threads wait for the file system, so that they share even the files of one directory.
    is_wide: &'a AtomicBool,
    clock: Option<WorkerClock>,
    calls: u64,
    calls_per_lap: u64,
}

impl<'a> CallPace<'a> {
    pub(super) fn new(tuner: Option<&'a Tuner>, is_wide: &'a AtomicBool) -> CallPace<'a> {
        CallPace {
            tuner,
            is_wide,
            clock: None,
            calls: 0,
            calls_per_lap: CALLS_PER_LAP,
        }
    }

    pub(super) fn is_wide(&self) -> bool {
        self.is_wide.load(Relaxed)
    }

    /// Starts the clock. The time before, in which the thread waited for a task, is not counted.
    pub(super) fn start(&mut self) {
        match &mut self.clock {
            Some(clock) => clock.resume(),
            None => self.clock = self.tuner.map(|_| WorkerClock::start()),
        }
        self.calls = 0;
    }

    /// Records the end of a call.
    #[inline]
    pub(super) fn step(&mut self) {
        self.calls += 1;
        if self.calls >= self.calls_per_lap {
            self.lap();
        }
    }

    fn lap(&mut self) {
        if let (Some(tuner), Some(clock)) = (self.tuner, &mut self.clock) {
            self.calls_per_lap = tuner.record(clock, self.calls);
        }
        self.calls = 0;
    }
}
