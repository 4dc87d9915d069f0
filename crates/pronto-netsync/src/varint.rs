//! Variable-length integers with seven bits in each byte, least significant first, in the shortest
//! form; and a cursor that checks each length against the remaining bytes.

use crate::Error;
use crate::error::malformed;

/// Appends `value` in one byte if it is below 128, and in at most ten bytes.
pub fn write(out: &mut Vec<u8>, mut value: u64) {
    while value >= 0x80 {
        out.push(value as u8 | 0x80);
        value >>= 7;
    }
    out.push(value as u8);
}

/// A cursor that parses the fields of untrusted bytes.
#[derive(Clone, Copy, Debug)]
pub struct Cursor<'a> {
    bytes: &'a [u8],
    at: usize,
}

impl<'a> Cursor<'a> {
    /// Creates a cursor at the start of `bytes`.
    pub fn new(bytes: &'a [u8]) -> Self {
        Cursor { bytes, at: 0 }
    }

    /// Returns whether all bytes were read.
    pub fn is_at_end(&self) -> bool {
        self.at == self.bytes.len()
    }

    /// Returns the number of bytes that were read.
    pub fn offset(&self) -> usize {
        self.at
    }

    /// Reads the next byte.
    ///
    /// # Errors
    /// Fails with `ErrorKind::Malformed` if no byte is left.
    pub fn byte(&mut self) -> Result<u8, Error> {
        self.take(1).map(|bytes| bytes[0])
    }

    /// Returns the next `count` bytes without a copy.
    ///
    /// # Errors
    /// Fails with `ErrorKind::Malformed` if fewer bytes are left.
    pub fn take(&mut self, count: usize) -> Result<&'a [u8], Error> {
        let rest = &self.bytes[self.at..];
        let Some(taken) = rest.get(..count) else {
            return Err(malformed(format!(
                "a field has {count} bytes, but only {} are left",
                rest.len()
            ))
            .at_offset(self.at as u64));
        };
        self.at += count;
        Ok(taken)
    }

    /// Reads the next integer.
    ///
    /// # Errors
    /// Fails with `ErrorKind::Malformed` if the integer is truncated, does not fit into 64 bits, or
    /// is not in the shortest form.
    pub fn varint(&mut self) -> Result<u64, Error> {
        let start = self.at;
        let mut value = 0u64;
        for shift in (0..64).step_by(7) {
            let byte = self.byte()?;
            if shift == 63 && byte > 1 {
                break;
            }
            value |= u64::from(byte & 0x7f) << shift;
            if byte & 0x80 == 0 {
                if byte == 0 && shift > 0 {
                    return Err(malformed("a number is not encoded in the shortest form")
                        .at_offset(start as u64));
                }
                return Ok(value);
            }
        }
        Err(malformed("a number has more than 64 bits").at_offset(start as u64))
    }

    /// Reads the next integer, which is a count or a length.
    ///
    /// # Errors
    /// Fails for the same reasons as [`varint`](Self::varint), and if the integer is larger than
    /// `limit`.
    pub fn length(&mut self, limit: usize) -> Result<usize, Error> {
        let start = self.at;
        let value = self.varint()?;
        match usize::try_from(value) {
            Ok(length) if length <= limit => Ok(length),
            _ => Err(
                malformed(format!("{value} is larger than the limit {limit}"))
                    .at_offset(start as u64),
            ),
        }
    }

    /// Reads a length of at most `limit`, followed by as many bytes.
    ///
    /// # Errors
    /// Fails with `ErrorKind::Malformed` if the length exceeds `limit` or the remaining bytes.
    pub fn slice(&mut self, limit: usize) -> Result<&'a [u8], Error> {
        let length = self.length(limit)?;
        self.take(length)
    }

    /// Checks that all bytes were read.
    ///
    /// # Errors
    /// Fails with `ErrorKind::Malformed` if bytes are left.
    pub fn finish(self) -> Result<(), Error> {
        if self.is_at_end() {
            return Ok(());
        }
        Err(malformed(format!(
            "{} extra bytes at the end",
            self.bytes.len() - self.at
        ))
        .at_offset(self.at as u64))
    }
}
