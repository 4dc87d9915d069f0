//! The options and results of rewriting reflogs.

use bstr::BString;

use crate::Error;

/// Options for removing entries from a reflog.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[expect(
    clippy::struct_excessive_bools,
    reason = "each is an option of the command line"
)]
#[non_exhaustive]
pub struct Rewrite {
    /// The old id of a line becomes the new one of the line that precedes it then.
    pub rewrite: bool,
    /// The reference gets the new id of the last line that is left.
    pub update_ref: bool,
    /// Nothing is changed.
    pub dry_run: bool,
    /// Whether the result for each entry is reported.
    pub verbose: bool,
}

/// The result for an entry.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Verdict {
    /// Whether the entry is kept.
    pub is_kept: bool,
    /// Its message.
    pub message: BString,
}

/// The result for one reflog.
#[derive(Debug)]
#[non_exhaustive]
pub struct ExpiredLog {
    /// The full name of the reference.
    pub name: BString,
    /// The number of kept entries.
    pub kept: usize,
    /// The number of removed entries.
    pub pruned: usize,
    /// Each line, if that was asked for.
    pub verdicts: Vec<Verdict>,
    /// Why the log was left as it was, in Git's words.
    pub failure: Option<Error>,
}
