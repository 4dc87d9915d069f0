//! The locks of a stack: the lock of the list, and the locks of tables under compaction.

use std::path::Path;
use std::time::Duration;

use pronto_io::error::IoContext;
use pronto_io::lock_file::{self, LockFile, Marking};

use super::ReftableStack;
use super::list::{self, TableName};
use crate::reftable::error::{Error, ErrorKind, Result};

/// The largest number of table locks whose files are kept open to show other processes that the
/// holder is alive.
const MOST_MARKED: usize = 64;

/// The lock of the list of tables. Dropping it releases the lock.
#[derive(Debug)]
pub(super) struct ListLock(LockFile);

impl ListLock {
    pub(super) fn acquire(stack: &ReftableStack) -> Result<ListLock> {
        let timeout = stack.options.lock_timeout;
        let mut lock = acquire(stack, &stack.list_path, Marking::Marked, timeout)?;
        lock.set_sync_method(stack.options.sync);
        Ok(ListLock(lock))
    }

    /// Replaces the list with `names`.
    pub(super) fn commit<'a>(
        mut self,
        stack: &ReftableStack,
        names: impl IntoIterator<Item = &'a TableName>,
    ) -> Result<()> {
        self.0.write(&list::format(names)).map_err(from_lock)?;
        if let Some(file) = self.0.file() {
            stack.set_mode(file, self.0.path())?;
        }
        self.0.commit_to(&stack.list_path).context(
            ErrorKind::Io,
            "cannot replace",
            &stack.list_path,
        )
    }
}

/// The lock of a table for its compaction. Dropping it releases the lock.
#[derive(Debug)]
pub(super) struct TableLock {
    _file: LockFile,
}

impl TableLock {
    /// Locks the table `name`, without waiting; `held` is the number of table locks already held.
    pub(super) fn acquire(
        stack: &ReftableStack,
        name: &TableName,
        held: usize,
    ) -> Result<TableLock> {
        let marking = if held < MOST_MARKED {
            Marking::Marked
        } else {
            Marking::Plain
        };
        let mut lock = acquire(stack, &stack.path_of(name), marking, Duration::ZERO)?;
        lock.close();
        Ok(TableLock { _file: lock })
    }
}

fn acquire(
    stack: &ReftableStack,
    target: &Path,
    marking: Marking,
    patience: Duration,
) -> Result<LockFile> {
    let mut lock = LockFile::acquire(target, marking, patience).map_err(from_lock)?;
    if stack.options.records_process {
        lock.record_process();
    }
    Ok(lock)
}

fn from_lock(error: lock_file::Error) -> Error {
    error.map_kind(|kind| match kind {
        lock_file::ErrorKind::Held => ErrorKind::Locked,
        _ => ErrorKind::Io,
    })
}
