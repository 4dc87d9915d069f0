//! The table of chunks behind the header of a commit-graph: the name and position of each chunk.
//! Format: `gitformat-chunk(5)`.

use std::fmt;
use std::ops::Range;

use pronto_hash::{Kind, ObjectId, TrailerDigester};
use pronto_io::view::View;

use crate::fanout::{be_u32, be_u64};
use crate::trailing::Trailing;

/// The size in bytes of a row of the table.
pub(crate) const CHUNK_ROW_LEN: usize = 12;

/// Writes the table of chunks, of which names and sizes in bytes are given and the first of which
/// begins right behind the table, which begins at `start`.
///
/// # Errors
/// Those of writing.
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

/// Writes for each first byte how many of `first_bytes`, which are sorted, are not above it.
///
/// # Errors
/// Those of writing.
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

/// The checksum of the first `len` bytes of `view`.
///
/// # Errors
/// Those of reading.
pub(crate) fn digest(view: &View, len: u64, kind: Kind) -> std::io::Result<ObjectId> {
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

/// Why a table of chunks is malformed. [`Display`](fmt::Display) gives Git's message.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum TableFault {
    /// The table cannot be read.
    Unreadable {
        /// The reason of the operating system.
        reason: String,
    },
    /// The row that ends the table is not its last one.
    EarlyEnd,
    /// A chunk ends before it begins, or beyond the file.
    Offsets {
        /// The offset of its start.
        from: u64,
        /// The offset of its end.
        to: u64,
    },
    /// Two chunks have one name.
    Duplicate {
        /// The name.
        name: u32,
    },
    /// The last row names a chunk.
    NoEnd {
        /// The name.
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

/// Names of chunks, and where in the file they lie. All lie before the trailer.
#[derive(Debug)]
pub(crate) struct Chunks(Vec<(u32, Range<u64>)>);

impl Chunks {
    /// Reads the table at `start` of `view`, whose trailer takes `trailer_len` bytes. Chunks may be
    /// anywhere before the trailer, but each ends where the next one begins.
    ///
    /// # Errors
    /// The table is malformed.
    pub(crate) fn read(
        view: &View,
        start: u64,
        count: u8,
        trailer_len: usize,
    ) -> Result<Chunks, TableFault> {
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
            0 => Ok(Chunks(chunks)),
            name => Err(TableFault::NoEnd { name }),
        }
    }

    /// Returns the range of the chunk `name`.
    pub(crate) fn find(&self, name: [u8; 4]) -> Option<Range<u64>> {
        let name = u32::from_be_bytes(name);
        let found = self.0.iter().find(|(other, _)| *other == name)?;
        Some(found.1.clone())
    }
}
