//! The sending side: writes frames into the send queue, within the credit and the limit of the
//! queue.

use std::io::{self, Write};
use std::ops::Range;

use pronto_io::queue::{SendQueue, SharedBytes};

use super::{
    CHANNELS, Channel, DEFAULT_WINDOW_BYTES, FrameType, HEADER_BYTES, MAX_BODY_BYTES,
    MAX_FRAME_BYTES,
};
use crate::error::exceeded;
use crate::{Error, ErrorKind};

/// A writer of frames into a queue of limited size, which tracks the credit of each channel.
#[derive(Debug)]
pub struct FrameWriter {
    queue: SendQueue,
    credit: [u64; CHANNELS],
}

/// The number of bytes of the queue that are reserved for the control channel.
const RESERVED_FOR_CONTROL: usize = 2 * (HEADER_BYTES + MAX_FRAME_BYTES);

impl Default for FrameWriter {
    fn default() -> Self {
        FrameWriter::new(DEFAULT_WINDOW_BYTES as usize, DEFAULT_WINDOW_BYTES)
    }
}

impl FrameWriter {
    /// Creates a writer whose queue holds at most `queue_bytes`, in addition to a reserve for the
    /// control channel. The writer may send `window_bytes` on each channel before the first credit.
    pub fn new(queue_bytes: usize, window_bytes: u64) -> Self {
        FrameWriter {
            queue: SendQueue::new(
                queue_bytes.max(MAX_FRAME_BYTES + HEADER_BYTES) + RESERVED_FOR_CONTROL,
            ),
            credit: [window_bytes.max((HEADER_BYTES + MAX_FRAME_BYTES) as u64); CHANNELS],
        }
    }

    /// Queues a frame with a copy of `body`. Returns `false` and queues nothing if credit or room is
    /// missing.
    ///
    /// # Errors
    /// Fails if the body is too long for a frame.
    pub fn send(&mut self, kind: FrameType, body: &[u8]) -> Result<bool, Error> {
        Ok(self.reserve(kind, body.len())? && self.queue.extend_from_slice(body).is_ok())
    }

    /// Queues a frame whose body is not copied. Returns `false` and queues nothing if credit or room
    /// is missing.
    ///
    /// # Errors
    /// Fails if the body is too long for a frame.
    ///
    /// # Panics
    /// Panics if `range` is not within `bytes`.
    pub fn send_shared(
        &mut self,
        kind: FrameType,
        bytes: SharedBytes,
        range: Range<usize>,
    ) -> Result<bool, Error> {
        Ok(self.reserve(kind, range.len())? && self.queue.push_shared(bytes, range).is_ok())
    }

    /// Adds credit that the peer granted.
    ///
    /// # Errors
    /// Fails if the sum of the credit overflows.
    pub fn grant(&mut self, channel: Channel, bytes: u64) -> Result<(), Error> {
        let credit = &mut self.credit[channel.index()];
        *credit = (credit.checked_add(bytes))
            .filter(|&sum| sum <= u64::MAX / 2)
            .ok_or_else(|| exceeded("the credit of a channel overflows 64 bits"))?;
        Ok(())
    }

    /// Returns the largest length of a body that `channel` can send now, or `None` if not even an
    /// empty body can be sent.
    pub fn ready_bytes(&self, channel: Channel) -> Option<usize> {
        let (mut room, credit) = (self.queue.free_bytes(), self.credit[channel.index()]);
        if channel != Channel::Control {
            room = room.saturating_sub(RESERVED_FOR_CONTROL);
            room = room.min(usize::try_from(credit).unwrap_or(usize::MAX));
        }
        Some(room.checked_sub(HEADER_BYTES)?.min(MAX_BODY_BYTES))
    }

    /// Returns the queue of bytes to write.
    pub fn queue(&self) -> &SendQueue {
        &self.queue
    }

    /// Writes queued bytes once to `sink`. Returns the number of bytes that it accepted.
    ///
    /// # Errors
    /// Fails with the errors of `sink`.
    pub fn write_to(&mut self, sink: &mut (impl Write + ?Sized)) -> io::Result<usize> {
        self.queue.write_to(sink)
    }

    /// Queues the header of a frame if the whole frame can be sent now.
    fn reserve(&mut self, kind: FrameType, body: usize) -> Result<bool, Error> {
        if body > MAX_BODY_BYTES {
            return Err(Error::new(
                ErrorKind::Unsupported,
                format!("a frame body of {body} bytes exceeds the limit"),
            ));
        }
        let channel = kind.channel();
        if self.ready_bytes(channel).is_none_or(|ready| ready < body) {
            return Ok(false);
        }
        if channel != Channel::Control {
            self.credit[channel.index()] -= (HEADER_BYTES + body) as u64;
        }
        let mut header = [0; HEADER_BYTES];
        header[..4].copy_from_slice(&(body as u32 + 2).to_le_bytes());
        header[4] = kind as u8;
        header[5] = channel as u8;
        Ok(self.queue.extend_from_slice(&header).is_ok())
    }
}
