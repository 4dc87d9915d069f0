//! Frames, the units of the stream, and the credit of each channel.
//!
//! A frame is a length (four bytes, least significant first, of the rest: 2 to 262,144), the type,
//! the channel and the body. The body is read in place in the receive queue. So the queue holds at
//! most one frame and what the socket returned beyond it.

mod reader;
mod writer;

pub use reader::{Frame, FrameReader, MAX_PASSED_OVER_BYTES};
pub use writer::FrameWriter;

use crate::Error;
use crate::error::malformed;

/// The most that the length of a frame may say: type, channel and body.
pub const MAX_FRAME_BYTES: usize = 256 * 1024;

/// Length, type and channel.
pub const HEADER_BYTES: usize = 6;

/// The most that the body of a frame may hold.
pub const MAX_BODY_BYTES: usize = MAX_FRAME_BYTES - 2;

/// The bytes that a channel may have under way without being consumed, unless agreed otherwise. A frame
/// counts with its header.
pub const DEFAULT_WINDOW_BYTES: u64 = 4 * 1024 * 1024;

/// The number of channels.
pub const CHANNELS: usize = 4;

/// A channel of the stream.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Channel {
    /// Greetings, credits, what is decided, the end. Needs no credit; a session has few such frames.
    Control = 0,
    /// Ranges of refs, and what became of them.
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

    /// Its place in tables of [`CHANNELS`] entries.
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
            fn from_byte(byte: u8) -> Option<FrameType> {
                match byte { $($value => Some(FrameType::$name),)* _ => None }
            }

            /// The one channel on which frames of this type go.
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
    /// A code and a text; the sender stops after it.
    Error = 3 on Control,
    /// More bytes for a channel.
    Credit = 4 on Control,
    /// The plan of the sender.
    Plan = 5 on Control,
    /// Ranges of refs.
    RefRange = 6 on Refs,
    /// Which of the peer's tips are held completely.
    Cut = 7 on Control,
    /// Ranges of commits.
    CommitRange = 8 on Commits,
    /// All segments were sent.
    Sent = 9 on Transfer,
    /// Accepted tips, commits held besides, byte budget, position to resume at.
    Want = 10 on Control,
    /// A segment begins.
    Segment = 11 on Transfer,
    /// Bytes of the segment.
    Data = 12 on Transfer,
    /// The segment ends.
    SegmentEnd = 13 on Transfer,
    /// The segment was verified and is durable.
    SegmentAck = 14 on Control,
    /// The result for each ref.
    Publish = 15 on Refs,
    /// The sender is done.
    Done = 16 on Control,
}

/// The first type that a receiver ignores if it does not know it.
pub const FIRST_IGNORED_TYPE: u8 = 0x80;

/// The header of a frame: its first six bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Header {
    /// The type; `None` if the frame is ignored.
    pub kind: Option<FrameType>,
    /// The channel.
    pub channel: Channel,
    /// The length of the body.
    pub body_bytes: usize,
}

impl Header {
    /// Reads a header from the front of `bytes`; none if there are too few yet. What can be
    /// refused is refused at once, without waiting for the rest.
    ///
    /// # Errors
    /// If length, type or channel is not one.
    pub fn parse(bytes: &[u8]) -> Result<Option<Header>, Error> {
        let Some(length) = bytes.first_chunk::<4>() else {
            return Ok(None);
        };
        let length = u32::from_le_bytes(*length) as usize;
        if !(2..=MAX_FRAME_BYTES).contains(&length) {
            return Err(malformed(format!(
                "a frame of {length} bytes where 2 to {MAX_FRAME_BYTES} are allowed"
            )));
        }
        let [_, _, _, _, kind, channel, ..] = *bytes else {
            return Ok(None);
        };
        let known = FrameType::from_byte(kind);
        if known.is_none() && kind < FIRST_IGNORED_TYPE {
            return Err(malformed(format!("a frame of unknown type {kind}")));
        }
        let Some(channel) = Channel::from_byte(channel) else {
            return Err(malformed(format!("a frame on unknown channel {channel}")));
        };
        // A frame on another channel would evade the credit of its own.
        if known.is_some_and(|known| known.channel() != channel) {
            return Err(malformed(format!(
                "a frame of type {kind} on channel {}",
                channel.index()
            )));
        }
        Ok(Some(Header {
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
