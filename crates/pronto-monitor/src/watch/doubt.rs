//! Reasons why a watcher may miss changes.

use super::Common;
use bstr::BString;
use rustix::io::Errno;
use std::io;

/// A reason why changes may go unseen.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Doubt {
    /// The limit of watches is reached.
    Limit,
    /// A directory is at two places, which a watch cannot distinguish.
    TwoPlaces(BString),
    /// A directory cannot be watched, or its names cannot be read.
    Failed(BString, String),
    /// A network file system or a single file is mounted below the top.
    Mount(BString),
}

impl Common {
    /// Records that the directory at `path` could not be opened, watched or listed.
    pub(super) fn doubt_path(&mut self, path: BString, error: &io::Error) {
        let doubt = match Errno::from_io_error(error) {
            // The directory above reports what happens to it.
            Some(Errno::NOENT | Errno::NOTDIR | Errno::LOOP) if !path.is_empty() => return,
            Some(Errno::ACCESS) if !self.can_enter(&path) => return,
            Some(Errno::NOSPC) => Doubt::Limit,
            _ => Doubt::Failed(path, error.to_string()),
        };
        self.doubt(doubt);
    }

    /// Returns whether files in the directory at `path` can be reached. They count then, even if
    /// their names cannot be read.
    fn can_enter(&self, path: &BString) -> bool {
        let mut within = path.clone();
        within.extend_from_slice(b"/.");
        let found = self.root.metadata(&within);
        let errno = found.err().as_ref().and_then(Errno::from_io_error);
        !matches!(errno, Some(Errno::ACCESS | Errno::NOENT | Errno::NOTDIR))
    }
}
