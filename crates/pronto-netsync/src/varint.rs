//! Numbers of seven bits to a byte, least significant first, in the shortest form; and a cursor
//! that checks every length against the remaining bytes.

use crate::Error;
use crate::error::malformed;

/// Appends `value`: one byte below 128, ten at most.
pub fn write(out: &mut Vec<u8>, mut value: u64) {
    while value >= 0x80 {
        out.push(value as u8 | 0x80);
        value >>= 7;
    }
    out.push(value as u8);
}

/// Reads fields one after another from bytes that others wrote.
#[derive(Clone, Copy, Debug)]
pub struct Cursor<'a> {
    bytes: &'a [u8],
    at: usize,
}

impl<'a> Cursor<'a> {
    /// Starts at the first of `bytes`.
    pub fn new(bytes: &'a [u8]) -> Self {
        Cursor { bytes, at: 0 }
    }

    /// Whether everything was read.
    pub fn is_at_end(&self) -> bool {
        self.at == self.bytes.len()
    }

    /// Returns the number of bytes that were read.
    pub fn offset(&self) -> usize {
        self.at
    }

    /// The next byte.
    ///
    /// # Errors
    /// If there is none.
    pub fn byte(&mut self) -> Result<u8, Error> {
        self.take(1).map(|bytes| bytes[0])
    }

    /// The next `count` bytes, where they lie.
    ///
    /// # Errors
    /// If there are fewer.
    pub fn take(&mut self, count: usize) -> Result<&'a [u8], Error> {
        let rest = &self.bytes[self.at..];
        let Some(taken) = rest.get(..count) else {
            return Err(malformed(format!(
                "a field of {count} bytes where {} are left",
                rest.len()
            ))
            .at_offset(self.at as u64));
        };
        self.at += count;
        Ok(taken)
    }

    /// The next number.
    ///
    /// # Errors
    /// If it is cut, larger than 64 bits, or longer than it need be.
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
                    return Err(
                        malformed("a number longer than it need be").at_offset(start as u64)
                    );
                }
                return Ok(value);
            }
        }
        Err(malformed("a number of more than 64 bits").at_offset(start as u64))
    }

    /// The next number, which says how many of something follow or how long it is.
    ///
    /// # Errors
    /// As [`varint`](Self::varint); and if it is more than `limit`.
    pub fn length(&mut self, limit: usize) -> Result<usize, Error> {
        let start = self.at;
        let value = self.varint()?;
        match usize::try_from(value) {
            Ok(length) if length <= limit => Ok(length),
            _ => Err(
                malformed(format!("{value} where at most {limit} is allowed"))
                    .at_offset(start as u64),
            ),
        }
    }

    /// Bytes behind their length, which is `limit` at most.
    ///
    /// # Errors
    /// The length exceeds `limit` or the remaining bytes.
    pub fn slice(&mut self, limit: usize) -> Result<&'a [u8], Error> {
        let length = self.length(limit)?;
        self.take(length)
    }

    /// Ends the reading.
    ///
    /// # Errors
    /// If something is left.
    pub fn finish(self) -> Result<(), Error> {
        if self.is_at_end() {
            return Ok(());
        }
        Err(
            malformed(format!("{} bytes too many", self.bytes.len() - self.at))
                .at_offset(self.at as u64),
        )
    }
}
