//! The operations in progress in a worktree: merge, rebase, `am`, cherry-pick, revert and bisect.
//!
//! Git records them in the directory of the worktree (`.git`, or `.git/worktrees/NAME`):
//!
//! | operation | recorded as |
//! |---|---|
//! | merge | `MERGE_HEAD`, `MERGE_MSG`, `MERGE_MODE`, `MERGE_RR`, `MERGE_AUTOSTASH` |
//! | squashed merge | `SQUASH_MSG` |
//! | rebase | `rebase-merge/`, or `rebase-apply/` without `applying` |
//! | `am` | `rebase-apply/applying` |
//! | cherry-pick, revert | the refs `CHERRY_PICK_HEAD`, `REVERT_HEAD`; of several commits also `sequencer/` |
//! | bisect | `BISECT_LOG`, `BISECT_START` |
//!
//! `AUTO_MERGE` is the tree that the last merge has written to the worktree.

use std::ffi::OsString;
use std::{fmt, io};

use crate::refs::ExpectedValue;
use crate::{Notice, Repository, Result, hooks};

/// The files that hold ids of objects that an operation in progress needs.
pub const OBJECT_FILES: [&str; 10] = [
    "MERGE_HEAD",
    "CHERRY_PICK_HEAD",
    "REVERT_HEAD",
    "REBASE_HEAD",
    "MERGE_AUTOSTASH",
    "AUTO_MERGE",
    "rebase-merge/orig-head",
    "rebase-merge/autostash",
    "rebase-apply/orig-head",
    "rebase-apply/autostash",
];

/// The files that hold the full name of the branch that a rebase moves.
pub const REBASED_BRANCH_FILES: [&str; 2] = ["rebase-merge/head-name", "rebase-apply/head-name"];

/// The file with the refs that a rebase moves at its end (`--update-refs`). Each name is followed by
/// two lines with ids.
pub const REBASED_REFS_FILE: &str = "rebase-merge/update-refs";

/// The file with the branch from which a bisection started.
pub const BISECT_START_FILE: &str = "BISECT_START";

/// The files of a merge that the next commit uses and a branch switch removes.
const MERGE_FILES: [&str; 5] = [
    "SQUASH_MSG",
    "MERGE_HEAD",
    "MERGE_RR",
    "MERGE_MSG",
    "MERGE_MODE",
];

/// The backend of a rebase.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RebaseBackend {
    /// The patches in `rebase-apply` (`--apply`).
    Apply,
    /// The sequencer, with its state in `rebase-merge` (`--merge`).
    Merge {
        /// Whether the user edits the list of commands (`--interactive`).
        interactive: bool,
    },
}

/// The operations in progress in a worktree. The repository directory is listed once, at creation,
/// instead of a lookup of each file.
#[derive(Debug)]
pub struct InProgress<'a> {
    repository: &'a Repository,
    /// The names in the repository directory. `None` if the directory cannot be listed; then each file
    /// is looked up.
    names: Option<Vec<OsString>>,
}

impl Repository {
    /// Lists the operations in progress in this worktree.
    pub fn in_progress(&self) -> InProgress<'_> {
        let entries = std::fs::read_dir(self.git_dir());
        let names = entries.and_then(|entries| {
            let names = entries.map(|entry| Ok(entry?.file_name()));
            names.collect::<io::Result<Vec<OsString>>>()
        });
        InProgress {
            repository: self,
            names: names.ok(),
        }
    }
}

impl InProgress<'_> {
    /// Returns whether a merge has stopped (`MERGE_HEAD`).
    pub fn merge(&self) -> bool {
        self.has("MERGE_HEAD")
    }

    /// Returns whether `git am` has stopped.
    pub fn am(&self) -> bool {
        self.has("rebase-apply/applying")
    }

    /// Returns the backend of the rebase that has stopped, if there is one.
    pub fn rebase(&self) -> Option<RebaseBackend> {
        if self.has("rebase-apply") {
            return (!self.am()).then_some(RebaseBackend::Apply);
        }
        self.has("rebase-merge").then(|| RebaseBackend::Merge {
            interactive: self.has("rebase-merge/interactive"),
        })
    }

    /// Returns whether a cherry-pick has stopped at a commit (`CHERRY_PICK_HEAD`), which may be part of
    /// a rebase.
    pub fn cherry_pick(&self) -> bool {
        self.has_ref("CHERRY_PICK_HEAD")
    }

    /// Returns whether a revert has stopped at a commit (`REVERT_HEAD`).
    pub fn revert(&self) -> bool {
        self.has_ref("REVERT_HEAD")
    }

    /// Returns whether a bisection is in progress.
    pub fn bisect(&self) -> bool {
        self.has("BISECT_LOG")
    }

    /// Returns whether an operation in progress affects the next commit: the commit concludes the
    /// operation, or uses its prepared message or recorded resolutions.
    pub fn concerns_commit(&self) -> bool {
        let files = ["MERGE_HEAD", "MERGE_MODE", "MERGE_MSG", "SQUASH_MSG"];
        let directories = ["sequencer", "rebase-merge", "rebase-apply", "rr-cache"];
        self.cherry_pick()
            || self.revert()
            || files.iter().chain(&directories).any(|name| self.has(name))
    }

    /// Returns whether the repository directory has a file or directory `name`, which may be a path.
    pub fn has(&self, name: &str) -> bool {
        let first = name.split('/').next().unwrap_or(name);
        self.may_have(first) && self.repository.git_path(name).exists()
    }

    fn has_ref(&self, name: &str) -> bool {
        let refs = self.repository.refs();
        match refs.tables() {
            Some(_) => refs.find(name).is_ok_and(|found| found.is_some()),
            None => self.has(name),
        }
    }

    /// Returns whether a file of this name may exist. `false` is certain.
    fn may_have(&self, name: &str) -> bool {
        let known = self.names.as_ref();
        known.is_none_or(|names| names.iter().any(|known| known == name))
    }

    fn remove(&self, name: &str) -> bool {
        self.may_have(name) && std::fs::remove_file(self.repository.git_path(name)).is_ok()
    }
}

/// An operation in progress that was cancelled. [`Display`](fmt::Display) writes its name as Git prints
/// it.
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

/// Cancels merges, cherry-picks and reverts in progress, as a branch switch does. A rebase and a
/// bisection continue. Returns the operations for which Git prints a warning.
///
/// # Errors
/// Fails with [`Interrupted`](crate::ErrorKind::Interrupted), or with [`Hook`](crate::ErrorKind::Hook) if the hook
/// `reference-transaction` refuses. Any other failure to delete a ref is reported as a notice, and
/// files that cannot be removed stay.
pub fn cancel(repository: &Repository) -> Result<Vec<Cancelled>> {
    let present = repository.in_progress();
    let are_refs = are_refs(repository, &present);
    let mut cancelled = Vec::new();
    for (name, operation) in [
        ("CHERRY_PICK_HEAD", Cancelled::CherryPick),
        ("REVERT_HEAD", Cancelled::Revert),
    ] {
        let is_gone = match are_refs {
            true => remove_pseudo_ref(repository, name)?,
            false => present.remove(name),
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
    for file in MERGE_FILES {
        present.remove(file);
    }
    match are_refs {
        // Git deletes the ref a second time, and runs the hook again.
        true => delete(repository, "AUTO_MERGE")?,
        false => {
            present.remove("AUTO_MERGE");
        }
    }
    Ok(cancelled)
}

/// Removes `AUTO_MERGE`, as a commit does.
///
/// # Errors
/// Fails with [`Interrupted`](crate::ErrorKind::Interrupted), or with [`Hook`](crate::ErrorKind::Hook) if the hook
/// `reference-transaction` refuses.
pub fn remove_auto_merge(repository: &Repository) -> Result<()> {
    match are_refs(repository, &repository.in_progress()) {
        true => delete(repository, "AUTO_MERGE"),
        false => {
            let _ = std::fs::remove_file(repository.git_path("AUTO_MERGE"));
            Ok(())
        }
    }
}

/// Returns whether pseudo-refs must be deleted as refs: because there is a hook
/// `reference-transaction`, refs are in reftables, or Git could not take the lock of `packed-refs` for
/// the deletion: another process holds the lock, or its timeout is malformed.
fn are_refs(repository: &Repository, present: &InProgress<'_>) -> bool {
    repository.refs().tables().is_some()
        || has_locked_packed_refs(repository, present)
        || repository.config().i64("core.packedrefstimeout").is_err()
        || hooks::has_programs(repository, "reference-transaction")
}

fn has_locked_packed_refs(repository: &Repository, present: &InProgress<'_>) -> bool {
    match repository.common_dir() == repository.git_dir() {
        true => present.may_have("packed-refs.lock"),
        false => repository.common_dir().join("packed-refs.lock").exists(),
    }
}

/// Removes a pseudo-ref of this worktree. Returns whether the ref existed.
fn remove_pseudo_ref(repository: &Repository, name: &str) -> Result<bool> {
    if repository.refs().find(name)?.is_none() {
        return Ok(false);
    }
    delete(repository, name)?;
    Ok(true)
}

/// Deletes a ref, which need not exist. As in Git, only errors that end a command are fatal.
fn delete(repository: &Repository, name: &str) -> Result<()> {
    let mut transaction = repository.transaction();
    transaction.delete(name, ExpectedValue::Anything);
    match transaction.commit() {
        Err(error) if !error.kind().ends_command() => {
            repository.notify(Notice::Failure(error));
            Ok(())
        }
        deleted => deleted,
    }
}
