//! Small files that stand for block files in directories.
//!
//! A stub holds a random key. A view of a stub whose key was published in this process reads the block
//! file. Any other program, and a process that has not published it, finds a file that is no pack: it never
//! takes holes of the sparse file for content.

use std::collections::HashMap;
use std::fs::File;
use std::io::{self, Read as _, Write as _};
use std::os::unix::fs::FileExt as _;
use std::path::Path;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError, RwLock};

use super::BlockFile;
use crate::untrusted::Links;

const BEFORE_KEY: &str = "pronto: the blocks of this file are fetched when they are read. Key: ";
const KEY_LEN: usize = 32;
const STUB_LEN: usize = BEFORE_KEY.len() + KEY_LEN + 1;

/// A block file, which is replaced when it can no longer be read.
type Slot = Mutex<Arc<BlockFile>>;

/// The block files of this process by key.
static PUBLISHED: RwLock<Option<HashMap<u128, Arc<Slot>>>> = RwLock::new(None);

/// The number of entries of `PUBLISHED`: without any, no file is looked at.
static COUNT: AtomicUsize = AtomicUsize::new(0);

/// A key that was read from a stub, or written to one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Stub(u128);

impl Stub {
    /// Reads the stub at `path`, or writes one with the key `fresh`, which nobody must be able to predict.
    ///
    /// # Errors
    /// Those of reading and writing; `InvalidData` if another file is at the path.
    pub fn at(path: &Path, fresh: u128) -> io::Result<Stub> {
        let created = File::options().write(true).create_new(true).open(path);
        match created {
            Ok(mut file) => {
                file.write_all(format!("{BEFORE_KEY}{fresh:032x}\n").as_bytes())?;
                Ok(Stub(fresh))
            }
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {
                let file = crate::untrusted::open_any(path, Links::Refuse)?;
                let mut bytes = Vec::new();
                file.take(STUB_LEN as u64 + 1).read_to_end(&mut bytes)?;
                parse(&bytes).map(Stub).ok_or_else(|| {
                    io::Error::new(io::ErrorKind::InvalidData, "file is not a stub of a pack")
                })
            }
            Err(error) => Err(error),
        }
    }

    /// Makes views of the stub read `file`, until the returned value is dropped. Views that are open then
    /// stay readable.
    pub fn publish(self, file: Arc<BlockFile>) -> Published {
        let slot = Arc::new(Mutex::new(file));
        let mut published = PUBLISHED.write().unwrap_or_else(PoisonError::into_inner);
        let all = published.get_or_insert_default();
        all.insert(self.0, Arc::clone(&slot));
        COUNT.store(all.len(), Ordering::Release);
        Published { key: self.0, slot }
    }
}

/// A block file that can be opened with its stub.
#[derive(Debug)]
pub struct Published {
    key: u128,
    slot: Arc<Slot>,
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

/// Whether this process reads any file by block.
#[must_use]
pub fn is_any_published() -> bool {
    COUNT.load(Ordering::Acquire) > 0
}

/// Returns the block file that `file`, of `len` bytes, stands for.
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

/// Returns the block file in `slot`. If the sparse file was cut short, opens it again.
fn current(slot: &Slot) -> Arc<BlockFile> {
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
