//! Operations in progress: those that forbid switching, and those that switching ends.

use std::ffi::OsString;
use std::fmt;
use std::io;

use crate::refs::Expected;
use crate::{Error, ErrorKind, Repository, Result, hooks};
use pronto_repository::Notice;

/// The names of what is in the directory of the repository: with one listing a dozen files need not be
/// asked for one by one.
struct Present(Option<Vec<OsString>>);

impl Present {
    fn list(repository: &Repository) -> Self {
        let entries = std::fs::read_dir(repository.git_dir());
        let names = entries.and_then(|entries| {
            let names = entries.map(|entry| Ok(entry?.file_name()));
            names.collect::<io::Result<Vec<OsString>>>()
        });
        Present(names.ok())
    }

    /// Whether a file of this name may be there: certainly not if the answer is no.
    fn may_have(&self, name: &str) -> bool {
        let known = self.0.as_ref();
        known.is_none_or(|names| names.iter().any(|known| known == name))
    }
}

/// Refuses to continue while an operation is in progress that `switch` does not interrupt.
///
/// # Errors
/// There is one. The message names it in Git's words.
pub fn refuse_while_in_progress(repository: &Repository) -> Result<()> {
    let present = Present::list(repository);
    let has = |name: &str| {
        let first = name.split('/').next().unwrap_or(name);
        present.may_have(first) && repository.git_path(name).exists()
    };
    let picks = |name: &str| match repository.refs().tables() {
        Some(_) => repository
            .refs()
            .find(name)
            .is_ok_and(|found| found.is_some()),
        None => has(name),
    };
    let quit = |doing: &str, command: &str| {
        let message = format!(
            "cannot switch branch {doing}\nConsider \"git {command} --quit\" or \"git worktree \
             add\"."
        );
        Err(Error::new(ErrorKind::Refused, message))
    };
    if has("MERGE_HEAD") {
        return quit("while merging", "merge");
    }
    if has("rebase-apply/applying") {
        return quit("in the middle of an am session", "am");
    }
    if has("rebase-apply") || has("rebase-merge") {
        return quit("while rebasing", "rebase");
    }
    if picks("CHERRY_PICK_HEAD") {
        return quit("while cherry-picking", "cherry-pick");
    }
    if picks("REVERT_HEAD") {
        return quit("while reverting", "revert");
    }
    if has("BISECT_LOG") {
        repository.notify(Notice::SwitchWhileBisecting);
    }
    Ok(())
}

/// An operation in progress that ends when the branch is switched. [`Display`](fmt::Display) gives
/// Git's name.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Cancelled {
    /// A cherry-pick.
    CherryPick,
    /// A revert.
    Revert,
}

impl fmt::Display for Cancelled {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Cancelled::CherryPick => "cherry picking",
            Cancelled::Revert => "revert",
        })
    }
}

/// Removes the state of operations in progress on the branch that was left. Returns those that are
/// abandoned.
pub(crate) fn remove_operation_state(repository: &Repository) -> Result<Vec<Cancelled>> {
    let mut cancelled = Vec::new();
    let present = Present::list(repository);
    let remove = |file: &str| {
        present.may_have(file) && std::fs::remove_file(repository.git_path(file)).is_ok()
    };
    let are_refs = are_refs(repository, &present);
    for (file, operation) in [
        ("CHERRY_PICK_HEAD", Cancelled::CherryPick),
        ("REVERT_HEAD", Cancelled::Revert),
    ] {
        let is_gone = match are_refs {
            true => remove_pseudo_reference(repository, file)?,
            false => remove(file),
        };
        if is_gone {
            cancelled.push(operation);
        }
    }
    if are_refs {
        delete(repository, "AUTO_MERGE")?;
    }
    if !cancelled.is_empty() {
        let sequencer = repository.git_path("sequencer");
        let todo = std::fs::read_to_string(sequencer.join("todo")).unwrap_or_default();
        let left = todo.lines().filter(|line| !line.starts_with('#')).count();
        if left <= 1 {
            let _ = std::fs::remove_dir_all(sequencer);
        }
    }
    for file in [
        "SQUASH_MSG",
        "MERGE_HEAD",
        "MERGE_RR",
        "MERGE_MSG",
        "MERGE_MODE",
    ] {
        remove(file);
    }
    match are_refs {
        // Git deletes it a second time, and asks the hook again.
        true => delete(repository, "AUTO_MERGE")?,
        false => {
            remove("AUTO_MERGE");
        }
    }
    Ok(cancelled)
}

/// Returns whether the removal of a pseudo-ref is seen: by the hook `reference-transaction`, in reftables, and by a
/// lock on `packed-refs`, which Git takes for it.
fn are_refs(repository: &Repository, present: &Present) -> bool {
    repository.refs().tables().is_some()
        || has_locked_packed_refs(repository, present)
        || hooks::has_programs(repository, "reference-transaction")
}

fn has_locked_packed_refs(repository: &Repository, present: &Present) -> bool {
    match repository.common_dir() == repository.git_dir() {
        true => present.may_have("packed-refs.lock"),
        false => repository.common_dir().join("packed-refs.lock").exists(),
    }
}

/// Removes `AUTO_MERGE`, as a commit does.
pub(crate) fn remove_auto_merge(repository: &Repository) -> Result<()> {
    match are_refs(repository, &Present::list(repository)) {
        true => delete(repository, "AUTO_MERGE"),
        false => {
            let _ = std::fs::remove_file(repository.git_path("AUTO_MERGE"));
            Ok(())
        }
    }
}

/// Removes a ref of this worktree outside of `refs/`. Returns whether it existed.
fn remove_pseudo_reference(repository: &Repository, name: &str) -> Result<bool> {
    if repository.refs().find(name)?.is_none() {
        return Ok(false);
    }
    delete(repository, name)?;
    Ok(true)
}

/// Deletes a ref, which need not exist. As in Git, only the hook ends the command if it cannot be deleted.
fn delete(repository: &Repository, name: &str) -> Result<()> {
    let mut transaction = repository.transaction();
    transaction.delete(name, Expected::Anything);
    match transaction.commit() {
        Err(error) if !matches!(error.kind(), ErrorKind::Interrupted | ErrorKind::Hook) => {
            repository.notify(Notice::Failure(error));
            Ok(())
        }
        deleted => deleted,
    }
}
