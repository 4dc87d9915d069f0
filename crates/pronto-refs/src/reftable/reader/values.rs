//! Parses the values of records, which follow their keys.

use bstr::BStr;
use pronto_hash::oid;

use crate::reftable::error::BlockFault;
use crate::reftable::format::BlockKind;
use crate::reftable::record::{LogEntry, RefValue};
use crate::reftable::varint;

use super::block::{RecordHead, Records};

/// The rest of the records, consumed from the front with bounds checks.
struct RecordBytes<'b> {
    bytes: &'b [u8],
    at: usize,
    id_len: usize,
}

impl<'b> RecordBytes<'b> {
    #[inline(always)]
    fn new(records: &Records<'b>, head: &RecordHead) -> RecordBytes<'b> {
        RecordBytes {
            bytes: &records.bytes[..records.shape.tail],
            at: head.value(),
            id_len: records.shape.id_len,
        }
    }

    #[cold]
    fn fault(&self) -> BlockFault {
        BlockFault::new("corrupt reftable: value exceeds its block", self.at)
    }

    #[inline(always)]
    fn number(&mut self) -> Result<u64, BlockFault> {
        varint::read(self.bytes, &mut self.at).ok_or_else(|| self.fault())
    }

    #[inline(always)]
    fn take(&mut self, len: u64) -> Result<&'b [u8], BlockFault> {
        if len > (self.bytes.len() - self.at) as u64 {
            return Err(self.fault());
        }
        let start = self.at;
        self.at += len as usize;
        Ok(&self.bytes[start..self.at])
    }

    #[inline(always)]
    fn id(&mut self) -> Result<&'b oid, BlockFault> {
        let bytes = self.take(self.id_len as u64)?;
        oid::try_from_bytes(bytes).map_err(|_| self.fault())
    }

    fn text(&mut self) -> Result<&'b BStr, BlockFault> {
        let len = self.number()?;
        Ok(BStr::new(self.take(len)?))
    }
}

/// A parsed value and the offset of its end.
pub(super) struct Read<T> {
    pub(super) value: T,
    pub(super) end: usize,
}

/// Returns the offset of the end of the value of the record.
#[inline]
pub(super) fn end(records: &Records<'_>, head: &RecordHead) -> Result<usize, BlockFault> {
    let end = match records.shape.kind {
        BlockKind::Ref => reference(records, head)?.end,
        BlockKind::Index => child(records, head)?.end,
        BlockKind::Log => log(records, head)?.end,
        BlockKind::Object => {
            let mut input = RecordBytes::new(records, head);
            for _ in 0..positions_len(&mut input, head)? {
                input.number()?;
            }
            input.at
        }
    };
    Ok(end)
}

/// A decoded ref record.
#[derive(Clone, Copy, Debug)]
pub(super) struct DecodedRef<'b> {
    /// The update index, as the difference from the first one of the table.
    pub(super) index_delta: u64,
    pub(super) value: RefValue<'b>,
}

#[inline(always)]
pub(super) fn reference<'b>(
    records: &Records<'b>,
    head: &RecordHead,
) -> Result<Read<DecodedRef<'b>>, BlockFault> {
    let mut input = RecordBytes::new(records, head);
    let index_delta = input.number()?;
    let value = match head.flags {
        0 => RefValue::Deletion,
        1 => RefValue::Direct(input.id()?),
        2 => RefValue::Peeled {
            object: input.id()?,
            target: input.id()?,
        },
        3 => RefValue::Symbolic(input.text()?),
        _ => {
            return Err(BlockFault::new(
                "corrupt reftable: unknown ref type",
                head.suffix.0,
            ));
        }
    };
    Ok(Read {
        value: DecodedRef { index_delta, value },
        end: input.at,
    })
}

/// Returns the position of the child block of an index record.
pub(super) fn child(records: &Records<'_>, head: &RecordHead) -> Result<Read<u64>, BlockFault> {
    let mut input = RecordBytes::new(records, head);
    let value = input.number()?;
    Ok(Read {
        value,
        end: input.at,
    })
}

pub(super) fn log<'b>(
    records: &Records<'b>,
    head: &RecordHead,
) -> Result<Read<Option<LogEntry<'b>>>, BlockFault> {
    let mut input = RecordBytes::new(records, head);
    let value = match head.flags {
        0 => None,
        1 => Some(log_entry(&mut input)?),
        _ => {
            return Err(BlockFault::new(
                "corrupt reftable: unknown log record type",
                head.suffix.0,
            ));
        }
    };
    Ok(Read {
        value,
        end: input.at,
    })
}

fn log_entry<'b>(input: &mut RecordBytes<'b>) -> Result<LogEntry<'b>, BlockFault> {
    Ok(LogEntry {
        old: input.id()?,
        new: input.id()?,
        name: input.text()?,
        email: input.text()?,
        time: input.number()?,
        time_zone: match *input.take(2)? {
            [high, low] => i16::from_be_bytes([high, low]),
            _ => return Err(input.fault()),
        },
        message: input.text()?,
    })
}

/// Returns the number of positions of an object record. Each position occupies at least one byte.
fn positions_len(input: &mut RecordBytes<'_>, head: &RecordHead) -> Result<u64, BlockFault> {
    let count = match head.flags {
        0 => input.number()?,
        count => u64::from(count),
    };
    if count > (input.bytes.len() - input.at) as u64 {
        return Err(BlockFault::new(
            "corrupt reftable: more positions than bytes",
            input.at,
        ));
    }
    Ok(count)
}

/// Returns the positions of the ref blocks of an object; an empty list means that all blocks must
/// be examined.
pub(super) fn positions(records: &Records<'_>, head: &RecordHead) -> Result<Vec<u64>, BlockFault> {
    let mut input = RecordBytes::new(records, head);
    let count = positions_len(&mut input, head)?;
    let mut positions = Vec::with_capacity(count as usize);
    let mut position: u64 = 0;
    for _ in 0..count {
        let delta = input.number()?;
        position = position
            .checked_add(delta)
            .filter(|_| delta > 0 || positions.is_empty())
            .ok_or_else(|| {
                BlockFault::new("corrupt reftable: positions are not sorted", input.at)
            })?;
        positions.push(position);
    }
    Ok(positions)
}
