//! Replaces files atomically: new content is written to a lock file, which is then renamed.

use std::fs::File;
use std::io::ErrorKind as Io;
use std::path::{Path, PathBuf};
use std::time::Duration;

use pronto_io::lock_file::{self, LockFile};
pub use pronto_io::lock_file::{Marking, PATIENCE, follow};
use pronto_io::sync::SyncMethod;

use crate::{Error, ErrorKind, Result};

/// A [`LockFile`] with the error type of this crate. Missing parent directories are created.
#[derive(Debug)]
pub struct Lock(LockFile);

impl Lock {
    /// Locks `target` by creating `target.lock`. Waits up to `patience` for another holder of the
    /// lock. Creates missing parent directories. If `target` is a symbolic link, its target is
    /// locked and replaced, and the link stays.
    ///
    /// # Errors
    /// Fails with [`ErrorKind::Locked`] and a hint if another process holds the lock until the
    /// timeout, and with [`ErrorKind::Io`] if the lock file cannot be created.
    pub fn acquire(target: impl Into<PathBuf>, patience: Duration) -> Result<Self> {
        Self::acquire_as(follow(&target.into()), Marking::Marked, patience)
    }

    /// Locks `target` like [`acquire`](Self::acquire), with a choice of the marking. A symbolic
    /// link itself is locked.
    ///
    /// # Errors
    /// Fails with the errors of [`acquire`](Self::acquire).
    pub fn acquire_as(
        target: impl Into<PathBuf>,
        marking: Marking,
        patience: Duration,
    ) -> Result<Self> {
        let target = target.into();
        let mut races = 0;
        loop {
            match LockFile::acquire(&target, marking, patience) {
                Err(error)
                    if error.kind() == lock_file::ErrorKind::NoDirectory
                        && races < MAX_RACES
                        && let Some(parent) = target.parent() =>
                {
                    races += 1;
                    if create_directories(parent).is_err() {
                        return Err(from_lock(error));
                    }
                }
                acquired => return acquired.map(Lock).map_err(from_lock),
            }
        }
    }

    /// Records the id of this process as that of the lock holder, in the file `NAME~pid.lock`
    /// beside the locked file.
    pub(crate) fn record_process(&mut self) {
        self.0.record_process();
    }

    /// The file that is locked.
    pub fn target(&self) -> &Path {
        self.0.target()
    }

    /// Returns the path of the lock file.
    pub fn path(&self) -> &Path {
        self.0.path()
    }

    /// Sets the method with which [`write_and_close`](Self::write_and_close) flushes the file to
    /// disk.
    #[must_use]
    pub fn waits(mut self, sync: SyncMethod) -> Self {
        self.0.set_sync_method(sync);
        self
    }

    /// Writes `bytes` and closes the lock file. Keeps the lock.
    ///
    /// # Errors
    /// Fails with [`ErrorKind::Io`] if the file cannot be written.
    pub fn write_and_close(&mut self, bytes: &[u8]) -> Result<()> {
        self.0.write(bytes).map_err(from_lock)?;
        self.close();
        Ok(())
    }

    /// Ends the writing and keeps the lock. An unmarked file is closed, so that a process can hold
    /// many locks.
    pub fn close(&mut self) {
        self.0.close();
    }

    /// Returns the open lock file for partial writes, or `None` after [`close`](Self::close).
    pub fn file(&self) -> Option<&File> {
        self.0.file()
    }

    /// Renames the lock file to the target.
    ///
    /// # Errors
    /// Fails with [`ErrorKind::Io`] if the file cannot be renamed. The lock is released in any
    /// case.
    pub fn commit(self) -> Result<()> {
        let target = self.target().to_owned();
        self.0.commit_to(&target).map_err(|error| {
            let reason = pronto_io::error::reason(&error);
            let target = target.display();
            Error::new(
                ErrorKind::Io,
                format!("could not write '{target}': {reason}"),
            )
        })
    }
}

/// The maximum number of retries if other processes remove a directory, while it is empty, that is
/// being created.
pub const MAX_RACES: usize = 64;

/// Creates `directory` and its parents, even if other processes remove empty directories at the
/// same time.
///
/// # Errors
/// Fails with the error of the system if a directory cannot be created.
pub fn create_directories(directory: &Path) -> std::io::Result<()> {
    let mut races = 0;
    loop {
        match std::fs::create_dir_all(directory) {
            Err(error) if error.kind() == Io::NotFound && races < MAX_RACES => races += 1,
            other => return other,
        }
    }
}

fn from_lock(error: lock_file::Error) -> Error {
    error.map_kind(|kind| match kind {
        lock_file::ErrorKind::Held => ErrorKind::Locked,
        _ => ErrorKind::Io,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_holder_at_a_time_and_nothing_left_behind() {
        let directory = tempfile::tempdir().expect("a directory");
        let target = directory.path().join("a/file");
        let mut lock = Lock::acquire(&target, Duration::ZERO).expect("it is free");
        let error = Lock::acquire(&target, Duration::ZERO).expect_err("it is held");
        assert_eq!(error.kind(), ErrorKind::Locked);
        lock.write_and_close(b"new").expect("it can be written");
        lock.commit().expect("it can be moved");
        assert_eq!(std::fs::read(&target).expect("it is there"), b"new");
        drop(Lock::acquire(&target, Duration::ZERO).expect("it is free again"));
        let left = std::fs::read_dir(directory.path().join("a")).expect("a directory");
        assert_eq!(left.count(), 1);
    }
}
