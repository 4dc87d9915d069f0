//! Reads and writes `gc.log`, the messages of background maintenance.

use std::io::ErrorKind as Io;
use std::time::{Duration, UNIX_EPOCH};

use bstr::BString;
use pronto_io::error::IoContext as _;

use crate::lock::Lock;
use crate::{ErrorKind, Repository, Result};

/// A new `gc.log` while it is written. Dropping the value keeps the previous log.
#[derive(Debug)]
pub struct LogFile(Lock);

impl LogFile {
    /// Redirects the standard error of this process, and of its children, to the log.
    ///
    /// # Errors
    /// Fails with [`ErrorKind::Io`] if the redirection fails.
    pub fn take_stderr(&self) -> Result<()> {
        let Some(file) = self.0.file() else {
            return Ok(());
        };
        let taken = rustix::stdio::dup2_stderr(file).map_err(std::io::Error::from);
        taken.context(ErrorKind::Io, "cannot write to", self.0.path())
    }

    /// Ends the log. If `counts` is true and the log is not empty, it replaces the previous log;
    /// else the previous log is deleted.
    ///
    /// # Errors
    /// Fails with [`ErrorKind::Io`] if the lock file cannot be renamed.
    pub fn end(self, counts: bool) -> Result<()> {
        let file = self.0.file().and_then(|file| file.metadata().ok());
        if counts && file.is_some_and(|file| file.len() > 0) {
            return self.0.commit();
        }
        // A missing log is no error.
        let _ = std::fs::remove_file(self.0.target());
        Ok(())
    }
}

/// Starts a new `gc.log`.
///
/// # Errors
/// Fails with `ErrorKind::Locked` if another process is writing a log, and with [`ErrorKind::Io`]
/// if the lock file cannot be created.
pub fn begin_gc_log(repository: &Repository) -> Result<LogFile> {
    let lock = Lock::acquire(repository.git_path("gc.log"), Duration::ZERO)?;
    Ok(LogFile(lock.recorded(repository.config())))
}

/// Returns the messages of the last background maintenance, if they were written at or after
/// `since` (seconds since 1970).
///
/// # Errors
/// Fails with [`ErrorKind::Io`] if an existing log cannot be read.
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

/// Removes `gc.log`.
pub fn remove_gc_log(repository: &Repository) {
    // A missing log is no error.
    let _ = std::fs::remove_file(repository.git_path("gc.log"));
}
