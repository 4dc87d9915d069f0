//! Received, unread bytes in one contiguous slice.
//!
//! Parsers read in place. The only copy between the socket and a parser is the tail of an
//! incomplete record when the buffer has reached its end. Such a move never costs more than the
//! bytes consumed since the previous one, so over any run at most as many bytes are moved as
//! received.

use std::io::{self, Read};

use super::{Counters, Full};

/// A bounded first-in-first-out queue of bytes whose content is always one slice.
///
/// Taking from the front is an addition; appending is a read straight into the free tail. Memory
/// grows by doubling with what is really waiting, up to twice the limit. It is halved when four
/// times its size has passed through without a quarter of it ever waiting.
#[derive(Debug)]
pub struct ReceiveQueue {
    buffer: Vec<u8>,
    start: usize,
    end: usize,
    limit: usize,
    /// The most unread bytes since the size was last checked, and the bytes consumed since.
    most_waiting: usize,
    passed: usize,
    moved: u64,
    counters: Counters,
}

/// The least free tail worth a read, so that a nearly full buffer does not make tiny reads.
const LEAST_READ: usize = 16 * 1024;

/// A buffer up to this size is never halved.
const LEAST_BUFFER: usize = 64 * 1024;

impl ReceiveQueue {
    /// An empty queue that holds at most `limit` bytes at a time. Allocates nothing yet.
    pub fn new(limit: usize) -> Self {
        ReceiveQueue {
            buffer: Vec::new(),
            start: 0,
            end: 0,
            limit: limit.max(1),
            most_waiting: 0,
            passed: 0,
            moved: 0,
            counters: Counters::default(),
        }
    }

    /// All bytes that are waiting, oldest first.
    pub fn bytes(&self) -> &[u8] {
        &self.buffer[self.start..self.end]
    }

    /// Returns the number of waiting bytes.
    pub fn len(&self) -> usize {
        self.end - self.start
    }

    /// Whether nothing is waiting.
    pub fn is_empty(&self) -> bool {
        self.start == self.end
    }

    /// Returns the number of bytes that may still be queued.
    pub fn free_bytes(&self) -> usize {
        self.limit - self.len()
    }

    /// Removes `count` bytes from the front: O(1).
    ///
    /// # Panics
    /// If fewer bytes are waiting.
    pub fn consume(&mut self, count: usize) {
        assert!(count <= self.len(), "consumed more than was waiting");
        self.start += count;
        self.passed = self.passed.saturating_add(count);
        if self.start == self.end {
            self.start = 0;
            self.end = 0;
            self.reconsider_size();
        }
    }

    /// Reads once from `source` into the free tail, as much as it gives and the limit allows.
    /// Returns how many bytes came; 0 means the source has ended.
    ///
    /// # Errors
    /// Those of the source, [`io::ErrorKind::Interrupted`] aside, which is tried again; and
    /// [`io::ErrorKind::StorageFull`] when the limit is reached.
    pub fn read_from(&mut self, source: &mut (impl Read + ?Sized)) -> io::Result<usize> {
        if self.make_room(LEAST_READ) == 0 {
            return Err(io::Error::new(io::ErrorKind::StorageFull, Full));
        }
        let room = (self.buffer.len() - self.end).min(self.free_bytes());
        loop {
            match source.read(&mut self.buffer[self.end..self.end + room]) {
                Ok(count) => {
                    self.end += count.min(room);
                    self.most_waiting = self.most_waiting.max(self.len());
                    return Ok(count);
                }
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            }
        }
    }

    /// Appends `bytes`, all or none of them. The bytes are copied; [`read_from`](Self::read_from)
    /// copies nothing.
    ///
    /// # Errors
    /// [`Full`] if they would exceed the limit.
    pub fn extend_from_slice(&mut self, bytes: &[u8]) -> Result<(), Full> {
        if bytes.len() > self.free_bytes() {
            return Err(Full);
        }
        self.make_room(bytes.len());
        self.buffer[self.end..self.end + bytes.len()].copy_from_slice(bytes);
        self.counters.copied(bytes.len());
        self.end += bytes.len();
        self.most_waiting = self.most_waiting.max(self.len());
        Ok(())
    }

    /// Frees all memory if nothing is unread: for idle connections.
    pub fn release_when_empty(&mut self) {
        if self.is_empty() {
            self.buffer = Vec::new();
        }
    }

    /// Returns the number of bytes that were moved inside the buffer: never more than were
    /// received.
    pub fn moved_bytes(&self) -> u64 {
        self.moved
    }

    /// Returns the copies and allocations of this queue.
    pub fn counters(&self) -> Counters {
        self.counters
    }

    /// Returns the memory that the queue holds, in bytes.
    pub fn held_bytes(&self) -> usize {
        self.buffer.len()
    }

    /// Makes the free tail at least `wanted` bytes, or as near as the limit allows, and returns
    /// how many more bytes may be queued at all.
    fn make_room(&mut self, wanted: usize) -> usize {
        let allowed = self.free_bytes();
        let wanted = wanted.min(allowed);
        if self.buffer.len() - self.end >= wanted {
            return allowed;
        }
        if self.start >= self.len() {
            self.buffer.copy_within(self.start..self.end, 0);
            self.moved += self.len() as u64;
            self.counters.copied(self.len());
            self.end -= self.start;
            self.start = 0;
        }
        let needed = self.end + wanted;
        if needed > self.buffer.len() {
            self.grow(needed);
        }
        allowed
    }

    fn grow(&mut self, needed: usize) {
        // At twice the limit a move is always due before growth, so this is the upper bound.
        let doubled = (self.buffer.len() * 2).min(self.limit * 2);
        let size = needed.max(doubled);
        let mut larger = vec![0; size];
        larger[self.start..self.end].copy_from_slice(self.bytes());
        self.counters.copied(self.len());
        self.counters.allocated(size);
        self.buffer = larger;
    }

    /// Halves an empty buffer that was much too large for what passed through it lately. Growing
    /// again costs less than what passed, so the sum stays linear.
    fn reconsider_size(&mut self) {
        let size = self.buffer.len();
        if size <= LEAST_BUFFER || self.passed / 4 < size {
            return;
        }
        if self.most_waiting < size / 4 {
            let halved = (size / 2).max(LEAST_BUFFER);
            self.buffer = vec![0; halved];
            self.counters.allocated(halved);
        }
        self.most_waiting = 0;
        self.passed = 0;
    }
}
