//! A piece of the walk.

use super::remembered::Place;
use bstr::BString;
use pronto_io::dir::Directory;
use std::ops::Range;
use std::sync::Arc;

/// A directory to look at.
#[derive(Debug)]
pub(super) enum Task {
    /// One with tracked files: their positions, and the length of its path with the slash.
    Tracked {
        /// The entries below.
        entries: Range<usize>,
        /// The length of the directory's part of their paths.
        prefix_len: usize,
        /// Whether the directory is ignored. Untracked files in it count only if ignored files are
        /// listed.
        ignored: bool,
        /// The position in the untracked cache, if there is one.
        place: Option<Place>,
    },
    /// More files of a directory, among them entries further below that do not count.
    Files {
        /// The directory, open.
        directory: Arc<Directory>,
        /// The entries.
        entries: Range<usize>,
        /// The length of the directory's part of their paths.
        prefix_len: usize,
    },
    /// One without tracked files, whose files are named one by one.
    Untracked {
        /// Its path with a slash at its end.
        path: BString,
        /// Its place in a cache of all files, if there is one.
        place: Option<Place>,
    },
}
