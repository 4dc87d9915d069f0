//! The encoding of ranges.
//!
//! A message is a sequence of ranges. Each range consists of one byte (two bits of mode; bit 2 is
//! set for the last range, which has no upper bound), the upper bound if there is one, and the
//! content of the mode:
//!
//! | mode | content |
//! |---|---|
//! | 0 skip | none: the range is equal, or settled |
//! | 1 fingerprint | 16 bytes |
//! | 2 list | count, entries: all entries of the sender |
//! | 3 answer | count of listed entries, a bit for each entry that the sender lacks; count, entries that the list lacked |
//!
//! A bound, or the key of an entry, is encoded as the number of bytes that it shares with the
//! previous bound or key (0 for the first entry of a list), the length of the rest, and the rest.
//! Numbers are varints.

use super::set::shared_prefix;
use super::{Fingerprint, MAX_KEY_BYTES, MAX_VALUE_BYTES};
use crate::Error;
use crate::error::malformed;
use crate::varint::{self, Cursor};

const MODE: u8 = 3;
const UNBOUNDED: u8 = 4;

/// The content of a range.
#[derive(Debug)]
pub(super) enum RangeContent<'a> {
    Skip,
    Fingerprint(Fingerprint),
    List(CheckedEntries<'a>),
    Answer {
        listed: usize,
        lacking: &'a [u8],
        entries: CheckedEntries<'a>,
    },
}

/// Entries that were already checked, sorted by key.
#[derive(Debug)]
pub(super) struct CheckedEntries<'a> {
    pub(super) count: usize,
    cursor: Cursor<'a>,
}

/// A parser of the ranges of a message.
pub(super) struct Ranges<'a> {
    cursor: Cursor<'a>,
    /// The bound of the previous range, which is the lower bound of the next range.
    pub(super) bound: Vec<u8>,
    pub(super) unbounded: bool,
}

impl<'a> Ranges<'a> {
    pub(super) fn new(bytes: &'a [u8]) -> Self {
        Ranges {
            cursor: Cursor::new(bytes),
            bound: Vec::new(),
            unbounded: false,
        }
    }

    /// Parses the next range. Afterwards `bound` is its upper bound, unless `unbounded` is set. Its
    /// lower bound is copied to `lower`.
    pub(super) fn next(&mut self, lower: &mut Vec<u8>) -> Result<Option<RangeContent<'a>>, Error> {
        let offset = self.cursor.offset() as u64;
        self.read(lower).map_err(|error| error.at_offset(offset))
    }

    fn read(&mut self, lower: &mut Vec<u8>) -> Result<Option<RangeContent<'a>>, Error> {
        if self.cursor.is_at_end() {
            return Ok(None);
        }
        if self.unbounded {
            return Err(malformed("a range follows the unbounded last range"));
        }
        let head = self.cursor.byte()?;
        if head & !(MODE | UNBOUNDED) != 0 {
            return Err(malformed(format!("a range has the unknown mode {head}")));
        }
        lower.clone_from(&self.bound);
        self.unbounded = head & UNBOUNDED != 0;
        if !self.unbounded {
            read_key(
                &mut self.cursor,
                &mut self.bound,
                "a range ends before it begins",
            )?;
        }
        let upper = (!self.unbounded).then_some(&self.bound[..]);
        let content = match head & MODE {
            0 => RangeContent::Skip,
            1 => {
                let mut fingerprint = Fingerprint::default();
                fingerprint.copy_from_slice(self.cursor.take(16)?);
                RangeContent::Fingerprint(fingerprint)
            }
            2 => RangeContent::List(checked_entries(&mut self.cursor, lower, upper)?),
            _ => {
                let listed = self.cursor.length(usize::MAX / 8)?;
                let lacking = self.cursor.take(listed.div_ceil(8))?;
                if listed % 8 != 0 && lacking.last().is_some_and(|last| last >> (listed % 8) != 0) {
                    return Err(malformed("marks for entries that were not listed"));
                }
                let entries = checked_entries(&mut self.cursor, lower, upper)?;
                RangeContent::Answer {
                    listed,
                    lacking,
                    entries,
                }
            }
        };
        Ok(Some(content))
    }
}

impl<'a> CheckedEntries<'a> {
    /// Calls `each` with the key and value of each entry, until it returns `false`.
    pub(super) fn for_each(
        &self,
        mut each: impl FnMut(&[u8], &'a [u8]) -> bool,
    ) -> Result<(), Error> {
        let (mut cursor, mut key) = (self.cursor, Vec::new());
        for _ in 0..self.count {
            read_key(&mut cursor, &mut key, "the entries are not sorted")?;
            if !each(&key, cursor.slice(MAX_VALUE_BYTES)?) {
                break;
            }
        }
        Ok(())
    }
}

fn checked_entries<'a>(
    cursor: &mut Cursor<'a>,
    lower: &[u8],
    upper: Option<&[u8]>,
) -> Result<CheckedEntries<'a>, Error> {
    let count = cursor.length(usize::MAX)?;
    let entries = CheckedEntries {
        count,
        cursor: *cursor,
    };
    let mut key = Vec::new();
    for _ in 0..count {
        read_key(cursor, &mut key, "the entries are not sorted")?;
        if key[..] < *lower || upper.is_some_and(|upper| key[..] >= *upper) {
            return Err(malformed("an entry is outside of its range"));
        }
        cursor.slice(MAX_VALUE_BYTES)?;
    }
    Ok(entries)
}

/// Replaces `key` by the next key, which must be greater.
fn read_key(cursor: &mut Cursor<'_>, key: &mut Vec<u8>, disorder: &str) -> Result<(), Error> {
    let shared = cursor.length(key.len())?;
    let rest = cursor.slice(MAX_KEY_BYTES - shared)?;
    let follows = match (key.get(shared), rest.first()) {
        (_, None) => false,
        (None, Some(_)) => true,
        (Some(old), Some(new)) => old < new,
    };
    if !follows {
        return Err(malformed(disorder));
    }
    key.truncate(shared);
    key.extend_from_slice(rest);
    Ok(())
}

/// Appends `key` as its difference from `before`.
pub(super) fn write_key(out: &mut Vec<u8>, before: &[u8], key: &[u8]) {
    let shared = shared_prefix(before, key);
    varint::write(out, shared as u64);
    varint::write(out, (key.len() - shared) as u64);
    out.extend_from_slice(&key[shared..]);
}

/// Appends an entry whose key is encoded as its difference from `before`.
pub(super) fn write_entry(out: &mut Vec<u8>, before: &[u8], key: &[u8], value: &[u8]) {
    write_key(out, before, key);
    varint::write(out, value.len() as u64);
    out.extend_from_slice(value);
}

/// Appends the head of a range: the mode, and the upper bound if there is one.
pub(super) fn write_head(out: &mut Vec<u8>, mode: u8, before: &[u8], upper: Option<&[u8]>) {
    match upper {
        None => out.push(mode | UNBOUNDED),
        Some(upper) => {
            out.push(mode);
            write_key(out, before, upper);
        }
    }
}
