//! Encodes the value of a record, which follows its key.

use pronto_hash::oid;

use crate::reftable::format::BlockKind;
use crate::reftable::record::{LogEntry, RefValue};
use crate::reftable::varint;

/// The largest number of positions that the key of an object record can count in its flags.
const MOST_IN_FLAGS: usize = 7;

/// The value of a record.
#[derive(Clone, Copy, Debug)]
pub(super) enum RecordValue<'a> {
    /// A ref; its update index is the difference from the first one of the table.
    Ref {
        index_delta: u64,
        value: RefValue<'a>,
    },
    /// The positions of ref blocks, ascending; an empty list means too many positions to list.
    Object(&'a [u64]),
    /// The position of a child block.
    Index(u64),
    Log(Option<LogEntry<'a>>),
}

impl RecordValue<'_> {
    pub(super) fn kind(&self) -> BlockKind {
        match self {
            RecordValue::Ref { .. } => BlockKind::Ref,
            RecordValue::Object(_) => BlockKind::Object,
            RecordValue::Index(_) => BlockKind::Index,
            RecordValue::Log(_) => BlockKind::Log,
        }
    }

    /// Returns the flags in the low bits of the second number of a record.
    pub(super) fn flags(&self) -> u8 {
        match self {
            RecordValue::Ref { value, .. } => match value {
                RefValue::Deletion => 0,
                RefValue::Direct(_) => 1,
                RefValue::Peeled { .. } => 2,
                RefValue::Symbolic(_) => 3,
            },
            RecordValue::Object(positions) if positions.len() <= MOST_IN_FLAGS => {
                positions.len() as u8
            }
            RecordValue::Log(Some(_)) => 1,
            RecordValue::Object(_) | RecordValue::Index(_) | RecordValue::Log(None) => 0,
        }
    }

    pub(super) fn write(&self, bytes: &mut Vec<u8>) {
        match self {
            RecordValue::Ref { index_delta, value } => {
                varint::write(bytes, *index_delta);
                write_reference(bytes, value);
            }
            RecordValue::Object(positions) => write_positions(bytes, positions),
            RecordValue::Index(position) => varint::write(bytes, *position),
            RecordValue::Log(Some(entry)) => write_log(bytes, entry),
            RecordValue::Log(None) => {}
        }
    }
}

fn write_reference(bytes: &mut Vec<u8>, value: &RefValue<'_>) {
    match value {
        RefValue::Deletion => {}
        RefValue::Direct(object) => write_id(bytes, object),
        RefValue::Peeled { object, target } => {
            write_id(bytes, object);
            write_id(bytes, target);
        }
        RefValue::Symbolic(target) => write_text(bytes, target),
    }
}

fn write_positions(bytes: &mut Vec<u8>, positions: &[u64]) {
    if positions.is_empty() || positions.len() > MOST_IN_FLAGS {
        varint::write(bytes, positions.len() as u64);
    }
    let mut last = 0;
    for position in positions {
        varint::write(bytes, position - last);
        last = *position;
    }
}

fn write_log(bytes: &mut Vec<u8>, entry: &LogEntry<'_>) {
    write_id(bytes, entry.old);
    write_id(bytes, entry.new);
    write_text(bytes, entry.name);
    write_text(bytes, entry.email);
    varint::write(bytes, entry.time);
    bytes.extend_from_slice(&entry.time_zone.to_be_bytes());
    write_text(bytes, entry.message);
}

fn write_id(bytes: &mut Vec<u8>, id: &oid) {
    bytes.extend_from_slice(id.as_bytes());
}

fn write_text(bytes: &mut Vec<u8>, text: &[u8]) {
    varint::write(bytes, text.len() as u64);
    bytes.extend_from_slice(text);
}
