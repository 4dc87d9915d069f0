//! The shallow commits, at which the local history ends (the file `shallow`).

use std::collections::BTreeSet;

use bstr::ByteSlice;
use pronto_hash::ObjectId;
use pronto_wire::fetch::ShallowUpdate;

use crate::lock::{Lock, PATIENCE};
use crate::{Error, ErrorKind, Repository, Result};

/// Reads the shallow commits; the set is empty for a complete history.
///
/// # Errors
/// Fails with [`ErrorKind::Io`] if the file cannot be read, or [`ErrorKind::Object`] if a line is not
/// an object id.
pub fn read(repository: &Repository) -> Result<BTreeSet<ObjectId>> {
    let path = repository.shallow_path();
    let text = match pronto_io::untrusted::content(&path) {
        Ok(text) => text,
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(BTreeSet::new()),
        Err(error) => {
            let message = format!("cannot read '{}'", path.display());
            return Err(Error::new(ErrorKind::Io, message).because(error));
        }
    };
    text.lines()
        .map(|line| {
            pronto_hash::parse_hex(line.trim()).map_err(|_| {
                let message = format!("bad shallow line: {}", line.as_bstr());
                Error::new(ErrorKind::Corrupt, message)
            })
        })
        .collect()
}

/// Returns `list` after the changes of `update`.
pub fn updated(mut list: BTreeSet<ObjectId>, update: &ShallowUpdate) -> BTreeSet<ObjectId> {
    for id in &update.unshallow {
        list.remove(id);
    }
    list.extend(update.shallow.iter().copied());
    list
}

/// Writes the shallow commits, or removes the file if `list` is empty.
///
/// # Errors
/// Fails with [`ErrorKind::Locked`] if another process holds the lock file, or [`ErrorKind::Io`] if the
/// file cannot be written.
pub fn write(repository: &Repository, list: &BTreeSet<ObjectId>) -> Result<()> {
    let lock = Lock::acquire(repository.shallow_path(), PATIENCE)?;
    let mut lock = lock.recorded(repository.config());
    if list.is_empty() {
        match std::fs::remove_file(repository.shallow_path()) {
            Err(error) if error.kind() != std::io::ErrorKind::NotFound => {
                let message = format!("cannot remove '{}'", repository.shallow_path().display());
                return Err(Error::new(ErrorKind::Io, message).because(error));
            }
            _ => return Ok(()),
        }
    }
    lock.write_and_close(&text(list))?;
    lock.commit()
}

/// Formats the content of the file `shallow`.
pub fn text(list: &BTreeSet<ObjectId>) -> Vec<u8> {
    let mut text = Vec::with_capacity(list.len() * 41);
    for id in list {
        text.extend_from_slice(id.to_hex().to_string().as_bytes());
        text.push(b'\n');
    }
    text
}
