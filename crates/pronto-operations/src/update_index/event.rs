//! The events of `git update-index`.

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
    /// The executable bit of a path was set (`true`) or cleared.
    Executable(BString, bool),
    /// The file of an entry differs from the entry.
    Outdated(Outdated),
    /// The conversion of a file had a problem.
    Conversion(filter::FilterWarning),
    /// The file of a path cannot be staged.
    Failure(add::StagingFailure),
    /// A path cannot be updated.
    Refused(UpdateRefusal),
    /// The path is not allowed in an index and was skipped.
    Skipped(BString),
}

/// The reason why a path cannot be updated. [`Display`](fmt::Display) gives Git's message.
#[derive(Debug)]
#[non_exhaustive]
pub enum UpdateRefusal {
    /// A leading directory of the path is a symbolic link.
    BeyondLink(BString),
    /// The file cannot be examined.
    Unexamined(BString, io::Error),
    /// The file does not exist, and removals are not allowed.
    Missing(BString),
    /// The path is a directory, and the index has entries below it.
    DirectoryWithEntries(BString),
    /// The path is a directory.
    Directory(BString),
    /// The path would be both a file and a leading directory of other entries.
    FileAndDirectory(BString),
    /// The path is new, and `add` is not allowed.
    NotAllowed(BString),
    /// The path is not allowed in an index.
    InvalidPath(BString),
}

impl fmt::Display for UpdateRefusal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            UpdateRefusal::BeyondLink(path) => write!(f, "'{path}' is beyond a symbolic link"),
            UpdateRefusal::Unexamined(path, error) => {
                write!(f, "lstat(\"{path}\"): {}", reason(error))
            }
            UpdateRefusal::Missing(path) => {
                write!(f, "{path}: does not exist and --remove not passed")
            }
            UpdateRefusal::DirectoryWithEntries(path) => {
                write!(f, "{path}: is a directory - add individual files instead")
            }
            UpdateRefusal::Directory(path) => {
                write!(f, "{path}: is a directory - add files inside instead")
            }
            UpdateRefusal::FileAndDirectory(path) => {
                write!(f, "'{path}' appears as both a file and as a directory")
            }
            UpdateRefusal::NotAllowed(path) => {
                write!(f, "{path}: cannot add to the index - missing --add option?")
            }
            UpdateRefusal::InvalidPath(path) => write!(f, "Invalid path '{path}'"),
        }
    }
}

/// The reason why nothing was written. [`Display`](fmt::Display) gives Git's message.
#[derive(Debug)]
#[non_exhaustive]
pub enum UpdateStop {
    /// The path cannot be updated. The reason was reported before.
    NotUpdated(BString),
    /// The path has no entry whose flag could be changed.
    NotMarked(BString),
    /// The path has no file entry whose executable bit could be set (`true`) or cleared.
    ModeKept(BString, bool),
    /// The given entry cannot be added. The reason was reported before.
    EntryRefused {
        /// The path.
        path: BString,
        /// Whether the entry is from a list (`--index-info`).
        from_list: bool,
    },
    /// The operation failed for a reason that [`update_index`](super::update_index()) documents.
    Operation(Error),
    /// A file cannot be converted or examined.
    Failed(Error),
    /// The new index cannot be written.
    NotEncoded(Error),
}

impl From<Error> for UpdateStop {
    fn from(error: Error) -> Self {
        UpdateStop::Operation(error)
    }
}

impl std::error::Error for UpdateStop {}

impl UpdateStop {
    /// Returns Git's advice about the failure.
    pub fn hint(&self) -> Option<&str> {
        match self {
            UpdateStop::Operation(error)
            | UpdateStop::Failed(error)
            | UpdateStop::NotEncoded(error) => error.hint(),
            _ => None,
        }
    }
}

impl fmt::Display for UpdateStop {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            UpdateStop::NotUpdated(path) => write!(f, "Unable to process path {path}"),
            UpdateStop::NotMarked(path) => write!(f, "Unable to mark file {path}"),
            UpdateStop::ModeKept(path, executable) => {
                let sign = if *executable { '+' } else { '-' };
                write!(f, "git update-index: cannot chmod {sign}x '{path}'")
            }
            UpdateStop::EntryRefused {
                path,
                from_list: true,
            } => write!(f, "git update-index: unable to update {path}"),
            UpdateStop::EntryRefused { path, .. } => {
                write!(f, "git update-index: --cacheinfo cannot add {path}")
            }
            UpdateStop::Operation(error)
            | UpdateStop::Failed(error)
            | UpdateStop::NotEncoded(error) => error.fmt(f),
        }
    }
}
