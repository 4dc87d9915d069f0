//! Multi-pack-indexes (versions 1 and 2) read in place: one table of ids for many packs. Format:
//! `gitformat-pack(5)`.
//!
//! Opening checks the header, the table of chunks and the fan-out, and takes over the names of the
//! packs; the tables are neither copied nor summed.

use std::ops::Range;
use std::path::{Path, PathBuf};

use pronto_hash::{Kind, ObjectId, Prefix, oid};
use pronto_io::error::IoContext as _;
use pronto_io::view::{Access, View};

use crate::error::{Error, ErrorKind};
use crate::fanout::{FANOUT_LEN, Fanout, Table, be_u32, be_u64, intact, unreadable};
use crate::idx::IndexPosition;
use crate::pack::PackOffset;

const SIGNATURE: [u8; 4] = *b"MIDX";
const HEADER_LEN: usize = 12;
const CHUNK_ROW_LEN: usize = 12;
const LARGE: u32 = 1 << 31;

/// The number of a pack in a multi-pack-index: a place in [`MultiIndex::pack_names`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct PackNumber(pub u32);

/// An open multi-pack-index. `Send + Sync`; no method takes a lock while the file is mapped.
#[derive(Debug)]
pub struct MultiIndex {
    path: PathBuf,
    view: View,
    fanout: Fanout,
    ids: Table,
    pack_names: Vec<String>,
    offsets_start: u64,
    large_offsets: Range<u64>,
}

impl MultiIndex {
    /// Opens the multi-pack-index at `path`, whose ids are of `kind`.
    ///
    /// # Errors
    /// `Io` when it cannot be opened (the source says `NotFound` when there is none), `Corrupt`,
    /// `Truncated` or `Unsupported` when it is not one.
    pub fn open(path: impl AsRef<Path>, kind: Kind, access: Access) -> Result<MultiIndex, Error> {
        let path = path.as_ref();
        let view = View::open(path, access).context(ErrorKind::Io, "cannot open", path)?;
        MultiIndex::from_view(view, path, kind)
    }

    /// As [`open`](Self::open), of a file that is open already and was found at `path`.
    ///
    /// # Errors
    /// As [`open`](Self::open).
    pub fn from_view(view: View, path: &Path, kind: Kind) -> Result<MultiIndex, Error> {
        MultiIndex::check(view, path, kind).map_err(|error| error.at_path(path))
    }

    fn check(view: View, path: &Path, kind: Kind) -> Result<MultiIndex, Error> {
        let (chunks, pack_count) = read_chunks(&view, kind)?;
        let required = |id: &'static [u8; 4]| {
            chunks.find(id).ok_or_else(|| {
                let name = String::from_utf8_lossy(id);
                let message = format!("multi-pack-index lacks the required chunk {name}");
                Error::new(ErrorKind::Corrupt, message)
            })
        };
        let fanout_at = required(b"OIDF")?;
        check_len(&fanout_at, FANOUT_LEN as u64)?;
        let mut buffer = Vec::new();
        let bytes = view
            .read(fanout_at.start, FANOUT_LEN, &mut buffer)
            .map_err(unreadable)?;
        let fanout = Fanout::parse(bytes)?;
        let count = u64::from(fanout.len());
        let hash_len = kind.len_in_bytes() as u64;
        let (ids, offsets) = (required(b"OIDL")?, required(b"OOFF")?);
        check_len(&ids, count * hash_len)?;
        check_len(&offsets, count * 8)?;
        let names = required(b"PNAM")?;
        let large_offsets = chunks.find(b"LOFF").unwrap_or(0..0);
        let pack_names = read_names(&view, names, pack_count)?;
        intact(&view)?;
        Ok(MultiIndex {
            pack_names,
            path: path.to_owned(),
            view,
            fanout,
            ids: Table {
                start: ids.start,
                row_len: hash_len as u32,
                id_offset: 0,
                kind,
            },
            offsets_start: offsets.start,
            large_offsets,
        })
    }

    /// Where it was found.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// The file as it was opened.
    pub fn view(&self) -> &View {
        &self.view
    }

    /// How many objects it lists.
    pub fn len(&self) -> u32 {
        self.fanout.len()
    }

    /// Whether it lists no object.
    pub fn is_empty(&self) -> bool {
        self.fanout.is_empty()
    }

    /// The names of the packs it covers: those of their indexes, ending in `.idx`, without any
    /// directory.
    pub fn pack_names(&self) -> &[String] {
        &self.pack_names
    }

    /// The position of `id`, if it is listed.
    ///
    /// # Errors
    /// `Io` when the file is not mapped and cannot be read, `Truncated` when it was cut short under
    /// its map.
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

    /// The positions of all ids that start with `prefix`.
    ///
    /// # Errors
    /// As [`find`](Self::find).
    pub fn prefix(&self, prefix: &Prefix) -> Result<Range<IndexPosition>, Error> {
        let rows = self.ids.prefix(&self.view, &self.fanout, prefix);
        let rows = rows.map_err(|error| error.at_path(&self.path))?;
        Ok(IndexPosition(rows.start)..IndexPosition(rows.end))
    }

    /// The id at `position`.
    ///
    /// # Errors
    /// `Corrupt` when there is no such position, `Io` when the file cannot be read.
    pub fn id_at(&self, position: IndexPosition) -> Result<ObjectId, Error> {
        self.check_position(position)?;
        let id = self.ids.id(&self.view, position.0);
        id.map_err(|error| error.at_path(&self.path))
    }

    /// The pack that holds the object at `position`, and where in it.
    ///
    /// # Errors
    /// `Corrupt` when there is no such position or what stands there is out of bounds, `Io` when
    /// the file cannot be read.
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
        let offset = if small & LARGE != 0 && !self.large_offsets.is_empty() {
            self.large_offset(small & !LARGE)?
        } else {
            u64::from(small)
        };
        Ok((PackNumber(pack), PackOffset(offset)))
    }

    fn large_offset(&self, slot: u32) -> Result<u64, Error> {
        let at = self.large_offsets.start + u64::from(slot) * 8;
        if at + 8 > self.large_offsets.end {
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
            false => Err(self.corrupt("no such position in the multi-pack-index", 0)),
        }
    }

    #[cold]
    fn corrupt(&self, message: &str, at: u64) -> Error {
        Error::new(ErrorKind::Corrupt, message)
            .at_path(&self.path)
            .at_offset(at)
    }
}

/// The table of chunks: where each begins and ends.
struct Chunks(Vec<([u8; 4], Range<u64>)>);

impl Chunks {
    fn find(&self, id: &[u8; 4]) -> Option<Range<u64>> {
        let found = self.0.iter().find(|(other, _)| other == id)?;
        Some(found.1.clone())
    }
}

fn read_chunks(view: &View, kind: Kind) -> Result<(Chunks, u32), Error> {
    let mut buffer = Vec::new();
    let header = view
        .read(0, HEADER_LEN, &mut buffer)
        .map_err(|_| Error::new(ErrorKind::Truncated, "multi-pack-index file is too small"))?;
    if header[..4] != SIGNATURE {
        let message = "multi-pack-index signature does not match";
        return Err(Error::new(ErrorKind::Corrupt, message).at_offset(0));
    }
    if !matches!(header[4], 1 | 2) {
        let message = format!("multi-pack-index version {} not recognized", header[4]);
        return Err(Error::new(ErrorKind::Unsupported, message).at_offset(4));
    }
    let hash = match kind {
        Kind::Sha256 => 2,
        _ => 1,
    };
    if header[5] != hash {
        let message = "multi-pack-index hash version does not match the repository's";
        return Err(Error::new(ErrorKind::Corrupt, message).at_offset(5));
    }
    if header[7] != 0 {
        let message = "multi-pack-index is based on others";
        return Err(Error::new(ErrorKind::Unsupported, message).at_offset(7));
    }
    let (chunk_count, pack_count) = (usize::from(header[6]), be_u32(&header[8..]));
    let table_len = (chunk_count + 1) * CHUNK_ROW_LEN;
    let table = view
        .read(HEADER_LEN as u64, table_len, &mut buffer)
        .map_err(|_| Error::new(ErrorKind::Truncated, "multi-pack-index file is too small"))?;
    let end = view.len().saturating_sub(kind.len_in_bytes() as u64);
    let mut chunks = Vec::with_capacity(chunk_count);
    let mut rows = table.chunks_exact(CHUNK_ROW_LEN).peekable();
    let mut last = (HEADER_LEN + table_len) as u64;
    while let (Some(row), Some(next)) = (rows.next(), rows.peek()) {
        let (start, stop) = (be_u64(&row[4..]), be_u64(&next[4..]));
        if start < last || stop < start || stop > end {
            let message = "improper chunk offset in multi-pack-index";
            return Err(Error::new(ErrorKind::Corrupt, message).at_offset(start));
        }
        last = stop;
        chunks.push(([row[0], row[1], row[2], row[3]], start..stop));
    }
    Ok((Chunks(chunks), pack_count))
}

fn check_len(chunk: &Range<u64>, expected: u64) -> Result<(), Error> {
    if chunk.end - chunk.start == expected {
        return Ok(());
    }
    let message = "multi-pack-index chunk is of the wrong size";
    Err(Error::new(ErrorKind::Corrupt, message).at_offset(chunk.start))
}

/// The names, each ended by a NUL. They are joined to a directory, so they may not lead elsewhere.
fn read_names(view: &View, chunk: Range<u64>, count: u32) -> Result<Vec<String>, Error> {
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
            .ok_or_else(|| corrupt("multi-pack-index names a pack that cannot be"))?;
        names.push(name.to_owned());
        rest = &rest[end + 1..];
    }
    Ok(names)
}
