//! The reasons why a file cannot be staged.

use std::fmt;
use std::io;

use bstr::{BStr, BString};
use pronto_io::dir::is_missing;
use pronto_io::error::{OsReason, reason};
use pronto_worktree::filter;

use crate::errors::from_worktree;
use crate::objects::from_odb;
use crate::{Error, ErrorKind};

/// The reason why one file is not staged. [`Display`](fmt::Display) gives the first line of Git's
/// message.
#[derive(Debug)]
#[non_exhaustive]
pub enum StagingFailure {
    /// The path is not a regular file, a symbolic link or the top directory of a repository.
    UnfitKind(BString),
    /// The content of a file, the target of a symbolic link or the `HEAD` of a nested repository
    /// cannot be read.
    Unreadable {
        /// The path from the top of the worktree.
        path: BString,
        /// The reason.
        error: Error,
    },
    /// The object of a file cannot be stored.
    NotStored {
        /// The path from the top of the worktree.
        path: BString,
        /// The reason.
        error: Error,
    },
    /// The path is not allowed in an index.
    HostilePath {
        /// The path from the top of the worktree.
        path: BString,
        /// The reason.
        error: Error,
    },
}

impl fmt::Display for StagingFailure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            StagingFailure::UnfitKind(path) => write!(
                f,
                "{path}: can only add regular files, symbolic links or git-directories"
            ),
            StagingFailure::Unreadable { error, .. }
            | StagingFailure::NotStored { error, .. }
            | StagingFailure::HostilePath { error, .. } => error.fmt(f),
        }
    }
}

/// The reason why a target has no object.
#[derive(Debug)]
pub(crate) enum StagingStop {
    /// The file cannot be staged. The operation may continue with other files.
    File(StagingFailure),
    /// The operation fails as a whole.
    Operation {
        error: Error,
        /// The warnings that were reported before the error.
        warnings: Vec<filter::FilterWarning>,
    },
}

impl StagingStop {
    pub(super) fn all(kind: ErrorKind, message: String) -> StagingStop {
        StagingStop::Operation {
            error: Error::new(kind, message),
            warnings: Vec::new(),
        }
    }

    /// Returns the failure of a file with a complete message.
    pub(super) fn unreadable(path: &BStr, message: impl Into<String>) -> StagingStop {
        StagingStop::File(StagingFailure::Unreadable {
            path: path.to_owned(),
            error: Error::new(ErrorKind::Worktree, message),
        })
    }

    /// Returns the failure of a file for an error of the operating system during `action`.
    pub(super) fn io(path: &BStr, action: String, error: io::Error) -> StagingStop {
        StagingStop::File(StagingFailure::Unreadable {
            path: path.to_owned(),
            error: Error::new(ErrorKind::Io, action).because(OsReason(error)),
        })
    }
}

pub(super) fn unstored(path: &BStr, error: pronto_odb::Error) -> StagingStop {
    StagingStop::File(StagingFailure::NotStored {
        path: path.to_owned(),
        error: from_odb(error),
    })
}

pub(super) fn unseen(path: &BStr, error: &io::Error) -> StagingStop {
    let reason = match is_missing(error) {
        true => "No such file or directory".to_owned(),
        false => reason(error),
    };
    StagingStop::all(ErrorKind::Io, format!("unable to stat '{path}': {reason}"))
}

pub(super) fn unfit(path: &BStr) -> StagingStop {
    StagingStop::File(StagingFailure::UnfitKind(path.to_owned()))
}

pub(super) fn unconverted(
    error: pronto_worktree::Error,
    warnings: Vec<filter::FilterWarning>,
) -> StagingStop {
    let kind = error.kind();
    StagingStop::Operation {
        error: from_worktree(error.without_context(kind)),
        warnings,
    }
}
