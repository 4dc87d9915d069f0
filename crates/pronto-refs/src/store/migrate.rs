//! Migrates all refs and reflogs of a repository to the other ref storage (`git refs migrate`).
//!
//! The new storage is written beside the old one. The configuration file, which names the storage,
//! is replaced atomically: a process that is killed before the replacement leaves the old storage
//! in use, and a process that is killed later leaves the new one in use.

mod content;
mod new_storage;

use std::path::{Path, PathBuf};

use bstr::{BStr, BString};
use pronto_config::config::Config;
use pronto_config::config::edit::{self, Document};
use pronto_config::format::{EXTENSIONS_OF_VERSION_ONE, RefStorage};
use pronto_config::lock::{Lock, Marking, PATIENCE};
use pronto_config::shared::{self, SharedPermissions};
use pronto_config::{Error, ErrorKind, Result, path};
use pronto_hash::Kind;

use super::packed_file::PackedLock;
use super::patience::patience;
use super::tables::from_tables;
use super::{RefHost, RefNameRef, References};
use crate::reftable;
use content::MigratedRefs;
use new_storage::NewStorage;

/// The largest number of ref locks that are marked with their holder; each marked lock keeps a file
/// open.
const MARKED: usize = 64;

/// Options of `git refs migrate`.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct MigrateOptions {
    /// The new ref storage (`--ref-format`).
    pub storage: RefStorage,
    /// Migrate reflogs, too (`--no-reflog` turns this off).
    pub reflogs: bool,
    /// Write the new storage beside the old one, and do not replace the old one (`--dry-run`).
    pub dry_run: bool,
}

impl MigrateOptions {
    /// Returns the options to migrate refs and reflogs to `storage`.
    pub fn new(storage: RefStorage) -> Self {
        MigrateOptions {
            storage,
            reflogs: true,
            dry_run: false,
        }
    }
}

/// The result of a migration.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct MigrateReport {
    /// The number of migrated refs.
    pub references: usize,
    /// The directory of the new storage after a dry run.
    pub directory: Option<PathBuf>,
}

/// The locks that prevent other processes from changing the old storage.
#[derive(Debug)]
enum StorageLocks<'r> {
    Tables {
        _transaction: reftable::StackTransaction<'r>,
    },
    Files {
        _packed: PackedLock,
        _refs: Vec<Lock>,
        /// The names of the loose refs at the time of locking.
        names: Vec<BString>,
    },
}

impl dyn RefHost + '_ {
    /// Migrates refs, symrefs, pseudo-refs and reflogs to another storage, as `git refs migrate`
    /// does. `FETCH_HEAD` and `MERGE_HEAD` stay files. The caller must open the repository again
    /// afterwards.
    ///
    /// A process that is killed leaves either the old or the new storage complete. It may also
    /// leave files of the other storage, which the next migration replaces.
    ///
    /// Locks `objects/maintenance`, and either `packed-refs`, `HEAD` and each loose ref, or the
    /// list of reftables. A process that opened the repository before the migration sees no refs
    /// afterwards.
    ///
    /// Costs a read of each ref and each reflog, and memory for all of them.
    ///
    /// # Errors
    /// Fails with [`ErrorKind::InvalidInput`] if the repository already has this storage or has
    /// linked worktrees; with [`ErrorKind::Unsupported`] if there are broken refs, a hook
    /// `reference-transaction`, shared permissions or symbolic links; with [`ErrorKind::Locked`] if
    /// another process changes refs. In these cases, the old storage is unchanged. An error while
    /// the old files are removed is reported after the migration has taken effect.
    pub fn migrate_refs(&self, options: &MigrateOptions) -> Result<MigrateReport> {
        let refs = self.refs();
        refs.check_migration(options)?;
        self.refuse_unusual()?;
        self.begin_writing()?;
        let _maintenance = lock_maintenance(&refs.common_dir, self.config())?;
        let held = self.lock_storage()?;
        let content = MigratedRefs::read(self, options.reflogs)?;
        let report = MigrateReport {
            references: content.refs.len(),
            directory: None,
        };
        let new = NewStorage::create(refs)?;
        match options.storage {
            RefStorage::Reftable => new.write_tables(self, &content)?,
            RefStorage::Files => new.write_files(self, &content)?,
        }
        if options.dry_run {
            return Ok(MigrateReport {
                directory: Some(new.keep()),
                ..report
            });
        }
        held.check(refs)?;
        match options.storage {
            RefStorage::Reftable => {
                new.place_tables(refs)?;
                set_format(refs, options.storage, self.config())?;
                new.replace_files(refs, &content)?;
            }
            RefStorage::Files => {
                new.place_files(refs)?;
                set_format(refs, options.storage, self.config())?;
                new_storage::remove(&refs.common_dir.join(super::tables::DIRECTORY))?;
            }
        }
        drop(held);
        Ok(report)
    }

    /// Fails for repositories with features that the migration does not support.
    fn refuse_unusual(&self) -> Result<()> {
        let refs = self.refs();
        let unsupported = |what: &str| Err(Error::new(ErrorKind::Unsupported, what));
        if self.has_hook() {
            return unsupported(
                "migrating refs with a reference-transaction hook is not implemented natively",
            );
        }
        if shared::configured(self.config())? != SharedPermissions::Umask {
            return unsupported(
                "migrating refs with core.sharedRepository is not implemented natively",
            );
        }
        let names = ["HEAD", "packed-refs", "refs", "logs", "reftable", "config"];
        if names
            .iter()
            .any(|name| refs.common_dir.join(name).is_symlink())
        {
            return unsupported(
                "migrating refs where HEAD, packed-refs, refs or logs is a symbolic link is not \
                 implemented natively",
            );
        }
        Ok(())
    }

    /// Takes all locks of the current storage.
    fn lock_storage(&self) -> Result<StorageLocks<'_>> {
        let refs = self.refs();
        if let Some(tables) = refs.tables() {
            let transaction = tables.shared()?.begin().map_err(from_tables)?;
            return Ok(StorageLocks::Tables {
                _transaction: transaction,
            });
        }
        let packed = PackedLock::acquire(self)?;
        let names = refs.loose_names("refs/".into());
        let roots = content::root_names(refs)?;
        let patience = patience(self.config())?;
        let mut locks = Vec::new();
        for name in roots.iter().chain(&names) {
            let Ok(safe) = RefNameRef::existing(name.as_ref()) else {
                return Err(content::cannot_migrate(name.as_ref()));
            };
            let marking = match locks.len() < MARKED {
                true => Marking::Marked,
                false => Marking::Plain,
            };
            let lock = Lock::acquire_as(refs.file_of(safe), marking, patience)?;
            let mut lock = lock.recorded(self.config());
            lock.close();
            locks.push(lock);
        }
        Ok(StorageLocks::Files {
            _packed: packed,
            _refs: locks,
            names,
        })
    }
}

impl StorageLocks<'_> {
    /// Checks that no ref was created before all locks were taken.
    fn check(&self, refs: &References) -> Result<()> {
        match self {
            StorageLocks::Files { names, .. } if *names != refs.loose_names("refs/".into()) => {
                let message = "refs changed during the migration; try again";
                Err(Error::new(ErrorKind::Locked, message))
            }
            _ => Ok(()),
        }
    }
}

impl References {
    fn check_migration(&self, options: &MigrateOptions) -> Result<()> {
        let refused = |message: String| Err(Error::new(ErrorKind::InvalidInput, message));
        let current = match self.tables {
            Some(_) => RefStorage::Reftable,
            None => RefStorage::Files,
        };
        if options.storage == current {
            let name = current.name();
            return refused(format!("repository already uses '{name}' format"));
        }
        let is_linked = self.git_dir != self.common_dir;
        if is_linked || has_linked_worktrees(&self.common_dir) {
            let message = "migrating repositories with worktrees is not supported yet";
            return refused(message.into());
        }
        Ok(())
    }
}

fn has_linked_worktrees(common_dir: &Path) -> bool {
    let entries = std::fs::read_dir(common_dir.join("worktrees"));
    let mut entries = entries.into_iter().flatten().flatten();
    entries.any(|entry| entry.path().join("gitdir").is_file())
}

/// Takes the lock of maintenance, which deletes objects that no ref leads to.
fn lock_maintenance(common_dir: &Path, config: &Config) -> Result<Option<Lock>> {
    let objects = common_dir.join("objects");
    if !objects.is_dir() {
        return Ok(None);
    }
    let lock = Lock::acquire(objects.join("maintenance"), PATIENCE)?;
    Ok(Some(lock.recorded(config)))
}

/// Names the storage in the configuration file, which is replaced at once.
fn set_format(refs: &References, storage: RefStorage, config: &Config) -> Result<()> {
    let file = refs.common_dir.join("config");
    edit::edit_file(&file, path::as_bytes(&file), config, |document| {
        let key = BStr::new("extensions.refstorage");
        match storage {
            RefStorage::Reftable => set(document, key, storage.name().into())?,
            RefStorage::Files => unset(document, key),
        }
        if refs.object_hash == Kind::Sha1 {
            unset(document, "extensions.objectformat".into());
        }
        let mut extensions = EXTENSIONS_OF_VERSION_ONE.iter();
        let needs_one = extensions.any(|name| has(document, &format!("extensions.{name}")));
        let version = if needs_one { "1" } else { "0" };
        set(
            document,
            "core.repositoryformatversion".into(),
            version.into(),
        )
    })
}

fn set(document: &mut Document, key: &BStr, value: &BStr) -> Result<()> {
    document.set(key, value, false, |_| true).map_err(|_| {
        let message = format!("could not set '{key}' to '{value}'");
        Error::new(ErrorKind::Config, message)
    })
}

fn unset(document: &mut Document, key: &BStr) {
    // An error is ignored, because most repositories do not set this key.
    let _ = document.unset(key, true, |_| true);
}

fn has(document: &Document, key: &str) -> bool {
    let Ok(mut copy) = Document::parse(document.as_bytes().to_vec()) else {
        return false;
    };
    copy.unset(key.into(), true, |_| true).is_ok()
}
