//! The lock file `index.lock`, which prevents other processes from writing the index and becomes
//! the new index.

use crate::error::{Error, ErrorKind};
use crate::identity::IndexFileIdentity;
use crate::index::Index;
use pronto_io::cleanup::Guard;
use pronto_io::error::IoContext;
use pronto_io::lock_file::{self, LockFile, Marking, PATIENCE};
use pronto_io::sync::SyncMethod;
use std::fs::OpenOptions;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::time::Duration;

/// The [`LockFile`] of the index, with symbolic links followed. The lock is released on drop.
#[derive(Debug)]
pub struct IndexLock(LockFile);

impl IndexLock {
    /// Takes the lock of the index at `index`, which need not exist. Waits up to [`PATIENCE`] if
    /// another process holds the lock.
    ///
    /// # Errors
    /// Fails with [`ErrorKind::Locked`] and Git's message if the lock is held for longer, and with
    /// [`ErrorKind::Io`] if the lock file cannot be created.
    pub fn acquire(index: &Path) -> Result<IndexLock, Error> {
        Self::acquire_within(index, PATIENCE)
    }

    /// Does the same as [`acquire`](Self::acquire) with the timeout `patience`.
    ///
    /// # Errors
    /// Fails as [`acquire`](Self::acquire) does.
    pub fn acquire_within(index: &Path, patience: Duration) -> Result<IndexLock, Error> {
        let acquired = LockFile::acquire(lock_file::follow(index), Marking::Marked, patience);
        acquired.map(IndexLock).map_err(from_lock)
    }

    /// Records this process as the lock holder in `index~pid.lock` (`core.lockfilePid`).
    pub fn record_process(&mut self) {
        self.0.record_process();
    }

    /// Has the new index waited for before it is put in place.
    #[must_use]
    pub fn waits(mut self, sync: SyncMethod) -> IndexLock {
        self.0.set_sync_method(sync);
        self
    }

    /// Writes `bytes` to the lock file and renames it to the index.
    ///
    /// # Errors
    /// Fails with [`ErrorKind::Io`] if the file cannot be written or renamed; the old index then
    /// stays and the lock is released.
    pub fn commit(self, bytes: &[u8]) -> Result<IndexFileIdentity, Error> {
        let index = self.0.target().to_owned();
        self.commit_to(bytes, &index)
    }

    /// Writes `bytes` to the lock file and renames it to `target` on the same file system; the
    /// index stays.
    ///
    /// # Errors
    /// Fails with [`ErrorKind::Io`] if the file cannot be written or renamed; the old file then
    /// stays and the lock is released.
    pub fn commit_to(mut self, bytes: &[u8], target: &Path) -> Result<IndexFileIdentity, Error> {
        self.0.write(bytes).map_err(from_lock)?;
        let metadata = match self.0.file() {
            Some(file) => file.metadata(),
            None => self.path().metadata(),
        };
        let metadata = metadata.context(ErrorKind::Io, "unable to write", self.path())?;
        let moved = self.0.commit_to(target);
        moved.context(ErrorKind::Io, "unable to write new index file", target)?;
        Ok(IndexFileIdentity::of(&metadata))
    }

    /// Returns the path of the lock file.
    pub fn path(&self) -> &Path {
        self.0.path()
    }
}

fn from_lock(error: lock_file::Error) -> Error {
    error.map_kind(|kind| match kind {
        lock_file::ErrorKind::Held => ErrorKind::Locked,
        _ => ErrorKind::Io,
    })
}

/// Replaces the index at `path` with `bytes`, if the file is still the one from which `read` was
/// read. The new file is written and flushed with the method `sync` before the lock is taken; the
/// lock is held only for the comparison and the rename. Returns `false` if another process holds
/// the lock or has changed the index.
///
/// # Errors
/// Fails with [`ErrorKind::Io`] if the file cannot be written or renamed; the old index then stays.
pub fn replace(path: &Path, bytes: &[u8], read: &Index, sync: SyncMethod) -> Result<bool, Error> {
    let index = lock_file::follow(path);
    let mut lock_path = index.clone().into_os_string();
    lock_path.push(".lock");
    let lock_path = PathBuf::from(lock_path);
    // Does not wait for a lock that another process holds.
    if lock_path.symlink_metadata().is_ok() || !read.is_current(&index) {
        return Ok(false);
    }
    let mut prepared = index.clone().into_os_string();
    prepared.push(format!(".{}", std::process::id()));
    let prepared = PathBuf::from(prepared);
    let file = OpenOptions::new()
        .write(true)
        .create_new(true)
        .open(&prepared);
    let mut file = match file {
        Err(error) if error.kind() == std::io::ErrorKind::AlreadyExists => return Ok(false),
        opened => opened.context(ErrorKind::Io, "unable to create", &prepared)?,
    };
    let _prepared = Guard::new(&prepared);
    let written = file.write_all(bytes).and_then(|()| sync.apply(&file));
    written.context(ErrorKind::Io, "unable to write", &prepared)?;
    match std::fs::hard_link(&prepared, &lock_path) {
        Ok(()) => {}
        Err(error) if error.kind() == std::io::ErrorKind::AlreadyExists => return Ok(false),
        // The file system does not support hard links.
        Err(_) => {
            let Ok(lock) = IndexLock::acquire_within(&index, Duration::ZERO) else {
                return Ok(false);
            };
            return match read.is_current(&index) {
                true => lock.waits(sync).commit(bytes).map(|_| true),
                false => Ok(false),
            };
        }
    }
    let lock = Guard::new(&lock_path);
    if !read.is_current(&index) {
        return Ok(false);
    }
    std::fs::rename(&lock_path, &index).context(
        ErrorKind::Io,
        "unable to write new index file",
        &index,
    )?;
    lock.keep();
    Ok(true)
}
