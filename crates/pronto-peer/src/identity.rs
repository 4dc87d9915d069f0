//! Identities of repositories, which prevent two repositories from using one peer name.
//!
//! Each repository has sixteen random bytes that it sends to peers (`objects/netsync/+self`). The
//! data of a peer contains the identity of the peer, and another repository with the same name is
//! refused. A plain copy of a repository, other than a clone, has the identity of the original.

use std::fs::File;
use std::io::{ErrorKind as IoKind, Write as _};
use std::path::{Path, PathBuf};

use pronto_io::error::IoContext as _;
use pronto_netsync::{Error, ErrorKind};

use super::{directory_of, failed, is_peer_name, nonce};
use pronto::{Repository, Result};

/// The file name of the own identity, which is not a valid name of a peer.
const OWN: &str = "+self";

/// Returns the identity of this repository, or an empty identity if it cannot be stored.
pub(super) fn own(repository: &Repository) -> Vec<u8> {
    let directory = repository.objects_dir().join("netsync");
    let path = directory.join(OWN);
    let make = || -> Result<()> {
        std::fs::create_dir_all(&directory).context(
            pronto::ErrorKind::Io,
            "cannot create",
            &directory,
        )?;
        let text: String = nonce()?[..16]
            .iter()
            .map(|byte| format!("{byte:02x}"))
            .collect();
        store(&path, text.as_bytes()).context(pronto::ErrorKind::Io, "cannot create", &path)?;
        Ok(())
    };
    if !path.exists() && make().is_err() {
        return Vec::new();
    }
    std::fs::read(&path).unwrap_or_default()
}

/// Checks that the peer has the identity that was recorded for its name, and records a new
/// identity.
pub(super) fn compare(directory: &Path, name: &str, identity: &[u8]) -> Result<(), Error> {
    if identity.is_empty() {
        return Ok(());
    }
    let path = directory.join("peer");
    let note = || -> std::io::Result<Vec<u8>> {
        std::fs::create_dir_all(directory)?;
        store(&path, identity)?;
        std::fs::read(&path)
    };
    let known = match std::fs::read(&path) {
        Err(error) if error.kind() == IoKind::NotFound => note(),
        other => other,
    };
    let known = known
        .context(pronto::ErrorKind::Io, "cannot use", &path)
        .map_err(failed)?;
    if known == identity {
        return Ok(());
    }
    let message = format!("the peer name '{name}' already belongs to another repository");
    let hint = format!(
        "choose another name with --name, or for this repository with --as; if the peer replaces \
         that repository, run: pronto netsync forget {name}"
    );
    Err(Error::new(ErrorKind::Denied, message).with_hint(hint))
}

/// Removes the recorded identity of a peer. The next repository with that name replaces the peer
/// and its refs. The received part of an interrupted transfer is deleted, too.
///
/// # Errors
/// Fails with `pronto::ErrorKind::InvalidInput` if no peer has this name, and with `Io` if a
/// file cannot be removed.
pub fn forget_peer(repository: &Repository, name: &str) -> Result<()> {
    let directory = directory_of(repository, name);
    if !is_peer_name(name) || !directory.exists() {
        let message = format!("no peer is named '{name}' in this repository");
        return Err(pronto::Error::new(pronto::ErrorKind::InvalidInput, message));
    }
    for part in ["peer", "state"] {
        let path = directory.join(part);
        match std::fs::remove_file(&path) {
            Err(error) if error.kind() != IoKind::NotFound => {
                return Err(error).context(pronto::ErrorKind::Io, "cannot remove", &path);
            }
            _ => {}
        }
    }
    let kept = directory.join("objects");
    match std::fs::remove_dir_all(&kept) {
        Err(error) if error.kind() != IoKind::NotFound => {
            Err(error).context(pronto::ErrorKind::Io, "cannot remove", &kept)
        }
        _ => Ok(()),
    }
}

/// Creates a file with this content atomically. An existing file stays.
fn store(path: &Path, content: &[u8]) -> std::io::Result<()> {
    let mut name = path.as_os_str().to_owned();
    name.push(format!(
        ".{}-{:?}",
        std::process::id(),
        std::thread::current().id()
    ));
    let new = PathBuf::from(name);
    let write = || {
        let mut file = File::create(&new)?;
        file.write_all(content)?;
        file.sync_all()?;
        match std::fs::hard_link(&new, path) {
            Err(error) if error.kind() != IoKind::AlreadyExists => Err(error),
            _ => Ok(()),
        }
    };
    let result = write();
    let _ = std::fs::remove_file(&new);
    result
}
