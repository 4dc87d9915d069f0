//! Merges tables of a stack into one.

use std::io::Write;
use std::ops::Range;

use super::ReftableStack;
use super::geometry;
use super::list::TableName;
use super::locks::{ListLock, TableLock};
use super::merge::RecordMerge;
use super::new_table::{NewTable, Writer};
use super::snapshot::StackSnapshot;
use crate::reftable::error::{Error, ErrorKind, Result};
use crate::reftable::record::LogRecord;
use crate::reftable::{LogCursor, RefCursor, RefTable, TableWriter, UpdateIndexRange};

/// The reflog entries that are dropped when all tables of a stack are merged.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct LogExpiryLimits {
    /// Drop entries from before this time, in seconds since 1970.
    pub before: u64,
    /// Drop entries whose update index is smaller than this one.
    pub below: u64,
}

impl LogExpiryLimits {
    fn expires(&self, record: &LogRecord<'_>) -> bool {
        // Deletion records, which hide entries of older tables, must stay.
        record
            .entry
            .is_some_and(|entry| entry.time < self.before || record.update_index < self.below)
    }
}

/// A set of locked tables that will be merged.
struct CompactionPlan {
    snapshot: StackSnapshot,
    tables: Range<usize>,
    /// The table locks, newest table first.
    locks: Vec<TableLock>,
}

/// Compacts the stack if necessary, unless another process compacts it.
pub(super) fn after_transaction(stack: &ReftableStack) -> Result<()> {
    match stack.auto_compact() {
        Err(error) if is_benign(&error) => Ok(()),
        other => other.map(|_| ()),
    }
}

/// Returns whether the error means that another process compacts the stack or has compacted it.
fn is_benign(error: &Error) -> bool {
    matches!(error.kind(), ErrorKind::Locked | ErrorKind::Outdated)
}

impl ReftableStack {
    /// Returns whether [`auto_compact`](Self::auto_compact) would merge tables now. Costs the same
    /// as [`snapshot`](Self::snapshot).
    ///
    /// # Errors
    /// Fails as [`snapshot`](Self::snapshot) does.
    pub fn needs_compaction(&self) -> Result<bool> {
        Ok(self.due(&self.snapshot()?).is_some())
    }

    /// Merges newest tables until each table is larger than all newer ones together. Returns
    /// whether tables were merged. Other processes can read and write meanwhile.
    ///
    /// Averaged over transactions, each record is rewritten a logarithmic number of times.
    ///
    /// # Errors
    /// Fails with [`ErrorKind::Locked`] if another process writes or compacts these tables, with
    /// [`ErrorKind::Outdated`] if another process has changed them, and if a table cannot be read
    /// or written.
    pub fn auto_compact(&self) -> Result<bool> {
        if !self.needs_compaction()? {
            return Ok(false);
        }
        let plan = self.plan(|snapshot| self.due(snapshot), true)?;
        self.compact(plan, None)
    }

    /// Merges all tables into one, and drops reflog entries according to `expiry`. Returns whether
    /// the stack was changed. Other processes can read and write meanwhile.
    ///
    /// # Errors
    /// Fails as [`auto_compact`](Self::auto_compact) does.
    pub fn compact_all(&self, expiry: Option<&LogExpiryLimits>) -> Result<bool> {
        let least = if expiry.is_some() { 1 } else { 2 };
        let all = |snapshot: &StackSnapshot| {
            let len = snapshot.names().len();
            (len >= least).then_some(0..len)
        };
        let plan = self.plan(all, false)?;
        self.compact(plan, expiry)
    }

    fn due(&self, snapshot: &StackSnapshot) -> Option<Range<usize>> {
        let weights: Vec<u64> = snapshot.tables().map(RefTable::weight).collect();
        geometry::segment(&weights, self.options.geometric_factor)
    }

    /// Locks the tables that `choose` selects, newest first. With `is_partial`, if another process
    /// holds a lock, the tables locked so far are sufficient if there are at least two.
    fn plan(
        &self,
        choose: impl FnOnce(&StackSnapshot) -> Option<Range<usize>>,
        is_partial: bool,
    ) -> Result<Option<CompactionPlan>> {
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
                    if error.kind() == ErrorKind::Locked && is_partial && locks.len() >= 2 =>
                {
                    tables.start = at + 1;
                    break;
                }
                Err(error) => return Err(error),
            }
        }
        Ok(Some(CompactionPlan {
            snapshot,
            tables,
            locks,
        }))
    }

    fn compact(
        &self,
        plan: Option<CompactionPlan>,
        expiry: Option<&LogExpiryLimits>,
    ) -> Result<bool> {
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
            let message = "another process changed the list of reftables; try again";
            Error::new(ErrorKind::Outdated, message).at_path(&self.list_path)
        })?;
        let table = match table {
            Some(table) => Some(table.rename_into_place(self)?),
            None => None,
        };
        let new = table.as_ref().map(|table| table.name.clone());
        names.splice(at..at + old.len(), new);
        lock.commit(self, &names)?;
        if let Some(table) = table {
            table.keep();
        }
        for name in old {
            // No process opens this table any more, so a failure to remove the file is harmless.
            let _ = std::fs::remove_file(self.path_of(&name));
        }
        drop(plan.locks);
        Ok(true)
    }
}

impl CompactionPlan {
    fn tables(&self) -> impl Iterator<Item = &RefTable> {
        let members = &self.snapshot.tables[self.tables.clone()];
        members.iter().map(|member| &member.table)
    }

    fn names(&self) -> Vec<TableName> {
        let members = &self.snapshot.tables[self.tables.clone()];
        members.iter().map(|member| member.name.clone()).collect()
    }
}

fn limits_of(plan: &CompactionPlan) -> UpdateIndexRange {
    let limits = plan.tables().map(RefTable::limits);
    let all = limits.reduce(|all, one| UpdateIndexRange {
        min: all.min.min(one.min),
        max: all.max.max(one.max),
    });
    all.unwrap_or(UpdateIndexRange { min: 0, max: 0 })
}

/// Returns the range of `part` in `names`, if `part` is contiguous there.
fn position_of(names: &[TableName], part: &[TableName]) -> Option<usize> {
    names.windows(part.len()).position(|window| window == part)
}

/// Writes the records of the tables into one table. Deletion records are dropped if `is_oldest`,
/// because there are no older tables.
pub(super) fn merge<'t, T: Iterator<Item = &'t RefTable>, W: Write>(
    tables: impl Fn() -> T,
    is_oldest: bool,
    expiry: Option<&LogExpiryLimits>,
    writer: &mut TableWriter<W>,
) -> Result<()> {
    let mut refs: RecordMerge<RefCursor<'_>> =
        RecordMerge::new(tables().map(RefTable::refs).collect())?;
    while refs.advance()? {
        let record = refs.current().map(RefCursor::record);
        if let Some(record) = record.filter(|record| !(is_oldest && record.value.is_deletion())) {
            writer.copy_ref(&record)?;
        }
    }
    let mut logs: RecordMerge<LogCursor<'_>> =
        RecordMerge::new(tables().map(RefTable::logs).collect())?;
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
