//! A cursor over the reflogs of a table.

use std::fmt;

use zlib_rs::{Inflate, InflateFlush, Status};

use super::block::{BlockOutline, Records, Shape};
use super::keys::Keys;
use super::table::RefTable;
use super::values;
use crate::reftable::error::{BlockFault, Result};
use crate::reftable::format::{BLOCK_HEADER_LEN, BlockKind};
use crate::reftable::record::{LogRecord, set_log_key, split_log_key};

/// The window size of the zlib stream, in bits.
const WINDOW_BITS: u8 = 15;

/// A cursor over the reflog entries of a table, including deletion records. Entries are ordered by
/// ref name, newest first.
///
/// Holds one inflated block of at most 16 MiB, which is also at most 1,100 times the size of the
/// rest of the file.
pub struct LogCursor<'t> {
    table: &'t RefTable,
    inflate: Option<Inflate>,
    /// The inflated block, including the bytes before its records.
    buffer: Vec<u8>,
    shape: Option<Shape>,
    /// The position of the next block.
    next: Option<u64>,
    keys: Keys,
    /// The positions of the current and the next record.
    place: (usize, usize),
    sought: Vec<u8>,
}

impl fmt::Debug for LogCursor<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("LogCursor")
            .field("shape", &self.shape)
            .field("keys", &self.keys)
            .finish_non_exhaustive()
    }
}

impl RefTable {
    /// Returns a cursor before the first reflog entry. On first use, the cursor allocates the
    /// inflate state and the buffer of a block.
    pub fn logs(&self) -> LogCursor<'_> {
        LogCursor::new(self)
    }
}

impl<'t> LogCursor<'t> {
    pub(super) fn new(table: &'t RefTable) -> LogCursor<'t> {
        LogCursor {
            table,
            inflate: None,
            buffer: Vec::new(),
            shape: None,
            next: table.section(BlockKind::Log).start,
            keys: Keys::default(),
            place: (0, 0),
            sought: Vec::new(),
        }
    }

    /// Moves before the newest entry of the ref `name` whose update index is at most `newest`, or
    /// before the entry that follows. `u64::MAX` selects the newest entry.
    ///
    /// If the table has an index, inflates one block. Otherwise, inflates all blocks from the first
    /// one to the block of the entry: at most three in tables that Git or [`TableWriter`] wrote.
    ///
    /// [`TableWriter`]: crate::reftable::TableWriter
    ///
    /// # Errors
    /// Fails with `ErrorKind::Corrupt` if the table is malformed.
    pub fn seek(&mut self, name: impl AsRef<[u8]>, newest: u64) -> Result<()> {
        let mut key = std::mem::take(&mut self.sought);
        set_log_key(&mut key, name.as_ref(), newest);
        let outcome = self.seek_key(&key);
        self.sought = key;
        outcome
    }

    /// Moves before the first entry whose key is not less than `key`.
    pub(in crate::reftable) fn seek_key(&mut self, key: &[u8]) -> Result<()> {
        let next = self.table.leaf(&self.table.target(BlockKind::Log, key))?;
        (self.shape, self.next) = (None, next);
        while let Some(position) = self.next.take() {
            let Some(shape) = self.load(position)? else {
                break;
            };
            let records = Records {
                shape,
                bytes: &self.buffer,
            };
            let place = records.seek(key).map_err(|fault| self.faulty(fault))?;
            self.next = Some(shape.next);
            if place.at < shape.tail {
                self.keys.place(&place, key);
                self.shape = Some(shape);
                break;
            }
        }
        Ok(())
    }

    /// Moves to the next entry. Returns `false` at the end.
    ///
    /// # Errors
    /// Fails with `ErrorKind::Corrupt` if the table is malformed.
    pub fn advance(&mut self) -> Result<bool> {
        loop {
            if let Some(shape) = self.shape {
                let records = Records {
                    shape,
                    bytes: &self.buffer,
                };
                match step(&records, &mut self.keys) {
                    Ok(Some(place)) => {
                        self.place = place;
                        return Ok(true);
                    }
                    Ok(None) => {}
                    Err(fault) => return Err(self.faulty(fault)),
                }
            }
            self.shape = match self.next.take() {
                Some(position) => self.load(position)?,
                None => None,
            };
            let Some(shape) = self.shape else {
                self.table.verify_view()?;
                return Ok(false);
            };
            self.next = Some(shape.next);
            self.keys.go_to(shape.head);
        }
    }

    /// Returns the current entry, to which [`advance`](Self::advance) moved.
    pub fn record(&self) -> LogRecord<'_> {
        let (name, update_index) = split_log_key(self.keys.key()).unwrap_or_default();
        let entry = self.shape.and_then(|shape| {
            let records = Records {
                shape,
                bytes: &self.buffer,
            };
            // The record was parsed before, so this cannot fail.
            let head = records.head(self.place.0).ok()?;
            values::log(&records, &head).ok()?.value
        });
        LogRecord {
            name,
            update_index,
            entry,
        }
    }

    /// Returns the sort key of the entry.
    pub(in crate::reftable) fn key(&self) -> &[u8] {
        self.keys.key()
    }

    /// Returns whether the record is a deletion, which hides an entry of an older table.
    pub(in crate::reftable) fn is_deletion(&self) -> bool {
        self.record().entry.is_none()
    }

    /// Returns the error for `fault`, with the position of the block, because offsets in compressed
    /// data have no position in the file.
    #[cold]
    fn faulty(&self, fault: BlockFault) -> crate::reftable::Error {
        let position = self.shape.map_or(0, |shape| shape.position);
        self.table.fault(position, BlockFault { at: 0, ..fault })
    }

    /// Inflates the log block at `position`; `None` if there is no log block.
    fn load(&mut self, position: u64) -> Result<Option<Shape>> {
        let Some(outline) = self.table.outline(position)? else {
            return Ok(None);
        };
        if outline.kind != BlockKind::Log {
            return Ok(None);
        }
        let deflated = self.table.deflated(&outline)?;
        let faulty = |fault| self.table.fault(position, fault);
        let used = match self.inflate(&outline, deflated) {
            Ok(used) => used,
            Err(fault) => return Err(faulty(fault)),
        };
        self.table.check()?;
        let len = outline.skipped + BLOCK_HEADER_LEN + used;
        let outline = BlockOutline {
            next: position + len as u64,
            ..outline
        };
        let faulty = |fault| self.table.fault(position, fault);
        let records = Records::new(outline, &self.buffer).map_err(faulty)?;
        Ok(Some(records.shape))
    }

    /// Inflates the records into the buffer, after the same number of bytes that precede them in
    /// the file. Returns the number of consumed bytes.
    fn inflate(
        &mut self,
        outline: &BlockOutline,
        deflated: &[u8],
    ) -> std::result::Result<usize, BlockFault> {
        let start = outline.skipped + BLOCK_HEADER_LEN;
        self.buffer.clear();
        self.buffer.resize(outline.len, 0);
        let inflate = self
            .inflate
            .get_or_insert_with(|| Inflate::new(true, WINDOW_BITS));
        inflate.reset(true);
        let records = &mut self.buffer[start..];
        let wanted = records.len() as u64;
        let status = inflate.decompress(deflated, records, InflateFlush::Finish);
        match status {
            Ok(Status::StreamEnd) if inflate.total_out() == wanted => {
                Ok(inflate.total_in() as usize)
            }
            Ok(_) => Err(BlockFault::new(
                "corrupt reftable: log block has the wrong length",
                outline.skipped,
            )),
            Err(_) => Err(BlockFault::new(
                "corrupt reftable: cannot inflate a log block",
                outline.skipped,
            )),
        }
    }
}

/// Reads the next record. Returns its position and the position of the record after it.
fn step(
    records: &Records<'_>,
    keys: &mut Keys,
) -> std::result::Result<Option<(usize, usize)>, BlockFault> {
    let at = keys.at();
    let Some(head) = keys.advance(records)? else {
        return Ok(None);
    };
    let read = values::log(records, &head)?;
    if split_log_key(keys.key()).is_none() {
        return Err(BlockFault::new(
            "corrupt reftable: bad key of a log record",
            at,
        ));
    }
    keys.go_to(read.end);
    Ok(Some((at, read.end)))
}
