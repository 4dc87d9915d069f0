//! Status: compares `HEAD` with the index and the index with files, finds untracked files, and
//! reports operations in progress.

mod check_ignore;
mod collect;
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

use crate::refs::Head;
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
pub(crate) use contents::Contents;
pub(crate) use conversion::Converter;
pub(crate) use files::Heads;
pub use files::{FileState, Search};
pub use files::{changed_files, deleted_files, entries_of_tree, ignored_entries, untracked_files};
pub use items::items;
pub use items::{Item, Items};
pub use line_endings::LineEndings;
pub use line_endings::line_endings;
pub use pronto_diff::Renames;
pub use pronto_worktree::ignore::Patterns;
pub use pronto_worktree::pathspec::Pathspec;
pub use pronto_worktree::status::{Change, Ignored, SubmoduleState, Untracked};
pub use settings::walk_options;
pub use state::{Operation, Rebase, SparseCheckout, State};
pub use submodules::IgnoreSubmodules;
pub(crate) use submodules::Inspector;
pub use tracking::{Divergence, Upstream};
pub use tracking::{ahead_behind, upstream};
pub(crate) use untracked_cache::new_untracked_cache;

/// Options of a status.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Options {
    /// The untracked files to report.
    pub untracked: Untracked,
    /// The ignored files to report.
    pub ignored: Ignored,
    /// The selected paths.
    pub pathspec: Pathspec,
    /// Whether and how renames are detected.
    pub renames: Option<Renames>,
    /// Which changes of submodules are ignored, instead of the configured ones.
    pub ignore_submodules: Option<IgnoreSubmodules>,
    /// Whether the operation in progress is determined.
    pub state: bool,
    /// Whether the origin of a detached `HEAD` is determined.
    pub detached_from: bool,
    /// Whether the index is written if that makes the next status faster and no other process is
    /// writing it.
    pub write_back: bool,
    /// The age from which an index is written for the next status. A process that is working on the
    /// index must not find it locked, and would write it again anyway.
    pub settle: Duration,
    /// The program that starts a file system monitor with `fsmonitor--daemon start`, if one is
    /// configured and none listens.
    pub monitor_program: Option<PathBuf>,
    /// The commit that the index is compared with, instead of that of `HEAD`.
    pub(crate) commit: Option<ObjectId>,
}

impl Options {
    /// Returns the `HEAD` that the index is compared with.
    fn head(&self, repository: &Repository) -> Result<Head> {
        match self.commit {
            Some(id) => Ok(Head::Detached { id }),
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
#[non_exhaustive]
pub struct Report {
    /// The state of `HEAD`.
    pub head: Head,
    /// Paths that differ, in order.
    pub entries: Vec<Entry>,
    /// Untracked files, and directories with a slash at their end, in order.
    pub untracked: Vec<BString>,
    /// Ignored files and directories, in order.
    pub ignored: Vec<BString>,
    /// The operation in progress.
    pub state: State,
    /// Whether there is an untracked cache of another place or system.
    pub has_foreign_cache: bool,
    /// Paths that could not be examined, with reasons.
    pub problems: Vec<(BString, std::io::Error)>,
}

/// A path that differs between `HEAD` and the index, between the index and its file, or is in
/// conflict.
#[derive(Clone, Debug, Default)]
pub struct Entry {
    /// The path.
    pub path: BString,
    /// Git's letter for the change from `HEAD` to the index.
    pub index: Option<u8>,
    /// Git's letter for the change from the index to the file.
    pub worktree: Option<u8>,
    /// The old path of a renamed or copied file.
    pub origin: Option<Origin>,
    /// Mode and object in `HEAD`.
    pub in_head: Option<(u32, ObjectId)>,
    /// Mode and object in the index.
    pub in_index: Option<(u32, ObjectId)>,
    /// The mode of the file; zero if it is gone.
    pub file_mode: u32,
    /// The differences of a submodule.
    pub submodule: SubmoduleState,
    /// In a conflict: mode and object of the ancestor, our side and theirs.
    pub stages: Option<[Option<(u32, ObjectId)>; 3]>,
}

/// The origin of a renamed or copied file.
#[derive(Clone, Debug)]
pub struct Origin {
    /// The old path.
    pub path: BString,
    /// `R` or `C`.
    pub letter: u8,
    /// The similarity in percent.
    pub percent: u32,
    /// Whether it was renamed between the index and the worktree instead of between `HEAD` and the
    /// index.
    pub in_worktree: bool,
}

impl Entry {
    /// Returns the stages of a conflict as bits: 1 for the ancestor, 2 for ours, 4 for theirs. Zero
    /// without a conflict.
    pub fn stage_mask(&self) -> u8 {
        let stages = self.stages.iter().flatten().enumerate();
        stages
            .map(|(at, stage)| u8::from(stage.is_some()) << at)
            .sum()
    }
}

impl Report {
    /// Returns whether there is something to commit.
    pub fn is_committable(&self) -> bool {
        self.entries
            .iter()
            .any(|entry| entry.index.is_some_and(|letter| letter != b'U'))
            || (self.state.merge && !self.has_conflicts())
            || (self.head.id().is_none() && self.has_conflicts())
    }

    /// Returns whether a path is in conflict.
    pub fn has_conflicts(&self) -> bool {
        self.entries.iter().any(|entry| entry.stages.is_some())
    }

    /// Returns whether a file differs from the index.
    pub fn is_worktree_dirty(&self) -> bool {
        self.entries.iter().any(|entry| entry.worktree.is_some())
    }
}

/// Determines what has changed. At most one `lstat` for each tracked file and one open for each
/// directory; trees of `HEAD` are read only where the index has no cached tree for them.
///
/// # Errors
/// There is no worktree; the index or an object cannot be read;
/// [`Interrupted`](crate::ErrorKind::Interrupted).
pub fn status(repository: &Repository, options: &Options, watch: &Watch<'_>) -> Result<Report> {
    support::require(support::Operation::Status, repository)?;
    collect::collect(repository, options, watch, None)
}
