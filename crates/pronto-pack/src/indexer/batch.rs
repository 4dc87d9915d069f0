//! Batches of inflated entries, which the receiver sends to workers.

use super::tables::Base;
use gix_object::Kind as ObjectKind;
use std::ops::Range;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// The number of bytes of inflated entries in a batch.
pub(super) const BATCH_BYTES: usize = 512 << 10;
/// The largest number of entries in a batch.
const BATCH_ITEMS: usize = 2048;
/// The number of unused blocks and lists that are kept.
const MOST_SPARE: usize = 32;

/// A buffer for inflated entries, of [`BATCH_BYTES`] unless it contains a larger entry.
pub(super) type Block = Vec<u8>;

/// One inflated entry.
pub(super) struct Item {
    /// The number of the entry in the pack.
    pub(super) index: u32,
    /// The start of the entry in the pack.
    pub(super) offset: u64,
    pub(super) base: Base,
    /// The type of the object; for a delta, the type of the end of its chain. `None` if a base in
    /// the chain is named by its id.
    pub(super) kind: Option<ObjectKind>,
    /// The range of the inflated bytes in the block.
    pub(super) range: Range<usize>,
}

/// Inflated entries. Several batches may share one block.
pub(super) struct Batch {
    block: Arc<Block>,
    pub(super) items: Vec<Item>,
}

impl Batch {
    pub(super) fn new(block: Arc<Block>, items: Vec<Item>) -> Batch {
        Batch { block, items }
    }

    pub(super) fn bytes(&self, item: &Item) -> &[u8] {
        &self.block[item.range.clone()]
    }
}

/// A batch that is being filled.
#[derive(Default)]
pub(super) struct Filling {
    block: Option<Block>,
    filled: usize,
    items: Vec<Item>,
}

impl Filling {
    /// Returns whether an entry of `size` bytes fits into the batch.
    pub(super) fn has_room(&self, size: usize) -> bool {
        self.filled + size <= BATCH_BYTES && self.items.len() < BATCH_ITEMS
    }

    /// Returns the buffer for the next entry of `size` bytes. Requires [room](Self::has_room).
    pub(super) fn room(&mut self, size: usize, pool: &Pool) -> &mut [u8] {
        let block = self.block.get_or_insert_with(|| pool.block());
        &mut block[self.filled..self.filled + size]
    }

    /// Adds the entry whose bytes were written to the buffer.
    pub(super) fn push(&mut self, size: usize, item: impl FnOnce(Range<usize>) -> Item) {
        let range = self.filled..self.filled + size;
        self.filled += size;
        self.items.push(item(range));
    }

    /// Returns the collected entries, if there are any, and begins the next batch.
    pub(super) fn take(&mut self, pool: &Pool) -> Option<Batch> {
        if self.items.is_empty() {
            return None;
        }
        self.filled = 0;
        let block = Arc::new(self.block.take().unwrap_or_default());
        Some(Batch::new(
            block,
            std::mem::replace(&mut self.items, pool.list()),
        ))
    }
}

/// Buffers for reuse, shared by all threads. A lock is taken once for each half MiB.
#[derive(Default)]
pub(super) struct Pool {
    spare: Mutex<Spare>,
}

#[derive(Default)]
struct Spare {
    blocks: Vec<Block>,
    lists: Vec<Vec<Item>>,
}

impl Pool {
    /// Returns a block with arbitrary content.
    pub(super) fn block(&self) -> Block {
        let spare = self.spare().blocks.pop();
        spare.unwrap_or_else(|| vec![0; BATCH_BYTES])
    }

    /// Returns an empty list.
    pub(super) fn list(&self) -> Vec<Item> {
        self.spare().lists.pop().unwrap_or_default()
    }

    /// Takes back the parts of `batch` that no other owner holds.
    pub(super) fn put(&self, batch: Batch) {
        let Batch { block, mut items } = batch;
        items.clear();
        let block = Arc::into_inner(block).filter(|block| block.len() == BATCH_BYTES);
        let mut spare = self.spare();
        if spare.lists.len() < MOST_SPARE {
            spare.lists.push(items);
        }
        if let Some(block) = block
            && spare.blocks.len() < MOST_SPARE
        {
            spare.blocks.push(block);
        }
    }

    fn spare(&self) -> MutexGuard<'_, Spare> {
        self.spare.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
