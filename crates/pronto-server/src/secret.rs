//! Files that are readable only by the owner of the server: the file of users, and keys that the
//! server generates at its first start.

use std::os::unix::fs::{MetadataExt as _, PermissionsExt as _};
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
/// If root calls this, the owner stays, and a new file gets the owner of its directory: the server,
/// which runs as another user, can read it.
///
/// # Errors
/// Fails if the file cannot be written.
pub(crate) fn store(mut lock: LockFile, path: &Path, bytes: &[u8]) -> Result<()> {
    if let Some(file) = lock.file() {
        let only_owner = std::fs::Permissions::from_mode(0o600);
        let restricted = file.set_permissions(only_owner);
        restricted.context(ErrorKind::Io, "cannot write", path)?;
        if rustix::process::geteuid().is_root()
            && let Some((user, group)) = owner(path)
        {
            let given = std::os::unix::fs::fchown(file, Some(user), Some(group));
            given.context(ErrorKind::Io, "cannot set the owner of", path)?;
        }
    }
    lock.set_sync_method(pronto_io::sync::SyncMethod::Flush);
    let written = lock.write(bytes);
    written.map_err(|error| error.map_kind(|_| ErrorKind::Io))?;
    lock.commit_to(path)
        .context(ErrorKind::Io, "cannot write", path)
}

/// Returns the user and the group of the file at `path`, or of its directory if there is no file.
fn owner(path: &Path) -> Option<(u32, u32)> {
    let directory = path
        .parent()
        .filter(|parent| !parent.as_os_str().is_empty());
    let found =
        std::fs::metadata(path).or_else(|_| std::fs::metadata(directory.unwrap_or(Path::new("."))));
    found.ok().map(|found| (found.uid(), found.gid()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn root_leaves_the_owner_of_a_file() {
        test_support::need!(test_support::Need::Root);
        let folder = tempfile::tempdir().expect("a directory");
        std::os::unix::fs::chown(folder.path(), Some(1234), Some(4321)).expect("given away");
        let path = folder.path().join("users.toml");
        for owner in [(1234, 4321), (1235, 4322)] {
            let lock = LockFile::acquire(&path, Marking::Marked, PATIENCE).expect("free");
            store(lock, &path, b"x").expect("written");
            let found = std::fs::metadata(&path).expect("there");
            assert_eq!(
                (found.uid(), found.gid(), found.mode() & 0o777),
                (owner.0, owner.1, 0o600)
            );
            std::os::unix::fs::chown(&path, Some(1235), Some(4322)).expect("given away");
        }
    }
}
