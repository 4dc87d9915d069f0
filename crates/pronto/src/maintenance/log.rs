//! `gc.log`: the messages of background maintenance.

use std::io::ErrorKind as Io;
use std::time::{Duration, UNIX_EPOCH};

use bstr::BString;
use pronto_io::error::IoContext as _;

use crate::lock::Lock;
use crate::{ErrorKind, Repository, Result};

/// The log while it is written. Dropping it leaves an older one as it is.
#[derive(Debug)]
pub struct LogFile(Lock);

impl LogFile {
    /// Lets standard error of this process, and of those that it starts, go to the log.
    ///
    /// # Errors
    /// The system refuses.
    pub fn take_stderr(&self) -> Result<()> {
        let Some(file) = self.0.file() else {
            return Ok(());
        };
        let taken = rustix::stdio::dup2_stderr(file).map_err(std::io::Error::from);
        taken.context(ErrorKind::Io, "cannot write to", self.0.path())
    }

    /// Ends the log: it takes the place of an older one if something was written to it and `counts`, else
    /// there is none any more.
    ///
    /// # Errors
    /// It cannot be moved into place.
    pub fn end(self, counts: bool) -> Result<()> {
        let file = self.0.file().and_then(|file| file.metadata().ok());
        if counts && file.is_some_and(|file| file.len() > 0) {
            return self.0.commit();
        }
        // One that is not there need not go.
        let _ = std::fs::remove_file(self.0.target());
        Ok(())
    }
}

/// Begins a new log.
///
/// # Errors
/// Another process writes one, or it cannot be created.
pub fn begin_gc_log(repository: &Repository) -> Result<LogFile> {
    let lock = Lock::acquire(repository.git_path("gc.log"), Duration::ZERO)?;
    Ok(LogFile(lock.recorded(repository.config())))
}

/// The messages of the last background maintenance, if it was after the time `since` (seconds
/// since 1970).
///
/// # Errors
/// There is a log that cannot be read.
pub fn gc_log(repository: &Repository, since: i64) -> Result<Option<BString>> {
    let path = repository.git_path("gc.log");
    let file = match std::fs::metadata(&path) {
        Ok(file) => file,
        Err(error) if error.kind() == Io::NotFound => return Ok(None),
        Err(error) => {
            return Err(error).context(ErrorKind::Io, "cannot stat", &path);
        }
    };
    let modified = file.modified().ok();
    let modified = modified.and_then(|time| time.duration_since(UNIX_EPOCH).ok());
    let modified = modified.map_or(0, |time| time.as_secs() as i64);
    if modified < since || file.len() == 0 {
        return Ok(None);
    }
    let text = pronto_io::untrusted::content(&path);
    let text = text.context(ErrorKind::Io, "cannot read", &path)?;
    Ok((!text.is_empty()).then(|| text.into()))
}

/// Removes the log.
pub fn remove_gc_log(repository: &Repository) {
    // One that is not there need not go.
    let _ = std::fs::remove_file(repository.git_path("gc.log"));
}
