//! Reads packets from a byte stream, and parses them in place in the receive buffer.

use std::io::{ErrorKind as ErrorCode, Read};

use pronto_io::queue::ReceiveQueue;

use crate::error::{Error, ErrorKind, hung_up};
use crate::pktline::{self, MAX_LINE, Packet, Parsed};

/// The size of the receive buffer. It holds two packets of maximum length, so that one read can return
/// the rest of one packet and all of the next.
const QUEUE_LIMIT: usize = 2 * 65_536;

/// Reads packets from `R`. A packet borrows from the receive buffer until the next call.
#[derive(Debug)]
pub struct PacketReader<R> {
    source: R,
    queue: ReceiveQueue,
    /// The number of bytes at the front of the buffer that were returned and are released in the next
    /// call.
    used: usize,
}

impl<R: Read> PacketReader<R> {
    /// Creates a reader of packets from `source`.
    pub fn new(source: R) -> Self {
        const { assert!(QUEUE_LIMIT >= MAX_LINE) };
        PacketReader {
            source,
            queue: ReceiveQueue::new(QUEUE_LIMIT),
            used: 0,
        }
    }

    /// Returns the next packet. An `ERR` packet becomes an error with the message of the remote side.
    ///
    /// # Errors
    /// Fails with [`ErrorKind::Malformed`] if the bytes are not a packet, [`ErrorKind::Disconnected`]
    /// if the stream ends, [`ErrorKind::Connection`] if reading fails, or [`ErrorKind::Remote`] for an
    /// `ERR` packet.
    pub fn next_packet(&mut self) -> Result<Packet<'_>, Error> {
        self.next_or_end()?.ok_or_else(hung_up)
    }

    /// Returns the next packet, or `None` if the stream ends before its first byte.
    ///
    /// # Errors
    /// As for [`next_packet`](Self::next_packet).
    pub fn next_or_end(&mut self) -> Result<Option<Packet<'_>>, Error> {
        let Some(length) = self.fill()? else {
            return Ok(None);
        };
        self.used = length;
        let packet = self.front()?;
        if let Packet::Data(payload) = packet
            && let Some(message) = payload.strip_prefix(b"ERR ")
        {
            return Err(remote_error(message));
        }
        Ok(Some(packet))
    }

    /// Returns the packet that [`next_packet`](Self::next_packet) would return, without removing it.
    ///
    /// # Errors
    /// As for [`next_packet`](Self::next_packet), except for `ERR` packets.
    pub fn peek(&mut self) -> Result<Option<Packet<'_>>, Error> {
        match self.fill()? {
            Some(_) => self.front().map(Some),
            None => Ok(None),
        }
    }

    /// Returns the bytes of the last packet, as long as no further call has read from the stream.
    pub(crate) fn current(&self) -> &[u8] {
        &self.queue.bytes()[..self.used]
    }

    /// Returns the next bytes without framing, for a pack that is sent without a side band. Empty at
    /// the end of the stream.
    ///
    /// # Errors
    /// Fails with [`ErrorKind::Connection`] if reading fails.
    pub fn raw(&mut self) -> Result<&[u8], Error> {
        self.release();
        if self.queue.is_empty() {
            self.read_more()?;
        }
        Ok(self.queue.bytes())
    }

    /// Removes `count` of the bytes that [`raw`](Self::raw) has returned.
    ///
    /// # Panics
    /// Panics if `count` is larger than the number of these bytes.
    pub fn consume_raw(&mut self, count: usize) {
        self.queue.consume(count);
    }

    /// Returns the underlying stream.
    pub fn source(&self) -> &R {
        &self.source
    }

    /// Returns the underlying stream for writing.
    pub fn source_mut(&mut self) -> &mut R {
        &mut self.source
    }

    /// Returns the underlying stream. Packets that were read ahead are lost.
    pub fn into_source(self) -> R {
        self.source
    }

    /// Returns whether there are bytes that were read and not returned yet.
    pub fn has_buffered(&self) -> bool {
        self.queue.len() > self.used
    }

    fn release(&mut self) {
        self.queue.consume(std::mem::take(&mut self.used));
    }

    /// Reads a complete packet into the buffer. Returns its length, or `None` at the end of the stream.
    fn fill(&mut self) -> Result<Option<usize>, Error> {
        self.release();
        loop {
            let needed = match pktline::parse(self.queue.bytes())? {
                Parsed::Complete { length, .. } => return Ok(Some(length)),
                Parsed::Incomplete { length } => length,
            };
            while self.queue.len() < needed {
                if self.read_more()? == 0 {
                    return if self.queue.is_empty() {
                        Ok(None)
                    } else {
                        Err(hung_up())
                    };
                }
            }
        }
    }

    fn front(&self) -> Result<Packet<'_>, Error> {
        match pktline::parse(self.queue.bytes())? {
            Parsed::Complete { packet, .. } => Ok(packet),
            Parsed::Incomplete { .. } => Err(hung_up()),
        }
    }

    fn read_more(&mut self) -> Result<usize, Error> {
        self.queue.read_from(&mut self.source).map_err(|error| {
            let message = match error.kind() {
                ErrorCode::TimedOut => format!("error reading from the remote: {error}"),
                _ => "error reading from the remote".into(),
            };
            Error::new(ErrorKind::Connection, message).because(error)
        })
    }
}

fn remote_error(message: &[u8]) -> Error {
    let message = message.strip_suffix(b"\n").unwrap_or(message);
    let message = crate::sanitize::sanitized(message);
    Error::new(ErrorKind::Remote, format!("remote error: {message}"))
}
