//! Received, unread bytes in one contiguous slice.
//!
//! Parsers read in place. The only copy between the socket and a parser is the start of an
//! incomplete record when the buffer has reached its end. Such a move never costs more than the
//! bytes consumed since the previous move, so the total number of moved bytes is at most the number
//! of received bytes.

use std::io::{self, Read};

use super::{QueueFull, QueueMemory};

/// A bounded first-in-first-out queue of bytes, which are always in one slice.
///
/// Removal from the front is an addition; appending is a read directly into the free tail. The
/// buffer doubles when the unread bytes need it, up to twice the limit. It is halved when four
/// times its size has passed through it without filling a quarter of it.
#[derive(Debug)]
pub struct ReceiveQueue {
    buffer: Vec<u8>,
    start: usize,
    end: usize,
    limit: usize,
    /// The maximum number of unread bytes since the size was last checked, and the number of bytes
    /// consumed since then.
    most_waiting: usize,
    passed: usize,
    moved: u64,
    counters: QueueMemory,
}

/// The minimum free tail for a read, so that a nearly full buffer does not cause tiny reads.
const LEAST_READ: usize = 16 * 1024;

/// The minimum size of a buffer. A buffer of this size is never halved.
const LEAST_BUFFER: usize = 64 * 1024;

impl ReceiveQueue {
    /// Creates an empty queue that holds at most `limit` bytes at a time. Allocates nothing yet.
    pub fn new(limit: usize) -> Self {
        ReceiveQueue {
            buffer: Vec::new(),
            start: 0,
            end: 0,
            limit: limit.max(1),
            most_waiting: 0,
            passed: 0,
            moved: 0,
            counters: QueueMemory::default(),
        }
    }

    /// Returns all unread bytes, oldest first.
    pub fn bytes(&self) -> &[u8] {
        &self.buffer[self.start..self.end]
    }

    /// Returns the number of unread bytes.
    pub fn len(&self) -> usize {
        self.end - self.start
    }

    /// Whether there are no unread bytes.
    pub fn is_empty(&self) -> bool {
        self.start == self.end
    }

    /// Returns the number of bytes that still fit into the limit.
    pub fn free_bytes(&self) -> usize {
        self.limit - self.len()
    }

    /// Removes `count` bytes from the front, in constant time.
    ///
    /// # Panics
    /// Panics if fewer than `count` bytes are unread.
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

    /// Reads once from `source` into the free tail, up to the limit. Returns the number of bytes,
    /// or 0 if the source has ended.
    ///
    /// # Errors
    /// Fails with the errors of `source`, except [`io::ErrorKind::Interrupted`], after which the
    /// read is retried. Fails with [`io::ErrorKind::StorageFull`] if the limit is reached.
    pub fn read_from(&mut self, source: &mut (impl Read + ?Sized)) -> io::Result<usize> {
        if self.make_room(LEAST_READ) == 0 {
            return Err(io::Error::new(io::ErrorKind::StorageFull, QueueFull));
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

    /// Appends all of `bytes`, or nothing on an error. This copies the bytes;
    /// [`read_from`](Self::read_from) does not.
    ///
    /// # Errors
    /// Fails with [`QueueFull`] if `bytes` would exceed the limit.
    pub fn extend_from_slice(&mut self, bytes: &[u8]) -> Result<(), QueueFull> {
        if bytes.len() > self.free_bytes() {
            return Err(QueueFull);
        }
        self.make_room(bytes.len());
        self.buffer[self.end..self.end + bytes.len()].copy_from_slice(bytes);
        self.counters.copied(bytes.len());
        self.end += bytes.len();
        self.most_waiting = self.most_waiting.max(self.len());
        Ok(())
    }

    /// Frees the buffer if there are no unread bytes. For idle connections.
    pub fn release_when_empty(&mut self) {
        if self.is_empty() {
            self.buffer = Vec::new();
        }
    }

    /// Returns the number of bytes that were moved within the buffer, which is at most the number
    /// of received bytes.
    pub fn moved_bytes(&self) -> u64 {
        self.moved
    }

    /// Returns the copied and allocated bytes of this queue.
    pub fn counters(&self) -> QueueMemory {
        self.counters
    }

    /// Returns the size of the buffer in bytes.
    pub fn held_bytes(&self) -> usize {
        self.buffer.len()
    }

    /// Makes the free tail at least `wanted` bytes long, or as long as the limit allows. Returns
    /// the number of bytes that still fit into the limit.
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
        // At twice the limit a move is always possible before the buffer grows, so this is the
        // upper bound.
        let doubled = (self.buffer.len() * 2).min(self.limit * 2);
        let size = needed.max(doubled);
        let mut larger = vec![0; size];
        larger[self.start..self.end].copy_from_slice(self.bytes());
        self.counters.copied(self.len());
        self.counters.allocated(size);
        self.buffer = larger;
    }

    /// Halves an empty buffer that was much too large for the recent traffic. Growing again costs
    /// less than the bytes that have passed, so the total cost stays linear.
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
