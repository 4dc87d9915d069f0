//! Refs in reftables (`extensions.refStorage = reftable`): one stack of tables for the refs that
//! all worktrees share, and one for each linked worktree.
//!
//! `FETCH_HEAD` and `MERGE_HEAD` are files in such a repository, too, as in Git.

mod iterate;
mod log;

use std::ops::Deref;
use std::path::{Path, PathBuf};
use std::sync::OnceLock;
use std::time::{Duration, Instant};

use bstr::{BStr, BString, ByteSlice};
use pronto_config::config::Config;
use pronto_config::durability::{Component, Fsync};
use pronto_config::environment::Environment;
use pronto_config::lock::PATIENCE;
use pronto_config::shared::{self, SharedPermissions};
use pronto_config::{Error, ErrorKind, RepositoryLayout, Result};
use pronto_hash::{Kind, ObjectId};
use pronto_io::error::IoContext as _;

use super::{RefName, RefNameRef, RefTarget, Reference, References, loose};
use crate::reftable::{
    self, RefValue, ReftableStack, StackOptions, StackSnapshot, TableWriteOptions,
};

pub use log::{LoggedUpdate as LogChange, StoredEntry, entries_of, log_ids, logged_names};

/// The directory of the tables in the Git directory of a repository or a linked worktree.
pub const DIRECTORY: &str = "reftable";
pub use pronto_config::git_dir::HEAD_STUB;
/// The contents of the placeholder file `refs/heads`, for programs that do not support reftables.
pub const HEADS_STUB: &[u8] = b"this repository uses the reftable format\n";

/// The pause between two attempts to compact a stack that other processes use.
const PAUSE: Duration = Duration::from_millis(10);

/// The umask that is assumed if the umask of the process cannot be determined.
const USUAL_UMASK: u32 = 0o022;

/// The stacks of reftables of a repository, opened on first use. `Send + Sync`.
#[derive(Debug)]
pub struct RefStacks {
    git_dir: PathBuf,
    common_dir: PathBuf,
    object_hash: Kind,
    options: StackOptions,
    shared: OnceLock<ReftableStack>,
    own: OnceLock<ReftableStack>,
}

/// A stack of this worktree, or a stack of another worktree that is opened for one operation.
pub enum StackOf<'t> {
    /// A stack of this worktree.
    Known(&'t ReftableStack),
    /// A stack of another worktree.
    Other(Box<ReftableStack>),
}

impl Deref for StackOf<'_> {
    type Target = ReftableStack;

    fn deref(&self) -> &ReftableStack {
        match self {
            StackOf::Known(stack) => stack,
            StackOf::Other(stack) => stack,
        }
    }
}

impl RefStacks {
    pub(super) fn new(
        layout: &RepositoryLayout,
        config: &Config,
        environment: &Environment,
    ) -> Result<RefStacks> {
        Ok(RefStacks {
            git_dir: layout.git_dir.clone(),
            common_dir: layout.common_dir.clone(),
            object_hash: layout.format.object_hash,
            options: options(config, environment)?,
            shared: OnceLock::new(),
            own: OnceLock::new(),
        })
    }

    /// Returns whether this is a linked worktree, which has its own stack.
    pub(super) fn is_linked(&self) -> bool {
        self.git_dir != self.common_dir
    }

    /// Returns the stack in `directory`: the common directory, or the Git directory of a worktree.
    /// A stack of this worktree is opened once; a stack of another worktree is opened by each call.
    ///
    /// # Errors
    /// Fails if `tables.list` or a table cannot be read or is malformed.
    pub fn stack(&self, directory: &Path) -> Result<StackOf<'_>> {
        if directory == self.common_dir {
            return Ok(StackOf::Known(self.open_once(&self.shared, directory)?));
        }
        if directory == self.git_dir {
            return Ok(StackOf::Known(self.open_once(&self.own, directory)?));
        }
        Ok(StackOf::Other(Box::new(self.open(directory)?)))
    }

    /// Returns the stack that all worktrees share.
    pub(super) fn shared(&self) -> Result<&ReftableStack> {
        self.open_once(&self.shared, &self.common_dir)
    }

    /// Returns the stack of this worktree; in the main worktree, the shared stack.
    pub(super) fn own(&self) -> Result<&ReftableStack> {
        match self.is_linked() {
            true => self.open_once(&self.own, &self.git_dir),
            false => self.shared(),
        }
    }

    fn open_once<'t>(
        &self,
        slot: &'t OnceLock<ReftableStack>,
        directory: &Path,
    ) -> Result<&'t ReftableStack> {
        if let Some(stack) = slot.get() {
            return Ok(stack);
        }
        let stack = self.open(directory)?;
        Ok(slot.get_or_init(|| stack))
    }

    fn open(&self, directory: &Path) -> Result<ReftableStack> {
        ReftableStack::open(directory.join(DIRECTORY), self.object_hash, self.options)
            .map_err(from_tables)
    }

    pub(super) fn snapshot(&self, directory: &Path) -> Result<StackSnapshot> {
        self.stack(directory)?.snapshot().map_err(from_tables)
    }

    /// Calls `visit` for each ref in the stack in `directory` that points to an object.
    ///
    /// # Errors
    /// Fails if a table cannot be read or is malformed.
    pub fn each_object(
        &self,
        directory: &Path,
        mut visit: impl FnMut(&BStr, ObjectId),
    ) -> Result<()> {
        let snapshot = self.snapshot(directory)?;
        let mut records = snapshot.refs().map_err(from_tables)?;
        while let Some(record) = records.next().map_err(from_tables)? {
            if let Some(id) = record.value.object() {
                visit(record.name, id.to_owned());
            }
        }
        Ok(())
    }

    /// Compacts the stack of this worktree. Merges only the tables that are necessary to keep their
    /// number small; with `all`, merges all tables, and retries while another process holds a lock.
    ///
    /// # Errors
    /// Fails if the lock timeout expires, or if a table cannot be read or written. The messages are
    /// Git's.
    pub(super) fn compact(&self, all: bool) -> Result<()> {
        let stack = self.own()?;
        let deadline = Instant::now() + PATIENCE;
        loop {
            let done = match all {
                true => stack.compact_all(None),
                false => stack.auto_compact(),
            };
            let Err(error) = done else {
                return Ok(());
            };
            let is_disturbed = matches!(
                error.kind(),
                reftable::ErrorKind::Locked | reftable::ErrorKind::Outdated
            );
            if is_disturbed && !all {
                return Ok(());
            }
            if !is_disturbed || Instant::now() >= deadline {
                return Err(cannot_compact(error));
            }
            std::thread::sleep(PAUSE);
        }
    }

    /// Returns whether the stack has so many tables that some should be merged.
    pub(super) fn needs_compaction(&self) -> Result<bool> {
        self.own()?.needs_compaction().map_err(from_tables)
    }
}

fn cannot_compact(error: reftable::Error) -> Error {
    let reason = match error.kind() {
        reftable::ErrorKind::Locked | reftable::ErrorKind::Outdated => "data is locked",
        reftable::ErrorKind::Record => "entry too large",
        _ => return from_tables(error),
    };
    let message = format!("unable to compact stack: {reason}");
    Error::new(from_tables(error).kind(), message)
}

impl References {
    /// Returns the stacks if refs are stored in reftables.
    pub fn tables(&self) -> Option<&RefStacks> {
        self.tables.as_ref()
    }

    pub(super) fn find_in_tables(
        &self,
        tables: &RefStacks,
        name: &BStr,
    ) -> Result<Option<Reference>> {
        let Ok(safe) = RefNameRef::existing(name) else {
            return Ok(None);
        };
        let (directory, rest) = self.base_of(safe);
        if is_file(rest) {
            let contents = loose::read(&self.file_of(safe), name, self.object_hash)?;
            let target = contents.map_or(Ok(None), |contents| contents.target(name))?;
            return Ok(target.map(|target| reference(name, target)));
        }
        let snapshot = tables.snapshot(&directory)?;
        let Some(entry) = snapshot.find(rest).map_err(from_tables)? else {
            return Ok(None);
        };
        let peeled = entry.value.target().map(ToOwned::to_owned);
        let target = target_of(name, entry.value)?;
        Ok(target.map(|target| Reference {
            peeled,
            ..reference(name, target)
        }))
    }
}

fn reference(name: &BStr, target: RefTarget) -> Reference {
    Reference {
        name: name.to_owned(),
        target,
        peeled: None,
    }
}

/// Returns the target of ref `name`; `None` for a deletion record.
pub(super) fn target_of(name: &BStr, value: RefValue<'_>) -> Result<Option<RefTarget>> {
    match value {
        RefValue::Deletion => Ok(None),
        RefValue::Symbolic(text) => match RefName::new(text) {
            Ok(target) => Ok(Some(RefTarget::Symbolic(target))),
            Err(_) => Err(super::broken(name)),
        },
        RefValue::Direct(id) | RefValue::Peeled { object: id, .. } => {
            Ok(Some(RefTarget::Object(id.to_owned())))
        }
    }
}

/// Returns whether the ref is a file in every ref storage (`FETCH_HEAD` and `MERGE_HEAD`).
pub(super) fn is_file(name: &BStr) -> bool {
    matches!(name.as_bytes(), b"FETCH_HEAD" | b"MERGE_HEAD")
}

/// Creates the directory of the stack of a new repository or linked worktree, and placeholders for
/// the directories of loose refs.
///
/// # Errors
/// Fails with [`ErrorKind::Io`] if a file or directory cannot be created.
pub fn prepare(own_dir: &Path) -> Result<()> {
    let failed = "could not create directory of";
    for name in [DIRECTORY, "refs"] {
        let directory = own_dir.join(name);
        std::fs::create_dir_all(&directory).context(ErrorKind::Io, failed, &directory)?;
    }
    let stub = own_dir.join("refs/heads");
    std::fs::write(&stub, HEADS_STUB).context(ErrorKind::Io, "could not write", &stub)
}

/// Returns the branch to which `HEAD` of the repository or worktree at `git_dir` points. The
/// configuration of the repository has not been read, so both hash functions are tried. Returns
/// `None` if `HEAD` is detached or the tables cannot be read. Costs opening the stack.
pub fn branch_of(git_dir: &Path) -> Option<BString> {
    [Kind::Sha1, Kind::Sha256].into_iter().find_map(|kind| {
        let directory = git_dir.join(DIRECTORY);
        let stack = ReftableStack::open(directory, kind, StackOptions::default()).ok()?;
        let snapshot = stack.last_snapshot();
        let entry = snapshot.find("HEAD").ok()??;
        match target_of("HEAD".into(), entry.value).ok()? {
            Some(RefTarget::Symbolic(name)) => Some(name.into_inner()),
            _ => None,
        }
    })
}

/// Reads the options of stacks from the configuration (`reftable.*`).
pub(super) fn options(config: &Config, environment: &Environment) -> Result<StackOptions> {
    let number = |key: &str| -> Result<Option<u64>> {
        let found = config.i64(key)?;
        Ok(found.map(|found| u64::try_from(found).unwrap_or(u64::MAX)))
    };
    let mut write = TableWriteOptions::default();
    if let Some(size) = number("reftable.blocksize")? {
        let too_large = "reftable block size cannot exceed 16MB";
        let size = u32::try_from(size).ok().filter(|size| *size <= 0x00ff_ffff);
        write.block_size = size.ok_or_else(|| Error::new(ErrorKind::ConfigValue, too_large))?;
    }
    if let Some(interval) = number("reftable.restartinterval")? {
        let too_large = "reftable block size cannot exceed 65535";
        write.restart_interval =
            u16::try_from(interval).map_err(|_| Error::new(ErrorKind::ConfigValue, too_large))?;
    }
    write.index_objects = config.bool_or("reftable.indexobjects", true)?;
    let mut options = StackOptions {
        write,
        sync: Fsync::configured(config)?.of(Component::Reference),
        records_process: config.records_lock_holders(),
        ..StackOptions::default()
    };
    if let Some(factor) = number("reftable.geometricfactor")? {
        let too_large = "reftable geometric factor cannot exceed 255";
        options.geometric_factor =
            u8::try_from(factor).map_err(|_| Error::new(ErrorKind::ConfigValue, too_large))?;
    }
    // The default timeout is that of the configuration lock, because one lock protects all refs of
    // the stack.
    options.lock_timeout = match config.i64("reftable.locktimeout")? {
        Some(timeout) => u64::try_from(timeout).map_or(Duration::MAX / 4, Duration::from_millis),
        None => PATIENCE,
    };
    options.auto_compact = environment.boolean("GIT_TEST_REFTABLE_AUTOCOMPACTION", true)?;
    let sharing = shared::configured(config)?;
    if sharing != SharedPermissions::Umask {
        let umask = pronto_io::process::umask().unwrap_or(USUAL_UMASK);
        options.file_mode = sharing.adjust(0o666 & !umask, false);
    }
    Ok(options)
}

/// Converts an error of the reftable module to an error of this crate.
#[cold]
pub fn from_tables(error: reftable::Error) -> Error {
    error.map_kind(|kind| match kind {
        reftable::ErrorKind::Locked => ErrorKind::Locked,
        reftable::ErrorKind::Io => ErrorKind::Io,
        reftable::ErrorKind::Corrupt | reftable::ErrorKind::Missing => ErrorKind::Corrupt,
        _ => ErrorKind::Reference,
    })
}
