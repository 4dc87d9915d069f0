//! The lengths of all entries of an index, stored in a file beside the index, so that entries can
//! be located without reading them.
//!
//! The file (`index.pronto`) belongs to pronto; Git ignores it. All numbers are little-endian:
//!
//! | bytes | |
//! |---|---|
//! | 4 | `PIEL` |
//! | 4 | version: 1 |
//! | 8 × 5 | of the index file: device, inode, size, seconds and nanoseconds of its modification time |
//! | 20 or 32 | the end of the index file: its checksum, or zeros |
//! | 4 | the number of entries |
//! | 1 each | the length of each entry, in units of 8 bytes |
//! | 4 | CRC-32 of all preceding bytes |
//!
//! If the file is missing, truncated or belongs to another index, only time is lost: entries are
//! then located one after the other. The file is not replaced by a rename: a reader of an
//! incomplete file detects that its length or CRC is wrong.
//!
//! Cost of reading for n entries: one open, one `fstat`, two reads, one close; n bytes read, 4 n
//! written. A pass over the entries themselves reads 100 n bytes of memory.

use crate::file::FileBytes;
use crate::identity::IndexFileIdentity;
use crate::layout::{self, EntryOffsets};
use pronto_hash::Kind;
use std::fs::{File, OpenOptions};
use std::io::{Read, Write};
use std::path::{Path, PathBuf};

const MAGIC: &[u8; 4] = b"PIEL";
const VERSION: u32 = 1;
/// The alignment of entries in versions 2 and 3, which divides all lengths.
const UNIT: usize = 8;
const CRC_BYTES: usize = 4;
/// The number of entries from which reading this file is faster than locating the entries.
pub(crate) const WORTH_ENTRIES: usize = 4096;

/// Returns the path of the file with the lengths of the entries of the index at `index`.
fn beside(index: &Path) -> PathBuf {
    let mut path = index.as_os_str().to_owned();
    path.push(".pronto");
    path.into()
}

/// An index file, as the lengths file identifies it.
#[derive(Clone, Copy)]
pub(crate) struct MeasuredIndex<'a> {
    pub(crate) file: &'a [u8],
    pub(crate) identity: IndexFileIdentity,
    pub(crate) kind: Kind,
    pub(crate) count: usize,
}

impl MeasuredIndex<'_> {
    fn head(&self) -> Vec<u8> {
        let mut head = Vec::with_capacity(64 + self.kind.len_in_bytes() + self.count + CRC_BYTES);
        head.extend_from_slice(MAGIC);
        head.extend_from_slice(&VERSION.to_le_bytes());
        for number in self.identity.numbers() {
            head.extend_from_slice(&number.to_le_bytes());
        }
        let end = self.file.len().saturating_sub(self.kind.len_in_bytes());
        head.extend_from_slice(&self.file[end..]);
        head.extend_from_slice(&(self.count as u32).to_le_bytes());
        head
    }
}

/// Reads the positions of the entries of `subject`, the index at `path`, from the lengths file, if
/// the file describes this index.
pub(crate) fn read(path: &Path, subject: &MeasuredIndex<'_>, from: usize) -> Option<EntryOffsets> {
    if subject.count < WORTH_ENTRIES {
        return None;
    }
    let mut file = File::open(beside(path)).ok()?;
    let metadata = file.metadata().ok()?;
    let head = subject.head();
    let len = head.len() + subject.count + CRC_BYTES;
    if !metadata.is_file() || metadata.len() != len as u64 {
        return None;
    }
    let mut bytes = vec![0; len];
    file.read_exact(&mut bytes).ok()?;
    parse(&bytes, &head, subject, from)
}

fn parse(
    bytes: &[u8],
    head: &[u8],
    subject: &MeasuredIndex<'_>,
    from: usize,
) -> Option<EntryOffsets> {
    let (content, crc) = bytes.split_last_chunk::<CRC_BYTES>()?;
    let lengths = content.strip_prefix(head)?;
    if crc32fast::hash(content).to_le_bytes() != *crc || lengths.len() != subject.count {
        return None;
    }
    let hash_len = subject.kind.len_in_bytes();
    let limit = subject.file.len().checked_sub(hash_len)?;
    // An entry has a name of at least one byte, and a NUL.
    let least = (layout::least_len(hash_len) + 2).div_ceil(UNIT);
    let shortest = lengths.iter().min().copied().unwrap_or_default();
    if usize::from(shortest) < least || limit > u32::MAX as usize {
        return None;
    }
    let mut at = from as u32;
    let mut starts = Vec::with_capacity(lengths.len());
    starts.extend(lengths.iter().map(|&length| {
        let start = at;
        at = at.wrapping_add(u32::from(length) * UNIT as u32);
        start
    }));
    // The sum cannot overflow, so comparing it also proves that no partial sum did.
    let total: u64 = lengths.iter().map(|&length| u64::from(length)).sum();
    let end = usize::try_from(from as u64 + total * UNIT as u64).ok()?;
    (end <= limit).then_some(EntryOffsets { starts, end })
}

/// Writes the lengths of the entries of `subject`, the index at `path`, which start at `starts`;
/// the last entry ends at `end`. Writes nothing for few entries, or if an entry is longer than
/// 2,040 bytes.
///
/// # Errors
/// Fails if the file cannot be written. Readers ignore an incomplete file.
pub(crate) fn write(
    path: &Path,
    subject: &MeasuredIndex<'_>,
    starts: &[u32],
    end: usize,
) -> std::io::Result<()> {
    if subject.count < WORTH_ENTRIES || starts.len() != subject.count {
        return Ok(());
    }
    let mut bytes = subject.head();
    let ends = starts[1..].iter().copied().chain([end as u32]);
    for (start, end) in starts.iter().zip(ends) {
        let Ok(length) = u8::try_from((end - start) as usize / UNIT) else {
            return Ok(());
        };
        bytes.push(length);
    }
    let crc = crc32fast::hash(&bytes);
    bytes.extend_from_slice(&crc.to_le_bytes());
    make(&beside(path))?.write_all(&bytes)
}

/// Creates the file exclusively, so that nothing is written through a symbolic link.
fn make(path: &Path) -> std::io::Result<File> {
    match std::fs::remove_file(path) {
        Err(error) if error.kind() != std::io::ErrorKind::NotFound => return Err(error),
        _ => {}
    }
    OpenOptions::new().write(true).create_new(true).open(path)
}

/// Returns whether a lengths file is useful, which requires a mapped index. If the index file is
/// read as a whole, its entries are in memory already.
pub(crate) fn pays(file: &FileBytes, version: u32) -> bool {
    matches!(file, FileBytes::Mapped(..)) && matches!(version, 2 | 3)
}
