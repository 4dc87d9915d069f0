//! Reflogs of the tables.

use std::path::Path;

use bstr::{BStr, BString, ByteSlice};
use pronto_hash::{Kind, ObjectId};
use pronto_refs::reftable::{LogEntry, Snapshot};

use super::super::{Log, RefNameRef, References, clean_message};
use super::{Tables, from_tables};
use crate::Result;
use crate::identity::Signature;

/// Half a block of the usual size.
const LONGEST_MESSAGE_BYTES: usize = 2048;

impl References {
    /// Whether the reference has a log in the tables.
    pub(in super::super) fn has_log_in_tables(
        &self,
        tables: &Tables,
        name: RefNameRef<'_>,
    ) -> Result<bool> {
        let (directory, rest) = self.base_of(name);
        let snapshot = tables.snapshot(&directory)?;
        let mut entries = snapshot.log_of(rest).map_err(from_tables)?;
        Ok(entries.next().map_err(from_tables)?.is_some())
    }

    /// The log of the reference in the form of a file, if it has one.
    pub(in super::super) fn log_in_tables(
        &self,
        tables: &Tables,
        name: RefNameRef<'_>,
    ) -> Result<Option<Log>> {
        let (directory, rest) = self.base_of(name);
        let snapshot = tables.snapshot(&directory)?;
        let entries = entries_of(&snapshot, rest)?;
        let lines = entries.iter().filter(|entry| !entry.is_marker());
        let content: Vec<Vec<u8>> = lines.map(StoredEntry::line).collect();
        Ok((!entries.is_empty()).then(|| Log::of(content.concat())))
    }
}

/// An entry of a reflog, taken out of its table.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct StoredEntry {
    /// The transaction that wrote it.
    pub(crate) update_index: u64,
    /// The value before.
    pub(crate) old: ObjectId,
    /// The value after.
    pub(crate) new: ObjectId,
    name: BString,
    email: BString,
    time: u64,
    time_zone: i16,
    message: BString,
}

impl StoredEntry {
    fn of(update_index: u64, entry: &LogEntry<'_>) -> StoredEntry {
        StoredEntry {
            update_index,
            old: entry.old.to_owned(),
            new: entry.new.to_owned(),
            name: entry.name.to_owned(),
            email: entry.email.to_owned(),
            time: entry.time,
            time_zone: entry.time_zone,
            message: entry.message.to_owned(),
        }
    }

    /// An entry that only says that there is a log.
    pub(crate) fn marker(update_index: u64, hash: Kind) -> StoredEntry {
        StoredEntry {
            update_index,
            old: hash.null(),
            new: hash.null(),
            name: BString::default(),
            email: BString::default(),
            time: 0,
            time_zone: 0,
            message: BString::default(),
        }
    }

    /// An entry that is new.
    pub(crate) fn new(update_index: u64, ids: [ObjectId; 2], who: &Signature, why: &BStr) -> Self {
        let [old, new] = ids;
        let mut message = clean_message(why);
        // Longer ones fit into no block, and Git cuts them so.
        message.truncate(LONGEST_MESSAGE_BYTES);
        message.push(b'\n');
        StoredEntry {
            update_index,
            old,
            new,
            name: who.name.clone(),
            email: who.email.clone(),
            time: u64::try_from(who.time.seconds).unwrap_or(0),
            time_zone: zone(who.time.offset),
            message,
        }
    }

    /// Whether the entry only says that there is a log.
    pub(crate) fn is_marker(&self) -> bool {
        self.old.is_null() && self.new.is_null()
    }

    pub(crate) fn as_entry(&self) -> LogEntry<'_> {
        LogEntry {
            old: &self.old,
            new: &self.new,
            name: self.name.as_bstr(),
            email: self.email.as_bstr(),
            time: self.time,
            time_zone: self.time_zone,
            message: self.message.as_bstr(),
        }
    }

    /// The line that a file would have.
    pub(crate) fn line(&self) -> Vec<u8> {
        let (old, new) = (&self.old, &self.new);
        let (time, zone) = (self.time, self.time_zone);
        let mut line = format!("{old} {new} ").into_bytes();
        line.extend_from_slice(&self.name);
        line.extend_from_slice(b" <");
        line.extend_from_slice(&self.email);
        line.extend_from_slice(format!("> {time} {zone:+05}").as_bytes());
        let message = self.message.trim_end_with(|end| end == '\n');
        if !message.is_empty() {
            line.push(b'\t');
            line.extend_from_slice(message);
        }
        line.push(b'\n');
        line
    }
}

/// An offset in seconds as Git writes it, read as a decimal number: `-0830` is -830.
fn zone(offset_seconds: i32) -> i16 {
    let minutes = offset_seconds / 60;
    i16::try_from(minutes / 60 * 100 + minutes % 60).unwrap_or(0)
}

/// The log of the reference that the snapshot calls `name`, the oldest entry first.
pub(crate) fn entries_of(snapshot: &Snapshot, name: &BStr) -> Result<Vec<StoredEntry>> {
    let mut records = snapshot.log_of(name).map_err(from_tables)?;
    let mut entries = Vec::new();
    while let Some(record) = records.next().map_err(from_tables)? {
        if let Some(entry) = &record.entry {
            entries.push(StoredEntry::of(record.update_index, entry));
        }
    }
    entries.reverse();
    Ok(entries)
}

/// The ids in all logs of the stack below `directory`, and the names of the references that have one,
/// each as often as there are entries.
pub(crate) fn log_ids(
    tables: &Tables,
    directory: &Path,
    mut visit: impl FnMut(&BStr, ObjectId) -> Result<()>,
) -> Result<()> {
    let snapshot = tables.snapshot(directory)?;
    let mut entries = snapshot.logs().map_err(from_tables)?;
    while let Some(record) = entries.next().map_err(from_tables)? {
        if let Some(entry) = record.entry {
            visit(record.name, entry.old.to_owned())?;
            visit(record.name, entry.new.to_owned())?;
        }
    }
    Ok(())
}

/// The names of the references with a log in the stack below `directory`, sorted.
pub(crate) fn logged_names(tables: &Tables, directory: &Path) -> Result<Vec<BString>> {
    let mut names: Vec<BString> = Vec::new();
    log_ids(tables, directory, |name, _| {
        if names.last().is_none_or(|last| last != name) {
            names.push(name.to_owned());
        }
        Ok(())
    })?;
    Ok(names)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn zones_are_written_as_decimal_numbers() {
        for (seconds, written) in [(0, 0), (3600, 100), (-30600, -830), (20700, 545)] {
            assert_eq!(zone(seconds), written);
        }
    }
}
