//! Files that only the owner of the server may read: keys that it makes at its first start, and users.

use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;
use std::time::Duration;

use pronto_io::error::IoContext as _;
use pronto_io::lock_file::{LockFile, Marking};

use crate::{ErrorKind, Result};

/// The longest wait for another server that makes the key.
const PATIENCE: Duration = Duration::from_secs(5);

/// The reaction to a private key that does not exist.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Missing {
    /// Make one.
    Make,
    /// Use one that is stored nowhere: the file would be made.
    Allow,
    /// Report an error.
    Refuse,
}

/// A private key as text, to be stored.
pub(crate) struct Made<K> {
    pub(crate) key: K,
    pub(crate) text: String,
}

/// Makes a key and stores it at `path`, for its owner only. Another server may be faster; then its key
/// counts, which `read` returns.
///
/// # Errors
/// The file is locked, or cannot be written; or `read` or `make` fails.
pub(crate) fn make<K>(
    path: &Path,
    read: impl FnOnce(&Path) -> Result<Option<K>>,
    make: impl FnOnce() -> Result<Made<K>>,
) -> Result<K> {
    let locked = |error: pronto_io::lock_file::Error| error.map_kind(|_| ErrorKind::Io);
    let lock = LockFile::acquire(path, Marking::Marked, PATIENCE).map_err(locked)?;
    if let Some(key) = read(path)? {
        return Ok(key);
    }
    let Made { key, text } = make()?;
    store(lock, path, text.as_bytes())?;
    Ok(key)
}

/// Replaces the file at `path` by `bytes` under its lock, for its owner only. Returns when the disk has it.
///
/// # Errors
/// The file cannot be written.
pub(crate) fn store(mut lock: LockFile, path: &Path, bytes: &[u8]) -> Result<()> {
    if let Some(file) = lock.file() {
        let only_owner = std::fs::Permissions::from_mode(0o600);
        let restricted = file.set_permissions(only_owner);
        restricted.context(ErrorKind::Io, "cannot write", path)?;
    }
    lock.wait_for(pronto_io::sync::SyncMethod::Flush);
    let written = lock.write(bytes);
    written.map_err(|error| error.map_kind(|_| ErrorKind::Io))?;
    lock.commit_to(path)
        .context(ErrorKind::Io, "cannot write", path)
}
