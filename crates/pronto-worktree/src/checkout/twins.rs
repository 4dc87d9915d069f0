//! Contents that another work tree of the repository has already. On file systems that can, a new
//! file shares the blocks of that file, copy on write, instead of being written.
//!
//! Nothing is believed of the other file. The new one gets what that one holds at one moment, is
//! then read back and digested, and stays only if that gives the id of the blob. So it does not
//! matter who changes the other file meanwhile, how its content came about, or whether its index
//! tells the truth: those facts only save attempts that would fail.

use std::fmt;
use std::fs::File;
use std::io;
use std::path::PathBuf;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicBool, Ordering};

use pronto_hash::{Digester, Kind};
use pronto_index::{Index, Rules, Stat, mode};
use pronto_io::dir::{Directory, NewFile, file_metadata};
use pronto_io::file_system::FileSystem;
use pronto_io::interrupt::Interrupt;

use super::Item;
use crate::recorded::recorded;
use crate::{Error, ErrorKind};

/// Smaller files are written: to share takes longer, and saves no more than a few blocks.
const SMALLEST_SHARED_BYTES: u64 = 16 * 1024;
/// For fewer files the indexes of other work trees are not read.
const FEWEST_FILES: usize = 16;
/// No more work trees than these are asked.
const MOST_SIBLINGS: usize = 4;
/// A file is read back in pieces of this many bytes.
const PIECE_LEN: usize = 256 * 1024;

/// Another work tree of the repository.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Place {
    /// Its top.
    pub top: PathBuf,
    /// The file that holds its index.
    pub index: PathBuf,
}

/// The other work trees, looked for when they are needed.
pub struct Twins {
    kind: Kind,
    always: bool,
    find: Box<dyn Fn() -> Vec<Place> + Send + Sync>,
    siblings: OnceLock<Vec<Sibling>>,
    /// Why nothing could be shared, once.
    refusal: OnceLock<String>,
}

/// One of them.
struct Sibling {
    top: Directory,
    index: Index,
    /// Its file system shares nothing with ours.
    is_unfit: AtomicBool,
}

/// An open file of another work tree that may hold what is wanted.
pub(super) struct Twin<'a> {
    twins: &'a Twins,
    sibling: &'a Sibling,
    file: File,
}

impl Twins {
    /// Those that `find` names, the most promising first. With `always`, files of any size are
    /// shared, on any file system that lets them, and it is said if none does.
    pub fn new(
        kind: Kind,
        always: bool,
        find: impl Fn() -> Vec<Place> + Send + Sync + 'static,
    ) -> Self {
        Twins {
            kind,
            always,
            find: Box::new(find),
            siblings: OnceLock::new(),
            refusal: OnceLock::new(),
        }
    }

    /// Gets ready for so many files below `top`. Costs one system call, and where files can be
    /// shared the reading of some indexes.
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

    /// Files that may hold the blob of `item`.
    pub(super) fn of<'a>(&'a self, item: &'a Item) -> impl Iterator<Item = Twin<'a>> {
        let siblings = self.siblings.get().map_or(&[][..], Vec::as_slice);
        siblings.iter().filter_map(|sibling| {
            if sibling.is_unfit.load(Ordering::Relaxed) {
                return None;
            }
            let facts = self.facts(sibling, item)?;
            let file = sibling.top.open_file_beneath(&item.path).ok()?;
            let metadata = file_metadata(&file).ok()?;
            let is_same = metadata.is_file()
                && (self.always || metadata.size_bytes >= SMALLEST_SHARED_BYTES)
                && facts.matches(&recorded(&metadata), Rules::default());
            is_same.then_some(Twin {
                twins: self,
                sibling,
                file,
            })
        })
    }

    /// What the index of `sibling` says of the file, if that has the same blob.
    fn facts(&self, sibling: &Sibling, item: &Item) -> Option<Stat> {
        let at = sibling.index.find(item.path.as_ref(), 0).ok()?;
        let entry = sibling.index.entry(at);
        let is_file = entry.mode & mode::TYPE == mode::FILE & mode::TYPE;
        let size = u64::from(entry.stat.size_bytes);
        let is_worth_it = size > 0 && (self.always || size >= SMALLEST_SHARED_BYTES);
        (*entry.id == *item.id && is_file && is_worth_it).then_some(entry.stat)
    }

    /// What there is to say in the end.
    pub(super) fn warning(&self) -> Option<String> {
        let reason = self.refusal.get().filter(|_| self.always)?;
        Some(format!(
            "warning: checkout.reflink=always: could not share contents of files: {reason}"
        ))
    }
}

impl fmt::Debug for Twins {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Twins")
            .field("always", &self.always)
            .finish_non_exhaustive()
    }
}

impl Twin<'_> {
    /// Fills `new`, which is empty, and makes sure that it holds the blob of `item`. `piece` is
    /// space to read into.
    ///
    /// # Errors
    /// It does not; then the file is to go.
    pub(super) fn fill(
        &self,
        new: &NewFile,
        item: &Item,
        (piece, interrupt): (&mut Vec<u8>, &Interrupt),
    ) -> Result<(), Error> {
        new.share(&self.file)
            .map_err(|error| self.refused(&error))?;
        let failed = |error: io::Error| Error::new(ErrorKind::Io, error.to_string());
        let size = file_metadata(new).map_err(failed)?.size_bytes;
        let mut digester = Digester::new(self.twins.kind);
        digester.update(format!("blob {size}\0").as_bytes());
        let len = usize::try_from(size)
            .unwrap_or(PIECE_LEN)
            .clamp(1, PIECE_LEN);
        if piece.len() < len {
            piece.resize(len, 0);
        }
        let mut offset = 0;
        loop {
            let read = new.read_at(&mut piece[..len], offset).map_err(failed)?;
            if read == 0 {
                break;
            }
            digester.update(&piece[..read]);
            offset += read as u64;
            if interrupt.is_triggered() {
                return Err(Error::new(ErrorKind::Interrupted, "interrupted"));
            }
        }
        match digester.finish() {
            Ok(id) if id == item.id && offset == size => Ok(()),
            _ => Err(Error::new(ErrorKind::Io, "the other file is not the same")),
        }
    }

    /// Takes note of an error that the other files would have, too.
    fn refused(&self, error: &io::Error) -> Error {
        use io::ErrorKind as Io;
        let reason = pronto_io::error::reason(error);
        // Not a file system that can, or not the same one. What else there is may be about this
        // one file.
        if !matches!(
            error.kind(),
            Io::StorageFull | Io::QuotaExceeded | Io::InvalidInput
        ) {
            self.sibling.is_unfit.store(true, Ordering::Relaxed);
        }
        self.twins.refusal.get_or_init(|| reason.clone());
        Error::new(ErrorKind::Io, reason)
    }
}
