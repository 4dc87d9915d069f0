//! The first message of a clone ("Cloning into …"). The message is printed when it is certain that
//! the clone is not handed over to git, and before any other message or prompt.

use std::fmt;
use std::sync::{Arc, Mutex, PoisonError};

use pronto_io::progress::{Meter, Progress, ProgressMessage};
use pronto_io::watch::Watch;
use pronto_wire::transport::http::{CredentialProvider, HttpSecret};
use pronto_wire::url::Url;

/// The first line of output, held back until something else is reported. Progress that is reported
/// through this type follows the line.
pub(crate) struct Announcement {
    progress: Arc<dyn Progress>,
    /// Whether `progress` is a shared handle of the caller's progress.
    is_shared: bool,
    line: Mutex<Option<String>>,
}

impl Announcement {
    /// Returns the announcement of `line` to the progress of `watch`. If the progress is not
    /// shared, the line cannot be held back and is reported at once.
    pub(super) fn new(watch: &Watch<'_>, line: String) -> Arc<Self> {
        let (progress, line) = match watch.shared_progress() {
            Some(progress) => (progress, Some(line)),
            None => {
                watch.progress().message(ProgressMessage::Step(&line));
                (Arc::new(()) as Arc<dyn Progress>, None)
            }
        };
        let is_shared = line.is_some();
        Arc::new(Announcement {
            progress,
            is_shared,
            line: Mutex::new(line),
        })
    }

    /// Returns `watch` with progress that is reported after the line.
    pub(super) fn watch<'a>(&'a self, watch: &Watch<'a>) -> Watch<'a> {
        match self.is_shared {
            true => watch.clone().with_progress(self),
            false => watch.clone(),
        }
    }

    /// Reports the line, unless it was reported before.
    pub(super) fn say(&self) {
        let line = self
            .line
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .take();
        if let Some(line) = line {
            self.progress.message(ProgressMessage::Step(&line));
        }
    }

    /// Wraps `inner` so that the line is reported before credentials are looked up, because the
    /// user may be prompted.
    pub(crate) fn before(
        self: &Arc<Self>,
        inner: Box<dyn CredentialProvider>,
    ) -> Box<dyn CredentialProvider> {
        let announcement = self.clone();
        Box::new(AnnouncingCredentials {
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

    fn message(&self, message: ProgressMessage<'_>) {
        self.say();
        self.progress.message(message);
    }
}

impl fmt::Debug for Announcement {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Announcement")
            .field("line", &self.line)
            .finish_non_exhaustive()
    }
}

struct AnnouncingCredentials {
    announcement: Arc<Announcement>,
    inner: Box<dyn CredentialProvider>,
}

impl CredentialProvider for AnnouncingCredentials {
    fn fill(
        &mut self,
        url: &Url,
        challenges: &[String],
    ) -> Result<Option<HttpSecret>, pronto_wire::Error> {
        self.announcement.say();
        self.inner.fill(url, challenges)
    }

    fn continues(&self) -> bool {
        self.inner.continues()
    }

    fn approve(&mut self) {
        self.inner.approve();
    }

    fn reject(&mut self) {
        self.inner.reject();
    }
}
