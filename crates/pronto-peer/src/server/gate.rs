//! Memory for work. Reading, packing and indexing need this memory only while this side works.
//!
//! No work waits for a peer, or for other work, so that each permit is released again.

use std::collections::BTreeMap;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

/// The memory in bytes for a unit of work: the largest object, its delta bases, and the cached
/// parts of other objects.
pub(super) const WORK_BYTES: u64 = 48 << 20;

/// The interval at which a waiting session checks whether it must stop.
const LOOK: Duration = Duration::from_millis(100);

/// A semaphore that shares its permits among peers.
pub(super) struct Gate {
    permits: usize,
    state: Mutex<GateQueue>,
    freed: Condvar,
}

#[derive(Default)]
struct GateQueue {
    tickets: u64,
    /// The number of permits that each peer holds.
    running: BTreeMap<String, usize>,
    waiting: BTreeMap<u64, String>,
}

/// The permission to work. Dropping it releases the permit.
pub(super) struct Permit {
    gate: Arc<Gate>,
    name: String,
}

impl Gate {
    /// Creates as many permits as fit into `bytes`, at least one.
    pub(super) fn new(bytes: u64) -> Self {
        let fitting = usize::try_from(bytes / WORK_BYTES).unwrap_or(usize::MAX);
        Gate {
            permits: fitting.max(1),
            state: Mutex::default(),
            freed: Condvar::new(),
        }
    }

    fn state(&self) -> MutexGuard<'_, GateQueue> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Waits for a permit. The peer with the fewest permits is first. Returns `None` once `is_over`
    /// returns true.
    pub(super) fn enter(
        self: &Arc<Self>,
        name: &str,
        is_over: &dyn Fn() -> bool,
    ) -> Option<Permit> {
        let mut state = self.state();
        let ticket = state.tickets;
        state.tickets += 1;
        state.waiting.insert(ticket, name.to_owned());
        loop {
            let is_free = state.running.values().sum::<usize>() < self.permits;
            if is_free && state.next() == Some(ticket) {
                break;
            }
            if is_over() {
                state.waiting.remove(&ticket);
                self.freed.notify_all();
                return None;
            }
            let waited = self.freed.wait_timeout(state, LOOK);
            state = waited.unwrap_or_else(PoisonError::into_inner).0;
        }
        state.waiting.remove(&ticket);
        *state.running.entry(name.to_owned()).or_default() += 1;
        self.freed.notify_all();
        Some(Permit {
            gate: Arc::clone(self),
            name: name.to_owned(),
        })
    }
}

impl GateQueue {
    fn next(&self) -> Option<u64> {
        let running = |name: &String| self.running.get(name).copied().unwrap_or(0);
        let next = (self.waiting.iter()).min_by_key(|(ticket, name)| (running(name), **ticket));
        next.map(|(ticket, _)| *ticket)
    }
}

impl Drop for Permit {
    fn drop(&mut self) {
        let mut state = self.gate.state();
        if let Some(count) = state.running.get_mut(&self.name) {
            *count -= 1;
            if *count == 0 {
                state.running.remove(&self.name);
            }
        }
        drop(state);
        self.gate.freed.notify_all();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn permits_come_back() {
        let gate = Arc::new(Gate::new(2 * WORK_BYTES));
        let enter = |name: &str| gate.enter(name, &|| true);
        let first = enter("a").expect("a permit");
        let second = enter("a").expect("a permit");
        assert!(enter("b").is_none());
        drop(first);
        let third = enter("b").expect("a permit");
        assert!(enter("a").is_none());
        drop((second, third));
        assert!(gate.state().running.is_empty() && gate.state().waiting.is_empty());
    }

    #[test]
    fn a_peer_that_has_none_comes_first() {
        let gate = Arc::new(Gate::new(2 * WORK_BYTES));
        let _first = gate.enter("a", &|| true).expect("a permit");
        let mut state = gate.state();
        state.waiting.insert(7, "a".to_owned());
        state.waiting.insert(8, "b".to_owned());
        assert_eq!(state.next(), Some(8));
    }
}
