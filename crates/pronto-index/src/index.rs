//! The index as it was read.

use crate::cached_tree::CachedTree;
use crate::entry::{EntryRef, order};
use crate::error::{Error, ErrorKind, corrupt};
use crate::extension::{self, Extensions, Signature};
use crate::fsmonitor::Fsmonitor;
use crate::layout::{self, Table, Unpacked};
use crate::link::Link;
use crate::resolve_undo::ResolveUndo;
use crate::stat::Time;
use crate::untracked::UntrackedCache;
use bstr::{BStr, ByteSlice};
use pronto_hash::{Kind, ObjectId};
use pronto_io::error::IoContext;
use pronto_io::view::{Access, Advice, View};
use std::ops::Range;
use std::path::{Path, PathBuf};

const HEADER_BYTES: usize = 12;

/// How to open an index.
#[derive(Clone, Debug, Default)]
pub struct OpenOptions {
    /// Where the shared half of a split index lies, if not beside it.
    pub shared_directory: Option<PathBuf>,
}

/// What tells one file at the index's path from another.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Identity {
    device: u64,
    inode: u64,
    size_bytes: u64,
    seconds: i64,
    nanoseconds: i64,
}

impl Identity {
    #[cfg(unix)]
    pub(crate) fn of(metadata: &std::fs::Metadata) -> Identity {
        use std::os::unix::fs::MetadataExt;
        Identity {
            device: metadata.dev(),
            inode: metadata.ino(),
            size_bytes: metadata.size(),
            seconds: metadata.mtime(),
            nanoseconds: metadata.mtime_nsec(),
        }
    }

    fn of_view(view: &View) -> Identity {
        let identity = view.identity();
        Identity {
            device: identity.device,
            inode: identity.inode,
            size_bytes: view.len(),
            seconds: identity.modified.0,
            nanoseconds: identity.modified.1,
        }
    }

    /// When the file was written.
    pub fn time(&self) -> Time {
        Time {
            seconds: self.seconds as u32,
            nanoseconds: self.nanoseconds as u32,
        }
    }
}

/// The index as it was read: immutable, `Send + Sync`, entries in order.
#[derive(Debug)]
pub struct Index {
    kind: Kind,
    version: u32,
    file: Data,
    /// Entries that could not be used where they lie in `file`.
    unpacked: Option<Vec<u8>>,
    starts: Vec<u32>,
    extensions: Extensions,
    split: bool,
    identity: Option<Identity>,
}

impl Index {
    /// The index of a repository that has none yet.
    pub fn empty(kind: Kind) -> Index {
        Index {
            kind,
            version: 0,
            file: Data::Owned(Vec::new()),
            unpacked: None,
            starts: Vec::new(),
            extensions: Extensions::default(),
            split: false,
            identity: None,
        }
    }

    /// Reads the index at `path`; an empty one if there is no file. Costs one pass over the
    /// entries of which a few bytes each are looked at; version 4 and split indexes are unpacked.
    ///
    /// # Errors
    /// [`ErrorKind::Io`], [`ErrorKind::Corrupt`], or [`ErrorKind::Unsupported`] for an unknown
    /// version or an unknown extension that is needed.
    pub fn open(path: &Path, kind: Kind) -> Result<Index, Error> {
        Self::open_with(path, kind, &OpenOptions::default())
    }

    /// [`open`](Index::open) with options.
    ///
    /// # Errors
    /// As [`open`](Index::open).
    pub fn open_with(path: &Path, kind: Kind, options: &OpenOptions) -> Result<Index, Error> {
        let _region = pronto_io::region!("index", "do_read_index");
        let Some((file, identity)) = read_file(path)? else {
            return Ok(Index::empty(kind));
        };
        let mut index = Self::parse(file, kind).map_err(|error| error.at_path(path))?;
        index.identity = Some(identity);
        if index.extensions.range(extension::LINK).is_some() {
            let beside = path.parent().unwrap_or(Path::new(""));
            let directory = options.shared_directory.as_deref().unwrap_or(beside);
            index.merge_shared(directory)?;
        }
        index.intact()?;
        pronto_io::data!("index", "read/version", index.version);
        pronto_io::data!("index", "read/cache_nr", index.len());
        Ok(index)
    }

    /// Reads an index from memory. A split one is refused: its other half is a file.
    ///
    /// # Errors
    /// As [`open`](Index::open).
    pub fn from_bytes(file: Vec<u8>, kind: Kind) -> Result<Index, Error> {
        let index = Self::parse(Data::Owned(file), kind)?;
        if index.extensions.range(extension::LINK).is_some() {
            return Err(Error::new(
                ErrorKind::Unsupported,
                "a split index has to be opened by path",
            ));
        }
        Ok(index)
    }

    fn parse(file: Data, kind: Kind) -> Result<Index, Error> {
        let hash_len = kind.len_in_bytes();
        if file.len() < HEADER_BYTES + hash_len {
            return Err(corrupt("index file smaller than expected"));
        }
        let field = |at| crate::bytes::u32_at(&file, at).unwrap_or_default();
        if field(0) != u32::from_be_bytes(*b"DIRC") {
            return Err(corrupt(format!("bad signature 0x{:08x}", field(0))));
        }
        let (version, count) = (field(4), field(8) as usize);
        let end = file.len() - hash_len;
        let mut unpacked = None;
        let table = match version {
            2 | 3 => layout::locate(&file[..end], HEADER_BYTES, count, hash_len)?,
            4 => {
                let (entries, end) = layout::unpack(&file[..end], HEADER_BYTES, count, hash_len)?;
                unpacked = Some(entries.bytes);
                Table {
                    starts: entries.starts,
                    end,
                }
            }
            other => {
                let message = format!("bad index version {other}");
                return Err(Error::new(ErrorKind::Unsupported, message));
            }
        };
        let extensions = Extensions::locate(&file, table.end, end)?;
        let starts = table.starts;
        Ok(Index {
            kind,
            version,
            file,
            unpacked,
            starts,
            extensions,
            split: false,
            identity: None,
        })
    }

    fn merge_shared(&mut self, directory: &Path) -> Result<(), Error> {
        let data = self.extension(extension::LINK).unwrap_or_default();
        let base = Link::base_of(data, self.hash_len())?;
        if base.is_null() {
            return Ok(());
        }
        let path = directory.join(format!("sharedindex.{base}"));
        let Some((file, _)) = read_file(&path)? else {
            return Err(Error::new(ErrorKind::Io, "shared index file open failed").at_path(path));
        };
        let shared = Self::parse(file, self.kind).map_err(|error| error.at_path(&path))?;
        if shared.checksum() != Some(base) {
            let message = format!("broken index, expect {base}");
            return Err(corrupt(message).at_path(path));
        }
        let link = Link::parse(data, self.hash_len(), shared.len())?;
        let Unpacked { bytes, starts } = link.merge(&shared, self)?;
        (self.unpacked, self.starts, self.split) = (Some(bytes), starts, true);
        Ok(())
    }

    /// How many entries there are, all stages counted.
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
        CachedTree::parse(self.extension(extension::TREE)?, self.kind)
    }

    /// The resolved conflicts (`REUC`), parsed now.
    ///
    /// # Errors
    /// [`ErrorKind::Corrupt`].
    pub fn resolve_undo(&self) -> Result<Option<ResolveUndo>, Error> {
        let data = self.extension(extension::RESOLVE_UNDO);
        data.map(|data| ResolveUndo::parse(data, self.kind))
            .transpose()
    }

    /// What the file system monitor said (`FSMN`), parsed now.
    ///
    /// # Errors
    /// [`ErrorKind::Corrupt`].
    pub fn fsmonitor(&self) -> Result<Option<Fsmonitor>, Error> {
        let data = self.extension(extension::FSMONITOR);
        data.map(|data| Fsmonitor::parse(data, self.len()))
            .transpose()
    }

    /// The untracked cache (`UNTR`), parsed now. `None` if there is none or it is damaged, as in
    /// Git: it only saves work.
    pub fn untracked_cache(&self) -> Option<UntrackedCache<'_>> {
        UntrackedCache::parse(self.extension(extension::UNTRACKED)?, self.kind)
    }

    /// Whether there is an untracked cache, sound or not.
    pub fn has_untracked_cache(&self) -> bool {
        self.extensions.range(extension::UNTRACKED).is_some()
    }

    /// Whether entries may stand for whole directories (`sdir`).
    pub fn is_sparse(&self) -> bool {
        self.extensions
            .range(extension::SPARSE_DIRECTORIES)
            .is_some()
    }

    /// Whether the entries came from two files.
    pub fn is_split(&self) -> bool {
        self.split
    }

    /// The signatures of unknown extensions that were passed over: Git says `ignoring XXXX
    /// extension` of each.
    pub fn ignored_extensions(&self) -> &[[u8; 4]] {
        self.extensions.ignored()
    }

    /// The kind of its object ids.
    pub fn kind(&self) -> Kind {
        self.kind
    }

    /// The version of the file, or zero if there was none.
    pub fn version(&self) -> u32 {
        self.version
    }

    /// When the file was written; zero if it was not read from a file. Racy entries are judged by
    /// it.
    pub fn timestamp(&self) -> Time {
        self.identity
            .map(|identity| identity.time())
            .unwrap_or_default()
    }

    /// What tells this file from another one at its path; `None` if there was none.
    pub fn identity(&self) -> Option<Identity> {
        self.identity
    }

    /// The digest at the end of the file; all zeros with `index.skipHash`.
    pub fn checksum(&self) -> Option<ObjectId> {
        let at = self.file.len().checked_sub(self.hash_len())?;
        Some(ObjectId::from_bytes_or_panic(&self.file[at..]))
    }

    /// Whether the content has the digest that its end says. A digest of zeros is not checked.
    /// Reads all of the file.
    ///
    /// # Errors
    /// [`ErrorKind::Checksum`] if it does not.
    pub fn verify(&self) -> Result<(), Error> {
        let Some(expected) = self.checksum().filter(|checksum| !checksum.is_null()) else {
            return Ok(());
        };
        let content = &self.file[..self.file.len() - self.hash_len()];
        if crate::writer::digest(self.kind, content)? == expected {
            Ok(())
        } else {
            Err(Error::new(
                ErrorKind::Checksum,
                "bad index file sha1 signature",
            ))
        }
    }

    /// Whether all that was read of this index until now was what its file holds: if someone cuts
    /// a mapped file short, what is gone reads as zeros. To be called once a result is there,
    /// before it is used; [`encode`](crate::Writer::encode) calls it.
    ///
    /// # Errors
    /// [`ErrorKind::Io`] if the file was cut short; from then on always.
    pub fn intact(&self) -> Result<(), Error> {
        match &self.file {
            Data::Mapped(view, path) => {
                view.verify()
                    .context(ErrorKind::Io, "unable to read index file", path)
            }
            Data::Owned(_) => Ok(()),
        }
    }

    /// Whether the file at `path` is the one this index was read from, unchanged.
    pub fn is_current(&self, path: &Path) -> bool {
        let now = std::fs::metadata(path).ok();
        if now.as_ref().map(Identity::of) != self.identity {
            return false;
        }
        match &self.file {
            // The map keeps the file from being another one of the same number.
            Data::Mapped(..) => true,
            Data::Owned(bytes) => {
                now.is_none() || std::fs::read(path).is_ok_and(|now| now == *bytes)
            }
        }
    }

    pub(crate) fn extension(&self, signature: Signature) -> Option<&[u8]> {
        self.extensions
            .range(signature)
            .map(|range| &self.file[range])
    }

    pub(crate) fn hash_len(&self) -> usize {
        self.kind.len_in_bytes()
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
        self.unpacked.as_deref().unwrap_or(&self.file)
    }
}

/// Where `path` lies: before, in, or after `directory`.
fn below_order(path: &[u8], directory: &[u8]) -> std::cmp::Ordering {
    let cut = path.len().min(directory.len());
    path[..cut]
        .cmp(&directory[..cut])
        .then_with(|| match path.get(directory.len()) {
            None => std::cmp::Ordering::Less,
            Some(byte) => byte.cmp(&b'/'),
        })
}

/// The bytes of a file: mapped where that is safe.
#[derive(Debug)]
enum Data {
    Mapped(View, PathBuf),
    Owned(Vec<u8>),
}

impl std::ops::Deref for Data {
    type Target = [u8];

    #[inline]
    fn deref(&self) -> &[u8] {
        match self {
            Data::Mapped(view, _) => view.bytes().unwrap_or_default(),
            Data::Owned(bytes) => bytes,
        }
    }
}

/// What systems read at least when a page is missing.
const READ_AHEAD_BYTES: u64 = 64 * 1024;

fn read_file(path: &Path) -> Result<Option<(Data, Identity)>, Error> {
    let view = match View::open(path, Access::Auto) {
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(None),
        opened => opened.context(ErrorKind::Io, "unable to open index file", path)?,
    };
    let identity = Identity::of_view(&view);
    if view.bytes().is_some() {
        // A smaller one comes into memory with its first page.
        if view.len() > READ_AHEAD_BYTES {
            view.advise(Advice::WillNeed);
        }
        return Ok(Some((Data::Mapped(view, path.to_owned()), identity)));
    }
    let mut bytes = Vec::new();
    let len = usize::try_from(view.len()).map_err(|_| corrupt("index file is too large"))?;
    view.read(0, len, &mut bytes)
        .context(ErrorKind::Io, "unable to read index file", path)?;
    Ok(Some((Data::Owned(bytes), identity)))
}
