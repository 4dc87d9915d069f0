//! `index.lock`: the file that keeps others from writing the index, and becomes the new one.

use crate::error::{Error, ErrorKind};
use crate::index::Index;
use crate::outline::Identity;
use pronto_io::cleanup::Guard;
use pronto_io::error::IoContext;
use pronto_io::lock_file::{self, LockFile, Marking, PATIENCE};
use pronto_io::sync::SyncMethod;
use std::fs::OpenOptions;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::time::Duration;

/// The lock is held while this lives, and given back when it is dropped.
#[derive(Debug)]
pub struct Lock {
    /// The index itself, with symbolic links followed.
    index: PathBuf,
    path: PathBuf,
    sync: SyncMethod,
    // The name goes before the file is closed: a marked one without a holder would be taken over.
    guard: Guard,
    file: LockFile,
}

/// Links followed before a chain of them is given up as endless.
const LONGEST_CHAIN: usize = 5;

impl Lock {
    /// Takes the lock of the index at `index`, which need not exist. Waits up to
    /// [`PATIENCE`] for another process that holds it.
    ///
    /// # Errors
    /// [`ErrorKind::Locked`] in Git's words if it is held for longer, [`ErrorKind::Io`] if it
    /// cannot be made.
    pub fn acquire(index: &Path) -> Result<Lock, Error> {
        Self::acquire_within(index, PATIENCE)
    }

    /// As [`acquire`](Self::acquire), waiting up to `patience`.
    ///
    /// # Errors
    /// As for [`acquire`](Self::acquire).
    pub fn acquire_within(index: &Path, patience: Duration) -> Result<Lock, Error> {
        let index = follow(index);
        let mut path = index.clone().into_os_string();
        path.push(".lock");
        let path = PathBuf::from(path);
        let absolute = std::path::absolute(&path).unwrap_or_else(|_| path.clone());
        match lock_file::create(&path, Marking::Marked, patience) {
            Ok(file) => Ok(Lock {
                file,
                index,
                guard: Guard::new(&path),
                sync: SyncMethod::No,
                path,
            }),
            Err(error) if error.kind() == std::io::ErrorKind::AlreadyExists => Err(Error::new(
                ErrorKind::Locked,
                format!("Unable to create '{}': File exists.", absolute.display()),
            )
            .with_hint(
                "another process is changing this repository, or one ended without cleaning up;\n\
                 if no Git process is running here, remove the file and try again",
            )),
            failed => {
                failed.context(ErrorKind::Io, "Unable to create", &absolute)?;
                unreachable!("both other outcomes are taken")
            }
        }
    }

    /// Has the new index waited for before it is put in place.
    #[must_use]
    pub fn waits(mut self, sync: SyncMethod) -> Lock {
        self.sync = sync;
        self
    }

    /// Writes `bytes` as the new index and puts it in place.
    ///
    /// # Errors
    /// [`ErrorKind::Io`]; the old index then stays and the lock is gone.
    pub fn commit(self, bytes: &[u8]) -> Result<Identity, Error> {
        let index = self.index.clone();
        self.commit_to(bytes, &index)
    }

    /// Writes `bytes` and puts them in place of `target`, on the same file system; the index
    /// stays.
    ///
    /// # Errors
    /// [`ErrorKind::Io`]; the old file then stays and the lock is gone.
    pub fn commit_to(mut self, bytes: &[u8], target: &Path) -> Result<Identity, Error> {
        let mut file = self.file.file();
        let written = file
            .write_all(bytes)
            .and_then(|()| self.sync.apply(file))
            .and_then(|()| file.metadata());
        let metadata = written.context(ErrorKind::Io, "unable to write", &self.path)?;
        let unmarked = self.file.unmark();
        unmarked.context(ErrorKind::Io, "unable to write", &self.path)?;
        std::fs::rename(&self.path, target).context(
            ErrorKind::Io,
            "unable to write new index file",
            target,
        )?;
        self.guard.keep();
        Ok(Identity::of(&metadata))
    }

    /// The path of the lock file.
    pub fn path(&self) -> &Path {
        &self.path
    }
}

/// Puts `bytes` in place of the index at `path`, if that is still the file that `read` was read
/// from. The lock is held for as long as it takes to look and to rename: the new file is complete
/// before, and `sync` says how to wait for it. `false` if somebody else holds the lock or has changed
/// the index.
///
/// # Errors
/// [`ErrorKind::Io`]; the old index then stays.
pub fn replace(path: &Path, bytes: &[u8], read: &Index, sync: SyncMethod) -> Result<bool, Error> {
    let index = follow(path);
    let mut lock_path = index.clone().into_os_string();
    lock_path.push(".lock");
    let lock_path = PathBuf::from(lock_path);
    // Nobody waits for what cannot be had.
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
        // A file system without links.
        Err(_) => {
            let Ok(lock) = Lock::acquire_within(&index, Duration::ZERO) else {
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

/// The file that a symbolic link stands for, so that the rename does not replace the link.
fn follow(index: &Path) -> PathBuf {
    let mut path = index.to_owned();
    for _ in 0..LONGEST_CHAIN {
        let Ok(target) = std::fs::read_link(&path) else {
            break;
        };
        path = path.parent().unwrap_or(Path::new("")).join(target);
    }
    path
}
