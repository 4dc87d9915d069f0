//! The tables of a repository: reading them as one, and changing them.

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

pub use compact::Expiry;
pub use list::TableName;
pub use merge::{Logs, Refs};
pub use snapshot::Snapshot;
pub use transaction::{Additions, Transaction};

use super::WriteOptions;
use super::error::{ErrorKind, Result};
use list::{List, TABLES_LIST};

/// The time for which readers retry to open tables that compactions delete, as in Git.
const PATIENCE_OF_READERS: Duration = Duration::from_secs(3);

/// The smallest number of attempts of a reader.
const LEAST_TRIES: u32 = 3;

/// Options for changes of a stack. The defaults are those of Git.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct StackOptions {
    /// Options for writing tables.
    pub write: WriteOptions,
    /// The factor by which each table is kept larger than all newer ones together
    /// (`reftable.geometricFactor`); 0 stands for 2.
    pub geometric_factor: u8,
    /// The time to wait for the lock (`reftable.lockTimeout`).
    pub lock_timeout: Duration,
    /// Whether locks name their holder (`core.lockfilePid`).
    pub records_process: bool,
    /// The way to flush written tables (`core.fsync` with `reference`).
    pub sync: SyncMethod,
    /// The permissions of files, if they are not those of the process (`core.sharedRepository`).
    pub file_mode: Option<u32>,
    /// Whether transactions compact the stack when they are done.
    pub auto_compact: bool,
}

impl Default for StackOptions {
    fn default() -> Self {
        StackOptions {
            write: WriteOptions::default(),
            geometric_factor: 2,
            lock_timeout: Duration::from_millis(100),
            records_process: false,
            sync: SyncMethod::No,
            file_mode: None,
            auto_compact: true,
        }
    }
}

/// The directory with the tables of a repository or of a worktree. `Send + Sync`.
#[derive(Debug)]
pub struct Stack {
    directory: PathBuf,
    list_path: PathBuf,
    kind: Kind,
    options: StackOptions,
    loaded: Mutex<Loaded>,
}

/// The tables, and the list that named them.
#[derive(Debug)]
struct Loaded {
    /// The open file keeps its inode number from being given to another list.
    list: List,
    snapshot: Snapshot,
}

impl Stack {
    /// Opens the stack in `directory`, whose tables have object ids of `kind`. Without
    /// `tables.list` it is empty. Costs as [`snapshot`](Self::snapshot) after a change.
    ///
    /// # Errors
    /// The list or a table cannot be read or is broken; [`ErrorKind::WrongHash`].
    pub fn open(directory: impl Into<PathBuf>, kind: Kind, options: StackOptions) -> Result<Stack> {
        let directory = directory.into();
        let stack = Stack {
            list_path: directory.join(TABLES_LIST),
            directory,
            kind,
            options,
            loaded: Mutex::new(Loaded {
                list: List::default(),
                snapshot: Snapshot::default(),
            }),
        };
        let loaded = stack.load(&Snapshot::default())?;
        *stack.loaded.lock().unwrap_or_else(PoisonError::into_inner) = loaded;
        Ok(stack)
    }

    /// Returns the directory of the tables.
    pub fn directory(&self) -> &Path {
        &self.directory
    }

    /// The hash function of the object ids.
    pub fn kind(&self) -> Kind {
        self.kind
    }

    /// Returns the current content of the stack. One `stat(2)` and a short lock if nothing has
    /// changed since the last call; otherwise the list is read and new tables are opened. Never
    /// fails because of a concurrent compaction: if tables of the list are gone, the list is read
    /// again.
    ///
    /// # Errors
    /// As [`open`](Self::open); [`ErrorKind::Missing`] if the list names a missing table.
    pub fn snapshot(&self) -> Result<Snapshot> {
        let mut loaded = self.loaded.lock().unwrap_or_else(PoisonError::into_inner);
        if !loaded.list.is_current(&self.list_path)? {
            *loaded = self.load(&loaded.snapshot)?;
        }
        Ok(loaded.snapshot.clone())
    }

    /// Returns the content of the stack at the last check, without a system call.
    pub fn last_snapshot(&self) -> Snapshot {
        let loaded = self.loaded.lock().unwrap_or_else(PoisonError::into_inner);
        loaded.snapshot.clone()
    }

    /// Reads the list and opens the tables that `old` does not have.
    fn load(&self, old: &Snapshot) -> Result<Loaded> {
        let deadline = Instant::now() + PATIENCE_OF_READERS;
        let mut tries = 0;
        loop {
            let list = List::read(&self.list_path)?;
            match Snapshot::open(self, &list, old) {
                Ok(snapshot) => return Ok(Loaded { list, snapshot }),
                Err(error) if *error.kind() == ErrorKind::Missing => {
                    tries += 1;
                    let is_over = tries > LEAST_TRIES && Instant::now() >= deadline;
                    // A compaction changes the list before it removes tables.
                    if is_over || List::read(&self.list_path)?.names == list.names {
                        return Err(error);
                    }
                }
                Err(error) => return Err(error),
            }
            std::thread::sleep(Duration::from_millis(1));
        }
    }

    /// The names that the list has now, whatever was loaded.
    fn names(&self) -> Result<Vec<TableName>> {
        Ok(List::read(&self.list_path)?.names)
    }

    fn path_of(&self, name: &TableName) -> PathBuf {
        self.directory.join(name.as_str())
    }

    /// Gives a file of the stack the permissions it is to have.
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
