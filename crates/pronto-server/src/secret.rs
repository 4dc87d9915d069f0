//! Files that are readable only by the owner of the server: the file of users, and keys that the
//! server generates at its first start.

use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;
use std::time::Duration;

use pronto_io::error::IoContext as _;
use pronto_io::lock_file::{LockFile, Marking};

use crate::{ErrorKind, Result};

/// The longest wait for another server that generates the key.
const PATIENCE: Duration = Duration::from_secs(5);

/// The action for a private key file that does not exist.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum MissingKey {
    /// Generate a key and store it.
    Make,
    /// Generate a temporary key, as a check before a start that would create the file.
    Allow,
    /// Report an error.
    Refuse,
}

/// A generated private key, with the text to store.
pub(crate) struct NewKey<K> {
    pub(crate) key: K,
    pub(crate) text: String,
}

/// Generates a key and stores it at `path`, readable only by its owner. If another server has
/// stored a key first, returns that key, which `read` reads.
///
/// # Errors
/// Fails if the file is locked, or cannot be written, or if `read` or `make` fails.
pub(crate) fn make<K>(
    path: &Path,
    read: impl FnOnce(&Path) -> Result<Option<K>>,
    make: impl FnOnce() -> Result<NewKey<K>>,
) -> Result<K> {
    let locked = |error: pronto_io::lock_file::Error| error.map_kind(|_| ErrorKind::Io);
    let lock = LockFile::acquire(path, Marking::Marked, PATIENCE).map_err(locked)?;
    if let Some(key) = read(path)? {
        return Ok(key);
    }
    let NewKey { key, text } = make()?;
    store(lock, path, text.as_bytes())?;
    Ok(key)
}

/// Replaces the content of the file at `path` by `bytes` under its lock file, readable only by its
/// owner. The data is on disk when this function returns.
///
/// # Errors
/// Fails if the file cannot be written.
pub(crate) fn store(mut lock: LockFile, path: &Path, bytes: &[u8]) -> Result<()> {
    if let Some(file) = lock.file() {
        let only_owner = std::fs::Permissions::from_mode(0o600);
        let restricted = file.set_permissions(only_owner);
        restricted.context(ErrorKind::Io, "cannot write", path)?;
    }
    lock.set_sync_method(pronto_io::sync::SyncMethod::Flush);
    let written = lock.write(bytes);
    written.map_err(|error| error.map_kind(|_| ErrorKind::Io))?;
    lock.commit_to(path)
        .context(ErrorKind::Io, "cannot write", path)
}
