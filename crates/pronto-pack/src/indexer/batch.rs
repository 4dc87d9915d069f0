//! Batches of inflated entries, which the receiver sends to workers.

use super::tables::EntryBase;
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
pub(super) type BatchMemory = Vec<u8>;

/// One inflated entry.
pub(super) struct InflatedEntry {
    /// The number of the entry in the pack.
    pub(super) index: u32,
    /// The start of the entry in the pack.
    pub(super) offset: u64,
    pub(super) base: EntryBase,
    /// The type of the object; for a delta, the type of the end of its chain. `None` if a base in
    /// the chain is named by its id.
    pub(super) kind: Option<ObjectKind>,
    /// The range of the inflated bytes in the block.
    pub(super) range: Range<usize>,
}

/// Inflated entries. Several batches may share one block.
pub(super) struct InflatedBatch {
    block: Arc<BatchMemory>,
    pub(super) items: Vec<InflatedEntry>,
}

impl InflatedBatch {
    pub(super) fn new(block: Arc<BatchMemory>, items: Vec<InflatedEntry>) -> InflatedBatch {
        InflatedBatch { block, items }
    }

    pub(super) fn bytes(&self, item: &InflatedEntry) -> &[u8] {
        &self.block[item.range.clone()]
    }
}

/// A batch that is being filled.
#[derive(Default)]
pub(super) struct Filling {
    block: Option<BatchMemory>,
    filled: usize,
    items: Vec<InflatedEntry>,
}

impl Filling {
    /// Returns whether an entry of `size` bytes fits into the batch.
    pub(super) fn has_room(&self, size: usize) -> bool {
        self.filled + size <= BATCH_BYTES && self.items.len() < BATCH_ITEMS
    }

    /// Returns the buffer for the next entry of `size` bytes. Requires [room](Self::has_room).
    pub(super) fn room(&mut self, size: usize, pool: &BatchPool) -> &mut [u8] {
        let block = self.block.get_or_insert_with(|| pool.block());
        &mut block[self.filled..self.filled + size]
    }

    /// Adds the entry whose bytes were written to the buffer.
    pub(super) fn push(&mut self, size: usize, item: impl FnOnce(Range<usize>) -> InflatedEntry) {
        let range = self.filled..self.filled + size;
        self.filled += size;
        self.items.push(item(range));
    }

    /// Returns the collected entries, if there are any, and begins the next batch.
    pub(super) fn take(&mut self, pool: &BatchPool) -> Option<InflatedBatch> {
        if self.items.is_empty() {
            return None;
        }
        self.filled = 0;
        let block = Arc::new(self.block.take().unwrap_or_default());
        Some(InflatedBatch::new(
            block,
            std::mem::replace(&mut self.items, pool.list()),
        ))
    }
}

/// Buffers for reuse, shared by all threads. A lock is taken once for each half MiB.
#[derive(Default)]
pub(super) struct BatchPool {
    spare: Mutex<SpareMemory>,
}

#[derive(Default)]
struct SpareMemory {
    blocks: Vec<BatchMemory>,
    lists: Vec<Vec<InflatedEntry>>,
}

impl BatchPool {
    /// Returns a block with arbitrary content.
    pub(super) fn block(&self) -> BatchMemory {
        let spare = self.spare().blocks.pop();
        spare.unwrap_or_else(|| vec![0; BATCH_BYTES])
    }

    /// Returns an empty list.
    pub(super) fn list(&self) -> Vec<InflatedEntry> {
        self.spare().lists.pop().unwrap_or_default()
    }

    /// Takes back the parts of `batch` that no other owner holds.
    pub(super) fn put(&self, batch: InflatedBatch) {
        let InflatedBatch { block, mut items } = batch;
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

    fn spare(&self) -> MutexGuard<'_, SpareMemory> {
        self.spare.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
