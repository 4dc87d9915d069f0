//! A stack of reftables: reads the tables as one, and changes them.

mod clean;
mod compact;
mod detached;
mod geometry;
mod list;
mod locks;
mod merge;
mod new_table;
mod snapshot;
mod transaction;

use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use pronto_hash::Kind;
use pronto_io::error::IoContext;
use pronto_io::sync::SyncMethod;

pub use compact::LogExpiryLimits;
pub use list::TableName;
pub use merge::{SnapshotLogs, SnapshotRefs};
pub use snapshot::StackSnapshot;
pub use transaction::{Additions, StackTransaction};

use super::TableWriteOptions;
use super::error::{ErrorKind, Result};
use list::{TABLES_LIST, TableList};

/// The time for which readers retry to open tables that compactions have deleted, as in Git.
const PATIENCE_OF_READERS: Duration = Duration::from_secs(3);

/// The smallest number of attempts of a reader.
const LEAST_TRIES: u32 = 3;

/// Options for changes of a stack. The defaults are those of Git.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct StackOptions {
    /// Options for writing tables.
    pub write: TableWriteOptions,
    /// The factor by which each table is kept larger than all newer ones together
    /// (`reftable.geometricFactor`); 0 stands for 2.
    pub geometric_factor: u8,
    /// The time to wait for the lock (`reftable.lockTimeout`).
    pub lock_timeout: Duration,
    /// Whether locks record the process id of their holder (`core.lockfilePid`).
    pub records_process: bool,
    /// The way to flush written tables (`core.fsync` with `reference`).
    pub sync: SyncMethod,
    /// The permissions of new files (`core.sharedRepository`); `None` for those of the umask.
    pub file_mode: Option<u32>,
    /// Whether transactions compact the stack after their commit.
    pub auto_compact: bool,
}

impl Default for StackOptions {
    fn default() -> Self {
        StackOptions {
            write: TableWriteOptions::default(),
            geometric_factor: 2,
            lock_timeout: Duration::from_millis(100),
            records_process: false,
            sync: SyncMethod::No,
            file_mode: None,
            auto_compact: true,
        }
    }
}

/// The stack of tables in the directory `reftable` of a repository or a worktree. `Send + Sync`.
#[derive(Debug)]
pub struct ReftableStack {
    directory: PathBuf,
    list_path: PathBuf,
    kind: Kind,
    options: StackOptions,
    loaded: Mutex<Loaded>,
}

/// The opened tables, and the list from which their names were read.
#[derive(Debug)]
struct Loaded {
    /// The list. Its open file keeps the inode number from being reused for another list.
    list: TableList,
    snapshot: StackSnapshot,
}

impl ReftableStack {
    /// Opens the stack in `directory`, whose tables have object ids of `kind`. Without
    /// `tables.list`, the stack is empty. Costs the same as [`snapshot`](Self::snapshot) after a
    /// change.
    ///
    /// # Errors
    /// Fails with [`ErrorKind::WrongHash`] if a table has another hash function, and with other
    /// kinds if the list or a table cannot be read or is malformed.
    pub fn open(
        directory: impl Into<PathBuf>,
        kind: Kind,
        options: StackOptions,
    ) -> Result<ReftableStack> {
        let directory = directory.into();
        let stack = ReftableStack {
            list_path: directory.join(TABLES_LIST),
            directory,
            kind,
            options,
            loaded: Mutex::new(Loaded {
                list: TableList::default(),
                snapshot: StackSnapshot::default(),
            }),
        };
        let loaded = stack.load(&StackSnapshot::default())?;
        *stack.loaded.lock().unwrap_or_else(PoisonError::into_inner) = loaded;
        Ok(stack)
    }

    /// Returns the directory of the tables.
    pub fn directory(&self) -> &Path {
        &self.directory
    }

    /// Returns the hash function of object ids.
    pub fn kind(&self) -> Kind {
        self.kind
    }

    /// Returns the current content of the stack. Costs one `stat(2)` and a short lock if the stack
    /// has not changed since the last call; otherwise reads the list and opens new tables. Never
    /// fails because of a concurrent compaction: if tables of the list are gone, reads the list
    /// again.
    ///
    /// # Errors
    /// Fails as [`open`](Self::open) does, and with [`ErrorKind::Missing`] if the list names a
    /// missing table.
    pub fn snapshot(&self) -> Result<StackSnapshot> {
        let mut loaded = self.loaded.lock().unwrap_or_else(PoisonError::into_inner);
        if !loaded.list.is_current(&self.list_path)? {
            *loaded = self.load(&loaded.snapshot)?;
        }
        Ok(loaded.snapshot.clone())
    }

    /// Returns the content of the stack at the last check, without a system call.
    pub fn last_snapshot(&self) -> StackSnapshot {
        let loaded = self.loaded.lock().unwrap_or_else(PoisonError::into_inner);
        loaded.snapshot.clone()
    }

    /// Reads the list, and opens the tables that `old` does not contain.
    fn load(&self, old: &StackSnapshot) -> Result<Loaded> {
        let deadline = Instant::now() + PATIENCE_OF_READERS;
        let mut tries = 0;
        loop {
            let list = TableList::read(&self.list_path)?;
            match StackSnapshot::open(self, &list, old) {
                Ok(snapshot) => return Ok(Loaded { list, snapshot }),
                Err(error) if error.kind() == ErrorKind::Missing => {
                    tries += 1;
                    let is_over = tries > LEAST_TRIES && Instant::now() >= deadline;
                    // A compaction replaces the list before it removes tables.
                    if is_over || TableList::read(&self.list_path)?.names == list.names {
                        return Err(error);
                    }
                }
                Err(error) => return Err(error),
            }
            std::thread::sleep(Duration::from_millis(1));
        }
    }

    /// Returns the current table names from the list file, independent of the opened tables.
    fn names(&self) -> Result<Vec<TableName>> {
        Ok(TableList::read(&self.list_path)?.names)
    }

    fn path_of(&self, name: &TableName) -> PathBuf {
        self.directory.join(name.as_str())
    }

    /// Sets the permissions of a new file of the stack.
    fn set_mode(&self, file: &std::fs::File, path: &Path) -> Result<()> {
        use std::os::unix::fs::PermissionsExt;
        match self.options.file_mode {
            None => Ok(()),
            Some(mode) => file
                .set_permissions(std::fs::Permissions::from_mode(mode))
                .context(ErrorKind::Io, "cannot change permissions of", path),
        }
    }
}
