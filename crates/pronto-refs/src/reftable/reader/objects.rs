//! Finds refs by the object that they point at.

use pronto_hash::{ObjectId, oid};

use super::refs::RefCursor;
use super::table::Table;
use super::values;
use crate::reftable::error::Result;
use crate::reftable::format::BlockKind;
use crate::reftable::record::RefRecord;

/// The references of a table that lead to an object, in the order of their names.
#[derive(Debug)]
pub struct ObjectCursor<'t> {
    id: ObjectId,
    refs: RefCursor<'t>,
    /// The blocks of references still to look at, the next one last.
    blocks: Vec<u64>,
}

/// The blocks that may hold references to an object.
enum Blocks {
    All,
    These(Vec<u64>),
}

impl<'t> ObjectCursor<'t> {
    pub(super) fn new(table: &'t Table, id: &oid) -> Result<ObjectCursor<'t>> {
        let mut cursor = ObjectCursor {
            id: id.to_owned(),
            refs: table.refs(),
            blocks: Vec::new(),
        };
        if let Blocks::These(mut blocks) = blocks_with(table, id)? {
            blocks.reverse();
            cursor.blocks = blocks;
            cursor.refs.leave();
        }
        Ok(cursor)
    }

    /// Moves to the next ref; `false` if there is none.
    ///
    /// # Errors
    /// The table is malformed.
    pub fn advance(&mut self) -> Result<bool> {
        loop {
            while self.refs.advance()? {
                if self.refs.entry().value.leads_to(&self.id) {
                    return Ok(true);
                }
            }
            match self.blocks.pop() {
                Some(position) => self.refs.enter(position)?,
                None => return Ok(false),
            }
        }
    }

    /// The reference that [`advance`](Self::advance) went to.
    pub fn record(&self) -> RefRecord<'_> {
        self.refs.record()
    }
}

/// The blocks that the object blocks of the table name for `id`.
fn blocks_with(table: &Table, id: &oid) -> Result<Blocks> {
    if table.section(BlockKind::Object).start.is_none() {
        return Ok(Blocks::All);
    }
    let bytes = id.as_bytes();
    let key = &bytes[..table.id_len().min(bytes.len())];
    let mut next = table.leaf(&table.target(BlockKind::Object, key))?;
    while let Some(position) = next {
        let Some(records) = table.block(position, BlockKind::Object)? else {
            break;
        };
        let faulty = |fault| table.fault(position, fault);
        let place = records.seek(key).map_err(faulty)?;
        if let Some(head) = place.exact {
            let blocks = values::positions(&records, &head).map_err(faulty)?;
            table.check()?;
            // An empty list stands for too many positions.
            return Ok(if blocks.is_empty() {
                Blocks::All
            } else {
                Blocks::These(blocks)
            });
        }
        next = (place.at >= records.shape.tail).then_some(records.shape.next);
    }
    table.verify_view()?;
    Ok(Blocks::These(Vec::new()))
}
