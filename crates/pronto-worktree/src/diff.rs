//! Differences between a tree and the index or another tree, with renames.

mod cached;
mod renames;
mod similarity;
mod tree;
mod trees;

pub use crate::tree_list::{ReadTree, Side};
pub use cached::cached_trees;
pub use renames::{Content, Renames, detect};
pub use similarity::Chunks;
pub use tree::{Announced, Comparison, tree_and_index};
pub use trees::{Depth, trees};

use bstr::BString;

/// A path that differs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Difference {
    /// The path; of a rename, the new one.
    pub path: BString,
    /// Before; `None` for an addition.
    pub old: Option<Side>,
    /// After; `None` for a deletion.
    pub new: Option<Side>,
    /// The origin of a renamed or copied file.
    pub origin: Option<Origin>,
    /// The path is in conflict: both sides may be empty.
    pub unmerged: bool,
}

/// The origin of a file.
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
    /// Git's letter for it: `A`, `D`, `M`, `T`, `R`, `C` or `U`.
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
