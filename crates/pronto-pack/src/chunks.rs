//! The table of contents of a chunk-based file: the id and the position of each chunk. Format:
//! `gitformat-chunk(5)`.

use std::fmt;
use std::ops::Range;

use pronto_hash::{Kind, ObjectId, TrailerDigester};
use pronto_io::view::FileView;

use crate::fanout::{be_u32, be_u64};
use crate::trailing::Trailing;

/// The size of a row of the table in bytes.
pub(crate) const CHUNK_ROW_LEN: usize = 12;

/// Writes the table of contents for chunks with the given ids and sizes in bytes. The table begins
/// at `start`, and the first chunk follows the table.
///
/// # Errors
/// Fails if writing fails.
pub(crate) fn write_table(
    out: &mut Trailing<'_>,
    start: u64,
    chunks: &[([u8; 4], u64)],
) -> std::io::Result<()> {
    let mut at = start + (chunks.len() as u64 + 1) * CHUNK_ROW_LEN as u64;
    for (name, len) in chunks.iter().chain(&[([0; 4], 0)]) {
        out.put(name)?;
        out.put(&at.to_be_bytes())?;
        at += len;
    }
    Ok(())
}

/// Writes the fan-out: for each byte value, the number of the sorted `first_bytes` that are not
/// greater.
///
/// # Errors
/// Fails if writing fails.
pub(crate) fn write_fanout(
    out: &mut Trailing<'_>,
    first_bytes: impl Iterator<Item = u8>,
) -> std::io::Result<()> {
    let mut counts = [0u32; 256];
    first_bytes.for_each(|byte| counts[usize::from(byte)] += 1);
    let mut sum = 0;
    for count in counts {
        sum += count;
        out.put(&sum.to_be_bytes())?;
    }
    Ok(())
}

/// Returns the checksum of the first `len` bytes of `view`.
///
/// # Errors
/// Fails if reading fails.
pub(crate) fn digest(view: &FileView, len: u64, kind: Kind) -> std::io::Result<ObjectId> {
    const STEP: u64 = 1 << 20;
    let mut digester = TrailerDigester::new(kind);
    let (mut at, mut buffer) = (0, Vec::new());
    while at < len {
        let step = STEP.min(len - at);
        digester.update(view.read(at, step as usize, &mut buffer)?);
        at += step;
    }
    view.check()?;
    Ok(digester.finish())
}

/// The reason why a table of contents is malformed. [`Display`](fmt::Display) writes Git's message.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum TableFault {
    /// The table cannot be read.
    Unreadable {
        /// The message of the operating system.
        reason: String,
    },
    /// The terminating row is not the last row of the table.
    EarlyEnd,
    /// A chunk ends before its start or after the end of the file.
    Offsets {
        /// The offset of the start of the chunk.
        from: u64,
        /// The offset of the end of the chunk.
        to: u64,
    },
    /// Two chunks have the same id.
    Duplicate {
        /// The id of the chunks.
        name: u32,
    },
    /// The last row is not the terminating row.
    NoEnd {
        /// The id of the chunk in the last row.
        name: u32,
    },
}

impl fmt::Display for TableFault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            TableFault::Unreadable { reason } => {
                write!(f, "cannot read the table of chunks: {reason}")
            }
            TableFault::EarlyEnd => {
                f.write_str("terminating chunk id appears earlier than expected")
            }
            TableFault::Offsets { from, to } => {
                write!(f, "improper chunk offset(s) {from:x} and {to:x}")
            }
            TableFault::Duplicate { name } => write!(f, "duplicate chunk ID {name:x} found"),
            TableFault::NoEnd { name } => write!(f, "final chunk has non-zero id {name:x}"),
        }
    }
}

/// The ids of chunks with their ranges in the file. All ranges are before the trailer.
#[derive(Debug)]
pub(crate) struct ChunkTable(Vec<(u32, Range<u64>)>);

impl ChunkTable {
    /// Reads the table of contents at `start` of `view`, whose trailer has `trailer_len` bytes.
    /// Chunks may be anywhere before the trailer, but each chunk ends at the start of the next one.
    ///
    /// # Errors
    /// Fails with a [`TableFault`] if the table is malformed.
    pub(crate) fn read(
        view: &FileView,
        start: u64,
        count: u8,
        trailer_len: usize,
    ) -> Result<ChunkTable, TableFault> {
        let mut buffer = Vec::new();
        let count = usize::from(count);
        let table = view
            .read(start, (count + 1) * CHUNK_ROW_LEN, &mut buffer)
            .map_err(|error| TableFault::Unreadable {
                reason: error.to_string(),
            })?;
        let end = view.len().saturating_sub(trailer_len as u64);
        let mut chunks: Vec<(u32, Range<u64>)> = Vec::with_capacity(count);
        for at in 0..count {
            let row = &table[at * CHUNK_ROW_LEN..][..2 * CHUNK_ROW_LEN];
            let name = be_u32(row);
            let (from, to) = (be_u64(&row[4..]), be_u64(&row[CHUNK_ROW_LEN + 4..]));
            if name == 0 {
                return Err(TableFault::EarlyEnd);
            }
            if to < from || to > end {
                return Err(TableFault::Offsets { from, to });
            }
            if chunks.iter().any(|(other, _)| *other == name) {
                return Err(TableFault::Duplicate { name });
            }
            chunks.push((name, from..to));
        }
        match be_u32(&table[count * CHUNK_ROW_LEN..]) {
            0 => Ok(ChunkTable(chunks)),
            name => Err(TableFault::NoEnd { name }),
        }
    }

    /// Returns the range of the chunk with the id `name`.
    pub(crate) fn find(&self, name: [u8; 4]) -> Option<Range<u64>> {
        let name = u32::from_be_bytes(name);
        let found = self.0.iter().find(|(other, _)| *other == name)?;
        Some(found.1.clone())
    }
}
