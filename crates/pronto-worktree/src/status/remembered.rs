//! The untracked cache of a status walk, and the state of its use.

use bstr::BString;
use pronto_hash::ObjectId;
use pronto_index::{Stat, UntrackedCache};

/// An untracked cache for use in a status walk (`core.untrackedCache`).
#[derive(Debug)]
pub struct Remembered<'a> {
    /// The cache, which is valid for this worktree and these exclude files.
    pub cache: UntrackedCache<'a>,
    /// Whether new results are recorded in [`Outcome::news`](super::Outcome::news). This requires that
    /// the walk lists the same untracked files as the cache.
    pub records: bool,
    pub(super) vouched: Option<Vouched>,
}

impl<'a> Remembered<'a> {
    /// Uses `cache`. `records` is whether new results are recorded.
    pub fn new(cache: UntrackedCache<'a>, records: bool) -> Remembered<'a> {
        Remembered {
            cache,
            records,
            vouched: None,
        }
    }
}

/// The new result for a directory that was not in the cache or has changed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DirectoryNews {
    /// The path of the directory; empty for the top.
    pub path: BString,
    /// Whether the directory does not exist any more. The other fields have no meaning then.
    pub(super) is_gone: bool,
    /// The stat data of the directory before it was read.
    pub(super) stat: Stat,
    pub(super) is_valid: bool,
    pub(super) check_only: bool,
    pub(super) untracked: Vec<BString>,
    /// The subdirectories that were examined.
    pub(super) below: Vec<BString>,
    pub(super) exclude_id: ObjectId,
}

/// The position of the walk in the cache.
#[derive(Clone, Copy, Debug)]
pub(super) struct CachePosition {
    /// The position in the cache, if the cache has the directory.
    pub(super) node: Option<usize>,
    /// Whether the ignore files of the parent directories are unchanged.
    pub(super) is_trusted: bool,
}

/// The comparison of a directory with its entry in the cache.
pub(super) struct CacheMatch {
    /// The position in the cache of a directory whose data are valid.
    pub(super) valid: Option<usize>,
    /// The position from which subdirectories are looked up.
    pub(super) place: CachePosition,
    pub(super) stat: Stat,
    pub(super) exclude_id: ObjectId,
}

/// The number of directories of a cache, up to each position, that must be examined.
#[derive(Debug)]
pub(super) struct Vouched {
    pub(super) invalid: Vec<u32>,
    /// The directories that must be examined or that have untracked subdirectories.
    pub(super) with_directories: Vec<u32>,
}
