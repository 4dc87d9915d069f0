//! The result of a fetch.

use std::fmt;

use bstr::BString;
use pronto_hash::ObjectId;

use crate::Error;
use crate::remote::Dangling;

/// The result of a fetch.
#[derive(Debug, Default)]
#[must_use]
#[non_exhaustive]
pub struct Outcome {
    /// The source URL, as messages show it.
    pub url: BString,
    /// The results of ref updates, in the order in which Git reports them.
    pub updates: Vec<Update>,
    /// The width of the longest remote name that a table shows.
    pub name_width: usize,
    /// The width of the summaries of a table.
    pub summary_width: usize,
    /// The symrefs whose target was deleted, or would be with `dry_run`.
    pub dangling: Vec<Dangling>,
    /// The errors that did not end the fetch.
    pub errors: Vec<FetchFailure>,
    /// The warnings, in order.
    pub warnings: Vec<FetchWarning>,
    /// Whether an update was refused.
    pub failed: bool,
    /// The full remote names of the branches that `FETCH_HEAD` marks for merge.
    pub for_merge: Vec<BString>,
    /// The full remote names, or ids, of refs that were fetched without a local ref, in the order
    /// of the refspecs.
    pub unmapped: Vec<BString>,
}

/// The result of one ref update.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Update {
    /// The kind of update.
    pub flag: Flag,
    /// A summary of the change.
    pub summary: UpdateSummary,
    /// A note: the reason of a refusal, or that the update was forced.
    pub note: Option<UpdateNote>,
    /// The full remote name; empty for a deleted ref.
    pub remote: BString,
    /// The full local name, or `FETCH_HEAD`.
    pub local: BString,
    /// The old value; null for a new ref.
    pub old: ObjectId,
    /// The new value; null for a removed ref.
    pub new: ObjectId,
}

/// The kind of an update.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Flag {
    /// A fast-forward.
    FastForward,
    /// An update that is not a fast-forward.
    Forced,
    /// A new ref.
    New,
    /// A deleted ref.
    Pruned,
    /// A changed tag.
    Tag,
    /// A failed or refused update.
    Rejected,
    /// An unchanged ref.
    UpToDate,
}

impl Flag {
    /// Returns Git's character for the kind of update in tables.
    pub fn sign(self) -> char {
        match self {
            Flag::FastForward => ' ',
            Flag::Forced => '+',
            Flag::New => '*',
            Flag::Pruned => '-',
            Flag::Tag => 't',
            Flag::Rejected => '!',
            Flag::UpToDate => '=',
        }
    }
}

/// The summary of an update. [`Display`](fmt::Display) gives Git's words: `[new branch]`,
/// `1234567..89abcde`.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum UpdateSummary {
    /// The ref already has the fetched value.
    UpToDate,
    /// The tag is new.
    NewTag,
    /// The branch is new.
    NewBranch,
    /// The ref is new, and neither a branch nor a tag.
    NewRef,
    /// The remote ref of this kind (`branch`, `tag`) was fetched without a local ref.
    Fetched(&'static str),
    /// The tag was updated.
    TagUpdate,
    /// The update is refused.
    Rejected,
    /// The ref was deleted.
    Deleted,
    /// The update from the first to the second abbreviated commit is a fast-forward.
    Forward(String, String),
    /// The update from the first to the second abbreviated commit is not a fast-forward.
    Sideways(String, String),
}

impl fmt::Display for UpdateSummary {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            UpdateSummary::UpToDate => "[up to date]",
            UpdateSummary::NewTag => "[new tag]",
            UpdateSummary::NewBranch => "[new branch]",
            UpdateSummary::NewRef => "[new ref]",
            UpdateSummary::Fetched(kind) => kind,
            UpdateSummary::TagUpdate => "[tag update]",
            UpdateSummary::Rejected => "[rejected]",
            UpdateSummary::Deleted => "[deleted]",
            UpdateSummary::Forward(old, new) => return write!(f, "{old}..{new}"),
            UpdateSummary::Sideways(old, new) => return write!(f, "{old}...{new}"),
        })
    }
}

/// A note on an update. [`Display`](fmt::Display) gives Git's words.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum UpdateNote {
    /// The update was not a fast-forward, and was forced.
    Forced,
    /// The update was refused, because a worktree has the branch checked out.
    CheckedOut,
    /// The update was refused, because the tag exists with another value.
    ExistingTag,
    /// The update was refused, because it is not a fast-forward.
    NotFastForward,
    /// The ref could not be written. [`Outcome::errors`] contains the error.
    NotWritten,
}

impl fmt::Display for UpdateNote {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            UpdateNote::Forced => "forced update",
            UpdateNote::CheckedOut => "can't fetch into checked-out branch",
            UpdateNote::ExistingTag => "would clobber existing tag",
            UpdateNote::NotFastForward => "non-fast-forward",
            UpdateNote::NotWritten => "unable to update local ref",
        })
    }
}

/// An error that does not end a fetch. [`Display`](fmt::Display) gives Git's message.
#[derive(Debug)]
#[non_exhaustive]
pub enum FetchFailure {
    /// The local name of a ref is invalid or not below `refs/`.
    UnstorableName(BString),
    /// A ref could not be written because its name conflicts with another ref, like `a/b` with `a`.
    NameConflict {
        /// The name of the remote, whose stale refs may be the conflicting ones.
        remote: BString,
    },
    /// A ref, or with `atomic` all refs, could not be written.
    NotWritten(Error),
}

impl fmt::Display for FetchFailure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            FetchFailure::UnstorableName(name) => {
                write!(f, "* Ignoring funny ref '{name}' locally")
            }
            FetchFailure::NameConflict { remote } => write!(
                f,
                "some local refs could not be updated; try running\n \
                 'git remote prune {remote}' to remove any old, conflicting branches"
            ),
            FetchFailure::NotWritten(error) => error.fmt(f),
        }
    }
}

/// A warning of a fetch. [`Display`](fmt::Display) gives Git's message.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum FetchWarning {
    /// This ref was not fetched, because it needs new shallow commits of the remote.
    ShallowRoots(BString),
    /// A local ref was updated from another remote ref than the configured one.
    UnusualSource {
        /// The local ref.
        local: BString,
        /// The configured remote ref.
        usual: BString,
        /// The fetched remote ref.
        fetched: BString,
    },
}

impl fmt::Display for FetchWarning {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            FetchWarning::ShallowRoots(name) => write!(
                f,
                "rejected {name} because shallow roots are not allowed to be updated"
            ),
            FetchWarning::UnusualSource {
                local,
                usual,
                fetched,
            } => write!(f, "{local} usually tracks {usual}, not {fetched}"),
        }
    }
}
