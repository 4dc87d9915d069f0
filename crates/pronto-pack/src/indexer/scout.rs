//! Scouts: idle threads that look ahead and inflate entries that the receiver has not reached.
//!
//! A scout does not know where entries begin. But few places look like an entry header followed by
//! a zlib header, and a stream whose checksum and length match the header is rarely accidental. It
//! can still be wrong: a blob that contains a pack, stored without compression, looks like a pack.
//! So a result counts only if the receiver, which knows the starts of entries, reaches exactly the
//! place where the scout saw an entry begin. All other results are discarded. A wrong guess costs
//! time, but never gives a wrong result.

use super::batch::{BATCH_BYTES, Block, Pool};
use super::segment::Segment;
use crate::entry::{Entry, Header};
use pronto_hash::Kind;
use sirocco::Format;
use sirocco::inflate::Decoder;
use std::collections::VecDeque;
use std::ops::Range;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// The distance over which a scout searches the first entry.
const SEARCH_BYTES: usize = 128 << 10;
/// The largest inflated size of one segment: 16 blocks, 8 MiB.
const MOST_BLOCKS: usize = 16;

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

/// Segments without a scout, the nearest first; as many as are read ahead.
#[derive(Default)]
pub(super) struct Ahead {
    open: Mutex<VecDeque<Arc<Segment>>>,
}

impl Ahead {
    /// Adds a segment, and drops those that the receiver has reached.
    pub(super) fn offer(&self, segment: Arc<Segment>) {
        let mut open = self.open();
        while open.front().is_some_and(|segment| !segment.is_open()) {
            open.pop_front();
        }
        open.push_back(segment);
    }

    /// The next segment to look at.
    fn next(&self) -> Option<Arc<Segment>> {
        self.open().pop_front()
    }

    fn open(&self) -> MutexGuard<'_, VecDeque<Arc<Segment>>> {
        self.open.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// One who looks ahead.
pub(super) struct Scout<'a> {
    ahead: &'a Ahead,
    pool: &'a Pool,
    kind: Kind,
    /// Larger entries are left to the receiver.
    most_bytes: u64,
    decoder: Box<Decoder>,
}

impl<'a> Scout<'a> {
    /// One that inflates entries of at most `most_bytes`, and never more than fit a batch.
    pub(super) fn new(ahead: &'a Ahead, pool: &'a Pool, kind: Kind, most_bytes: u64) -> Self {
        Scout {
            ahead,
            pool,
            kind,
            most_bytes: most_bytes.min(BATCH_BYTES as u64),
            decoder: Box::new(Decoder::new(Format::Zlib)),
        }
    }

    /// Examines one segment, if there is one without a scout.
    pub(super) fn look(&mut self) -> bool {
        while let Some(segment) = self.ahead.next() {
            if let Some(claim) = segment.claim() {
                claim.settle(self.scout(segment.bytes()));
                return true;
            }
        }
        false
    }

    /// The entries that lie in `bytes` as a whole, but for those before the first that is
    /// recognised and those behind one that is too large.
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

    /// Returns the end of the entry that begins at `at`, if there is one.
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

/// Whether `bytes` begin like an entry: a header, and the two bytes that a zlib stream begins with.
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

/// The entries that were found so far.
struct Finds<'a> {
    pool: &'a Pool,
    scouted: Scouted,
    block: Option<Block>,
    filled: usize,
}

impl<'a> Finds<'a> {
    fn new(pool: &'a Pool) -> Self {
        Finds {
            pool,
            scouted: Scouted::default(),
            block: None,
            filled: 0,
        }
    }

    /// Returns the space for a content of `size` bytes, at most [`BATCH_BYTES`], unless too much is
    /// held already.
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

    fn push(&mut self, extent: Range<usize>, header: Header, crc: u32, size: usize) {
        let range = self.filled..self.filled + size;
        self.filled += size;
        self.scouted.entries.push_back(Found {
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
    use crate::indexer::segment::Arrival;

    #[test]
    fn segments_that_were_passed_are_let_go() {
        let ahead = Ahead::default();
        for _ in 0..100 {
            let segment = Arc::new(Segment::new(None));
            ahead.offer(Arc::clone(&segment));
            assert!(matches!(segment.arrive(), Arrival::Unknown));
        }
        assert_eq!(ahead.open().len(), 1);
        assert!(!ahead.next().expect("one is left").is_open());
    }
}
