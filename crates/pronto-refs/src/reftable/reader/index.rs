//! Finds the block of a key from the root of an index.

use super::table::Table;
use super::values;
use crate::reftable::error::{Fault, Result};
use crate::reftable::format::{BlockKind, Section};

/// The most levels of an index: with two records in each block, more than any file has blocks.
const DEEPEST: usize = 64;

/// A key, and where it is sought.
pub(super) struct Target<'a> {
    pub(super) kind: BlockKind,
    pub(super) section: Section,
    pub(super) key: &'a [u8],
}

impl Table {
    /// The block in which the first key is that is not less than the one of `target`; without
    /// an index, the first one. `None` if all are less. Touches one block a level.
    pub(super) fn leaf(&self, target: &Target<'_>) -> Result<Option<u64>> {
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
                    let fault = Fault::new("index leads to a block of another kind", 0);
                    return Err(self.fault(position, fault));
                }
            }
        }
        Err(self.fault(position, Fault::new("index has too many levels", 0)))
    }

    /// Returns the block to which the key leads from the index block at `position`, or from the
    /// blocks that follow it.
    fn child(&self, position: u64, target: &Target<'_>) -> Result<Option<u64>> {
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
            return Err(self.fault(position, Fault::new("no index block here", 0)));
        }
        Ok(None)
    }
}
