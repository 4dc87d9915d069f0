//! An index that was read from its file.

use crate::cached_tree::CachedTree;
use crate::entry::{EntryKey, EntryRef};
use crate::error::{Error, ErrorKind};
use crate::extension::{self, ExtensionSignature};
use crate::fsmonitor::Fsmonitor;
use crate::identity::IndexFileIdentity;
use crate::layout::{self, LINE_BYTES, UnpackedEntries};
use crate::outline::{IndexOutline, LocatedEntries};
use crate::plain::PlainEntry;
use crate::resolve_undo::ResolveUndo;
use crate::stat::IndexTime;
use crate::untracked::UntrackedCache;
use bstr::{BStr, ByteSlice};
use pronto_hash::{Kind, ObjectId};
use pronto_io::view::prefetch;
use std::ffi::CStr;
use std::ops::Range;
use std::path::Path;

/// An immutable index with its ordered entries. `Send + Sync`.
#[derive(Debug)]
pub struct Index {
    outline: IndexOutline,
    /// A copy of the entries, if the entries cannot be used in place in the file.
    unpacked: Option<Vec<u8>>,
    starts: Vec<u32>,
    /// The end of the last entry, if the entries were located one after the other.
    found_end: Option<usize>,
    split: bool,
    sparse: bool,
    /// The cached trees after sparse directories were expanded, which replace the cached trees in
    /// the file.
    expanded: Option<Option<CachedTree>>,
}

impl Index {
    /// Returns the index of a repository without an index file.
    pub fn empty(kind: Kind) -> Index {
        Index {
            outline: IndexOutline::empty(kind),
            unpacked: None,
            starts: Vec::new(),
            found_end: None,
            split: false,
            sparse: false,
            expanded: None,
        }
    }

    /// Returns the index of `outline`, which must not be [split](IndexOutline::is_split). Costs the pass
    /// over the entries that opening only the outline has avoided.
    ///
    /// # Errors
    /// Fails as [`open`](Index::open) does.
    pub fn of(outline: IndexOutline) -> Result<Index, Error> {
        Self::whole(outline)?.complete()
    }

    pub(crate) fn complete(self) -> Result<Index, Error> {
        self.intact()?;
        pronto_io::data!("index", "read/version", self.version());
        pronto_io::data!("index", "read/cache_nr", self.len());
        Ok(self)
    }

    /// Parses an index from memory. Fails for a split index, because its shared index is another
    /// file.
    ///
    /// # Errors
    /// Fails as [`open`](Index::open) does.
    pub fn from_bytes(file: Vec<u8>, kind: Kind) -> Result<Index, Error> {
        Self::whole(IndexOutline::of_bytes(file, kind)?)
    }

    fn whole(outline: IndexOutline) -> Result<Index, Error> {
        let index = Self::parse(outline)?;
        if index.outline.is_split() {
            return Err(Error::new(
                ErrorKind::Unsupported,
                "a split index must be opened by path",
            ));
        }
        Ok(index)
    }

    /// Parses the bytes that will replace this index. For the racy check, the result has the time
    /// of this index.
    ///
    /// # Errors
    /// Fails as [`from_bytes`](Index::from_bytes) does.
    pub fn successor(&self, file: Vec<u8>) -> Result<Index, Error> {
        let outline = IndexOutline::of_bytes(file, self.kind())?;
        Self::whole(outline.at_time_of(&self.outline))
    }

    pub(crate) fn parse(mut outline: IndexOutline) -> Result<Index, Error> {
        let LocatedEntries {
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

    /// Stores the positions of the entries in pronto's own file beside the index, so that the next
    /// reader need not locate each entry. The file is used only with exactly this index. Does
    /// nothing if the file exists, on network file systems, and for an index that has few entries,
    /// is of version 4 or is split. Costs one pass over the starts of the entries.
    ///
    /// The caller must not call this function for an index that was written just now. Two indexes
    /// written within one tick of the clock, with the same size and without a checksum, could not
    /// be distinguished.
    pub fn keep_lengths(&self) {
        if let Some(end) = self.found_end.filter(|_| self.unpacked.is_none()) {
            // An error is ignored, because the file only saves time.
            let _ = self.outline.keep_lengths(&self.starts, end);
        }
    }

    /// Returns the outline: the file and its extensions.
    pub fn outline(&self) -> &IndexOutline {
        &self.outline
    }

    /// Returns the number of entries of all stages.
    pub fn len(&self) -> usize {
        self.starts.len()
    }

    /// Returns whether the index has no entries.
    pub fn is_empty(&self) -> bool {
        self.starts.is_empty()
    }

    /// Returns the entry at `position`.
    ///
    /// # Panics
    /// Panics if `position` is not less than [`len`](Self::len).
    #[inline]
    pub fn entry(&self, position: usize) -> EntryRef<'_> {
        layout::read(self.rows(), self.starts[position] as usize, self.hash_len())
    }

    /// Returns the path of the entry at `position`. Costs less than [`entry`](Self::entry).
    ///
    /// # Panics
    /// Panics if `position` is not less than [`len`](Self::len).
    #[inline]
    pub fn path(&self, position: usize) -> &BStr {
        self.key(position).path.as_bstr()
    }

    /// Returns the path of the entry at `position`, from its byte `from` on, as a C string for
    /// system calls. A path that contains a NUL is truncated there.
    ///
    /// # Panics
    /// Panics if `position` is not less than [`len`](Self::len).
    #[inline]
    pub fn c_path(&self, position: usize, from: usize) -> Option<&CStr> {
        let start = self.starts[position] as usize;
        layout::terminated(self.rows(), start, self.hash_len(), from)
    }

    /// Returns the entry at `position` as a [`PlainEntry`] entry, if no flag is set and its path from
    /// the byte `from` on contains no slash. Costs a fraction of [`entry`](Self::entry) and
    /// [`c_path`](Self::c_path).
    ///
    /// # Panics
    /// Panics if `position` is not less than [`len`](Self::len).
    #[inline]
    pub fn plain(&self, position: usize, from: usize) -> Option<PlainEntry<'_>> {
        let rows = self.rows();
        // Prefetches the next entry: a caller usually reads it after a system call that takes
        // longer than a memory access.
        if let Some(&next) = self.starts.get(position + 1) {
            prefetch(rows, next as usize);
            prefetch(rows, next as usize + LINE_BYTES);
        }
        let start = self.starts[position] as usize;
        PlainEntry::read(rows, start, self.hash_len(), from)
    }

    /// Iterates over all entries in order.
    pub fn iter(&self) -> impl ExactSizeIterator<Item = EntryRef<'_>> + Clone + '_ {
        let (rows, hash_len) = (self.rows(), self.hash_len());
        self.starts
            .iter()
            .map(move |&start| layout::read(rows, start as usize, hash_len))
    }

    /// Returns the position of the entry of `path` at `stage`. Logarithmic.
    ///
    /// # Errors
    /// Returns the position at which such an entry would be inserted, if it does not exist.
    pub fn find(&self, path: &BStr, stage: u8) -> Result<usize, usize> {
        let (rows, hash_len) = (self.rows(), self.hash_len());
        self.starts.binary_search_by(|&start| {
            layout::key(rows, start as usize, hash_len).cmp(&EntryKey { path, stage })
        })
    }

    /// Returns the range of the entries below `directory` (without a trailing slash), or of all
    /// entries if `directory` is empty. Logarithmic.
    pub fn below(&self, directory: &BStr) -> Range<usize> {
        if directory.is_empty() {
            return 0..self.len();
        }
        let first = self.partition(|path| below_order(path, directory).is_lt());
        let end = self.partition(|path| below_order(path, directory).is_le());
        first..end
    }

    /// Returns the range of the entries of `path` at all stages.
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
            .partition_point(|&start| before(layout::key(rows, start as usize, hash_len).path))
    }

    /// Parses and returns the cached trees (`TREE`). Returns `None` if the extension is missing or
    /// malformed, as Git does; the cached trees only save work.
    pub fn cached_tree(&self) -> Option<CachedTree> {
        match &self.expanded {
            Some(cached) => cached.clone(),
            None => self.outline.cached_tree(),
        }
    }

    /// Parses and returns the resolve-undo data (`REUC`).
    ///
    /// # Errors
    /// Fails with [`ErrorKind::Corrupt`] if the extension is malformed.
    pub fn resolve_undo(&self) -> Result<Option<ResolveUndo>, Error> {
        self.outline.resolve_undo()
    }

    /// Parses and returns the data of the file system monitor (`FSMN`).
    ///
    /// # Errors
    /// Fails with [`ErrorKind::Corrupt`] if the extension is malformed.
    pub fn fsmonitor(&self) -> Result<Option<Fsmonitor>, Error> {
        match self.extension(extension::FSMONITOR) {
            Some(_) => self.outline.fsmonitor_of(self.len()),
            None => Ok(None),
        }
    }

    /// Parses and returns the untracked cache (`UNTR`). Returns `None` if the extension is missing
    /// or malformed, as Git does; the untracked cache only saves work.
    pub fn untracked_cache(&self) -> Option<UntrackedCache<'_>> {
        self.outline.untracked_cache()
    }

    /// Returns whether there is an untracked cache, which may be malformed.
    pub fn has_untracked_cache(&self) -> bool {
        self.outline.has_untracked_cache()
    }

    /// Returns whether entries may represent whole directories (`sdir`, sparse index).
    pub fn is_sparse(&self) -> bool {
        self.sparse
    }

    /// Returns whether the index was [expanded](Index::expand), completely or in part.
    pub fn is_expanded(&self) -> bool {
        self.expanded.is_some()
    }

    /// Returns whether the entries were merged from a split index and its shared index.
    pub fn is_split(&self) -> bool {
        self.split
    }

    /// Returns the signatures of unknown extensions that were ignored. Git prints `ignoring XXXX
    /// extension` for each.
    pub fn ignored_extensions(&self) -> &[[u8; 4]] {
        self.outline.ignored_extensions()
    }

    /// Returns the hash function of object ids.
    pub fn kind(&self) -> Kind {
        self.outline.kind()
    }

    /// Returns the version of the file; zero if there was no file.
    pub fn version(&self) -> u32 {
        self.outline.version()
    }

    /// Returns the modification time of the file, which identifies racy entries; zero if the index
    /// was not read from a file.
    pub fn timestamp(&self) -> IndexTime {
        self.outline.timestamp()
    }

    /// Returns the identity of the file; `None` if there was none.
    pub fn identity(&self) -> Option<IndexFileIdentity> {
        self.outline.identity()
    }

    /// Returns the checksum at the end of the file; all zeros with `index.skipHash`.
    pub fn checksum(&self) -> Option<ObjectId> {
        self.outline.checksum()
    }

    /// Checks that the content matches the checksum at the end of the file. A checksum of zeros is
    /// not checked. Reads the whole file.
    ///
    /// # Errors
    /// Fails with [`ErrorKind::Checksum`] if the checksum does not match.
    pub fn verify(&self) -> Result<(), Error> {
        self.outline.verify()
    }

    /// Checks that the bytes read from this index so far are the contents of the file. If another
    /// process truncates a mapped file, missing bytes read as zeros. Call this function after
    /// computing a result and before using it; [`encode`](crate::Writer::encode) calls it.
    ///
    /// # Errors
    /// Fails with [`ErrorKind::Io`] if the file was truncated; all later calls fail, too.
    pub fn intact(&self) -> Result<(), Error> {
        self.outline.intact()
    }

    /// Returns whether the file at `path` is unchanged since this index was read from it. Costs one
    /// system call; if files are not mapped, the file is read again and compared.
    pub fn is_current(&self, path: &Path) -> bool {
        self.outline.is_current(path)
    }

    pub(crate) fn extension(&self, signature: ExtensionSignature) -> Option<&[u8]> {
        // The positions in the monitor's data refer to the entries before the expansion.
        let holds = signature != extension::FSMONITOR || !self.is_expanded();
        self.outline.extension(signature).filter(|_| holds)
    }

    pub(crate) fn hash_len(&self) -> usize {
        self.outline.hash_len()
    }

    /// Sets the entries of a split index, after the merge with the shared index.
    pub(crate) fn set_merged(&mut self, entries: UnpackedEntries) {
        (self.unpacked, self.starts) = (Some(entries.bytes), entries.starts);
        self.split = true;
    }

    /// Replaces the entries of the index.
    pub(crate) fn replace_entries(
        &mut self,
        entries: UnpackedEntries,
        cached: Option<CachedTree>,
        is_sparse: bool,
    ) {
        self.sparse = is_sparse;
        (self.unpacked, self.starts) = (Some(entries.bytes), entries.starts);
        self.expanded = Some(cached);
    }

    /// Clears the flag [`SKIP_WORKTREE`](crate::Flags::SKIP_WORKTREE) of the entries at
    /// `positions`, in memory. Copies all entries once if `positions` is not empty.
    ///
    /// # Panics
    /// Panics if a position is not less than [`len`](Self::len).
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
    pub(crate) fn key(&self, position: usize) -> EntryKey<'_> {
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
