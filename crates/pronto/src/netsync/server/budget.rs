//! One budget of memory for all sessions.

use std::sync::{Condvar, Mutex, PoisonError};
use std::time::{Duration, Instant};

use pronto_io::interrupt::Interrupt;

/// How often an interrupt is looked for.
const LOOK: Duration = Duration::from_millis(100);

/// So many bytes for all together.
pub(super) struct Budget {
    total: u64,
    used: Mutex<u64>,
    freed: Condvar,
}

/// A part of it, given back when this is dropped.
pub(super) struct Room<'a> {
    budget: &'a Budget,
    bytes: u64,
}

impl Budget {
    pub(super) fn new(total: u64) -> Self {
        Budget {
            total,
            used: Mutex::new(0),
            freed: Condvar::new(),
        }
    }

    /// Waits until there are so many bytes, or nobody else has any. None after `patience`.
    pub(super) fn take(
        &self,
        bytes: u64,
        patience: Duration,
        stop: &Interrupt,
    ) -> Option<Room<'_>> {
        let end = Instant::now() + patience;
        let mut used = self.used.lock().unwrap_or_else(PoisonError::into_inner);
        while *used > 0 && self.total.saturating_sub(*used) < bytes {
            if stop.is_triggered() || Instant::now() >= end {
                return None;
            }
            let waited = self.freed.wait_timeout(used, LOOK);
            used = waited.unwrap_or_else(PoisonError::into_inner).0;
        }
        *used += bytes;
        Some(Room {
            budget: self,
            bytes,
        })
    }
}

impl Drop for Room<'_> {
    fn drop(&mut self) {
        let mut used = self
            .budget
            .used
            .lock()
            .unwrap_or_else(PoisonError::into_inner);
        *used -= self.bytes;
        self.budget.freed.notify_all();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_given_back_can_be_taken() {
        let (budget, stop) = (Budget::new(10), Interrupt::new());
        let take = |bytes| budget.take(bytes, Duration::ZERO, &stop);
        let first = take(6).expect("there is room");
        assert!(take(5).is_none());
        let second = take(4).expect("there is room");
        drop(first);
        assert!(take(7).is_none());
        drop(second);
        // More than there is: alone.
        let all = take(11).expect("nobody else is there");
        assert!(take(1).is_none());
        drop(all);
    }
}
