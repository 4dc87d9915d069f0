//! Reads packets from a byte stream, parsed in place in the receive queue.

use std::io::{ErrorKind as ErrorCode, Read};

use pronto_io::queue::ReceiveQueue;

use crate::error::{Error, ErrorKind, hung_up};
use crate::pktline::{self, MAX_LINE, Packet, Parsed};

/// The queue holds two packets of the greatest length, so that one read can bring the rest of one
/// and all of the next.
const QUEUE_LIMIT: usize = 2 * 65_536;

/// Reads packets from `R`. A packet borrows from the queue and lives until the next call.
#[derive(Debug)]
pub struct PacketReader<R> {
    source: R,
    queue: ReceiveQueue,
    /// Bytes at the front of the queue that were handed out and can go at the next call.
    used: usize,
}

impl<R: Read> PacketReader<R> {
    /// A reader of the packets that come from `source`.
    pub fn new(source: R) -> Self {
        const { assert!(QUEUE_LIMIT >= MAX_LINE) };
        PacketReader {
            source,
            queue: ReceiveQueue::new(QUEUE_LIMIT),
            used: 0,
        }
    }

    /// The next packet. An `ERR` packet becomes an error that says what the other side said.
    ///
    /// # Errors
    /// If the bytes are not packets, the stream ends or breaks, or the other side reports one.
    pub fn next_packet(&mut self) -> Result<Packet<'_>, Error> {
        self.next_or_end()?.ok_or_else(hung_up)
    }

    /// The next packet, or `None` if the stream ended before its first byte.
    ///
    /// # Errors
    /// As [`next_packet`](Self::next_packet).
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

    /// The packet that [`next_packet`](Self::next_packet) would return, left in its place.
    ///
    /// # Errors
    /// Like [`next_packet`](Self::next_packet), `ERR` packets aside.
    pub fn peek(&mut self) -> Result<Option<Packet<'_>>, Error> {
        match self.fill()? {
            Some(_) => self.front().map(Some),
            None => Ok(None),
        }
    }

    /// The payload handed out last, as long as nothing else was read.
    pub(crate) fn current(&self) -> &[u8] {
        &self.queue.bytes()[..self.used]
    }

    /// Bytes as they come, without framing: for a pack that is sent without a side band. Empty at
    /// the end of the stream.
    ///
    /// # Errors
    /// If the stream breaks.
    pub fn raw(&mut self) -> Result<&[u8], Error> {
        self.release();
        if self.queue.is_empty() {
            self.read_more()?;
        }
        Ok(self.queue.bytes())
    }

    /// Takes `count` of the bytes that [`raw`](Self::raw) showed.
    ///
    /// # Panics
    /// If that is more than it showed.
    pub fn consume_raw(&mut self, count: usize) {
        self.queue.consume(count);
    }

    /// The stream under the packets.
    pub fn source(&self) -> &R {
        &self.source
    }

    /// The stream under the packets, to write to.
    pub fn source_mut(&mut self) -> &mut R {
        &mut self.source
    }

    /// Returns the stream. Packets that were read ahead are lost.
    pub fn into_source(self) -> R {
        self.source
    }

    /// Whether bytes were read that are not yet handed out.
    pub fn has_buffered(&self) -> bool {
        self.queue.len() > self.used
    }

    fn release(&mut self) {
        self.queue.consume(std::mem::take(&mut self.used));
    }

    /// Brings a whole packet to the front of the queue; its length, or `None` at a clean end.
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
