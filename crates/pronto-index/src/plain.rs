//! Fast comparison of ordinary entries with the stat data of unchanged files.

use crate::bytes::u16_at;
use crate::layout::{LONG_NAME, STAT_BYTES, numbers};
use crate::stat::{Stat, Time};
use std::ffi::CStr;

/// The position of the device among the numbers of an entry. It is not compared.
const DEVICE: usize = 4;

/// An entry of which no flag says anything: neither in conflict, nor assumed to be unchanged, nor
/// left out, nor only intended to be added. Borrows from its index; `Send + Sync`.
#[derive(Clone, Copy, Debug)]
pub struct Plain<'a> {
    numbers: &'a [u8; STAT_BYTES],
    /// With the NUL that ends it.
    path: &'a [u8],
    /// The start of the name in its path.
    from: usize,
}

impl<'a> Plain<'a> {
    /// The entry at `start`, if it is one, and if its path from the byte `from` on is one name.
    #[inline]
    pub(crate) fn read(
        rows: &'a [u8],
        start: usize,
        hash_len: usize,
        from: usize,
    ) -> Option<Plain<'a>> {
        let (numbers, rest) = rows.get(start..)?.split_first_chunk::<STAT_BYTES>()?;
        let flags = u16_at(rest, hash_len)?;
        if flags >= LONG_NAME {
            return None;
        }
        let path = rest.get(hash_len + 2..=hash_len + 2 + usize::from(flags))?;
        if has_slash(path.get(from..)?) || path.last() != Some(&0) {
            return None;
        }
        Some(Plain {
            numbers,
            path,
            from,
        })
    }

    /// The name, as calls of the system want it: up to a NUL, if it has one in it.
    #[inline]
    pub fn name(&self) -> &'a CStr {
        CStr::from_bytes_until_nul(&self.path[self.from..]).unwrap_or_default()
    }

    /// The path likewise.
    #[inline]
    pub fn path(&self) -> &'a CStr {
        CStr::from_bytes_until_nul(self.path).unwrap_or_default()
    }

    /// Returns whether a file with the stat data `now` and the mode it would be staged with
    /// certainly matches the entry, by any [`Rules`](crate::Rules): everything but the device is
    /// equal, was recorded well before `index_time`, and the size is not the mark of an entry whose
    /// content must be examined. `false` says nothing.
    #[inline]
    pub fn is_certainly(&self, now: &Stat, mode: u32, index_time: Time) -> bool {
        let mut differing = 0;
        let (recorded, _) = self.numbers.as_chunks::<4>();
        for (at, (number, now)) in recorded.iter().zip(numbers(now, mode)).enumerate() {
            let difference = u32::from_be_bytes(*number) ^ now;
            differing |= if at == DEVICE { 0 } else { difference };
        }
        // A file of this time or the next second could be changed without a trace.
        let is_old = now.mtime.seconds.saturating_add(1) < index_time.seconds;
        differing == 0 && now.size_bytes != 0 && is_old
    }
}

const _: () = assert!(STAT_BYTES == 4 * (Stat::FIELDS + 1));

/// Whether there is a slash in `name`. Names are short: eight bytes at a time, here and now.
#[inline]
fn has_slash(name: &[u8]) -> bool {
    let (words, rest) = name.as_chunks::<8>();
    let mut found = 0;
    for word in words {
        let differences = u64::from_le_bytes(*word) ^ SLASHES;
        // The topmost bit of each byte that is zero, and perhaps of some above one.
        found |= differences.wrapping_sub(ONES) & !differences & (ONES << 7);
    }
    found != 0 || rest.contains(&b'/')
}

const ONES: u64 = u64::MAX / 255;
const SLASHES: u64 = ONES * b'/' as u64;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn slashes_are_found_wherever_they_are() {
        for len in 0..20 {
            let name = vec![b'x'; len];
            assert!(!has_slash(&name), "{len}");
            for at in 0..len {
                for byte in 0..=u8::MAX {
                    let mut name = name.clone();
                    name[at] = byte;
                    assert_eq!(has_slash(&name), byte == b'/', "{name:?}");
                }
            }
        }
    }
}
