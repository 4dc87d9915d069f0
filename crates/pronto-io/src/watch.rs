//! The observer of an operation, for progress and interruption.

use std::fmt;
use std::sync::{Arc, LazyLock};

use crate::interrupt::Interrupt;
use crate::progress::Progress;

/// The interrupt of callers that never interrupt an operation.
static NEVER: LazyLock<Interrupt> = LazyLock::new(Interrupt::new);

/// The observer of an operation: it receives the progress and may interrupt the operation.
///
/// ```
/// # mod pronto { pub use pronto_io::{interrupt::Interrupt, watch::Watch}; }
/// use pronto::{Interrupt, Watch};
///
/// let interrupt = Interrupt::new();
/// let watch = Watch::none().with_interrupt(&interrupt);
/// interrupt.trigger();
/// assert!(watch.interrupt().is_triggered());
/// ```
#[derive(Clone)]
pub struct Watch<'a> {
    progress: ProgressReceiver<'a>,
    interrupt: &'a Interrupt,
}

#[derive(Clone)]
enum ProgressReceiver<'a> {
    Borrowed(&'a dyn Progress),
    Shared(Arc<dyn Progress>),
}

impl<'a> Watch<'a> {
    /// Returns a watch that discards progress and never interrupts.
    pub fn none() -> Self {
        Watch {
            progress: ProgressReceiver::Borrowed(&()),
            interrupt: &NEVER,
        }
    }

    /// Sets the receiver of progress.
    #[must_use]
    pub fn with_progress(self, progress: &'a dyn Progress) -> Self {
        Watch {
            progress: ProgressReceiver::Borrowed(progress),
            ..self
        }
    }

    /// Sets a shared receiver of progress, which an operation may keep after the call.
    #[must_use]
    pub fn with_shared_progress(self, progress: Arc<dyn Progress>) -> Self {
        Watch {
            progress: ProgressReceiver::Shared(progress),
            ..self
        }
    }

    /// Makes the operation fail when `interrupt` is triggered.
    #[must_use]
    pub fn with_interrupt(self, interrupt: &'a Interrupt) -> Self {
        Watch { interrupt, ..self }
    }

    /// Returns a watch that discards progress and is interrupted together with this one.
    #[must_use]
    pub fn quiet(&self) -> Self {
        Watch::none().with_interrupt(self.interrupt)
    }

    /// Returns the receiver of progress.
    pub fn progress(&self) -> &dyn Progress {
        match &self.progress {
            ProgressReceiver::Borrowed(progress) => *progress,
            ProgressReceiver::Shared(progress) => &**progress,
        }
    }

    /// Returns the receiver of progress if it is shared.
    pub fn shared_progress(&self) -> Option<Arc<dyn Progress>> {
        match &self.progress {
            ProgressReceiver::Borrowed(_) => None,
            ProgressReceiver::Shared(progress) => Some(Arc::clone(progress)),
        }
    }

    /// Returns the interrupt of the operation.
    pub fn interrupt(&self) -> &'a Interrupt {
        self.interrupt
    }
}

impl<'a> From<&'a Interrupt> for Watch<'a> {
    fn from(interrupt: &'a Interrupt) -> Self {
        Watch::none().with_interrupt(interrupt)
    }
}

impl Default for Watch<'_> {
    fn default() -> Self {
        Self::none()
    }
}

impl fmt::Debug for Watch<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Watch")
            .field("interrupt", self.interrupt)
            .finish_non_exhaustive()
    }
}
