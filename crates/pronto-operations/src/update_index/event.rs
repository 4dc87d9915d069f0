//! The events of an update of the index.

use std::fmt;
use std::io;

use bstr::BString;
use pronto_io::error::reason;
use pronto_worktree::filter;

use crate::Error;
use crate::add;
use crate::refresh::Outdated;

/// An event of an update, in order.
#[derive(Debug)]
#[non_exhaustive]
pub enum Event {
    /// A path was added, or updated.
    Added(BString),
    /// A path was removed.
    Removed(BString),
    /// A path was made executable, or not.
    Executable(BString, bool),
    /// The file of an entry is not as it says.
    Outdated(Outdated),
    /// The conversion of a file had a problem.
    Conversion(filter::Warning),
    /// The file of a path cannot be staged.
    Failure(add::Failure),
    /// A path cannot be updated.
    Refused(Refusal),
    /// An index must not have this path, which is skipped.
    Skipped(BString),
}

/// The reason for which a path cannot be updated. [`Display`](fmt::Display) gives Git's message.
#[derive(Debug)]
#[non_exhaustive]
pub enum Refusal {
    /// A leading directory of the path is a symbolic link.
    BeyondLink(BString),
    /// The file cannot be examined.
    Unexamined(BString, io::Error),
    /// The file does not exist, and removals are not allowed.
    Missing(BString),
    /// The path is a directory, and the index has files in it.
    DirectoryWithEntries(BString),
    /// The path is a directory.
    Directory(BString),
    /// The path would be a file, and a directory of other entries.
    FileAndDirectory(BString),
    /// The path is new, and additions are not allowed.
    NotAllowed(BString),
    /// An index must not have the path.
    InvalidPath(BString),
}

impl fmt::Display for Refusal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Refusal::BeyondLink(path) => write!(f, "'{path}' is beyond a symbolic link"),
            Refusal::Unexamined(path, error) => {
                write!(f, "lstat(\"{path}\"): {}", reason(error))
            }
            Refusal::Missing(path) => {
                write!(f, "{path}: does not exist and --remove not passed")
            }
            Refusal::DirectoryWithEntries(path) => {
                write!(f, "{path}: is a directory - add individual files instead")
            }
            Refusal::Directory(path) => {
                write!(f, "{path}: is a directory - add files inside instead")
            }
            Refusal::FileAndDirectory(path) => {
                write!(f, "'{path}' appears as both a file and as a directory")
            }
            Refusal::NotAllowed(path) => {
                write!(f, "{path}: cannot add to the index - missing --add option?")
            }
            Refusal::InvalidPath(path) => write!(f, "Invalid path '{path}'"),
        }
    }
}

/// The reason for which nothing was written. [`Display`](fmt::Display) gives Git's message.
#[derive(Debug)]
#[non_exhaustive]
pub enum Stop {
    /// The path cannot be updated, for a reason that is reported before.
    NotUpdated(BString),
    /// The path has no entry that could be marked.
    NotMarked(BString),
    /// The path has no entry of a file, which could be made executable (`true`) or not.
    ModeKept(BString, bool),
    /// The given entry cannot be added, for a reason that is reported before.
    EntryRefused {
        /// The path.
        path: BString,
        /// Whether the entry is one of a list.
        from_list: bool,
    },
    /// The operation fails, as described at [`update_index`](super::update_index()).
    Operation(Error),
    /// A file cannot be converted or examined.
    Failed(Error),
    /// The new index cannot be written.
    NotEncoded(Error),
}

impl From<Error> for Stop {
    fn from(error: Error) -> Self {
        Stop::Operation(error)
    }
}

impl std::error::Error for Stop {}

impl Stop {
    /// Returns the advice about it.
    pub fn hint(&self) -> Option<&str> {
        match self {
            Stop::Operation(error) | Stop::Failed(error) | Stop::NotEncoded(error) => error.hint(),
            _ => None,
        }
    }
}

impl fmt::Display for Stop {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Stop::NotUpdated(path) => write!(f, "Unable to process path {path}"),
            Stop::NotMarked(path) => write!(f, "Unable to mark file {path}"),
            Stop::ModeKept(path, executable) => {
                let sign = if *executable { '+' } else { '-' };
                write!(f, "git update-index: cannot chmod {sign}x '{path}'")
            }
            Stop::EntryRefused {
                path,
                from_list: true,
            } => write!(f, "git update-index: unable to update {path}"),
            Stop::EntryRefused { path, .. } => {
                write!(f, "git update-index: --cacheinfo cannot add {path}")
            }
            Stop::Operation(error) | Stop::Failed(error) | Stop::NotEncoded(error) => error.fmt(f),
        }
    }
}
