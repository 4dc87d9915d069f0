//! The stack of ref tables of a generation.

use std::collections::BTreeMap;
use std::ops::Range;

use bytes::Bytes;
use futures_util::stream::{self, StreamExt as _, TryStreamExt as _};
use pronto_hash::Kind;
use pronto_io::view::FileView;
use pronto_refs::reftable::{
    RefTable, StackSnapshot, TableName, TableWriteOptions, TableWriter, UpdateIndexRange,
};

use crate::backend::StoreBackend;
use crate::manifest::{MOST_INLINE_BYTES, Manifest, TableRecord, TableStorage};
use crate::name::UploadId;
use crate::refs::broken;
use crate::repository::{Generation, StoreRepository};
use crate::upload::AT_ONCE;
use crate::{Error, ErrorKind, Result, name};

/// The largest size in bytes of a table, which fits about 30 million refs.
const MOST_TABLE_BYTES: u64 = 2 << 30;

/// The largest total size in bytes of the tables of a generation.
const MOST_TABLES_BYTES: u64 = 2 * MOST_TABLE_BYTES;

/// A stack with a new table that is not written yet.
pub(crate) struct NewStack {
    pub(crate) tables: Vec<TableRecord>,
    pub(crate) refs: StackSnapshot,
    /// The name and the bytes of a new table that is a separate object.
    pub(crate) object: Option<(String, Bytes)>,
}

/// Returns the name that a table has in a view.
pub(crate) fn table_name(record: &TableRecord) -> TableName {
    TableName::with_random(limits(record), record.upload.0 as u32)
}

fn limits(record: &TableRecord) -> UpdateIndexRange {
    UpdateIndexRange {
        min: record.min,
        max: record.max,
    }
}

impl<B: StoreBackend> StoreRepository<B> {
    /// Opens the tables of a generation. Tables that the generation `base` describes identically
    /// are shared. Tables that are not in the manifest are read from the store.
    pub(crate) async fn open_tables(
        &self,
        manifest: &Manifest,
        base: Option<&Generation>,
    ) -> Result<StackSnapshot> {
        let size = manifest.tables.iter().map(TableRecord::size_bytes);
        if size.fold(0, u64::saturating_add) > MOST_TABLES_BYTES {
            let message = "the ref tables of the generation are too large";
            let path = self.generation_path(manifest.number);
            return Err(Error::new(ErrorKind::Unsupported, message).at_path(path));
        }
        let empty = StackSnapshot::default();
        let known = match base {
            Some(base) if agree(&base.manifest, manifest) => &base.refs,
            _ => &empty,
        };
        let is_known = |name: &TableName| known.names().any(|other| other == name);
        let wanted = manifest.tables.iter().filter_map(|record| {
            let object = record.object()?;
            let name = table_name(record);
            (!is_known(&name)).then_some((name, object))
        });
        let calls = wanted.map(|(name, object)| async move {
            let bytes = self.object(&object, MOST_TABLE_BYTES).await?;
            Ok::<_, Error>((name, bytes))
        });
        let calls = stream::iter(calls.collect::<Vec<_>>()).buffer_unordered(AT_ONCE);
        let mut read: Vec<(TableName, Vec<u8>)> = calls.try_collect().await?;
        let names: Vec<TableName> = manifest.tables.iter().map(table_name).collect();
        let path = |name: &TableName| {
            let at = names.iter().position(|other| other == name);
            match at.and_then(|at| manifest.tables[at].object()) {
                Some(object) => format!("{}{}", self.prefix, object.name),
                None => self.generation_path(manifest.number),
            }
        };
        let inline: BTreeMap<&str, &Bytes> = names
            .iter()
            .zip(&manifest.tables)
            .filter_map(|(name, record)| match &record.place {
                TableStorage::Inline(bytes) => Some((name.as_str(), bytes)),
                TableStorage::Object { .. } => None,
            })
            .collect();
        StackSnapshot::of(&names, known, |name| {
            let bytes = match inline.get(name.as_str()) {
                Some(bytes) => bytes.to_vec(),
                None => {
                    let at = read.iter().position(|(other, _)| other == name);
                    at.map(|at| read.swap_remove(at).1).unwrap_or_default()
                }
            };
            open(bytes, name, manifest.hash).map_err(|error| {
                // The file name of the table exists only in a view.
                let error = error.without_context(ErrorKind::Corrupt);
                error.at_path(path(name))
            })
        })
    }
}

/// Returns whether the tables with equal names in two generations have equal descriptions.
fn agree(base: &Manifest, next: &Manifest) -> bool {
    let known: BTreeMap<String, &TableRecord> = base
        .tables
        .iter()
        .map(|record| (table_name(record).to_string(), record))
        .collect();
    let mut records = next.tables.iter();
    records.all(|record| {
        let other = known.get(table_name(record).as_str());
        other.is_none_or(|other| *other == record)
    })
}

fn open(bytes: Vec<u8>, name: &TableName, kind: Kind) -> Result<RefTable> {
    let table = RefTable::from_view(FileView::from_bytes(bytes), name.as_str()).map_err(broken)?;
    match table.kind() == kind {
        true => Ok(table),
        false => {
            let message = "the ref table has another object format than its repository";
            Err(Error::new(ErrorKind::Corrupt, message).at_path(name.as_str()))
        }
    }
}

/// Adds a table with the records `bytes` to the stack of `manifest`, whose refs are `refs`. Tables
/// in the manifest are merged to keep their number small, which costs no call of the store. `draw`
/// returns the random parts of names.
pub(crate) fn add(
    manifest: &Manifest,
    refs: &StackSnapshot,
    bytes: Vec<u8>,
    mut draw: impl FnMut() -> UploadId,
) -> Result<NewStack> {
    let kind = manifest.hash;
    let index = manifest.next_update_index();
    let mut tables = manifest.tables.clone();
    tables.push(TableRecord {
        min: index,
        max: index,
        upload: draw(),
        place: TableStorage::Inline(bytes.into()),
    });
    let mut refs = restack(&tables, refs, None, kind)?;
    let is_inline = |record: &TableRecord| matches!(record.place, TableStorage::Inline(_));
    loop {
        let objects = tables.iter().rposition(|record| !is_inline(record));
        let first = objects.map_or(0, |at| at + 1);
        let inline: usize = tables[first..]
            .iter()
            .map(|record| record.size_bytes() as usize)
            .sum();
        if inline > MOST_INLINE_BYTES {
            let range = first..tables.len();
            let merged = merge(&tables, &refs, range.clone(), kind, draw())?;
            let Some(merged) = merged else {
                tables.truncate(first);
                continue;
            };
            tables.splice(range, [merged.0.clone()]);
            let refs = restack(&tables, &refs, Some(&merged), kind)?;
            let (record, bytes) = merged;
            return Ok(NewStack {
                tables,
                refs,
                object: Some((name::table(record.upload), bytes)),
            });
        }
        let tail = restack(&tables[first..], &refs, None, kind)?;
        let Some(due) = tail.due(0) else {
            return Ok(NewStack {
                tables,
                refs,
                object: None,
            });
        };
        let range = first + due.start..first + due.end;
        let merged = merge(&tables, &refs, range.clone(), kind, draw())?;
        let merged = merged.map(|(record, bytes)| TableRecord {
            place: TableStorage::Inline(bytes),
            ..record
        });
        tables.splice(range, merged);
        refs = restack(&tables, &refs, None, kind)?;
    }
}

/// Opens the tables in the manifest and the table `new`, and shares the tables of `known`.
pub(crate) fn restack(
    tables: &[TableRecord],
    known: &StackSnapshot,
    new: Option<&(TableRecord, Bytes)>,
    kind: Kind,
) -> Result<StackSnapshot> {
    let names: Vec<TableName> = tables.iter().map(table_name).collect();
    StackSnapshot::of(&names, known, |name| {
        let record = names.iter().position(|other| other == name);
        let record = record.map(|at| &tables[at]);
        match (record.map(|record| &record.place), new) {
            (Some(TableStorage::Inline(bytes)), _) => open(bytes.to_vec(), name, kind),
            (Some(_), Some((other, bytes))) if record == Some(other) => {
                open(bytes.to_vec(), name, kind)
            }
            _ => Err(Error::new(ErrorKind::Missing, "table is not open").at_path(name.as_str())),
        }
    })
}

/// Merges tables into one, which is an object of the store, and returns it with its bytes. Returns
/// `None` if no records are left.
pub(crate) fn merge(
    tables: &[TableRecord],
    refs: &StackSnapshot,
    range: Range<usize>,
    kind: Kind,
    upload: UploadId,
) -> Result<Option<(TableRecord, Bytes)>> {
    let merged = &tables[range.clone()];
    let min = merged.iter().map(|record| record.min).min().unwrap_or(1);
    let max = merged.iter().map(|record| record.max).max().unwrap_or(1);
    let limits = UpdateIndexRange { min, max };
    let mut options = TableWriteOptions::default();
    options.is_padded = merged.iter().any(|record| record.object().is_some());
    let writer = TableWriter::new(Vec::new(), kind, limits, options);
    let mut writer = writer.map_err(broken)?;
    refs.merge_into(range, &mut writer).map_err(broken)?;
    let written = writer.finish().map_err(broken)?;
    if written.is_empty {
        return Ok(None);
    }
    let bytes = Bytes::from(written.sink);
    let place = TableStorage::Object {
        size_bytes: bytes.len() as u64,
        digest: crate::digest::Digest::of(&bytes),
    };
    let record = TableRecord {
        min,
        max,
        upload,
        place,
    };
    Ok(Some((record, bytes)))
}
