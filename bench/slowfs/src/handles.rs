//! File handles: the numbers that identify open files and directories for the kernel.

use std::collections::HashMap;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use fuser::{Errno, FileHandle};

/// The table of open files or open directories. All threads may use it.
#[derive(Debug)]
pub(crate) struct Handles<T> {
    next: AtomicU64,
    open: Mutex<HashMap<u64, Arc<T>>>,
}

impl<T> Default for Handles<T> {
    fn default() -> Self {
        Handles {
            next: AtomicU64::new(1),
            open: Mutex::default(),
        }
    }
}

impl<T> Handles<T> {
    pub(crate) fn insert(&self, it: T) -> FileHandle {
        let handle = self.next.fetch_add(1, Relaxed);
        self.open().insert(handle, Arc::new(it));
        FileHandle(handle)
    }

    pub(crate) fn get(&self, handle: FileHandle) -> Result<Arc<T>, Errno> {
        self.open().get(&handle.0).cloned().ok_or(Errno::EBADF)
    }

    pub(crate) fn remove(&self, handle: FileHandle) {
        self.open().remove(&handle.0);
    }

    fn open(&self) -> MutexGuard<'_, HashMap<u64, Arc<T>>> {
        self.open.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
