//! Removes unlisted tables, which terminated processes have left.

use pronto_io::error::IoContext;

use super::ReftableStack;
use super::list::{EXTENSION, TableName};
use super::locks::ListLock;
use super::snapshot::StackSnapshot;
use crate::reftable::RefTable;
use crate::reftable::error::{ErrorKind, Result};

impl ReftableStack {
    /// Removes the tables that are not in the list and whose update indexes are not newer than the
    /// list. Returns their number. Opens each unlisted table, with the lock held.
    ///
    /// # Errors
    /// Fails as [`begin`](Self::begin) does, and with `ErrorKind::Io` if the directory cannot be
    /// read. Tables that cannot be read or removed stay.
    pub fn clean(&self) -> Result<usize> {
        let _lock = ListLock::acquire(self)?;
        let snapshot = self.snapshot()?;
        let entries = std::fs::read_dir(&self.directory);
        let entries = entries.context(ErrorKind::Io, "cannot read", &self.directory)?;
        let mut removed = 0;
        for entry in entries {
            let entry = entry.context(ErrorKind::Io, "cannot read", &self.directory)?;
            let name = TableName::new(entry.file_name().as_encoded_bytes());
            let name = name.filter(|name| name.as_str().ends_with(EXTENSION));
            if name.is_some_and(|name| self.remove_if_stale(&name, &snapshot)) {
                removed += 1;
            }
        }
        Ok(removed)
    }

    fn remove_if_stale(&self, name: &TableName, snapshot: &StackSnapshot) -> bool {
        let max = snapshot.limits().map_or(0, |limits| limits.max);
        let path = self.path_of(name);
        let is_named = snapshot.names().any(|named| named == name);
        let is_stale =
            !is_named && RefTable::open(&path).is_ok_and(|table| table.limits().max <= max);
        is_stale && std::fs::remove_file(path).is_ok()
    }
}
