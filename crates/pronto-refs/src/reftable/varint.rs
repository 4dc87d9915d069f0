//! Variable-length integers, encoded like the offsets of deltas in packs.

/// The largest length of an encoded integer in bytes.
const LONGEST: usize = 10;

/// Reads an integer at `at` and moves `at` after it; `None` if the bytes end too early or the
/// integer is too large.
#[inline(always)]
pub(crate) fn read(bytes: &[u8], at: &mut usize) -> Option<u64> {
    let first = *bytes.get(*at)?;
    *at += 1;
    if first & 0x80 == 0 {
        return Some(u64::from(first));
    }
    read_more(bytes, at, first)
}

fn read_more(bytes: &[u8], at: &mut usize, first: u8) -> Option<u64> {
    let mut value = u64::from(first & 0x7f);
    loop {
        let byte = *bytes.get(*at)?;
        *at += 1;
        if value >= u64::MAX >> 7 {
            return None;
        }
        value = ((value + 1) << 7) | u64::from(byte & 0x7f);
        if byte & 0x80 == 0 {
            return Some(value);
        }
    }
}

/// Appends the encoded `value` to `bytes`.
pub(crate) fn write(bytes: &mut Vec<u8>, mut value: u64) {
    let mut buffer = [0; LONGEST];
    let mut at = LONGEST - 1;
    buffer[at] = (value & 0x7f) as u8;
    loop {
        value >>= 7;
        if value == 0 {
            break;
        }
        value -= 1;
        at -= 1;
        buffer[at] = 0x80 | (value & 0x7f) as u8;
    }
    bytes.extend_from_slice(&buffer[at..]);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_written_is_read() {
        let edges = [
            0,
            1,
            127,
            128,
            16511,
            16512,
            u64::from(u32::MAX),
            (u64::MAX >> 7) + 5,
            u64::MAX / 2,
        ];
        for value in edges {
            let mut bytes = Vec::new();
            write(&mut bytes, value);
            let mut at = 0;
            assert_eq!(read(&bytes, &mut at), Some(value), "{value}");
            assert_eq!(at, bytes.len());
            for len in 0..bytes.len() {
                assert_eq!(read(&bytes[..len], &mut 0), None, "{value}, {len} bytes");
            }
        }
    }

    #[test]
    fn numbers_that_do_not_fit_are_refused() {
        assert_eq!(read(&[0xff; 20], &mut 0), None);
        assert_eq!(read(&[0x80; 64], &mut 0), None);
    }
}
