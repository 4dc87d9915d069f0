//! Manages the worktrees of a repository: the main worktree and the linked worktrees
//! (`git worktree`).
//!
//! A linked worktree has an administrative directory `worktrees/ID` in the repository. Its file
//! `gitdir` contains the path of the worktree's `.git`, which is a gitfile that points back.

mod add;
mod carry;
mod locks;
mod prune;
mod relocate;
mod remove;
mod repair;

use std::path::{Path, PathBuf};

use bstr::{BStr, BString, ByteSlice};

use crate::{Error, ErrorKind, Repository, Result, path};

pub use add::{AddStep, AddWorktreeOptions, AddedWorktree, Addition, Branching};
pub use add::{add, plan};
pub use carry::Carry;
pub use locks::LockState;
pub use locks::{lock, lock_state, unlock};
pub use pronto_io::dir::BlockSharing;
pub use prune::{PruneReason, PrunedWorktree};
pub use prune::{prune, prune_reason};
pub use relocate::relocate;
pub use remove::remove;
pub use repair::repair;

pub use pronto_repository::expiry::ExpiryAge;
pub use remove::RemovedWorktree;
pub use repair::{Defect, Repair};

use crate::siblings::DIRECTORY;
pub use pronto_repository::linked::{HeadState, Worktree};

/// Returns [`own_dir`](Repository::own_dir) as messages show it.
fn display_own_dir(repository: &Repository, id: &BStr) -> PathBuf {
    repository.display_path(&repository.own_dir(id))
}

/// Returns the worktree of `all` that `argument` names: by the unique last components of its path,
/// or by a path relative to the current directory.
pub fn find<'a>(
    repository: &Repository,
    all: &'a [Worktree],
    argument: &BStr,
) -> Option<&'a Worktree> {
    let ends_so = |candidate: &&Worktree| {
        let place = &candidate.path;
        let start = place.len().checked_sub(argument.len());
        start.is_some_and(|start| {
            (start == 0 || place[start - 1] == b'/')
                && is_same_path(repository, place[start..].as_bstr(), argument)
        })
    };
    if !argument.is_empty() {
        let mut candidates = all.iter().filter(ends_so);
        if let (Some(only), None) = (candidates.next(), candidates.next()) {
            return Some(only);
        }
    }
    if argument.is_empty() && repository.prefix().is_none() {
        return None;
    }
    find_at(
        repository,
        all,
        &repository.environment().absolute(path::borrow(argument)),
    )
}

/// Returns the worktree of `all` at the path `place`, following symbolic links.
fn find_at<'a>(repository: &Repository, all: &'a [Worktree], place: &Path) -> Option<&'a Worktree> {
    let place = real(place)?;
    all.iter().find(|candidate| {
        real(path::borrow(&candidate.path)).is_some_and(|found| {
            is_same_path(repository, path::as_bytes(&found), path::as_bytes(&place))
        })
    })
}

fn is_same_path(repository: &Repository, one: &BStr, other: &BStr) -> bool {
    match repository.ignores_case() {
        Ok(true) => one.eq_ignore_ascii_case(other),
        _ => one == other,
    }
}

/// Returns `argument` as messages show it: relative to the top of the worktree.
fn display_argument(repository: &Repository, argument: &BStr) -> BString {
    match argument.first() {
        Some(b'/') => argument.to_owned(),
        _ => [repository.prefix_or_empty().as_slice(), argument]
            .concat()
            .into(),
    }
}

/// Resolves the path `argument` relative to the current directory. At the top of the worktree, an
/// empty path is invalid.
fn place_of(repository: &Repository, argument: &BStr) -> PathBuf {
    match argument.is_empty() && repository.prefix().is_none() {
        true => PathBuf::new(),
        false => repository.environment().absolute(path::borrow(argument)),
    }
}

/// Finds the linked worktree that `argument` names.
fn find_linked(
    repository: &Repository,
    all: &[Worktree],
    argument: &BStr,
) -> Result<(Worktree, BString)> {
    let Some(found) = find(repository, all, argument) else {
        return Err(refused(format!("'{argument}' is not a working tree")));
    };
    match &found.id {
        Some(id) => Ok((found.clone(), id.clone())),
        None => Err(refused(format!("'{argument}' is a main working tree"))),
    }
}

/// Returns `path` without symbolic links; its last component need not exist.
fn real(path: &Path) -> Option<PathBuf> {
    if let Ok(real) = std::fs::canonicalize(path) {
        return Some(real);
    }
    match path.symlink_metadata() {
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => {
            let parent = std::fs::canonicalize(path.parent()?).ok()?;
            Some(parent.join(path.file_name()?))
        }
        _ => None,
    }
}

fn refused(message: impl Into<String>) -> Error {
    Error::new(ErrorKind::Refused, message)
}

/// Returns whether something exists at `path`, including a dangling link.
fn exists(path: &Path) -> bool {
    path.symlink_metadata().is_ok()
}

/// Replaces the content of the file atomically.
fn replace_file(file: &Path, content: &[u8]) -> Result<()> {
    let mut lock = crate::lock::Lock::acquire(file, crate::lock::PATIENCE)?;
    lock.write_and_close(content)?;
    lock.commit()
}

/// Returns `line` with a line feed at the end, unless `line` is empty.
fn as_line(line: &[u8]) -> Vec<u8> {
    let mut line = line.to_vec();
    if line.last().is_some_and(|last| *last != b'\n') {
        line.push(b'\n');
    }
    line
}
