//! Restores the full key of each record from the shared prefixes.

use crate::reftable::error::BlockFault;

use super::block::{BlockMatch, RecordHead, Records};

/// The key of the last record that was read, and the position of the next record.
#[derive(Clone, Debug, Default)]
pub(super) struct Keys {
    key: Vec<u8>,
    at: usize,
}

impl Keys {
    /// Moves to the first record of the block.
    pub(super) fn enter(&mut self, records: &Records<'_>) {
        self.at = records.shape.head;
    }

    /// Moves to the result of a search for `target`.
    pub(super) fn place(&mut self, place: &BlockMatch, target: &[u8]) {
        self.key.clear();
        self.key.extend_from_slice(&target[..place.matched]);
        self.at = place.at;
    }

    pub(super) fn forget(&mut self) {
        self.key.clear();
    }

    pub(super) fn key(&self) -> &[u8] {
        &self.key
    }

    /// Returns the position of the next record.
    pub(super) fn at(&self) -> usize {
        self.at
    }

    /// Restores the key of the next record; `None` at the end of the block. The caller then reads
    /// the value and calls [`go_to`](Self::go_to).
    #[inline(always)]
    pub(super) fn advance(
        &mut self,
        records: &Records<'_>,
    ) -> Result<Option<RecordHead>, BlockFault> {
        if self.at >= records.shape.tail {
            return Ok(None);
        }
        let head = records.head(self.at)?;
        let suffix = records.suffix(&head);
        if head.prefix > 0 && self.at == records.shape.head {
            return Err(BlockFault::new(
                "corrupt reftable: first key of a block has a prefix",
                self.at,
            ));
        }
        match self.key.get(head.prefix..) {
            None => {
                return Err(BlockFault::new(
                    "corrupt reftable: key prefix is longer than the previous key",
                    self.at,
                ));
            }
            Some(rest) if rest >= suffix => {
                return Err(BlockFault::new(
                    "corrupt reftable: keys are not sorted",
                    self.at,
                ));
            }
            Some(_) => {}
        }
        self.key.truncate(head.prefix);
        self.key.extend_from_slice(suffix);
        Ok(Some(head))
    }

    /// Moves to the record at `at`, after the value of the current one.
    #[inline(always)]
    pub(super) fn go_to(&mut self, at: usize) {
        self.at = at;
    }
}
