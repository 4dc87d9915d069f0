//! Reads an index sequentially.

use std::ops::Range;

use pronto_hash::{ObjectId, oid};

use super::{IndexPosition, PackIndex, PackIndexVersion};
use crate::error::Error;
use crate::fanout::be_u32;
use crate::pack::PackOffset;

/// The number of rows that are read at once if the file is not mapped.
const CHUNK_ROWS: u32 = 4096;

/// One row of an index.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct IndexEntry {
    /// The position of the row in the order of ids.
    pub position: IndexPosition,
    /// The id of the object.
    pub id: ObjectId,
    /// The start of the entry in the pack.
    pub offset: PackOffset,
}

impl PackIndex {
    /// Calls `visit` with each row of `rows` (clamped to the existing rows) in the order of ids.
    /// This is the fastest method to read a whole index; threads can process different ranges of
    /// rows.
    ///
    /// # Errors
    /// Fails with `ErrorKind::Corrupt` if a large offset is not in the file, with `ErrorKind::Io`
    /// if the file cannot be read, and with `ErrorKind::Truncated` if a mapped file was truncated;
    /// `visit` may then have received rows of zeros.
    pub fn scan(
        &self,
        rows: Range<u32>,
        mut visit: impl FnMut(IndexPosition, &oid, PackOffset),
    ) -> Result<(), Error> {
        let end = rows.end.min(self.len());
        let chunk = match self.view.bytes() {
            Some(_) => u32::MAX,
            None => CHUNK_ROWS,
        };
        let mut start = rows.start;
        let (mut ids, mut offsets) = (Vec::new(), Vec::new());
        while start < end {
            let stop = start.saturating_add(chunk).min(end);
            self.scan_chunk(start..stop, &mut ids, &mut offsets, &mut visit)?;
            start = stop;
        }
        Ok(())
    }

    fn scan_chunk(
        &self,
        rows: Range<u32>,
        ids: &mut Vec<u8>,
        offsets: &mut Vec<u8>,
        visit: &mut impl FnMut(IndexPosition, &oid, PackOffset),
    ) -> Result<(), Error> {
        let count = (rows.end - rows.start) as usize;
        let row_len = self.ids.row_len as usize;
        let start = u64::from(rows.start);
        let ids_at = self.ids.start + start * row_len as u64;
        let ids = match self.view.read(ids_at, count * row_len, ids) {
            Ok(bytes) => bytes,
            Err(error) => return Err(self.unreadable(error, ids_at)),
        };
        let ids = ids.chunks_exact(row_len);
        if self.version == PackIndexVersion::One {
            for (row, bytes) in rows.zip(ids) {
                let (offset, id) = bytes.split_at(self.ids.id_offset as usize);
                let offset = PackOffset(u64::from(be_u32(offset)));
                visit(IndexPosition(row), oid::from_bytes_unchecked(id), offset);
            }
            return self.intact();
        }
        let offsets_at = self.offsets_start() + start * 4;
        let offsets = match self.view.read(offsets_at, count * 4, offsets) {
            Ok(bytes) => bytes,
            Err(error) => return Err(self.unreadable(error, offsets_at)),
        };
        for ((row, id), small) in rows.zip(ids).zip(offsets.chunks_exact(4)) {
            let offset = self.resolve_offset(be_u32(small))?;
            visit(IndexPosition(row), oid::from_bytes_unchecked(id), offset);
        }
        self.intact()
    }

    /// Does the same as [`scan`](Self::scan) for the ids only.
    ///
    /// # Errors
    /// Fails with `ErrorKind::Io` if the file cannot be read.
    pub fn scan_ids(&self, rows: Range<u32>, mut visit: impl FnMut(&oid)) -> Result<(), Error> {
        let end = rows.end.min(self.len());
        let row_len = self.ids.row_len as usize;
        let mut buffer = Vec::new();
        let mut start = rows.start;
        while start < end {
            let stop = match self.view.bytes() {
                Some(_) => end,
                None => start.saturating_add(CHUNK_ROWS).min(end),
            };
            let at = self.ids.start + u64::from(start) * row_len as u64;
            let len = (stop - start) as usize * row_len;
            let bytes = match self.view.read(at, len, &mut buffer) {
                Ok(bytes) => bytes,
                Err(error) => return Err(self.unreadable(error, at)),
            };
            for row in bytes.chunks_exact(row_len) {
                visit(oid::from_bytes_unchecked(
                    &row[self.ids.id_offset as usize..],
                ));
            }
            start = stop;
        }
        self.intact()
    }

    /// Iterates over all rows in the order of ids.
    pub fn iter(&self) -> IndexRows<'_> {
        IndexRows {
            index: self,
            next: 0,
            chunk: Vec::new().into_iter(),
        }
    }
}

impl<'a> IntoIterator for &'a PackIndex {
    type Item = Result<IndexEntry, Error>;
    type IntoIter = IndexRows<'a>;

    fn into_iter(self) -> IndexRows<'a> {
        self.iter()
    }
}

/// An iterator over the rows of an index, from [`PackIndex::iter`]. Ends after the first error.
#[derive(Debug)]
pub struct IndexRows<'a> {
    index: &'a PackIndex,
    next: u32,
    chunk: std::vec::IntoIter<IndexEntry>,
}

impl Iterator for IndexRows<'_> {
    type Item = Result<IndexEntry, Error>;

    fn next(&mut self) -> Option<Self::Item> {
        if let Some(entry) = self.chunk.next() {
            return Some(Ok(entry));
        }
        let rows = self.next..self.next.saturating_add(CHUNK_ROWS).min(self.index.len());
        if rows.is_empty() {
            return None;
        }
        self.next = rows.end;
        let mut chunk = Vec::with_capacity(rows.len());
        let scanned = self.index.scan(rows, |position, id, offset| {
            chunk.push(IndexEntry {
                position,
                id: id.to_owned(),
                offset,
            });
        });
        if let Err(error) = scanned {
            self.next = self.index.len();
            return Some(Err(error));
        }
        self.chunk = chunk.into_iter();
        self.chunk.next().map(Ok)
    }

    fn size_hint(&self) -> (usize, Option<usize>) {
        let rest = self.chunk.len() + (self.index.len() - self.next) as usize;
        (0, Some(rest))
    }
}
