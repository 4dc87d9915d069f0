//! Why a watcher may miss something.

use super::Common;
use bstr::BString;
use rustix::io::Errno;
use std::io;

/// Why changes may go unseen.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Doubt {
    /// The system gives no more watches.
    Limit,
    /// A directory is at two places, which a watch does not tell apart.
    TwoPlaces(BString),
    /// A directory cannot be watched, or its names not be read.
    Failed(BString, String),
    /// Something of another machine is mounted below the top, or a single file.
    Mount(BString),
}

impl Common {
    /// The directory at `path` could not be opened, watched or listed.
    pub(super) fn doubt_path(&mut self, path: BString, error: &io::Error) {
        let doubt = match Errno::from_io_error(error) {
            // The directory above tells what becomes of it.
            Some(Errno::NOENT | Errno::NOTDIR | Errno::LOOP) if !path.is_empty() => return,
            Some(Errno::ACCESS) if !self.can_enter(&path) => return,
            Some(Errno::NOSPC) => Doubt::Limit,
            _ => Doubt::Failed(path, error.to_string()),
        };
        self.doubt(doubt);
    }

    /// Whether files in the directory at `path` can be reached: then they count, even if their
    /// names cannot be read.
    fn can_enter(&self, path: &BString) -> bool {
        let mut within = path.clone();
        within.extend_from_slice(b"/.");
        let found = self.root.metadata(&within);
        let errno = found.err().as_ref().and_then(Errno::from_io_error);
        !matches!(errno, Some(Errno::ACCESS | Errno::NOENT | Errno::NOTDIR))
    }
}
