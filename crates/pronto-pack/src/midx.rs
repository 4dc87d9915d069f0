//! Reads multi-pack-indexes (versions 1 and 2) in place: one table of ids for many packs. Format:
//! `gitformat-pack(5)`.
//!
//! Opening checks the header, the table of contents and the fan-out, and copies the names of the
//! packs. The tables are neither copied nor hashed.

pub mod chain;
pub mod write;

use std::ops::Range;
use std::path::{Path, PathBuf};

use pronto_hash::{Kind, ObjectId, Prefix, oid};
use pronto_io::error::IoContext as _;
use pronto_io::view::{FileView, ViewAccess};

use crate::chunks::{ChunkTable, digest};
use crate::error::{Error, ErrorKind};
use crate::fanout::{FANOUT_LEN, Fanout, FanoutTable, be_u32, be_u64, intact, unreadable};
use crate::idx::IndexPosition;
use crate::pack::PackOffset;
use crate::rev::format_id;

const SIGNATURE: [u8; 4] = *b"MIDX";
const HEADER_LEN: usize = 12;
const LARGE: u32 = 1 << 31;

/// The number of a pack in a multi-pack-index: an index of [`MultiIndex::pack_names`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct PackNumber(pub u32);

/// An open multi-pack-index. `Send + Sync`; no method takes a lock if the file is mapped.
#[derive(Debug)]
pub struct MultiIndex {
    path: PathBuf,
    view: FileView,
    fanout: Fanout,
    ids: FanoutTable,
    pack_names: Vec<String>,
    offsets_start: u64,
    /// The range of the large offsets, if the file contains this table.
    large_offsets: Option<Range<u64>>,
    /// The start of the reverse index (`RIDX`), which lists the rows in pseudo-pack order, if the
    /// file contains it.
    reverse_start: Option<u64>,
}

impl MultiIndex {
    /// Opens the multi-pack-index at `path`, whose ids are of `kind`.
    ///
    /// # Errors
    /// Fails with `ErrorKind::Io` if the file cannot be opened (with the source `NotFound` if it
    /// does not exist), and with `ErrorKind::Corrupt`, `ErrorKind::Truncated` or
    /// `ErrorKind::Unsupported` if it is not a valid multi-pack-index.
    pub fn open(
        path: impl AsRef<Path>,
        kind: Kind,
        access: ViewAccess,
    ) -> Result<MultiIndex, Error> {
        let path = path.as_ref();
        let view = FileView::open(path, access).context(ErrorKind::Io, "cannot open", path)?;
        MultiIndex::from_view(view, path, kind)
    }

    /// Does the same as [`open`](Self::open) for an open file with the path `path`.
    ///
    /// # Errors
    /// Fails as [`open`](Self::open) does.
    pub fn from_view(view: FileView, path: &Path, kind: Kind) -> Result<MultiIndex, Error> {
        MultiIndex::check(view, path, kind).map_err(|error| error.at_path(path))
    }

    fn check(view: FileView, path: &Path, kind: Kind) -> Result<MultiIndex, Error> {
        let (chunks, pack_count) = read_chunks(&view, kind)?;
        let required = |name: [u8; 4], what: &str| {
            chunks.find(name).ok_or_else(|| {
                let message =
                    format!("multi-pack-index required {what} chunk missing or corrupted");
                Error::new(ErrorKind::Corrupt, message)
            })
        };
        let names = required(*b"PNAM", "pack-name")?;
        let fanout_at = required(*b"OIDF", "OID fanout")?;
        let (ids, offsets) = (
            required(*b"OIDL", "OID lookup")?,
            required(*b"OOFF", "object offsets")?,
        );
        check_len(&fanout_at, FANOUT_LEN as u64, "OID fanout is of")?;
        let mut buffer = Vec::new();
        let bytes = view
            .read(fanout_at.start, FANOUT_LEN, &mut buffer)
            .map_err(unreadable)?;
        check_fanout(bytes)?;
        let fanout = Fanout::parse(bytes)?;
        let count = u64::from(fanout.len());
        let hash_len = kind.len_in_bytes() as u64;
        check_len(&ids, count * hash_len, "OID lookup chunk is")?;
        check_len(&offsets, count * 8, "object offset chunk is")?;
        let pack_names = read_names(&view, names, pack_count)?;
        intact(&view)?;
        Ok(MultiIndex {
            pack_names,
            path: path.to_owned(),
            fanout,
            ids: FanoutTable {
                start: ids.start,
                row_len: hash_len as u32,
                id_offset: 0,
                kind,
            },
            offsets_start: offsets.start,
            large_offsets: chunks.find(*b"LOFF"),
            reverse_start: chunks
                .find(*b"RIDX")
                .filter(|chunk| chunk.end - chunk.start == count * 4)
                .map(|chunk| chunk.start),
            view,
        })
    }

    /// Returns the path of the file.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Returns the view of the file.
    pub fn view(&self) -> &FileView {
        &self.view
    }

    /// Returns the version of the file format; zero if the file can no longer be read.
    pub fn version(&self) -> u8 {
        let mut buffer = Vec::new();
        let version = self.view.read(4, 1, &mut buffer).ok();
        version
            .and_then(|bytes| bytes.first().copied())
            .unwrap_or(0)
    }

    /// Returns the number of objects.
    pub fn len(&self) -> u32 {
        self.fanout.len()
    }

    /// Returns whether the multi-pack-index has no objects.
    pub fn is_empty(&self) -> bool {
        self.fanout.is_empty()
    }

    /// Returns the positions of the ids whose first byte is `first_byte`.
    pub fn bucket(&self, first_byte: u8) -> Range<u32> {
        self.fanout.bucket(first_byte)
    }

    /// Returns the checksum of the file, which is part of the names of files that belong to it.
    ///
    /// # Errors
    /// Fails with `ErrorKind::Io` if the file cannot be read.
    pub fn checksum(&self) -> Result<ObjectId, Error> {
        let len = self.ids.kind.len_in_bytes();
        let mut buffer = Vec::new();
        let at = self.view.len() - len as u64;
        match self.view.read(at, len, &mut buffer) {
            Ok(bytes) => Ok(ObjectId::from_bytes_or_panic(bytes)),
            Err(error) => Err(unreadable(error).at_path(&self.path).at_offset(at)),
        }
    }

    /// Returns whether the checksum matches the content. Reads the whole file.
    ///
    /// # Errors
    /// Fails as [`checksum`](Self::checksum) does.
    pub fn checksum_holds(&self) -> Result<bool, Error> {
        let len = self.view.len() - self.ids.kind.len_in_bytes() as u64;
        let found = digest(&self.view, len, self.ids.kind);
        let found = found.map_err(|error| unreadable(error).at_path(&self.path))?;
        Ok(found == self.checksum()?)
    }

    /// Returns whether the file contains a reverse index (`RIDX`) with the pseudo-pack order.
    pub fn has_order(&self) -> bool {
        self.reverse_start.is_some()
    }

    /// Returns the position of the object at `place` in pseudo-pack order; `None` if the file has
    /// no reverse index.
    ///
    /// # Errors
    /// Fails with `ErrorKind::Corrupt` if the place does not exist or the stored position is
    /// invalid, and with `ErrorKind::Io` if the file cannot be read.
    pub fn position_at_place(&self, place: u32) -> Result<Option<IndexPosition>, Error> {
        let Some(start) = self.reverse_start else {
            return Ok(None);
        };
        let position = IndexPosition(place);
        self.check_position(position)?;
        let at = start + u64::from(place) * 4;
        let mut buffer = Vec::new();
        let position = match self.view.read(at, 4, &mut buffer) {
            Ok(bytes) => IndexPosition(be_u32(bytes)),
            Err(error) => return Err(unreadable(error).at_path(&self.path).at_offset(at)),
        };
        self.intact()?;
        self.check_position(position)?;
        Ok(Some(position))
    }

    /// Returns the file names of the indexes of the covered packs, which end with `.idx`, without a
    /// directory.
    pub fn pack_names(&self) -> &[String] {
        &self.pack_names
    }

    /// Returns the position of `id`, if the multi-pack-index contains it.
    ///
    /// # Errors
    /// Fails with `ErrorKind::Io` if the file is not mapped and cannot be read, and with
    /// `ErrorKind::Truncated` if a mapped file was truncated.
    #[inline]
    pub fn find(&self, id: &oid) -> Result<Option<IndexPosition>, Error> {
        if id.kind() != self.ids.kind {
            return Ok(None);
        }
        match self.ids.search(&self.view, &self.fanout, id) {
            Ok(found) => Ok(found.ok().map(IndexPosition)),
            Err(error) => Err(error.at_path(&self.path)),
        }
    }

    /// Searches many ids in any order. Calls `found` with the position in `ids` and the position in
    /// the multi-pack-index of each id that exists. If the ids are ascending, each search starts at
    /// the result of the previous one; otherwise several ids are searched in parallel.
    ///
    /// # Errors
    /// Fails as [`find`](Self::find) does.
    pub fn find_many<'a, I>(
        &self,
        ids: I,
        mut found: impl FnMut(usize, IndexPosition),
    ) -> Result<(), Error>
    where
        I: IntoIterator<Item = &'a oid>,
        I::IntoIter: Clone,
    {
        let found = |place, row| {
            found(place, IndexPosition(row));
            Ok(())
        };
        let searched = (self.ids).search_many(&self.view, &self.fanout, ids, |_| (), found);
        searched.map_err(|error| error.at_path(&self.path))
    }

    /// Returns the positions of all ids that start with `prefix`.
    ///
    /// # Errors
    /// Fails as [`find`](Self::find) does.
    pub fn prefix(&self, prefix: &Prefix) -> Result<Range<IndexPosition>, Error> {
        let rows = self.ids.prefix(&self.view, &self.fanout, prefix);
        let rows = rows.map_err(|error| error.at_path(&self.path))?;
        Ok(IndexPosition(rows.start)..IndexPosition(rows.end))
    }

    /// Returns the id at `position`.
    ///
    /// # Errors
    /// Fails with `ErrorKind::Corrupt` if the position does not exist, and with `ErrorKind::Io` if
    /// the file cannot be read.
    pub fn id_at(&self, position: IndexPosition) -> Result<ObjectId, Error> {
        self.check_position(position)?;
        let id = self.ids.id(&self.view, position.0);
        id.map_err(|error| error.at_path(&self.path))
    }

    /// Returns the pack that contains the object at `position`, and the offset of its entry.
    ///
    /// # Errors
    /// Fails with `ErrorKind::Corrupt` if the position does not exist or the stored values are out
    /// of bounds, and with `ErrorKind::Io` if the file cannot be read.
    pub fn location_at(&self, position: IndexPosition) -> Result<(PackNumber, PackOffset), Error> {
        self.check_position(position)?;
        let at = self.offsets_start + u64::from(position.0) * 8;
        let mut buffer = Vec::new();
        let bytes = self
            .view
            .read(at, 8, &mut buffer)
            .map_err(|error| unreadable(error).at_path(&self.path).at_offset(at))?;
        let (pack, small) = (be_u32(bytes), be_u32(&bytes[4..]));
        self.intact()?;
        if pack as usize >= self.pack_names.len() {
            return Err(self.corrupt("bad pack-int-id", at));
        }
        let offset = match &self.large_offsets {
            Some(large) if small & LARGE != 0 => self.large_offset(large, small & !LARGE)?,
            _ => u64::from(small),
        };
        Ok((PackNumber(pack), PackOffset(offset)))
    }

    fn large_offset(&self, large: &Range<u64>, slot: u32) -> Result<u64, Error> {
        let at = large.start + u64::from(slot) * 8;
        if at + 8 > large.end {
            return Err(self.corrupt("multi-pack-index large offset out of bounds", at));
        }
        let mut buffer = Vec::new();
        match self.view.read(at, 8, &mut buffer) {
            Ok(bytes) if be_u64(bytes) <= i64::MAX as u64 => {
                let offset = be_u64(bytes);
                self.intact()?;
                Ok(offset)
            }
            Ok(_) => Err(self.corrupt("multi-pack-index large offset out of bounds", at)),
            Err(error) => Err(unreadable(error).at_path(&self.path).at_offset(at)),
        }
    }

    fn intact(&self) -> Result<(), Error> {
        intact(&self.view).map_err(|error| error.at_path(&self.path))
    }

    fn check_position(&self, position: IndexPosition) -> Result<(), Error> {
        match position.0 < self.len() {
            true => Ok(()),
            false => Err(self.corrupt("position is out of range in the multi-pack-index", 0)),
        }
    }

    #[cold]
    fn corrupt(&self, message: &str, at: u64) -> Error {
        Error::new(ErrorKind::Corrupt, message)
            .at_path(&self.path)
            .at_offset(at)
    }
}

/// Checks that the counts of the fan-out are in ascending order.
fn check_fanout(bytes: &[u8]) -> Result<(), Error> {
    let mut previous = 0;
    for (at, count) in bytes.chunks_exact(4).map(be_u32).enumerate() {
        if previous > count {
            let before = at.saturating_sub(1);
            let message = format!(
                "oid fanout out of order: fanout[{before}] = {previous:x} > {count:x} = fanout[{at}]"
            );
            return Err(Error::new(ErrorKind::Corrupt, message));
        }
        previous = count;
    }
    Ok(())
}

fn read_chunks(view: &FileView, kind: Kind) -> Result<(ChunkTable, u32), Error> {
    let mut buffer = Vec::new();
    let header = view
        .read(0, HEADER_LEN, &mut buffer)
        .map_err(|_| Error::new(ErrorKind::NoHeader, "multi-pack-index file is too small"))?;
    let (signature, expected) = (be_u32(header), u32::from_be_bytes(SIGNATURE));
    if signature != expected {
        let message = format!(
            "multi-pack-index signature 0x{signature:08x} does not match signature 0x{expected:08x}"
        );
        return Err(Error::new(ErrorKind::Corrupt, message).at_offset(0));
    }
    if !matches!(header[4], 1 | 2) {
        let message = format!("multi-pack-index version {} not recognized", header[4]);
        return Err(Error::new(ErrorKind::Unsupported, message).at_offset(4));
    }
    let hash = format_id(kind) as u8;
    if header[5] != hash {
        let message = format!(
            "multi-pack-index hash version {} does not match version {hash}",
            header[5]
        );
        return Err(Error::new(ErrorKind::OtherHash, message).at_offset(5));
    }
    let (count, pack_count) = (header[6], be_u32(&header[8..]));
    let chunks = ChunkTable::read(view, HEADER_LEN as u64, count, kind.len_in_bytes());
    let chunks = chunks.map_err(|fault| Error::new(ErrorKind::Truncated, fault.to_string()))?;
    Ok((chunks, pack_count))
}

fn check_len(chunk: &Range<u64>, expected: u64, what: &str) -> Result<(), Error> {
    if chunk.end - chunk.start == expected {
        return Ok(());
    }
    let message = format!("multi-pack-index {what} the wrong size");
    Err(Error::new(ErrorKind::Corrupt, message).at_offset(chunk.start))
}

/// Reads the pack names, each terminated by a NUL. The names must not contain a path, because they
/// are joined to a directory.
fn read_names(view: &FileView, chunk: Range<u64>, count: u32) -> Result<Vec<String>, Error> {
    let corrupt = |message: &str| Error::new(ErrorKind::Corrupt, message).at_offset(chunk.start);
    let len = usize::try_from(chunk.end - chunk.start)
        .map_err(|_| corrupt("multi-pack-index pack-name chunk is too large"))?;
    let mut buffer = Vec::new();
    let bytes = view
        .read(chunk.start, len, &mut buffer)
        .map_err(|error| unreadable(error).at_offset(chunk.start))?;
    let mut names = Vec::new();
    let mut rest = bytes;
    for _ in 0..count {
        let Some(end) = rest.iter().position(|byte| *byte == 0) else {
            return Err(corrupt("multi-pack-index pack-name chunk is too short"));
        };
        let name = std::str::from_utf8(&rest[..end])
            .ok()
            .filter(|name| !name.contains('/') && name.ends_with(".idx"))
            .ok_or_else(|| corrupt("multi-pack-index has an invalid pack name"))?;
        names.push(name.to_owned());
        rest = rest.get(end + 1..).unwrap_or_default();
    }
    Ok(names)
}
