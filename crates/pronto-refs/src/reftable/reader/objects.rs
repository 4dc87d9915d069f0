//! Finds refs by the object to which they point.

use std::ops::ControlFlow;

use pronto_hash::{ObjectId, oid};

use super::refs::RefCursor;
use super::table::RefTable;
use super::values;
use crate::reftable::error::Result;
use crate::reftable::format::BlockKind;
use crate::reftable::record::RefRecord;

/// A cursor over the refs of a table that point to an object, in order of names.
#[derive(Debug)]
pub struct ObjectCursor<'t> {
    id: ObjectId,
    refs: RefCursor<'t>,
    /// The ref blocks still to examine, the next block last.
    blocks: Vec<u64>,
}

impl RefTable {
    /// Calls `visit` for all refs whose object or peeled object is `id`, in order of names, until
    /// `visit` breaks.
    ///
    /// With object blocks, reads one block for each level of their index, one object block, and the
    /// ref blocks that contain `id`; allocates a list of these ref blocks. Without object blocks,
    /// examines all refs.
    ///
    /// # Errors
    /// Fails with `ErrorKind::Corrupt` if the table is malformed.
    pub fn find_object(
        &self,
        id: &oid,
        mut visit: impl FnMut(RefRecord<'_>) -> ControlFlow<()>,
    ) -> Result<()> {
        let mut cursor = ObjectCursor::new(self, id)?;
        while cursor.advance()? {
            if visit(cursor.record()).is_break() {
                break;
            }
        }
        Ok(())
    }

    /// Does the same as [`find_object`](Self::find_object), and returns a cursor.
    ///
    /// # Errors
    /// Fails as [`find_object`](Self::find_object) does.
    pub fn refs_to<'t>(&'t self, id: &'t oid) -> Result<ObjectCursor<'t>> {
        ObjectCursor::new(self, id)
    }
}

/// The blocks that may contain refs to an object.
enum CandidateBlocks {
    All,
    These(Vec<u64>),
}

impl<'t> ObjectCursor<'t> {
    pub(super) fn new(table: &'t RefTable, id: &oid) -> Result<ObjectCursor<'t>> {
        let mut cursor = ObjectCursor {
            id: id.to_owned(),
            refs: table.refs(),
            blocks: Vec::new(),
        };
        if let CandidateBlocks::These(mut blocks) = blocks_with(table, id)? {
            blocks.reverse();
            cursor.blocks = blocks;
            cursor.refs.leave();
        }
        Ok(cursor)
    }

    /// Moves to the next ref. Returns `false` at the end.
    ///
    /// # Errors
    /// Fails with `ErrorKind::Corrupt` if the table is malformed.
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

    /// Returns the current ref, to which [`advance`](Self::advance) moved.
    pub fn record(&self) -> RefRecord<'_> {
        self.refs.record()
    }
}

/// Returns the ref blocks that the object blocks of the table list for `id`.
fn blocks_with(table: &RefTable, id: &oid) -> Result<CandidateBlocks> {
    if table.section(BlockKind::Object).start.is_none() {
        return Ok(CandidateBlocks::All);
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
            // An empty list means that there are too many positions to list.
            return Ok(if blocks.is_empty() {
                CandidateBlocks::All
            } else {
                CandidateBlocks::These(blocks)
            });
        }
        next = (place.at >= records.shape.tail).then_some(records.shape.next);
    }
    table.verify_view()?;
    Ok(CandidateBlocks::These(Vec::new()))
}
