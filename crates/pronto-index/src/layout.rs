//! The layout of entries in memory: as in a file of version 2 or 3, with a table of the starts of
//! entries. Entries of version 4 and of split indexes are converted to this layout on reading.

use crate::bytes::{take_varint, u16_at};
use crate::entry::{EntryKey, EntryRef, Flags};
use crate::error::{Error, corrupt};
use crate::stat::Stat;
use bstr::ByteSlice;
use pronto_hash::oid;
use pronto_io::view::prefetch;
use std::ffi::CStr;

/// The length of the stat data and the mode, which precede the object id of an entry.
pub(crate) const STAT_BYTES: usize = 40;
/// The number of four-byte fields before the mode.
const FIELDS_BEFORE_MODE: usize = 6;
/// The value of the length field of a long name, whose length is determined by its NUL.
pub(crate) const LONG_NAME: u16 = 0xfff;
/// The longest path in version 4, where a few bytes of the file can declare arbitrarily long paths.
const LONGEST_PATH_BYTES: usize = 32 * 1024;

/// The prefetch distance: about twenty entries.
const AHEAD_BYTES: usize = 2048;
/// The size of a cache line of the processor.
pub(crate) const LINE_BYTES: usize = 64;

/// The start of each entry, and the end of the last one.
#[derive(Debug, Default)]
pub(crate) struct EntryOffsets {
    pub(crate) starts: Vec<u32>,
    pub(crate) end: usize,
}

/// The fields of an entry before its name, with checked bounds.
struct FixedFields {
    flags: u16,
    extended: u16,
    /// The number of bytes before the name.
    len: usize,
}

fn fixed(bytes: &[u8], at: usize, hash_len: usize) -> Option<FixedFields> {
    let flags_at = at + STAT_BYTES + hash_len;
    let flags = u16_at(bytes, flags_at)?;
    let mut len = STAT_BYTES + hash_len + 2;
    let mut extended = 0;
    if u32::from(flags) & Flags::EXTENDED != 0 {
        extended = u16_at(bytes, flags_at + 2)?;
        len += 2;
    }
    Some(FixedFields {
        flags,
        extended,
        len,
    })
}

fn damaged(at: usize) -> Error {
    corrupt("truncated or malformed index entry").at_offset(at as u64)
}

fn check(fixed: &FixedFields, at: usize) -> Result<(), Error> {
    match Flags::from_stored(0, fixed.extended) {
        Some(_) => Ok(()),
        None => Err(corrupt(format!(
            "unknown index entry format 0x{:08x}",
            u32::from(fixed.extended) << 16
        ))
        .at_offset(at as u64)),
    }
}

/// Clears the skip-worktree bit of the entry at `at`, which has been located before.
pub(crate) fn unskip(bytes: &mut [u8], at: usize, hash_len: usize) {
    let Some(FixedFields {
        flags, extended, ..
    }) = fixed(bytes, at, hash_len)
    else {
        return;
    };
    if u32::from(flags) & Flags::EXTENDED != 0 {
        let extended = extended & !Flags::STORED_SKIP_WORKTREE;
        let extended_at = at + STAT_BYTES + hash_len + 2;
        bytes[extended_at..extended_at + 2].copy_from_slice(&extended.to_be_bytes());
    }
}

/// Returns the smallest length of an entry before its name.
pub(crate) fn least_len(hash_len: usize) -> usize {
    STAT_BYTES + hash_len + 2
}

/// Allocates a table for `count` entries, or fails if the file is too small for so many entries.
fn reserve(bytes: &[u8], count: usize, hash_len: usize) -> Result<Vec<u32>, Error> {
    if bytes.len() > u32::MAX as usize {
        return Err(corrupt("index file is larger than 4 GiB"));
    }
    if count > bytes.len() / least_len(hash_len) {
        return Err(corrupt("index file is smaller than its number of entries"));
    }
    Ok(Vec::with_capacity(count))
}

/// Locates the entries of a file of version 2 or 3. Reads a few bytes of each entry.
pub(crate) fn locate(
    bytes: &[u8],
    from: usize,
    count: usize,
    hash_len: usize,
) -> Result<EntryOffsets, Error> {
    let mut starts = reserve(bytes, count, hash_len)?;
    let mut at = from;
    for _ in 0..count {
        // The start of an entry depends on the previous one; without the prefetch, each iteration
        // would wait for memory.
        prefetch(bytes, at + AHEAD_BYTES);
        prefetch(bytes, at + AHEAD_BYTES + LINE_BYTES);
        let fixed = fixed(bytes, at, hash_len).ok_or_else(|| damaged(at))?;
        check(&fixed, at)?;
        let mut name_len = usize::from(fixed.flags & LONG_NAME);
        if name_len == usize::from(LONG_NAME) {
            name_len = bytes
                .get(at + fixed.len..)
                .and_then(|name| name.find_byte(0))
                .ok_or_else(|| damaged(at))?;
        }
        starts.push(at as u32);
        at += (fixed.len + name_len + 8) & !7;
        if at > bytes.len() {
            return Err(damaged(at));
        }
    }
    Ok(EntryOffsets { starts, end: at })
}

/// Entries in a separate buffer.
#[derive(Debug, Default)]
pub(crate) struct UnpackedEntries {
    pub(crate) bytes: Vec<u8>,
    pub(crate) starts: Vec<u32>,
}

impl UnpackedEntries {
    /// Appends an entry: the fixed part in the format of the file, then its path.
    pub(crate) fn push(&mut self, fixed: &[u8], path: &[u8]) -> Result<(), Error> {
        let start = u32::try_from(self.bytes.len())
            .map_err(|_| corrupt("index entries take more than 4 GiB"))?;
        self.starts.push(start);
        self.bytes.extend_from_slice(fixed);
        self.bytes.extend_from_slice(path);
        self.bytes.push(0);
        Ok(())
    }

    /// Sets the length of the name in the fixed part, which is zero in a split index.
    pub(crate) fn fix_last_name_len(&mut self, hash_len: usize, path_len: usize) {
        let Some(&start) = self.starts.last() else {
            return;
        };
        let at = start as usize + STAT_BYTES + hash_len;
        if let Some(field) = self.bytes.get_mut(at..at + 2) {
            let flags = u16::from_be_bytes([field[0], field[1]]) & !LONG_NAME;
            let len = u16::try_from(path_len).unwrap_or(LONG_NAME).min(LONG_NAME);
            field.copy_from_slice(&(flags | len).to_be_bytes());
        }
    }
}

/// Unpacks the entries of a file of version 4. Returns the end of the last entry, too.
pub(crate) fn unpack(
    bytes: &[u8],
    from: usize,
    count: usize,
    hash_len: usize,
) -> Result<(UnpackedEntries, usize), Error> {
    let mut unpacked = UnpackedEntries {
        starts: reserve(bytes, count, hash_len)?,
        bytes: Vec::with_capacity(bytes.len()),
    };
    let mut path = Vec::new();
    let mut at = from;
    for _ in 0..count {
        let fixed = fixed(bytes, at, hash_len).ok_or_else(|| damaged(at))?;
        check(&fixed, at)?;
        let mut rest = bytes.get(at + fixed.len..).ok_or_else(|| damaged(at))?;
        let strip = take_varint(&mut rest).ok_or_else(|| damaged(at))?;
        let kept = usize::try_from(strip)
            .ok()
            .and_then(|strip| path.len().checked_sub(strip));
        let kept = kept.ok_or_else(|| {
            let near = path.as_bstr();
            corrupt(format!(
                "malformed name field in the index, near path '{near}'"
            ))
        })?;
        let suffix_len = rest.find_byte(0).ok_or_else(|| damaged(at))?;
        if kept + suffix_len > LONGEST_PATH_BYTES {
            return Err(corrupt("the path of an index entry is too long").at_offset(at as u64));
        }
        path.truncate(kept);
        path.extend_from_slice(&rest[..suffix_len]);
        unpacked.push(&bytes[at..at + fixed.len], &path)?;
        unpacked.fix_last_name_len(hash_len, path.len());
        at = bytes.len() - rest.len() + suffix_len + 1;
    }
    Ok((unpacked, at))
}

/// Returns the bytes of the entry at `start` before its path.
pub(crate) fn fixed_part(bytes: &[u8], start: usize, hash_len: usize) -> &[u8] {
    let len = fixed(bytes, start, hash_len).map_or(0, |fixed| fixed.len);
    &bytes[start..start + len]
}

/// Returns the key of the entry at `start`, which [`locate`] or [`unpack`] has checked.
#[inline]
pub(crate) fn key(bytes: &[u8], start: usize, hash_len: usize) -> EntryKey<'_> {
    let Some(fixed) = fixed(bytes, start, hash_len) else {
        return EntryKey {
            path: &[],
            stage: 0,
        };
    };
    let name = &bytes[start + fixed.len..];
    let len = match fixed.flags & LONG_NAME {
        LONG_NAME => name.find_byte(0).unwrap_or(name.len()),
        len => usize::from(len),
    };
    EntryKey {
        path: &name[..len.min(name.len())],
        stage: (fixed.flags >> 12 & 3) as u8,
    }
}

/// Returns the path of the entry at `start` from its byte `from` on, as a C string for system
/// calls. A path that contains a NUL is truncated there. Returns `None` if the path is shorter than
/// `from`.
#[inline]
pub(crate) fn terminated(
    bytes: &[u8],
    start: usize,
    hash_len: usize,
    from: usize,
) -> Option<&CStr> {
    let fixed = fixed(bytes, start, hash_len)?;
    let name = bytes.get(start + fixed.len + from..)?;
    CStr::from_bytes_until_nul(name).ok()
}

/// Returns the entry at `start`, which [`locate`] or [`unpack`] has checked.
#[inline]
pub(crate) fn read(bytes: &[u8], start: usize, hash_len: usize) -> EntryRef<'_> {
    let row = &bytes[start..];
    let (numbers, rest) = row.split_at(STAT_BYTES);
    let field = |index: usize| match numbers[index * 4..].first_chunk::<4>() {
        Some(field) => u32::from_be_bytes(*field),
        None => 0,
    };
    let (id, rest) = rest.split_at(hash_len);
    let flags = u16_at(rest, 0).unwrap_or_default();
    let (extended, name) = match u32::from(flags) & Flags::EXTENDED {
        0 => (0, &rest[2..]),
        _ => (u16_at(rest, 2).unwrap_or_default(), &rest[4..]),
    };
    let len = match flags & LONG_NAME {
        LONG_NAME => name.find_byte(0).unwrap_or(name.len()),
        len => usize::from(len).min(name.len()),
    };
    EntryRef {
        path: name[..len].as_bstr(),
        id: oid::from_bytes_unchecked(id),
        mode: field(6),
        flags: Flags::from_stored(flags, extended).unwrap_or_default(),
        // The mode is between the inode number and the owner.
        stat: Stat::from_fields([
            field(0),
            field(1),
            field(2),
            field(3),
            field(4),
            field(5),
            field(7),
            field(8),
            field(9),
        ]),
    }
}

/// Returns the numbers of an entry in the order of the file format: the mode is between the inode
/// number and the owner.
#[inline]
pub(crate) fn numbers(stat: &Stat, mode: u32) -> [u32; Stat::FIELDS + 1] {
    let fields = stat.fields();
    let mut numbers = [mode; Stat::FIELDS + 1];
    numbers[..FIELDS_BEFORE_MODE].copy_from_slice(&fields[..FIELDS_BEFORE_MODE]);
    numbers[FIELDS_BEFORE_MODE + 1..].copy_from_slice(&fields[FIELDS_BEFORE_MODE..]);
    numbers
}

/// Appends the part of `entry` before its path in the format of the file.
pub(crate) fn push_fixed(out: &mut Vec<u8>, entry: &EntryRef<'_>) {
    for number in numbers(&entry.stat, entry.mode) {
        out.extend_from_slice(&number.to_be_bytes());
    }
    out.extend_from_slice(entry.id.as_bytes());
    let (flags, extended) = entry.flags.to_stored();
    let name_len = u16::try_from(entry.path.len())
        .unwrap_or(LONG_NAME)
        .min(LONG_NAME);
    out.extend_from_slice(&(flags | name_len).to_be_bytes());
    if entry.flags.is_extended() {
        out.extend_from_slice(&extended.to_be_bytes());
    }
}
