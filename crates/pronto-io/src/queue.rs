//! Bytes received and not yet used, in one contiguous piece.
//!
//! Parsers read where the bytes lie, so nothing is copied between the socket and them but the
//! tail of a record that is still incomplete when the buffer has come to its end. Such a move
//! never costs more than the bytes consumed since the one before: over any run, the bytes moved
//! are at most the bytes received.

use std::io::{self, Read};

/// A bounded first-in-first-out queue of bytes whose content is always one slice.
///
/// Taking from the front is an addition; appending is a read straight into the free tail. Memory
/// grows with what is really waiting, up to twice the limit, and is reused for ever after.
#[derive(Debug)]
pub struct ReceiveQueue {
    buffer: Vec<u8>,
    start: usize,
    end: usize,
    limit: usize,
    moved: u64,
}

/// The queue already holds as much as it may.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Full;

impl std::fmt::Display for Full {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("the receive queue is full")
    }
}

impl std::error::Error for Full {}

/// The least free tail worth a read, so that a nearly full buffer does not make tiny reads.
const LEAST_READ: usize = 16 * 1024;

impl ReceiveQueue {
    /// An empty queue that holds at most `limit` bytes at a time. Allocates nothing yet.
    pub fn new(limit: usize) -> Self {
        ReceiveQueue {
            buffer: Vec::new(),
            start: 0,
            end: 0,
            limit: limit.max(1),
            moved: 0,
        }
    }

    /// All bytes that are waiting, oldest first.
    pub fn bytes(&self) -> &[u8] {
        &self.buffer[self.start..self.end]
    }

    /// How many bytes are waiting.
    pub fn len(&self) -> usize {
        self.end - self.start
    }

    /// Whether nothing is waiting.
    pub fn is_empty(&self) -> bool {
        self.start == self.end
    }

    /// Removes `count` bytes from the front: O(1).
    ///
    /// # Panics
    /// If fewer bytes are waiting.
    pub fn consume(&mut self, count: usize) {
        assert!(count <= self.len(), "consumed more than was waiting");
        self.start += count;
        if self.start == self.end {
            self.start = 0;
            self.end = 0;
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
        let room = (self.buffer.len() - self.end).min(self.limit - self.len());
        loop {
            match source.read(&mut self.buffer[self.end..self.end + room]) {
                Ok(count) => {
                    self.end += count.min(room);
                    return Ok(count);
                }
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            }
        }
    }

    /// Appends `bytes`, all or none of them.
    ///
    /// # Errors
    /// [`Full`] if they would exceed the limit.
    pub fn extend_from_slice(&mut self, bytes: &[u8]) -> Result<(), Full> {
        if bytes.len() > self.limit - self.len() {
            return Err(Full);
        }
        self.make_room(bytes.len());
        self.buffer[self.end..self.end + bytes.len()].copy_from_slice(bytes);
        self.end += bytes.len();
        Ok(())
    }

    /// How many bytes were ever moved inside the buffer: never more than were received.
    pub fn moved_bytes(&self) -> u64 {
        self.moved
    }

    /// Makes the free tail at least `wanted` bytes, or as near as the limit allows, and returns
    /// how many more bytes may be queued at all.
    fn make_room(&mut self, wanted: usize) -> usize {
        let allowed = self.limit - self.len();
        let wanted = wanted.min(allowed);
        if self.buffer.len() - self.end >= wanted {
            return allowed;
        }
        if self.start >= self.len() {
            self.buffer.copy_within(self.start..self.end, 0);
            self.moved += self.len() as u64;
            self.end -= self.start;
            self.start = 0;
        }
        let needed = self.end + wanted;
        if needed > self.buffer.len() {
            // At twice the limit a move is always due before growth, so this is the upper bound.
            let doubled = (self.buffer.len() * 2).min(self.limit * 2);
            self.buffer.resize(needed.max(doubled), 0);
        }
        allowed
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bytes_come_out_in_the_order_they_went_in() {
        let data: Vec<u8> = (0..200_000u32).map(|n| (n % 251) as u8).collect();
        let mut source = &data[..];
        let mut queue = ReceiveQueue::new(70_000);
        let mut out = Vec::new();
        let mut step = 1;
        loop {
            if queue.len() < 65_000 && queue.read_from(&mut source).expect("a slice reads") == 0 {
                break;
            }
            let take = step.min(queue.len());
            out.extend_from_slice(&queue.bytes()[..take]);
            queue.consume(take);
            step = step * 7 % 9_973;
        }
        out.extend_from_slice(queue.bytes());
        assert_eq!(out, data);
        assert!(queue.moved_bytes() <= data.len() as u64);
    }

    #[test]
    fn single_byte_steps_stay_linear() {
        let mut queue = ReceiveQueue::new(1000);
        queue.extend_from_slice(&[7; 1000]).expect("room");
        for _ in 0..100_000 {
            queue.consume(1);
            queue.extend_from_slice(&[7]).expect("room");
        }
        assert!(queue.moved_bytes() <= 101_000, "{}", queue.moved_bytes());
        assert!(queue.buffer.len() <= 2000);
    }

    #[test]
    fn the_limit_holds() {
        let mut queue = ReceiveQueue::new(10);
        assert_eq!(queue.extend_from_slice(&[0; 11]), Err(Full));
        queue.extend_from_slice(&[0; 10]).expect("room");
        let error = queue.read_from(&mut &b"x"[..]).expect_err("full");
        assert_eq!(error.kind(), io::ErrorKind::StorageFull);
    }
}
