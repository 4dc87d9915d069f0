//! Limits the total memory for file contents of all threads.

use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};

/// Limits the bytes that all threads hold at a time. A content larger than the limit is held alone.
/// Acquiring costs a lock, so the budget is meant for large contents.
#[derive(Debug)]
pub(super) struct ContentBudget {
    most_bytes: u64,
    held_bytes: Mutex<u64>,
    freed: Condvar,
}

/// A reserved part of a [`ContentBudget`], which is released on drop. A holder must not wait for another
/// reservation.
#[derive(Debug)]
pub(super) struct BudgetShare<'a> {
    budget: &'a ContentBudget,
    bytes: u64,
}

impl ContentBudget {
    pub(super) fn new(most_bytes: u64) -> ContentBudget {
        ContentBudget {
            most_bytes,
            held_bytes: Mutex::new(0),
            freed: Condvar::new(),
        }
    }

    /// Waits until `bytes` more may be held, and reserves them.
    pub(super) fn take(&self, bytes: u64) -> BudgetShare<'_> {
        let is_full = |held: &mut u64| *held > 0 && held.saturating_add(bytes) > self.most_bytes;
        let held = self.freed.wait_while(self.held(), is_full);
        *held.unwrap_or_else(PoisonError::into_inner) += bytes;
        BudgetShare {
            budget: self,
            bytes,
        }
    }

    fn held(&self) -> MutexGuard<'_, u64> {
        let held = self.held_bytes.lock();
        held.unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for BudgetShare<'_> {
    fn drop(&mut self) {
        *self.budget.held() -= self.bytes;
        self.budget.freed.notify_all();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::atomic::{AtomicU64, Ordering::SeqCst};

    #[test]
    fn threads_hold_no_more_than_there_is() {
        let budget = ContentBudget::new(10);
        let (now, most) = (AtomicU64::new(0), AtomicU64::new(0));
        std::thread::scope(|scope| {
            for thread in 0..8_u64 {
                let (budget, now, most) = (&budget, &now, &most);
                scope.spawn(move || {
                    for round in 0..200 {
                        let bytes = 1 + (thread + round) % 7;
                        let held = budget.take(bytes);
                        most.fetch_max(now.fetch_add(bytes, SeqCst) + bytes, SeqCst);
                        std::thread::yield_now();
                        now.fetch_sub(bytes, SeqCst);
                        drop(held);
                    }
                });
            }
        });
        assert!(most.into_inner() <= 10 && *budget.held() == 0);
        // A reservation of more than the whole budget is granted alone.
        drop(budget.take(u64::MAX));
    }
}
