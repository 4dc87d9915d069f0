//! The table of chunks behind the header of a commit-graph: the name and position of each chunk.
//! Format: `gitformat-chunk(5)`.

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

/// Names of chunks, and where in the file they lie. All lie before the trailer.
#[derive(Debug)]
pub(crate) struct Chunks(Vec<(u32, Range<u64>)>);

impl Chunks {
    /// Reads the table at `start` of `view`, whose trailer takes `trailer_len` bytes. Chunks may be
    /// anywhere before the trailer, but each ends where the next one begins.
    ///
    /// # Errors
    /// The table is malformed. The message has Git's words.
    pub(crate) fn read(
        view: &View,
        start: u64,
        count: u8,
        trailer_len: usize,
    ) -> Result<Chunks, String> {
        let mut buffer = Vec::new();
        let count = usize::from(count);
        let table = view
            .read(start, (count + 1) * CHUNK_ROW_LEN, &mut buffer)
            .map_err(|error| format!("cannot read the table of chunks: {error}"))?;
        let end = view.len().saturating_sub(trailer_len as u64);
        let mut chunks: Vec<(u32, Range<u64>)> = Vec::with_capacity(count);
        for at in 0..count {
            let row = &table[at * CHUNK_ROW_LEN..][..2 * CHUNK_ROW_LEN];
            let name = be_u32(row);
            let (from, to) = (be_u64(&row[4..]), be_u64(&row[CHUNK_ROW_LEN + 4..]));
            if name == 0 {
                return Err("terminating chunk id appears earlier than expected".into());
            }
            if to < from || to > end {
                return Err(format!("improper chunk offset(s) {from:x} and {to:x}"));
            }
            if chunks.iter().any(|(other, _)| *other == name) {
                return Err(format!("duplicate chunk ID {name:x} found"));
            }
            chunks.push((name, from..to));
        }
        match be_u32(&table[count * CHUNK_ROW_LEN..]) {
            0 => Ok(Chunks(chunks)),
            name => Err(format!("final chunk has non-zero id {name:x}")),
        }
    }

    /// Returns the range of the chunk `name`.
    pub(crate) fn find(&self, name: [u8; 4]) -> Option<Range<u64>> {
        let name = u32::from_be_bytes(name);
        let found = self.0.iter().find(|(other, _)| *other == name)?;
        Some(found.1.clone())
    }
}
