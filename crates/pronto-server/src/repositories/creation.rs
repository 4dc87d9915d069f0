//! The turn to create a repository where quotas limit their number.

use std::fs::File;
use std::path::Path;
use std::sync::{Mutex, MutexGuard, PoisonError};

use pronto_io::error::IoContext as _;

use crate::{ErrorKind, Result};

/// The turn to count the repositories and create one. Dropping it lets others have theirs.
pub(crate) struct TurnToCreate {
    _lock: Option<File>,
    _turn: MutexGuard<'static, ()>,
}

impl TurnToCreate {
    /// Waits until no other thread of this process, and no other process below `root`, has the turn. The lock is an
    /// advisory one on the root; no file is created.
    ///
    /// # Errors
    /// The root cannot be opened.
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
