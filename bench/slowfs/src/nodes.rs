//! Which path each inode number stands for. Inode numbers are those of the real files, so that
//! they stay the same however often the kernel forgets them.

use std::collections::HashMap;
use std::fs::Metadata;
use std::io;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::sync::{PoisonError, RwLock};

use fuser::{Errno, INodeNo};

/// The table; any thread may use it.
#[derive(Debug)]
pub(crate) struct Nodes {
    root_inode: u64,
    paths: RwLock<HashMap<u64, PathBuf>>,
}

impl Nodes {
    pub(crate) fn new(root: &Path, root_inode: u64) -> Self {
        let paths = HashMap::from([(INodeNo::ROOT.0, root.to_owned())]);
        Nodes {
            root_inode,
            paths: RwLock::new(paths),
        }
    }

    /// The number by which the kernel knows a real inode: the root is always 1.
    pub(crate) fn number(&self, inode: u64) -> u64 {
        if inode == self.root_inode {
            INodeNo::ROOT.0
        } else {
            inode
        }
    }

    pub(crate) fn path(&self, inode: INodeNo) -> Result<PathBuf, Errno> {
        let paths = self.paths.read().unwrap_or_else(PoisonError::into_inner);
        paths.get(&inode.0).cloned().ok_or(Errno::ESTALE)
    }

    /// What is at `path`, which is remembered, and its number.
    ///
    /// Both happen at once: a file could go in between, and its inode with the number to another
    /// file, which would then be taken for the one that is gone.
    pub(crate) fn look_at(&self, path: PathBuf) -> io::Result<(Metadata, u64)> {
        let mut paths = self.paths.write().unwrap_or_else(PoisonError::into_inner);
        let metadata = path.symlink_metadata()?;
        let number = self.number(metadata.ino());
        if number != INodeNo::ROOT.0 {
            paths.insert(number, path);
        }
        Ok((metadata, number))
    }

    /// What was at or below `from` is at or below `to` now.
    pub(crate) fn renamed(&self, from: &Path, to: &Path) {
        let mut paths = self.paths.write().unwrap_or_else(PoisonError::into_inner);
        for path in paths.values_mut() {
            if let Ok(rest) = path.strip_prefix(from) {
                *path = if rest.as_os_str().is_empty() {
                    to.to_owned()
                } else {
                    to.join(rest)
                };
            }
        }
    }
}
