//! The identity of an index file.

use crate::stat::IndexTime;
use pronto_io::view::FileView;

/// The identity of an index file, which distinguishes files at the same path.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct IndexFileIdentity {
    device: u64,
    inode: u64,
    size_bytes: u64,
    seconds: i64,
    nanoseconds: i64,
}

impl IndexFileIdentity {
    #[cfg(unix)]
    pub(crate) fn of(metadata: &std::fs::Metadata) -> IndexFileIdentity {
        use std::os::unix::fs::MetadataExt;
        IndexFileIdentity {
            device: metadata.dev(),
            inode: metadata.ino(),
            size_bytes: metadata.size(),
            seconds: metadata.mtime(),
            nanoseconds: metadata.mtime_nsec(),
        }
    }

    pub(crate) fn of_view(view: &FileView) -> IndexFileIdentity {
        let identity = view.identity();
        IndexFileIdentity {
            device: identity.device,
            inode: identity.inode,
            size_bytes: view.len(),
            seconds: identity.modified.0,
            nanoseconds: identity.modified.1,
        }
    }

    pub(crate) fn numbers(&self) -> [u64; 5] {
        [
            self.device,
            self.inode,
            self.size_bytes,
            self.seconds as u64,
            self.nanoseconds as u64,
        ]
    }

    /// Returns the modification time of the file.
    pub fn time(&self) -> IndexTime {
        IndexTime {
            seconds: self.seconds as u32,
            nanoseconds: self.nanoseconds as u32,
        }
    }
}
