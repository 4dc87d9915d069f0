//! The use that one request makes of the store.

use std::cell::RefCell;
use std::marker::PhantomData;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use crate::log::StoreUse;

thread_local! {
    /// The request that this thread works for.
    static CURRENT: RefCell<Option<Arc<Tally>>> = const { RefCell::new(None) };
}

/// Counts the calls of the store that one request makes. Calls that requests share are counted for the one
/// that makes them.
#[derive(Debug, Default)]
pub(crate) struct Tally {
    /// The generation that the request has read, or the one that it has made; 0 for none.
    generation: AtomicU64,
    calls: AtomicU64,
    bytes: AtomicU64,
    microseconds: AtomicU64,
    /// An error that the protocol has reported to the client.
    error: Mutex<Option<String>>,
}

/// Marks the thread as working for a request.
#[derive(Debug)]
pub(crate) struct Entered(PhantomData<*const ()>);

impl Tally {
    /// Counts the calls of this thread from now on.
    pub(crate) fn enter(self: &Arc<Self>) -> Entered {
        CURRENT.with(|current| current.replace(Some(Arc::clone(self))));
        Entered(PhantomData)
    }

    /// Returns what was counted; `None` if the request did not use a store.
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

impl Drop for Entered {
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

/// Notes the generation that the request of this thread is about.
pub(super) fn saw_generation(number: u64) {
    with(|tally| tally.generation.store(number, Relaxed));
}

/// Notes a call of this thread.
pub(super) fn called(bytes: u64, duration: Duration) {
    with(|tally| {
        tally.calls.fetch_add(1, Relaxed);
        tally.bytes.fetch_add(bytes, Relaxed);
        let microseconds = u64::try_from(duration.as_micros()).unwrap_or(u64::MAX);
        tally.microseconds.fetch_add(microseconds, Relaxed);
    });
}

/// Notes an error for the log.
pub(super) fn failed(error: String) {
    with(|tally| {
        let mut slot = tally.error.lock().unwrap_or_else(PoisonError::into_inner);
        slot.get_or_insert(error);
    });
}
