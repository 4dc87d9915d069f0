//! The first message of a clone: printed when it is certain that the clone is not handed over, and
//! before any other message or question.

use std::fmt;
use std::sync::{Arc, Mutex, PoisonError};

use pronto_io::progress::{Meter, Progress};
use pronto_wire::transport::http::{Credentials, Secret};
use pronto_wire::url::Url;

/// A line that waits to be said. What is reported through it comes behind the line.
pub(crate) struct Announcement {
    progress: Arc<dyn Progress>,
    line: Mutex<Option<String>>,
}

impl Announcement {
    pub(super) fn new(progress: Arc<dyn Progress>, line: String) -> Arc<Self> {
        Arc::new(Announcement {
            progress,
            line: Mutex::new(Some(line)),
        })
    }

    /// Says the line, unless it has been said.
    pub(super) fn say(&self) {
        let line = self
            .line
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .take();
        if let Some(line) = line {
            self.progress.message(&line);
        }
    }

    /// Wraps credentials so that the line precedes them: the user may be prompted.
    pub(crate) fn before(self: &Arc<Self>, inner: Box<dyn Credentials>) -> Box<dyn Credentials> {
        let announcement = self.clone();
        Box::new(Announced {
            announcement,
            inner,
        })
    }
}

impl Progress for Announcement {
    fn begin(&self, title: &'static str, total: Option<u64>) -> Meter {
        self.say();
        self.progress.begin(title, total)
    }

    fn message(&self, text: &str) {
        self.say();
        self.progress.message(text);
    }
}

impl fmt::Debug for Announcement {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Announcement")
            .field("line", &self.line)
            .finish_non_exhaustive()
    }
}

struct Announced {
    announcement: Arc<Announcement>,
    inner: Box<dyn Credentials>,
}

impl Credentials for Announced {
    fn fill(
        &mut self,
        url: &Url,
        challenges: &[String],
    ) -> Result<Option<Secret>, pronto_wire::Error> {
        self.announcement.say();
        self.inner.fill(url, challenges)
    }

    fn approve(&mut self) {
        self.inner.approve();
    }

    fn reject(&mut self) {
        self.inner.reject();
    }
}
