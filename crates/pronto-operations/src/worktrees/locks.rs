//! Worktrees that must not be removed: locked by a user, or being created.
//!
//! While `add` runs, the file `locked` contains its mark, and the process holds a lock of the
//! operating system on the file. A killed process leaves a file without that lock, and `prune` may
//! remove the worktree's data; git sees a locked worktree.

use std::fs::{File, OpenOptions};
use std::io::{Read, Write};
use std::path::{Path, PathBuf};

use bstr::{BStr, BString, ByteSlice};
use pronto_io::error::{IoContext, OsReason};
use rustix::fs::{FlockOperation, flock};

use super::{WorkTree, as_line, exists, refused};
use crate::{Error, ErrorKind, Repository, Result, path};

/// The start of the file while a worktree is being created.
const INITIALIZING: &str = "initializing: pronto";

/// Whether a worktree is locked.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum LockState {
    /// It is not.
    Unlocked,
    /// It is, for this reason, which may be empty.
    Locked(BString),
}

impl LockState {
    /// Why it is locked, if it is.
    pub fn reason(&self) -> Option<&BStr> {
        match self {
            LockState::Unlocked => None,
            LockState::Locked(reason) => Some(reason.as_bstr()),
        }
    }
}

/// Whether `work_tree` is locked.
///
/// # Errors
/// The file that says so cannot be read.
pub fn lock_state(repository: &Repository, work_tree: &WorkTree) -> Result<LockState> {
    let Some(id) = &work_tree.id else {
        return Ok(LockState::Unlocked);
    };
    let file = repository.own_dir(id.as_bstr()).join("locked");
    if !exists(&file) {
        return Ok(LockState::Unlocked);
    }
    let reason = pronto_io::untrusted::content(&file).context(
        ErrorKind::Io,
        "failed to read",
        repository.spoken(&file),
    )?;
    Ok(LockState::Locked(reason.trim_ascii().into()))
}

/// Locks the worktree that `argument` names, for `reason`, which may be empty.
///
/// # Errors
/// There is none, it is the main one, it is locked already, or the file cannot be written.
pub fn lock(repository: &Repository, argument: &BStr, reason: &BStr) -> Result<()> {
    let (work_tree, id) = lockable(repository, argument)?;
    match lock_state(repository, &work_tree)?.reason() {
        None => {}
        Some(old) if old.is_empty() => {
            return Err(refused(format!("'{argument}' is already locked")));
        }
        Some(old) => {
            let message = format!("'{argument}' is already locked, reason: {old}");
            return Err(refused(message));
        }
    }
    let file = repository.own_dir(id.as_bstr()).join("locked");
    super::replace_file(&file, &as_line(reason))
}

/// Unlocks the worktree that `argument` names.
///
/// # Errors
/// There is none, it is the main one, it is not locked, or the file cannot be removed.
pub fn unlock(repository: &Repository, argument: &BStr) -> Result<()> {
    let (work_tree, id) = lockable(repository, argument)?;
    if lock_state(repository, &work_tree)? == LockState::Unlocked {
        return Err(refused(format!("'{argument}' is not locked")));
    }
    let file = repository.own_dir(id.as_bstr()).join("locked");
    std::fs::remove_file(&file).context(ErrorKind::Io, "unable to unlink", repository.spoken(&file))
}

fn lockable(repository: &Repository, argument: &BStr) -> Result<(WorkTree, BString)> {
    let all = repository.work_trees()?;
    let Some(found) = super::find(repository, &all, argument) else {
        return Err(refused(format!("'{argument}' is not a working tree")));
    };
    match &found.id {
        Some(id) => Ok((found.clone(), id.clone())),
        None => Err(refused(
            "The main working tree cannot be locked or unlocked",
        )),
    }
}

/// The mark of a worktree that is being created. The lock on it ends with the process.
#[derive(Debug)]
pub(super) struct Mark {
    file: PathBuf,
    _held: File,
}

impl Mark {
    /// Marks the worktree whose directory is `own_dir`.
    pub(super) fn set(own_dir: &Path) -> Result<Self> {
        let file = own_dir.join("locked");
        // It is complete and held before it has its name.
        let beside = own_dir.join("locked.new");
        let set = || -> std::io::Result<File> {
            let mut held = OpenOptions::new()
                .write(true)
                .create_new(true)
                .open(&beside)?;
            // Where there are no such locks, the mark merely stays when the process is killed.
            let _ = flock(&held, FlockOperation::NonBlockingLockExclusive);
            let process = std::process::id();
            let host = host_name();
            held.write_all(format!("{INITIALIZING} {process} on {host}\n").as_bytes())?;
            std::fs::rename(&beside, &file)?;
            Ok(held)
        };
        let held = set().map_err(|error| {
            let message = format!("could not open '{}' for writing", file.display());
            Error::new(ErrorKind::Io, message).because(OsReason(error))
        })?;
        Ok(Mark { file, _held: held })
    }

    /// Clears the mark of a complete worktree. With a reason it stays locked.
    pub(super) fn clear(self, reason: Option<&BStr>) -> Result<()> {
        match reason {
            Some(reason) => super::replace_file(&self.file, &as_line(reason)),
            None => match std::fs::remove_file(&self.file) {
                Err(error) if error.kind() != std::io::ErrorKind::NotFound => {
                    Err(error).context(ErrorKind::Io, "unable to unlink", &self.file)
                }
                _ => Ok(()),
            },
        }
    }
}

/// Returns the file, locked by the caller, if `file` marks a worktree whose creating process is
/// gone. The lock keeps two callers from proceeding.
pub(super) fn abandoned(file: &Path) -> Option<File> {
    let mut opened = File::open(file).ok()?;
    let mut text = String::new();
    Read::by_ref(&mut opened)
        .take(1024)
        .read_to_string(&mut text)
        .ok()?;
    let host = text
        .trim_end()
        .strip_prefix(INITIALIZING)?
        .split_once(" on ");
    if host.is_none_or(|(_, host)| host != host_name()) {
        return None;
    }
    flock(&opened, FlockOperation::NonBlockingLockExclusive).ok()?;
    // The process that held it may have completed in between.
    use std::os::unix::fs::MetadataExt;
    let (held, named) = (opened.metadata().ok()?, file.symlink_metadata().ok()?);
    ((held.dev(), held.ino()) == (named.dev(), named.ino())).then_some(opened)
}

fn host_name() -> String {
    let name = rustix::system::uname();
    path::as_bytes(Path::new(name.nodename().to_str().unwrap_or("?"))).to_string()
}
