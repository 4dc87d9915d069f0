//! Transactions, which add tables to a stack.

use super::list::TableName;
use super::locks::ListLock;
use super::new_table::{NamedTable, NewTable, Writer};
use super::snapshot::Snapshot;
use super::{Stack, compact};
use crate::reftable::error::{Error, ErrorKind, Result};
use crate::reftable::record::{LogRecord, RefRecord};
use crate::reftable::{Limits, TableWriter};

/// A change of a stack. It holds the lock of the list from the beginning, so what its snapshot
/// says stays true: compare old values with that. Dropping it changes nothing.
#[derive(Debug)]
pub struct Transaction<'s> {
    stack: &'s Stack,
    snapshot: Snapshot,
    /// The tables that are removed, before the lock is released, unless the transaction is
    /// committed.
    added: Vec<NamedTable>,
    next_update_index: u64,
    lock: ListLock,
}

/// Records to be added in one table, in any order.
#[derive(Clone, Debug)]
pub struct Additions<'a> {
    /// The update indexes of the table.
    pub limits: Limits,
    /// References, each once.
    pub refs: Vec<RefRecord<'a>>,
    /// Entries of reflogs, each pair of name and update index once.
    pub logs: Vec<LogRecord<'a>>,
}

impl Additions<'_> {
    /// No records yet, for a table of which all have one update index.
    pub fn at(update_index: u64) -> Self {
        Additions {
            limits: Limits {
                min: update_index,
                max: update_index,
            },
            refs: Vec::new(),
            logs: Vec::new(),
        }
    }
}

impl Stack {
    /// Takes the lock of the stack, then reads its content. Three system calls, and those of
    /// [`snapshot`](Self::snapshot). The directory must exist.
    ///
    /// # Errors
    /// [`ErrorKind::Locked`] when another process holds the lock for longer than
    /// [`lock_timeout`](super::StackOptions::lock_timeout); those of
    /// [`snapshot`](Self::snapshot).
    pub fn begin(&self) -> Result<Transaction<'_>> {
        let lock = ListLock::acquire(self)?;
        let snapshot = self.snapshot()?;
        Ok(Transaction {
            stack: self,
            next_update_index: snapshot.next_update_index()?,
            snapshot,
            added: Vec::new(),
            lock,
        })
    }
}

impl Transaction<'_> {
    /// Returns the content of the stack, without the additions of this transaction.
    pub fn snapshot(&self) -> &Snapshot {
        &self.snapshot
    }

    /// The least update index that the next table may have.
    pub fn next_update_index(&self) -> u64 {
        self.next_update_index
    }

    /// Writes a table with `additions`, which it sorts. Costs as many bytes as they have, two
    /// system calls for each 64 KiB, and four more. Nothing at all if there are none.
    ///
    /// # Errors
    /// Those of [`TableWriter::add_ref`] and [`TableWriter::add_log`]; a record is there twice;
    /// [`ErrorKind::Io`].
    pub fn add(&mut self, additions: &mut Additions<'_>) -> Result<()> {
        let Additions { limits, refs, logs } = additions;
        refs.sort_unstable_by_key(|record| record.name);
        logs.sort_unstable_by(|a, b| {
            let names = a.name.cmp(b.name);
            names.then_with(|| b.update_index.cmp(&a.update_index))
        });
        self.add_table(*limits, |writer| {
            refs.iter().try_for_each(|record| writer.add_ref(record))?;
            logs.iter().try_for_each(|record| writer.add_log(record))
        })
    }

    /// Writes a table with what `fill` adds to it, in order. Nothing at all if that is nothing.
    ///
    /// # Errors
    /// Those of `fill`; [`ErrorKind::Record`] if `limits` begin before
    /// [`next_update_index`](Self::next_update_index); [`ErrorKind::Io`].
    pub fn add_table(
        &mut self,
        limits: Limits,
        fill: impl FnOnce(&mut TableWriter<std::io::BufWriter<std::fs::File>>) -> Result<()>,
    ) -> Result<()> {
        if limits.min < self.next_update_index || limits.max < limits.min {
            let message = "update index of a new table is out of range";
            return Err(Error::new(ErrorKind::Record, message));
        }
        let Some(next) = limits.max.checked_add(1) else {
            let message = "no update index is left in the stack";
            return Err(Error::new(ErrorKind::Record, message));
        };
        let fill = |writer: &mut Writer| fill(writer);
        if let Some(table) = NewTable::write(self.stack, limits, fill)? {
            self.added.push(table.put_in_place(self.stack)?);
            self.next_update_index = next;
        }
        Ok(())
    }

    /// Makes the tables part of the stack, all at once, and compacts it if that is due and no other
    /// process does it. Costs six system calls without compaction, and those of [`Stack::snapshot`]
    /// after a change.
    ///
    /// # Errors
    /// [`ErrorKind::Io`]: nothing was changed. After errors of [`Stack::snapshot`] and of a
    /// compaction the transaction is complete nevertheless.
    pub fn commit(self) -> Result<()> {
        let Transaction {
            stack,
            snapshot,
            added,
            lock,
            ..
        } = self;
        if added.is_empty() {
            return Ok(());
        }
        let new = added.iter().map(|table| &table.name);
        let names: Vec<&TableName> = snapshot.names().chain(new).collect();
        lock.commit(stack, names)?;
        added.into_iter().for_each(NamedTable::keep);
        if stack.options.auto_compact {
            return compact::after_transaction(stack);
        }
        Ok(())
    }
}
