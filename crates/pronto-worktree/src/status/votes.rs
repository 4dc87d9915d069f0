//! The decision whether listing directories before examining their files is faster.

use std::sync::atomic::{AtomicI32, Ordering::Relaxed};

/// The level at which listing ahead is not tried any more.
const LOST: i32 = -2;
/// The highest level.
const MOST: i32 = 8;

/// The measurements of all threads.
#[derive(Debug, Default)]
pub(super) struct ReadAheadVotes {
    votes: AtomicI32,
}

impl ReadAheadVotes {
    pub(super) fn is_tried(&self) -> bool {
        self.votes.load(Relaxed) > LOST
    }

    pub(super) fn pays(&self) -> bool {
        self.votes.load(Relaxed) > 0
    }

    /// Records whether listing ahead was faster in one directory.
    pub(super) fn vote(&self, worth: bool) {
        let count = |votes: i32| match worth {
            true => Some((votes + 1).min(MOST)),
            false => Some((votes - 1).max(LOST)),
        };
        let _ = self.votes.fetch_update(Relaxed, Relaxed, count);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_does_not_pay_is_given_up() {
        let ahead = ReadAheadVotes::default();
        assert!(ahead.is_tried() && !ahead.pays());
        ahead.vote(false);
        assert!(ahead.is_tried());
        ahead.vote(false);
        assert!(!ahead.is_tried());
        let ahead = ReadAheadVotes::default();
        for _ in 0..20 {
            ahead.vote(true);
        }
        ahead.vote(false);
        assert!(ahead.is_tried() && ahead.pays());
    }
}
