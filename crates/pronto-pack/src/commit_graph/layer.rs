//! A layer of a commit-graph: one file with its header and its chunks.

use std::ops::Range;
use std::path::{Path, PathBuf};

use pronto_hash::{Kind, ObjectId, oid};
use pronto_io::view::FileView;

use super::bloom::Settings;
use super::{ChangedPaths, Options, Remark};
use crate::chunks::{CHUNK_ROW_LEN, ChunkTable, digest};
use crate::error::{Error, ErrorKind};
use crate::fanout::{FANOUT_LEN, Fanout, FanoutTable, be_u32, be_u64, intact, unreadable};
use crate::rev::format_id;

pub(super) const SIGNATURE: [u8; 4] = *b"CGPH";
pub(super) const VERSION: u8 = 1;
pub(super) const HEADER_LEN: usize = 8;
/// The length of a row of `CDAT` after the id of the tree.
pub(super) const ROW_REST_LEN: usize = 16;
/// The length of the header of the chunk of Bloom filters (`BDAT`).
const BLOOM_HEADER_LEN: u64 = 12;

pub(super) const NO_PARENT: u32 = 0x7000_0000;
pub(super) const MORE_PARENTS: u32 = 1 << 31;
pub(super) const LAST_EDGE: u32 = 1 << 31;
pub(super) const OVERFLOW: u32 = 1 << 31;

/// Returns the number of a hash function in the file formats.
pub(super) fn hash_version(kind: Kind) -> u8 {
    format_id(kind) as u8
}

/// An open layer. Row numbers are relative to the layer; stored positions also count the layers
/// below.
#[derive(Debug)]
pub(super) struct GraphLayer {
    pub(super) path: PathBuf,
    /// The checksum of the file, which is also part of its name.
    pub(super) id: ObjectId,
    /// The number of commits in the layers below.
    pub(super) below: u32,
    /// The index of the object directory that contains the file.
    pub(super) directory: usize,
    view: FileView,
    fanout: Fanout,
    ids: FanoutTable,
    rows: u64,
    /// The position of the generation data, if they exist and may be used.
    pub(super) generations: Option<u64>,
    /// Whether other layers have no generation data, so that those of this layer must not be
    /// compared.
    pub(super) levels_only: bool,
    overflow: Range<u64>,
    edges: Range<u64>,
    bases: Option<Range<u64>>,
    pub(super) bloom: Option<Bloom>,
}

/// The positions of the changed-path filters.
#[derive(Clone, Debug)]
pub(super) struct Bloom {
    indexes: u64,
    data: Range<u64>,
    pub(super) settings: Settings,
}

/// A row of the commit data (`CDAT`).
#[derive(Clone, Copy, Debug)]
pub(super) struct CommitRow {
    pub(super) tree: ObjectId,
    pub(super) first_parent: u32,
    pub(super) second_parent: u32,
    pub(super) level: u32,
    pub(super) time: u64,
}

impl GraphLayer {
    /// Parses `view` as a layer of a commit-graph, and adds problems to `remarks`. The cost does
    /// not depend on the size.
    pub(super) fn parse(
        view: FileView,
        path: &Path,
        options: &Options,
        remarks: &mut Vec<Remark>,
    ) -> Option<GraphLayer> {
        match Self::check(view, path, options, remarks) {
            Ok(layer) => Some(layer),
            Err(problems) => {
                remarks.extend(problems);
                None
            }
        }
    }

    fn check(
        view: FileView,
        path: &Path,
        options: &Options,
        remarks: &mut Vec<Remark>,
    ) -> Result<GraphLayer, Vec<Remark>> {
        let kind = options.kind;
        let hash_len = kind.len_in_bytes();
        let chunks = read_chunks(&view, kind).map_err(|problem| vec![problem])?;
        let fanout = read_fanout(&view, &chunks)?;
        let count = u64::from(fanout.len());
        let table = |name: [u8; 4], row_len: usize, wrong: Remark, missing: Remark| {
            let Some(chunk) = chunks.find(name) else {
                return Err(vec![missing]);
            };
            match (chunk.end - chunk.start) / row_len as u64 == count {
                true => Ok(chunk.start),
                false => Err(vec![wrong, missing]),
            }
        };
        let ids = table(*b"OIDL", hash_len, Remark::IdsSize, Remark::NoIds)?;
        let rows = table(
            *b"CDAT",
            hash_len + ROW_REST_LEN,
            Remark::CommitsSize,
            Remark::NoCommits,
        )?;
        let generations = read_generations(&chunks, count, options, remarks);
        let bloom = read_bloom(&view, &chunks, count, options, remarks);
        let mut buffer = Vec::new();
        let trailer = view.len() - hash_len as u64;
        let id = view.read(trailer, hash_len, &mut buffer).map_err(|error| {
            let reason = error.to_string();
            vec![Remark::Checksum { reason }]
        })?;
        Ok(GraphLayer {
            path: path.to_owned(),
            id: ObjectId::from_bytes_or_panic(id),
            below: 0,
            directory: 0,
            fanout,
            ids: FanoutTable {
                start: ids,
                row_len: hash_len as u32,
                id_offset: 0,
                kind,
            },
            rows,
            generations,
            levels_only: false,
            overflow: chunks.find(*b"GDO2").unwrap_or(0..0),
            edges: chunks.find(*b"EDGE").unwrap_or(0..0),
            bases: chunks.find(*b"BASE"),
            bloom,
            view,
        })
    }

    /// Returns the number of commits of this layer.
    pub(super) fn len(&self) -> u32 {
        self.fanout.len()
    }

    pub(super) fn kind(&self) -> Kind {
        self.ids.kind
    }

    #[inline]
    pub(super) fn find(&self, id: &oid) -> Result<Option<u32>, Error> {
        match self.ids.search(&self.view, &self.fanout, id) {
            Ok(found) => Ok(found.ok()),
            Err(error) => Err(error.at_path(&self.path)),
        }
    }

    /// Returns the id in `row`, which must exist in this layer.
    pub(super) fn id_at(&self, row: u32) -> Result<ObjectId, Error> {
        let id = self.ids.id(&self.view, row);
        id.map_err(|error| error.at_path(&self.path))
    }

    /// Decodes `row`, which must exist in this layer.
    pub(super) fn row(&self, row: u32) -> Result<CommitRow, Error> {
        let hash_len = self.ids.kind.len_in_bytes();
        let row_len = hash_len + ROW_REST_LEN;
        let mut buffer = Vec::new();
        let at = self.rows + u64::from(row) * row_len as u64;
        let bytes = self.read(at, row_len, &mut buffer)?;
        let (tree, rest) = bytes.split_at(hash_len);
        let high = be_u32(&rest[8..]);
        let row = CommitRow {
            tree: ObjectId::from_bytes_or_panic(tree),
            first_parent: be_u32(rest),
            second_parent: be_u32(&rest[4..]),
            level: high >> 2,
            time: u64::from(high & 3) << 32 | u64::from(be_u32(&rest[12..])),
        };
        self.intact()?;
        Ok(row)
    }

    /// Returns the difference between the generation and the commit date of `row`, if the file
    /// contains it.
    pub(super) fn generation_offset(&self, row: u32) -> Result<Option<u64>, Error> {
        let Some(start) = self.generations else {
            return Ok(None);
        };
        let mut buffer = Vec::new();
        let offset = be_u32(self.read(start + u64::from(row) * 4, 4, &mut buffer)?);
        self.intact()?;
        if offset & OVERFLOW == 0 {
            return Ok(Some(u64::from(offset)));
        }
        if self.overflow.is_empty() {
            return Err(self.corrupt("commit-graph requires overflow generation data but has none"));
        }
        let at = self.overflow.start + u64::from(offset & !OVERFLOW) * 8;
        if at + 8 > self.overflow.end {
            return Err(self.corrupt("commit-graph overflow generation data is too small"));
        }
        let offset = be_u64(self.read(at, 8, &mut buffer)?);
        self.intact()?;
        Ok(Some(offset))
    }

    pub(super) fn fanout_value(&self, first_byte: u8) -> u32 {
        self.fanout.bucket(first_byte).end
    }

    /// Returns whether the checksum matches the content.
    pub(super) fn checksum_holds(&self) -> Result<bool, Error> {
        let len = self.view.len() - self.ids.kind.len_in_bytes() as u64;
        let found = digest(&self.view, len, self.ids.kind);
        let found = found.map_err(|error| unreadable(error).at_path(&self.path))?;
        Ok(found == self.id)
    }

    /// Returns the entry `number` of the extra edge list (`EDGE`), which contains the further
    /// parents of octopus merges.
    pub(super) fn edge(&self, number: u32) -> Result<u32, Error> {
        let at = self.edges.start + u64::from(number) * 4;
        if at + 4 > self.edges.end {
            return Err(self.corrupt("commit-graph extra-edges pointer out of bounds"));
        }
        let mut buffer = Vec::new();
        let edge = be_u32(self.read(at, 4, &mut buffer)?);
        self.intact()?;
        Ok(edge)
    }

    /// Returns the id of the layer `number` below, counted from the lowest, if the file names it.
    pub(super) fn base(&self, number: usize) -> Option<Result<ObjectId, Error>> {
        let chunk = self.bases.as_ref()?;
        let hash_len = self.ids.kind.len_in_bytes() as u64;
        let at = chunk.start + number as u64 * hash_len;
        if at + hash_len > chunk.end {
            return None;
        }
        let mut buffer = Vec::new();
        let read = self.read(at, hash_len as usize, &mut buffer);
        Some(read.map(ObjectId::from_bytes_or_panic))
    }

    /// Returns the number of lower layers that the base graphs chunk (`BASE`) can name; `None` if
    /// the chunk does not exist.
    pub(super) fn base_count(&self) -> Option<u64> {
        let chunk = self.bases.as_ref()?;
        Some((chunk.end - chunk.start) / self.ids.kind.len_in_bytes() as u64)
    }

    /// Reads the changed-path filter of `row`. If offsets are invalid, there is no filter.
    pub(super) fn filter(&self, row: u32, out: &mut Vec<u8>) -> Result<bool, Error> {
        let Some(bloom) = &self.bloom else {
            return Ok(false);
        };
        let mut buffer = Vec::new();
        let end = be_u32(self.read(bloom.indexes + u64::from(row) * 4, 4, &mut buffer)?);
        let start = match row {
            0 => 0,
            _ => be_u32(self.read(bloom.indexes + u64::from(row - 1) * 4, 4, &mut buffer)?),
        };
        let len = bloom.data.end - bloom.data.start;
        if u64::from(end) > len || start > end {
            return Ok(false);
        }
        let at = bloom.data.start + u64::from(start);
        let bytes = self.read(at, (end - start) as usize, &mut buffer)?;
        out.clear();
        out.extend_from_slice(bytes);
        self.intact()?;
        Ok(true)
    }

    /// Checks that the bytes read so far are the contents of the file.
    #[inline]
    fn intact(&self) -> Result<(), Error> {
        intact(&self.view).map_err(|error| error.at_path(&self.path))
    }

    fn read<'a>(&'a self, at: u64, len: usize, buffer: &'a mut Vec<u8>) -> Result<&'a [u8], Error> {
        let read = self.view.read(at, len, buffer);
        read.map_err(|error| unreadable(error).at_path(&self.path).at_offset(at))
    }

    #[cold]
    pub(super) fn corrupt(&self, message: impl Into<String>) -> Error {
        Error::new(ErrorKind::Corrupt, message).at_path(&self.path)
    }
}

fn read_chunks(view: &FileView, kind: Kind) -> Result<ChunkTable, Remark> {
    let hash_len = kind.len_in_bytes();
    let least = HEADER_LEN + 4 * CHUNK_ROW_LEN + FANOUT_LEN + hash_len;
    if view.len() < least as u64 {
        return Err(Remark::TooSmall);
    }
    let mut buffer = Vec::new();
    let header = view
        .read(0, HEADER_LEN, &mut buffer)
        .map_err(|_| Remark::TooSmall)?;
    let (found, expected) = (be_u32(header), u32::from_be_bytes(SIGNATURE));
    if found != expected {
        return Err(Remark::Signature { found, expected });
    }
    if header[4] != VERSION {
        return Err(Remark::Version {
            found: header[4],
            expected: VERSION,
        });
    }
    if header[5] != hash_version(kind) {
        return Err(Remark::HashVersion {
            found: header[5],
            expected: hash_version(kind),
        });
    }
    let count = header[6];
    let least = HEADER_LEN + (usize::from(count) + 1) * CHUNK_ROW_LEN + FANOUT_LEN + hash_len;
    if view.len() < least as u64 {
        return Err(Remark::TooSmallForChunks { count });
    }
    ChunkTable::read(view, HEADER_LEN as u64, count, hash_len).map_err(Remark::Chunks)
}

fn read_fanout(view: &FileView, chunks: &ChunkTable) -> Result<Fanout, Vec<Remark>> {
    let missing = || vec![Remark::NoFanout];
    let failed = |problem| vec![problem, Remark::NoFanout];
    let chunk = chunks.find(*b"OIDF").ok_or_else(missing)?;
    if chunk.end - chunk.start != FANOUT_LEN as u64 {
        return Err(failed(Remark::FanoutSize));
    }
    let mut buffer = Vec::new();
    let bytes = view
        .read(chunk.start, FANOUT_LEN, &mut buffer)
        .map_err(|_| missing())?;
    Fanout::parse(bytes).map_err(|_| failed(Remark::FanoutOrder))
}

/// Returns the position of the generation data, if they are needed.
fn read_generations(
    chunks: &ChunkTable,
    count: u64,
    options: &Options,
    remarks: &mut Vec<Remark>,
) -> Option<u64> {
    if options.generation_version < 2 {
        return None;
    }
    let chunk = chunks.find(*b"GDA2")?;
    if (chunk.end - chunk.start) / 4 != count {
        remarks.push(Remark::GenerationsSize);
        return None;
    }
    Some(chunk.start)
}

fn read_bloom(
    view: &FileView,
    chunks: &ChunkTable,
    count: u64,
    options: &Options,
    remarks: &mut Vec<Remark>,
) -> Option<Bloom> {
    if options.changed_paths == ChangedPaths::Ignore {
        return None;
    }
    let indexes = chunks.find(*b"BIDX").filter(|chunk| {
        let fits = (chunk.end - chunk.start) / 4 == count;
        if !fits {
            remarks.push(Remark::FilterIndexSize);
        }
        fits
    });
    let data = chunks.find(*b"BDAT").filter(|chunk| {
        let len = chunk.end - chunk.start;
        if len < BLOOM_HEADER_LEN {
            let least = BLOOM_HEADER_LEN;
            remarks.push(Remark::FilterDataSize { len, least });
        }
        len >= BLOOM_HEADER_LEN
    });
    let (indexes, data) = (indexes?, data?);
    let mut buffer = Vec::new();
    let header = view
        .read(data.start, BLOOM_HEADER_LEN as usize, &mut buffer)
        .ok()?;
    Some(Bloom {
        indexes: indexes.start,
        settings: Settings {
            hash_version: be_u32(header),
            hash_count: be_u32(&header[4..]),
            bits_per_entry: be_u32(&header[8..]),
        },
        data: data.start + BLOOM_HEADER_LEN..data.end,
    })
}
