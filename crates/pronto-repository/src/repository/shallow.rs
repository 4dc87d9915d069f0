//! The commits at which local history ends: the file `shallow`.

use std::collections::{BTreeSet, HashMap};

use bstr::ByteSlice;
use pronto_hash::ObjectId;
use pronto_wire::fetch::ShallowUpdate;

use crate::lock::{Lock, PATIENCE};
use crate::{Error, ErrorKind, Notice, Repository, Result};

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
            ObjectId::from_hex(line.trim()).map_err(|_| {
                let message = format!("bad shallow line: {}", line.as_bstr());
                Error::new(ErrorKind::Object, message)
            })
        })
        .collect()
}

/// Commits with parents other than those that they name.
pub(crate) type Grafts = HashMap<ObjectId, Vec<ObjectId>>;

/// Reads the grafts (`info/grafts`, `GIT_GRAFT_FILE`): in each line a commit and its parents. Wrong
/// lines are skipped with a warning.
///
/// # Errors
/// The file cannot be read.
pub(crate) fn grafts(repository: &Repository) -> Result<Grafts> {
    let path = repository.graft_path();
    let text = match pronto_io::untrusted::content(&path) {
        Ok(text) => text,
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(Grafts::new()),
        Err(error) => {
            let message = format!("cannot read '{}'", path.display());
            return Err(Error::new(ErrorKind::Io, message).because(error));
        }
    };
    let mut grafts = Grafts::new();
    for line in text.lines().map(ByteSlice::trim_end) {
        if line.is_empty() || line.starts_with(b"#") {
            continue;
        }
        let ids = line.split(|byte| *byte == b' ').map(ObjectId::from_hex);
        match ids.collect::<std::result::Result<Vec<_>, _>>() {
            Ok(mut ids) if !ids.is_empty() => {
                let commit = ids.remove(0);
                grafts.insert(commit, ids);
            }
            _ => {
                let message = format!("bad graft data: {}", line.as_bstr());
                repository.notify(Notice::Ignored(Error::new(
                    ErrorKind::InvalidInput,
                    message,
                )));
            }
        }
    }
    Ok(grafts)
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
    let mut lock = Lock::acquire(repository.shallow_path(), PATIENCE)?;
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
