//! Reads numbers and slices from the front of untrusted bytes.

use pronto_io::short::Short as _;

/// Removes `count` bytes from the front and returns them; `None` if there are fewer.
#[inline]
pub(crate) fn take<'a>(input: &mut &'a [u8], count: usize) -> Option<&'a [u8]> {
    let (head, tail) = input.split_at_checked(count)?;
    *input = tail;
    Some(head)
}

/// Removes the bytes before the first `end` and the `end` from the front. Returns the bytes before
/// `end`.
#[inline]
pub(crate) fn take_until<'a>(input: &mut &'a [u8], end: u8) -> Option<&'a [u8]> {
    let at = input.position_of(end)?;
    let (head, tail) = (&input[..at], &input[at + 1..]);
    *input = tail;
    Some(head)
}

/// Removes a big-endian number of four bytes from the front and returns it.
#[inline]
pub(crate) fn take_u32(input: &mut &[u8]) -> Option<u32> {
    let head = input.first_chunk::<4>()?;
    *input = &input[4..];
    Some(u32::from_be_bytes(*head))
}

/// Removes a big-endian number of eight bytes from the front and returns it.
pub(crate) fn take_u64(input: &mut &[u8]) -> Option<u64> {
    let head = input.first_chunk::<8>()?;
    *input = &input[8..];
    Some(u64::from_be_bytes(*head))
}

/// Returns the big-endian number of four bytes at `at`.
#[inline]
pub(crate) fn u32_at(bytes: &[u8], at: usize) -> Option<u32> {
    let field = bytes.get(at..)?.first_chunk::<4>()?;
    Some(u32::from_be_bytes(*field))
}

/// Returns the big-endian number of two bytes at `at`.
#[inline]
pub(crate) fn u16_at(bytes: &[u8], at: usize) -> Option<u16> {
    let field = bytes.get(at..)?.first_chunk::<2>()?;
    Some(u16::from_be_bytes(*field))
}

/// Removes a number in Git's offset encoding from the front and returns it. Each byte holds seven
/// bits, most significant first, and each continuation adds one.
pub(crate) fn take_varint(input: &mut &[u8]) -> Option<u64> {
    let (&first, mut rest) = input.split_first()?;
    let mut value = u64::from(first & 0x7f);
    let mut byte = first;
    while byte & 0x80 != 0 {
        let (&next, tail) = rest.split_first()?;
        value = value.checked_add(1)?;
        if value >> 57 != 0 {
            return None;
        }
        value = (value << 7) | u64::from(next & 0x7f);
        (byte, rest) = (next, tail);
    }
    *input = rest;
    Some(value)
}

/// Appends `value` in the encoding that [`take_varint`] reads.
pub(crate) fn push_varint(out: &mut Vec<u8>, mut value: u64) {
    let mut reversed = [0u8; 10];
    let mut count = 1;
    reversed[0] = (value & 0x7f) as u8;
    while value > 0x7f {
        value = (value >> 7) - 1;
        reversed[count] = 0x80 | (value & 0x7f) as u8;
        count += 1;
    }
    out.extend(reversed[..count].iter().rev());
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn varints_come_back() {
        for value in [
            0,
            1,
            127,
            128,
            255,
            16511,
            16512,
            1 << 20,
            u64::from(u32::MAX),
        ] {
            let mut out = Vec::new();
            push_varint(&mut out, value);
            let mut input = &out[..];
            assert_eq!(take_varint(&mut input), Some(value));
            assert!(input.is_empty());
        }
        assert_eq!(take_varint(&mut &[0xff; 20][..]), None);
        assert_eq!(take_varint(&mut &[0x80][..]), None);
    }
}
