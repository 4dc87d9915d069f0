//! Side bands: pack data, messages and errors multiplexed into packets
//! (`gitprotocol-pack(5)`, "Packfile Data").

use std::io::Read;
use std::ops::Range;

use bstr::ByteSlice;
use pronto_io::interrupt::Interrupt;
use pronto_io::progress::{Progress, ProgressMessage};

use crate::error::{Error, ErrorKind, malformed};
use crate::pktline::Packet;
use crate::reader::PacketReader;
use crate::sanitize::sanitized;

/// The length from which a message is shown in pieces, so that the memory is limited.
const LONGEST_LINE: usize = 64 * 1024;

/// The data of side band 1 as a stream, read in place without a copy. Messages of side band 2 are
/// passed to `progress`.
pub struct Demultiplexer<'a, R> {
    packets: &'a mut PacketReader<R>,
    messages: RemoteMessages<'a>,
    /// The unread range of the payload of the current packet.
    left: Range<usize>,
    ended: bool,
    interrupt: Interrupt,
}

impl<'a, R: Read> Demultiplexer<'a, R> {
    /// Creates a stream over the side-band packets from `packets`, up to a flush packet.
    pub fn new(packets: &'a mut PacketReader<R>, progress: &'a dyn Progress) -> Self {
        Demultiplexer {
            packets,
            messages: RemoteMessages::new(progress),
            left: 0..0,
            ended: false,
            interrupt: Interrupt::new(),
        }
    }

    /// Checks `interrupt` between packets, because a server may send messages without end.
    #[must_use]
    pub fn interruptible(mut self, interrupt: &Interrupt) -> Self {
        self.interrupt = interrupt.clone();
        self
    }

    /// Returns the next bytes of side band 1; empty at the end of the stream. Reads packets only if
    /// there are no unread bytes.
    ///
    /// # Errors
    /// Fails as [`PacketReader::next_packet`] does, with [`ErrorKind::Malformed`] for an invalid band,
    /// [`ErrorKind::Remote`] for an error on side band 3, or with [`ErrorKind::Interrupted`].
    pub fn data(&mut self) -> Result<&[u8], Error> {
        while self.left.is_empty() && !self.ended {
            self.interrupt
                .check()
                .map_err(|_| Error::new(ErrorKind::Interrupted, "interrupted"))?;
            match self.packets.next_packet()? {
                Packet::Data([1, data @ ..]) => {
                    let start = 5;
                    self.left = start..start + data.len();
                }
                Packet::Data([2, text @ ..]) => self.messages.push(text),
                Packet::Data([3, text @ ..]) => {
                    let text = text.trim_end_with(|c| c == '\n');
                    let message = format!("remote error: {}", sanitized(text));
                    self.messages.finish();
                    return Err(Error::new(ErrorKind::Remote, message));
                }
                Packet::Flush => {
                    self.ended = true;
                    self.messages.finish();
                }
                Packet::Data([]) => {
                    return Err(malformed("protocol error: missing sideband designator"));
                }
                Packet::Data([band, ..]) => {
                    return Err(malformed(format!("protocol error: bad band #{band}")));
                }
                Packet::Delimiter | Packet::ResponseEnd => {
                    return Err(malformed("protocol error: unexpected packet in the pack"));
                }
            }
        }
        if self.ended {
            return Ok(&[]);
        }
        Ok(&self.packets.current()[self.left.clone()])
    }

    /// Returns the underlying stream.
    pub fn source(&self) -> &R {
        self.packets.source()
    }

    /// Removes `count` of the bytes that [`data`](Self::data) has returned.
    pub fn advance(&mut self, count: usize) {
        self.left.start = (self.left.start + count).min(self.left.end);
    }

    /// Reads up to the end of the stream and discards the data, so that late messages are shown.
    ///
    /// # Errors
    /// As for [`data`](Self::data).
    pub fn drain(&mut self) -> Result<(), Error> {
        loop {
            let count = self.data()?.len();
            if count == 0 {
                return Ok(());
            }
            self.advance(count);
        }
    }

    /// Reads up to the end of the stream, so that late messages are shown.
    ///
    /// # Errors
    /// As for [`data`](Self::data), and with [`ErrorKind::Malformed`] if there are further data.
    pub fn finish(&mut self) -> Result<(), Error> {
        if self.data()?.is_empty() {
            Ok(())
        } else {
            Err(malformed("protocol error: data after the end of the pack"))
        }
    }
}

/// Splits messages of the remote side into lines, and makes them safe for a terminal.
///
/// Each line is passed to [`Progress::message`] as [`ProgressMessage::Remote`].
pub struct RemoteMessages<'a> {
    progress: &'a dyn Progress,
    partial: Vec<u8>,
}

impl<'a> RemoteMessages<'a> {
    /// Creates a splitter that passes lines to `progress`.
    pub fn new(progress: &'a dyn Progress) -> Self {
        RemoteMessages {
            progress,
            partial: Vec::new(),
        }
    }

    /// Takes the next part of the text, which may end in the middle of a line.
    pub fn push(&mut self, mut text: &[u8]) {
        while let Some(end) = text.find_byteset(b"\n\r") {
            self.partial.extend_from_slice(&text[..end]);
            self.show(text[end] == b'\r');
            text = &text[end + 1..];
        }
        self.partial.extend_from_slice(text);
        if self.partial.len() > LONGEST_LINE {
            self.show(false);
        }
    }

    /// Passes on a last line without a line end.
    pub fn finish(&mut self) {
        if !self.partial.is_empty() {
            self.show(false);
        }
    }

    fn show(&mut self, is_overwritten: bool) {
        self.progress.message(ProgressMessage::Remote {
            line: &sanitized(&self.partial),
            is_overwritten,
        });
        self.partial.clear();
    }
}
