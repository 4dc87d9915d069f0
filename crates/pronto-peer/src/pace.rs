//! Measures the pace of a peer as bytes over time, not as signs of activity.
//!
//! Only time in which this side waits for the peer counts, so that work of this side is not
//! attributed to the peer. A peer that does not read is as slow as a peer that sends nothing.

use std::time::Duration;

/// The number of bytes that a peer must move within its timeout, unless it takes a step of the
/// protocol.
const LEAST_BYTES: u64 = 16 * 1024;

/// The number of bytes after which a peer counts as fast, so that it is no longer
/// [`quiet`](Pace::quiet).
const QUICK_BYTES: u64 = 40 * 1024;

/// A measurement of the waiting time since the peer last moved a given number of bytes.
#[derive(Debug)]
struct PaceWindow {
    least_bytes: u64,
    bytes: u64,
    waited: Duration,
}

impl PaceWindow {
    fn new(least_bytes: u64) -> Self {
        PaceWindow {
            least_bytes,
            bytes: 0,
            waited: Duration::ZERO,
        }
    }

    fn moved(&mut self, bytes: u64) {
        self.bytes += bytes;
        if self.bytes >= self.least_bytes {
            *self = PaceWindow::new(self.least_bytes);
        }
    }
}

/// A measurement of the pace of one peer.
#[derive(Debug)]
pub(super) struct PeerPace {
    slow: PaceWindow,
    quick: PaceWindow,
    steps: u64,
}

impl PeerPace {
    pub(super) fn new() -> Self {
        PeerPace {
            slow: PaceWindow::new(LEAST_BYTES),
            quick: PaceWindow::new(QUICK_BYTES),
            steps: 0,
        }
    }

    /// Records bytes received or sent.
    pub(super) fn moved(&mut self, bytes: usize) {
        self.slow.moved(bytes as u64);
        self.quick.moved(bytes as u64);
    }

    /// Records the number of protocol steps of the peer, which is limited.
    pub(super) fn stepped(&mut self, steps: u64) {
        if steps > self.steps {
            *self = PeerPace {
                steps,
                ..PeerPace::new()
            };
        }
    }

    /// Records that this side has waited for the peer.
    pub(super) fn waited(&mut self, time: Duration) {
        self.slow.waited += time;
        self.quick.waited += time;
    }

    /// Returns the time that this side has waited since the last progress of the peer.
    pub(super) fn idle(&self) -> Duration {
        self.slow.waited
    }

    /// Returns the time that this side has waited since the peer was last fast. Other sessions that
    /// wait for a slot use this value.
    pub(super) fn quiet(&self) -> Duration {
        self.quick.waited
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SECOND: Duration = Duration::from_secs(1);

    #[test]
    fn small_frames_do_not_renew_patience_and_steps_do() {
        let mut pace = PeerPace::new();
        for _ in 0..100 {
            pace.waited(SECOND);
            pace.moved(20);
        }
        assert_eq!((pace.idle(), pace.quiet()), (100 * SECOND, 100 * SECOND));
        pace.moved(LEAST_BYTES as usize);
        assert_eq!((pace.idle(), pace.quiet()), (Duration::ZERO, 100 * SECOND));
        pace.moved(QUICK_BYTES as usize);
        assert_eq!(pace.quiet(), Duration::ZERO);
        pace.waited(SECOND);
        pace.stepped(1);
        assert_eq!(
            (pace.idle(), pace.quiet()),
            (Duration::ZERO, Duration::ZERO)
        );
        pace.waited(SECOND);
        pace.stepped(1);
        assert_eq!(pace.idle(), SECOND, "the same step renews nothing");
    }
}
