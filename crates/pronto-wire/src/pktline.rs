//! Packet lines: four hexadecimal digits of length, and the payload.
//!
//! The format is that of `gitprotocol-common(5)`. [`parse`] is the only parser and borrows from its
//! input.

use crate::error::{Error, malformed};

/// The maximum length of a packet line in bytes, including the four digits.
pub const MAX_LINE: usize = 65_520;
/// The maximum length of the payload of a packet line in bytes.
pub const MAX_PAYLOAD: usize = MAX_LINE - 4;

/// One packet line.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Packet<'a> {
    /// A payload, which may be empty.
    Data(&'a [u8]),
    /// `0000`: the end of a message.
    Flush,
    /// `0001`: the end of a section.
    Delimiter,
    /// `0002`: the end of a response over a stateless connection.
    ResponseEnd,
}

impl<'a> Packet<'a> {
    /// Returns the payload of a data packet without a final line feed.
    pub fn text(self) -> Option<&'a [u8]> {
        match self {
            Packet::Data(payload) => Some(payload.strip_suffix(b"\n").unwrap_or(payload)),
            _ => None,
        }
    }
}

/// The result of [`parse`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Parsed<'a> {
    /// A complete packet of `length` bytes.
    Complete {
        /// The packet.
        packet: Packet<'a>,
        /// The length in bytes, including the header.
        length: usize,
    },
    /// An incomplete packet.
    Incomplete {
        /// The smallest number of bytes for which parsing can succeed.
        length: usize,
    },
}

/// Parses the packet line at the start of `bytes`. O(1): the payload is not read.
///
/// # Errors
/// Fails with [`ErrorKind::Malformed`](crate::ErrorKind::Malformed) if the length is not four
/// hexadecimal digits, or is invalid.
pub fn parse(bytes: &[u8]) -> Result<Parsed<'_>, Error> {
    let Some(header) = bytes.first_chunk::<4>() else {
        return Ok(Parsed::Incomplete { length: 4 });
    };
    let mut length = 0usize;
    for digit in header {
        let value = char::from(*digit)
            .to_digit(16)
            .ok_or_else(|| bad_header(header))?;
        length = length << 4 | value as usize;
    }
    let packet = match length {
        0 => Packet::Flush,
        1 => Packet::Delimiter,
        2 => Packet::ResponseEnd,
        3 => return Err(malformed("protocol error: bad line length 3")),
        length if length > MAX_LINE => {
            return Err(malformed(format!(
                "protocol error: bad line length {length}"
            )));
        }
        length => match bytes.get(4..length) {
            Some(payload) => Packet::Data(payload),
            None => return Ok(Parsed::Incomplete { length }),
        },
    };
    let length = length.max(4);
    Ok(Parsed::Complete { packet, length })
}

fn bad_header(header: &[u8; 4]) -> Error {
    malformed(format!(
        "protocol error: bad line length character: {}",
        header.escape_ascii()
    ))
}

/// Appends a data packet with `payload`.
///
/// # Errors
/// Fails with [`ErrorKind::Malformed`](crate::ErrorKind::Malformed) if the payload is longer than
/// [`MAX_PAYLOAD`].
pub fn write(out: &mut Vec<u8>, payload: &[u8]) -> Result<(), Error> {
    write_parts(out, &[payload])
}

/// Appends a data packet with the concatenation of `parts` as its payload.
///
/// # Errors
/// Fails with [`ErrorKind::Malformed`](crate::ErrorKind::Malformed) if the payload is longer than
/// [`MAX_PAYLOAD`].
pub fn write_parts(out: &mut Vec<u8>, parts: &[&[u8]]) -> Result<(), Error> {
    let payload: usize = parts.iter().map(|part| part.len()).sum();
    if payload > MAX_PAYLOAD {
        return Err(malformed("protocol error: impossibly long line"));
    }
    const DIGITS: &[u8; 16] = b"0123456789abcdef";
    let length = payload + 4;
    out.reserve(length);
    out.extend([12, 8, 4, 0].map(|shift| DIGITS[length >> shift & 15]));
    for part in parts {
        out.extend_from_slice(part);
    }
    Ok(())
}

/// Appends a flush packet, `0000`.
pub fn write_flush(out: &mut Vec<u8>) {
    out.extend_from_slice(b"0000");
}

/// Appends a delimiter packet, `0001`.
pub fn write_delimiter(out: &mut Vec<u8>) {
    out.extend_from_slice(b"0001");
}
