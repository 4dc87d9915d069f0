//! Transactions on reftables: locks the stacks, and writes the records.
//!
//! The shared stack is locked before the stack of the worktree, so that two processes cannot
//! deadlock.

use std::path::PathBuf;

use bstr::{BStr, ByteSlice};
use pronto_config::{Error, ErrorKind, Result};
use pronto_hash::ObjectId;

use super::super::loose::LooseRefContents;
use super::super::tables::{RefStacks, StoredEntry, entries_of, from_tables, is_file};
use super::super::{RefHost, RefNameRef, RefTarget, References};
use super::{Edit, RefChangeKind, RefEdit, rename};
use crate::reftable::{self, Additions, LogRecord, RefRecord, RefValue};

/// The stacks that a transaction has locked.
#[derive(Debug, Default)]
pub(super) struct Stacks<'r> {
    shared: Option<reftable::StackTransaction<'r>>,
    own: Option<reftable::StackTransaction<'r>>,
}

/// The stack that stores a ref: shared, or of this worktree.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum TableStack {
    Shared,
    Own,
}

impl<'r> Stacks<'r> {
    /// Locks the stacks that `edits` need, as far as the names show; `head` is the branch to which
    /// `HEAD` points, whose changes the reflog of `HEAD` records.
    pub(super) fn begin(
        refs: &'r References,
        tables: &'r RefStacks,
        edits: &[Edit],
        head: Option<&BStr>,
    ) -> Result<Self> {
        let mut stacks = Stacks::default();
        let (mut needs_shared, mut needs_own) = (false, false);
        for edit in edits {
            let Ok(name) = RefNameRef::existing(edit.name.as_bstr()) else {
                continue;
            };
            match side_of(refs, tables, name) {
                Some(TableStack::Own) => {
                    needs_own = true;
                    // The ref may be a symref to a shared ref.
                    needs_shared |= edit.follow;
                }
                Some(TableStack::Shared) => {
                    needs_shared = true;
                    needs_own |= tables.is_linked() && head == Some(edit.name.as_bstr());
                }
                None => {}
            }
        }
        if needs_shared {
            stacks.lock(tables, TableStack::Shared)?;
        }
        if needs_own {
            stacks.lock(tables, TableStack::Own)?;
        }
        Ok(stacks)
    }

    fn lock(
        &mut self,
        tables: &'r RefStacks,
        side: TableStack,
    ) -> Result<&reftable::StackTransaction<'r>> {
        let (slot, stack) = match side {
            TableStack::Shared => (&mut self.shared, tables.shared()?),
            TableStack::Own => (&mut self.own, tables.own()?),
        };
        match slot {
            Some(transaction) => Ok(transaction),
            None => {
                let begun = stack.begin().map_err(|error| match error.kind() {
                    reftable::ErrorKind::Locked => {
                        let reason = from_tables(error);
                        Error::new(ErrorKind::Locked, "cannot lock references").because(reason)
                    }
                    _ => from_tables(error),
                })?;
                Ok(slot.insert(begun))
            }
        }
    }

    /// Returns the value of the ref, whose stack is locked; the outer `None` means that the ref is
    /// a file.
    pub(super) fn current(
        &mut self,
        refs: &References,
        tables: &'r RefStacks,
        name: RefNameRef<'_>,
    ) -> Result<Option<Option<LooseRefContents>>> {
        let (directory, rest) = refs.base_of(name);
        if is_file(rest) {
            return Ok(None);
        }
        let Some(side) = side_of(refs, tables, name) else {
            return Err(of_another(&directory));
        };
        let transaction = self.lock(tables, side)?;
        let found = transaction.snapshot().find(rest).map_err(from_tables)?;
        Ok(Some(found.and_then(|entry| match entry.value {
            RefValue::Deletion => None,
            RefValue::Symbolic(target) => Some(LooseRefContents::Symbolic(target.to_owned())),
            RefValue::Direct(id) | RefValue::Peeled { object: id, .. } => {
                Some(LooseRefContents::Object(id.to_owned()))
            }
        })))
    }

    /// Writes the changes of the steps, and releases the locks.
    pub(super) fn commit(self, repository: &dyn RefHost, steps: &[RefEdit]) -> Result<()> {
        let mut who = None;
        for (side, transaction) in [
            (TableStack::Shared, self.shared),
            (TableStack::Own, self.own),
        ] {
            let Some(mut transaction) = transaction else {
                continue;
            };
            let changes = changes(repository, side, steps, &transaction, &mut who)?;
            write(&changes, &mut transaction)?;
            transaction.commit().map_err(from_tables)?;
        }
        Ok(())
    }
}

fn of_another(directory: &std::path::Path) -> Error {
    let place = directory.display();
    let message = format!(
        "changing refs of another worktree ('{place}') in reftables is not implemented natively"
    );
    Error::new(ErrorKind::Unsupported, message)
}

/// Returns the stack of the ref; `None` if the ref belongs to another worktree or is a file.
fn side_of(refs: &References, tables: &RefStacks, name: RefNameRef<'_>) -> Option<TableStack> {
    let (directory, rest): (PathBuf, &BStr) = refs.base_of(name);
    if is_file(rest) {
        None
    } else if directory == refs.common_dir {
        Some(TableStack::Shared)
    } else if tables.is_linked() && directory == refs.git_dir {
        Some(TableStack::Own)
    } else {
        None
    }
}

/// The records of a new table, with the data that the records borrow.
#[derive(Debug, Default)]
struct TableChanges<'s> {
    refs: Vec<RefTableChange<'s>>,
    logs: Vec<LogChange<'s>>,
    update_index: u64,
    /// The number of reflog entries that were moved by a renaming.
    moved: u64,
}

#[derive(Debug)]
struct RefTableChange<'s> {
    name: &'s BStr,
    value: NewValue<'s>,
}

#[derive(Debug)]
enum NewValue<'s> {
    Gone,
    Symbolic(&'s BStr),
    Object(ObjectId, Option<ObjectId>),
}

#[derive(Debug)]
enum LogChange<'s> {
    Added {
        name: &'s BStr,
        entry: StoredEntry,
    },
    /// A deletion of the entry with this update index.
    Gone {
        name: &'s BStr,
        update_index: u64,
    },
}

fn changes<'s>(
    repository: &dyn RefHost,
    side: TableStack,
    steps: &'s [RefEdit],
    transaction: &reftable::StackTransaction<'_>,
    who: &mut Option<String>,
) -> Result<TableChanges<'s>> {
    let refs = repository.refs();
    let mut changes = TableChanges {
        update_index: transaction.next_update_index(),
        ..TableChanges::default()
    };
    let Some(tables) = refs.tables() else {
        return Ok(changes);
    };
    for step in steps.iter().filter(|step| step.in_tables) {
        let name = step.name.borrow();
        if side_of(refs, tables, name) != Some(side) {
            continue;
        }
        let rest = rest_of(refs, step);
        let is_gone = step.change == RefChangeKind::Delete && !step.only_log;
        if is_gone {
            // As in Git, a deletion record is written only for a ref that exists.
            let found = transaction.snapshot().find(rest).map_err(from_tables)?;
            if found.is_some_and(|entry| !matches!(entry.value, RefValue::Deletion)) {
                changes.refs.push(RefTableChange {
                    name: rest,
                    value: NewValue::Gone,
                });
            }
            let mut entries = (transaction.snapshot().log_of(rest)).map_err(from_tables)?;
            while let Some(record) = entries.next().map_err(from_tables)? {
                changes.logs.push(LogChange::Gone {
                    name: rest,
                    update_index: record.update_index,
                });
            }
        } else if step.must_move && !step.only_log {
            changes.refs.push(RefTableChange {
                name: rest,
                value: new_value(repository, step)?,
            });
        }
        if let Some(from) = &step.log_from {
            let from = refs.base_of(from.borrow()).1;
            let before = entries_of(transaction.snapshot(), from)?;
            for mut entry in rename::entries(repository, step, before, who)? {
                // Each entry has its own update index, so that the entries keep their order.
                entry.update_index = changes.update_index + changes.moved;
                changes.moved += 1;
                changes.logs.push(LogChange::Added { name: rest, entry });
            }
        } else if !is_gone && (step.only_log || step.must_move) {
            add_log(repository, step, rest, who, &mut changes)?;
        }
    }
    Ok(changes)
}

/// Returns the name of the ref in its stack.
fn rest_of<'s>(refs: &References, step: &'s RefEdit) -> &'s BStr {
    refs.base_of(step.name.borrow()).1
}

fn new_value<'s>(repository: &dyn RefHost, step: &'s RefEdit) -> Result<NewValue<'s>> {
    Ok(match &step.change {
        RefChangeKind::Set(RefTarget::Object(id)) => {
            NewValue::Object(*id, repository.peel_tag(*id)?)
        }
        RefChangeKind::Set(RefTarget::Symbolic(target)) => NewValue::Symbolic(target.as_bstr()),
        RefChangeKind::Delete | RefChangeKind::Verify => NewValue::Gone,
    })
}

fn add_log<'s>(
    repository: &dyn RefHost,
    step: &'s RefEdit,
    rest: &'s BStr,
    who: &mut Option<String>,
    changes: &mut TableChanges<'s>,
) -> Result<()> {
    let Some(ids) = super::files::logged_ids(repository, step) else {
        return Ok(());
    };
    let refs = repository.refs();
    let name = step.name.borrow();
    if !step.create_log && !refs.wants_log(&name) && !refs.has_log(name.as_bstr()) {
        return Ok(());
    }
    let who = match who {
        Some(who) => who,
        None => who.insert(repository.log_signature()?),
    };
    let message = (step.message.as_ref()).map_or(b"".as_bstr(), |text| text.as_bstr());
    changes.logs.push(LogChange::Added {
        name: rest,
        entry: StoredEntry::new(changes.update_index, &ids, who, message),
    });
    Ok(())
}

fn write(
    changes: &TableChanges<'_>,
    transaction: &mut reftable::StackTransaction<'_>,
) -> Result<()> {
    let update_index = changes.update_index;
    let mut additions = Additions::at(update_index);
    additions.limits.max += changes.moved.saturating_sub(1);
    additions.refs = (changes.refs.iter())
        .map(|change| RefRecord {
            name: change.name,
            update_index,
            value: match &change.value {
                NewValue::Gone => RefValue::Deletion,
                NewValue::Symbolic(target) => RefValue::Symbolic(target),
                NewValue::Object(id, None) => RefValue::Direct(id),
                NewValue::Object(object, Some(target)) => RefValue::Peeled { object, target },
            },
        })
        .collect();
    for change in &changes.logs {
        match change {
            LogChange::Gone { name, update_index } => additions.logs.push(LogRecord {
                name,
                update_index: *update_index,
                entry: None,
            }),
            LogChange::Added { name, entry } => additions.logs.push(LogRecord {
                name,
                update_index: entry.update_index,
                entry: Some(entry.as_entry()),
            }),
        }
    }
    transaction.add(&mut additions).map_err(from_tables)
}
