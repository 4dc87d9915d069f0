//! Frames, the units of the stream, and the credit of each channel.
//!
//! A frame consists of a length (four bytes, little-endian, of the rest: 2 to 262,144), the type,
//! the channel and the body. The body is read in place in the receive queue. So the queue holds at
//! most one frame, and the bytes that the socket returned beyond it.

mod reader;
mod writer;

pub use reader::{FrameReader, MAX_SKIPPED_BYTES, QueuedFrame};
pub use writer::FrameWriter;

use crate::Error;
use crate::error::malformed;

/// The largest value of the length of a frame, which covers type, channel and body.
pub const MAX_FRAME_BYTES: usize = 256 * 1024;

/// The number of bytes of length, type and channel.
pub const HEADER_BYTES: usize = 6;

/// The largest size in bytes of the body of a frame.
pub const MAX_BODY_BYTES: usize = MAX_FRAME_BYTES - 2;

/// The default number of bytes of a channel that may be in flight without being consumed. The
/// header of a frame is included.
pub const DEFAULT_WINDOW_BYTES: u64 = 4 * 1024 * 1024;

/// The number of channels.
pub const CHANNELS: usize = 4;

/// A channel of the stream.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Channel {
    /// Greetings, credits, decisions, and the end. This channel needs no credit, because a session
    /// has few such frames.
    Control = 0,
    /// Ranges of refs, and the results of ref updates.
    Refs = 1,
    /// Ranges of commits.
    Commits = 2,
    /// Segments.
    Transfer = 3,
}

impl Channel {
    pub(crate) fn from_byte(byte: u8) -> Option<Channel> {
        use Channel::{Commits, Control, Refs, Transfer};
        [Control, Refs, Commits, Transfer]
            .get(usize::from(byte))
            .copied()
    }

    /// Returns the index of the channel in tables of [`CHANNELS`] entries.
    pub(crate) fn index(self) -> usize {
        self as usize
    }
}

macro_rules! types {
    ($($(#[$doc:meta])* $name:ident = $value:literal on $channel:ident,)*) => {
        /// The type of a frame.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
        #[repr(u8)]
        pub enum FrameType { $($(#[$doc])* $name = $value,)* }

        impl FrameType {
            /// Returns the type with the number `byte`, or `None` if no frame has that number.
            pub fn from_byte(byte: u8) -> Option<FrameType> {
                match byte { $($value => Some(FrameType::$name),)* _ => None }
            }

            /// Returns the only channel for frames of this type.
            pub fn channel(self) -> Channel {
                match self { $(FrameType::$name => Channel::$channel,)* }
            }
        }
    };
}

types! {
    /// Versions, repository, capabilities, role, globs, limits, nonce.
    Hello = 1 on Control,
    /// The version in use.
    Accept = 2 on Control,
    /// A code and a text. The sender ends the session.
    Error = 3 on Control,
    /// Additional credit for a channel.
    Credit = 4 on Control,
    /// The plan of the sender.
    Plan = 5 on Control,
    /// Ranges of refs.
    RefRange = 6 on Refs,
    /// Marks of the peer's tips that are complete here.
    Cut = 7 on Control,
    /// Ranges of commits.
    CommitRange = 8 on Commits,
    /// The end of all segments.
    Sent = 9 on Transfer,
    /// Accepted tips, other complete commits, byte budget, position for resuming.
    Want = 10 on Control,
    /// The start of a segment.
    Segment = 11 on Transfer,
    /// Bytes of the segment.
    Data = 12 on Transfer,
    /// The end of a segment.
    SegmentEnd = 13 on Transfer,
    /// The acknowledgement that the segment was verified and is durable.
    SegmentAck = 14 on Control,
    /// The results of ref updates.
    Publish = 15 on Refs,
    /// The end of the session for the sender.
    Done = 16 on Control,
}

/// The first type of the range in which a receiver ignores unknown types.
pub const FIRST_IGNORED_TYPE: u8 = 0x80;

/// The header of a frame, which is its first six bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FrameHeader {
    /// The type, or `None` if the frame is ignored.
    pub kind: Option<FrameType>,
    /// The channel.
    pub channel: Channel,
    /// The length of the body in bytes.
    pub body_bytes: usize,
}

impl FrameHeader {
    /// Parses a header at the start of `bytes`. Returns `None` if there are not enough bytes yet.
    /// An invalid field is refused before the rest of the header is received.
    ///
    /// # Errors
    /// Fails with `ErrorKind::Malformed` if the length, type or channel is invalid.
    pub fn parse(bytes: &[u8]) -> Result<Option<FrameHeader>, Error> {
        let Some(length) = bytes.first_chunk::<4>() else {
            return Ok(None);
        };
        let length = u32::from_le_bytes(*length) as usize;
        if !(2..=MAX_FRAME_BYTES).contains(&length) {
            return Err(malformed(format!(
                "a frame has {length} bytes, but 2 to {MAX_FRAME_BYTES} are allowed"
            )));
        }
        let [_, _, _, _, kind, channel, ..] = *bytes else {
            return Ok(None);
        };
        let known = FrameType::from_byte(kind);
        if known.is_none() && kind < FIRST_IGNORED_TYPE {
            return Err(malformed(format!("unknown frame type {kind}")));
        }
        let Some(channel) = Channel::from_byte(channel) else {
            return Err(malformed(format!(
                "a frame on the unknown channel {channel}"
            )));
        };
        // A frame on another channel would evade the credit of its own channel.
        if known.is_some_and(|known| known.channel() != channel) {
            return Err(malformed(format!(
                "a frame of type {kind} on the wrong channel {}",
                channel.index()
            )));
        }
        Ok(Some(FrameHeader {
            kind: known,
            channel,
            body_bytes: length - 2,
        }))
    }

    /// Returns the number of bytes of the whole frame on the wire.
    pub fn frame_bytes(&self) -> usize {
        HEADER_BYTES + self.body_bytes
    }
}
