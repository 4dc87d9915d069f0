//! A segment of the stream, shared by its users: the receiver that parses it, scouts that look
//! ahead, and the writer.

use super::scout::Scouted;
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};

/// The largest number of bytes of the stream that are read, or written, at once.
pub(super) const SEGMENT_BYTES: usize = 256 << 10;
/// The remaining space below which a segment is handed on, because reads would become small.
const LEAST_ROOM_BYTES: usize = 16 << 10;

/// A piece of the stream.
pub(super) struct Segment {
    buffer: Vec<u8>,
    filled: usize,
    scouting: Mutex<Scouting>,
    settled: Condvar,
}

/// The state of reading ahead.
enum Scouting {
    /// No thread has looked ahead.
    Open,
    /// A scout is at it.
    UnderWay,
    /// A scout has been there.
    Done(Scouted),
    /// The receiver has come, or the scout was lost: there is nothing more to be had.
    Over,
}

/// The state in which the receiver finds a segment.
pub(super) enum Arrival {
    /// No thread looked ahead, and none will.
    Unknown,
    /// A scout is not done yet.
    UnderWay,
    /// This is what a scout found.
    Known(Scouted),
}

impl Segment {
    /// Creates an empty segment that uses `buffer`, or new memory.
    pub(super) fn new(buffer: Option<Vec<u8>>) -> Segment {
        Segment {
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

    /// Whether it is worth while to read more into it.
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

    /// The memory, for the next one.
    pub(super) fn into_buffer(self) -> Vec<u8> {
        self.buffer
    }

    /// Returns whether a thread may still begin to look ahead here.
    pub(super) fn is_open(&self) -> bool {
        matches!(*self.scouting(), Scouting::Open)
    }

    /// Claims the segment for looking ahead, unless another thread has.
    pub(super) fn claim(&self) -> Option<Claim<'_>> {
        let mut scouting = self.scouting();
        matches!(*scouting, Scouting::Open).then(|| {
            *scouting = Scouting::UnderWay;
            Claim { segment: self }
        })
    }

    /// Returns the results when the receiver reaches the segment. No thread may begin to look ahead
    /// afterwards.
    pub(super) fn arrive(&self) -> Arrival {
        let mut scouting = self.scouting();
        match std::mem::replace(&mut *scouting, Scouting::Over) {
            Scouting::Done(scouted) => Arrival::Known(scouted),
            Scouting::UnderWay => {
                *scouting = Scouting::UnderWay;
                Arrival::UnderWay
            }
            Scouting::Open | Scouting::Over => Arrival::Unknown,
        }
    }

    /// Waits for the scout that is under way, if any.
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

/// The right, and the duty, to report what a segment holds.
pub(super) struct Claim<'a> {
    segment: &'a Segment,
}

impl Claim<'_> {
    /// Stores the results.
    pub(super) fn settle(self, scouted: Scouted) {
        self.segment.settle(Scouting::Done(scouted));
        std::mem::forget(self);
    }
}

impl Drop for Claim<'_> {
    /// A scout that failed does not block the receiver.
    fn drop(&mut self) {
        self.segment.settle(Scouting::Over);
    }
}
