//! Finds the block of a key through the index blocks of a table.

use super::table::RefTable;
use super::values;
use crate::reftable::error::{BlockFault, Result};
use crate::reftable::format::{BlockKind, BlockSection};

/// The largest number of index levels: with two records in each block, more than any file can
/// contain.
const DEEPEST: usize = 64;

/// A key to search, and the section in which to search.
pub(super) struct SoughtKey<'a> {
    pub(super) kind: BlockKind,
    pub(super) section: BlockSection,
    pub(super) key: &'a [u8],
}

impl RefTable {
    pub(super) fn target<'a>(&self, kind: BlockKind, key: &'a [u8]) -> SoughtKey<'a> {
        SoughtKey {
            kind,
            section: self.section(kind),
            key,
        }
    }

    /// Returns the block with the first key that is not less than the key of `target`; `None` if
    /// all keys are less. Without an index, returns the first block. Reads one block for each index
    /// level.
    pub(super) fn leaf(&self, target: &SoughtKey<'_>) -> Result<Option<u64>> {
        if target.section.index == 0 || target.section.start.is_none() {
            return Ok(target.section.start);
        }
        let mut position = target.section.index;
        for _ in 0..DEEPEST {
            match self.child(position, target)? {
                None => return Ok(None),
                Some(child) => position = child,
            }
            match self.outline(position)? {
                Some(outline) if outline.kind == target.kind => return Ok(Some(position)),
                Some(outline) if outline.kind == BlockKind::Index => {}
                _ => {
                    let fault = BlockFault::new(
                        "corrupt reftable: index points to a block of another type",
                        0,
                    );
                    return Err(self.fault(position, fault));
                }
            }
        }
        Err(self.fault(
            position,
            BlockFault::new("corrupt reftable: index has too many levels", 0),
        ))
    }

    /// Returns the child block for the key, from the index block at `position` or from the index
    /// blocks that follow.
    fn child(&self, position: u64, target: &SoughtKey<'_>) -> Result<Option<u64>> {
        let mut position = position;
        let mut is_first = true;
        while let Some(records) = self.block(position, BlockKind::Index)? {
            is_first = false;
            let faulty = |fault| self.fault(position, fault);
            let place = records.seek(target.key).map_err(faulty)?;
            if place.at < records.shape.tail {
                let head = records.head(place.at).map_err(faulty)?;
                let read = values::child(&records, &head).map_err(faulty)?;
                return Ok(Some(read.value));
            }
            position = records.shape.next;
        }
        if is_first {
            return Err(self.fault(
                position,
                BlockFault::new("corrupt reftable: expected an index block", 0),
            ));
        }
        Ok(None)
    }
}
