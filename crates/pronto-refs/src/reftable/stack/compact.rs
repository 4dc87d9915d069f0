//! Merges tables of a stack into one.

use std::io::Write;
use std::ops::Range;

use super::Stack;
use super::geometry;
use super::list::TableName;
use super::locks::{ListLock, TableLock};
use super::merge::Merge;
use super::new_table::{NewTable, Writer};
use super::snapshot::Snapshot;
use crate::reftable::error::{Error, ErrorKind, Result};
use crate::reftable::record::LogRecord;
use crate::reftable::{Limits, LogCursor, RefCursor, Table, TableWriter};

/// Which entries of reflogs are dropped when a stack is compacted as a whole.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Expiry {
    /// Entries from before this time, in seconds since 1970.
    pub before: u64,
    /// Entries with a smaller update index.
    pub below: u64,
}

impl Expiry {
    fn expires(&self, record: &LogRecord<'_>) -> bool {
        // What hides entries of older tables must stay.
        record
            .entry
            .is_some_and(|entry| entry.time < self.before || record.update_index < self.below)
    }
}

/// Tables that are locked, and what is to become of them.
struct Plan {
    snapshot: Snapshot,
    tables: Range<usize>,
    /// The newest first.
    locks: Vec<TableLock>,
}

/// Compacts the stack if that is due and no other process does it.
pub(super) fn after_transaction(stack: &Stack) -> Result<()> {
    match stack.auto_compact() {
        Err(error) if is_benign(&error) => Ok(()),
        other => other.map(|_| ()),
    }
}

/// Others compact the stack, or have done so.
fn is_benign(error: &Error) -> bool {
    matches!(error.kind(), ErrorKind::Locked | ErrorKind::Outdated)
}

impl Stack {
    /// Whether [`auto_compact`](Self::auto_compact) would merge tables now. Costs as
    /// [`snapshot`](Self::snapshot).
    ///
    /// # Errors
    /// Those of [`snapshot`](Self::snapshot).
    pub fn needs_compaction(&self) -> Result<bool> {
        Ok(self.due(&self.snapshot()?).is_some())
    }

    /// Merges as many of the newest tables as it takes for each table to be larger than all newer
    /// ones together. Whether there was anything to merge. Others can read and write meanwhile.
    ///
    /// Averaged over transactions, each record is written again a logarithmic number of times.
    ///
    /// # Errors
    /// [`ErrorKind::Locked`]: another process writes, or compacts these tables.
    /// [`ErrorKind::Outdated`]: another process has changed them. Those of reading and writing.
    pub fn auto_compact(&self) -> Result<bool> {
        if !self.needs_compaction()? {
            return Ok(false);
        }
        let plan = self.plan(|snapshot| self.due(snapshot), true)?;
        self.compact(plan, None)
    }

    /// Merges all tables into one, and drops entries of reflogs if there is an `expiry`. Whether
    /// there was anything to do. Others can read and write meanwhile.
    ///
    /// # Errors
    /// As [`auto_compact`](Self::auto_compact).
    pub fn compact_all(&self, expiry: Option<&Expiry>) -> Result<bool> {
        let least = if expiry.is_some() { 1 } else { 2 };
        let all = |snapshot: &Snapshot| {
            let len = snapshot.names().len();
            (len >= least).then_some(0..len)
        };
        let plan = self.plan(all, false)?;
        self.compact(plan, expiry)
    }

    fn due(&self, snapshot: &Snapshot) -> Option<Range<usize>> {
        let weights: Vec<u64> = snapshot.tables().map(Table::weight).collect();
        geometry::segment(&weights, self.options.geometric_factor)
    }

    /// Locks the tables that `choose` names, the newest first. With `is_partial`, those that
    /// are left when a lock is held will do if they are two at least.
    fn plan(
        &self,
        choose: impl FnOnce(&Snapshot) -> Option<Range<usize>>,
        is_partial: bool,
    ) -> Result<Option<Plan>> {
        let _lock = ListLock::acquire(self)?;
        let snapshot = self.snapshot()?;
        let Some(mut tables) = choose(&snapshot) else {
            return Ok(None);
        };
        let mut locks = Vec::with_capacity(tables.len());
        for at in tables.clone().rev() {
            match TableLock::acquire(self, &snapshot.tables[at].name, locks.len()) {
                Ok(lock) => locks.push(lock),
                Err(error)
                    if *error.kind() == ErrorKind::Locked && is_partial && locks.len() >= 2 =>
                {
                    tables.start = at + 1;
                    break;
                }
                Err(error) => return Err(error),
            }
        }
        Ok(Some(Plan {
            snapshot,
            tables,
            locks,
        }))
    }

    fn compact(&self, plan: Option<Plan>, expiry: Option<&Expiry>) -> Result<bool> {
        let Some(plan) = plan else {
            return Ok(false);
        };
        let limits = limits_of(&plan);
        let is_oldest = plan.tables.start == 0;
        let fill = |writer: &mut Writer| merge(|| plan.tables(), is_oldest, expiry, writer);
        let table = NewTable::write(self, limits, fill)?;

        let lock = ListLock::acquire(self)?;
        let mut names = self.names()?;
        let old = plan.names();
        let at = position_of(&names, &old).ok_or_else(|| {
            let message = "another process has changed the stack of tables";
            Error::new(ErrorKind::Outdated, message).at_path(&self.list_path)
        })?;
        let table = match table {
            Some(table) => Some(table.put_in_place(self)?),
            None => None,
        };
        let new = table.as_ref().map(|table| table.name.clone());
        names.splice(at..at + old.len(), new);
        lock.commit(self, &names)?;
        if let Some(table) = table {
            table.keep();
        }
        for name in old {
            // No process opens it any more, so a failure to remove it is harmless.
            let _ = std::fs::remove_file(self.path_of(&name));
        }
        drop(plan.locks);
        Ok(true)
    }
}

impl Plan {
    fn tables(&self) -> impl Iterator<Item = &Table> {
        let members = &self.snapshot.tables[self.tables.clone()];
        members.iter().map(|member| &member.table)
    }

    fn names(&self) -> Vec<TableName> {
        let members = &self.snapshot.tables[self.tables.clone()];
        members.iter().map(|member| member.name.clone()).collect()
    }
}

fn limits_of(plan: &Plan) -> Limits {
    let limits = plan.tables().map(Table::limits);
    let all = limits.reduce(|all, one| Limits {
        min: all.min.min(one.min),
        max: all.max.max(one.max),
    });
    all.unwrap_or(Limits { min: 0, max: 0 })
}

/// Returns the position of `part` in `names`, without a gap.
fn position_of(names: &[TableName], part: &[TableName]) -> Option<usize> {
    names.windows(part.len()).position(|window| window == part)
}

/// Copies what the tables hold as one. Deletions are needed only while there are older tables, that is,
/// unless `is_oldest`.
pub(super) fn merge<'t, T: Iterator<Item = &'t Table>, W: Write>(
    tables: impl Fn() -> T,
    is_oldest: bool,
    expiry: Option<&Expiry>,
    writer: &mut TableWriter<W>,
) -> Result<()> {
    let mut refs: Merge<RefCursor<'_>> = Merge::new(tables().map(Table::refs).collect())?;
    while refs.advance()? {
        let record = refs.current().map(RefCursor::record);
        if let Some(record) = record.filter(|record| !(is_oldest && record.value.is_deletion())) {
            writer.copy_ref(&record)?;
        }
    }
    let mut logs: Merge<LogCursor<'_>> = Merge::new(tables().map(Table::logs).collect())?;
    while logs.advance()? {
        let record = logs.current().map(LogCursor::record);
        let is_kept = |record: &LogRecord<'_>| {
            let is_expired = expiry.is_some_and(|expiry| expiry.expires(record));
            let hides_nothing = is_oldest && record.entry.is_none();
            !is_expired && !hides_nothing
        };
        if let Some(record) = record.filter(is_kept) {
            writer.copy_log(&record)?;
        }
    }
    Ok(())
}
