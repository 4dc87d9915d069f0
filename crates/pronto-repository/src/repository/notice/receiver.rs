//! The receiver of notices, which the caller registers with a repository.

use std::fmt;
use std::sync::{Arc, Mutex, PoisonError};

use super::{Notice, Severity};

/// Receives the notices of repositories. [`with_notices`](crate::Repository::with_notices)
/// registers the receiver of a repository. All threads that use the repository share the receiver.
///
/// ```
/// # use pronto_repository as pronto;
/// use pronto::{Notice, Notices};
/// struct Log;
/// impl Notices for Log {
///     fn notice(&self, notice: Notice) {
///         eprintln!("{notice}");
///     }
/// }
/// ```
pub trait Notices: Send + Sync {
    /// Receives a notice, on the thread of the operation that reports it.
    fn notice(&self, notice: Notice);
}

/// A shared receiver of notices. The default discards all notices.
#[derive(Clone, Default)]
pub struct NoticeReceiver(Option<Arc<dyn Notices>>);

impl NoticeReceiver {
    /// Passes a notice to the receiver.
    pub fn notice(&self, notice: Notice) {
        if let Some(receiver) = &self.0 {
            receiver.notice(notice);
        }
    }
}

impl<N: Notices + 'static> From<Arc<N>> for NoticeReceiver {
    fn from(receiver: Arc<N>) -> Self {
        NoticeReceiver(Some(receiver))
    }
}

impl fmt::Debug for NoticeReceiver {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let name = match self.0 {
            Some(_) => "NoticeReceiver(..)",
            None => "NoticeReceiver(discards)",
        };
        f.write_str(name)
    }
}

/// A receiver that collects notices until its owner takes them.
#[derive(Debug, Default)]
pub struct NoticeQueue(Mutex<Vec<Notice>>);

impl Notices for NoticeQueue {
    fn notice(&self, notice: Notice) {
        self.lock(|notices| notices.push(notice));
    }
}

impl NoticeQueue {
    /// Removes and returns the collected notices.
    pub fn take(&self) -> Vec<Notice> {
        self.lock(std::mem::take)
    }

    /// Removes and returns the collected notices of one severity.
    pub fn take_of(&self, severity: Severity) -> Vec<Notice> {
        self.take_where(|notice| notice.severity() == severity)
    }

    /// Removes and returns the collected notices for which `is_wanted` is true.
    pub fn take_where(&self, is_wanted: impl Fn(&Notice) -> bool) -> Vec<Notice> {
        self.lock(|notices| notices.extract_if(.., |notice| is_wanted(notice)).collect())
    }

    fn lock<T>(&self, change: impl FnOnce(&mut Vec<Notice>) -> T) -> T {
        change(&mut self.0.lock().unwrap_or_else(PoisonError::into_inner))
    }
}
