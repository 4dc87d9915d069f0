//! Descriptors of files that are read by position. At most [`LIMIT`] stay open between reads, so
//! that a repository with thousands of packs works with a low descriptor limit.

use std::fs::File;
use std::io;
use std::os::unix::fs::{FileExt as _, MetadataExt as _};
use std::path::PathBuf;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::sync::{Arc, Mutex, PoisonError, Weak};

use crate::untrusted::SymlinkPolicy;

use super::ViewIdentity;

/// The maximum number of descriptors that all views together keep open between reads.
const LIMIT: usize = 64;

static OPEN: Mutex<Vec<Weak<DescriptorSlot>>> = Mutex::new(Vec::new());
static CLOCK: AtomicU64 = AtomicU64::new(0);

/// A file whose descriptor may be closed between two reads and opened again when it is needed.
#[derive(Debug)]
pub(super) struct Pooled {
    slot: Arc<DescriptorSlot>,
    path: PathBuf,
    identity: ViewIdentity,
}

#[derive(Debug)]
struct DescriptorSlot {
    file: Mutex<Option<Arc<File>>>,
    last_used: AtomicU64,
}

impl Pooled {
    pub(super) fn new(file: File, path: PathBuf, identity: ViewIdentity) -> Self {
        let slot = Arc::new(DescriptorSlot {
            file: Mutex::new(Some(Arc::new(file))),
            last_used: AtomicU64::new(CLOCK.fetch_add(1, Relaxed)),
        });
        admit(&slot);
        Pooled {
            slot,
            path,
            identity,
        }
    }

    /// Fills `buffer` from `offset`. Fails with `NotFound` or `StaleNetworkFileHandle` if the
    /// descriptor was closed meanwhile and the path no longer names the same file.
    pub(super) fn read_exact_at(&self, buffer: &mut [u8], offset: u64) -> io::Result<()> {
        self.file()?.read_exact_at(buffer, offset)
    }

    fn file(&self) -> io::Result<Arc<File>> {
        self.slot
            .last_used
            .store(CLOCK.fetch_add(1, Relaxed), Relaxed);
        let mut slot = lock(&self.slot.file);
        if let Some(file) = slot.as_ref() {
            return Ok(file.clone());
        }
        let file = crate::untrusted::open_any(&self.path, SymlinkPolicy::Follow)?;
        let metadata = file.metadata()?;
        let found = ViewIdentity {
            device: metadata.dev(),
            inode: metadata.ino(),
            modified: (metadata.mtime(), metadata.mtime_nsec()),
        };
        if found != self.identity {
            return Err(io::ErrorKind::StaleNetworkFileHandle.into());
        }
        let file = Arc::new(file);
        *slot = Some(file.clone());
        drop(slot);
        admit(&self.slot);
        Ok(file)
    }
}

/// Counts `slot` as open, and closes the least recently used descriptors in excess of the limit.
/// Reads in progress keep their descriptor.
fn admit(slot: &Arc<DescriptorSlot>) {
    let mut open = lock(&OPEN);
    open.retain(|other| other.strong_count() > 0);
    open.push(Arc::downgrade(slot));
    while open.len() > LIMIT {
        let oldest = (0..open.len())
            .min_by_key(|&at| open[at].upgrade().map(|slot| slot.last_used.load(Relaxed)));
        let Some(oldest) = oldest else { return };
        let closed = open.swap_remove(oldest).upgrade();
        if let Some(closed) = closed {
            lock(&closed.file).take();
        }
    }
}

fn lock<T>(mutex: &Mutex<T>) -> std::sync::MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests {
    use super::super::{FileView, ViewAccess};
    use super::LIMIT;

    #[test]
    fn more_files_than_descriptors() {
        let base = std::env::temp_dir().join(format!("pronto-pool-{}", std::process::id()));
        std::fs::create_dir_all(&base).expect("a directory");
        let _guard = crate::cleanup::Guard::new(&base);
        let views: Vec<FileView> = (0..LIMIT * 2)
            .map(|n| {
                let path = base.join(n.to_string());
                std::fs::write(&path, n.to_string()).expect("a file");
                FileView::open(&path, ViewAccess::Positional).expect("the file is there")
            })
            .collect();
        for _ in 0..2 {
            for (n, view) in views.iter().enumerate() {
                let mut buffer = Vec::new();
                let len = view.len() as usize;
                let read = view.read(0, len, &mut buffer).expect("it can be read");
                assert_eq!(read, n.to_string().as_bytes());
            }
        }
        std::fs::remove_file(base.join("0")).expect("it was there");
        assert!(views[0].read(0, 1, &mut Vec::new()).is_err());
    }
}
