//! The locks of a stack: the one of its list, and those of tables that are compacted.

use std::io::{ErrorKind as Io, Write};
use std::path::{Path, PathBuf};
use std::time::Duration;

use pronto_io::cleanup::Guard;
use pronto_io::error::IoContext;
use pronto_io::lock_file::{self, LockFile, Marking};

use super::Stack;
use super::list::{self, TableName};
use crate::reftable::error::{Error, ErrorKind, Result};

/// The most locks of tables whose files are kept open, so that others see that we live.
const MOST_MARKED: usize = 64;

/// The right to replace the list of tables. Dropping it gives the right back.
#[derive(Debug)]
pub(super) struct ListLock {
    path: PathBuf,
    // The name goes before the file is closed: a marked one without a holder would be taken over.
    guard: Guard,
    file: LockFile,
}

impl ListLock {
    pub(super) fn acquire(stack: &Stack) -> Result<ListLock> {
        let path = lock_path(&stack.list_path);
        let file = create(&path, Marking::Marked, stack.options.lock_timeout)?;
        Ok(ListLock {
            guard: Guard::new(&path),
            path,
            file,
        })
    }

    /// Makes `names` the list.
    pub(super) fn commit<'a>(
        mut self,
        stack: &Stack,
        names: impl IntoIterator<Item = &'a TableName>,
    ) -> Result<()> {
        let bytes = list::format(names);
        let path = &self.path;
        let mut file = self.file.file();
        file.write_all(&bytes)
            .and_then(|()| stack.options.sync.apply(file))
            .context(ErrorKind::Io, "cannot write", path)?;
        self.file
            .unmark()
            .context(ErrorKind::Io, "cannot change permissions of", path)?;
        stack.set_mode(self.file.file(), path)?;
        std::fs::rename(path, &stack.list_path).context(
            ErrorKind::Io,
            "cannot replace",
            &stack.list_path,
        )?;
        self.guard.keep();
        Ok(())
    }
}

/// The right to compact a table. Dropping it gives the right back.
#[derive(Debug)]
pub(super) struct TableLock {
    _guard: Guard,
    _file: Option<LockFile>,
}

impl TableLock {
    /// Locks `name`, of which `held` others are held already. Does not wait.
    pub(super) fn acquire(stack: &Stack, name: &TableName, held: usize) -> Result<TableLock> {
        let path = lock_path(&stack.path_of(name));
        let marking = if held < MOST_MARKED {
            Marking::Marked
        } else {
            Marking::Plain
        };
        let file = create(&path, marking, Duration::ZERO)?;
        let is_marked = file.is_marked();
        Ok(TableLock {
            _guard: Guard::new(&path),
            _file: Some(file).filter(|_| is_marked),
        })
    }
}

fn lock_path(target: &Path) -> PathBuf {
    let mut path = target.to_owned().into_os_string();
    path.push(".lock");
    path.into()
}

fn create(path: &Path, marking: Marking, patience: Duration) -> Result<LockFile> {
    match lock_file::create(path, marking, patience) {
        Ok(file) => Ok(file),
        Err(error) if error.kind() == Io::AlreadyExists => {
            let message = "another process holds the lock";
            Err(Error::new(ErrorKind::Locked, message).at_path(path))
        }
        Err(error) => Err(error).context(ErrorKind::Io, "cannot create", path),
    }
}
