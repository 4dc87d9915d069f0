//! The entries that scouts find in a segment.

use super::batch::BatchMemory;
use crate::entry::EntryHeader;
use std::collections::VecDeque;
use std::ops::Range;
use std::sync::Arc;

/// An entry that a scout has found.
pub(super) struct ScoutedEntry {
    /// The range of the entry in the segment.
    pub(super) extent: Range<usize>,
    pub(super) header: EntryHeader,
    pub(super) crc: u32,
    /// The position of the content: the block, and the range in the block.
    pub(super) block: usize,
    pub(super) range: Range<usize>,
}

/// The consecutive entries that a scout has found in one segment.
#[derive(Default)]
pub(super) struct Scouted {
    pub(super) entries: VecDeque<ScoutedEntry>,
    pub(super) blocks: Vec<Arc<BatchMemory>>,
}
