//! The bytes of a push that were read before its check, for the service that performs the push.

use std::collections::VecDeque;
use std::io::{self, Read};

use pronto_io::budget::RequestBudget;
use pronto_wire::pktline;

use super::malformed_packet;
use crate::Result;
use crate::error::without_room;

/// The size in bytes of the first buffer. Each further buffer is twice as large as the previous
/// one.
const FIRST_PIECE_BYTES: usize = 4 << 10;

/// The size in bytes of the largest buffers, unless a packet needs a larger one.
const LAST_PIECE_BYTES: usize = 1 << 20;

/// The length in bytes of the pkt-line header.
const LENGTH_BYTES: usize = 4;

/// Packets in buffers of memory. Each buffer is charged to the budget before it is allocated, and
/// freed as soon as its bytes are read again, so that the copy of the packets in the service does
/// not use additional memory.
pub(crate) struct PacketBuffer<'a> {
    budget: &'a RequestBudget,
    pieces: VecDeque<Vec<u8>>,
    /// The number of bytes of the first buffer that were read.
    at: usize,
}

impl<'a> PacketBuffer<'a> {
    pub(super) fn new(budget: &'a RequestBudget) -> Self {
        PacketBuffer {
            budget,
            pieces: VecDeque::new(),
            at: 0,
        }
    }

    pub(super) fn is_empty(&self) -> bool {
        self.pieces.is_empty()
    }

    /// Adds a packet.
    ///
    /// # Errors
    /// Fails if the budget has no room.
    pub(super) fn packet(&mut self, payload: &[u8]) -> Result<()> {
        let piece = self.piece(payload.len() + LENGTH_BYTES)?;
        pktline::write(piece, payload).map_err(malformed_packet)
    }

    /// Adds the flush packet after the packets.
    ///
    /// # Errors
    /// Fails if the budget has no room.
    pub(super) fn flush(&mut self) -> Result<()> {
        pktline::write_flush(self.piece(LENGTH_BYTES)?);
        Ok(())
    }

    /// Adds bytes after the packets.
    ///
    /// # Errors
    /// Fails if the budget has no room.
    pub(super) fn rest(&mut self, bytes: &[u8]) -> Result<()> {
        self.piece(bytes.len())?.extend_from_slice(bytes);
        Ok(())
    }

    /// Returns a buffer with room for `len` bytes.
    fn piece(&mut self, len: usize) -> Result<&mut Vec<u8>> {
        let last = self.pieces.back();
        let has_room = last.is_some_and(|last| last.capacity() - last.len() >= len);
        if !has_room {
            let twice = last.map_or(FIRST_PIECE_BYTES, |last| 2 * last.capacity());
            let size = twice.min(LAST_PIECE_BYTES).max(len);
            self.budget.charge(size as u64).map_err(without_room)?;
            self.pieces.push_back(Vec::with_capacity(size));
        }
        let at = self.pieces.len() - 1;
        Ok(&mut self.pieces[at])
    }
}

impl Read for PacketBuffer<'_> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        while let Some(piece) = self.pieces.front() {
            let count = (&piece[self.at..]).read(buffer)?;
            self.at += count;
            if self.at == piece.len() {
                self.budget.give_back(piece.capacity() as u64);
                self.pieces.pop_front();
                self.at = 0;
            }
            if count > 0 || buffer.is_empty() {
                return Ok(count);
            }
        }
        Ok(0)
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use pronto_io::budget::MemoryAccount;

    use super::*;

    #[test]
    fn memory_is_given_back_as_it_is_read() {
        let account = Arc::new(MemoryAccount::new("all clients", 8 << 20));
        let budget = RequestBudget::new(vec![Arc::clone(&account)]);
        let mut kept = PacketBuffer::new(&budget);
        let line = [b'x'; 120];
        let mut count = 0;
        while kept.packet(&line).is_ok() {
            count += 1;
        }
        let bytes = count * (line.len() + LENGTH_BYTES);
        assert!(bytes > 6 << 20 && account.held() <= 8 << 20, "{bytes}");
        let mut read = vec![0; bytes / 2];
        kept.read_exact(&mut read).expect("it is there");
        assert!(account.held() < 5 << 20);
        kept.rest(b"PACK").expect("there is room");
        read.clear();
        kept.read_to_end(&mut read).expect("it is memory");
        assert!(read.ends_with(b"PACK"));
        assert_eq!(account.held(), 0);
    }
}
