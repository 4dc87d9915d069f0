//! Transactions, which add tables to a stack.

use super::list::TableName;
use super::locks::ListLock;
use super::new_table::{NamedTable, NewTable, Writer};
use super::snapshot::StackSnapshot;
use super::{ReftableStack, compact};
use crate::reftable::error::{Error, ErrorKind, Result};
use crate::reftable::record::{LogRecord, RefRecord};
use crate::reftable::{TableWriter, UpdateIndexRange};

/// A change of a stack. It holds the lock of the list from the beginning, so its snapshot stays
/// current: compare old values with this snapshot. Dropping the transaction changes nothing.
#[derive(Debug)]
pub struct StackTransaction<'s> {
    stack: &'s ReftableStack,
    snapshot: StackSnapshot,
    /// The new tables. Unless the transaction is committed, they are removed before the lock is
    /// released.
    added: Vec<NamedTable>,
    next_update_index: u64,
    lock: ListLock,
}

/// Records of one new table, in any order.
#[derive(Clone, Debug)]
pub struct Additions<'a> {
    /// The range of update indexes of the table.
    pub limits: UpdateIndexRange,
    /// The ref records, at most one for each name.
    pub refs: Vec<RefRecord<'a>>,
    /// The reflog entries, at most one for each pair of name and update index.
    pub logs: Vec<LogRecord<'a>>,
}

impl Additions<'_> {
    /// Returns an empty set of records for a table with a single update index.
    pub fn at(update_index: u64) -> Self {
        Additions {
            limits: UpdateIndexRange {
                min: update_index,
                max: update_index,
            },
            refs: Vec::new(),
            logs: Vec::new(),
        }
    }
}

impl ReftableStack {
    /// Takes the lock of the stack, then reads the content of the stack. Costs three system calls
    /// and those of [`snapshot`](Self::snapshot). The directory must exist.
    ///
    /// # Errors
    /// Fails with [`ErrorKind::Locked`] if another process holds the lock for longer than
    /// [`lock_timeout`](super::StackOptions::lock_timeout), and as [`snapshot`](Self::snapshot)
    /// does.
    pub fn begin(&self) -> Result<StackTransaction<'_>> {
        let lock = ListLock::acquire(self)?;
        let snapshot = self.snapshot()?;
        Ok(StackTransaction {
            stack: self,
            next_update_index: snapshot.next_update_index()?,
            snapshot,
            added: Vec::new(),
            lock,
        })
    }
}

impl StackTransaction<'_> {
    /// Returns the content of the stack, without the additions of this transaction.
    pub fn snapshot(&self) -> &StackSnapshot {
        &self.snapshot
    }

    /// Returns the smallest update index that the next table may have.
    pub fn next_update_index(&self) -> u64 {
        self.next_update_index
    }

    /// Sorts `additions` and writes a table with them. Writes nothing if there are no records.
    /// Costs as many bytes as the records have, two system calls for each 64 KiB, and four more.
    ///
    /// # Errors
    /// Fails as [`TableWriter::add_ref`] and [`TableWriter::add_log`] do, if a record is contained
    /// twice, and with [`ErrorKind::Io`] if writing fails.
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

    /// Writes a table with the records that `fill` adds in order. Writes nothing if `fill` adds no
    /// records.
    ///
    /// # Errors
    /// Fails with the error of `fill`, with [`ErrorKind::Record`] if `limits` begin before
    /// [`next_update_index`](Self::next_update_index), and with [`ErrorKind::Io`] if writing fails.
    pub fn add_table(
        &mut self,
        limits: UpdateIndexRange,
        fill: impl FnOnce(&mut TableWriter<std::io::BufWriter<std::fs::File>>) -> Result<()>,
    ) -> Result<()> {
        if limits.min < self.next_update_index || limits.max < limits.min {
            let message = "the update index of a new reftable is out of range";
            return Err(Error::new(ErrorKind::Record, message));
        }
        let Some(next) = limits.max.checked_add(1) else {
            let message = "the reftables have no update index left";
            return Err(Error::new(ErrorKind::Record, message));
        };
        let fill = |writer: &mut Writer| fill(writer);
        if let Some(table) = NewTable::write(self.stack, limits, fill)? {
            self.added.push(table.rename_into_place(self.stack)?);
            self.next_update_index = next;
        }
        Ok(())
    }

    /// Adds all new tables to the stack atomically. Then compacts the stack if necessary, unless
    /// another process compacts it. Costs six system calls without compaction, and those of
    /// [`ReftableStack::snapshot`] after a change.
    ///
    /// # Errors
    /// Fails with [`ErrorKind::Io`] if the list cannot be replaced; the stack is unchanged then. If
    /// [`ReftableStack::snapshot`] or the compaction fails, the error is returned although the transaction
    /// is committed.
    pub fn commit(self) -> Result<()> {
        let StackTransaction {
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
