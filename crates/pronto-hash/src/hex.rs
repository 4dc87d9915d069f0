//! Converts object ids from and to hexadecimal.
//!
//! Most calls convert only a few ids. Libraries that use vector instructions first query the
//! processor's features (`cpuid`). In a virtual machine each query takes microseconds, which is
//! longer than the table here needs for many ids.

use std::fmt;
use std::ops::Deref;

use gix_hash::{ObjectId, oid};

/// The number of digits of the longest id, that of SHA-256.
const LONGEST: usize = 64;

/// The value in [`VALUES`] of a byte that is not a hexadecimal digit.
const INVALID: u8 = 0xff;

const DIGITS: &[u8; 16] = b"0123456789abcdef";

/// The value of each byte as a hexadecimal digit of either case, or [`INVALID`].
static VALUES: [u8; 256] = {
    let mut values = [INVALID; 256];
    let mut value = 0;
    while value < 16 {
        let digit = DIGITS[value];
        values[digit as usize] = value as u8;
        values[digit.to_ascii_uppercase() as usize] = value as u8;
        value += 1;
    }
    values
};

/// The error of [`parse_hex`]: the text is not an object id.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct NotAnId;

impl fmt::Display for NotAnId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("not a hexadecimal object id")
    }
}

impl std::error::Error for NotAnId {}

/// Parses an object id of 40 (SHA-1) or 64 (SHA-256) hexadecimal digits of either case.
///
/// Costs a table lookup for each digit, and does not allocate.
///
/// # Errors
/// Fails with [`NotAnId`] if the length is wrong or a byte is not a digit.
pub fn parse_hex(digits: &[u8]) -> Result<ObjectId, NotAnId> {
    if !matches!(digits.len(), 40 | LONGEST) {
        return Err(NotAnId);
    }
    let mut bytes = [0; LONGEST / 2];
    // Invalid digits have bits that no valid value has. The bits are collected, so that no digit
    // needs a branch.
    let mut seen = 0;
    for (byte, pair) in bytes.iter_mut().zip(digits.chunks_exact(2)) {
        let (high, low) = (VALUES[usize::from(pair[0])], VALUES[usize::from(pair[1])]);
        seen |= high | low;
        *byte = high << 4 | low & 0xf;
    }
    if seen > 0xf {
        return Err(NotAnId);
    }
    ObjectId::try_from(&bytes[..digits.len() / 2]).map_err(|_| NotAnId)
}

/// Returns `id` in hexadecimal. Does not allocate.
pub fn hex(id: &oid) -> Hex {
    let bytes = id.as_bytes();
    let mut digits = [0; LONGEST];
    for (pair, byte) in digits.chunks_exact_mut(2).zip(bytes) {
        pair[0] = DIGITS[usize::from(byte >> 4)];
        pair[1] = DIGITS[usize::from(byte & 0xf)];
    }
    Hex {
        digits,
        length: bytes.len() * 2,
    }
}

/// The hexadecimal form of an object id, which dereferences to a string.
#[derive(Clone, Copy)]
pub struct Hex {
    digits: [u8; LONGEST],
    length: usize,
}

impl Deref for Hex {
    type Target = str;

    fn deref(&self) -> &str {
        std::str::from_utf8(&self.digits[..self.length]).unwrap_or_default()
    }
}

impl fmt::Display for Hex {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self)
    }
}

impl fmt::Debug for Hex {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SHA256: &str = "6ef19b41225c5369f1c104d45d8d85efa9b057b53b14b4b9b939dd74decc5321";

    #[test]
    fn ids_of_both_kinds_come_back() {
        for text in ["4b825dc642cb6eb9a060e54bf8d69288fbee4904", SHA256] {
            let id = parse_hex(text.as_bytes()).expect("an id");
            assert_eq!(id.to_string(), text);
            assert_eq!(&*hex(&id), text);
            assert_eq!(hex(&id).to_string(), text);
            assert_eq!(parse_hex(text.to_uppercase().as_bytes()), Ok(id));
        }
    }

    #[test]
    fn what_the_library_parses_is_parsed() {
        for length in [0, 2, 39, 40, 41, 63, 64, 65] {
            let mut text = vec![b'a'; length];
            assert_eq!(parse_hex(&text).ok(), ObjectId::from_hex(&text).ok());
            for at in 0..length {
                for byte in 0..=255 {
                    text[at] = byte;
                    assert_eq!(
                        parse_hex(&text).ok(),
                        ObjectId::from_hex(&text).ok(),
                        "{byte} at {at}"
                    );
                }
                text[at] = b'a';
            }
        }
    }
}
