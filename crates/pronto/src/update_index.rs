//! Changing single entries of the index: `update-index`.
//!
//! What is asked for is collected first, so that files can be hashed by several threads, and then
//! done in order.

mod apply;

use bstr::BString;
use pronto_hash::ObjectId;
pub use pronto_index::Version;
use pronto_io::interrupt::Interrupt;

use crate::refresh::{Options as Refresh, Outdated};
use crate::switch::Prepared;
use crate::worktree::from_index;
use crate::{Error, ErrorKind, Repository, Result, add};

use apply::Apply;

/// What may happen to an entry.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Allowed {
    /// New paths may be added.
    pub add: bool,
    /// Paths whose files are gone may be removed.
    pub remove: bool,
    /// What is in the way of a new path may be removed.
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
        /// What may happen.
        allowed: Allowed,
        /// Pass over a path that no index may have, instead of refusing it.
        ignores_bad_path: bool,
        /// How a refusal ends.
        refusal: String,
    },
    /// Bring recorded facts up to date.
    Refresh(Refresh),
    /// Forget how conflicts were resolved.
    ClearResolveUndo,
}

/// What to do.
#[derive(Clone, Debug, Default)]
pub struct Options {
    /// In this order.
    pub actions: Vec<Action>,
    /// Write the index in this version.
    pub version: Option<Version>,
    /// Write the index even if nothing changed.
    pub force_write: bool,
}

/// What came of it, in order.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Said {
    /// A path was added, or updated.
    Added(BString),
    /// A path was removed.
    Removed(BString),
    /// A path was made executable, or not.
    Executable(BString, bool),
    /// The file of an entry is not as it says.
    Outdated(Outdated),
    /// A line that says what sort it is itself.
    Line(String),
    /// Why nothing was written; nothing follows.
    Fatal(String),
}

impl Repository {
    /// Changes entries of the index as `options` say, in their order. Files are read by several
    /// threads; the index is replaced last.
    ///
    /// # Errors
    /// There is no work tree; the index cannot be read or written, or is locked and has to be
    /// written; [`Interrupted`](ErrorKind::Interrupted);
    /// [`Unsupported`](ErrorKind::Unsupported) for a split index. What Git refuses is said.
    pub fn update_index(&self, options: &Options, interrupt: &Interrupt) -> Result<Vec<Said>> {
        let (prepared, lock) = Prepared::try_new(self)?;
        if prepared.index.is_split() {
            let message = "pronto does not have update-index of a split index";
            return Err(Error::new(ErrorKind::Unsupported, message));
        }
        let plain = add::Options::default();
        let mut apply = Apply::new(self, &prepared, &plain, interrupt)?;
        apply.run(&options.actions)?;
        let (edit, said) = apply.finish()?;
        let is_fatal = matches!(said.last(), Some(Said::Fatal(_)));
        let mut writer = self.index_writer()?;
        writer.force_version = options.version;
        let number = |version| match version {
            Version::Two => [0, 2, 3],
            Version::Four => [0, 4, 4],
        };
        let base = prepared.index.version();
        let is_other = |version| !number(version)[1..].contains(&base);
        let changes = !edit.is_empty() || options.version.is_some_and(is_other);
        if is_fatal || !(changes || options.force_write) {
            return Ok(said);
        }
        let lock = lock?;
        let bytes = prepared.encode_with(&writer, edit.content(), interrupt)?;
        lock.commit(&bytes).map_err(from_index)?;
        Ok(said)
    }
}
