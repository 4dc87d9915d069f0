//! The header of a pack entry: its type, its inflated size, and the base of a delta. Format:
//! `gitformat-pack(5)`.

use crate::error::{Error, ErrorKind};
use gix_object::Kind as ObjectKind;
use pronto_hash::{Kind, ObjectId};

/// The largest length of an entry header: ten bytes of size, and a base id of 32 bytes.
pub const MAX_HEADER_LEN: usize = 42;

/// The header of a pack entry.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum EntryHeader {
    /// An object that is not stored as a delta.
    Object(ObjectKind),
    /// A delta whose base is the entry that starts `distance` bytes before this one.
    OffsetDelta {
        /// The distance in bytes; never zero.
        distance: u64,
    },
    /// A delta whose base is the object with this id.
    RefDelta {
        /// The id of the base.
        base: ObjectId,
    },
}

impl EntryHeader {
    /// Returns whether the entry is a delta.
    pub fn is_delta(&self) -> bool {
        !matches!(self, EntryHeader::Object(_))
    }
}

/// The parsed header of one entry.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Entry {
    /// The header of the entry.
    pub header: EntryHeader,
    /// The declared inflated size in bytes: of the object, or of the delta instructions.
    pub size_bytes: u64,
    /// The length of the header in bytes. The zlib stream follows.
    pub header_len: usize,
}

impl Entry {
    /// Parses the header at the start of `bytes`, which may contain further bytes. `kind` is the
    /// hash function of the pack. Allocates only for an error.
    ///
    /// # Errors
    /// Fails with `ErrorKind::Truncated` if `bytes` ends within the header ([`MAX_HEADER_LEN`]
    /// bytes are always sufficient), and with `ErrorKind::Corrupt` if the header is malformed.
    #[inline]
    pub fn parse(bytes: &[u8], kind: Kind) -> Result<Entry, Error> {
        let mut at = 0;
        let first = take(bytes, &mut at)?;
        let type_number = (first >> 4) & 7;
        let size_bytes = parse_size(first, bytes, &mut at)?;
        let header = match type_number {
            1 => EntryHeader::Object(ObjectKind::Commit),
            2 => EntryHeader::Object(ObjectKind::Tree),
            3 => EntryHeader::Object(ObjectKind::Blob),
            4 => EntryHeader::Object(ObjectKind::Tag),
            6 => EntryHeader::OffsetDelta {
                distance: parse_distance(bytes, &mut at)?,
            },
            7 => {
                let end = at + kind.len_in_bytes();
                let id = bytes.get(at..end).ok_or_else(truncated)?;
                at = end;
                EntryHeader::RefDelta {
                    base: ObjectId::from_bytes_or_panic(id),
                }
            }
            number => {
                let message = format!("unknown object type {number}");
                return Err(Error::new(ErrorKind::UnknownType { number }, message));
            }
        };
        Ok(Entry {
            header,
            size_bytes,
            header_len: at,
        })
    }

    /// Appends the header to `out` in Git's encoding and returns its length. Ignores
    /// [`header_len`](Entry::header_len).
    pub fn encode(&self, out: &mut Vec<u8>) -> usize {
        let start = out.len();
        let type_number = match self.header {
            EntryHeader::Object(ObjectKind::Commit) => 1u8,
            EntryHeader::Object(ObjectKind::Tree) => 2,
            EntryHeader::Object(ObjectKind::Blob) => 3,
            EntryHeader::Object(ObjectKind::Tag) => 4,
            EntryHeader::OffsetDelta { .. } => 6,
            EntryHeader::RefDelta { .. } => 7,
        };
        let mut rest = self.size_bytes >> 4;
        let mut byte = (type_number << 4) | (self.size_bytes & 15) as u8;
        while rest != 0 {
            out.push(byte | 0x80);
            byte = (rest & 0x7f) as u8;
            rest >>= 7;
        }
        out.push(byte);
        match &self.header {
            EntryHeader::Object(_) => {}
            EntryHeader::OffsetDelta { distance } => encode_distance(*distance, out),
            EntryHeader::RefDelta { base } => out.extend_from_slice(base.as_slice()),
        }
        out.len() - start
    }
}

#[inline]
fn take(bytes: &[u8], at: &mut usize) -> Result<u8, Error> {
    let byte = *bytes.get(*at).ok_or_else(truncated)?;
    *at += 1;
    Ok(byte)
}

/// Parses a size with four bits in the first byte and seven bits in each following byte.
#[inline]
fn parse_size(first: u8, bytes: &[u8], at: &mut usize) -> Result<u64, Error> {
    let mut size = u64::from(first & 15);
    let mut shift = 4;
    let mut byte = first;
    while byte & 0x80 != 0 {
        byte = take(bytes, at)?;
        let bits = u64::from(byte & 0x7f);
        if shift > 63 || (bits << shift) >> shift != bits {
            return Err(corrupt("corrupt pack: an object size exceeds 64 bits"));
        }
        size |= bits << shift;
        shift += 7;
    }
    Ok(size)
}

/// Parses a distance with seven bits in each byte, most significant first. Each continuation adds
/// one, so that every number has a unique encoding.
#[inline]
fn parse_distance(bytes: &[u8], at: &mut usize) -> Result<u64, Error> {
    let mut byte = take(bytes, at)?;
    let mut distance = u64::from(byte & 0x7f);
    while byte & 0x80 != 0 {
        byte = take(bytes, at)?;
        if distance >= (1 << 57) - 1 {
            return Err(corrupt("offset value overflow for delta base object"));
        }
        distance = ((distance + 1) << 7) | u64::from(byte & 0x7f);
    }
    if distance == 0 {
        let message = "delta base offset is out of bound";
        return Err(Error::new(ErrorKind::BaseOffset, message));
    }
    Ok(distance)
}

fn encode_distance(distance: u64, out: &mut Vec<u8>) {
    let mut buffer = [0u8; 10];
    let mut at = buffer.len() - 1;
    buffer[at] = (distance & 0x7f) as u8;
    let mut rest = distance >> 7;
    while rest != 0 {
        rest -= 1;
        at -= 1;
        buffer[at] = 0x80 | (rest & 0x7f) as u8;
        rest >>= 7;
    }
    out.extend_from_slice(&buffer[at..]);
}

#[cold]
fn truncated() -> Error {
    Error::new(
        ErrorKind::Truncated,
        "truncated pack: incomplete entry header",
    )
}

#[cold]
fn corrupt(message: impl Into<String>) -> Error {
    Error::new(ErrorKind::Corrupt, message)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn round_trip(header: EntryHeader, size_bytes: u64) {
        let mut bytes = Vec::new();
        let entry = Entry {
            header,
            size_bytes,
            header_len: 0,
        };
        let header_len = entry.encode(&mut bytes);
        assert!(bytes.len() == header_len && header_len <= MAX_HEADER_LEN);
        let expected = Entry {
            header_len,
            ..entry
        };
        assert_eq!(
            Entry::parse(&bytes, Kind::Sha1).expect("it is whole"),
            expected
        );
        for len in 0..header_len {
            let error = Entry::parse(&bytes[..len], Kind::Sha1).expect_err("it is cut");
            assert_eq!(error.kind(), ErrorKind::Truncated);
        }
    }

    #[test]
    fn every_width_round_trips() {
        for shift in 0..64 {
            for delta in [0u64, 1] {
                let number = (1u64 << shift).wrapping_sub(delta);
                round_trip(EntryHeader::Object(ObjectKind::Tree), number);
                if number != 0 && number < 1 << 60 {
                    round_trip(EntryHeader::OffsetDelta { distance: number }, number);
                }
            }
        }
        let base = ObjectId::empty_blob(Kind::Sha1);
        round_trip(EntryHeader::RefDelta { base }, u64::MAX);
    }

    #[test]
    fn what_is_not_a_header_is_refused() {
        for bytes in [
            &[0x00][..],
            &[0x50],
            &[0x61, 0x00],
            &[0xff; 64],
            &[
                0xbf, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0x01,
            ],
            &[
                0x61, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0x01,
            ],
        ] {
            let error = Entry::parse(bytes, Kind::Sha1).expect_err("not a header");
            let kind = error.kind();
            let is_refused = matches!(
                kind,
                ErrorKind::Corrupt | ErrorKind::UnknownType { .. } | ErrorKind::BaseOffset
            );
            assert!(is_refused, "{bytes:x?}: {kind:?}");
        }
    }
}
