//! Reuse of content that another worktree of the repository has (`checkout.reflink`). On file systems
//! with copy on write, a new file shares the blocks of the existing file instead of being written.
//!
//! The existing file is not trusted. The new file gets a snapshot of the existing file, and is kept
//! only if its digest is the id of the blob. The digest is computed over the existing file, whose
//! content is mostly cached in memory. If its metadata show that the file was changed in the meantime,
//! or could have been changed within one clock tick, the digest of the new file is computed instead.
//! Therefore it does not matter which process changes the existing file, or whether the index of its
//! worktree is correct. The index only avoids attempts that would fail.

use std::fmt;
use std::fs::File;
use std::io;
use std::os::fd::AsFd;
use std::path::PathBuf;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{SystemTime, UNIX_EPOCH};

use pronto_hash::{Digester, Kind, ObjectId};
use pronto_index::{Index, Stat, StatRules, mode};
use pronto_io::dir::{Directory, FileTime, Metadata, NewFile, file_metadata, read_at};
use pronto_io::file_system::FileSystem;
use pronto_io::interrupt::Interrupt;

use super::{CheckoutItem, CheckoutWarning};
use crate::recorded::recorded;
use crate::{Error, ErrorKind};

/// The number of files below which the indexes of other worktrees are not read.
const FEWEST_FILES: usize = 16;
/// The largest number of worktrees that are used.
const MOST_SIBLINGS: usize = 4;
/// The size of the pieces in which a file is read for its digest, in bytes.
const PIECE_LEN: usize = 256 * 1024;
/// The age in seconds below which a file could change again without a difference in its metadata.
const SETTLED_AFTER_SECONDS: i64 = 2;

/// Another worktree of the repository.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SourceWorktree {
    /// The path of its top.
    pub top: PathBuf,
    /// The path of its index file.
    pub index: PathBuf,
}

/// The other worktrees, opened on first use.
pub struct ReflinkSources {
    kind: Kind,
    always: bool,
    find: Box<dyn Fn() -> Vec<SourceWorktree> + Send + Sync>,
    siblings: OnceLock<Vec<Sibling>>,
    /// The first reason for which no blocks could be shared.
    refusal: OnceLock<String>,
}

/// An open worktree.
struct Sibling {
    top: Directory,
    index: Index,
    /// Whether its file system cannot share blocks with that of this worktree.
    is_unfit: AtomicBool,
}

/// An open file of another worktree that may have the required content.
pub(super) struct ReflinkSource<'a> {
    sources: &'a ReflinkSources,
    sibling: &'a Sibling,
    file: File,
    /// The metadata of the file before its content was shared.
    metadata: Metadata,
}

impl ReflinkSources {
    /// Creates the list of worktrees that `find` returns, the most promising first. With `always`
    /// (`checkout.reflink=always`), any number of files is shared on any file system that permits it,
    /// and a warning is reported if none does.
    pub fn new(
        kind: Kind,
        always: bool,
        find: impl Fn() -> Vec<SourceWorktree> + Send + Sync + 'static,
    ) -> Self {
        ReflinkSources {
            kind,
            always,
            find: Box::new(find),
            siblings: OnceLock::new(),
            refusal: OnceLock::new(),
        }
    }

    /// Prepares for `count` files below `top`. Costs one system call, and reading some indexes if files
    /// can be shared.
    pub(super) fn prepare(&self, top: &Directory, count: usize) {
        let is_worth_it = self.always
            || (count >= FEWEST_FILES && top.file_system().is_ok_and(FileSystem::shares_blocks));
        if !is_worth_it {
            return;
        }
        self.siblings.get_or_init(|| {
            let places = (self.find)();
            let opened = places.iter().filter_map(|place| {
                let top = Directory::open(&place.top).ok()?;
                let index = Index::open(&place.index, self.kind).ok()?;
                let is_unfit = AtomicBool::new(index.is_empty());
                Some(Sibling {
                    top,
                    index,
                    is_unfit,
                })
            });
            opened.take(MOST_SIBLINGS).collect()
        });
    }

    /// Returns the files that may have the content of the blob of `item`.
    pub(super) fn of<'a>(
        &'a self,
        item: &'a CheckoutItem,
    ) -> impl Iterator<Item = ReflinkSource<'a>> {
        let siblings = self.siblings.get().map_or(&[][..], Vec::as_slice);
        siblings.iter().filter_map(|sibling| {
            if sibling.is_unfit.load(Ordering::Relaxed) {
                return None;
            }
            let stat = recorded_stat(sibling, item)?;
            let file = sibling.top.open_file_beneath(&item.path).ok()?;
            let metadata = file_metadata(&file).ok()?;
            let is_same = metadata.is_file()
                && metadata.size_bytes > 0
                && stat.matches(&recorded(&metadata), StatRules::default());
            is_same.then_some(ReflinkSource {
                sources: self,
                sibling,
                file,
                metadata,
            })
        })
    }

    /// Returns the warning that no blocks were shared, if sharing was required.
    pub(super) fn warning(&self) -> Option<CheckoutWarning> {
        let reason = self.refusal.get().filter(|_| self.always)?;
        let reason = reason.clone();
        Some(CheckoutWarning::NothingShared { reason })
    }
}

/// Returns the stat data that the index of `sibling` records for the file, if the entry has the same
/// blob.
fn recorded_stat(sibling: &Sibling, item: &CheckoutItem) -> Option<Stat> {
    let at = sibling.index.find(item.path.as_ref(), 0).ok()?;
    let entry = sibling.index.entry(at);
    let is_file = entry.mode & mode::TYPE == mode::FILE & mode::TYPE;
    (*entry.id == *item.id && is_file && entry.stat.size_bytes > 0).then_some(entry.stat)
}

impl fmt::Debug for ReflinkSources {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ReflinkSources")
            .field("always", &self.always)
            .finish_non_exhaustive()
    }
}

impl ReflinkSource<'_> {
    /// Fills `new`, which is empty, and verifies that it has the content of the blob of `item`. `piece`
    /// is a buffer for reading.
    ///
    /// # Errors
    /// Fails with [`ErrorKind::Io`] if the content differs or cannot be shared, or with
    /// [`ErrorKind::Interrupted`]. The caller must remove the new file then.
    pub(super) fn fill(
        &self,
        new: &NewFile,
        item: &CheckoutItem,
        piece: &mut Vec<u8>,
        interrupt: &Interrupt,
    ) -> Result<(), Error> {
        new.share(&self.file)
            .map_err(|error| self.refused(&error))?;
        let failed = |error: io::Error| Error::new(ErrorKind::Io, error.to_string());
        if self.is_settled() {
            let found = self.digest(&self.file, piece, interrupt)?;
            // The metadata are unchanged since before the clone, so the digested content is the cloned
            // content.
            if file_metadata(&self.file).map_err(failed)? == self.metadata {
                return self.expect(found, item);
            }
        }
        let found = self.digest(new, piece, interrupt)?;
        self.expect(found, item)
    }

    /// Returns whether any later change of the file shows in its metadata.
    fn is_settled(&self) -> bool {
        let now = SystemTime::now().duration_since(UNIX_EPOCH);
        let now = now.map_or(0, |now| i64::try_from(now.as_secs()).unwrap_or(0));
        let FileTime { seconds, .. } = self.metadata.changed;
        seconds.saturating_add(SETTLED_AFTER_SECONDS) <= now
    }

    fn expect(&self, found: Option<ObjectId>, item: &CheckoutItem) -> Result<(), Error> {
        match found {
            Some(id) if id == item.id => Ok(()),
            _ => Err(Error::new(ErrorKind::Io, "the other file is not the same")),
        }
    }

    /// Returns the id of the blob with the content of `file`; `None` if its size differs from that of
    /// the existing file.
    fn digest(
        &self,
        file: &impl AsFd,
        piece: &mut Vec<u8>,
        interrupt: &Interrupt,
    ) -> Result<Option<ObjectId>, Error> {
        let failed = |error: io::Error| Error::new(ErrorKind::Io, error.to_string());
        let size = self.metadata.size_bytes;
        let mut digester = Digester::new(self.sources.kind);
        digester.update(format!("blob {size}\0").as_bytes());
        let len = usize::try_from(size)
            .unwrap_or(PIECE_LEN)
            .clamp(1, PIECE_LEN);
        if piece.len() < len {
            piece.resize(len, 0);
        }
        let mut offset = 0;
        // A growing file is read only up to its original size.
        while offset < size {
            let read = read_at(file, &mut piece[..len], offset).map_err(failed)?;
            if read == 0 {
                break;
            }
            digester.update(&piece[..read]);
            offset += read as u64;
            if interrupt.is_triggered() {
                return Err(Error::new(ErrorKind::Interrupted, "interrupted"));
            }
        }
        Ok(digester.finish().ok().filter(|_| offset == size))
    }

    /// Records an error that would also occur with the other files.
    fn refused(&self, error: &io::Error) -> Error {
        use io::ErrorKind as Io;
        let reason = pronto_io::error::reason(error);
        // The file system does not support sharing, or is a different one. Other errors may concern
        // only this file.
        if !matches!(
            error.kind(),
            Io::StorageFull | Io::QuotaExceeded | Io::InvalidInput
        ) {
            self.sibling.is_unfit.store(true, Ordering::Relaxed);
        }
        self.sources.refusal.get_or_init(|| reason.clone());
        Error::new(ErrorKind::Io, reason)
    }
}
