//! Compares `HEAD` with the index and the index with files, finds untracked files, and reports
//! operations in progress: `git status`.

mod check_ignore;
mod collect;
mod combine;
mod contents;
mod conversion;
mod files;
mod items;
mod line_endings;
mod monitor;
mod quick;
mod settings;
mod state;
mod submodules;
mod tracking;
mod tree;
mod untracked_cache;
mod untracked_list;
mod write_back;

use crate::refs::HeadValue;
use crate::support;
use crate::{Repository, Result};
use bstr::BString;
use pronto_hash::ObjectId;
use pronto_io::watch::Watch;
use std::path::PathBuf;
use std::time::Duration;

pub use crate::ignores::ignore_patterns;
pub(crate) use crate::ignores::read_ignore_file;
pub(crate) use crate::tree_objects::read_tree;
pub use check_ignore::check_ignored;
pub use check_ignore::{IgnoreCheck, IgnoreRule};
pub(crate) use contents::RenameContents;
pub(crate) use conversion::Converter;
pub(crate) use files::SubmoduleHeads;
pub use files::{FileState, UntrackedSearch};
pub use files::{changed_files, deleted_files, entries_of_tree, ignored_entries, untracked_files};
pub use items::items;
pub use items::{Items, StatusItem};
pub use line_endings::LineEndings;
pub use line_endings::line_endings;
pub use pronto_diff::{ChangeKind, DifferenceSide, Renames};
pub use pronto_worktree::ignore::Patterns;
pub use pronto_worktree::pathspec::Pathspec;
pub use pronto_worktree::status::{FileChange, Ignored, Problem, SubmoduleState, Untracked};
pub use settings::walk_options;
pub use state::{OperationInProgress, PickInProgress, RebaseInProgress, SparseCheckout};
pub use submodules::IgnoreSubmodules;
pub(crate) use submodules::SubmoduleInspector;
pub use tracking::{Divergence, TrackedUpstream};
pub use tracking::{ahead_behind, upstream};
pub(crate) use untracked_cache::new_untracked_cache;

/// Options of `git status`. The default is the command without options.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Options {
    /// The untracked files to report (`--untracked-files`).
    pub untracked: Untracked,
    /// The ignored files to report (`--ignored`).
    pub ignored: Ignored,
    /// The paths to report.
    pub pathspec: Pathspec,
    /// The detection of renames (`--find-renames`); `None` for no detection.
    pub renames: Option<Renames>,
    /// The changes of submodules to ignore (`--ignore-submodules`), instead of the configured ones.
    pub ignore_submodules: Option<IgnoreSubmodules>,
    /// Determine the operation in progress, as the long format shows it.
    pub state: bool,
    /// Determine at which ref or commit `HEAD` was detached.
    pub detached_from: bool,
    /// Write refreshed data to the index, if that speeds up the next status and no other process is
    /// writing the index. False corresponds to `--no-optional-locks`.
    pub write_back: bool,
    /// The minimum age of an index that is written back. A younger index belongs to a process that
    /// is still changing it, which must not find the index locked and would write it again anyway.
    pub settle: Duration,
    /// The program that is started with `fsmonitor--daemon start` if a file system monitor is
    /// configured and none listens.
    pub monitor_program: Option<PathBuf>,
    /// The commit with which the index is compared, instead of `HEAD`.
    pub(crate) commit: Option<ObjectId>,
}

impl Options {
    /// Returns the `HEAD` with which the index is compared.
    fn head(&self, repository: &Repository) -> Result<HeadValue> {
        match self.commit {
            Some(id) => Ok(HeadValue::Detached { id }),
            None => repository.head(),
        }
    }
}

impl Default for Options {
    fn default() -> Self {
        Options {
            untracked: Untracked::Normal,
            ignored: Ignored::No,
            pathspec: Pathspec::default(),
            renames: Some(Renames::default()),
            ignore_submodules: None,
            state: true,
            detached_from: true,
            write_back: true,
            settle: Duration::from_secs(1),
            monitor_program: None,
            commit: None,
        }
    }
}

/// The result of a status.
#[derive(Debug)]
#[must_use]
#[non_exhaustive]
pub struct Report {
    /// The state of `HEAD`.
    pub head: HeadValue,
    /// The paths that differ, in order.
    pub entries: Vec<Entry>,
    /// The untracked files and directories, in order. Directories end with a slash.
    pub untracked: Vec<BString>,
    /// The ignored files and directories, in order. Directories end with a slash.
    pub ignored: Vec<BString>,
    /// The operation in progress, if [`Options::state`] is set.
    pub state: OperationInProgress,
    /// Whether the index has an untracked cache of another worktree path or system, which cannot be
    /// used.
    pub has_foreign_cache: bool,
    /// Paths that could not be examined.
    pub problems: Vec<Problem>,
}

/// A path that differs between `HEAD` and the index or between the index and the worktree, or that
/// is unmerged.
#[derive(Clone, Debug, Default)]
pub struct Entry {
    /// The path.
    pub path: BString,
    /// The change from `HEAD` to the index: the first letter of `status --short`.
    pub index: Option<ChangeKind>,
    /// The change from the index to the file: the second letter of `status --short`.
    pub worktree: Option<ChangeKind>,
    /// The old path of a renamed or copied file.
    pub origin: Option<StatusOrigin>,
    /// The file in `HEAD`, if the index differs from it.
    pub in_head: Option<DifferenceSide>,
    /// The file in the index.
    pub in_index: Option<DifferenceSide>,
    /// The mode of the file; zero if it is gone.
    pub file_mode: u32,
    /// The changes of a submodule.
    pub submodule: SubmoduleState,
    /// The versions of a path in conflict.
    pub stages: Option<ConflictStages>,
}

/// The versions of a path in conflict: stages 1 to 3 of the index.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ConflictStages {
    /// The version of the merge base (stage 1).
    pub base: Option<DifferenceSide>,
    /// The version of our side (stage 2).
    pub ours: Option<DifferenceSide>,
    /// The version of the side that is merged (stage 3).
    pub theirs: Option<DifferenceSide>,
}

impl ConflictStages {
    /// Returns the versions in the order of their stages.
    pub fn in_order(&self) -> [Option<DifferenceSide>; 3] {
        [self.base, self.ours, self.theirs]
    }
}

/// The origin of a renamed or copied file.
#[derive(Clone, Debug)]
pub struct StatusOrigin {
    /// The old path.
    pub path: BString,
    /// [`Renamed`](ChangeKind::Renamed) or [`Copied`](ChangeKind::Copied).
    pub kind: ChangeKind,
    /// The similarity in percent.
    pub percent: u32,
    /// Whether the rename is between the index and the worktree, and not between `HEAD` and the
    /// index.
    pub in_worktree: bool,
}

impl Entry {
    /// Returns the stages of an unmerged path as bits: 1 for the merge base, 2 for ours, 4 for
    /// theirs. Zero if the path is not unmerged.
    pub fn stage_mask(&self) -> u8 {
        let stages = self.stages.unwrap_or_default().in_order();
        let bits = stages.iter().enumerate();
        bits.map(|(at, stage)| u8::from(stage.is_some()) << at)
            .sum()
    }
}

impl Report {
    /// Returns whether there is something to commit.
    pub fn is_committable(&self) -> bool {
        self.entries
            .iter()
            .any(|entry| entry.index.is_some_and(|kind| kind != ChangeKind::Unmerged))
            || (self.state.merge && !self.has_conflicts())
            || (self.head.id().is_none() && self.has_conflicts())
    }

    /// Returns whether a path is unmerged.
    pub fn has_conflicts(&self) -> bool {
        self.entries.iter().any(|entry| entry.stages.is_some())
    }

    /// Returns whether a file in the worktree differs from the index.
    pub fn is_worktree_dirty(&self) -> bool {
        self.entries.iter().any(|entry| entry.worktree.is_some())
    }
}

/// Determines the status of the worktree. Costs at most one `lstat` for each tracked file and one
/// `open` for each directory. Trees of `HEAD` are read only if the index has no matching cached
/// tree.
///
/// # Errors
/// Fails with [`Interrupted`](crate::ErrorKind::Interrupted) if the operation is interrupted, with
/// `ErrorKind::NoWorkTree` if there is no worktree, with `ErrorKind::Worktree` or `ErrorKind::Io`
/// if the index cannot be read, and with `ErrorKind::Object` if an object cannot be read.
pub fn status(repository: &Repository, options: &Options, watch: &Watch<'_>) -> Result<Report> {
    support::require(repository, support::Operation::Status)?;
    collect::collect(repository, options, watch, None)
}
