//! Pruning the data of missing worktrees.

use std::fs::File;
use std::os::unix::fs::MetadataExt;
use std::path::Path;
use std::time::Duration;

use bstr::{BStr, BString, ByteSlice};

use super::{DIRECTORY, WorkTree, exists, locks};
use crate::expiry::Expiry;
use crate::{Repository, Result, path};

/// How old a directory is that `add` has surely locked, and how long to wait for that.
const NEW: Duration = Duration::from_secs(1);
const PAUSE: Duration = Duration::from_millis(50);

/// Whether a worktree may be pruned.
#[derive(Debug)]
pub enum Verdict {
    /// It is there, or locked, or not yet expired.
    Keep,
    /// It may go, for this reason. What is held goes with the value.
    Prune(String, Option<File>),
}

/// A worktree that was pruned, or would be.
#[derive(Debug)]
pub struct Pruned {
    /// The name of its directory below `worktrees`.
    pub id: BString,
    /// Why.
    pub reason: String,
    /// What could not be removed, in Git's words.
    pub failure: Option<String>,
}

/// Why `work_tree` may be forgotten, if it may.
pub fn prune_reason(
    repository: &Repository,
    work_tree: &WorkTree,
    expiry: Expiry,
) -> Option<String> {
    let id = work_tree.id.as_ref()?;
    match judge(repository, id.as_bstr(), expiry).0 {
        Verdict::Keep => None,
        Verdict::Prune(reason, _) => Some(reason),
    }
}

/// Removes the data of worktrees whose files are gone, like `git worktree prune`, and of those
/// that a killed process of pronto was creating. With `dry_run` it only lists them.
///
/// # Errors
/// None: data that cannot be removed are listed with the rest.
pub fn prune(repository: &Repository, expiry: Expiry, dry_run: bool) -> Result<Vec<Pruned>> {
    let mut gone = Vec::new();
    let mut kept: Vec<(BString, Option<BString>)> = Vec::new();
    for id in repository.linked_ids() {
        match judge(repository, id.as_bstr(), expiry) {
            (Verdict::Prune(reason, _held), _) => {
                gone.push(forget(repository, id, reason, dry_run))
            }
            (Verdict::Keep, Some(place)) => kept.push((place, Some(id))),
            (Verdict::Keep, None) => {}
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
    // The main worktree precedes others of the same place.
    kept.sort_by_cached_key(|(place, id)| (fold(place), id.clone()));
    for pair in kept.windows(2) {
        let [(before, _), (place, Some(id))] = pair else {
            continue;
        };
        if fold(before) == fold(place) {
            gone.push(forget(
                repository,
                id.clone(),
                "duplicate entry".into(),
                dry_run,
            ));
        }
    }
    if !dry_run {
        remove_empty_work_tree_directory(repository);
    }
    Ok(gone)
}

fn forget(repository: &Repository, id: BString, reason: String, dry_run: bool) -> Pruned {
    let failure = match dry_run {
        true => None,
        false => remove_own_dir(repository, id.as_bstr()).err(),
    };
    Pruned {
        id,
        reason,
        failure,
    }
}

/// Removes the data of the worktree `id` in the repository. Returns a failure in Git's words.
pub(super) fn remove_own_dir(repository: &Repository, id: &BStr) -> Result<(), String> {
    let directory = repository.own_dir(id);
    // Of an empty one `add` may be about to begin: what it writes meanwhile is not taken.
    let is_empty = std::fs::read_dir(&directory).is_ok_and(|mut all| all.next().is_none());
    let removed = match is_empty {
        true => std::fs::remove_dir(&directory),
        false => std::fs::remove_dir_all(&directory),
    };
    let removed = match removed {
        Err(error) if error.kind() == std::io::ErrorKind::NotADirectory => {
            std::fs::remove_file(&directory)
        }
        other => other,
    };
    removed.map_err(|error| {
        let said = super::spoken_own_dir(repository, id);
        let reason = pronto_io::error::reason(&error);
        format!("failed to delete '{}': {reason}", said.display())
    })
}

/// Removes the directory of linked worktrees if it is empty.
pub(super) fn remove_empty_work_tree_directory(repository: &Repository) {
    // It stays if it is not empty.
    let _ = std::fs::remove_dir(repository.common_dir().join(DIRECTORY));
}

/// Decides whether the worktree `id` may be pruned. If not, also returns the place of its
/// `.git`, unless it is locked.
fn judge(repository: &Repository, id: &BStr, expiry: Expiry) -> (Verdict, Option<BString>) {
    let directory = repository.own_dir(id);
    let prune = |reason: &str| (Verdict::Prune(reason.into(), None), None);
    if !directory.is_dir() {
        return prune("not a valid directory");
    }
    let lock = directory.join("locked");
    if exists(&lock) {
        return match locks::abandoned(&lock) {
            Some(held) => {
                let reason = "its making was broken off".to_owned();
                (Verdict::Prune(reason, Some(held)), None)
            }
            None => (Verdict::Keep, None),
        };
    }
    let file = directory.join("gitdir");
    if std::fs::metadata(&file).is_err() {
        if is_beginning(&directory) {
            std::thread::sleep(PAUSE);
            if exists(&lock) {
                return (Verdict::Keep, None);
            }
        }
        return prune("gitdir file does not exist");
    }
    let place = match pronto_io::untrusted::content(&file) {
        Ok(place) => place,
        Err(error) => {
            let reason = pronto_io::error::reason(&error);
            return prune(&format!("unable to read gitdir file ({reason})"));
        }
    };
    let place = place.trim_end_with(|c| c == '\n' || c == '\r');
    if place.is_empty() {
        return prune("invalid gitdir file");
    }
    // It may be relative to the directory that it stands in.
    let place = path::as_bytes(&directory.join(path::borrow(place))).to_owned();
    if !exists(path::borrow(&place)) {
        let used = std::fs::metadata(directory.join("index"));
        let is_old = |used: &std::fs::Metadata| match expiry {
            Expiry::Now => true,
            Expiry::Before(moment) => used.mtime() <= moment,
        };
        if used.as_ref().map_or(true, is_old) {
            return prune("gitdir file points to non-existent location");
        }
    }
    (Verdict::Keep, Some(place))
}

/// Whether `directory` is so new that `add` may be about to lock it: it makes the directory first.
fn is_beginning(directory: &Path) -> bool {
    let made = std::fs::metadata(directory).and_then(|found| found.modified());
    made.is_ok_and(|made| made.elapsed().map_or(true, |age| age < NEW))
}
