//! A cursor over the refs of a table.

use bstr::BStr;

use super::block::Records;
use super::keys::Keys;
use super::table::RefTable;
use super::values;
use crate::reftable::error::{BlockFault, Result};
use crate::reftable::format::BlockKind;
use crate::reftable::record::{RefEntry, RefRecord, RefValue};

/// A cursor over the refs of a table, including deletion records.
///
/// Values are borrowed from the file; the name is assembled in a buffer that is reused.
#[derive(Clone, Debug)]
pub struct RefCursor<'t> {
    table: &'t RefTable,
    records: Option<Records<'t>>,
    /// The position of the next block.
    next: Option<u64>,
    keys: Keys,
    entry: RefEntry<'t>,
}

impl RefTable {
    /// Returns a cursor before the first ref. Reads no block yet.
    pub fn refs(&self) -> RefCursor<'_> {
        RefCursor::new(self)
    }
}

impl<'t> RefCursor<'t> {
    pub(super) fn new(table: &'t RefTable) -> RefCursor<'t> {
        RefCursor {
            table,
            records: None,
            next: table.section(BlockKind::Ref).start,
            keys: Keys::default(),
            entry: RefEntry {
                update_index: 0,
                value: RefValue::Deletion,
            },
        }
    }

    /// Moves to the end.
    pub(super) fn leave(&mut self) {
        (self.records, self.next) = (None, None);
    }

    /// Moves to the first ref of the block at `position`, and restricts the cursor to this block.
    pub(super) fn enter(&mut self, position: u64) -> Result<()> {
        self.keys.forget();
        self.next = None;
        self.records = self.table.block(position, BlockKind::Ref)?;
        let Some(records) = &self.records else {
            let fault = BlockFault::new("corrupt reftable: expected a ref block", 0);
            return Err(self.table.fault(position, fault));
        };
        self.keys.enter(records);
        Ok(())
    }

    /// Moves before the first ref whose name is not less than `name`, forward or backward. Costs
    /// the same as [`RefTable::find`].
    ///
    /// # Errors
    /// Fails with `ErrorKind::Corrupt` if the table is malformed.
    pub fn seek(&mut self, name: impl AsRef<[u8]>) -> Result<()> {
        let name = name.as_ref();
        (self.records, self.next) = (None, None);
        let mut next = self.table.leaf(&self.table.target(BlockKind::Ref, name))?;
        while let Some(position) = next {
            let Some(records) = self.table.block(position, BlockKind::Ref)? else {
                break;
            };
            let faulty = |fault| self.table.fault(position, fault);
            let place = records.seek(name).map_err(faulty)?;
            if place.at < records.shape.tail {
                self.keys.place(&place, name);
                self.next = Some(records.shape.next);
                self.records = Some(records);
                break;
            }
            next = Some(records.shape.next);
        }
        Ok(())
    }

    /// Moves to the next ref. Returns `false` at the end.
    ///
    /// # Errors
    /// Fails with `ErrorKind::Corrupt` if the table is malformed.
    #[inline]
    pub fn advance(&mut self) -> Result<bool> {
        loop {
            if let Some(records) = &self.records {
                match step(self.table, records, &mut self.keys) {
                    Ok(Some(entry)) => {
                        self.entry = entry;
                        self.table.check()?;
                        return Ok(true);
                    }
                    Ok(None) => {}
                    Err(fault) => return Err(self.table.fault(records.shape.position, fault)),
                }
            }
            if !self.enter_next()? {
                return Ok(false);
            }
        }
    }

    fn enter_next(&mut self) -> Result<bool> {
        self.records = match self.next.take() {
            Some(position) => self.table.block(position, BlockKind::Ref)?,
            None => None,
        };
        match &self.records {
            Some(records) => {
                self.next = Some(records.shape.next);
                self.keys.enter(records);
                Ok(true)
            }
            None => {
                self.table.verify_view()?;
                Ok(false)
            }
        }
    }

    /// Returns the current ref, to which [`advance`](Self::advance) moved.
    pub fn record(&self) -> RefRecord<'_> {
        RefRecord {
            name: BStr::new(self.keys.key()),
            update_index: self.entry.update_index,
            value: self.entry.value,
        }
    }

    /// Returns the value of the current ref, with the lifetime of the table.
    pub fn entry(&self) -> RefEntry<'t> {
        self.entry
    }
}

#[inline(always)]
fn step<'t>(
    table: &RefTable,
    records: &Records<'t>,
    keys: &mut Keys,
) -> std::result::Result<Option<RefEntry<'t>>, BlockFault> {
    let Some(head) = keys.advance(records)? else {
        return Ok(None);
    };
    let read = values::reference(records, &head)?;
    keys.go_to(read.end);
    table.entry(read.value).map(Some)
}
