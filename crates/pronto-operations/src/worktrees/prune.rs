//! Prunes the administrative directories of missing worktrees: `git worktree prune`.

use std::fmt;
use std::fs::File;
use std::io;
use std::os::unix::fs::MetadataExt;
use std::path::Path;
use std::time::Duration;

use bstr::{BStr, BString, ByteSlice};
use pronto_io::error::{IoContext, reason};

use super::{DIRECTORY, Worktree, exists, locks};
use crate::expiry::ExpiryAge;
use crate::{Error, ErrorKind, Repository, Result, path};

/// The age at which `add` has surely locked a new administrative directory, and the time to wait
/// for that.
const NEW: Duration = Duration::from_secs(1);
const PAUSE: Duration = Duration::from_millis(50);

/// The decision whether a worktree may be pruned.
enum PruneDecision {
    /// The worktree exists, is locked, or is not yet expired.
    Keep,
    /// The administrative directory may be removed, for this reason. The lock is released when the
    /// value is dropped.
    Prune(PruneReason, Option<File>),
}

/// The reason why a worktree may be pruned. [`Display`](fmt::Display) gives Git's words.
#[derive(Debug)]
#[non_exhaustive]
pub enum PruneReason {
    /// The entry below `worktrees` is not a directory.
    NotADirectory,
    /// A process of pronto was killed while it created the worktree.
    Unfinished,
    /// The file `gitdir` is missing.
    MissingPointer,
    /// The file `gitdir` cannot be read.
    UnreadablePointer(io::Error),
    /// The file `gitdir` is empty.
    InvalidPointer,
    /// The worktree is missing.
    MissingWorktree,
    /// Another entry below `worktrees` names the same worktree.
    Duplicate,
}

impl fmt::Display for PruneReason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            PruneReason::NotADirectory => "not a valid directory",
            PruneReason::Unfinished => "its creation was interrupted",
            PruneReason::MissingPointer => "gitdir file does not exist",
            PruneReason::UnreadablePointer(error) => {
                return write!(f, "unable to read gitdir file ({})", reason(error));
            }
            PruneReason::InvalidPointer => "invalid gitdir file",
            PruneReason::MissingWorktree => "gitdir file points to non-existent location",
            PruneReason::Duplicate => "duplicate entry",
        })
    }
}

/// A worktree that was pruned, or would be.
#[derive(Debug)]
#[must_use]
#[non_exhaustive]
pub struct PrunedWorktree {
    /// The name of its administrative directory below `worktrees`.
    pub id: BString,
    /// The reason.
    pub reason: PruneReason,
    /// The error, if the administrative directory could not be removed.
    pub failure: Option<Error>,
}

/// Returns the reason why `work_tree` may be pruned, if there is one.
pub fn prune_reason(
    repository: &Repository,
    work_tree: &Worktree,
    expiry: ExpiryAge,
) -> Option<PruneReason> {
    let id = work_tree.id.as_ref()?;
    match judge(repository, id.as_bstr(), expiry).0 {
        PruneDecision::Keep => None,
        PruneDecision::Prune(reason, _) => Some(reason),
    }
}

/// Removes the administrative directories of missing worktrees, like `git worktree prune`, and of
/// worktrees that a killed process of pronto was creating. With `dry_run` (`--dry-run`), only lists
/// them.
///
/// # Errors
/// Never fails: directories that cannot be removed are returned with [`PrunedWorktree::failure`].
pub fn prune(
    repository: &Repository,
    expiry: ExpiryAge,
    dry_run: bool,
) -> Result<Vec<PrunedWorktree>> {
    let mut gone = Vec::new();
    let mut kept: Vec<(BString, Option<BString>)> = Vec::new();
    for id in repository.linked_ids() {
        match judge(repository, id.as_bstr(), expiry) {
            (PruneDecision::Prune(reason, _held), _) => {
                gone.push(forget(repository, id, reason, dry_run))
            }
            (PruneDecision::Keep, Some(place)) => kept.push((place, Some(id))),
            (PruneDecision::Keep, None) => {}
        }
    }
    let main = path::as_bytes(repository.common_dir());
    let main = main.strip_suffix(b"/.").unwrap_or(main);
    kept.push((main.into(), None));
    let folds = repository.ignores_case()?;
    let fold = |place: &BString| match folds {
        true => place.to_ascii_lowercase().into(),
        false => place.clone(),
    };
    // The main worktree precedes others with the same path.
    kept.sort_by_cached_key(|(place, id)| (fold(place), id.clone()));
    for pair in kept.windows(2) {
        let [(before, _), (place, Some(id))] = pair else {
            continue;
        };
        if fold(before) == fold(place) {
            let reason = PruneReason::Duplicate;
            gone.push(forget(repository, id.clone(), reason, dry_run));
        }
    }
    if !dry_run {
        remove_empty_work_tree_directory(repository);
    }
    Ok(gone)
}

fn forget(
    repository: &Repository,
    id: BString,
    reason: PruneReason,
    dry_run: bool,
) -> PrunedWorktree {
    let failure = match dry_run {
        true => None,
        false => remove_own_dir(repository, id.as_bstr()).err(),
    };
    PrunedWorktree {
        id,
        reason,
        failure,
    }
}

/// Removes the administrative directory of the worktree `id`.
pub(super) fn remove_own_dir(repository: &Repository, id: &BStr) -> Result<()> {
    let directory = repository.own_dir(id);
    // If the directory is empty, `add` may be about to fill it: files that `add` writes meanwhile
    // are not removed.
    let is_empty = std::fs::read_dir(&directory).is_ok_and(|mut all| all.next().is_none());
    let removed = match is_empty {
        true => std::fs::remove_dir(&directory),
        false => std::fs::remove_dir_all(&directory),
    };
    let removed = match removed {
        Err(error) if error.kind() == io::ErrorKind::NotADirectory => {
            std::fs::remove_file(&directory)
        }
        other => other,
    };
    let shown = super::display_own_dir(repository, id);
    removed.context(ErrorKind::Io, "failed to delete", shown)
}

/// Removes the directory of linked worktrees if it is empty.
pub(super) fn remove_empty_work_tree_directory(repository: &Repository) {
    // Removing the directory fails if it is not empty.
    let _ = std::fs::remove_dir(repository.common_dir().join(DIRECTORY));
}

/// Decides whether the worktree `id` may be pruned. If not, also returns the path of its `.git`,
/// unless the worktree is locked.
fn judge(
    repository: &Repository,
    id: &BStr,
    expiry: ExpiryAge,
) -> (PruneDecision, Option<BString>) {
    let directory = repository.own_dir(id);
    let prune = |reason| (PruneDecision::Prune(reason, None), None);
    if !directory.is_dir() {
        return prune(PruneReason::NotADirectory);
    }
    let lock = directory.join("locked");
    if exists(&lock) {
        return match locks::abandoned(&lock) {
            Some(held) => (
                PruneDecision::Prune(PruneReason::Unfinished, Some(held)),
                None,
            ),
            None => (PruneDecision::Keep, None),
        };
    }
    let file = directory.join("gitdir");
    if std::fs::metadata(&file).is_err() {
        if is_beginning(&directory) {
            std::thread::sleep(PAUSE);
            if exists(&lock) {
                return (PruneDecision::Keep, None);
            }
        }
        return prune(PruneReason::MissingPointer);
    }
    let place = match pronto_io::untrusted::content(&file) {
        Ok(place) => place,
        Err(error) => return prune(PruneReason::UnreadablePointer(error)),
    };
    let place = place.trim_end_with(|c| c == '\n' || c == '\r');
    if place.is_empty() {
        return prune(PruneReason::InvalidPointer);
    }
    // The path may be relative to the directory of the file.
    let place = path::as_bytes(&directory.join(path::borrow(place))).to_owned();
    if !exists(path::borrow(&place)) {
        let used = std::fs::metadata(directory.join("index"));
        let is_old = |used: &std::fs::Metadata| match expiry {
            ExpiryAge::Now => true,
            ExpiryAge::Before(moment) => used.mtime() <= moment,
        };
        if used.as_ref().map_or(true, is_old) {
            return prune(PruneReason::MissingWorktree);
        }
    }
    (PruneDecision::Keep, Some(place))
}

/// Whether `directory` is so new that `add`, which creates the directory first, may be about to
/// lock it.
fn is_beginning(directory: &Path) -> bool {
    let made = std::fs::metadata(directory).and_then(|found| found.modified());
    made.is_ok_and(|made| made.elapsed().map_or(true, |age| age < NEW))
}
