//! Scouts: idle threads look ahead and inflate entries that the receiver has not reached.
//!
//! A scout does not have the start of any entry. But few positions look like an entry header
//! followed by a zlib header, and a stream whose checksum and length match the header is rarely
//! accidental. The guess can still be wrong: a blob that contains a pack, stored without
//! compression, looks like a pack. So a result is used only if the receiver, which follows the
//! actual starts of entries, reaches exactly the position of a scouted entry. All other results are
//! discarded. A wrong guess costs time, but never gives a wrong result.

use super::batch::{BATCH_BYTES, BatchMemory, BatchPool};
use super::scouted::{Scouted, ScoutedEntry};
use super::segment::StreamSegment;
use crate::entry::{Entry, EntryHeader};
use pronto_hash::Kind;
use sirocco::Format;
use sirocco::inflate::Decoder;
use std::collections::VecDeque;
use std::ops::Range;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// The distance over which a scout searches for the first entry.
const SEARCH_BYTES: usize = 128 << 10;
/// The largest inflated size of one segment: 16 blocks, 8 MiB.
const MOST_BLOCKS: usize = 16;

/// The segments without a scout, nearest first; their number is the number of segments read ahead.
#[derive(Default)]
pub(super) struct OpenSegments {
    open: Mutex<VecDeque<Arc<StreamSegment>>>,
}

impl OpenSegments {
    /// Adds a segment, and removes those that the receiver has reached.
    pub(super) fn offer(&self, segment: Arc<StreamSegment>) {
        let mut open = self.open();
        while open.front().is_some_and(|segment| !segment.is_open()) {
            open.pop_front();
        }
        open.push_back(segment);
    }

    /// Returns the next segment to scout.
    fn next(&self) -> Option<Arc<StreamSegment>> {
        self.open().pop_front()
    }

    fn open(&self) -> MutexGuard<'_, VecDeque<Arc<StreamSegment>>> {
        self.open.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A scout.
pub(super) struct Scout<'a> {
    ahead: &'a OpenSegments,
    pool: &'a BatchPool,
    kind: Kind,
    /// The size of the largest scouted entry; larger entries are left to the receiver.
    most_bytes: u64,
    decoder: Box<Decoder>,
}

impl<'a> Scout<'a> {
    /// Returns a scout for entries of at most `most_bytes` that fit into a batch.
    pub(super) fn new(
        ahead: &'a OpenSegments,
        pool: &'a BatchPool,
        kind: Kind,
        most_bytes: u64,
    ) -> Self {
        Scout {
            ahead,
            pool,
            kind,
            most_bytes: most_bytes.min(BATCH_BYTES as u64),
            decoder: Box::new(Decoder::new(Format::Zlib)),
        }
    }

    /// Scouts one segment. Returns `false` if no segment is available.
    pub(super) fn look(&mut self) -> bool {
        while let Some(segment) = self.ahead.next() {
            if let Some(claim) = segment.claim() {
                claim.settle(self.scout(segment.bytes()));
                return true;
            }
        }
        false
    }

    /// Returns the complete entries in `bytes`, from the first recognised entry up to an entry that
    /// is too large.
    fn scout(&mut self, bytes: &[u8]) -> Scouted {
        let mut finds = Finds::new(self.pool);
        let last_start = bytes.len().min(SEARCH_BYTES);
        let first = (0..last_start).find_map(|at| self.entry(bytes, at, &mut finds));
        let mut end = first;
        while let Some(at) = end {
            end = self.entry(bytes, at, &mut finds);
        }
        finds.finish()
    }

    /// Inflates the entry at `at` and returns its end; `None` if there is no entry.
    fn entry(&mut self, bytes: &[u8], at: usize, finds: &mut Finds<'_>) -> Option<usize> {
        let rest = &bytes[at..];
        if !may_be_entry(rest, self.kind.len_in_bytes()) {
            return None;
        }
        let entry = Entry::parse(rest, self.kind).ok()?;
        if entry.size_bytes > self.most_bytes {
            return None;
        }
        let size = entry.size_bytes as usize;
        let room = finds.room(size)?;
        let consumed = match self
            .decoder
            .decompress(&rest[entry.header_len..], room, true)
        {
            Ok(progress) if progress.done && progress.output.len() == size => progress.consumed,
            _ => {
                self.decoder.reset();
                return None;
            }
        };
        let end = at + entry.header_len + consumed;
        let crc = crc32fast::hash(&bytes[at..end]);
        finds.push(at..end, entry.header, crc, size);
        Some(end)
    }
}

/// Returns whether `bytes` look like the start of an entry: an entry header, then the two bytes of
/// a zlib header.
fn may_be_entry(bytes: &[u8], id_len: usize) -> bool {
    let Some(first) = bytes.first() else {
        return false;
    };
    let after_number = |start: usize| {
        let rest = bytes.get(start..)?;
        let len = rest.iter().take(10).position(|byte| byte & 0x80 == 0)?;
        Some(start + len + 1)
    };
    let stream = match (first >> 4) & 7 {
        1..=4 => after_number(0),
        6 => after_number(0).and_then(after_number),
        7 => after_number(0).map(|at| at + id_len),
        _ => None,
    };
    match stream.and_then(|at| bytes.get(at..at + 2)) {
        Some(&[method, flags]) => {
            let check = u16::from(method) << 8 | u16::from(flags);
            method & 15 == 8 && method >> 4 <= 7 && flags & 0x20 == 0 && check.is_multiple_of(31)
        }
        _ => false,
    }
}

/// The entries that have been found in a segment.
struct Finds<'a> {
    pool: &'a BatchPool,
    scouted: Scouted,
    block: Option<BatchMemory>,
    filled: usize,
}

impl<'a> Finds<'a> {
    fn new(pool: &'a BatchPool) -> Self {
        Finds {
            pool,
            scouted: Scouted::default(),
            block: None,
            filled: 0,
        }
    }

    /// Returns the buffer for a content of `size` bytes, at most [`BATCH_BYTES`]; `None` if the
    /// limit of held bytes is reached.
    fn room(&mut self, size: usize) -> Option<&mut [u8]> {
        if self.block.is_some() && self.filled + size > BATCH_BYTES {
            self.close();
        }
        if self.block.is_none() && self.scouted.blocks.len() == MOST_BLOCKS {
            return None;
        }
        let block = self.block.get_or_insert_with(|| self.pool.block());
        Some(&mut block[self.filled..self.filled + size])
    }

    fn push(&mut self, extent: Range<usize>, header: EntryHeader, crc: u32, size: usize) {
        let range = self.filled..self.filled + size;
        self.filled += size;
        self.scouted.entries.push_back(ScoutedEntry {
            extent,
            header,
            crc,
            block: self.scouted.blocks.len(),
            range,
        });
    }

    fn close(&mut self) {
        if let Some(block) = self.block.take() {
            self.scouted.blocks.push(Arc::new(block));
            self.filled = 0;
        }
    }

    fn finish(mut self) -> Scouted {
        self.close();
        self.scouted
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::indexer::segment::Lookahead;

    #[test]
    fn segments_that_were_passed_are_let_go() {
        let ahead = OpenSegments::default();
        for _ in 0..100 {
            let segment = Arc::new(StreamSegment::new(None));
            ahead.offer(Arc::clone(&segment));
            assert!(matches!(segment.arrive(), Lookahead::Unknown));
        }
        assert_eq!(ahead.open().len(), 1);
        assert!(!ahead.next().expect("one is left").is_open());
    }
}
