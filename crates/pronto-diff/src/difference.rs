//! A file that differs between two sides: trees, the index or the worktree.

use bstr::BString;
use pronto_hash::ObjectId;

/// The file on one side of a difference.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Side {
    /// The mode, as in an index entry: `0o100644`, `0o100755`, `0o120000`, `0o160000`, or `0o40000` for a tree.
    pub mode: u32,
    /// The object; null for a file in the worktree that has none yet.
    pub id: ObjectId,
}

/// A path that differs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Difference {
    /// The path; of a rename, the new one.
    pub path: BString,
    /// The file before; `None` for an addition.
    pub old: Option<Side>,
    /// The file after; `None` for a deletion.
    pub new: Option<Side>,
    /// The origin of a renamed or copied file.
    pub origin: Option<Origin>,
    /// The path is in conflict: both sides may be empty.
    pub unmerged: bool,
}

/// The file that a renamed or copied file was made from.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Origin {
    /// The path it had.
    pub path: BString,
    /// The similarity, out of [`MOST_SIMILAR`], relative to the larger file.
    pub score: u32,
    /// The file is still at its old path, or has several new ones.
    pub copy: bool,
}

/// The score of two files that are the same.
pub const MOST_SIMILAR: u32 = 60_000;

impl Difference {
    /// Returns the status letter (`--name-status`): `A`, `D`, `M`, `T`, `R`, `C` or `U`.
    pub fn letter(&self) -> u8 {
        match (&self.origin, &self.old, &self.new) {
            _ if self.unmerged => b'U',
            (Some(origin), ..) if origin.copy => b'C',
            (Some(_), ..) => b'R',
            (None, None, _) => b'A',
            (None, _, None) => b'D',
            (None, Some(old), Some(new)) if (old.mode ^ new.mode) & 0o170_000 != 0 => b'T',
            _ => b'M',
        }
    }
}
