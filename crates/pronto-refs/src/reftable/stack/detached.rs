//! Stacks whose tables are stored outside the directory of a repository, such as in an object
//! store: the caller maintains the list, and writes the tables.

use std::io::Write;
use std::ops::Range;
use std::sync::Arc;

use super::compact::merge;
use super::geometry;
use super::list::TableName;
use super::snapshot::{SnapshotTable, StackSnapshot};
use crate::reftable::error::Result;
use crate::reftable::{RefTable, TableWriter, UpdateIndexRange};

impl TableName {
    /// Returns the name that Git would give a table of `limits`, with `random` as the unique part.
    pub fn with_random(limits: UpdateIndexRange, random: u32) -> TableName {
        TableName::assemble(limits, random)
    }
}

impl StackSnapshot {
    /// Returns a snapshot of the tables `names`, oldest first. Tables that `old` contains are
    /// shared; `open` opens the others.
    ///
    /// # Errors
    /// Fails with the error of `open`.
    pub fn of<E>(
        names: &[TableName],
        old: &StackSnapshot,
        mut open: impl FnMut(&TableName) -> Result<RefTable, E>,
    ) -> Result<StackSnapshot, E> {
        let mut tables = Vec::with_capacity(names.len());
        for name in names {
            let known = old.tables.iter().find(|member| member.name == *name);
            let member = match known {
                Some(member) => Arc::clone(member),
                None => Arc::new(SnapshotTable {
                    name: name.clone(),
                    table: open(name)?,
                }),
            };
            tables.push(member);
        }
        Ok(StackSnapshot {
            tables: tables.into(),
        })
    }

    /// Returns the range of tables to merge so that each table is larger than all newer ones
    /// together, multiplied by `factor` (0 means 2). Returns `None` if no merge is necessary.
    pub fn due(&self, factor: u8) -> Option<Range<usize>> {
        let weights: Vec<u64> = self.tables().map(RefTable::weight).collect();
        geometry::segment(&weights, factor)
    }

    /// Writes the records of the tables in `range` as one table. Deletion records are kept unless
    /// the range begins with the oldest table.
    ///
    /// # Errors
    /// Fails with `ErrorKind::Corrupt` if a table is malformed, and with `ErrorKind::Io` if writing
    /// fails.
    ///
    /// # Panics
    /// Panics if `range` is not within the tables.
    pub fn merge_into<W: Write>(
        &self,
        range: Range<usize>,
        writer: &mut TableWriter<W>,
    ) -> Result<()> {
        let is_oldest = range.start == 0;
        let members = &self.tables[range];
        let tables = || members.iter().map(|member| &member.table);
        merge(tables, is_oldest, None, writer)
    }
}

#[cfg(test)]
mod tests {
    use pronto_hash::{Kind, ObjectId};
    use pronto_io::view::FileView;

    use super::*;
    use crate::reftable::{RefRecord, RefValue, TableWriteOptions};

    fn table(index: u64, name: &str, value: RefValue<'_>) -> Vec<u8> {
        let limits = UpdateIndexRange {
            min: index,
            max: index,
        };
        let options = TableWriteOptions::default();
        let writer = TableWriter::new(Vec::new(), Kind::Sha1, limits, options);
        let mut writer = writer.expect("the options are valid");
        let record = RefRecord {
            name: name.into(),
            update_index: index,
            value,
        };
        writer.add_ref(&record).expect("a valid record");
        writer.finish().expect("memory").sink
    }

    #[test]
    fn tables_from_elsewhere_are_read_and_merged() {
        let id = ObjectId::empty_tree(Kind::Sha1);
        let tables = [
            table(1, "refs/heads/a", RefValue::Direct(&id)),
            table(2, "refs/heads/b", RefValue::Direct(&id)),
            table(3, "refs/heads/a", RefValue::Deletion),
        ];
        let name = |index: u64| {
            let limits = UpdateIndexRange {
                min: index,
                max: index,
            };
            TableName::with_random(limits, index as u32)
        };
        let names = [1, 2, 3].map(name);
        assert!(names.iter().all(TableName::is_usual));
        let open = |name: &TableName| {
            let at = names.iter().position(|other| other == name).expect("known");
            RefTable::from_view(FileView::from_bytes(tables[at].clone()), name.as_str())
        };
        let first = StackSnapshot::of(&names[..2], &StackSnapshot::default(), open).expect("sound");
        assert!(first.find("refs/heads/a").expect("sound").is_some());
        let mut opened = 0;
        let all = StackSnapshot::of(&names, &first, |name| {
            opened += 1;
            open(name)
        });
        let all = all.expect("sound");
        assert_eq!(opened, 1);
        assert!(all.find("refs/heads/a").expect("sound").is_none());
        assert_eq!(all.due(0), Some(0..3));
        let merged = |range: Range<usize>| -> Result<RefTable> {
            let limits = UpdateIndexRange { min: 1, max: 3 };
            let options = TableWriteOptions::default();
            let mut writer = TableWriter::new(Vec::new(), Kind::Sha1, limits, options)?;
            all.merge_into(range, &mut writer)?;
            let bytes = writer.finish()?.sink;
            RefTable::from_view(FileView::from_bytes(bytes), "merged")
        };
        let newest = merged(1..3).expect("sound");
        assert!(newest.find("refs/heads/a").expect("sound").is_some());
        let whole = merged(0..3).expect("sound");
        assert!(whole.find("refs/heads/a").expect("sound").is_none());
        assert!(whole.find("refs/heads/b").expect("sound").is_some());
    }
}
