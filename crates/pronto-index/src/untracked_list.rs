//! The list of all untracked files of a worktree, stored in a file beside the index. It serves a
//! status that lists every untracked file (`--untracked-files=all`) and uses a file system monitor.
//!
//! The untracked cache of the index serves one mode of status: by default the mode that lists an
//! untracked directory as a whole. This file (`index.pronto-untracked`) serves the other mode. It
//! belongs to pronto; Git ignores it. Numbers are big-endian:
//!
//! | bytes | |
//! |---|---|
//! | 4 | `PIUL` |
//! | 4 | version: 1 |
//! | 8 × 5 | of the index file: device, inode, size, seconds and nanoseconds of its modification time |
//! | 20 or 32 | the end of the index file: its checksum, or zeros |
//! | 4, n | the token of the monitor: its length, and the token |
//! | 4 | the number of directories |
//! | 16 each | a digest of the tracked names of each directory |
//! | 4, n | the untracked cache: its length, and the content of an `UNTR` extension |
//! | 4 | CRC-32 of all preceding bytes |
//!
//! The list is valid for the time of the token. If the index has changed since, directories whose
//! tracked names have another digest must be read again. If the file is missing, truncated or
//! malformed, only time is lost. The file is not replaced by a rename: a reader of an incomplete
//! file detects that the CRC is wrong.
//!
//! Cost of reading: one open, one `fstat`, one read and one close; about 120 bytes for each
//! directory of the worktree, and the names of untracked files.

use crate::bytes::{take, take_u32};
use crate::outline::IndexOutline;
use crate::untracked::UntrackedCache;
use bstr::{BStr, ByteSlice};
use pronto_hash::Kind;
use pronto_io::untrusted::{self, SymlinkPolicy};
use std::borrow::Cow;
use std::fs::OpenOptions;
use std::io::Write as _;
use std::path::{Path, PathBuf};

const HEAD: &[u8; 8] = b"PIUL\0\0\0\x01";
const CRC_BYTES: usize = 4;
/// The size above which the file is ignored.
const LARGEST_BYTES: u64 = 1 << 30;

/// A digest of the tracked names of a directory.
pub type NamesDigest = [u8; 16];

/// All untracked files of a worktree at the time of a monitor's token.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct UntrackedList<'a> {
    /// The identity of the index for which the list was written.
    index: Cow<'a, [u8]>,
    /// The monitor's token.
    pub token: Cow<'a, BStr>,
    /// The digests of the tracked names of each directory of the cache.
    pub tracked: Vec<NamesDigest>,
    /// The untracked names of each directory, as for [`UntrackedCache::ALL`].
    pub cache: UntrackedCache<'a>,
}

impl<'a> UntrackedList<'a> {
    /// Returns a list for `index`; `None` if `index` was not read from a file.
    pub fn new(
        index: &IndexOutline,
        token: Cow<'a, BStr>,
        tracked: Vec<NamesDigest>,
        cache: UntrackedCache<'a>,
    ) -> Option<Self> {
        let index = index.identity_bytes()?.into();
        Some(UntrackedList {
            index,
            token,
            tracked,
            cache,
        })
    }

    /// Parses the content of the file; `None` if the file is malformed.
    pub fn parse(bytes: &'a [u8], kind: Kind) -> Option<UntrackedList<'a>> {
        let (content, crc) = bytes.split_last_chunk::<CRC_BYTES>()?;
        if crc32fast::hash(content).to_be_bytes() != *crc {
            return None;
        }
        let mut data = content.strip_prefix(HEAD)?;
        let index = take(&mut data, 5 * 8 + kind.len_in_bytes())?;
        let token = take_sized(&mut data)?;
        let count = take_u32(&mut data)? as usize;
        let digests = take(&mut data, count.checked_mul(size_of::<NamesDigest>())?)?;
        let cache = UntrackedCache::parse(take_sized(&mut data)?, kind)?;
        let is_sound = data.is_empty()
            && cache.len() == count
            && cache.flags == UntrackedCache::ALL
            && (0..count).all(|at| !cache.directory(at).check_only);
        is_sound.then(|| UntrackedList {
            index: index.into(),
            token: Cow::Borrowed(token.as_bstr()),
            tracked: digests.as_chunks().0.to_vec(),
            cache,
        })
    }

    /// Appends the encoded content of the file.
    pub fn encode(&self, out: &mut Vec<u8>) {
        let start = out.len();
        out.extend_from_slice(HEAD);
        out.extend_from_slice(&self.index);
        push_sized(out, &self.token);
        out.extend_from_slice(&(self.tracked.len() as u32).to_be_bytes());
        out.extend_from_slice(self.tracked.as_flattened());
        let mut cache = Vec::new();
        self.cache.encode(&mut cache);
        push_sized(out, &cache);
        let crc = crc32fast::hash(&out[start..]);
        out.extend_from_slice(&crc.to_be_bytes());
    }

    /// Returns whether the list was written for exactly this `index`.
    pub fn is_for(&self, index: &IndexOutline) -> bool {
        index.identity_bytes().is_some_and(|own| own == *self.index)
    }
}

impl IndexOutline {
    /// Reads the file with the list of untracked files beside this index, for
    /// [`UntrackedList::parse`]. Returns `None` if the file does not exist.
    pub fn read_untracked_list(&self) -> Option<Vec<u8>> {
        untrusted::read(&beside(self.path()?), SymlinkPolicy::Refuse, LARGEST_BYTES).ok()
    }

    /// Writes `list` to the file beside this index, for which it was [made](UntrackedList::new).
    ///
    /// # Errors
    /// Fails if the file cannot be written. Readers ignore an incomplete file.
    pub fn write_untracked_list(&self, list: &UntrackedList<'_>) -> std::io::Result<()> {
        let Some(path) = self.path().map(beside) else {
            return Ok(());
        };
        let mut bytes = Vec::new();
        list.encode(&mut bytes);
        match std::fs::remove_file(&path) {
            Err(error) if error.kind() != std::io::ErrorKind::NotFound => return Err(error),
            _ => {}
        }
        // Creates the file exclusively, so that nothing is written through a symbolic link.
        let mut options = OpenOptions::new();
        let mut file = options.write(true).create_new(true).open(path)?;
        file.write_all(&bytes)
    }
}

/// Returns the path of the file for the index at `index`.
fn beside(index: &Path) -> PathBuf {
    let mut path = index.as_os_str().to_owned();
    path.push(".pronto-untracked");
    path.into()
}

fn take_sized<'a>(data: &mut &'a [u8]) -> Option<&'a [u8]> {
    let len = take_u32(data)? as usize;
    take(data, len)
}

fn push_sized(out: &mut Vec<u8>, bytes: &[u8]) {
    out.extend_from_slice(&(bytes.len() as u32).to_be_bytes());
    out.extend_from_slice(bytes);
}
