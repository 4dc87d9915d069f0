//! The peer of a request that has a slot: how long it lets the server wait, and whether it has lost the slot.

use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use tokio::sync::Notify;

/// The peer of one request. A request without a slot has a peer that never loses it.
#[derive(Debug, Default)]
pub(crate) struct Peer {
    waiting: Mutex<Waiting>,
    is_evicted: AtomicBool,
    evicted: Notify,
}

/// The time that the server has waited for the peer since it made progress.
#[derive(Debug, Default)]
struct Waiting {
    before: Duration,
    /// The begin of the present wait.
    since: Option<Instant>,
}

impl Peer {
    /// Notes that the server waits for the peer, after it has waited for `before` without progress.
    pub(crate) fn begin_waiting(&self, before: Duration) {
        *self.waiting() = Waiting {
            before,
            since: Some(Instant::now()),
        };
    }

    /// Notes that the server does not wait for the peer any more.
    pub(crate) fn end_waiting(&self) {
        self.waiting().since = None;
    }

    /// Returns how long the server waits for the peer; `None` if it does not.
    pub(super) fn stalls(&self) -> Option<Duration> {
        let waiting = self.waiting();
        waiting.since.map(|since| waiting.before + since.elapsed())
    }

    /// Takes the slot away: what waits for the peer fails.
    pub(super) fn evict(&self) {
        self.is_evicted.store(true, Relaxed);
        self.evicted.notify_waiters();
    }

    pub(crate) fn is_evicted(&self) -> bool {
        self.is_evicted.load(Relaxed)
    }

    /// Waits until the slot is taken away.
    pub(crate) async fn evicted(&self) {
        let notified = self.evicted.notified();
        tokio::pin!(notified);
        // From here on no notification is missed.
        notified.as_mut().enable();
        if !self.is_evicted() {
            notified.await;
        }
    }

    /// The two fields stay consistent whatever panics.
    fn waiting(&self) -> MutexGuard<'_, Waiting> {
        self.waiting.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
