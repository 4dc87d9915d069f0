//! Files that are replaced as a whole: written beside under a name that shuts others out, then
//! moved into place.

use std::fs::File;
use std::io::{ErrorKind as Io, Write};
use std::path::{Path, PathBuf};
use std::time::Duration;

use pronto_io::cleanup::Guard;
use pronto_io::error::IoContext;
use pronto_io::lock_file::{self, LockFile};
pub use pronto_io::lock_file::{Marking, PATIENCE};
use pronto_io::sync::SyncMethod;

use crate::{Error, ErrorKind, Result};

/// The exclusive right to replace one file. Dropping it gives the right back and leaves the file
/// as it was; so does the end of the process on a signal.
#[derive(Debug)]
pub struct Lock {
    target: PathBuf,
    path: PathBuf,
    sync: SyncMethod,
    is_written: bool,
    // The name goes before the file is closed: a marked one without a holder would be taken over.
    guard: Guard,
    file: Option<LockFile>,
}

impl Lock {
    /// Takes the lock on `target`: creates `target.lock`. Waits up to `patience` for whoever holds
    /// it. Directories on the way are made.
    ///
    /// # Errors
    /// [`ErrorKind::Locked`] when it is held for longer, with the way out in the message; or the
    /// file cannot be created.
    pub fn acquire(target: impl Into<PathBuf>, patience: Duration) -> Result<Self> {
        Self::acquire_as(target, Marking::Marked, patience)
    }

    /// As [`acquire`](Self::acquire), with a lock file that is marked or not.
    ///
    /// # Errors
    /// As for [`acquire`](Self::acquire).
    pub fn acquire_as(
        target: impl Into<PathBuf>,
        marking: Marking,
        patience: Duration,
    ) -> Result<Self> {
        let target = target.into();
        let mut path = target.clone().into_os_string();
        path.push(".lock");
        let path = PathBuf::from(path);
        let mut races = 0;
        let file = loop {
            match lock_file::create(&path, marking, patience) {
                Ok(file) => break file,
                Err(error) if error.kind() == Io::AlreadyExists => return Err(held(&path)),
                Err(error) if error.kind() == Io::NotFound && races < MAX_RACES => {
                    races += 1;
                    let parent = path.parent().unwrap_or(Path::new("/"));
                    if create_directories(parent).is_err() {
                        return Err(error).context(ErrorKind::Io, "Unable to create", &path);
                    }
                }
                Err(error) => return Err(error).context(ErrorKind::Io, "Unable to create", &path),
            }
        };
        let guard = Guard::new(&path);
        Ok(Lock {
            target,
            path,
            sync: SyncMethod::No,
            is_written: false,
            guard,
            file: Some(file),
        })
    }

    /// The file that is locked.
    pub fn target(&self) -> &Path {
        &self.target
    }

    /// The file that is written.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Has what [`write_and_close`](Self::write_and_close) writes waited for.
    #[must_use]
    pub fn waits(mut self, sync: SyncMethod) -> Self {
        self.sync = sync;
        self
    }

    /// Writes `bytes` and closes the file. The lock stays.
    ///
    /// # Errors
    /// It cannot be written.
    pub fn write_and_close(&mut self, bytes: &[u8]) -> Result<()> {
        if let Some(mut file) = self.file() {
            let written = file.write_all(bytes);
            let written = written.and_then(|()| self.sync.apply(file));
            written.context(ErrorKind::Io, "unable to write", &self.path)?;
        }
        self.close();
        Ok(())
    }

    /// Ends the writing. A file that is not marked is closed, for a process that holds many locks.
    pub fn close(&mut self) {
        self.is_written = true;
        self.file.take_if(|file| !file.is_marked());
    }

    /// The open file, for writing bit by bit; `None` once the writing has ended.
    pub fn file(&self) -> Option<&File> {
        let file = self.file.as_ref().filter(|_| !self.is_written);
        file.map(LockFile::file)
    }

    /// Moves what was written into place.
    ///
    /// # Errors
    /// It cannot be moved; the lock is given back.
    pub fn commit(mut self) -> Result<()> {
        if let Some(file) = &mut self.file {
            file.unmark()
                .context(ErrorKind::Io, "unable to write", &self.path)?;
        }
        std::fs::rename(&self.path, &self.target).map_err(|error| {
            let reason = pronto_io::error::reason(&error);
            let target = self.target.display();
            Error::new(
                ErrorKind::Io,
                format!("could not write '{target}': {reason}"),
            )
        })?;
        self.guard.keep();
        Ok(())
    }
}

/// How often a directory that another process removes as empty is made again.
pub(crate) const MAX_RACES: usize = 64;

/// Makes `directory` and those above it, even while other processes remove empty ones.
pub(crate) fn create_directories(directory: &Path) -> std::io::Result<()> {
    let mut races = 0;
    loop {
        match std::fs::create_dir_all(directory) {
            Err(error) if error.kind() == Io::NotFound && races < MAX_RACES => races += 1,
            other => return other,
        }
    }
}

fn held(path: &Path) -> Error {
    let message = format!(
        "Unable to create '{}': File exists.\n\n\
         Another git process seems to be running in this repository, e.g.\n\
         an editor opened by 'git commit'. Please make sure all processes\n\
         are terminated then try again. If it still fails, a git process\n\
         may have crashed in this repository earlier:\n\
         remove the file manually to continue.",
        path.display()
    );
    Error::new(ErrorKind::Locked, message)
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
