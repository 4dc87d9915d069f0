//! The bodies of frames, except ranges ([`crate::reconcile`]) and data, which are bytes.
//!
//! Each type encodes itself with `write` and is decoded with `read`, which takes the whole body.
//! Bytes that are too many, out of order, unknown or left over are an error. Lists grow with the
//! items that are read; their size is never taken from the count before them.

mod greeting;
mod transfer;

pub(crate) use transfer::is_ref_name;

pub use greeting::{
    Accept, Credit, Globs, Hello, MAX_IDENTITY_BYTES, MAX_VERSIONS, ObjectFormat, Refusal, Role,
};
pub use transfer::{
    Cut, Done, Plan, Publish, PublishedRef, Resume, Segment, SegmentAck, SegmentEnd, SegmentKind,
    Sent, Stored, Want,
};

use crate::Error;
use crate::error::malformed;
use crate::frame::MAX_BODY_BYTES;
use crate::varint::{self, Cursor};

/// The longest name of a ref, glob or repository.
pub const MAX_NAME_BYTES: usize = 1024;

/// The largest number of globs that include, and of globs that exclude.
pub const MAX_GLOBS: usize = 64;

/// The largest number of commits without a ref that may be named as held.
pub const MAX_HELD: usize = 64;

/// The length of the mark by which an interrupted transfer is recognised.
pub const MARK_BYTES: usize = 32;

/// The longest text of a refusal.
pub const MAX_TEXT_BYTES: usize = 1024;

fn write_slice(out: &mut Vec<u8>, bytes: &[u8]) {
    varint::write(out, bytes.len() as u64);
    out.extend_from_slice(bytes);
}

/// A byte that is one of the values of an enumeration.
fn choice<T: Copy>(
    cursor: &mut Cursor<'_>,
    what: &str,
    from: impl Fn(u8) -> Option<T>,
) -> Result<T, Error> {
    let offset = cursor.offset() as u64;
    let byte = cursor.byte()?;
    from(byte).ok_or_else(|| malformed(format!("{what} {byte} is not known")).at_offset(offset))
}

/// Marks, the least bit of the first byte first; bits behind the last are zero.
fn write_marks(out: &mut Vec<u8>, marks: &[bool]) {
    varint::write(out, marks.len() as u64);
    for eight in marks.chunks(8) {
        let byte = eight
            .iter()
            .rev()
            .fold(0, |byte, &mark| byte << 1 | u8::from(mark));
        out.push(byte);
    }
}

fn read_marks(cursor: &mut Cursor<'_>) -> Result<Vec<bool>, Error> {
    let count = cursor.length(8 * MAX_BODY_BYTES)?;
    let offset = cursor.offset() as u64;
    let bytes = cursor.take(count.div_ceil(8))?;
    let is_set = |at: usize| bytes[at / 8] >> (at % 8) & 1 != 0;
    if (count..bytes.len() * 8).any(is_set) {
        return Err(malformed("marks behind the last").at_offset(offset));
    }
    Ok((0..count).map(is_set).collect())
}
