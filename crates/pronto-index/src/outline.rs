//! The outline of an index file: the positions of its parts, without reading entries.
//!
//! Cost for an index with the end of its entries (`EOIE`): one open, one `fstat`, one map; only the
//! file header, the headers of extensions, and the requested extensions are read. The cost does not
//! depend on the number of entries. In other indexes the entries must be located, which reads some
//! bytes of each entry.

use crate::bytes::{take_u32, u32_at};
use crate::cached_tree::CachedTree;
use crate::digest::digest;
use crate::error::{Error, ErrorKind, corrupt};
use crate::extension::{self, ExtensionSignature, Extensions};
use crate::file::{FileBytes, read_file};
use crate::fsmonitor::Fsmonitor;
use crate::identity::IndexFileIdentity;
use crate::layout::{self, EntryOffsets};
use crate::lengths::{self, MeasuredIndex};
use crate::resolve_undo::ResolveUndo;
use crate::stat::IndexTime;
use crate::untracked::UntrackedCache;
use pronto_hash::{Kind, ObjectId};
use pronto_io::error::IoContext;
use std::path::{Path, PathBuf};

const HEADER_BYTES: usize = 12;
/// The second message about a malformed header, after the message about the cause.
const BAD_HEADER: &str = "index file corrupt";

/// An index file whose entries have not been located, if the file records their end (`EOIE`).
/// Immutable, `Send + Sync`. [`Index::of`](crate::Index::of) converts an outline to an index.
#[derive(Debug)]
pub struct IndexOutline {
    kind: Kind,
    version: u32,
    count: usize,
    file: FileBytes,
    extensions: Extensions,
    identity: Option<IndexFileIdentity>,
    /// The located entries, if they were necessary to find the extensions.
    rows: Option<LocatedEntries>,
    /// The path of the file; `None` for an index in memory.
    path: Option<PathBuf>,
}

/// The positions of located entries.
#[derive(Debug)]
pub(crate) struct LocatedEntries {
    /// A copy of the entries, if the entries cannot be used in place in the file.
    pub(crate) unpacked: Option<Vec<u8>>,
    pub(crate) starts: Vec<u32>,
    /// The end of the last entry; `None` if the entries were located with the [`lengths`].
    pub(crate) found_end: Option<usize>,
}

impl IndexOutline {
    pub(crate) fn empty(kind: Kind) -> IndexOutline {
        IndexOutline {
            kind,
            version: 0,
            count: 0,
            file: FileBytes::Owned(Vec::new()),
            extensions: Extensions::default(),
            identity: None,
            rows: None,
            path: None,
        }
    }

    /// Sets the time of `before`, whose file the bytes of this outline will replace, for the racy
    /// check.
    pub(crate) fn at_time_of(mut self, before: &IndexOutline) -> IndexOutline {
        self.identity = before.identity;
        self
    }

    /// Reads the file at `path`; an empty index if the file does not exist. Checks only the
    /// positions of entries and extensions.
    ///
    /// # Errors
    /// Fails as [`Index::open`](crate::Index::open) does.
    pub fn open(path: &Path, kind: Kind) -> Result<IndexOutline, Error> {
        let Some((file, identity)) = read_file(path)? else {
            return Ok(IndexOutline::empty(kind));
        };
        Self::of_data(file, kind, Some((path, identity))).map_err(|error| {
            // As in Git, the message about a malformed header does not contain the path.
            match error.reported_before() {
                Some(_) => error,
                None => error.at_path(path),
            }
        })
    }

    pub(crate) fn of_bytes(file: Vec<u8>, kind: Kind) -> Result<IndexOutline, Error> {
        Self::of_data(FileBytes::Owned(file), kind, None)
    }

    fn of_data(
        file: FileBytes,
        kind: Kind,
        place: Option<(&Path, IndexFileIdentity)>,
    ) -> Result<IndexOutline, Error> {
        let hash_len = kind.len_in_bytes();
        if file.len() < HEADER_BYTES + hash_len {
            return Err(corrupt("index file smaller than expected"));
        }
        let field = |at| u32_at(&file, at).unwrap_or_default();
        if field(0) != u32::from_be_bytes(*b"DIRC") {
            let message = format!("bad signature 0x{:08x}", field(0));
            return Err(corrupt(BAD_HEADER).reported_after(message));
        }
        let (version, count) = (field(4), field(8) as usize);
        if !matches!(version, 2..=4) {
            let message = format!("bad index version {version}");
            return Err(Error::new(ErrorKind::Unsupported, BAD_HEADER).reported_after(message));
        }
        let mut outline = IndexOutline {
            kind,
            version,
            count,
            file,
            extensions: Extensions::default(),
            identity: place.map(|(_, identity)| identity),
            rows: None,
            path: place.map(|(path, _)| path.to_owned()),
        };
        match outline.recorded_end() {
            Some(extensions) => outline.extensions = extensions,
            None => outline.rows = Some(outline.locate()?),
        }
        Ok(outline)
    }

    /// Returns the extensions, if the file records the end of its entries (`EOIE`) and is
    /// consistent.
    fn recorded_end(&self) -> Option<Extensions> {
        let end = self.file.len() - self.hash_len();
        let size = 4 + self.hash_len();
        let at = end.checked_sub(8 + size)?;
        let mut fsmonitor = self
            .file
            .get(at..end)?
            .strip_prefix(&extension::END_OF_ENTRIES)?;
        if take_u32(&mut fsmonitor)? as usize != size {
            return None;
        }
        let from = take_u32(&mut fsmonitor)? as usize;
        let entries_len = from.checked_sub(HEADER_BYTES).filter(|_| from <= at)?;
        if self.count > entries_len / layout::least_len(self.hash_len()) {
            return None;
        }
        let extensions = Extensions::locate(&self.file, from, end).ok()?;
        let headers = extensions.headers(&self.file, at);
        let digest = digest(self.kind, &headers).ok()?;
        (digest.as_slice() == fsmonitor).then_some(extensions)
    }

    /// Locates the entries, and from their end the extensions.
    pub(crate) fn locate(&mut self) -> Result<LocatedEntries, Error> {
        if let Some(rows) = self.rows.take() {
            return Ok(rows);
        }
        let (count, hash_len) = (self.count, self.hash_len());
        let end = self.file.len().saturating_sub(hash_len);
        if self.version == 0 {
            return Ok(LocatedEntries {
                unpacked: None,
                starts: Vec::new(),
                found_end: None,
            });
        }
        let _region = pronto_io::region!("index", "do_read_index");
        if let Some((starts, extensions)) = self.known_rows(end) {
            self.extensions = extensions;
            return Ok(LocatedEntries {
                unpacked: None,
                starts,
                found_end: None,
            });
        }
        self.file.advise();
        let mut unpacked = None;
        let table = match self.version {
            4 => {
                let (entries, end) =
                    layout::unpack(&self.file[..end], HEADER_BYTES, count, hash_len)?;
                unpacked = Some(entries.bytes);
                EntryOffsets {
                    starts: entries.starts,
                    end,
                }
            }
            _ => layout::locate(&self.file[..end], HEADER_BYTES, count, hash_len)?,
        };
        self.extensions = Extensions::locate(&self.file, table.end, end)?;
        Ok(LocatedEntries {
            unpacked,
            starts: table.starts,
            found_end: Some(table.end),
        })
    }

    /// Returns the path of the file; `None` if there is none.
    pub(crate) fn path(&self) -> Option<&Path> {
        self.path.as_deref()
    }

    /// Returns the identity of the file and the digest at its end, which distinguish it from other
    /// files at the same path and from other content. `None` if there is no file.
    pub(crate) fn identity_bytes(&self) -> Option<Vec<u8>> {
        let numbers = self.identity?.numbers();
        let end = self.file.len().checked_sub(self.hash_len())?;
        let mut bytes = numbers.map(u64::to_be_bytes).concat();
        bytes.extend_from_slice(&self.file[end..]);
        Some(bytes)
    }

    /// Returns the index as the [`lengths`] file identifies it, with its path, if the file may be
    /// useful.
    fn subject(&self) -> Option<(&Path, MeasuredIndex<'_>)> {
        let (path, identity) = (self.path.as_deref()?, self.identity?);
        let subject = MeasuredIndex {
            file: &self.file,
            identity,
            kind: self.kind,
            count: self.count,
        };
        lengths::pays(&self.file, self.version).then_some((path, subject))
    }

    /// Returns the positions of the entries, and of the extensions, which end at `end`, if both are
    /// known without reading the entries.
    fn known_rows(&self, end: usize) -> Option<(Vec<u32>, Extensions)> {
        let (path, subject) = self.subject()?;
        let table = lengths::read(path, &subject, HEADER_BYTES)?;
        let extensions = Extensions::locate(&self.file, table.end, end).ok()?;
        Some((table.starts, extensions))
    }

    /// Stores the positions of the entries of this file for the next reader.
    pub(crate) fn keep_lengths(&self, starts: &[u32], end: usize) -> std::io::Result<()> {
        match self.subject() {
            Some((path, subject)) => lengths::write(path, &subject, starts, end),
            None => Ok(()),
        }
    }

    /// Returns the number of entries in this file; for a split index, without the shared index.
    pub fn len(&self) -> usize {
        self.count
    }

    /// Returns whether this file has no entries.
    pub fn is_empty(&self) -> bool {
        self.count == 0
    }

    /// Returns the hash function of object ids.
    pub fn kind(&self) -> Kind {
        self.kind
    }

    /// Returns the version of the file; zero if there was no file.
    pub fn version(&self) -> u32 {
        self.version
    }

    /// Returns the modification time of the file; zero if the index was not read from a file.
    pub fn timestamp(&self) -> IndexTime {
        self.identity
            .map(|identity| identity.time())
            .unwrap_or_default()
    }

    /// Returns the identity of the file; `None` if there was none.
    pub fn identity(&self) -> Option<IndexFileIdentity> {
        self.identity
    }

    /// Returns whether entries may represent whole directories (`sdir`, sparse index).
    pub fn is_sparse(&self) -> bool {
        self.has(extension::SPARSE_DIRECTORIES)
    }

    /// Returns whether this is a split index, with further entries in a shared index.
    pub fn is_split(&self) -> bool {
        self.has(extension::LINK)
    }

    /// Returns whether there is an untracked cache, which may be malformed.
    pub fn has_untracked_cache(&self) -> bool {
        self.has(extension::UNTRACKED)
    }

    pub(crate) fn has(&self, signature: ExtensionSignature) -> bool {
        self.extensions.range(signature).is_some()
    }

    /// Parses and returns the cached trees (`TREE`). Returns `None` if the extension is missing or
    /// malformed, as Git does; the cached trees only save work.
    pub fn cached_tree(&self) -> Option<CachedTree> {
        CachedTree::parse(self.extension(extension::TREE)?, self.kind)
    }

    /// Returns the cached tree of the top directory and the number of its entries, if it is valid.
    pub fn root_tree(&self) -> Option<(ObjectId, usize)> {
        CachedTree::parse_root(self.extension(extension::TREE)?, self.kind)
    }

    /// Parses and returns the resolve-undo data (`REUC`).
    ///
    /// # Errors
    /// Fails with [`ErrorKind::Corrupt`] if the extension is malformed.
    pub fn resolve_undo(&self) -> Result<Option<ResolveUndo>, Error> {
        let data = self.extension(extension::RESOLVE_UNDO);
        data.map(|data| ResolveUndo::parse(data, self.kind))
            .transpose()
    }

    /// Parses and returns the data of the file system monitor (`FSMN`). Must not be called for a
    /// split index, because the positions refer to the merged entries.
    ///
    /// # Errors
    /// Fails with [`ErrorKind::Corrupt`] if the extension is malformed.
    pub fn fsmonitor(&self) -> Result<Option<Fsmonitor>, Error> {
        match self.is_split() {
            true => Ok(None),
            false => self.fsmonitor_of(self.count),
        }
    }

    pub(crate) fn fsmonitor_of(&self, entries: usize) -> Result<Option<Fsmonitor>, Error> {
        let data = self.extension(extension::FSMONITOR);
        data.map(|data| Fsmonitor::parse(data, entries)).transpose()
    }

    /// Parses and returns the untracked cache (`UNTR`). Returns `None` if the extension is missing
    /// or malformed, as Git does; the untracked cache only saves work.
    pub fn untracked_cache(&self) -> Option<UntrackedCache<'_>> {
        UntrackedCache::parse(self.extension(extension::UNTRACKED)?, self.kind)
    }

    /// Returns the signatures of unknown extensions that were ignored. Git prints `ignoring XXXX
    /// extension` for each.
    pub fn ignored_extensions(&self) -> &[[u8; 4]] {
        self.extensions.ignored()
    }

    /// Returns the checksum at the end of the file; all zeros with `index.skipHash`.
    pub fn checksum(&self) -> Option<ObjectId> {
        let at = self.file.len().checked_sub(self.hash_len())?;
        Some(ObjectId::from_bytes_or_panic(&self.file[at..]))
    }

    /// Checks that the content matches the checksum at the end of the file. A checksum of zeros is
    /// not checked. Reads the whole file.
    ///
    /// # Errors
    /// Fails with [`ErrorKind::Checksum`] if the checksum does not match.
    pub fn verify(&self) -> Result<(), Error> {
        let Some(expected) = self.checksum().filter(|checksum| !checksum.is_null()) else {
            return Ok(());
        };
        let content = &self.file[..self.file.len() - self.hash_len()];
        if digest(self.kind, content)? == expected {
            Ok(())
        } else {
            Err(Error::new(
                ErrorKind::Checksum,
                "bad index file sha1 signature",
            ))
        }
    }

    /// Checks that the bytes read from this file so far are its contents. If another process
    /// truncates a mapped file, missing bytes read as zeros. Call this function after computing a
    /// result and before using it.
    ///
    /// # Errors
    /// Fails with [`ErrorKind::Io`] if the file was truncated; all later calls fail, too.
    pub fn intact(&self) -> Result<(), Error> {
        match &self.file {
            FileBytes::Mapped(view, path) => {
                view.verify()
                    .context(ErrorKind::Io, "unable to read index file", path)
            }
            FileBytes::Owned(_) => Ok(()),
        }
    }

    /// Returns whether the file at `path` is this file, unchanged. Costs one system call; if files
    /// are not mapped, the file is read again and compared.
    pub fn is_current(&self, path: &Path) -> bool {
        let now = std::fs::metadata(path).ok();
        if now.as_ref().map(IndexFileIdentity::of) != self.identity {
            return false;
        }
        match &self.file {
            // The mapping prevents the inode number from being reused for another file.
            FileBytes::Mapped(..) => true,
            FileBytes::Owned(bytes) => {
                now.is_none() || std::fs::read(path).is_ok_and(|now| now == *bytes)
            }
        }
    }

    pub(crate) fn extension(&self, signature: ExtensionSignature) -> Option<&[u8]> {
        self.extensions
            .range(signature)
            .map(|range| &self.file[range])
    }

    #[inline]
    pub(crate) fn file(&self) -> &[u8] {
        &self.file
    }

    pub(crate) fn hash_len(&self) -> usize {
        self.kind.len_in_bytes()
    }
}
