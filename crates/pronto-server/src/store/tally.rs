//! The use of the store by one request.

use std::cell::RefCell;
use std::marker::PhantomData;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use crate::log::StoreUse;

thread_local! {
    /// The counters of the request for which this thread works.
    static CURRENT: RefCell<Option<Arc<Tally>>> = const { RefCell::new(None) };
}

/// The calls of the store by one request. A call that several requests share is counted for the
/// request that makes it.
#[derive(Debug, Default)]
pub(crate) struct Tally {
    /// The generation that the request has read or committed, or 0.
    generation: AtomicU64,
    calls: AtomicU64,
    bytes: AtomicU64,
    microseconds: AtomicU64,
    /// The error that the protocol has reported to the client.
    error: Mutex<Option<String>>,
}

/// A guard that marks the thread as working for a request.
#[derive(Debug)]
pub(crate) struct TallyGuard(PhantomData<*const ()>);

impl Tally {
    /// Counts the calls of this thread until the guard is dropped.
    pub(crate) fn enter(self: &Arc<Self>) -> TallyGuard {
        CURRENT.with(|current| current.replace(Some(Arc::clone(self))));
        TallyGuard(PhantomData)
    }

    /// Returns the counts, or `None` if the request did not use a store.
    pub(crate) fn usage(&self) -> Option<StoreUse> {
        let generation = self.generation.load(Relaxed);
        let calls = self.calls.load(Relaxed);
        (generation > 0 || calls > 0).then(|| StoreUse {
            generation,
            calls,
            bytes: self.bytes.load(Relaxed),
            duration: Duration::from_micros(self.microseconds.load(Relaxed)),
        })
    }

    /// Returns the error that was reported to the client.
    pub(crate) fn error(&self) -> Option<String> {
        let mut error = self.error.lock().unwrap_or_else(PoisonError::into_inner);
        error.take()
    }
}

impl Drop for TallyGuard {
    fn drop(&mut self) {
        CURRENT.with(|current| current.take());
    }
}

fn with(act: impl FnOnce(&Tally)) {
    CURRENT.with(|current| {
        if let Some(tally) = &*current.borrow() {
            act(tally);
        }
    });
}

/// Records the generation that the request of this thread uses.
pub(super) fn saw_generation(number: u64) {
    with(|tally| tally.generation.store(number, Relaxed));
}

/// Records a call by this thread.
pub(super) fn called(bytes: u64, duration: Duration) {
    with(|tally| {
        tally.calls.fetch_add(1, Relaxed);
        tally.bytes.fetch_add(bytes, Relaxed);
        let microseconds = u64::try_from(duration.as_micros()).unwrap_or(u64::MAX);
        tally.microseconds.fetch_add(microseconds, Relaxed);
    });
}

/// Records an error for the log.
pub(super) fn failed(error: String) {
    with(|tally| {
        let mut slot = tally.error.lock().unwrap_or_else(PoisonError::into_inner);
        slot.get_or_insert(error);
    });
}
