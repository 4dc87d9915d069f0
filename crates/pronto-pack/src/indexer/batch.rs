//! Inflated entries on their way from the receiver to a worker.

use super::tables::Base;
use gix_object::Kind as ObjectKind;
use std::ops::Range;

/// How many bytes of inflated entries travel together.
pub(super) const BATCH_BYTES: usize = 512 << 10;
/// How many entries travel together at most.
const BATCH_ITEMS: usize = 2048;

/// One inflated entry.
pub(super) struct Item {
    /// The number of the entry in the pack.
    pub(super) index: u32,
    /// Where it starts in the pack.
    pub(super) offset: u64,
    pub(super) base: Base,
    /// What it is, or for a delta what its root is; unknown where a base is named by id.
    pub(super) kind: Option<ObjectKind>,
    /// Where its bytes are in the batch.
    pub(super) range: Range<usize>,
}

/// Inflated entries, one behind the other.
#[derive(Default)]
pub(super) struct Batch {
    /// As long as it ever was, so that it need not be cleared.
    data: Vec<u8>,
    filled: usize,
    pub(super) items: Vec<Item>,
}

impl Batch {
    /// A batch of one large entry.
    pub(super) fn of(data: Vec<u8>, item: Item) -> Batch {
        Batch {
            filled: data.len(),
            data,
            items: vec![item],
        }
    }

    /// Whether an entry of `size` bytes may be added.
    pub(super) fn has_room(&self, size: usize) -> bool {
        self.filled + size <= BATCH_BYTES && self.items.len() < BATCH_ITEMS
    }

    /// Where to put the next entry, of `size` bytes; there must be [room](Self::has_room).
    pub(super) fn room(&mut self, size: usize) -> &mut [u8] {
        if self.data.is_empty() {
            self.data = vec![0; BATCH_BYTES];
        }
        &mut self.data[self.filled..self.filled + size]
    }

    /// Adds the entry that was put there.
    pub(super) fn push(&mut self, size: usize, item: impl FnOnce(Range<usize>) -> Item) {
        let range = self.filled..self.filled + size;
        self.filled += size;
        self.items.push(item(range));
    }

    pub(super) fn bytes(&self, item: &Item) -> &[u8] {
        &self.data[item.range.clone()]
    }

    pub(super) fn is_empty(&self) -> bool {
        self.items.is_empty()
    }

    /// Forgets the entries; keeps the memory unless it is of unusual size.
    pub(super) fn clear(&mut self) {
        self.filled = 0;
        self.items.clear();
        if self.data.len() > BATCH_BYTES {
            self.data = Vec::new();
        }
    }
}
