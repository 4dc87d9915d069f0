//! The receiving side: reads one frame at a time, in place, and tracks the remaining credit of each
//! channel.

use std::io::{self, Read};

use pronto_io::queue::{QueueFull, ReceiveQueue};

use super::{
    CHANNELS, Channel, DEFAULT_WINDOW_BYTES, FrameHeader, FrameType, HEADER_BYTES, MAX_FRAME_BYTES,
};
use crate::Error;
use crate::error::exceeded;

/// The limit on bytes in frames of unknown types, which are skipped.
pub const MAX_SKIPPED_BYTES: u64 = 1024 * 1024;

/// A frame in the queue.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct QueuedFrame<'a> {
    /// The type.
    pub kind: FrameType,
    /// The channel.
    pub channel: Channel,
    /// The body.
    pub body: &'a [u8],
}

/// A reader that splits the bytes of a transport into frames.
///
/// The frame at the front stays until [`consume`](Self::consume). No frame behind it is read, and
/// its channel gets no new credit, so that a consumer that stops also stops the sender.
#[derive(Debug)]
pub struct FrameReader {
    queue: ReceiveQueue,
    /// The header of the frame at the front, if the frame was already charged to its channel.
    charged: Option<FrameHeader>,
    window: [u64; CHANNELS],
    left: [u64; CHANNELS],
    consumed: [u64; CHANNELS],
    offset: u64,
    /// The number of bytes in skipped frames of unknown types.
    skipped_bytes: u64,
}

impl Default for FrameReader {
    fn default() -> Self {
        FrameReader::new(DEFAULT_WINDOW_BYTES)
    }
}

impl FrameReader {
    /// Creates a reader that grants `window_bytes` to each channel, but never less than one full
    /// frame. The reader holds at most two frames of bytes, whatever the window is.
    pub fn new(window_bytes: u64) -> Self {
        let window = window_bytes.max((HEADER_BYTES + MAX_FRAME_BYTES) as u64);
        FrameReader {
            queue: ReceiveQueue::new(2 * (HEADER_BYTES + MAX_FRAME_BYTES)),
            charged: None,
            window: [window; CHANNELS],
            left: [window; CHANNELS],
            consumed: [0; CHANNELS],
            offset: 0,
            skipped_bytes: 0,
        }
    }

    /// Reads once from `source`. Returns the number of bytes, or 0 at the end of `source`.
    ///
    /// # Errors
    /// Fails with the errors of `source`, and with [`io::ErrorKind::StorageFull`] while frames wait
    /// to be consumed.
    pub fn read_from(&mut self, source: &mut (impl Read + ?Sized)) -> io::Result<usize> {
        self.queue.read_from(source)
    }

    /// Copies as many of `bytes` as there is room for. Returns their number.
    pub fn accept(&mut self, bytes: &[u8]) -> usize {
        let count = bytes.len().min(self.queue.free_bytes());
        match self.queue.extend_from_slice(&bytes[..count]) {
            Ok(()) => count,
            Err(QueueFull) => 0,
        }
    }

    /// Returns the frame at the front if it is complete. Returns the same frame until it is
    /// consumed. Frames of unknown types are consumed by this method.
    ///
    /// # Errors
    /// Fails if the frame is malformed, exceeds the credit of its channel, or too many bytes were
    /// skipped. The stream cannot be read any further.
    pub fn peek(&mut self) -> Result<Option<QueuedFrame<'_>>, Error> {
        loop {
            let Some(header) = self.header()? else {
                return Ok(None);
            };
            if self.queue.len() < header.frame_bytes() {
                return Ok(None);
            }
            if header.kind.is_some() {
                break;
            }
            self.skipped_bytes += header.frame_bytes() as u64;
            if self.skipped_bytes > MAX_SKIPPED_BYTES {
                let message = "the peer sent more than 1 MiB in frames of unknown types";
                return Err(exceeded(message).at_offset(self.offset));
            }
            self.consume();
        }
        let Some(header) = self.charged else {
            return Ok(None);
        };
        Ok(header.kind.map(|kind| QueuedFrame {
            kind,
            channel: header.channel,
            body: &self.queue.bytes()[HEADER_BYTES..header.frame_bytes()],
        }))
    }

    /// Removes the frame that [`peek`](Self::peek) returned.
    ///
    /// # Panics
    /// Panics if there is no frame at the front.
    pub fn consume(&mut self) {
        let header = self
            .charged
            .take()
            .expect("consumed a frame that was not seen");
        self.queue.consume(header.frame_bytes());
        self.offset += header.frame_bytes() as u64;
        self.consumed[header.channel.index()] += header.frame_bytes() as u64;
    }

    /// Returns the credit to grant to `channel` now, which the caller sends. Returns `None` until
    /// half of the window was consumed, or the remaining credit is less than a full frame.
    pub fn take_grant(&mut self, channel: Channel) -> Option<u64> {
        let at = channel.index();
        let spare = self.window[at].saturating_sub((HEADER_BYTES + MAX_FRAME_BYTES) as u64);
        let least = (self.window[at] / 2).min(spare).max(1);
        if channel == Channel::Control || self.consumed[at] < least {
            return None;
        }
        let grant = std::mem::take(&mut self.consumed[at]);
        self.left[at] += grant;
        Some(grant)
    }

    /// Returns the number of bytes that wait to be consumed.
    pub fn waiting_bytes(&self) -> usize {
        self.queue.len()
    }

    /// Returns the queue, for its counters.
    pub fn queue(&self) -> &ReceiveQueue {
        &self.queue
    }

    /// Parses the header at the front, and charges the frame once to its channel.
    fn header(&mut self) -> Result<Option<FrameHeader>, Error> {
        if self.charged.is_some() {
            return Ok(self.charged);
        }
        let parsed =
            FrameHeader::parse(self.queue.bytes()).map_err(|error| error.at_offset(self.offset))?;
        let Some(header) = parsed else {
            return Ok(None);
        };
        if header.channel != Channel::Control {
            let left = &mut self.left[header.channel.index()];
            let Some(rest) = left.checked_sub(header.frame_bytes() as u64) else {
                return Err(exceeded(format!(
                    "a frame of {} bytes on channel {} exceeds the credit of {left} bytes",
                    header.frame_bytes(),
                    header.channel.index()
                ))
                .at_offset(self.offset));
            };
            *left = rest;
        }
        self.charged = Some(header);
        Ok(Some(header))
    }
}
