//! Cancellation: a flag that long operations check between steps.

use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::time::Instant;

/// A shared flag that requests an operation to stop. Clones share the flag.
#[derive(Clone, Debug, Default)]
pub struct Interrupt {
    flag: Arc<AtomicBool>,
    /// The deadline, from which on the flag counts as set.
    end: Option<Instant>,
}

impl Interrupt {
    /// Creates a flag that is not set.
    pub fn new() -> Self {
        Self::default()
    }

    /// Returns an interrupt that shares the flag and has the deadline `end`.
    ///
    /// ```
    /// # mod pronto { pub use pronto_io::interrupt::Interrupt; }
    /// use pronto::Interrupt;
    /// use std::time::Instant;
    ///
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

    /// Returns whether the operation should stop. Costs one relaxed load, and a clock read if there
    /// is a deadline.
    pub fn is_triggered(&self) -> bool {
        self.flag.load(Relaxed) || self.end.is_some_and(|end| Instant::now() >= end)
    }

    /// Returns whether the flag was set, and clears it. Ignores the deadline.
    pub fn take(&self) -> bool {
        self.flag.swap(false, Relaxed)
    }

    /// Returns the flag for signal handlers. The flag is never freed afterwards.
    #[cfg(unix)]
    pub(crate) fn leak(&self) -> *mut AtomicBool {
        Arc::into_raw(self.flag.clone()).cast_mut()
    }

    /// Returns an error if the operation should stop, so that `?` ends the operation.
    ///
    /// # Errors
    /// Fails with [`Interrupted`] once the flag is set. Costs as much as
    /// [`is_triggered`](Self::is_triggered).
    pub fn check(&self) -> Result<(), Interrupted> {
        if self.is_triggered() {
            Err(Interrupted)
        } else {
            Ok(())
        }
    }
}

/// The error of an operation that was interrupted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Interrupted;

impl fmt::Display for Interrupted {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("interrupted")
    }
}

impl std::error::Error for Interrupted {}
