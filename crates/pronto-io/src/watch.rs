//! The observer of an operation: progress and interruption.

use std::fmt;
use std::sync::Arc;

use crate::interrupt::Interrupt;
use crate::progress::Progress;

/// The observer of an operation: it receives the progress and may interrupt the operation. Cloning
/// shares both.
///
/// ```
/// use pronto_io::interrupt::Interrupt;
/// use pronto_io::watch::Watch;
/// let interrupt = Interrupt::new();
/// let watch = Watch::none().with_interrupt(interrupt.clone());
/// interrupt.trigger();
/// assert!(watch.interrupt().is_triggered());
/// ```
#[derive(Clone)]
pub struct Watch {
    progress: Arc<dyn Progress>,
    interrupt: Interrupt,
}

impl Watch {
    /// Returns a watch that discards progress and never interrupts.
    pub fn none() -> Self {
        Watch {
            progress: Arc::new(()),
            interrupt: Interrupt::new(),
        }
    }

    /// Sends progress to `progress`.
    #[must_use]
    pub fn with_progress(self, progress: Arc<dyn Progress>) -> Self {
        Watch { progress, ..self }
    }

    /// Lets `interrupt` stop the operation, which then fails.
    #[must_use]
    pub fn with_interrupt(self, interrupt: Interrupt) -> Self {
        Watch { interrupt, ..self }
    }

    /// Returns the receiver of progress.
    pub fn progress(&self) -> &dyn Progress {
        &*self.progress
    }

    /// Returns the receiver of progress, to be shared.
    pub fn shared_progress(&self) -> Arc<dyn Progress> {
        Arc::clone(&self.progress)
    }

    /// Returns the flag that stops the operation.
    pub fn interrupt(&self) -> &Interrupt {
        &self.interrupt
    }
}

impl Default for Watch {
    fn default() -> Self {
        Self::none()
    }
}

impl fmt::Debug for Watch {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Watch")
            .field("interrupt", &self.interrupt)
            .finish_non_exhaustive()
    }
}
