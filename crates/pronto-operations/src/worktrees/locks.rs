//! Worktrees that must not be removed: locked by a user, or being created.
//!
//! While `add` runs, the file `locked` contains a mark, and the process holds an `flock` on the
//! file. A killed process leaves the file without the `flock`, and `prune` may then remove the
//! administrative directory; for git, the worktree is locked.

use std::fs::{File, OpenOptions};
use std::io::{Read, Write};
use std::path::{Path, PathBuf};

use bstr::{BStr, BString, ByteSlice};
use pronto_io::error::{IoContext, OsReason};
use rustix::fs::{FlockOperation, flock};

use super::{Worktree, as_line, exists, refused};
use crate::{Error, ErrorKind, Repository, Result, path};

/// The start of the content of `locked` while a worktree is being created.
const INITIALIZING: &str = "initializing: pronto";

/// The lock state of a worktree (`git worktree lock`).
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum LockState {
    /// The worktree is not locked.
    Unlocked,
    /// The worktree is locked, for this reason, which may be empty.
    Locked(BString),
}

impl LockState {
    /// Returns the reason of the lock, if the worktree is locked.
    pub fn reason(&self) -> Option<&BStr> {
        match self {
            LockState::Unlocked => None,
            LockState::Locked(reason) => Some(reason.as_bstr()),
        }
    }
}

/// Returns the lock state of `work_tree`.
///
/// # Errors
/// Fails with [`ErrorKind::Io`] if the file `locked` cannot be read.
pub fn lock_state(repository: &Repository, work_tree: &Worktree) -> Result<LockState> {
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
        repository.display_path(&file),
    )?;
    Ok(LockState::Locked(reason.trim_ascii().into()))
}

/// Locks the worktree that `argument` names, for `reason`, which may be empty.
///
/// # Errors
/// Fails with `ErrorKind::Refused` if there is no such worktree, it is the main worktree, or it is
/// locked already, and with [`ErrorKind::Io`] if the file cannot be written.
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
/// Fails with `ErrorKind::Refused` if there is no such worktree, it is the main worktree, or it is
/// not locked, and with [`ErrorKind::Io`] if the file cannot be removed.
pub fn unlock(repository: &Repository, argument: &BStr) -> Result<()> {
    let (work_tree, id) = lockable(repository, argument)?;
    if lock_state(repository, &work_tree)? == LockState::Unlocked {
        return Err(refused(format!("'{argument}' is not locked")));
    }
    let file = repository.own_dir(id.as_bstr()).join("locked");
    std::fs::remove_file(&file).context(
        ErrorKind::Io,
        "unable to unlink",
        repository.display_path(&file),
    )
}

fn lockable(repository: &Repository, argument: &BStr) -> Result<(Worktree, BString)> {
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

/// The mark of a worktree that is being created. The `flock` on the file ends with the process.
#[derive(Debug)]
pub(super) struct CreationMark {
    file: PathBuf,
    _held: File,
}

impl CreationMark {
    /// Marks the worktree with the administrative directory `own_dir`.
    pub(super) fn set(own_dir: &Path) -> Result<Self> {
        let file = own_dir.join("locked");
        // The file is complete and locked before it is renamed.
        let beside = own_dir.join("locked.new");
        let set = || -> std::io::Result<File> {
            let mut held = OpenOptions::new()
                .write(true)
                .create_new(true)
                .open(&beside)?;
            // If the file system lacks `flock`, the mark merely remains when the process is killed.
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
        Ok(CreationMark { file, _held: held })
    }

    /// Clears the mark of a complete worktree. With a reason, the worktree stays locked.
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

/// Returns the file, with an `flock` by the caller, if `file` marks a worktree whose creating
/// process has died. The `flock` keeps two callers from proceeding.
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
    // The creating process may have completed in the meantime.
    use std::os::unix::fs::MetadataExt;
    let (held, named) = (opened.metadata().ok()?, file.symlink_metadata().ok()?);
    ((held.dev(), held.ino()) == (named.dev(), named.ino())).then_some(opened)
}

fn host_name() -> String {
    let name = rustix::system::uname();
    path::as_bytes(Path::new(name.nodename().to_str().unwrap_or("?"))).to_string()
}
