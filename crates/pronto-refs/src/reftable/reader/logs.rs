//! A cursor over the reflogs of a table.

use std::fmt;

use zlib_rs::{Inflate, InflateFlush, Status};

use super::block::{Outline, Records, Shape};
use super::keys::Keys;
use super::table::Table;
use super::values;
use crate::reftable::error::{Fault, Result};
use crate::reftable::format::{BLOCK_HEADER_LEN, BlockKind};
use crate::reftable::record::{LogRecord, set_log_key, split_log_key};

/// The number of bits of a distance in a zlib stream.
const WINDOW_BITS: u8 = 15;

/// A place among the entries of the reflogs of a table, deletions among them: by the name of the
/// reference, newer ones first.
///
/// Holds one inflated block of at most 16 MiB, and no more than 1,100 times what is left of the
/// file.
pub struct LogCursor<'t> {
    table: &'t Table,
    inflate: Option<Inflate>,
    /// The inflated block, from its start.
    buffer: Vec<u8>,
    shape: Option<Shape>,
    /// The position of the next block.
    next: Option<u64>,
    keys: Keys,
    /// The positions of the record and of the next one.
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

impl<'t> LogCursor<'t> {
    pub(super) fn new(table: &'t Table) -> LogCursor<'t> {
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

    /// Moves in front of the newest entry of the ref `name` whose update index is at most `newest`,
    /// or of the entry that follows it. `u64::MAX` stands for the newest entry.
    ///
    /// Inflates one block where the table has an index; otherwise those from the first one to
    /// the one it is in, which are at most three in tables that Git or [`TableWriter`] wrote.
    ///
    /// [`TableWriter`]: crate::reftable::TableWriter
    ///
    /// # Errors
    /// The table is malformed.
    pub fn seek(&mut self, name: impl AsRef<[u8]>, newest: u64) -> Result<()> {
        let mut key = std::mem::take(&mut self.sought);
        set_log_key(&mut key, name.as_ref(), newest);
        let outcome = self.seek_key(&key);
        self.sought = key;
        outcome
    }

    /// Goes in front of the first entry of the first reference whose name is not less.
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

    /// Moves to the next entry; `false` if there is none.
    ///
    /// # Errors
    /// The table is malformed.
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

    /// The entry that [`advance`](Self::advance) went to.
    pub fn record(&self) -> LogRecord<'_> {
        let (name, update_index) = split_log_key(self.keys.key()).unwrap_or_default();
        let entry = self.shape.and_then(|shape| {
            let records = Records {
                shape,
                bytes: &self.buffer,
            };
            // It was read once before, so there is no fault in it.
            let head = records.head(self.place.0).ok()?;
            values::log(&records, &head).ok()?.value
        });
        LogRecord {
            name,
            update_index,
            entry,
        }
    }

    /// The key that the entry is sorted by.
    pub(in crate::reftable) fn key(&self) -> &[u8] {
        self.keys.key()
    }

    /// Whether the record hides an entry of an older table.
    pub(in crate::reftable) fn is_deletion(&self) -> bool {
        self.record().entry.is_none()
    }

    /// Errors in compressed data are reported with the position of their block.
    #[cold]
    fn faulty(&self, fault: Fault) -> crate::reftable::Error {
        let position = self.shape.map_or(0, |shape| shape.position);
        self.table.fault(position, Fault { at: 0, ..fault })
    }

    /// Inflates the block at `position`; `None` where there is none of logs.
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
        let outline = Outline {
            next: position + len as u64,
            ..outline
        };
        let faulty = |fault| self.table.fault(position, fault);
        let records = Records::new(outline, &self.buffer).map_err(faulty)?;
        Ok(Some(records.shape))
    }

    /// Inflates the records into the buffer, behind as many bytes as stand in front of them in
    /// the file; the number of bytes that were used.
    fn inflate(&mut self, outline: &Outline, deflated: &[u8]) -> std::result::Result<usize, Fault> {
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
            Ok(_) => Err(Fault::new("log block has another length", outline.skipped)),
            Err(_) => Err(Fault::new("log block cannot be inflated", outline.skipped)),
        }
    }
}

/// Reads the next record; where it and the one behind it are.
fn step(
    records: &Records<'_>,
    keys: &mut Keys,
) -> std::result::Result<Option<(usize, usize)>, Fault> {
    let at = keys.at();
    let Some(head) = keys.advance(records)? else {
        return Ok(None);
    };
    let read = values::log(records, &head)?;
    if split_log_key(keys.key()).is_none() {
        return Err(Fault::new("bad key of a log record", at));
    }
    keys.go_to(read.end);
    Ok(Some((at, read.end)))
}
