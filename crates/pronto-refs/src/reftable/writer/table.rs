//! A table under construction, section by section.

use std::fmt;
use std::io::Write;

use bstr::{BString, ByteSlice};
use pronto_hash::{Kind, oid};

use super::TableWriteOptions;
use super::block::BlockWriter;
use super::objects::ObjectIndex;
use super::value::RecordValue;
use crate::reftable::error::{Error, ErrorKind, Result};
use crate::reftable::format::{BlockKind, Footer, LARGEST_BLOCK, TableHeader, UpdateIndexRange};
use crate::reftable::record::{LogEntry, LogRecord, RefRecord, RefValue, set_log_key};
use crate::{BadName, RefNameRef};

/// The largest number of blocks of a section without an index: aligned and not aligned.
const MOST_ALIGNED: usize = 3;
const MOST_UNALIGNED: usize = 1;

/// Writes one table: first refs, sorted by name, then reflog entries, sorted by name and newest
/// first.
///
/// The bytes are those of Git for the same records and options, except for the compressed bytes of
/// log blocks. Holds one block and the last key of each block, and until the first log record the
/// objects to which refs point (56 bytes each for SHA-1).
pub struct TableWriter<W> {
    sink: W,
    header: TableHeader,
    options: TableWriteOptions,
    footer: Footer,
    /// The position of the next block.
    next: u64,
    /// The number of padding bytes before the next block.
    padding: usize,
    block: BlockWriter,
    /// The last key of the section.
    last_key: Vec<u8>,
    /// The blocks of the section, or of the last level of its index.
    index: Vec<IndexedBlock>,
    objects: ObjectIndex,
    has_logs: bool,
    scratch: Vec<u8>,
    message: BString,
}

/// A block to which an index record points.
struct IndexedBlock {
    last_key: Vec<u8>,
    position: u64,
}

/// A finished table.
#[derive(Debug)]
pub struct WrittenTable<W> {
    /// The sink to which the table was written.
    pub sink: W,
    /// Whether the table has no records.
    pub is_empty: bool,
    /// The size of the table in bytes.
    pub len: u64,
}

impl<W> fmt::Debug for TableWriter<W> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("TableWriter")
            .field("header", &self.header)
            .field("next", &self.next)
            .finish_non_exhaustive()
    }
}

impl<W: Write> TableWriter<W> {
    /// Begins a table with update indexes within `limits`. Writes one block at a time to `sink`.
    ///
    /// # Errors
    /// Fails with [`ErrorKind::Options`] if the block size is out of range.
    pub fn new(
        sink: W,
        kind: Kind,
        limits: UpdateIndexRange,
        options: TableWriteOptions,
    ) -> Result<Self> {
        let mut options = options;
        if options.block_size == 0 {
            options.block_size = TableWriteOptions::default().block_size;
        }
        if options.restart_interval == 0 {
            options.restart_interval = TableWriteOptions::default().restart_interval;
        }
        if options.block_size > LARGEST_BLOCK {
            let message = "block size of a reftable is too large";
            return Err(Error::new(ErrorKind::Options, message));
        }
        let block_size = options.block_size;
        let header = TableHeader::new(kind, if options.is_padded { block_size } else { 0 }, limits);
        let mut block = BlockWriter::new(block_size as usize, options.restart_interval.into());
        block.begin(BlockKind::Ref, header.len());
        Ok(TableWriter {
            sink,
            header,
            options,
            footer: Footer::default(),
            next: 0,
            padding: 0,
            block,
            last_key: Vec::new(),
            index: Vec::new(),
            objects: ObjectIndex::default(),
            has_logs: false,
            scratch: Vec::new(),
            message: BString::default(),
        })
    }

    /// Adds a ref. Its name must be greater than the previous name.
    ///
    /// # Errors
    /// Fails with [`ErrorKind::Record`] if the name or the target of a symref is invalid (a
    /// deletion may have any safe name), if the record is out of order, if its update index is out
    /// of range, if the record does not fit into a block, or if log records have been added before.
    /// Fails with [`ErrorKind::Io`] if the sink fails.
    pub fn add_ref(&mut self, record: &RefRecord<'_>) -> Result<()> {
        let name = match record.value {
            RefValue::Deletion => RefNameRef::existing(record.name),
            _ => RefNameRef::new(record.name),
        };
        name.map_err(|bad| bad_name(&bad))?;
        if let RefValue::Symbolic(target) = record.value {
            RefNameRef::new(target).map_err(|bad| bad_name(&bad))?;
        }
        self.copy_ref(record)
    }

    /// Does the same as [`add_ref`](Self::add_ref), with a name from another table, which may be
    /// invalid.
    pub(in crate::reftable) fn copy_ref(&mut self, record: &RefRecord<'_>) -> Result<()> {
        let limits = self.header.limits;
        if !(limits.min..=limits.max).contains(&record.update_index) {
            return Err(bad_record("update index is out of range", record.name));
        }
        if self.has_logs {
            return Err(bad_record("reference follows log records", record.name));
        }
        let value = RecordValue::Ref {
            index_delta: record.update_index - limits.min,
            value: record.value,
        };
        self.check_ids(&[record.value.object(), record.value.target()])?;
        self.add_in_order(record.name, &value)?;
        if self.options.index_objects {
            let ids = [record.value.object(), record.value.target()];
            for id in ids.into_iter().flatten() {
                self.objects.add(id, self.next);
            }
        }
        Ok(())
    }

    /// Adds a reflog entry. The pair of name and update index must be greater than the previous
    /// pair, where a smaller update index counts as greater. As in Git, the message is written with
    /// one newline at its end.
    ///
    /// # Errors
    /// Fails as [`add_ref`](Self::add_ref) does, but accepts update indexes below the range of the
    /// table. Fails with [`ErrorKind::Record`] if the message has several lines.
    pub fn add_log(&mut self, record: &LogRecord<'_>) -> Result<()> {
        RefNameRef::existing(record.name).map_err(|bad| bad_name(&bad))?;
        self.copy_log(record)
    }

    /// Does the same as [`add_log`](Self::add_log), with a name from another table, which may be
    /// invalid.
    pub(in crate::reftable) fn copy_log(&mut self, record: &LogRecord<'_>) -> Result<()> {
        if record.update_index > self.header.limits.max && record.entry.is_some() {
            return Err(bad_record("update index is out of range", record.name));
        }
        self.begin_logs()?;
        let mut message = std::mem::take(&mut self.message);
        let outcome = self.add_entry(record, &mut message);
        self.message = message;
        outcome
    }

    fn add_entry(&mut self, record: &LogRecord<'_>, message: &mut BString) -> Result<()> {
        if let Some(entry) = &record.entry {
            message.clear();
            message.extend_from_slice(entry.message.trim_end_with(|end| end == '\n'));
            if message.contains(&b'\n') {
                let what = "message of a reflog has several lines";
                return Err(bad_record(what, record.name));
            }
            message.push(b'\n');
            self.check_ids(&[Some(entry.old), Some(entry.new)])?;
        }
        let entry = record.entry.map(|entry| LogEntry {
            message: message.as_bstr(),
            ..entry
        });
        let mut key = std::mem::take(&mut self.scratch);
        set_log_key(&mut key, record.name, record.update_index);
        let outcome = self.add_in_order(&key, &RecordValue::Log(entry));
        self.scratch = key;
        outcome
    }

    /// Completes the table: writes the indexes and the footer. Does not flush the sink.
    ///
    /// # Errors
    /// Fails with [`ErrorKind::Io`] if the sink fails.
    pub fn finish(mut self) -> Result<WrittenTable<W>> {
        if self.has_logs {
            self.footer.log_index = self.finish_section()?;
        } else {
            self.finish_refs()?;
        }
        let is_empty = self.next == 0;
        let mut end = Vec::new();
        if is_empty {
            self.header.write(&mut end);
        }
        self.footer.write(&self.header, &mut end);
        self.sink.write_all(&end).map_err(unwritten)?;
        // The last block is not padded.
        let len = self.next - self.padding as u64 + end.len() as u64;
        Ok(WrittenTable {
            sink: self.sink,
            is_empty,
            len,
        })
    }

    fn check_ids(&self, ids: &[Option<&oid>]) -> Result<()> {
        if ids.iter().flatten().all(|id| id.kind() == self.header.kind) {
            return Ok(());
        }
        let message = "object id of another hash function";
        Err(Error::new(ErrorKind::WrongHash, message))
    }

    fn begin_logs(&mut self) -> Result<()> {
        if self.has_logs {
            return Ok(());
        }
        self.finish_refs()?;
        self.has_logs = true;
        // Log blocks follow without padding.
        self.next -= self.padding as u64;
        self.padding = 0;
        self.footer.log_start = self.next;
        self.begin_section(BlockKind::Log);
        Ok(())
    }

    fn finish_refs(&mut self) -> Result<()> {
        self.footer.ref_index = self.finish_section()?;
        let mut objects = std::mem::take(&mut self.objects);
        if self.footer.ref_index == 0 || !self.options.index_objects {
            return Ok(());
        }
        objects.sort();
        let id_len = objects.shortest_len();
        self.footer.id_len = id_len;
        self.begin_section(BlockKind::Object);
        let start = self.next;
        let mut has_any = false;
        objects.visit(|object| {
            has_any = true;
            let key = &object.id[..id_len];
            match self.add(key, &RecordValue::Object(object.blocks)) {
                // The object has too many blocks to list; readers must examine all blocks.
                Err(error) if error.kind() == ErrorKind::Record => {
                    self.add(key, &RecordValue::Object(&[]))
                }
                other => other,
            }
        })?;
        self.footer.object_start = if has_any { start } else { 0 };
        self.footer.object_index = self.finish_section()?;
        Ok(())
    }

    fn begin_section(&mut self, kind: BlockKind) {
        self.last_key.clear();
        self.begin_block(kind);
    }

    fn begin_block(&mut self, kind: BlockKind) {
        let skipped = if self.next == 0 { self.header.len() } else { 0 };
        self.block.begin(kind, skipped);
    }

    /// Completes the last block and writes the levels of the index, the root last. Returns the
    /// position of the root, or 0 if there is no index.
    fn finish_section(&mut self) -> Result<u64> {
        self.flush_block()?;
        let most = if self.options.is_padded {
            MOST_ALIGNED
        } else {
            MOST_UNALIGNED
        };
        let mut root = 0;
        while self.index.len() > most {
            root = self.next;
            let children = std::mem::take(&mut self.index);
            self.begin_block(BlockKind::Index);
            for child in &children {
                self.add(&child.last_key, &RecordValue::Index(child.position))?;
            }
            self.flush_block()?;
            if self.index.len() == children.len() {
                // Each block holds only one key, so more levels would not help.
                break;
            }
        }
        self.index.clear();
        Ok(root)
    }

    fn add_in_order(&mut self, key: &[u8], value: &RecordValue<'_>) -> Result<()> {
        if key <= self.last_key.as_slice() {
            return Err(bad_record("record is out of order", key));
        }
        self.add(key, value)?;
        self.last_key.clear();
        self.last_key.extend_from_slice(key);
        Ok(())
    }

    fn add(&mut self, key: &[u8], value: &RecordValue<'_>) -> Result<()> {
        if self.block.add(key, value) {
            return Ok(());
        }
        self.flush_block()?;
        self.begin_block(value.kind());
        if self.block.add(key, value) {
            return Ok(());
        }
        Err(bad_record("record does not fit into a block", key))
    }

    /// Writes the block, unless it is empty, and begins an empty one.
    fn flush_block(&mut self) -> Result<()> {
        if self.block.entries == 0 {
            return Ok(());
        }
        if self.block.finish().is_none() {
            return Err(Error::new(ErrorKind::Io, "cannot deflate log block"));
        }
        let position = self.next;
        if position == 0 {
            self.place_header();
        }
        let len = self.block.bytes.len();
        write_zeros(&mut self.sink, self.padding).map_err(unwritten)?;
        self.sink.write_all(&self.block.bytes).map_err(unwritten)?;
        let is_padded = self.options.is_padded && self.block.kind != BlockKind::Log;
        self.padding = if is_padded {
            (self.options.block_size as usize).saturating_sub(len)
        } else {
            0
        };
        self.index.push(IndexedBlock {
            last_key: self.block.last_key.clone(),
            position,
        });
        self.next += (len + self.padding) as u64;
        self.block.entries = 0;
        Ok(())
    }

    /// Writes the table header before the first block.
    fn place_header(&mut self) {
        let mut header = Vec::with_capacity(self.header.len());
        self.header.write(&mut header);
        self.block.bytes[..header.len()].copy_from_slice(&header);
    }
}

fn write_zeros(sink: &mut impl Write, count: usize) -> std::io::Result<()> {
    const ZEROS: [u8; 4096] = [0; 4096];
    let mut left = count;
    while left > 0 {
        let len = left.min(ZEROS.len());
        sink.write_all(&ZEROS[..len])?;
        left -= len;
    }
    Ok(())
}

fn unwritten(error: std::io::Error) -> Error {
    Error::new(ErrorKind::Io, "cannot write table").because(error)
}

fn bad_name(bad: &BadName) -> Error {
    Error::new(ErrorKind::Record, bad.to_string())
}

fn bad_record(what: &str, key: &[u8]) -> Error {
    let name = key.split(|byte| *byte == 0).next().unwrap_or_default();
    Error::new(ErrorKind::Record, format!("{what}: '{}'", name.as_bstr()))
}
