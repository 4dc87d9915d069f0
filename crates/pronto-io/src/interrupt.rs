//! Cancellation: a flag that long operations check between steps.

use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::time::Instant;

/// A shared flag that asks an operation to stop. Cloning shares it.
#[derive(Clone, Debug, Default)]
pub struct Interrupt {
    flag: Arc<AtomicBool>,
    /// The time from which on it counts as set.
    end: Option<Instant>,
}

impl Interrupt {
    /// A flag that is not set.
    pub fn new() -> Self {
        Self::default()
    }

    /// Returns one that shares the flag, and that also counts as set from `end` on.
    ///
    /// ```
    /// use std::time::Instant;
    /// use pronto_io::interrupt::Interrupt;
    /// let interrupt = Interrupt::new();
    /// assert!(interrupt.until(Instant::now()).is_triggered());
    /// assert!(!interrupt.is_triggered());
    /// ```
    #[must_use]
    pub fn until(&self, end: Instant) -> Self {
        let end = self.end.map_or(end, |earlier| earlier.min(end));
        Interrupt {
            flag: Arc::clone(&self.flag),
            end: Some(end),
        }
    }

    /// Requests operations to stop. Safe to call from a signal handler: one atomic store.
    pub fn trigger(&self) {
        self.flag.store(true, Relaxed);
    }

    /// Returns whether to stop. Costs one relaxed load, and with a deadline a look at the clock.
    pub fn is_triggered(&self) -> bool {
        self.flag.load(Relaxed) || self.end.is_some_and(|end| Instant::now() >= end)
    }

    /// Whether it was set since the last call; clears it.
    pub fn take(&self) -> bool {
        self.flag.swap(false, Relaxed)
    }

    /// The flag itself, which is never freed from now on: signal handlers look at it.
    #[cfg(unix)]
    pub(crate) fn leak(&self) -> *mut AtomicBool {
        Arc::into_raw(self.flag.clone()).cast_mut()
    }

    /// Returns an error when it is time to stop, so that `?` ends the operation.
    ///
    /// # Errors
    /// [`Interrupted`] once the flag is set. Costs as much as [`is_triggered`](Self::is_triggered).
    pub fn check(&self) -> Result<(), Interrupted> {
        if self.is_triggered() {
            Err(Interrupted)
        } else {
            Ok(())
        }
    }
}

/// The operation was asked to stop and did.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Interrupted;

impl fmt::Display for Interrupted {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("interrupted")
    }
}

impl std::error::Error for Interrupted {}
