//! A new table that is not part of a stack yet.

use std::fs::{File, OpenOptions};
use std::io::{BufWriter, Write};
use std::path::PathBuf;

use pronto_io::cleanup::Guard;
use pronto_io::error::IoContext;

use super::ReftableStack;
use super::list::{TableName, random};
use crate::reftable::error::{ErrorKind, Result};
use crate::reftable::{TableWriter, UpdateIndexRange};

/// The size of the write buffer.
const BUFFER_BYTES: usize = 64 << 10;

/// A complete table with a temporary name. Dropping it removes the file.
#[derive(Debug)]
pub(super) struct NewTable {
    path: PathBuf,
    guard: Guard,
    pub(super) name: TableName,
}

/// A table with its final name that is not in the list yet. Dropping it removes the file.
#[derive(Debug)]
pub(super) struct NamedTable {
    guard: Guard,
    pub(super) name: TableName,
}

/// The writer of a new table.
pub(super) type Writer = TableWriter<BufWriter<File>>;

impl NewTable {
    /// Writes a table with the records that `fill` adds; `None` if `fill` adds no records.
    pub(super) fn write(
        stack: &ReftableStack,
        limits: UpdateIndexRange,
        fill: impl FnOnce(&mut Writer) -> Result<()>,
    ) -> Result<Option<NewTable>> {
        let name = TableName::unique(limits);
        let path = stack
            .directory
            .join(format!("{name}.temp.{:08x}", random()));
        let file = OpenOptions::new().write(true).create_new(true).open(&path);
        let file = file.context(ErrorKind::Io, "cannot create", &path)?;
        let guard = Guard::new(&path);
        stack.set_mode(&file, &path)?;
        let sink = BufWriter::with_capacity(BUFFER_BYTES, file);
        let mut writer = TableWriter::new(sink, stack.kind, limits, stack.options.write)?;
        fill(&mut writer).map_err(|error| error.at_path(&path))?;
        let written = writer.finish().map_err(|error| error.at_path(&path))?;
        if written.is_empty {
            return Ok(None);
        }
        let mut sink = written.sink;
        sink.flush()
            .and_then(|()| stack.options.sync.apply(sink.get_ref()))
            .context(ErrorKind::Io, "cannot write", &path)?;
        Ok(Some(NewTable { path, guard, name }))
    }

    /// Renames the table to its final name.
    pub(super) fn rename_into_place(self, stack: &ReftableStack) -> Result<NamedTable> {
        let path = stack.path_of(&self.name);
        std::fs::rename(&self.path, &path).context(ErrorKind::Io, "cannot create", &path)?;
        let guard = Guard::new(path);
        self.guard.keep();
        Ok(NamedTable {
            guard,
            name: self.name,
        })
    }
}

impl NamedTable {
    /// Keeps the file, because the list names the table now.
    pub(super) fn keep(self) {
        self.guard.keep();
    }
}
