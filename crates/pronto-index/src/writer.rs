//! Encodes an index as Git does.

use crate::cached_tree::CachedTree;
use crate::digest::digest;
use crate::entry::EntryRef;
use crate::error::{Error, corrupt};
use crate::extension::{self, ExtensionSignature};
use crate::fsmonitor::Fsmonitor;
use crate::index::Index;
use crate::stat::IndexTime;
use crate::{bytes, layout, mode};
use pronto_hash::Kind;
use std::borrow::Cow;

/// The complete content of an index file.
#[derive(Debug)]
pub struct IndexContent<'a> {
    /// The hash function of object ids.
    pub kind: Kind,
    /// The index from which entries are borrowed; its file must be unchanged.
    pub base: Option<&'a Index>,
    /// The version of the file from which the entries were read; `None` for a new index.
    pub version: Option<u32>,
    /// The modification time of that file; zero for a new index.
    pub timestamp: IndexTime,
    /// The entries in order.
    pub entries: Vec<EntryRef<'a>>,
    /// The cached trees.
    pub tree: Option<Cow<'a, CachedTree>>,
    /// The encoded resolve-undo data.
    pub resolve_undo: Option<Cow<'a, [u8]>>,
    /// The encoded untracked cache.
    pub untracked: Option<Cow<'a, [u8]>>,
    /// The encoded data of the file system monitor.
    pub fsmonitor: Option<Cow<'a, [u8]>>,
    /// Whether entries may represent whole directories (sparse index).
    pub sparse: bool,
}

impl<'a> IndexContent<'a> {
    /// Returns the content of a new index with the ordered `entries` and without extensions. A
    /// clone writes such an index after it has set the cached trees.
    pub fn new(kind: Kind, entries: impl IntoIterator<Item = EntryRef<'a>>) -> IndexContent<'a> {
        IndexContent {
            kind,
            base: None,
            version: None,
            timestamp: IndexTime::default(),
            entries: entries.into_iter().collect(),
            tree: None,
            resolve_undo: None,
            untracked: None,
            fsmonitor: None,
            sparse: false,
        }
    }

    /// Takes over the untracked cache and the data of the file system monitor of `base`, as far as
    /// they are valid for these entries.
    pub fn keep_caches(&mut self, base: &'a Index) {
        self.untracked = crate::carry::untracked(base, &self.entries);
        self.fsmonitor = crate::carry::fsmonitor(base, &self.entries);
    }

    /// Parses and returns the data of the file system monitor for these entries.
    ///
    /// # Errors
    /// Fails with [`ErrorKind::Corrupt`](crate::ErrorKind::Corrupt) if the data are malformed.
    pub fn decoded_fsmonitor(&self) -> Result<Option<Fsmonitor>, Error> {
        let decoded_fsmonitor = self.fsmonitor.as_deref();
        decoded_fsmonitor
            .map(|decoded_fsmonitor| Fsmonitor::parse(decoded_fsmonitor, self.entries.len()))
            .transpose()
    }

    /// Marks racily clean entries for the next reader by setting their size to zero, as Git does
    /// before it writes an index. Calls `is_modified` for each racy entry that was not examined in
    /// this run. `is_modified` returns whether the stat data of the file match the entry while its
    /// content does not.
    pub fn smudge(&mut self, mut is_modified: impl FnMut(&EntryRef<'_>) -> bool) {
        for entry in &mut self.entries {
            let verified = entry.flags.contains(crate::Flags::UP_TO_DATE);
            if !verified
                && entry.mode & mode::TYPE != mode::GITLINK
                && entry.stat.is_racy_by_second(self.timestamp)
                && is_modified(entry)
            {
                entry.stat.size_bytes = 0;
            }
        }
    }
}

/// The version of a new index. An existing index keeps its version, except for versions 2 and 3,
/// whose choice depends on the presence of extended flags.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum IndexVersion {
    /// Version 2, or 3 if an entry requires it.
    #[default]
    Two,
    /// Version 4, with prefix-compressed paths.
    Four,
}

/// Settings of the table of entry offsets (`IEOT`), which is for readers with several threads.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct OffsetTable {
    /// The number of threads of readers (`index.threads`), where 0 means the number of cores.
    /// `None` if the setting is missing.
    pub threads: Option<usize>,
    /// The number of cores, which applies if `threads` is 0.
    pub cores: usize,
    /// Whether the end of the entries is recorded (`index.recordEndOfIndexEntries`), if set.
    pub record_end: Option<bool>,
    /// Whether the entry offsets are recorded (`index.recordOffsetTable`), if set.
    pub record_offsets: Option<bool>,
}

impl OffsetTable {
    /// The smallest number of entries for each thread.
    const ENTRIES_PER_THREAD: usize = 10_000;

    fn is_threaded(&self) -> bool {
        self.threads.is_some_and(|threads| threads != 1)
    }

    /// Returns the number of entries of each block; `None` if the index is written without blocks.
    fn block_len(&self, entries: usize) -> Option<usize> {
        if !self.is_threaded() || !self.record_offsets.unwrap_or(true) {
            return None;
        }
        let blocks = match self.threads.unwrap_or(1) {
            0 => (entries / Self::ENTRIES_PER_THREAD).min(self.cores.saturating_sub(1)),
            threads => threads.min(entries),
        };
        (blocks > 1).then(|| entries.div_ceil(blocks))
    }
}

/// The division of an index into one or two files (`core.splitIndex`). The caller chooses between
/// [`encode`](Writer::encode) and [`encode_split`](Writer::encode_split) accordingly.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Splitting {
    /// Keep the division of the index that was read.
    #[default]
    AsRead,
    /// Write a split index, and keep the shared index if possible.
    Split,
    /// Write a split index with a new shared index.
    Renew,
    /// Write one file.
    Join,
}

/// Encodes indexes. The defaults are those of Git without configuration.
#[derive(Clone, Debug, Default)]
pub struct Writer {
    /// The version of a new index (`index.version`).
    pub new_version: IndexVersion,
    /// The version that replaces the current one (`git update-index --index-version`).
    pub force_version: Option<IndexVersion>,
    /// Write zeros instead of the checksum (`index.skipHash`).
    pub skip_hash: bool,
    /// Settings of the table of entry offsets (`index.threads`, `index.recordOffsetTable`).
    pub offset_table: OffsetTable,
    /// The division into one or two files (`core.splitIndex`).
    pub splitting: Splitting,
}

impl Writer {
    /// Encodes the bytes of the index file. The bytes are identical to those of Git for the same
    /// content, except that the data of a file system monitor are followed by `EOIE`, unless
    /// `index.recordEndOfIndexEntries` is false.
    ///
    /// # Errors
    /// Fails with [`ErrorKind::Corrupt`](crate::ErrorKind::Corrupt) if an entry has a null object
    /// id or if entries are not in order, and with [`ErrorKind::Io`](crate::ErrorKind::Io) if the
    /// file of the base was truncated meanwhile.
    pub fn encode(&self, content: &IndexContent<'_>) -> Result<Vec<u8>, Error> {
        self.encode_rows(content, &content.entries, None)
    }

    /// Encodes a file with `rows`: all entries of `content`, or their differences from the shared
    /// index that `link` names.
    pub(crate) fn encode_rows(
        &self,
        content: &IndexContent<'_>,
        rows: &[EntryRef<'_>],
        link: Option<&[u8]>,
    ) -> Result<Vec<u8>, Error> {
        let _region = pronto_io::region!("index", "do_write_index");
        check(content)?;
        let version = self.version(content, rows);
        let room = rows.len() * 112 + 4096;
        let mut out = Vec::with_capacity(room);
        out.extend_from_slice(b"DIRC");
        out.extend_from_slice(&version.to_be_bytes());
        let count = u32::try_from(rows.len())
            .map_err(|_| corrupt("too many entries for the index format"))?;
        out.extend_from_slice(&count.to_be_bytes());
        let block_len = self.offset_table.block_len(rows.len());
        let blocks = push_entries(&mut out, rows, version, block_len);
        self.push_extensions(&mut out, content, &blocks, link)?;
        if self.skip_hash {
            out.extend_from_slice(content.kind.null_ref().as_bytes());
        } else {
            let digest = digest(content.kind, &out)?;
            out.extend_from_slice(digest.as_slice());
        }
        if let Some(base) = content.base {
            base.intact()?;
        }
        pronto_io::data!("index", "write/version", version);
        pronto_io::data!("index", "write/cache_nr", count);
        Ok(out)
    }

    fn version(&self, content: &IndexContent<'_>, rows: &[EntryRef<'_>]) -> u32 {
        let version = match self.force_version {
            Some(version) => version.number(),
            None => content.version.unwrap_or(self.new_version.number()),
        };
        match version {
            4 => 4,
            _ if rows.iter().any(|entry| entry.flags.is_extended()) => 3,
            _ => 2,
        }
    }

    fn push_extensions(
        &self,
        out: &mut Vec<u8>,
        content: &IndexContent<'_>,
        blocks: &[EntryBlock],
        link: Option<&[u8]>,
    ) -> Result<(), Error> {
        let end_of_entries = out.len();
        let mut headers = Vec::new();
        if !blocks.is_empty() {
            let mut table = 1u32.to_be_bytes().to_vec();
            for block in blocks {
                table.extend_from_slice(&block.start.to_be_bytes());
                table.extend_from_slice(&block.count.to_be_bytes());
            }
            push_extension(out, &mut headers, extension::OFFSET_TABLE, &table)?;
        }
        if let Some(link) = link {
            push_extension(out, &mut headers, extension::LINK, link)?;
        }
        if let Some(tree) = &content.tree {
            let mut data = Vec::new();
            tree.encode(&mut data);
            push_extension(out, &mut headers, extension::TREE, &data)?;
        }
        for (signature, data) in [
            (extension::RESOLVE_UNDO, &content.resolve_undo),
            (extension::UNTRACKED, &content.untracked),
            (extension::FSMONITOR, &content.fsmonitor),
        ] {
            if let Some(data) = data {
                push_extension(out, &mut headers, signature, data)?;
            }
        }
        let stands_for_all = |entry: &EntryRef<'_>| entry.is_sparse_directory();
        if content.sparse || content.entries.iter().any(stands_for_all) {
            push_extension(out, &mut headers, extension::SPARSE_DIRECTORIES, &[])?;
        }
        // With a file system monitor, status reads no entry if the end of the entries is recorded.
        let is_worth = self.offset_table.is_threaded() || content.fsmonitor.is_some();
        if self.offset_table.record_end.unwrap_or(is_worth) {
            let mut data = offset_u32(end_of_entries)?.to_be_bytes().to_vec();
            data.extend_from_slice(digest(content.kind, &headers)?.as_slice());
            push_extension(out, &mut headers, extension::END_OF_ENTRIES, &data)?;
        }
        Ok(())
    }
}

impl IndexVersion {
    fn number(self) -> u32 {
        match self {
            IndexVersion::Two => 2,
            IndexVersion::Four => 4,
        }
    }
}

/// A run of entries that can be read without the previous entries.
struct EntryBlock {
    start: u32,
    count: u32,
}

fn push_entries(
    out: &mut Vec<u8>,
    rows: &[EntryRef<'_>],
    version: u32,
    block_len: Option<usize>,
) -> Vec<EntryBlock> {
    let mut blocks = Vec::new();
    let mut previous: &[u8] = &[];
    for (position, entry) in rows.iter().enumerate() {
        let mut common_limit = usize::MAX;
        if let Some(block_len) = block_len
            && position % block_len == 0
        {
            let count = block_len.min(rows.len() - position) as u32;
            blocks.push(EntryBlock {
                start: out.len() as u32,
                count,
            });
            common_limit = 0;
        }
        let start = out.len();
        layout::push_fixed(out, entry);
        let path: &[u8] = entry.path;
        if version == 4 {
            let common = path
                .iter()
                .zip(previous)
                .take_while(|(a, b)| a == b)
                .count();
            let common = common.min(common_limit);
            bytes::push_varint(out, (previous.len() - common) as u64);
            out.extend_from_slice(&path[common..]);
            out.push(0);
            previous = path;
        } else {
            out.extend_from_slice(path);
            let padded = (out.len() - start + 8) & !7;
            out.resize(start + padded, 0);
        }
    }
    blocks
}

fn push_extension(
    out: &mut Vec<u8>,
    headers: &mut Vec<u8>,
    signature: ExtensionSignature,
    data: &[u8],
) -> Result<(), Error> {
    let at = out.len();
    out.extend_from_slice(&signature);
    out.extend_from_slice(&offset_u32(data.len())?.to_be_bytes());
    headers.extend_from_slice(&out[at..]);
    out.extend_from_slice(data);
    Ok(())
}

fn offset_u32(offset: usize) -> Result<u32, Error> {
    u32::try_from(offset).map_err(|_| corrupt("index file is larger than 4 GiB"))
}

fn check(content: &IndexContent<'_>) -> Result<(), Error> {
    let is_foreign = |entry: &&EntryRef<'_>| entry.id.kind() != content.kind;
    if let Some(entry) = content.entries.iter().find(is_foreign) {
        let path = entry.path;
        return Err(corrupt(format!("object id of another hash: {path}")));
    }
    if let Some(entry) = content.entries.iter().find(|entry| entry.id.is_null()) {
        return Err(corrupt(format!(
            "cache entry has null sha1: {}",
            entry.path
        )));
    }
    let key = |entry: &EntryRef<'_>| (entry.path.to_owned(), entry.stage());
    let sorted = content
        .entries
        .is_sorted_by(|one, two| (one.path, one.stage()) < (two.path, two.stage()));
    if sorted {
        Ok(())
    } else {
        let wrong = content
            .entries
            .windows(2)
            .find(|pair| key(&pair[0]) >= key(&pair[1]));
        let path = wrong
            .map(|pair| pair[1].path.to_string())
            .unwrap_or_default();
        Err(corrupt(format!("unordered stage entries for '{path}'")))
    }
}
