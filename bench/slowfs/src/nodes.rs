//! Maps inode numbers to paths. Inode numbers are those of the real files, so they stay the same
//! when the kernel forgets them. The generation distinguishes a file from an earlier file with the
//! same number: without it, the kernel would mistake a new directory for a removed one.

use std::collections::HashMap;
use std::fs::Metadata;
use std::io;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::sync::{PoisonError, RwLock, RwLockWriteGuard};

use fuser::{Errno, Generation, INodeNo};

/// The table of inodes. All threads may use it.
#[derive(Debug)]
pub(crate) struct Nodes {
    root_inode: u64,
    table: RwLock<NodeTable>,
}

#[derive(Debug)]
struct NodeTable {
    paths: HashMap<u64, PathBuf>,
    /// The number of removed files for each inode number.
    gone: HashMap<u64, u64>,
}

/// A file at a path.
#[derive(Debug)]
pub(crate) struct FileNode {
    pub(crate) metadata: Metadata,
    /// The inode number that the kernel uses.
    pub(crate) number: u64,
    pub(crate) generation: Generation,
}

impl Nodes {
    pub(crate) fn new(root: &Path, root_inode: u64) -> Self {
        let paths = HashMap::from([(INodeNo::ROOT.0, root.to_owned())]);
        let gone = HashMap::new();
        Nodes {
            root_inode,
            table: RwLock::new(NodeTable { paths, gone }),
        }
    }

    /// Returns the inode number towards the kernel for a real inode. The root is always 1.
    pub(crate) fn number(&self, inode: u64) -> u64 {
        if inode == self.root_inode {
            INodeNo::ROOT.0
        } else {
            inode
        }
    }

    pub(crate) fn path(&self, inode: INodeNo) -> Result<PathBuf, Errno> {
        let table = self.table.read().unwrap_or_else(PoisonError::into_inner);
        table.paths.get(&inode.0).cloned().ok_or(Errno::ESTALE)
    }

    /// Looks up `path` and remembers it.
    ///
    /// Lookup and update happen under one lock. Otherwise a file could be removed in between, and
    /// its inode number could be reused by another file, which would be taken for the removed one.
    pub(crate) fn look_at(&self, path: PathBuf) -> io::Result<FileNode> {
        let mut table = self.change();
        let metadata = path.symlink_metadata()?;
        let number = self.number(metadata.ino());
        if number != INodeNo::ROOT.0 {
            table.paths.insert(number, path);
        }
        let gone = table.gone.get(&number).copied().unwrap_or_default();
        Ok(FileNode {
            metadata,
            number,
            generation: Generation(gone),
        })
    }

    /// Removes `path` with `remove`, and increments the generation of its inode number.
    pub(crate) fn remove(
        &self,
        path: &Path,
        remove: impl FnOnce() -> Result<(), Errno>,
    ) -> Result<(), Errno> {
        let mut table = self.change();
        let last = self.last_name(path);
        remove()?;
        table.count(last);
        Ok(())
    }

    /// Moves `from` to `to` with `rename`, and updates the paths below it. A file at `to` is
    /// removed.
    pub(crate) fn rename(
        &self,
        from: &Path,
        to: &Path,
        rename: impl FnOnce() -> Result<(), Errno>,
    ) -> Result<(), Errno> {
        let mut table = self.change();
        let replaced = self.last_name(to);
        rename()?;
        // After an exchange, or if it has another name, the file still exists.
        let is_there = |number| {
            let at = |path: &Path| path.symlink_metadata().ok().map(|it| it.ino());
            [at(from), at(to)].contains(&Some(number))
        };
        table.count(replaced.filter(|number| !is_there(*number)));
        for path in table.paths.values_mut() {
            if let Ok(rest) = path.strip_prefix(from) {
                *path = if rest.as_os_str().is_empty() {
                    to.to_owned()
                } else {
                    to.join(rest)
                };
            }
        }
        Ok(())
    }

    /// Returns the inode number of `path` if this is its last name.
    fn last_name(&self, path: &Path) -> Option<u64> {
        let metadata = path.symlink_metadata().ok()?;
        (metadata.is_dir() || metadata.nlink() == 1).then(|| self.number(metadata.ino()))
    }

    fn change(&self) -> RwLockWriteGuard<'_, NodeTable> {
        self.table.write().unwrap_or_else(PoisonError::into_inner)
    }
}

impl NodeTable {
    fn count(&mut self, gone: Option<u64>) {
        if let Some(number) = gone {
            *self.gone.entry(number).or_default() += 1;
        }
    }
}
