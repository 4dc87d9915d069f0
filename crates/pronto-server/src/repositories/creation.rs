//! The lock for creating repositories whose number is limited by quotas.

use std::fs::File;
use std::path::Path;
use std::sync::{Mutex, MutexGuard, PoisonError};

use pronto_io::error::IoContext as _;

use crate::{ErrorKind, Result};

/// The lock for counting the repositories and creating one. Dropping it releases the lock.
pub(crate) struct TurnToCreate {
    _lock: Option<File>,
    _turn: MutexGuard<'static, ()>,
}

impl TurnToCreate {
    /// Waits until no other thread of this process, and no other process that serves `root`, holds
    /// the lock. The lock is an advisory lock on the root directory, so no lock file is created.
    ///
    /// # Errors
    /// Fails with [`ErrorKind::Io`] if the root cannot be opened.
    pub(super) fn take(root: Option<&Path>) -> Result<Self> {
        static CREATING: Mutex<()> = Mutex::new(());
        let turn = CREATING.lock().unwrap_or_else(PoisonError::into_inner);
        let mut lock = None;
        if let Some(root) = root {
            let root = File::open(root).context(ErrorKind::Io, "cannot lock", root)?;
            // Some file systems have no advisory locks.
            let _ = rustix::fs::flock(&root, rustix::fs::FlockOperation::LockExclusive);
            lock = Some(root);
        }
        Ok(TurnToCreate {
            _lock: lock,
            _turn: turn,
        })
    }
}
