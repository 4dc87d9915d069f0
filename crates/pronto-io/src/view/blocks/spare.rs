//! A memory cache for blocks that cannot be written to the disk.

use std::collections::HashMap;
use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// A memory cache for blocks of any number of files, with a size limit. The least recently used
/// block is evicted.
pub struct SpareBudget {
    most_bytes: usize,
    held: Mutex<SpareBlocks>,
}

#[derive(Default)]
struct SpareBlocks {
    blocks: HashMap<BlockKey, SpareBlock>,
    bytes: usize,
    time: u64,
}

/// A block of a file.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
struct BlockKey {
    file: u64,
    block: u32,
}

struct SpareBlock {
    bytes: Arc<[u8]>,
    used: u64,
}

impl SpareBudget {
    /// Creates a cache of at most `most_bytes`. Waiting threads receive their block even if the
    /// limit is smaller than a block.
    pub fn new(most_bytes: usize) -> Arc<Self> {
        Arc::new(SpareBudget {
            most_bytes,
            held: Mutex::default(),
        })
    }

    /// Returns the number of bytes in the cache.
    pub fn bytes(&self) -> usize {
        self.held().bytes
    }

    pub(super) fn get(&self, file: u64, block: u32) -> Option<Arc<[u8]>> {
        let mut held = self.held();
        held.time += 1;
        let time = held.time;
        let kept = held.blocks.get_mut(&BlockKey { file, block })?;
        kept.used = time;
        Some(Arc::clone(&kept.bytes))
    }

    pub(super) fn has(&self, file: u64, block: u32) -> bool {
        self.held().blocks.contains_key(&BlockKey { file, block })
    }

    pub(super) fn put(&self, file: u64, block: u32, bytes: &Arc<[u8]>) {
        let mut held = self.held();
        held.time += 1;
        let kept = SpareBlock {
            bytes: Arc::clone(bytes),
            used: held.time,
        };
        held.bytes += bytes.len();
        if let Some(old) = held.blocks.insert(BlockKey { file, block }, kept) {
            held.bytes -= old.bytes.len();
        }
        // A scan is sufficient, because the cache has only some dozens of blocks.
        while held.bytes > self.most_bytes {
            let oldest = held.blocks.iter().min_by_key(|(_, kept)| kept.used);
            let Some(key) = oldest.map(|(key, _)| *key) else {
                break;
            };
            held.remove(key);
        }
    }

    pub(super) fn forget(&self, file: u64) {
        let mut held = self.held();
        let keys = held.blocks.keys().filter(|key| key.file == file);
        for key in keys.copied().collect::<Vec<_>>() {
            held.remove(key);
        }
    }

    fn held(&self) -> MutexGuard<'_, SpareBlocks> {
        self.held.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl SpareBlocks {
    fn remove(&mut self, key: BlockKey) {
        if let Some(kept) = self.blocks.remove(&key) {
            self.bytes -= kept.bytes.len();
        }
    }
}

impl fmt::Debug for SpareBudget {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Spare")
            .field("most_bytes", &self.most_bytes)
            .field("bytes", &self.bytes())
            .finish()
    }
}
