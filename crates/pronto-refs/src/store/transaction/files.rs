//! The files of refs and reflogs that a transaction changes.

use bstr::{BStr, ByteSlice};

use super::super::tables::LogChange as LogIds;
use super::super::{RefHost, RefNameRef, RefTarget, References, log};
use super::{RefChangeKind, RefEdit, rename};
use pronto_config::lock::Lock;
use pronto_config::{Error, ErrorKind, Result};

/// Returns the old and the new id for the reflog entry; `None` if the step is not logged.
pub(super) fn logged_ids(repository: &dyn RefHost, step: &RefEdit) -> Option<LogIds> {
    let null = repository.refs().object_hash().null();
    let new = match &step.change {
        RefChangeKind::Set(RefTarget::Object(id)) => *id,
        // As in Git, the entry in the reflog of `HEAD` does not record the object to which the new
        // branch points.
        RefChangeKind::Set(RefTarget::Symbolic(_)) if step.only_log => null,
        // A symref to a broken ref, or to itself, resolves to no object.
        RefChangeKind::Set(RefTarget::Symbolic(target)) => {
            repository.refs().id_of(target).ok()??
        }
        RefChangeKind::Delete if step.only_log => null,
        RefChangeKind::Delete | RefChangeKind::Verify => return None,
    };
    Some(LogIds {
        old: step.old.unwrap_or(null),
        new,
    })
}

/// Writes the entry of `step` to the reflog of its ref.
pub(super) fn write_log(
    repository: &dyn RefHost,
    step: &RefEdit,
    who: &mut Option<String>,
) -> Result<()> {
    if step.log_from.is_some() {
        return rename::move_log(repository, step, who);
    }
    let refs = repository.refs();
    let name = step.name.borrow();
    let Some(LogIds { old, new }) = logged_ids(repository, step) else {
        return Ok(());
    };
    let wanted = step.create_log || refs.wants_log(&name);
    if !wanted && !refs.log_path(name).exists() {
        return Ok(());
    }
    let who = match who {
        Some(who) => who,
        None => who.insert(repository.log_signature()?),
    };
    let mut line = format!("{old} {new} {who}").into_bytes();
    let message = log::clean_message(
        step.message
            .as_ref()
            .map_or(b"".as_bstr(), |text| text.as_bstr()),
    );
    if !message.is_empty() {
        line.push(b'\t');
        line.extend_from_slice(&message);
    }
    line.push(b'\n');
    refs.append_log(name, wanted, &line).map_err(|error| {
        let message = format!("cannot update the ref '{name}': {error}");
        Error::new(error.kind(), message)
    })
}

/// Renames the lock file of the ref `name` to the file of the ref.
pub(super) fn move_into_place(lock: Lock, name: &BStr) -> Result<()> {
    if lock.target().is_dir() {
        log::remove_empty_directories(lock.target());
    }
    let is_blocked = lock.target().is_dir();
    lock.commit().map_err(|error| {
        let kind = match is_blocked {
            true => ErrorKind::NameConflict,
            false => ErrorKind::Reference,
        };
        let message = format!("couldn't set '{name}'");
        Error::new(kind, message).because(error.message())
    })
}

/// Removes the parent directories of a removed ref or reflog if they are empty. The first two
/// components of the name stay.
pub(in super::super) fn remove_empty_parents(refs: &References, name: RefNameRef<'_>, logs: bool) {
    let file = if logs {
        refs.log_path(name)
    } else {
        refs.file_of(name)
    };
    let depth = name.iter().filter(|&&byte| byte == b'/').count();
    let mut directory = file.parent();
    for _ in 2..depth.max(2) {
        let Some(path) = directory.filter(|path| std::fs::remove_dir(path).is_ok()) else {
            return;
        };
        directory = path.parent();
    }
}
