//! Renames refs within a transaction: the old ref is deleted, and the new ref takes over its
//! reflog.

use bstr::{BString, ByteSlice};

use super::super::tables::{LogChange as LogIds, StoredEntry};
use super::super::{RefHost, RefName, RefTarget, log};
use super::{Edit, ExpectedValue, RefChangeKind, RefEdit, Transaction};
use pronto_config::Result;

/// A ref to be renamed.
#[derive(Clone, Debug)]
pub struct Rename {
    /// The old full name of the ref.
    pub from: BString,
    /// The new full name of the ref, which must not exist.
    pub to: BString,
    /// The target that the ref must have before the renaming.
    pub current: RefTarget,
    /// The target of the ref after the renaming.
    pub target: RefTarget,
    /// The message of the entry that is added to the reflog, if the ref has a reflog.
    pub message: BString,
}

impl Transaction<'_> {
    /// Renames a ref together with its reflog.
    pub fn rename(&mut self, rename: Rename) -> &mut Self {
        let expected = match rename.current {
            RefTarget::Object(id) => ExpectedValue::Object(id),
            RefTarget::Symbolic(name) => ExpectedValue::Symbolic(name.into_inner()),
        };
        self.delete(&rename.from, expected);
        self.push(Edit {
            name: rename.to,
            change: RefChangeKind::Set(rename.target),
            expected: ExpectedValue::Missing,
            message: Some(rename.message),
            follow: false,
            create_log: false,
            peeled: None,
            log_from: Some(rename.from),
        })
    }
}

/// Returns the ids in the entry that records the renaming: the null ids for a symref.
fn ids(repository: &dyn RefHost, step: &RefEdit) -> LogIds {
    let id = match &step.change {
        RefChangeKind::Set(RefTarget::Object(id)) => *id,
        _ => repository.refs().object_hash().null(),
    };
    LogIds { old: id, new: id }
}

/// Moves the reflog of the renamed ref of `step`, as a file, and appends an entry.
pub(super) fn move_log(
    repository: &dyn RefHost,
    step: &RefEdit,
    who: &mut Option<String>,
) -> Result<()> {
    let refs = repository.refs();
    let Some(from) = &step.log_from else {
        return Ok(());
    };
    let Some(before) = refs.log(from)? else {
        return Ok(());
    };
    let who = match who {
        Some(who) => who,
        None => who.insert(repository.log_signature()?),
    };
    let LogIds { old, new } = ids(repository, step);
    let mut lines = before.into_bytes();
    lines.extend_from_slice(format!("{old} {new} {who}\t").as_bytes());
    let message = step.message.as_ref().map(|text| text.as_bstr());
    lines.extend_from_slice(&log::clean_message(message.unwrap_or_default()));
    lines.push(b'\n');
    refs.append_log(step.name.borrow(), true, &lines)
}

/// Returns the reflog entries of the renamed ref of `step`: `before`, its former entries, and the
/// entry that records the renaming. Returns no entries if the ref had none.
pub(super) fn entries(
    repository: &dyn RefHost,
    step: &RefEdit,
    mut before: Vec<StoredEntry>,
    who: &mut Option<String>,
) -> Result<Vec<StoredEntry>> {
    if before.is_empty() {
        return Ok(before);
    }
    let who = match who {
        Some(who) => who,
        None => who.insert(repository.log_signature()?),
    };
    let message = step.message.as_ref().map(|text| text.as_bstr());
    let message = message.unwrap_or_default();
    before.push(StoredEntry::new(0, &ids(repository, step), who, message));
    Ok(before)
}

/// Returns the name of the ref whose reflog `edit` takes over.
pub(super) fn source(edit: &Edit) -> Option<RefName> {
    RefName::new(edit.log_from.clone()?).ok()
}
