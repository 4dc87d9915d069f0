//! Inflated deltas that wait for their base, in large chunks within a memory budget. Other deltas
//! are inflated again when their base is available.

use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};

const CHUNK_BYTES: usize = 1 << 20;
/// The size up to which deltas are kept while there is any budget. Larger deltas take little longer
/// to inflate again than to read, relative to their size, and are kept only while most of the
/// budget is left. Nineteen of twenty deltas are smaller.
const SMALL_BYTES: usize = 4 << 10;
/// The size from which deltas are never kept.
const LARGEST_BYTES: usize = 256 << 10;

/// The position of a kept delta in the arenas.
#[derive(Clone, Copy)]
pub(super) struct DeltaPosition {
    arena: u16,
    chunk: u16,
    start: u32,
    len: u32,
}

impl DeltaPosition {
    /// The value for a delta that is not kept.
    pub(super) const NOT: DeltaPosition = DeltaPosition {
        arena: u16::MAX,
        chunk: 0,
        start: 0,
        len: 0,
    };
}

/// The memory budget of all arenas together.
pub(super) struct ArenaBudget {
    left: AtomicUsize,
    /// The part that is reserved for small deltas.
    reserve: usize,
}

impl ArenaBudget {
    pub(super) fn new(bytes: usize) -> Self {
        ArenaBudget {
            left: AtomicUsize::new(bytes),
            reserve: bytes / 4 * 3,
        }
    }

    fn take(&self, bytes: usize) -> bool {
        self.left
            .fetch_update(Relaxed, Relaxed, |left| left.checked_sub(bytes))
            .is_ok()
    }

    fn admits(&self, len: usize) -> bool {
        len <= SMALL_BYTES || (len <= LARGEST_BYTES && self.left.load(Relaxed) > self.reserve)
    }
}

/// The kept deltas of one worker.
pub(super) struct DeltaArena {
    number: u16,
    chunks: Vec<Vec<u8>>,
}

impl DeltaArena {
    pub(super) fn new(number: u16) -> Self {
        DeltaArena {
            number,
            chunks: Vec::new(),
        }
    }

    /// Copies `delta` into the arena, if the budget permits.
    pub(super) fn keep(&mut self, delta: &[u8], budget: &ArenaBudget) -> DeltaPosition {
        if !budget.admits(delta.len()) {
            return DeltaPosition::NOT;
        }
        let fits = self
            .chunks
            .last()
            .is_some_and(|chunk| chunk.len() + delta.len() <= CHUNK_BYTES);
        if !fits {
            if self.chunks.len() == usize::from(u16::MAX) || !budget.take(CHUNK_BYTES) {
                return DeltaPosition::NOT;
            }
            self.chunks.push(Vec::with_capacity(CHUNK_BYTES));
        }
        let number = self.chunks.len() - 1;
        let chunk = &mut self.chunks[number];
        let start = chunk.len();
        chunk.extend_from_slice(delta);
        DeltaPosition {
            arena: self.number,
            chunk: number as u16,
            start: start as u32,
            len: delta.len() as u32,
        }
    }
}

/// Returns the kept delta; `None` if the delta was not kept. `arenas` are in the order of their
/// numbers.
pub(super) fn get(arenas: &[DeltaArena], kept: DeltaPosition) -> Option<&[u8]> {
    let arena = arenas.get(usize::from(kept.arena))?;
    let chunk = arena.chunks.get(usize::from(kept.chunk))?;
    chunk.get(kept.start as usize..)?.get(..kept.len as usize)
}
