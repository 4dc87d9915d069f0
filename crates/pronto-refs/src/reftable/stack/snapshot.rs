//! The content of a stack at one moment.

use std::ops::ControlFlow;
use std::sync::Arc;

use pronto_hash::oid;

use super::ReftableStack;
use super::list::{TableList, TableName};
use super::merge::{SnapshotLogs, SnapshotRefs};
use crate::reftable::error::{Error, ErrorKind, Result};
use crate::reftable::record::{RefEntry, RefRecord};
use crate::reftable::{RefTable, UpdateIndexRange};

/// The refs and reflogs of a stack at one moment. `Send + Sync` and cheap to copy. Keeps its tables
/// readable even if their files are removed.
#[derive(Clone, Debug, Default)]
pub struct StackSnapshot {
    /// The tables, oldest first.
    pub(super) tables: Arc<[Arc<SnapshotTable>]>,
}

/// A table and its name.
#[derive(Debug)]
pub(super) struct SnapshotTable {
    pub(super) name: TableName,
    pub(super) table: RefTable,
}

impl StackSnapshot {
    /// Opens the tables of `list`, except for those that `old` contains.
    pub(super) fn open(
        stack: &ReftableStack,
        list: &TableList,
        old: &StackSnapshot,
    ) -> Result<StackSnapshot> {
        let mut tables = Vec::with_capacity(list.names.len());
        for name in &list.names {
            let known = old.tables.iter().find(|member| member.name == *name);
            let member = match known {
                Some(member) => Arc::clone(member),
                None => Arc::new(SnapshotTable::open(stack, name)?),
            };
            tables.push(member);
        }
        Ok(StackSnapshot {
            tables: tables.into(),
        })
    }

    /// Returns the tables, oldest first.
    pub fn tables(&self) -> impl DoubleEndedIterator<Item = &RefTable> + ExactSizeIterator {
        self.tables.iter().map(|member| &member.table)
    }

    /// Returns the names of the tables, oldest first.
    pub fn names(&self) -> impl DoubleEndedIterator<Item = &TableName> + ExactSizeIterator {
        self.tables.iter().map(|member| &member.name)
    }

    /// Returns the range of update indexes of all tables; `None` if there are no tables.
    pub fn limits(&self) -> Option<UpdateIndexRange> {
        let limits = self.tables().map(RefTable::limits);
        limits.reduce(|all, one| UpdateIndexRange {
            min: all.min.min(one.min),
            max: all.max.max(one.max),
        })
    }

    /// Returns the ref `name`. Costs the same as [`RefTable::find`] for each table, from the newest
    /// one to the table that contains the ref.
    ///
    /// # Errors
    /// Fails with `ErrorKind::Corrupt` if a table is malformed.
    pub fn find(&self, name: impl AsRef<[u8]>) -> Result<Option<RefEntry<'_>>> {
        let name = name.as_ref();
        for table in self.tables().rev() {
            if let Some(entry) = table.find(name)? {
                return Ok(Some(entry).filter(|entry| !entry.value.is_deletion()));
            }
        }
        Ok(None)
    }

    /// Returns all refs in order of names. Reads the first block of each table.
    ///
    /// # Errors
    /// Fails with `ErrorKind::Corrupt` if a table is malformed.
    pub fn refs(&self) -> Result<SnapshotRefs<'_>> {
        self.refs_from("")
    }

    /// Returns the refs whose names are not less than `start`. Costs a search in each table.
    ///
    /// # Errors
    /// Fails with `ErrorKind::Corrupt` if a table is malformed.
    pub fn refs_from(&self, start: impl AsRef<[u8]>) -> Result<SnapshotRefs<'_>> {
        SnapshotRefs::new(self.tables(), start.as_ref(), b"")
    }

    /// Returns the refs whose names begin with `prefix`. Costs a search in each table.
    ///
    /// # Errors
    /// Fails with `ErrorKind::Corrupt` if a table is malformed.
    pub fn refs_with_prefix(&self, prefix: impl AsRef<[u8]>) -> Result<SnapshotRefs<'_>> {
        let prefix = prefix.as_ref();
        SnapshotRefs::new(self.tables(), prefix, prefix)
    }

    /// Calls `visit` for each ref whose object or peeled object is `id`, until `visit` breaks.
    /// Visits newer tables first, and the refs of a table in order of names.
    ///
    /// Costs the same as [`RefTable::find_object`] for each table, and for each ref found in a table,
    /// a search in all newer tables.
    ///
    /// # Errors
    /// Fails with `ErrorKind::Corrupt` if a table is malformed.
    pub fn find_object(
        &self,
        id: &oid,
        mut visit: impl FnMut(RefRecord<'_>) -> ControlFlow<()>,
    ) -> Result<()> {
        for (at, table) in self.tables().enumerate().rev() {
            let mut cursor = table.refs_to(id)?;
            while cursor.advance()? {
                let record = cursor.record();
                if !self.is_hidden(record.name, at)? && visit(record).is_break() {
                    return Ok(());
                }
            }
        }
        Ok(())
    }

    /// Returns whether a table newer than the table at `at` has a record of `name`.
    fn is_hidden(&self, name: &[u8], at: usize) -> Result<bool> {
        for table in self.tables().skip(at + 1) {
            if table.find(name)?.is_some() {
                return Ok(true);
            }
        }
        Ok(false)
    }

    /// Returns all reflog entries in order of ref names, newest first.
    ///
    /// # Errors
    /// Fails with `ErrorKind::Corrupt` if a table is malformed.
    pub fn logs(&self) -> Result<SnapshotLogs<'_>> {
        SnapshotLogs::all(self.tables())
    }

    /// Returns the reflog of `name`, newest entry first. Inflates one or two blocks in each table
    /// that has logs, and further blocks while the caller reads entries.
    ///
    /// # Errors
    /// Fails with `ErrorKind::Corrupt` if a table is malformed.
    pub fn log_of(&self, name: impl AsRef<[u8]>) -> Result<SnapshotLogs<'_>> {
        SnapshotLogs::of(self.tables(), name.as_ref(), u64::MAX)
    }

    /// Does the same as [`log_of`](Self::log_of), without entries whose update index is greater
    /// than `newest`.
    ///
    /// # Errors
    /// Fails with `ErrorKind::Corrupt` if a table is malformed.
    pub fn log_until(&self, name: impl AsRef<[u8]>, newest: u64) -> Result<SnapshotLogs<'_>> {
        SnapshotLogs::of(self.tables(), name.as_ref(), newest)
    }

    /// Returns the update index of the next transaction.
    pub(super) fn next_update_index(&self) -> Result<u64> {
        match self.limits() {
            None => Ok(1),
            Some(limits) => limits.max.checked_add(1).ok_or_else(|| {
                Error::new(ErrorKind::Record, "the reftables have no update index left")
            }),
        }
    }
}

impl SnapshotTable {
    fn open(stack: &ReftableStack, name: &TableName) -> Result<SnapshotTable> {
        let table = RefTable::open(stack.path_of(name))?;
        if table.kind() != stack.kind {
            let message = "the reftable has another hash function than its repository";
            return Err(Error::new(ErrorKind::WrongHash, message).at_path(table.path()));
        }
        Ok(SnapshotTable {
            name: name.clone(),
            table,
        })
    }
}
