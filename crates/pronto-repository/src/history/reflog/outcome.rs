//! The options and results of rewriting reflogs.

use bstr::BString;

use crate::Error;

/// Options for rewriting a reflog.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[expect(
    clippy::struct_excessive_bools,
    reason = "each is an option of the command line"
)]
#[non_exhaustive]
pub struct RewriteOptions {
    /// Set the old id of each kept entry to the new id of the entry that then precedes it
    /// (`--rewrite`).
    pub rewrite: bool,
    /// Set the ref to the new id of the last kept entry (`--updateref`).
    pub update_ref: bool,
    /// Change no file (`--dry-run`).
    pub dry_run: bool,
    /// Report the result for each entry (`--verbose`).
    pub verbose: bool,
}

/// The result for one reflog entry.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct ReflogEntryResult {
    /// Whether the entry is kept.
    pub is_kept: bool,
    /// The message of the entry.
    pub message: BString,
}

/// The result for one reflog.
#[derive(Debug)]
#[non_exhaustive]
pub struct ExpiredLog {
    /// The full name of the ref.
    pub name: BString,
    /// The number of kept entries.
    pub kept: usize,
    /// The number of removed entries.
    pub pruned: usize,
    /// The results for all entries, if [`RewriteOptions::verbose`] is set.
    pub verdicts: Vec<ReflogEntryResult>,
    /// The reason for which the reflog was not changed, with Git's message.
    pub failure: Option<Error>,
}
