//! Which path each inode number stands for. Inode numbers are those of the real files, so that
//! they stay the same however often the kernel forgets them. The generation tells a file from the
//! one that had its number before: the kernel would take the new directory for the old one, which
//! is dead once its removal has returned.

use std::collections::HashMap;
use std::fs::Metadata;
use std::io;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::sync::{PoisonError, RwLock, RwLockWriteGuard};

use fuser::{Errno, Generation, INodeNo};

/// The table; any thread may use it.
#[derive(Debug)]
pub(crate) struct Nodes {
    root_inode: u64,
    table: RwLock<Table>,
}

#[derive(Debug)]
struct Table {
    paths: HashMap<u64, PathBuf>,
    /// The number of deleted files for each inode number.
    gone: HashMap<u64, u64>,
}

/// A file or directory at a path.
#[derive(Debug)]
pub(crate) struct Node {
    pub(crate) metadata: Metadata,
    /// The number by which the kernel knows it.
    pub(crate) number: u64,
    pub(crate) generation: Generation,
}

impl Nodes {
    pub(crate) fn new(root: &Path, root_inode: u64) -> Self {
        let paths = HashMap::from([(INodeNo::ROOT.0, root.to_owned())]);
        let gone = HashMap::new();
        Nodes {
            root_inode,
            table: RwLock::new(Table { paths, gone }),
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
        let table = self.table.read().unwrap_or_else(PoisonError::into_inner);
        table.paths.get(&inode.0).cloned().ok_or(Errno::ESTALE)
    }

    /// Returns the node at `path`, and keeps it.
    ///
    /// Both happen at once: a file could go in between, and its inode with the number to another
    /// file, which would then be taken for the one that is gone.
    pub(crate) fn look_at(&self, path: PathBuf) -> io::Result<Node> {
        let mut table = self.change();
        let metadata = path.symlink_metadata()?;
        let number = self.number(metadata.ino());
        if number != INodeNo::ROOT.0 {
            table.paths.insert(number, path);
        }
        let gone = table.gone.get(&number).copied().unwrap_or_default();
        Ok(Node {
            metadata,
            number,
            generation: Generation(gone),
        })
    }

    /// Has `remove` take away what is at `path`: the next of its number is another.
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

    /// Has `rename` move what is at `from` to `to`: with it goes what is below, and what was there
    /// is gone.
    pub(crate) fn rename(
        &self,
        (from, to): (&Path, &Path),
        rename: impl FnOnce() -> Result<(), Errno>,
    ) -> Result<(), Errno> {
        let mut table = self.change();
        let replaced = self.last_name(to);
        rename()?;
        // Exchanged, or another name of the same file, it is still there.
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

    /// The number of what is at `path`, if it is gone when it loses this name.
    fn last_name(&self, path: &Path) -> Option<u64> {
        let metadata = path.symlink_metadata().ok()?;
        (metadata.is_dir() || metadata.nlink() == 1).then(|| self.number(metadata.ino()))
    }

    fn change(&self) -> RwLockWriteGuard<'_, Table> {
        self.table.write().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Table {
    fn count(&mut self, gone: Option<u64>) {
        if let Some(number) = gone {
            *self.gone.entry(number).or_default() += 1;
        }
    }
}
