//! Small files that represent block files in directories.
//!
//! A stub contains a random key. A view of a stub whose key was published in this process reads the
//! block file. To any other program, and to a process that has not published the key, the stub is
//! not a valid pack. So no program takes the holes of a sparse file for content.

use std::collections::HashMap;
use std::fs::File;
use std::io::{self, Read as _, Write as _};
use std::os::unix::fs::FileExt as _;
use std::path::Path;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError, RwLock};

use super::BlockFile;
use crate::untrusted::SymlinkPolicy;

const BEFORE_KEY: &str = "pronto: the blocks of this file are fetched when they are read. Key: ";
const KEY_LEN: usize = 32;
const STUB_LEN: usize = BEFORE_KEY.len() + KEY_LEN + 1;

/// A block file, which is replaced when it can no longer be read.
type BlockFileSlot = Mutex<Arc<BlockFile>>;

/// The published block files of this process, by key.
static PUBLISHED: RwLock<Option<HashMap<u128, Arc<BlockFileSlot>>>> = RwLock::new(None);

/// The number of entries of `PUBLISHED`. If it is zero, no file is checked for a stub.
static COUNT: AtomicUsize = AtomicUsize::new(0);

/// The key of a stub.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Stub(u128);

impl Stub {
    /// Reads the stub at `path`, or creates a stub with the key `fresh`, which must be
    /// unpredictable.
    ///
    /// # Errors
    /// Fails with the errors of reading and writing, and with `InvalidData` if another file exists
    /// at `path`.
    pub fn at(path: &Path, fresh: u128) -> io::Result<Stub> {
        let created = File::options().write(true).create_new(true).open(path);
        match created {
            Ok(mut file) => {
                file.write_all(format!("{BEFORE_KEY}{fresh:032x}\n").as_bytes())?;
                Ok(Stub(fresh))
            }
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {
                let file = crate::untrusted::open_any(path, SymlinkPolicy::Refuse)?;
                let mut bytes = Vec::new();
                file.take(STUB_LEN as u64 + 1).read_to_end(&mut bytes)?;
                parse(&bytes).map(Stub).ok_or_else(|| {
                    io::Error::new(io::ErrorKind::InvalidData, "file is not a stub of a pack")
                })
            }
            Err(error) => Err(error),
        }
    }

    /// Makes views of the stub read `file` until the returned value is dropped. Views that are open
    /// at that time stay readable.
    pub fn publish(self, file: Arc<BlockFile>) -> Published {
        let slot = Arc::new(Mutex::new(file));
        let mut published = PUBLISHED.write().unwrap_or_else(PoisonError::into_inner);
        let all = published.get_or_insert_default();
        all.insert(self.0, Arc::clone(&slot));
        COUNT.store(all.len(), Ordering::Release);
        Published { key: self.0, slot }
    }
}

/// A published block file. Dropping the value ends the publication.
#[derive(Debug)]
pub struct Published {
    key: u128,
    slot: Arc<BlockFileSlot>,
}

impl Published {
    /// Returns the block file.
    pub fn file(&self) -> Arc<BlockFile> {
        current(&self.slot)
    }
}

impl Drop for Published {
    fn drop(&mut self) {
        let mut published = PUBLISHED.write().unwrap_or_else(PoisonError::into_inner);
        if let Some(all) = published.as_mut() {
            let is_ours = (all.get(&self.key)).is_some_and(|slot| Arc::ptr_eq(slot, &self.slot));
            if is_ours {
                all.remove(&self.key);
            }
            COUNT.store(all.len(), Ordering::Release);
        }
    }
}

/// Whether any block file is published in this process.
#[must_use]
pub fn is_any_published() -> bool {
    COUNT.load(Ordering::Acquire) > 0
}

/// Returns the block file for the stub `file` of `len` bytes, or `None` if the file is not a
/// published stub.
pub(in crate::view) fn find(file: &File, len: u64) -> Option<Arc<BlockFile>> {
    if len != STUB_LEN as u64 || COUNT.load(Ordering::Acquire) == 0 {
        return None;
    }
    let mut bytes = [0; STUB_LEN];
    file.read_exact_at(&mut bytes, 0).ok()?;
    let key = parse(&bytes)?;
    let published = PUBLISHED.read().unwrap_or_else(PoisonError::into_inner);
    let slot = published.as_ref()?.get(&key).map(Arc::clone)?;
    drop(published);
    Some(current(&slot))
}

/// Returns the block file in `slot`. If its sparse file was truncated, opens the block file again.
fn current(slot: &BlockFileSlot) -> Arc<BlockFile> {
    let mut file = slot.lock().unwrap_or_else(PoisonError::into_inner);
    if file.check().is_err() {
        *file = BlockFile::new(file.parts.clone());
    }
    Arc::clone(&file)
}

fn parse(bytes: &[u8]) -> Option<u128> {
    let text = std::str::from_utf8(bytes).ok()?;
    let key = text.strip_prefix(BEFORE_KEY)?.strip_suffix('\n')?;
    let is_plain = key.len() == KEY_LEN && key.bytes().all(|digit| digit.is_ascii_hexdigit());
    is_plain.then(|| u128::from_str_radix(key, 16).ok())?
}
