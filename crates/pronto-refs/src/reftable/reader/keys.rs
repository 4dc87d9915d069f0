//! Assembles the key of the current record from those before it.

use crate::reftable::error::Fault;

use super::block::{Place, RecordHead, Records};

/// The key of the record that was read last, and where the next one is.
#[derive(Clone, Debug, Default)]
pub(super) struct Keys {
    key: Vec<u8>,
    at: usize,
}

impl Keys {
    /// Goes to the first record of the block.
    pub(super) fn enter(&mut self, records: &Records<'_>) {
        self.at = records.shape.head;
    }

    /// Goes to where a search for `target` has ended.
    pub(super) fn place(&mut self, place: &Place, target: &[u8]) {
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

    /// Assembles the key of the next record; `None` at the end of the block. The caller reads the
    /// value and calls [`go_to`](Self::go_to).
    #[inline(always)]
    pub(super) fn advance(&mut self, records: &Records<'_>) -> Result<Option<RecordHead>, Fault> {
        if self.at >= records.shape.tail {
            return Ok(None);
        }
        let head = records.head(self.at)?;
        let suffix = records.suffix(&head);
        if head.prefix > 0 && self.at == records.shape.head {
            return Err(Fault::new("first key of a block is not whole", self.at));
        }
        match self.key.get(head.prefix..) {
            None => {
                return Err(Fault::new(
                    "key takes more than the one before has",
                    self.at,
                ));
            }
            Some(rest) if rest >= suffix => {
                return Err(Fault::new("keys are not in order", self.at));
            }
            Some(_) => {}
        }
        self.key.truncate(head.prefix);
        self.key.extend_from_slice(suffix);
        Ok(Some(head))
    }

    /// Goes to the record at `at`, behind the value of the current one.
    #[inline(always)]
    pub(super) fn go_to(&mut self, at: usize) {
        self.at = at;
    }
}
