//! An index as read from its file.

use crate::cached_tree::CachedTree;
use crate::entry::{EntryRef, order};
use crate::error::{Error, ErrorKind};
use crate::extension::{self, Signature};
use crate::fsmonitor::Fsmonitor;
use crate::layout::{self, LINE_BYTES, Unpacked};
use crate::link::Link;
use crate::outline::{Identity, Outline, Rows};
use crate::plain::Plain;
use crate::resolve_undo::ResolveUndo;
use crate::split::SharedIndex;
use crate::stat::Time;
use crate::untracked::UntrackedCache;
use bstr::{BStr, ByteSlice};
use pronto_hash::{Kind, ObjectId};
use pronto_io::view::prefetch;
use std::ffi::CStr;
use std::ops::Range;
use std::path::{Path, PathBuf};

/// Options for opening an index.
#[derive(Clone, Debug, Default)]
pub struct OpenOptions {
    /// The directory of the shared half of a split index, if it is not the index's own.
    pub shared_directory: Option<PathBuf>,
}

/// The index as it was read: immutable, `Send + Sync`, entries in order.
#[derive(Debug)]
pub struct Index {
    outline: Outline,
    /// Entries that could not be used where they lie in the file.
    unpacked: Option<Vec<u8>>,
    starts: Vec<u32>,
    /// The end of the last entry, if entries were located by going from one to the next.
    found_end: Option<usize>,
    split: bool,
    sparse: bool,
    /// The cached trees, in place of those in the file, once entries that stand for directories
    /// have been replaced by what is in them.
    expanded: Option<Option<CachedTree>>,
}

impl Index {
    /// The index of a repository that has none yet.
    pub fn empty(kind: Kind) -> Index {
        Index {
            outline: Outline::empty(kind),
            unpacked: None,
            starts: Vec::new(),
            found_end: None,
            split: false,
            sparse: false,
            expanded: None,
        }
    }

    /// Reads the index at `path`; an empty one if there is no file. Costs one pass over the
    /// entries, which reads a few bytes of each; version 4 and split indexes are unpacked.
    ///
    /// # Errors
    /// [`ErrorKind::Io`], [`ErrorKind::Corrupt`], or [`ErrorKind::Unsupported`] for an unknown
    /// version or an unknown required extension.
    pub fn open(path: &Path, kind: Kind) -> Result<Index, Error> {
        Self::open_with(path, kind, &OpenOptions::default())
    }

    /// [`open`](Index::open) with options.
    ///
    /// # Errors
    /// As [`open`](Index::open).
    pub fn open_with(path: &Path, kind: Kind, options: &OpenOptions) -> Result<Index, Error> {
        let outline = Outline::open(path, kind)?;
        let mut index = Self::parse(outline).map_err(|it| it.at_path(path))?;
        if index.outline.is_split() {
            let _region = pronto_io::region!("index", "do_read_index");
            let beside = path.parent().unwrap_or(Path::new(""));
            index.merge_shared(beside, options.shared_directory.as_deref())?;
        }
        index.complete()
    }

    /// The index that `outline` is of, which is not [split](Outline::is_split). Costs the pass over
    /// the entries that opening the outline has saved.
    ///
    /// # Errors
    /// As [`open`](Index::open).
    pub fn of(outline: Outline) -> Result<Index, Error> {
        Self::whole(outline)?.complete()
    }

    fn complete(self) -> Result<Index, Error> {
        self.intact()?;
        pronto_io::data!("index", "read/version", self.version());
        pronto_io::data!("index", "read/cache_nr", self.len());
        Ok(self)
    }

    /// Reads an index from memory. A split one is refused: its other half is a file.
    ///
    /// # Errors
    /// As [`open`](Index::open).
    pub fn from_bytes(file: Vec<u8>, kind: Kind) -> Result<Index, Error> {
        Self::whole(Outline::of_bytes(file, kind)?)
    }

    fn whole(outline: Outline) -> Result<Index, Error> {
        let index = Self::parse(outline)?;
        if index.outline.is_split() {
            return Err(Error::new(
                ErrorKind::Unsupported,
                "a split index has to be opened by path",
            ));
        }
        Ok(index)
    }

    /// Reads from memory what is to take the place of this index, and is judged by its time.
    ///
    /// # Errors
    /// As [`from_bytes`](Index::from_bytes).
    pub fn successor(&self, file: Vec<u8>) -> Result<Index, Error> {
        let outline = Outline::of_bytes(file, self.kind())?;
        Self::whole(outline.at_time_of(&self.outline))
    }

    pub(crate) fn parse(mut outline: Outline) -> Result<Index, Error> {
        let Rows {
            unpacked,
            starts,
            found_end,
        } = outline.locate()?;
        Ok(Index {
            sparse: outline.is_sparse(),
            outline,
            unpacked,
            starts,
            found_end,
            split: false,
            expanded: None,
        })
    }

    /// Stores the positions of the entries in a file of pronto's own beside the index, so the next
    /// reader need not locate each entry. The file is only used with this very index. Does nothing
    /// if the file exists, for an index of few entries, of version 4 or that is split, and on
    /// network file systems. Costs one pass over the starts of the entries.
    ///
    /// Call it only for an index that was not written just now. Two indexes written within one tick
    /// of the clock, with the same size and without a digest, could not be distinguished.
    pub fn keep_lengths(&self) {
        if let Some(end) = self.found_end.filter(|_| self.unpacked.is_none()) {
            // It only saves time.
            let _ = self.outline.keep_lengths(&self.starts, end);
        }
    }

    /// Merges the shared file, which lies `beside` the index or in the directory `other`.
    fn merge_shared(&mut self, beside: &Path, other: Option<&Path>) -> Result<(), Error> {
        let data = self.extension(extension::LINK).unwrap_or_default();
        let base = Link::base_of(data, self.hash_len())?;
        if base.is_null() {
            return Ok(());
        }
        let directory = match other {
            Some(other) if !SharedIndex::path(beside, &base).exists() => other,
            _ => beside,
        };
        let shared = SharedIndex::open(directory, base, self.kind())?;
        let shared = shared.index();
        let link = Link::parse(data, self.hash_len(), shared.len())?;
        let Unpacked { bytes, starts } = link.merge(shared, self)?;
        (self.unpacked, self.starts, self.split) = (Some(bytes), starts, true);
        Ok(())
    }

    /// The file and its extensions.
    pub fn outline(&self) -> &Outline {
        &self.outline
    }

    /// Returns the number of entries of all stages.
    pub fn len(&self) -> usize {
        self.starts.len()
    }

    /// Whether there is no entry.
    pub fn is_empty(&self) -> bool {
        self.starts.is_empty()
    }

    /// The entry at `position`.
    ///
    /// # Panics
    /// If there are not as many.
    #[inline]
    pub fn entry(&self, position: usize) -> EntryRef<'_> {
        layout::read(self.rows(), self.starts[position] as usize, self.hash_len())
    }

    /// The path of the entry at `position`: cheaper than all of it.
    ///
    /// # Panics
    /// If there are not as many.
    #[inline]
    pub fn path(&self, position: usize) -> &BStr {
        self.key(position).0.as_bstr()
    }

    /// The path of the entry at `position` from its byte `from` on, as calls of the system want
    /// it: up to a NUL, if it has one in it.
    ///
    /// # Panics
    /// If there are not as many.
    #[inline]
    pub fn c_path(&self, position: usize, from: usize) -> Option<&CStr> {
        let start = self.starts[position] as usize;
        layout::terminated(self.rows(), start, self.hash_len(), from)
    }

    /// The entry at `position`, if no flag says anything of it and its path from the byte `from` on
    /// is one name: a fraction of what [`entry`](Self::entry) and [`c_path`](Self::c_path) cost.
    ///
    /// # Panics
    /// If there are not as many.
    #[inline]
    pub fn plain(&self, position: usize, from: usize) -> Option<Plain<'_>> {
        let rows = self.rows();
        // A caller that reads one entry mostly reads the next one after a call that takes longer
        // than a memory access.
        if let Some(&next) = self.starts.get(position + 1) {
            prefetch(rows, next as usize);
            prefetch(rows, next as usize + LINE_BYTES);
        }
        let start = self.starts[position] as usize;
        Plain::read(rows, start, self.hash_len(), from)
    }

    /// All entries in order.
    pub fn iter(&self) -> impl ExactSizeIterator<Item = EntryRef<'_>> + Clone + '_ {
        let (rows, hash_len) = (self.rows(), self.hash_len());
        self.starts
            .iter()
            .map(move |&start| layout::read(rows, start as usize, hash_len))
    }

    /// The position of the entry of `path` at `stage`, or where it would be. Logarithmic.
    ///
    /// # Errors
    /// The position at which such an entry would have to be added.
    pub fn find(&self, path: &BStr, stage: u8) -> Result<usize, usize> {
        let (rows, hash_len) = (self.rows(), self.hash_len());
        self.starts.binary_search_by(|&start| {
            order(layout::key(rows, start as usize, hash_len), (path, stage))
        })
    }

    /// The positions of all entries below `directory` (without a slash at its end); all of them
    /// for an empty one. Logarithmic.
    pub fn below(&self, directory: &BStr) -> Range<usize> {
        if directory.is_empty() {
            return 0..self.len();
        }
        let first = self.partition(|path| below_order(path, directory).is_lt());
        let end = self.partition(|path| below_order(path, directory).is_le());
        first..end
    }

    /// The positions of the entries of `path`, of all stages.
    pub fn stages(&self, path: &BStr) -> Range<usize> {
        let first = self.partition(|other| other < path.as_bytes());
        let count = (first..self.len())
            .take_while(|&at| self.path(at) == path)
            .count();
        first..first + count
    }

    fn partition(&self, before: impl Fn(&[u8]) -> bool) -> usize {
        let (rows, hash_len) = (self.rows(), self.hash_len());
        self.starts
            .partition_point(|&start| before(layout::key(rows, start as usize, hash_len).0))
    }

    /// The cached trees (`TREE`), parsed now. `None` if there are none or they are damaged, as in
    /// Git: they only save work.
    pub fn cached_tree(&self) -> Option<CachedTree> {
        match &self.expanded {
            Some(cached) => cached.clone(),
            None => self.outline.cached_tree(),
        }
    }

    /// The resolved conflicts (`REUC`), parsed now.
    ///
    /// # Errors
    /// [`ErrorKind::Corrupt`].
    pub fn resolve_undo(&self) -> Result<Option<ResolveUndo>, Error> {
        self.outline.resolve_undo()
    }

    /// Parses the extension of the file system monitor (`FSMN`).
    ///
    /// # Errors
    /// [`ErrorKind::Corrupt`].
    pub fn fsmonitor(&self) -> Result<Option<Fsmonitor>, Error> {
        match self.extension(extension::FSMONITOR) {
            Some(_) => self.outline.fsmonitor_of(self.len()),
            None => Ok(None),
        }
    }

    /// The untracked cache (`UNTR`), parsed now. `None` if there is none or it is damaged, as in
    /// Git: it only saves work.
    pub fn untracked_cache(&self) -> Option<UntrackedCache<'_>> {
        self.outline.untracked_cache()
    }

    /// Whether there is an untracked cache, sound or not.
    pub fn has_untracked_cache(&self) -> bool {
        self.outline.has_untracked_cache()
    }

    /// Whether entries may stand for whole directories (`sdir`).
    pub fn is_sparse(&self) -> bool {
        self.sparse
    }

    /// Whether it was [expanded](Index::expand), as a whole or in part.
    pub fn is_expanded(&self) -> bool {
        self.expanded.is_some()
    }

    /// Whether the entries came from two files.
    pub fn is_split(&self) -> bool {
        self.split
    }

    /// Returns the signatures of unknown extensions that were ignored. Git prints `ignoring XXXX
    /// extension` for each.
    pub fn ignored_extensions(&self) -> &[[u8; 4]] {
        self.outline.ignored_extensions()
    }

    /// The kind of its object ids.
    pub fn kind(&self) -> Kind {
        self.outline.kind()
    }

    /// The version of the file, or zero if there was none.
    pub fn version(&self) -> u32 {
        self.outline.version()
    }

    /// When the file was written; zero if it was not read from a file. Racy entries are judged by
    /// it.
    pub fn timestamp(&self) -> Time {
        self.outline.timestamp()
    }

    /// Returns the identity of the file; `None` if there was none.
    pub fn identity(&self) -> Option<Identity> {
        self.outline.identity()
    }

    /// The digest at the end of the file; all zeros with `index.skipHash`.
    pub fn checksum(&self) -> Option<ObjectId> {
        self.outline.checksum()
    }

    /// Whether the content has the digest that its end says. A digest of zeros is not checked.
    /// Reads all of the file.
    ///
    /// # Errors
    /// [`ErrorKind::Checksum`] if it does not.
    pub fn verify(&self) -> Result<(), Error> {
        self.outline.verify()
    }

    /// Whether all that was read of this index until now was what its file holds: if someone cuts
    /// a mapped file short, what is gone reads as zeros. To be called once a result is there,
    /// before it is used; [`encode`](crate::Writer::encode) calls it.
    ///
    /// # Errors
    /// [`ErrorKind::Io`] if the file was cut short; from then on always.
    pub fn intact(&self) -> Result<(), Error> {
        self.outline.intact()
    }

    /// Whether the file at `path` is the one this index was read from, unchanged. One system call;
    /// where files are not mapped, the file is read again and compared.
    pub fn is_current(&self, path: &Path) -> bool {
        self.outline.is_current(path)
    }

    pub(crate) fn extension(&self, signature: Signature) -> Option<&[u8]> {
        // The monitor's data are for other positions.
        let holds = signature != extension::FSMONITOR || !self.is_expanded();
        self.outline.extension(signature).filter(|_| holds)
    }

    pub(crate) fn hash_len(&self) -> usize {
        self.outline.hash_len()
    }

    /// Replaces the entries that were read.
    pub(crate) fn replace_entries(
        &mut self,
        entries: Unpacked,
        cached: Option<CachedTree>,
        is_sparse: bool,
    ) {
        self.sparse = is_sparse;
        (self.unpacked, self.starts) = (Some(entries.bytes), entries.starts);
        self.expanded = Some(cached);
    }

    /// Takes the mark [`SKIP_WORKTREE`](crate::Flags::SKIP_WORKTREE) from the entries at `positions`, in
    /// memory. Copies all entries once if there is one.
    ///
    /// # Panics
    /// If there are not as many.
    pub fn unskip(&mut self, positions: &[usize]) {
        if positions.is_empty() {
            return;
        }
        let hash_len = self.hash_len();
        let mut rows = self.unpacked.take();
        let rows = rows.get_or_insert_with(|| self.outline.file().to_vec());
        for &position in positions {
            layout::unskip(rows, self.starts[position] as usize, hash_len);
        }
        self.unpacked = Some(std::mem::take(rows));
    }

    #[inline]
    pub(crate) fn key(&self, position: usize) -> (&[u8], u8) {
        layout::key(self.rows(), self.starts[position] as usize, self.hash_len())
    }

    pub(crate) fn raw(&self, position: usize) -> (&[u8], usize) {
        (self.rows(), self.starts[position] as usize)
    }

    #[inline]
    fn rows(&self) -> &[u8] {
        self.unpacked.as_deref().unwrap_or(self.outline.file())
    }
}

/// Compares `path` with the range of paths in `directory`.
fn below_order(path: &[u8], directory: &[u8]) -> std::cmp::Ordering {
    let cut = path.len().min(directory.len());
    path[..cut]
        .cmp(&directory[..cut])
        .then_with(|| match path.get(directory.len()) {
            None => std::cmp::Ordering::Less,
            Some(byte) => byte.cmp(&b'/'),
        })
}
