//! The commits at which local history ends: the file `shallow`.

use std::collections::BTreeSet;

use bstr::ByteSlice;
use pronto_hash::ObjectId;
use pronto_wire::fetch::ShallowUpdate;

use crate::lock::{Lock, PATIENCE};
use crate::{Error, ErrorKind, Repository, Result};

/// Reads the list. It is empty for a whole history.
///
/// # Errors
/// The file cannot be read or holds something else than ids.
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

/// The list as it will be after `update`.
pub fn updated(mut list: BTreeSet<ObjectId>, update: &ShallowUpdate) -> BTreeSet<ObjectId> {
    for id in &update.unshallow {
        list.remove(id);
    }
    list.extend(update.shallow.iter().copied());
    list
}

/// Writes the list, or removes the file if it is empty.
///
/// # Errors
/// The file is locked or cannot be written.
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

/// The text of the file.
pub fn text(list: &BTreeSet<ObjectId>) -> Vec<u8> {
    let mut text = Vec::with_capacity(list.len() * 41);
    for id in list {
        text.extend_from_slice(id.to_hex().to_string().as_bytes());
        text.push(b'\n');
    }
    text
}
