//! Cancellation: a flag that long operations check between steps.

use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};

/// A shared flag that asks an operation to stop. Cloning shares it.
#[derive(Clone, Debug, Default)]
pub struct Interrupt(Arc<AtomicBool>);

impl Interrupt {
    /// A flag that is not set.
    pub fn new() -> Self {
        Self::default()
    }

    /// Requests operations to stop. Safe to call from a signal handler: one atomic store.
    pub fn trigger(&self) {
        self.0.store(true, Relaxed);
    }

    /// Whether to stop.
    pub fn is_triggered(&self) -> bool {
        self.0.load(Relaxed)
    }

    /// Whether it was set since the last call; clears it.
    pub fn take(&self) -> bool {
        self.0.swap(false, Relaxed)
    }

    /// The flag itself, which is never freed from now on: signal handlers look at it.
    #[cfg(unix)]
    pub(crate) fn leak(&self) -> *mut AtomicBool {
        Arc::into_raw(self.0.clone()).cast_mut()
    }

    /// Returns an error when it is time to stop, so that `?` ends the operation.
    ///
    /// # Errors
    /// [`Interrupted`] once the flag is set. Costs one relaxed load.
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
