//! The untracked cache and what the walk knows of it.

use bstr::BString;
use pronto_hash::ObjectId;
use pronto_index::{Stat, UntrackedCache};

/// An untracked cache to be used.
#[derive(Debug)]
pub struct Remembered<'a> {
    /// The cache, which holds for this place and these exclude files.
    pub cache: UntrackedCache<'a>,
    /// Whether new results are recorded in [`Outcome::news`](super::Outcome::news). This requires
    /// that the walk looks for the untracked files that the cache is for.
    pub records: bool,
    pub(super) vouched: Option<Vouched>,
}

impl<'a> Remembered<'a> {
    /// Uses `cache`; `records` says whether new results are recorded.
    pub fn new(cache: UntrackedCache<'a>, records: bool) -> Remembered<'a> {
        Remembered {
            cache,
            records,
            vouched: None,
        }
    }
}

/// The result for a directory that was not in the cache or has changed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct News {
    /// Its path; empty for the top.
    pub path: BString,
    /// Whether the directory does not exist any more; then nothing else counts.
    pub(super) is_gone: bool,
    /// Its stat data before it was read.
    pub(super) stat: Stat,
    pub(super) is_valid: bool,
    pub(super) check_only: bool,
    pub(super) untracked: Vec<BString>,
    /// The directories below that were examined.
    pub(super) below: Vec<BString>,
    pub(super) exclude_id: ObjectId,
}

/// The position of the walk in the cache.
#[derive(Clone, Copy, Debug)]
pub(super) struct Place {
    /// The position in the cache, if the directory is known there.
    pub(super) node: Option<usize>,
    /// The ignore files above are what they were.
    pub(super) is_trusted: bool,
}

/// The comparison of a directory with its entry in the cache.
pub(super) struct Seen {
    /// The position in the cache of what still holds.
    pub(super) valid: Option<usize>,
    /// For those below.
    pub(super) place: Place,
    pub(super) stat: Stat,
    pub(super) exclude_id: ObjectId,
}

/// The number of directories of a cache, up to each position, that must be examined.
#[derive(Debug)]
pub(super) struct Vouched {
    pub(super) invalid: Vec<u32>,
    /// Or have untracked directories in them.
    pub(super) with_directories: Vec<u32>,
}
