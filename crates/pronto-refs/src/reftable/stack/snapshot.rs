//! The content of a stack at one moment.

use std::ops::ControlFlow;
use std::sync::Arc;

use pronto_hash::oid;

use super::Stack;
use super::list::{List, TableName};
use super::merge::{Logs, Refs};
use crate::reftable::error::{Error, ErrorKind, Result};
use crate::reftable::record::{RefEntry, RefRecord};
use crate::reftable::{Limits, Table};

/// The references and reflogs of a stack at one moment. Cheap to copy, `Send + Sync`; keeps its
/// tables readable even if they are removed.
#[derive(Clone, Debug, Default)]
pub struct Snapshot {
    /// The oldest first.
    pub(super) tables: Arc<[Arc<Member>]>,
}

/// A table and its name.
#[derive(Debug)]
pub(super) struct Member {
    pub(super) name: TableName,
    pub(super) table: Table,
}

impl Snapshot {
    /// Opens the tables of `list`, but for those that `old` has.
    pub(super) fn open(stack: &Stack, list: &List, old: &Snapshot) -> Result<Snapshot> {
        let mut tables = Vec::with_capacity(list.names.len());
        for name in &list.names {
            let known = old.tables.iter().find(|member| member.name == *name);
            let member = match known {
                Some(member) => Arc::clone(member),
                None => Arc::new(Member::open(stack, name)?),
            };
            tables.push(member);
        }
        Ok(Snapshot {
            tables: tables.into(),
        })
    }

    /// The tables, the oldest first.
    pub fn tables(&self) -> impl DoubleEndedIterator<Item = &Table> + ExactSizeIterator {
        self.tables.iter().map(|member| &member.table)
    }

    /// The names of the tables, the oldest first.
    pub fn names(&self) -> impl DoubleEndedIterator<Item = &TableName> + ExactSizeIterator {
        self.tables.iter().map(|member| &member.name)
    }

    /// The update indexes of all tables; `None` if there are none.
    pub fn limits(&self) -> Option<Limits> {
        let limits = self.tables().map(Table::limits);
        limits.reduce(|all, one| Limits {
            min: all.min.min(one.min),
            max: all.max.max(one.max),
        })
    }

    /// Returns the ref `name`. Costs as [`Table::find`] for each table from the newest one to the
    /// one that has it.
    ///
    /// # Errors
    /// A table is malformed.
    pub fn find(&self, name: impl AsRef<[u8]>) -> Result<Option<RefEntry<'_>>> {
        let name = name.as_ref();
        for table in self.tables().rev() {
            if let Some(entry) = table.find(name)? {
                return Ok(Some(entry).filter(|entry| !entry.value.is_deletion()));
            }
        }
        Ok(None)
    }

    /// Returns all refs, by name. Reads the first block of each table.
    ///
    /// # Errors
    /// A table is malformed.
    pub fn refs(&self) -> Result<Refs<'_>> {
        self.refs_from("")
    }

    /// Returns the refs whose names are not less than `start`. Costs a search in each table.
    ///
    /// # Errors
    /// A table is malformed.
    pub fn refs_from(&self, start: impl AsRef<[u8]>) -> Result<Refs<'_>> {
        Refs::new(self.tables(), start.as_ref(), b"")
    }

    /// Returns the refs whose names begin with `prefix`. Costs a search in each table.
    ///
    /// # Errors
    /// A table is malformed.
    pub fn refs_with_prefix(&self, prefix: impl AsRef<[u8]>) -> Result<Refs<'_>> {
        let prefix = prefix.as_ref();
        Refs::new(self.tables(), prefix, prefix)
    }

    /// Calls `visit` for each ref whose object, or whose peeled object, is `id`, until it returns
    /// to stop. The order is that of names within a table, newer tables first.
    ///
    /// Costs as [`Table::find_object`] for each table, and for each reference found in one a
    /// search in those that are newer.
    ///
    /// # Errors
    /// A table is malformed.
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

    /// Whether a table newer than the one at `at` has a record of `name`.
    fn is_hidden(&self, name: &[u8], at: usize) -> Result<bool> {
        for table in self.tables().skip(at + 1) {
            if table.find(name)?.is_some() {
                return Ok(true);
            }
        }
        Ok(false)
    }

    /// Returns all entries of all reflogs: by name, newer ones first.
    ///
    /// # Errors
    /// A table is malformed.
    pub fn logs(&self) -> Result<Logs<'_>> {
        Logs::all(self.tables())
    }

    /// Returns the reflog of `name`, newer entries first. Inflates one or two blocks in each table
    /// that has logs, and further ones while it is read.
    ///
    /// # Errors
    /// A table is malformed.
    pub fn log_of(&self, name: impl AsRef<[u8]>) -> Result<Logs<'_>> {
        Logs::of(self.tables(), name.as_ref(), u64::MAX)
    }

    /// Like [`log_of`](Self::log_of), without entries whose update index is greater than `newest`.
    ///
    /// # Errors
    /// A table is malformed.
    pub fn log_until(&self, name: impl AsRef<[u8]>, newest: u64) -> Result<Logs<'_>> {
        Logs::of(self.tables(), name.as_ref(), newest)
    }

    /// The update index that the next transaction has.
    pub(super) fn next_update_index(&self) -> Result<u64> {
        match self.limits() {
            None => Ok(1),
            Some(limits) => limits.max.checked_add(1).ok_or_else(|| {
                Error::new(ErrorKind::Record, "no update index is left in the stack")
            }),
        }
    }
}

impl Member {
    fn open(stack: &Stack, name: &TableName) -> Result<Member> {
        let table = Table::open(stack.path_of(name))?;
        if table.kind() != stack.kind {
            let message = "table has another hash function than its repository";
            return Err(Error::new(ErrorKind::WrongHash, message).at_path(table.path()));
        }
        Ok(Member {
            name: name.clone(),
            table,
        })
    }
}
