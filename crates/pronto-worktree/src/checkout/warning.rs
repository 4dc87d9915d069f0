//! Warnings of a checkout.

use std::fmt;

use bstr::BString;

use crate::Error;
use crate::filter;
use crate::sparse::Leftover;

/// A problem that does not prevent a file from being written. [`Display`](fmt::Display) writes Git's
/// message.
#[derive(Debug)]
#[non_exhaustive]
pub enum CheckoutWarning {
    /// A path could not be removed.
    Removal(Error),
    /// A filter or a conversion failed, and the content was written without it.
    Filter(filter::FilterWarning),
    /// Paths that do not match the sparse-checkout patterns.
    Leftover(Leftover),
    /// A file outside of the sparse-checkout patterns is modified and kept.
    NotUpToDate {
        /// The path of the file from the top of the worktree.
        path: BString,
    },
    /// A file or directory exists at a path that the sparse-checkout patterns add to the worktree.
    AlreadyPresent {
        /// The path from the top of the worktree.
        path: BString,
    },
    /// A directory outside of the sparse-checkout patterns has untracked files and is kept.
    UntrackedOutside {
        /// The path of the directory from the top of the worktree.
        directory: BString,
    },
    /// A directory outside of the sparse-checkout patterns cannot be removed.
    DirectoryStays {
        /// The path of the directory from the top of the worktree.
        directory: BString,
    },
    /// No file could share its blocks with another worktree, although `checkout.reflink` is `always`.
    NothingShared {
        /// The reason of the operating system.
        reason: String,
    },
}

impl CheckoutWarning {
    /// Returns whether Git reports the warning as an error.
    pub fn is_error(&self) -> bool {
        match self {
            CheckoutWarning::Filter(warning) => warning.is_error(),
            CheckoutWarning::NotUpToDate { .. } | CheckoutWarning::AlreadyPresent { .. } => true,
            _ => false,
        }
    }
}

impl fmt::Display for CheckoutWarning {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            CheckoutWarning::Removal(error) => error.fmt(f),
            CheckoutWarning::Filter(warning) => warning.fmt(f),
            CheckoutWarning::Leftover(leftover) => leftover.fmt(f),
            CheckoutWarning::NotUpToDate { path } => write!(
                f,
                "Path '{path}' not uptodate; will not remove from working tree."
            ),
            CheckoutWarning::AlreadyPresent { path } => write!(
                f,
                "Path '{path}' already present; will not overwrite with sparse update."
            ),
            CheckoutWarning::UntrackedOutside { directory } => write!(
                f,
                "directory '{directory}/' contains untracked files, but is not in the \
                 sparse-checkout cone"
            ),
            CheckoutWarning::DirectoryStays { directory } => {
                write!(f, "failed to remove directory '{directory}/'")
            }
            CheckoutWarning::NothingShared { reason } => write!(
                f,
                "checkout.reflink=always: could not share contents of files: {reason}"
            ),
        }
    }
}
