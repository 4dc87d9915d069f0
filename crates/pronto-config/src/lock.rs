//! Files that are replaced as a whole: written to a lock file, then renamed.

use std::fs::File;
use std::io::ErrorKind as Io;
use std::path::{Path, PathBuf};
use std::time::Duration;

use pronto_io::lock_file::{self, LockFile};
pub use pronto_io::lock_file::{Marking, PATIENCE, follow};
use pronto_io::sync::SyncMethod;

use crate::{Error, ErrorKind, Result};

/// A [`LockFile`] with the errors of this crate, which creates missing parent directories.
#[derive(Debug)]
pub struct Lock(LockFile);

impl Lock {
    /// Takes the lock on `target` by creating `target.lock`. Waits up to `patience` for the process
    /// that holds it. Creates missing parent directories. The target of a symbolic link is locked, and the link
    /// stays.
    ///
    /// # Errors
    /// [`ErrorKind::Locked`] when it is held for longer, with advice as a hint; or the file cannot
    /// be created.
    pub fn acquire(target: impl Into<PathBuf>, patience: Duration) -> Result<Self> {
        Self::acquire_as(follow(&target.into()), Marking::Marked, patience)
    }

    /// Like [`acquire`](Self::acquire), with a lock file that is marked or not. A symbolic link is locked itself.
    ///
    /// # Errors
    /// As for [`acquire`](Self::acquire).
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
                    if *error.kind() == lock_file::ErrorKind::NoDirectory
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

    /// Names this process as the holder of the lock, beside the locked file.
    pub(crate) fn record_process(&mut self) {
        self.0.record_process();
    }

    /// The file that is locked.
    pub fn target(&self) -> &Path {
        self.0.target()
    }

    /// The file that is written.
    pub fn path(&self) -> &Path {
        self.0.path()
    }

    /// Has what [`write_and_close`](Self::write_and_close) writes waited for.
    #[must_use]
    pub fn waits(mut self, sync: SyncMethod) -> Self {
        self.0.wait_for(sync);
        self
    }

    /// Writes `bytes` and closes the file. The lock stays.
    ///
    /// # Errors
    /// It cannot be written.
    pub fn write_and_close(&mut self, bytes: &[u8]) -> Result<()> {
        self.0.write(bytes).map_err(from_lock)?;
        self.close();
        Ok(())
    }

    /// Ends the writing. A file that is not marked is closed, for a process that holds many locks.
    pub fn close(&mut self) {
        self.0.close();
    }

    /// The open file, for writing bit by bit; `None` once the writing has ended.
    pub fn file(&self) -> Option<&File> {
        self.0.file()
    }

    /// Moves what was written into place.
    ///
    /// # Errors
    /// It cannot be moved; the lock is given back.
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

/// The number of times that a directory is created again after another process removed it as empty.
pub const MAX_RACES: usize = 64;

/// Makes `directory` and those above it, even while other processes remove empty ones.
///
/// # Errors
/// A directory cannot be made.
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
        assert_eq!(*error.kind(), ErrorKind::Locked);
        lock.write_and_close(b"new").expect("it can be written");
        lock.commit().expect("it can be moved");
        assert_eq!(std::fs::read(&target).expect("it is there"), b"new");
        drop(Lock::acquire(&target, Duration::ZERO).expect("it is free again"));
        let left = std::fs::read_dir(directory.path().join("a")).expect("a directory");
        assert_eq!(left.count(), 1);
    }
}
