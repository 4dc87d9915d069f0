//! Moves worktrees: `git worktree move`.

use std::path::Path;

use bstr::{BStr, BString, ByteSlice};
use pronto_index::mode;
use pronto_io::error::OsReason;

use super::locks;
use super::prune;
use super::{Worktree, exists, refused};
use crate::support::{self, Operation};
use crate::{Error, ErrorKind, Repository, Result, path};
use pronto_config::git_dir::read_git_file;
use pronto_repository::Notice;

/// Moves the linked worktree that `argument` names to the path `to`, or into the directory `to`.
/// `force` is the number of `--force` options: two are needed for a locked worktree; with one, the
/// new path may be that of a registered worktree whose files are missing.
///
/// If the process is interrupted between the move and the update of the links, `repair` with the
/// new path completes the move.
///
/// # Errors
/// Fails with `ErrorKind::Refused` if there is no such worktree, it is the main worktree, is
/// locked, has submodules or is broken, or the new path is in use, and with [`ErrorKind::Io`] if
/// the directory cannot be moved.
pub fn relocate(repository: &Repository, argument: &BStr, to: &BStr, force: u8) -> Result<()> {
    support::require(repository, Operation::Worktrees)?;
    let all = repository.work_trees()?;
    let (work_tree, id) = super::find_linked(repository, &all, argument)?;
    let mut display_path = super::display_argument(repository, to);
    let mut place = super::place_of(repository, to);
    if place.is_dir() {
        let Some(slash) = work_tree.path.rfind_byte(b'/') else {
            let from = &work_tree.path;
            let message = format!("could not figure out destination name from '{from}'");
            return Err(refused(message));
        };
        let end = display_path.trim_end_with(|c| c == '/').len().max(1);
        display_path.truncate(end);
        display_path.extend_from_slice(&work_tree.path[slash..]);
        place.push(path::borrow(&work_tree.path[slash + 1..]));
    }
    check_candidate(
        repository,
        display_path.as_bstr(),
        &place,
        &all,
        force,
        "move",
    )?;
    refuse_submodules(repository, &work_tree)?;
    if force < 2 {
        refuse_locked(repository, &work_tree, "move")?;
    }
    validate(repository, &work_tree, false)
        .map_err(|error| refused("validation failed, cannot move working tree").because(error))?;
    // After the move, a relative path may be invalid, because the current directory may have moved.
    let place = super::real(&place).unwrap_or(place);
    std::fs::rename(path::borrow(&work_tree.path), &place).map_err(|error| {
        let from = &work_tree.path;
        let message = format!("failed to move '{from}' to '{display_path}'");
        Error::new(ErrorKind::Io, message).because(OsReason(error))
    })?;
    let mut line = path::as_bytes(&place).to_vec();
    if line.as_bstr() == work_tree.path {
        return Ok(());
    }
    line.extend_from_slice(b"/.git\n");
    super::replace_file(&repository.own_dir(id.as_bstr()).join("gitdir"), &line)
}

pub(super) fn refuse_locked(
    repository: &Repository,
    work_tree: &Worktree,
    verb: &str,
) -> Result<()> {
    let lock = locks::lock_state(repository, work_tree)?;
    let advice = format!("use '{verb} -f -f' to override or unlock first");
    match lock.reason() {
        None => Ok(()),
        Some(reason) if reason.is_empty() => Err(refused(format!(
            "cannot {verb} a locked working tree;\n{advice}"
        ))),
        Some(reason) => Err(refused(format!(
            "cannot {verb} a locked working tree, lock reason: {reason}\n{advice}"
        ))),
    }
}

/// Rejects a path that is in use by files, or by a registered worktree unless `force` allows
/// replacing it.
pub(super) fn check_candidate(
    repository: &Repository,
    display_path: &BStr,
    place: &Path,
    all: &[Worktree],
    force: u8,
    verb: &str,
) -> Result<()> {
    let is_empty = || std::fs::read_dir(place).is_ok_and(|mut found| found.next().is_none());
    if exists(place) && !is_empty() {
        return Err(refused(format!("'{display_path}' already exists")));
    }
    let Some(found) = super::find_at(repository, all, place) else {
        return Ok(());
    };
    let is_locked = locks::lock_state(repository, found)?.reason().is_some();
    if force > u8::from(is_locked) {
        let id = found.id.as_ref().map(|id| id.as_bstr()).unwrap_or_default();
        return prune::remove_own_dir(repository, id).map_err(|failure| {
            repository.notify(Notice::Failure(failure));
            refused(format!("unusable worktree destination '{display_path}'"))
        });
    }
    Err(refused(match is_locked {
        true => format!(
            "'{display_path}' is a missing but locked worktree;\n\
             use '{verb} -f -f' to override, or 'unlock' and 'prune' or 'remove' to clear"
        ),
        false => format!(
            "'{display_path}' is a missing but already registered worktree;\n\
             use '{verb} -f' to override, or 'prune' or 'remove' to clear"
        ),
    }))
}

/// Rejects a worktree with submodules.
pub(super) fn refuse_submodules(repository: &Repository, work_tree: &Worktree) -> Result<()> {
    let id = work_tree.id.as_ref().map(|id| id.as_bstr());
    let directory = repository.own_dir(id.unwrap_or_default());
    let has_modules = directory.join("modules").is_dir();
    let index = directory.join("index");
    if has_modules || (index.exists() && has_populated_submodule(repository, work_tree, &index)?) {
        return Err(refused(
            "working trees containing submodules cannot be moved or removed",
        ));
    }
    Ok(())
}

fn has_populated_submodule(
    repository: &Repository,
    work_tree: &Worktree,
    index: &Path,
) -> Result<bool> {
    let index = pronto_index::Index::open(index, repository.object_hash())
        .map_err(crate::errors::from_index)?;
    let top = path::borrow(&work_tree.path);
    let mut submodules = index.iter().filter(|entry| entry.mode == mode::GITLINK);
    Ok(submodules.any(|entry| {
        let git = top.join(path::borrow(entry.path)).join(".git");
        git.is_dir() || read_git_file(&git, repository.environment()).is_ok()
    }))
}

/// Checks that the administrative directory and the worktree point to each other. `may_be_gone`
/// accepts a worktree without files.
pub(super) fn validate(
    repository: &Repository,
    work_tree: &Worktree,
    may_be_gone: bool,
) -> Result<()> {
    let id = work_tree.id.clone().unwrap_or_default();
    let own = super::display_own_dir(repository, id.as_bstr());
    let own = own.display();
    let top = path::borrow(&work_tree.path);
    if !top.is_absolute() {
        return Err(refused(format!(
            "'{own}/gitdir' file does not contain absolute path to the working tree location"
        )));
    }
    if may_be_gone && !exists(top) {
        return Ok(());
    }
    let file = work_tree.git_file();
    let said = BString::from(path::as_bytes(&file));
    if !exists(&file) {
        return Err(refused(format!("'{said}' does not exist")));
    }
    let target = read_git_file(&file, repository.environment()).map_err(|flaw| {
        let number = flaw.number();
        refused(format!("'{said}' is not a .git file, error code {number}"))
    })?;
    let own_dir = repository.own_dir(id.as_bstr());
    let back = super::real(&own_dir).unwrap_or(own_dir);
    match super::is_same_path(repository, path::as_bytes(&target), path::as_bytes(&back)) {
        true => Ok(()),
        false => {
            let top = &work_tree.path;
            Err(refused(format!("'{top}' does not point back to '{own}'")))
        }
    }
}
