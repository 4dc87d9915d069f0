//! Fast comparison of ordinary entries with the stat data of unchanged files.

use crate::bytes::u16_at;
use crate::layout::{LONG_NAME, STAT_BYTES, numbers};
use crate::stat::{IndexTime, Stat};
use std::ffi::CStr;

/// The position of the device among the numbers of an entry. The device is not compared.
const DEVICE: usize = 4;

/// An entry without flags: merged, and neither assume-unchanged nor skip-worktree nor
/// intent-to-add. Borrows from its index; `Send + Sync`.
#[derive(Clone, Copy, Debug)]
pub struct PlainEntry<'a> {
    numbers: &'a [u8; STAT_BYTES],
    /// The path, including the NUL at its end.
    path: &'a [u8],
    /// The offset of the file name in the path.
    from: usize,
}

impl<'a> PlainEntry<'a> {
    /// Returns the entry at `start`, if no flag is set and its path from the byte `from` on
    /// contains no slash.
    #[inline]
    pub(crate) fn read(
        rows: &'a [u8],
        start: usize,
        hash_len: usize,
        from: usize,
    ) -> Option<PlainEntry<'a>> {
        let (numbers, rest) = rows.get(start..)?.split_first_chunk::<STAT_BYTES>()?;
        let flags = u16_at(rest, hash_len)?;
        if flags >= LONG_NAME {
            return None;
        }
        let path = rest.get(hash_len + 2..=hash_len + 2 + usize::from(flags))?;
        if has_slash(path.get(from..)?) || path.last() != Some(&0) {
            return None;
        }
        Some(PlainEntry {
            numbers,
            path,
            from,
        })
    }

    /// Returns the file name as a C string for system calls. A name that contains a NUL is
    /// truncated there.
    #[inline]
    pub fn name(&self) -> &'a CStr {
        CStr::from_bytes_until_nul(&self.path[self.from..]).unwrap_or_default()
    }

    /// Returns the path as a C string for system calls. A path that contains a NUL is truncated
    /// there.
    #[inline]
    pub fn path(&self) -> &'a CStr {
        CStr::from_bytes_until_nul(self.path).unwrap_or_default()
    }

    /// Returns whether the file certainly matches the entry under any [`Rules`](crate::StatRules),
    /// given its stat data `now` and the mode with which it would be staged. All fields except the
    /// device must be equal, the modification time must be well before `index_time`, and the size
    /// must not mark an entry whose content must be examined. If the result is `false`, the file
    /// may still match.
    #[inline]
    pub fn is_certainly(&self, now: &Stat, mode: u32, index_time: IndexTime) -> bool {
        let mut differing = 0;
        let (recorded, _) = self.numbers.as_chunks::<4>();
        for (at, (number, now)) in recorded.iter().zip(numbers(now, mode)).enumerate() {
            let difference = u32::from_be_bytes(*number) ^ now;
            differing |= if at == DEVICE { 0 } else { difference };
        }
        // A file with this or the next second could have been changed without a difference in its
        // stat data.
        let is_old = now.mtime.seconds.saturating_add(1) < index_time.seconds;
        differing == 0 && now.size_bytes != 0 && is_old
    }
}

const _: () = assert!(STAT_BYTES == 4 * (Stat::FIELDS + 1));

/// Returns whether `name` contains a slash. Compares eight bytes at a time, because names are
/// short.
#[inline]
fn has_slash(name: &[u8]) -> bool {
    let (words, rest) = name.as_chunks::<8>();
    let mut found = 0;
    for word in words {
        let differences = u64::from_le_bytes(*word) ^ SLASHES;
        // Sets the topmost bit of each zero byte, and possibly of bytes above a zero byte.
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
