//! The units of work of a status walk.

use super::remembered::CachePosition;
use bstr::BString;
use pronto_io::dir::Directory;
use std::ops::Range;
use std::sync::Arc;

/// A directory to examine.
#[derive(Debug)]
pub(super) enum DirectoryTask {
    /// A directory with tracked files.
    Tracked {
        /// The index entries in the directory and below.
        entries: Range<usize>,
        /// The length of the path of the directory with a slash.
        prefix_len: usize,
        /// Whether the directory is ignored. Its untracked files are then listed only if ignored files
        /// are listed.
        ignored: bool,
        /// The position in the untracked cache, if a cache is in use.
        place: Option<CachePosition>,
    },
    /// Some files of a directory. Entries in subdirectories among them are skipped.
    Files {
        /// The open directory.
        directory: Arc<Directory>,
        /// The index entries of the files.
        entries: Range<usize>,
        /// The length of the path of the directory with a slash.
        prefix_len: usize,
    },
    /// A directory without tracked files, whose files are listed one by one.
    Untracked {
        /// The path of the directory with a slash at its end.
        path: BString,
        /// The position in a cache of all files, if a cache is in use.
        place: Option<CachePosition>,
    },
}
