//! A segment of the stream, shared by the receiver that parses it, the scouts that look ahead, and
//! the writer.

use super::scouted::Scouted;
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};

/// The largest number of bytes of the stream that are read, or written, at once.
pub(super) const SEGMENT_BYTES: usize = 256 << 10;
/// The remaining space below which a segment is passed on, because reads would become small.
const LEAST_ROOM_BYTES: usize = 16 << 10;

/// A piece of the stream.
pub(super) struct StreamSegment {
    buffer: Vec<u8>,
    filled: usize,
    scouting: Mutex<Scouting>,
    settled: Condvar,
}

/// The state of scouting a segment.
enum Scouting {
    /// No thread has looked ahead.
    Open,
    /// A scout is processing the segment.
    UnderWay,
    /// A scout has processed the segment.
    Done(Scouted),
    /// The receiver has reached the segment, or the scout has failed: there are no results.
    Over,
}

/// The state of scouting when the receiver reaches a segment.
pub(super) enum Lookahead {
    /// No thread has looked ahead, and no thread will.
    Unknown,
    /// A scout is still processing the segment.
    UnderWay,
    /// The results of a scout.
    Known(Scouted),
}

impl StreamSegment {
    /// Creates an empty segment that uses `buffer`, or new memory.
    pub(super) fn new(buffer: Option<Vec<u8>>) -> StreamSegment {
        StreamSegment {
            buffer: buffer.unwrap_or_else(|| vec![0; SEGMENT_BYTES]),
            filled: 0,
            scouting: Mutex::new(Scouting::Open),
            settled: Condvar::new(),
        }
    }

    /// Returns the bytes that were read.
    pub(super) fn bytes(&self) -> &[u8] {
        &self.buffer[..self.filled]
    }

    /// Returns whether the segment has enough space for another read.
    pub(super) fn has_room(&self) -> bool {
        self.buffer.len() - self.filled >= LEAST_ROOM_BYTES
    }

    /// Returns the space for more bytes. [Add](Self::add) them after reading.
    pub(super) fn room(&mut self) -> &mut [u8] {
        &mut self.buffer[self.filled..]
    }

    pub(super) fn add(&mut self, len: usize) {
        self.filled += len;
    }

    /// Returns the buffer for reuse.
    pub(super) fn into_buffer(self) -> Vec<u8> {
        self.buffer
    }

    /// Returns whether a thread may still begin to look ahead in the segment.
    pub(super) fn is_open(&self) -> bool {
        matches!(*self.scouting(), Scouting::Open)
    }

    /// Claims the segment for a scout, unless another thread has claimed it.
    pub(super) fn claim(&self) -> Option<SegmentClaim<'_>> {
        let mut scouting = self.scouting();
        matches!(*scouting, Scouting::Open).then(|| {
            *scouting = Scouting::UnderWay;
            SegmentClaim { segment: self }
        })
    }

    /// Returns the results when the receiver reaches the segment. No thread may begin to look ahead
    /// afterwards.
    pub(super) fn arrive(&self) -> Lookahead {
        let mut scouting = self.scouting();
        match std::mem::replace(&mut *scouting, Scouting::Over) {
            Scouting::Done(scouted) => Lookahead::Known(scouted),
            Scouting::UnderWay => {
                *scouting = Scouting::UnderWay;
                Lookahead::UnderWay
            }
            Scouting::Open | Scouting::Over => Lookahead::Unknown,
        }
    }

    /// Waits for the scout of the segment, if there is one.
    pub(super) fn wait(&self) {
        let mut scouting = self.scouting();
        while matches!(*scouting, Scouting::UnderWay) {
            let waited = self.settled.wait(scouting);
            scouting = waited.unwrap_or_else(PoisonError::into_inner);
        }
    }

    fn scouting(&self) -> MutexGuard<'_, Scouting> {
        self.scouting.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn settle(&self, scouting: Scouting) {
        *self.scouting() = scouting;
        self.settled.notify_all();
    }
}

/// The claim of a scout, which must report its results for the segment.
pub(super) struct SegmentClaim<'a> {
    segment: &'a StreamSegment,
}

impl SegmentClaim<'_> {
    /// Stores the results.
    pub(super) fn settle(self, scouted: Scouted) {
        self.segment.settle(Scouting::Done(scouted));
        std::mem::forget(self);
    }
}

impl Drop for SegmentClaim<'_> {
    /// Releases the receiver if the scout has failed.
    fn drop(&mut self) {
        self.segment.settle(Scouting::Over);
    }
}
