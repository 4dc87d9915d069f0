//! Removes worktrees: `git worktree remove`.

use bstr::{BStr, ByteSlice};
use pronto_io::dir::remove_tree;
use pronto_io::error::IoContext;
use pronto_io::pool::Workers;
use pronto_io::watch::Watch;

use super::prune;
use super::relocate;
use super::{Worktree, exists, refused};
use crate::status::{self, IgnoreSubmodules, Untracked};
use crate::support::{self, Operation};
use crate::{Environment, Error, ErrorKind, Repository, Result, path};

/// The result of removing a worktree.
#[derive(Debug, Default)]
#[non_exhaustive]
pub struct RemovedWorktree {
    /// The errors for files that could not be removed.
    pub failures: Vec<Error>,
}

/// Removes the linked worktree that `argument` names, with all its files. `force` is the number of
/// `--force` options: one is needed for a worktree with changes or untracked files, two for a
/// locked worktree.
///
/// The `.git` file of the worktree is removed first. After an interruption, the directory is not a
/// worktree any more, and [`prune`](crate::worktrees::prune) removes the administrative directory.
///
/// # Errors
/// Fails with `ErrorKind::Refused` or [`ErrorKind::Worktree`] if there is no such worktree, it is
/// the main worktree, is locked, broken, or not clean, and with [`ErrorKind::Interrupted`] if the
/// operation is interrupted. Files that cannot be removed are no error: the others are removed.
pub fn remove(
    repository: &Repository,
    argument: &BStr,
    force: u8,
    watch: &Watch<'_>,
) -> Result<RemovedWorktree> {
    support::require(repository, Operation::Worktrees)?;
    let all = repository.work_trees()?;
    let (work_tree, id) = super::find_linked(repository, &all, argument)?;
    if force < 2 {
        relocate::refuse_locked(repository, &work_tree, "remove")?;
    }
    relocate::validate(repository, &work_tree, true)
        .map_err(|error| refused("validation failed, cannot remove working tree").because(error))?;
    let mut removed = RemovedWorktree::default();
    let top = path::borrow(&work_tree.path);
    if exists(top) {
        if force == 0 {
            refuse_unclean(repository, &work_tree, argument, watch)?;
        }
        // An error of this call appears again in the removal of the directory.
        let _ = std::fs::remove_file(work_tree.git_file());
        let gone = remove_tree(top, Workers::ADAPTIVE);
        let gone = gone.context(ErrorKind::Io, "failed to delete", top);
        removed.failures.extend(gone.err());
    }
    removed
        .failures
        .extend(prune::remove_own_dir(repository, id.as_bstr()).err());
    prune::remove_empty_work_tree_directory(repository);
    Ok(removed)
}

fn refuse_unclean(
    repository: &Repository,
    work_tree: &Worktree,
    argument: &BStr,
    watch: &Watch<'_>,
) -> Result<()> {
    relocate::refuse_submodules(repository, work_tree)?;
    let environment = environment_in(repository, work_tree);
    let inside = Repository::discover(environment.current_dir(), &environment)?;
    let configured = inside.config().string("status.showuntrackedfiles")?;
    let untracked = match configured.map(|value| value.as_bytes()) {
        Some(b"no" | b"false" | b"off" | b"0") => Untracked::No,
        _ => Untracked::Normal,
    };
    let options = status::Options {
        untracked,
        ignore_submodules: Some(IgnoreSubmodules::None),
        state: false,
        detached_from: false,
        ..status::Options::default()
    };
    let report = status::status(&inside, &options, watch).map_err(|error| {
        let message = format!("failed to run 'git status' on '{argument}'");
        match error.kind() {
            ErrorKind::Unsupported | ErrorKind::Interrupted => error,
            _ => Error::new(ErrorKind::Worktree, message).because(error),
        }
    })?;
    match report.entries.is_empty() && report.untracked.is_empty() {
        true => Ok(()),
        false => Err(refused(format!(
            "'{argument}' contains modified or untracked files, use --force to delete it"
        ))),
    }
}

/// Returns the environment for a command in `work_tree`.
fn environment_in(repository: &Repository, work_tree: &Worktree) -> Environment {
    let mut environment = repository.environment().clone();
    environment.set("GIT_DIR", work_tree.git_file());
    environment.set("GIT_WORK_TREE", path::borrow(&work_tree.path));
    environment.set_current_dir(path::borrow(&work_tree.path));
    environment
}
