//! Changes entries of the index: `git update-index`.
//!
//! Actions are collected first, so that several threads can hash files, and then applied in order.

mod apply;
mod caches;
mod event;
mod mtime_test;

use bstr::{BStr, BString, ByteSlice};
use pronto_hash::ObjectId;
pub use pronto_index::IndexVersion;
use pronto_index::Splitting;
use pronto_io::watch::Watch;

use crate::errors::from_index;
use crate::refresh::Options as Refresh;
use crate::session::WorktreeSession;
use crate::status::Pathspec;
use crate::support::{self, Operation};
use crate::{ErrorKind, PartialFailure, Repository, Result, add, index, split_index};

use apply::{AppliedActions, Apply};
pub use event::{Event, UpdateRefusal, UpdateStop};
pub use mtime_test::{MtimeDefect, test_untracked_cache};

/// The changes that are allowed for an entry.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct AllowedChanges {
    /// Allow adding new paths (`--add`).
    pub add: bool,
    /// Allow removing paths whose files are missing (`--remove`).
    pub remove: bool,
    /// Allow removing entries that conflict with a new path (`--replace`).
    pub replace: bool,
    /// Skip entries with the skip-worktree bit (`--ignore-skip-worktree-entries`).
    pub ignore_skip_worktree: bool,
    /// Hash files without storing objects (`--info-only`).
    pub info_only: bool,
}

/// A flag of an entry.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum EntryMark {
    /// The assume-unchanged bit (`--assume-unchanged`).
    AssumeUnchanged,
    /// The skip-worktree bit (`--skip-worktree`).
    SkipWorktree,
}

/// One action of `git update-index`.
#[derive(Clone, Debug)]
pub enum IndexAction {
    /// Update the entry of the path from its file.
    Update(BString, AllowedChanges),
    /// Remove the entry of the path, even if the file exists (`--force-remove`).
    Remove(BString),
    /// Set (`true`) or clear a flag of the entry.
    Mark(BString, EntryMark, bool),
    /// Set (`true`) or clear the executable bit of the entry (`--chmod`).
    Executable(BString, bool),
    /// Add the given entry (`--cacheinfo`, `--index-info`).
    Entry {
        /// The path.
        path: BString,
        /// The mode; zero removes the path.
        mode: u32,
        /// The object id.
        id: ObjectId,
        /// The stage.
        stage: u8,
        /// The allowed changes.
        allowed: AllowedChanges,
        /// Whether the entry is from a list (`--index-info`), whose invalid paths are skipped
        /// instead of refused.
        from_list: bool,
    },
    /// Refresh the stat data of entries (`--refresh`).
    Refresh(Refresh),
    /// Clear the resolve-undo data (`--clear-resolve-undo`).
    ClearResolveUndo,
    /// Apply the action to each path that differs between the index and `HEAD` (`--again`). This is
    /// always the last action.
    Again(Box<IndexAction>, Pathspec),
    /// Restore the unmerged entries of the paths during a merge (`--unresolve`).
    Unresolve(Vec<BString>),
    /// Set (`true`) or clear the fsmonitor-valid bit of the entry (`--fsmonitor-valid`).
    Vouch(BString, bool),
}

/// Options of `git update-index`. The default is the command without options.
#[derive(Clone, Debug, Default)]
#[non_exhaustive]
pub struct Options {
    /// The actions, in this order.
    pub actions: Vec<IndexAction>,
    /// The format version of the written index (`--index-version`).
    pub version: Option<IndexVersion>,
    /// Write the index even if nothing changed (`--force-write-index`).
    pub force_write: bool,
    /// Write a split index with a new shared index file (`--split-index`), or a single file
    /// (`--no-split-index`).
    pub split: Option<bool>,
    /// Enable or disable the untracked cache (`--untracked-cache`).
    pub untracked_cache: Option<bool>,
    /// Enable or disable the file system monitor extension (`--fsmonitor`).
    pub fsmonitor: Option<bool>,
}

impl Options {
    /// Whether an action changes `directory` (with a slash at the end), an entry below it, or
    /// replaces it.
    fn is_near(&self, directory: &BStr) -> bool {
        let touches = |path: &BString| {
            let is_above = directory
                .strip_prefix(path.as_bytes())
                .is_some_and(|rest| path.ends_with(b"/") || rest.starts_with(b"/"));
            path.starts_with(directory) || is_above
        };
        self.split.is_some()
            || self.actions.iter().any(|action| match action {
                IndexAction::Update(path, _)
                | IndexAction::Remove(path)
                | IndexAction::Mark(path, ..)
                | IndexAction::Executable(path, _)
                | IndexAction::Vouch(path, _)
                | IndexAction::Entry { path, .. } => touches(path),
                IndexAction::Again(..) | IndexAction::Unresolve(_) => true,
                IndexAction::Refresh(_) | IndexAction::ClearResolveUndo => false,
            })
    }
}

/// Changes entries of the index according to `options`, in the order of the actions. Several
/// threads read files; the index is replaced last.
///
/// # Errors
/// Fails if there is no worktree, if the index cannot be read or written, if a required update of
/// the index finds the index locked, or with [`Interrupted`](crate::ErrorKind::Interrupted) after
/// an interrupt. Also fails at the first path that cannot be updated. In this case the index is not
/// written, and the report contains the events before the error.
pub fn update_index(
    repository: &Repository,
    options: &Options,
    watch: &Watch<'_>,
) -> Result<Vec<Event>, PartialFailure<Vec<Event>, UpdateStop>> {
    support::require(repository, Operation::UpdateIndex)?;
    let read = || repository.index_near(&mut |directory| options.is_near(directory));
    let (prepared, lock) = WorktreeSession::with_index(repository, read)?;
    let plain = add::Options::default();
    let mut apply = Apply::new(repository, &prepared, &plain, watch)?;
    apply.run(&options.actions)?;
    let AppliedActions {
        mut edit,
        events,
        stop,
    } = apply.finish()?;
    let marks = options.actions.iter().filter_map(|action| match action {
        IndexAction::Vouch(path, is_valid) => Some((path.clone(), *is_valid)),
        _ => None,
    });
    let marks: Vec<(BString, bool)> = marks.collect();
    if !marks.is_empty() && stop.is_none() {
        caches::vouch(&mut edit, &marks)?;
    }
    let index = &prepared.index;
    let mut changes = caches::change_caches(repository, &mut edit, index, options)?;
    let mut writer = index::writer(repository)?;
    changes |= match options.split {
        Some(true) => {
            writer.splitting = Splitting::Renew;
            true
        }
        Some(false) => {
            writer.splitting = Splitting::Join;
            index.is_split()
        }
        None => split_index::is_wrongly_split(repository, index),
    };
    writer.force_version = options.version;
    let number = |version| match version {
        IndexVersion::Two => [0, 2, 3],
        IndexVersion::Four => [0, 4, 4],
    };
    let base = prepared.index.version();
    let is_other = |version| !number(version)[1..].contains(&base);
    changes |= !edit.is_empty() || options.version.is_some_and(is_other);
    if let Some(stop) = stop {
        return Err(PartialFailure::new(stop, events));
    }
    if !(changes || options.force_write) {
        return Ok(events);
    }
    let lock = lock?;
    let bytes = match prepared.encode_with(&writer, edit.content(), watch) {
        Err(error) if matches!(error.kind(), ErrorKind::Worktree | ErrorKind::Corrupt) => {
            let kind = error.kind();
            let error = error.without_context(kind);
            return Err(PartialFailure::new(UpdateStop::NotEncoded(error), events));
        }
        bytes => bytes?,
    };
    lock.commit(&bytes).map_err(from_index)?;
    Ok(events)
}
