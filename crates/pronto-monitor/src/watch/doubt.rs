//! The reasons for which a watcher may miss changes.

use super::WatchState;
use bstr::BString;
use rustix::io::Errno;
use std::io;

/// A reason for which a watcher may miss changes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Doubt {
    /// The limit on the number of watches is reached.
    Limit,
    /// A directory has two paths (a bind mount), which a watch cannot distinguish.
    TwoPlaces(BString),
    /// A directory cannot be watched or listed.
    Failed(BString, String),
    /// A network file system or a single file is mounted below the top.
    Mount(BString),
}

impl WatchState {
    /// Records that the directory at `path` could not be opened, watched or listed.
    pub(super) fn doubt_path(&mut self, path: BString, error: &io::Error) {
        let doubt = match Errno::from_io_error(error) {
            // The event of the parent directory reports the change.
            Some(Errno::NOENT | Errno::NOTDIR | Errno::LOOP) if !path.is_empty() => return,
            Some(Errno::ACCESS) if !self.can_enter(&path) => return,
            Some(Errno::NOSPC) => Doubt::Limit,
            _ => Doubt::Failed(path, error.to_string()),
        };
        self.doubt(doubt);
    }

    /// Returns whether files in the directory at `path` are accessible by name. Such files are
    /// relevant even if the directory cannot be listed.
    fn can_enter(&self, path: &BString) -> bool {
        let mut within = path.clone();
        within.extend_from_slice(b"/.");
        let found = self.root.metadata(&within);
        let errno = found.err().as_ref().and_then(Errno::from_io_error);
        !matches!(errno, Some(Errno::ACCESS | Errno::NOENT | Errno::NOTDIR))
    }
}
