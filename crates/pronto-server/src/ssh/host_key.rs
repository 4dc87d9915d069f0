//! The host key: the private key by which clients recognise the server.

use std::io::ErrorKind as Io;
use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;

use pronto_io::error::IoContext as _;
use ring::rand::{SecureRandom as _, SystemRandom};
use russh::keys::PrivateKey;
use russh::keys::ssh_key::LineEnding;
use russh::keys::ssh_key::private::{Ed25519Keypair, KeypairData};

use crate::secret::{self, MissingKey, NewKey};
use crate::{Error, ErrorKind, Result};

/// The largest size in bytes of the key file.
const LARGEST_BYTES: u64 = 64 * 1024;

/// The mode bits that give other users access to a file.
const OTHERS: u32 = 0o007;

/// Reads the key at `path`. `missing` decides about a missing file.
///
/// # Errors
/// Fails with [`ErrorKind::Config`] or [`ErrorKind::Io`] if the file cannot be read or written, is
/// not a private key, or is readable by other users.
pub(super) fn obtain(path: &Path, missing: MissingKey) -> Result<PrivateKey> {
    if let Some(key) = read(path)? {
        return Ok(key);
    }
    match missing {
        MissingKey::Make => make(path),
        MissingKey::Allow => generate(),
        MissingKey::Refuse => Err(Error::new(
            ErrorKind::Config,
            format!("SSH host key file '{}' does not exist", path.display()),
        )),
    }
}

/// Generates a temporary key.
///
/// # Errors
/// Fails with [`ErrorKind::Io`] if the system provides no random bytes.
pub(super) fn generate() -> Result<PrivateKey> {
    let mut seed = [0; 32];
    SystemRandom::new()
        .fill(&mut seed)
        .map_err(|_| Error::new(ErrorKind::Io, "cannot get random bytes from the system"))?;
    let pair = KeypairData::Ed25519(Ed25519Keypair::from_seed(&seed));
    PrivateKey::new(pair, "pronto").map_err(|error| {
        Error::new(ErrorKind::Io, "cannot generate an SSH host key").because(error)
    })
}

/// Generates a key and stores it at `path`. If another server has stored a key first, returns that
/// key.
fn make(path: &Path) -> Result<PrivateKey> {
    secret::make(path, read, || {
        let key = generate()?;
        let text = key.to_openssh(LineEnding::LF).map_err(|error| {
            Error::new(ErrorKind::Io, "cannot encode the SSH host key").because(error)
        })?;
        let text = text.to_string();
        Ok(NewKey { key, text })
    })
}

/// Reads a key. Returns `None` if the file does not exist.
fn read(path: &Path) -> Result<Option<PrivateKey>> {
    let unusable = |what: &str| {
        let message = format!("'{}' {what}", path.display());
        Err(Error::new(ErrorKind::Config, message))
    };
    let links = pronto_io::untrusted::SymlinkPolicy::Follow;
    let bytes = match pronto_io::untrusted::read(path, links, LARGEST_BYTES) {
        Ok(bytes) => bytes,
        Err(error) if error.kind() == Io::NotFound => return Ok(None),
        Err(error) => return Err(error).context(ErrorKind::Config, "cannot read", path),
    };
    let found = std::fs::metadata(path).context(ErrorKind::Config, "cannot read", path)?;
    if found.permissions().mode() & OTHERS != 0 {
        return unusable("is readable by other users; run 'chmod 600' on it");
    }
    let Ok(key) = PrivateKey::from_openssh(&bytes) else {
        return unusable("contains no private key in OpenSSH format");
    };
    match key.is_encrypted() {
        true => unusable("is protected by a passphrase; remove it with 'ssh-keygen -p'"),
        false => Ok(Some(key)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::keys::fingerprint;

    #[test]
    fn a_key_is_made_once() {
        let folder = tempfile::tempdir().expect("a directory");
        let path = folder.path().join("key");
        obtain(&path, MissingKey::Refuse).expect_err("there is none");
        obtain(&path, MissingKey::Allow).expect("a key");
        assert!(!path.exists());
        let made = obtain(&path, MissingKey::Make).expect("a key");
        let mode = std::fs::metadata(&path).expect("made").permissions().mode();
        assert_eq!(mode & 0o7777, 0o600);
        let read = obtain(&path, MissingKey::Make).expect("a key");
        let print = |key: &PrivateKey| fingerprint(key.public_key());
        assert_eq!(print(&read), print(&made));
        let open = std::fs::Permissions::from_mode(0o644);
        std::fs::set_permissions(&path, open).expect("it is ours");
        obtain(&path, MissingKey::Make).expect_err("others can read it");
        std::fs::write(&path, "x").expect("a file");
        obtain(&path, MissingKey::Make).expect_err("no key");
    }
}
