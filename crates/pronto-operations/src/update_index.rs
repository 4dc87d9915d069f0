//! Changes entries of the index: `update-index`.
//!
//! Actions are collected first, so that several threads can hash files, and then applied in order.

mod apply;
mod caches;
mod event;
mod mtime_test;

use bstr::{BStr, BString, ByteSlice};
use pronto_hash::ObjectId;
use pronto_index::Splitting;
pub use pronto_index::Version;
use pronto_io::watch::Watch;

use crate::errors::from_index;
use crate::refresh::Options as Refresh;
use crate::session::WorktreeSession;
use crate::status::Pathspec;
use crate::support::{self, Operation};
use crate::{ErrorKind, Repository, Result, add, index, split_index};

use apply::Apply;
pub use event::{Event, Refusal, Stop};
pub use mtime_test::{MtimeDefect, test_untracked_cache};

/// The changes that may happen to an entry.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Allowed {
    /// New paths may be added.
    pub add: bool,
    /// Paths whose files are gone may be removed.
    pub remove: bool,
    /// Whether entries that obstruct a new path may be removed.
    pub replace: bool,
    /// Leave entries alone that are not to be in the worktree.
    pub ignore_skip_worktree: bool,
    /// Hash files, but do not store them.
    pub info_only: bool,
}

/// A mark of an entry.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mark {
    /// `--assume-unchanged`.
    AssumeUnchanged,
    /// `--skip-worktree`.
    SkipWorktree,
}

/// One thing to do.
#[derive(Clone, Debug)]
pub enum Action {
    /// Take the file at the path.
    Update(BString, Allowed),
    /// Remove the path, whatever is there.
    Remove(BString),
    /// Set or take away a mark.
    Mark(BString, Mark, bool),
    /// Make the entry executable, or not.
    Executable(BString, bool),
    /// Take what is given.
    Entry {
        /// The path.
        path: BString,
        /// The mode; zero removes the path.
        mode: u32,
        /// The object.
        id: ObjectId,
        /// The stage.
        stage: u8,
        /// The allowed changes.
        allowed: Allowed,
        /// Whether the entry is one of a list, of which paths that no index may have are skipped
        /// instead of refused.
        from_list: bool,
    },
    /// Refresh the recorded stat data.
    Refresh(Refresh),
    /// Forget how conflicts were resolved.
    ClearResolveUndo,
    /// Do the same with each path of the index that is not as in `HEAD`: the last thing that is
    /// done.
    Again(Box<Action>, Pathspec),
    /// In a merge, let the paths be in conflict again.
    Unresolve(Vec<BString>),
    /// Let a file system monitor vouch for the entry, or not.
    Vouch(BString, bool),
}

/// Options of `update-index`.
#[derive(Clone, Debug, Default)]
#[non_exhaustive]
pub struct Options {
    /// In this order.
    pub actions: Vec<Action>,
    /// Write the index in this version.
    pub version: Option<Version>,
    /// Write the index even if nothing changed.
    pub force_write: bool,
    /// Write the index as two files of which one is new, or as one.
    pub split: Option<bool>,
    /// Have an untracked cache, or none.
    pub untracked_cache: Option<bool>,
    /// Have a place for what a file system monitor says, or none.
    pub fsmonitor: Option<bool>,
}

impl Options {
    /// Whether something is to be done in `directory` (a slash at its end), or in its place.
    fn is_near(&self, directory: &BStr) -> bool {
        let touches = |path: &BString| {
            let is_above = directory
                .strip_prefix(path.as_bytes())
                .is_some_and(|rest| path.ends_with(b"/") || rest.starts_with(b"/"));
            path.starts_with(directory) || is_above
        };
        self.split.is_some()
            || self.actions.iter().any(|action| match action {
                Action::Update(path, _)
                | Action::Remove(path)
                | Action::Mark(path, ..)
                | Action::Executable(path, _)
                | Action::Vouch(path, _)
                | Action::Entry { path, .. } => touches(path),
                Action::Again(..) | Action::Unresolve(_) => true,
                Action::Refresh(_) | Action::ClearResolveUndo => false,
            })
    }
}

/// Changes entries of the index according to `options`, in their order. Several threads read
/// files; the index is replaced last.
///
/// # Errors
/// There is no worktree; the index cannot be read or written, or is locked and must be written;
/// [`Interrupted`](crate::ErrorKind::Interrupted). Refusals of Git are returned as events.
pub fn update_index(
    repository: &Repository,
    options: &Options,
    watch: &Watch<'_>,
) -> Result<Vec<Event>> {
    support::require(Operation::UpdateIndex, repository)?;
    let read = || repository.index_near(&mut |directory| options.is_near(directory));
    let (prepared, lock) = WorktreeSession::with_index(repository, read)?;
    let plain = add::Options::default();
    let mut apply = Apply::new(repository, &prepared, &plain, watch)?;
    apply.run(&options.actions)?;
    let (mut edit, mut events) = apply.finish()?;
    let is_given_up = matches!(events.last(), Some(Event::Stopped(_)));
    let marks = options.actions.iter().filter_map(|action| match action {
        Action::Vouch(path, is_valid) => Some((path.clone(), *is_valid)),
        _ => None,
    });
    let marks: Vec<(BString, bool)> = marks.collect();
    if !marks.is_empty() && !is_given_up {
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
        Version::Two => [0, 2, 3],
        Version::Four => [0, 4, 4],
    };
    let base = prepared.index.version();
    let is_other = |version| !number(version)[1..].contains(&base);
    changes |= !edit.is_empty() || options.version.is_some_and(is_other);
    if is_given_up || !(changes || options.force_write) {
        return Ok(events);
    }
    let lock = lock?;
    let bytes = match prepared.encode_with(&writer, edit.content(), watch) {
        Err(error) if *error.kind() == ErrorKind::Worktree => {
            let error = error.without_context(ErrorKind::Worktree);
            events.push(Event::Stopped(Stop::NotEncoded(error)));
            return Ok(events);
        }
        bytes => bytes?,
    };
    lock.commit(&bytes).map_err(from_index)?;
    Ok(events)
}
