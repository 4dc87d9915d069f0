//! A signal that a slot or a connection is withdrawn.

use std::sync::atomic::{AtomicBool, Ordering::Relaxed};

use tokio::sync::Notify;

/// A flag that is set once, and wakes all tasks that wait for it.
#[derive(Debug, Default)]
pub(super) struct Eviction {
    is_set: AtomicBool,
    changed: Notify,
}

impl Eviction {
    pub(super) fn set(&self) {
        self.is_set.store(true, Relaxed);
        self.changed.notify_waiters();
    }

    pub(super) fn is_set(&self) -> bool {
        self.is_set.load(Relaxed)
    }

    /// Waits until the flag is set.
    pub(super) async fn wait(&self) {
        let changed = self.changed.notified();
        tokio::pin!(changed);
        // After this call, no notification is missed.
        changed.as_mut().enable();
        if !self.is_set() {
            changed.await;
        }
    }
}
