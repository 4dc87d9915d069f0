//! Reflogs in reftables.

use std::path::Path;

use bstr::{BStr, BString, ByteSlice};
use pronto_config::Result;
use pronto_hash::{Kind, ObjectId};

use super::super::{RefNameRef, References, ReflogContent, clean_message};
use super::{RefStacks, from_tables};
use crate::reftable::{LogEntry, StackSnapshot};

/// The length to which messages are truncated: half the default block size.
const LONGEST_MESSAGE_BYTES: usize = 2048;

impl References {
    /// Returns whether the ref has a reflog in the tables.
    pub(in super::super) fn has_log_in_tables(
        &self,
        tables: &RefStacks,
        name: RefNameRef<'_>,
    ) -> Result<bool> {
        let (directory, rest) = self.base_of(name);
        let snapshot = tables.snapshot(&directory)?;
        let mut entries = snapshot.log_of(rest).map_err(from_tables)?;
        Ok(entries.next().map_err(from_tables)?.is_some())
    }

    /// Returns the reflog of the ref in the format of a reflog file; `None` if the ref has no
    /// reflog.
    pub(in super::super) fn log_in_tables(
        &self,
        tables: &RefStacks,
        name: RefNameRef<'_>,
    ) -> Result<Option<ReflogContent>> {
        let (directory, rest) = self.base_of(name);
        let snapshot = tables.snapshot(&directory)?;
        let entries = entries_of(&snapshot, rest)?;
        let lines = entries.iter().filter(|entry| !entry.is_marker());
        let content: Vec<Vec<u8>> = lines.map(StoredEntry::line).collect();
        Ok((!entries.is_empty()).then(|| ReflogContent::of(content.concat())))
    }
}

/// The values of a ref before and after a change.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LoggedUpdate {
    /// The old value; the null id if the ref did not exist.
    pub old: ObjectId,
    /// The new value; the null id if the ref is deleted.
    pub new: ObjectId,
}

/// An entry of a reflog, copied from its table.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StoredEntry {
    /// The update index of the transaction that wrote the entry.
    pub update_index: u64,
    /// The value of the ref before the change.
    pub old: ObjectId,
    /// The value of the ref after the change.
    pub new: ObjectId,
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

    /// Returns the entry that marks an existing reflog without entries.
    pub fn marker(update_index: u64, hash: Kind) -> StoredEntry {
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

    /// Returns a new entry; `who` is the committer and the time in the format of a reflog line.
    pub fn new(update_index: u64, change: &LoggedUpdate, who: &str, why: &BStr) -> Self {
        let mut message = clean_message(why);
        // Git truncates messages to this length as well, because longer ones may not fit into a
        // block.
        message.truncate(LONGEST_MESSAGE_BYTES);
        message.push(b'\n');
        let (person, when) = who.rsplit_once("> ").unwrap_or((who, ""));
        let (name, email) = person.rsplit_once(" <").unwrap_or((person, ""));
        let (time, zone) = when.split_once(' ').unwrap_or((when, ""));
        StoredEntry {
            update_index,
            old: change.old,
            new: change.new,
            name: name.into(),
            email: email.into(),
            time: time.parse().unwrap_or(0),
            // The stored number is the decimal number: `-0830` is -830.
            time_zone: zone.parse().unwrap_or(0),
            message,
        }
    }

    /// Returns whether the entry only marks an existing reflog.
    pub fn is_marker(&self) -> bool {
        self.old.is_null() && self.new.is_null()
    }

    /// Returns the entry as a record to be written.
    pub fn as_entry(&self) -> LogEntry<'_> {
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

    /// Returns the entry as a line of a reflog file.
    pub fn line(&self) -> Vec<u8> {
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

/// Returns the reflog of ref `name`, oldest entry first.
///
/// # Errors
/// Fails with `ErrorKind::Reference` if a table is malformed.
pub fn entries_of(snapshot: &StackSnapshot, name: &BStr) -> Result<Vec<StoredEntry>> {
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

/// Calls `visit` with the ref name and each object id of every reflog entry in the stack in
/// `directory`.
///
/// # Errors
/// Fails if a table cannot be read or is malformed, or if `visit` fails.
pub fn log_ids(
    tables: &RefStacks,
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

/// Returns the sorted names of the refs that have a reflog in the stack in `directory`.
///
/// # Errors
/// Fails if a table cannot be read or is malformed.
pub fn logged_names(tables: &RefStacks, directory: &Path) -> Result<Vec<BString>> {
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
    fn entries_are_lines_of_files() {
        let hash = Kind::Sha1;
        let change = LoggedUpdate {
            old: hash.null(),
            new: ObjectId::empty_tree(hash),
        };
        for who in ["A U Thor <a@b> 1112911993 -0830", " <> 5 +0000"] {
            let entry = StoredEntry::new(1, &change, who, "why\n so".into());
            let (old, new) = (change.old, change.new);
            let line = format!("{old} {new} {who}\twhy so\n");
            assert_eq!(entry.line().as_bstr(), line);
        }
    }
}
