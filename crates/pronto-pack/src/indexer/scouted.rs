//! The entries that scouts find in a segment.

use super::batch::Block;
use crate::entry::Header;
use std::collections::VecDeque;
use std::ops::Range;
use std::sync::Arc;

/// An entry that a scout saw.
pub(super) struct Found {
    /// The range of the entry in the segment.
    pub(super) extent: Range<usize>,
    pub(super) header: Header,
    pub(super) crc: u32,
    /// The position of its content: the block, and the range in it.
    pub(super) block: usize,
    pub(super) range: Range<usize>,
}

/// The entries that a scout found in one segment, each beginning at the end of the one before.
#[derive(Default)]
pub(super) struct Scouted {
    pub(super) entries: VecDeque<Found>,
    pub(super) blocks: Vec<Arc<Block>>,
}
