//! Reachability bitmaps (`.bitmap`) of a pack or a multi-pack-index. Format: `gitformat-bitmap(5)`.
//!
//! A bit is the position of an object in the pack, or in the pseudo-pack order of a
//! multi-pack-index. Opening checks the header and the type bitmaps. If the file has a lookup
//! table, nothing else is read; otherwise the entries are scanned once.

mod bits;
pub mod write;

use std::path::{Path, PathBuf};

use gix_object::Kind as ObjectKind;
use pronto_hash::{Kind, ObjectId};
use pronto_io::error::IoContext as _;
use pronto_io::ewah::Ewah;
use pronto_io::view::{FileView, ViewAccess};

use crate::error::{Error, ErrorKind};
use crate::fanout::{be_u32, be_u64, intact, unreadable};
use crate::idx::IndexPosition;

pub use bits::Bits;

const SIGNATURE: [u8; 4] = *b"BITM";
const VERSION: u16 = 1;
const FULL_DAG: u16 = 0x1;
const HASH_CACHE: u16 = 0x4;
const LOOKUP_TABLE: u16 = 0x10;
const PSEUDO_MERGES: u16 = 0x20;
/// The length of the header of an entry, before its bitmap.
const ENTRY_HEADER_LEN: usize = 6;
const TABLE_ROW_LEN: usize = 16;
/// The largest XOR offset: the distance to the entry with which an entry is combined.
const FARTHEST: usize = 160;

/// Continues the name hash `before` with the bytes of `name`, as the name-hash cache stores it. At
/// the start of a name, `before` is zero.
pub fn name_hash(before: u32, name: &[u8]) -> u32 {
    // Skips the bytes that C classifies as whitespace.
    let counted = name
        .iter()
        .filter(|byte| !matches!(byte, b'\t'..=b'\r' | b' '));
    counted.fold(before, |hash, byte| {
        (hash >> 2).wrapping_add(u32::from(*byte) << 24)
    })
}

/// The position of a commit's bitmap, and the bitmap with which it is combined by XOR.
#[derive(Clone, Copy, Debug)]
struct Entry {
    commit: u32,
    start: usize,
    /// The number of the XOR base among the entries.
    base: Option<u32>,
}

/// An open bitmap file. `Send + Sync`; no method takes a lock.
#[derive(Debug)]
pub struct BitmapFile {
    path: PathBuf,
    view: FileView,
    /// The content of the file, if it is not mapped.
    copy: Vec<u8>,
    kind: Kind,
    object_count: u32,
    checksum: ObjectId,
    kinds: [Bits; 4],
    entry_count: u32,
    /// The entries, sorted by commit; empty if the file has a lookup table.
    entries: Vec<Entry>,
    /// The numbers of `entries` in the order of the file.
    in_file: Vec<u32>,
    table: Option<usize>,
    names: Option<usize>,
    /// The end of the entries.
    end: usize,
}

impl BitmapFile {
    /// Opens the bitmap file at `path` of a pack or multi-pack-index with `object_count` objects
    /// whose ids are of `kind`.
    ///
    /// # Errors
    /// Fails with `ErrorKind::Io` if the file cannot be opened (with the source `NotFound` if it
    /// does not exist), and with `ErrorKind::Corrupt`, `ErrorKind::Truncated` or
    /// `ErrorKind::Unsupported` if it is not a valid bitmap file.
    pub fn open(
        path: impl AsRef<Path>,
        kind: Kind,
        object_count: u32,
        access: ViewAccess,
    ) -> Result<BitmapFile, Error> {
        let path = path.as_ref();
        let view = FileView::open(path, access).context(ErrorKind::Io, "cannot open", path)?;
        BitmapFile::from_view(view, path, kind, object_count)
    }

    /// Does the same as [`open`](Self::open) for an open file with the path `path`.
    ///
    /// # Errors
    /// Fails as [`open`](Self::open) does.
    pub fn from_view(
        view: FileView,
        path: &Path,
        kind: Kind,
        object_count: u32,
    ) -> Result<BitmapFile, Error> {
        Self::check(view, path, kind, object_count).map_err(|error| error.at_path(path))
    }

    fn check(
        view: FileView,
        path: &Path,
        kind: Kind,
        object_count: u32,
    ) -> Result<BitmapFile, Error> {
        let mut copy = Vec::new();
        if view.bytes().is_none() {
            let len = usize::try_from(view.len())
                .map_err(|_| Error::new(ErrorKind::Limit, "bitmap file is too large"))?;
            view.read(0, len, &mut copy).map_err(unreadable)?;
        }
        let mut bitmaps = BitmapFile {
            path: path.to_owned(),
            kind,
            object_count,
            checksum: ObjectId::null(kind),
            kinds: std::array::from_fn(|_| Bits::new(0)),
            entry_count: 0,
            entries: Vec::new(),
            in_file: Vec::new(),
            table: None,
            names: None,
            end: 0,
            view,
            copy,
        };
        let start = bitmaps.read_header()?;
        let start = bitmaps.read_kinds(start)?;
        if bitmaps.table.is_none() {
            bitmaps.read_entries(start)?;
        }
        intact(&bitmaps.view)?;
        Ok(bitmaps)
    }

    fn bytes(&self) -> &[u8] {
        self.view.bytes().unwrap_or(&self.copy)
    }

    /// Reads the header and finds the sections at the end of the file. Returns the start of the
    /// entries.
    fn read_header(&mut self) -> Result<usize, Error> {
        let hash_len = self.kind.len_in_bytes();
        let bytes = self.bytes();
        let header_len = 12 + hash_len;
        let corrupt = |message: &str| Error::new(ErrorKind::Corrupt, message);
        if bytes.len() < header_len + hash_len {
            let message = "corrupted bitmap index (too small)";
            return Err(Error::new(ErrorKind::Truncated, message));
        }
        if bytes[..4] != SIGNATURE {
            return Err(corrupt("corrupted bitmap index file (wrong header)").at_offset(0));
        }
        let word = |at: usize| u16::from_be_bytes([bytes[at], bytes[at + 1]]);
        if word(4) != VERSION {
            let message = format!("unsupported version '{}' for bitmap index file", word(4));
            return Err(Error::new(ErrorKind::Unsupported, message).at_offset(4));
        }
        let flags = word(6);
        if flags & FULL_DAG == 0 {
            let message =
                "unsupported options for bitmap index file (Git requires BITMAP_OPT_FULL_DAG)";
            return Err(Error::new(ErrorKind::Unsupported, message).at_offset(6));
        }
        let entry_count = be_u32(&bytes[8..]);
        let mut end = bytes.len() - hash_len;
        let mut section = |len: usize, message: &str| {
            end = end
                .checked_sub(len)
                .filter(|end| *end >= header_len)
                .ok_or_else(|| corrupt(message))?;
            Ok::<usize, Error>(end)
        };
        let (mut names, mut table) = (None, None);
        if flags & HASH_CACHE != 0 {
            let message = "corrupted bitmap index file (too short to fit hash cache)";
            names = Some(section(self.object_count as usize * 4, message)?);
        }
        if flags & LOOKUP_TABLE != 0 {
            let message = "corrupted bitmap index file (too short to fit lookup table)";
            table = Some(section(entry_count as usize * TABLE_ROW_LEN, message)?);
        }
        if flags & PSEUDO_MERGES != 0 {
            // The size of the pseudo-merges is stored at their end; their content is not needed.
            let message =
                "corrupted bitmap index file (too short to fit pseudo-merge table header)";
            let at = end.checked_sub(8).ok_or_else(|| corrupt(message))?;
            let len = usize::try_from(be_u64(&bytes[at..])).unwrap_or(usize::MAX);
            let mut section = |len: usize| {
                end = end.checked_sub(len).filter(|end| *end >= header_len)?;
                Some(end)
            };
            let message = "corrupted bitmap index file (too short to fit pseudo-merge extension)";
            section(len).ok_or_else(|| corrupt(message))?;
        }
        let checksum = ObjectId::from_bytes_or_panic(&bytes[12..header_len]);
        (self.names, self.table, self.end) = (names, table, end);
        (self.entry_count, self.checksum) = (entry_count, checksum);
        Ok(header_len)
    }

    fn read_kinds(&mut self, start: usize) -> Result<usize, Error> {
        let mut rest = &self.bytes()[start..self.end];
        let mut kinds = Vec::with_capacity(4);
        for _ in 0..4 {
            let at = (self.end - rest.len()) as u64;
            let parsed = Ewah::parse(&mut rest, self.object_count.into());
            let message = "failed to load bitmap of a kind of objects (corrupted?)";
            let parsed =
                parsed.ok_or_else(|| Error::new(ErrorKind::Corrupt, message).at_offset(at))?;
            let mut bits = Bits::new(self.object_count);
            parsed.or_into(bits.words_mut());
            bits.trim();
            kinds.push(bits);
        }
        let start = self.end - rest.len();
        if let Ok(kinds) = kinds.try_into() {
            self.kinds = kinds;
        }
        Ok(start)
    }

    /// Scans the entries and records their positions.
    fn read_entries(&mut self, start: usize) -> Result<(), Error> {
        let mut rest = &self.bytes()[start..self.end];
        let mut entries: Vec<Entry> = Vec::new();
        for number in 0..self.entry_count {
            let start = self.end - rest.len();
            let broken =
                |message: String| Error::new(ErrorKind::Corrupt, message).at_offset(start as u64);
            let Some((header, after)) = rest.split_first_chunk::<ENTRY_HEADER_LEN>() else {
                return Err(broken(format!(
                    "corrupt ewah bitmap: truncated header for entry {number}"
                )));
            };
            let (commit, distance) = (be_u32(header), usize::from(header[4]));
            if commit >= self.object_count {
                return Err(broken(format!(
                    "corrupt ewah bitmap: commit index {commit} out of range"
                )));
            }
            if distance > FARTHEST || distance > number as usize {
                return Err(broken("corrupted bitmap pack index".into()));
            }
            rest = after;
            if Ewah::parse(&mut rest, self.object_count.into()).is_none() {
                return Err(broken(format!(
                    "failed to load bitmap for entry {number} (corrupted?)"
                )));
            }
            let base = (distance > 0).then(|| number - distance as u32);
            entries.push(Entry {
                commit,
                start,
                base,
            });
        }
        let mut order: Vec<u32> = (0..entries.len() as u32).collect();
        order.sort_by_key(|number| entries[*number as usize].commit);
        self.in_file = order;
        self.entries = entries;
        Ok(())
    }

    /// Returns the path of the file.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Returns the checksum of the pack or the multi-pack-index to which the bitmaps belong.
    pub fn checksum(&self) -> ObjectId {
        self.checksum
    }

    /// Returns the number of commits that have a bitmap.
    pub fn len(&self) -> u32 {
        self.entry_count
    }

    /// Returns whether no commit has a bitmap.
    pub fn is_empty(&self) -> bool {
        self.entry_count == 0
    }

    /// Returns whether the file has a lookup table, with which a bitmap is found without a scan.
    pub fn has_lookup_table(&self) -> bool {
        self.table.is_some()
    }

    /// Returns the objects of one type.
    pub fn of_kind(&self, kind: ObjectKind) -> &Bits {
        match kind {
            ObjectKind::Commit => &self.kinds[0],
            ObjectKind::Tree => &self.kinds[1],
            ObjectKind::Blob => &self.kinds[2],
            ObjectKind::Tag => &self.kinds[3],
        }
    }

    /// Returns the name hash of the object at `position` of the index, if the file has a name-hash
    /// cache.
    pub fn name_hash(&self, position: IndexPosition) -> Option<u32> {
        let at = self.names.filter(|_| position.0 < self.object_count)?;
        Some(be_u32(&self.bytes()[at + position.0 as usize * 4..]))
    }

    /// Returns all objects that are reachable from the commit at `position` of the index, including
    /// the commit; `None` if the commit has no bitmap.
    ///
    /// Costs decompressing the bitmap and its XOR bases.
    ///
    /// # Errors
    /// Fails with `ErrorKind::Corrupt` if the stored bitmap is malformed, and with
    /// `ErrorKind::Truncated` if the file was truncated.
    pub fn reachable_from(&self, position: IndexPosition) -> Result<Option<Bits>, Error> {
        let Some(mut entry) = self.find(position)? else {
            return Ok(None);
        };
        let mut bits = Bits::new(self.object_count);
        loop {
            self.xor(entry.start, bits.words_mut())?;
            let Some(base) = entry.base else {
                break;
            };
            let next = self.entry(base)?;
            if next.start >= entry.start {
                return Err(self.broken(
                    "corrupt bitmap: xor chain does not end at an earlier entry",
                    entry.start,
                ));
            }
            entry = next;
        }
        bits.trim();
        intact(&self.view).map_err(|error| error.at_path(&self.path))?;
        Ok(Some(bits))
    }

    fn xor(&self, start: usize, words: &mut [u64]) -> Result<(), Error> {
        let entry = self.bytes().get(start..self.end).unwrap_or_default();
        let mut rest = entry.get(ENTRY_HEADER_LEN..).unwrap_or_default();
        let bitmap = Ewah::parse(&mut rest, self.object_count.into());
        let message = "failed to load bitmap for commit (corrupted?)";
        bitmap
            .ok_or_else(|| self.broken(message, start))?
            .xor_into(words);
        Ok(())
    }

    fn find(&self, position: IndexPosition) -> Result<Option<Entry>, Error> {
        let (mut low, mut high) = (0, self.entry_count);
        while low < high {
            let middle = low + (high - low) / 2;
            let number = match self.table {
                Some(_) => middle,
                None => self.in_file[middle as usize],
            };
            let entry = self.entry(number)?;
            match entry.commit.cmp(&position.0) {
                std::cmp::Ordering::Less => low = middle + 1,
                std::cmp::Ordering::Equal => return Ok(Some(entry)),
                std::cmp::Ordering::Greater => high = middle,
            }
        }
        Ok(None)
    }

    /// Returns the entry `number`: in the order of the lookup table if there is one, otherwise in
    /// the order of the file.
    fn entry(&self, number: u32) -> Result<Entry, Error> {
        let Some(table) = self.table else {
            return Ok(self.entries[number as usize]);
        };
        let at = table + number as usize * TABLE_ROW_LEN;
        if number >= self.entry_count {
            let message = "corrupt bitmap lookup table: xor position out of range";
            return Err(self.broken(message, at));
        }
        let row = &self.bytes()[at..at + TABLE_ROW_LEN];
        let start = usize::try_from(be_u64(&row[4..])).unwrap_or(usize::MAX);
        if start.saturating_add(ENTRY_HEADER_LEN) > self.end {
            let message = "corrupt bitmap lookup table: offset out of range";
            return Err(self.broken(message, at));
        }
        Ok(Entry {
            commit: be_u32(row),
            start,
            base: Some(be_u32(&row[12..])).filter(|base| *base != u32::MAX),
        })
    }

    #[cold]
    fn broken(&self, message: &str, at: usize) -> Error {
        Error::new(ErrorKind::Corrupt, message)
            .at_path(&self.path)
            .at_offset(at as u64)
    }
}
