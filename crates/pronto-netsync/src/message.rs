//! The bodies of frames, except ranges ([`crate::reconcile`]) and data, which are raw bytes.
//!
//! Each type is encoded by `write` and decoded by `read`, which parses the whole body. Excess,
//! unordered, unknown or remaining bytes are an error. Lists grow with the items that are read.
//! Their capacity is never taken from the preceding count.
//! items that are read; their size is never taken from the count before them.

mod greeting;
mod transfer;

pub(crate) use transfer::is_ref_name;

pub use greeting::{
    Accept, Credit, Globs, Hello, MAX_IDENTITY_BYTES, MAX_VERSIONS, ObjectFormat, SessionRefusal,
    TransferRole,
};
pub use transfer::{
    CompleteTips, Publish, PublishedRef, Resume, SegmentAck, SegmentEnd, SegmentKind, SegmentStart,
    Sent, StoreResult, TransferDone, TransferPlan, WantMessage,
};

use crate::Error;
use crate::error::malformed;
use crate::frame::MAX_BODY_BYTES;
use crate::varint::{self, Cursor};

/// The largest length in bytes of the name of a ref or repository, or of a glob.
pub const MAX_NAME_BYTES: usize = 1024;

/// The largest number of including globs, and of excluding globs.
pub const MAX_GLOBS: usize = 64;

/// The largest number of commits without a ref that a [`WantMessage`] may name as complete.
pub const MAX_HELD: usize = 64;

/// The length in bytes of the mark that identifies an interrupted transfer.
pub const MARK_BYTES: usize = 32;

/// The largest length in bytes of the text of a refusal.
pub const MAX_TEXT_BYTES: usize = 1024;

fn write_slice(out: &mut Vec<u8>, bytes: &[u8]) {
    varint::write(out, bytes.len() as u64);
    out.extend_from_slice(bytes);
}

/// Parses a byte that is one of the values of an enumeration.
fn choice<T: Copy>(
    cursor: &mut Cursor<'_>,
    what: &str,
    from: impl Fn(u8) -> Option<T>,
) -> Result<T, Error> {
    let offset = cursor.offset() as u64;
    let byte = cursor.byte()?;
    from(byte).ok_or_else(|| malformed(format!("unknown {what} {byte}")).at_offset(offset))
}

/// Encodes marks as bits, starting with the least significant bit of the first byte. The padding
/// bits are zero.
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
        return Err(malformed("marks after the last expected mark").at_offset(offset));
    }
    Ok((0..count).map(is_set).collect())
}
