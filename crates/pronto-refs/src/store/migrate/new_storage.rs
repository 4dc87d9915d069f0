//! Writes the files of the new storage beside the old ones, and moves them to their final paths.

use std::fs;
use std::hash::BuildHasher;
use std::io::{ErrorKind as Io, Write};
use std::os::unix::fs::DirBuilderExt;
use std::path::{Path, PathBuf};

use bstr::ByteSlice;
use pronto_config::durability::Component;
use pronto_config::environment::Environment;
use pronto_config::{ErrorKind, Result, path};
use pronto_io::cleanup::Guard;
use pronto_io::error::IoContext;
use pronto_io::sync::SyncMethod;

use super::super::packed_file;
use super::super::tables::{self, HEAD_STUB, from_tables};
use super::super::{RefHost, RefTarget, References};
use super::content::{MigratedRefs, root_names};
use crate::reftable::{Additions, LogRecord, RefRecord, RefValue, ReftableStack, UpdateIndexRange};

/// The temporary directory in which the new storage is written.
#[derive(Debug)]
pub(super) struct NewStorage {
    directory: PathBuf,
    guard: Guard,
}

impl NewStorage {
    /// Creates the directory, which is removed on drop unless it is [kept](Self::keep).
    pub(super) fn create(refs: &References) -> Result<NewStorage> {
        let number = std::hash::RandomState::new().hash_one(0) & 0x00ff_ffff;
        let directory = refs.common_dir.join(format!("ref_migration.{number:06x}"));
        let created = fs::DirBuilder::new().mode(0o700).create(&directory);
        created.context(
            ErrorKind::Io,
            "cannot create migration directory",
            &directory,
        )?;
        let guard = Guard::new(&directory);
        Ok(NewStorage { directory, guard })
    }

    /// Keeps the directory and returns its path.
    pub(super) fn keep(self) -> PathBuf {
        self.guard.keep();
        self.directory
    }

    /// Writes one reftable with all refs and reflogs.
    pub(super) fn write_tables(&self, host: &dyn RefHost, content: &MigratedRefs) -> Result<()> {
        tables::prepare(&self.directory)?;
        self.write(host, Path::new("HEAD"), HEAD_STUB)?;
        // The environment is empty, because it could only turn off compaction, which a single table
        // does not need.
        let options = tables::options(host.config(), &Environment::default())?;
        let directory = self.directory.join(tables::DIRECTORY);
        let stack = ReftableStack::open(directory, host.refs().object_hash, options);
        let stack = stack.map_err(from_tables)?;
        let mut transaction = stack.begin().map_err(from_tables)?;
        let first = transaction.next_update_index();
        let mut additions = Additions::at(first);
        additions.refs = (content.refs.iter())
            .map(|found| RefRecord {
                name: found.name.as_bstr(),
                update_index: first,
                value: match (&found.target, &found.peeled) {
                    (RefTarget::Symbolic(to), _) => RefValue::Symbolic(to.as_bstr()),
                    (RefTarget::Object(object), Some(target)) => {
                        RefValue::Peeled { object, target }
                    }
                    (RefTarget::Object(id), None) => RefValue::Direct(id),
                },
            })
            .collect();
        let entries = content.logs.iter().flat_map(|log| {
            let name = log.name.as_bstr();
            log.entries.iter().map(move |entry| (name, entry))
        });
        // Each entry has its own update index, so that the entries keep their order.
        additions.logs = (first..)
            .zip(entries)
            .map(|(update_index, (name, entry))| LogRecord {
                name,
                update_index,
                entry: Some(entry.as_entry()),
            })
            .collect();
        let last = additions
            .logs
            .last()
            .map_or(first, |last| last.update_index);
        additions.limits = UpdateIndexRange {
            min: first,
            max: last,
        };
        transaction.add(&mut additions).map_err(from_tables)?;
        transaction.commit().map_err(from_tables)
    }

    /// Writes `packed-refs`, the files of symrefs and root refs, and reflogs.
    pub(super) fn write_files(&self, host: &dyn RefHost, content: &MigratedRefs) -> Result<()> {
        for name in ["refs/heads", "refs/tags"] {
            let directory = self.directory.join(name);
            let made = fs::create_dir_all(&directory);
            made.context(ErrorKind::Io, "cannot mkdir", &directory)?;
        }
        let mut packed = Vec::new();
        for found in &content.refs {
            let text = match &found.target {
                RefTarget::Object(id) if found.name.starts_with(b"refs/") => {
                    packed.push((found.name.as_bstr(), *id, found.peeled));
                    continue;
                }
                RefTarget::Object(id) => format!("{id}\n").into_bytes(),
                RefTarget::Symbolic(to) => [b"ref: ", to.as_bytes(), b"\n"].concat(),
            };
            self.write(host, path::borrow(found.name.as_bstr()), &text)?;
        }
        packed.sort_unstable_by_key(|(name, ..)| *name);
        let text = packed_file::whole(packed.into_iter());
        self.write(host, Path::new("packed-refs"), &text)?;
        for log in &content.logs {
            let lines: Vec<_> = log.entries.iter().map(|entry| entry.line()).collect();
            let file = Path::new("logs").join(path::borrow(log.name.as_bstr()));
            self.write(host, &file, &lines.concat())?;
        }
        Ok(())
    }

    fn write(&self, host: &dyn RefHost, name: &Path, text: &[u8]) -> Result<()> {
        let sync: SyncMethod = host.fsync()?.of(Component::Reference);
        let file = self.directory.join(name);
        let failed = "could not write";
        if let Some(parent) = file.parent() {
            fs::create_dir_all(parent).context(ErrorKind::Io, failed, &file)?;
        }
        let mut open = fs::File::create_new(&file).context(ErrorKind::Io, failed, &file)?;
        let written = open.write_all(text).and_then(|()| sync.apply(&open));
        written.context(ErrorKind::Io, failed, &file)
    }

    /// Moves the tables to their final directory, which no process reads yet.
    pub(super) fn place_tables(&self, refs: &References) -> Result<()> {
        remove(&refs.common_dir.join(tables::DIRECTORY))?;
        self.put(refs, tables::DIRECTORY)
    }

    /// Replaces the files of refs, which no process reads any more, with the placeholder files of a
    /// repository with reftables.
    pub(super) fn replace_files(&self, refs: &References, content: &MigratedRefs) -> Result<()> {
        self.put(refs, "HEAD")?;
        remove(&refs.common_dir.join("packed-refs"))?;
        let roots = content.refs.iter().map(|found| found.name.as_bstr());
        for name in roots.filter(|name| !name.starts_with(b"refs/") && *name != "HEAD") {
            remove(&refs.common_dir.join(path::borrow(name)))?;
        }
        remove(&refs.common_dir.join("logs"))?;
        // The directory `refs` stays, because Git does not recognise a repository without it.
        remove_below(&refs.common_dir.join("refs"))?;
        self.put(refs, "refs/heads")
    }

    /// Moves the files of refs and reflogs to their final paths. No process reads them yet, except
    /// for `HEAD`, whose content does not matter.
    pub(super) fn place_files(&self, refs: &References) -> Result<()> {
        for name in root_names(refs)?.iter().filter(|name| *name != "HEAD") {
            remove(&refs.common_dir.join(path::borrow(name.as_bstr())))?;
        }
        remove(&refs.common_dir.join("logs"))?;
        remove_below(&refs.common_dir.join("refs"))?;
        for name in names_in(&self.directory.join("refs"))? {
            self.put(refs, Path::new("refs").join(name))?;
        }
        for name in names_in(&self.directory)? {
            if name != Path::new("refs") {
                self.put(refs, name)?;
            }
        }
        Ok(())
    }

    fn put(&self, refs: &References, name: impl AsRef<Path>) -> Result<()> {
        let (from, to) = (self.directory.join(&name), refs.common_dir.join(&name));
        fs::rename(from, &to).context(ErrorKind::Io, "could not link file", &to)
    }
}

/// Removes a file or a directory tree. A missing path is not an error.
pub(super) fn remove(path: &Path) -> Result<()> {
    let removed = match path.symlink_metadata() {
        Ok(found) if found.is_dir() => fs::remove_dir_all(path),
        Ok(_) => fs::remove_file(path),
        Err(error) => Err(error),
    };
    match removed {
        Err(error) if error.kind() == Io::NotFound => Ok(()),
        removed => removed.context(ErrorKind::Io, "could not remove", path),
    }
}

fn remove_below(directory: &Path) -> Result<()> {
    let mut names = names_in(directory)?.into_iter();
    names.try_for_each(|name| remove(&directory.join(name)))
}

/// Returns the names of the entries of `directory`.
fn names_in(directory: &Path) -> Result<Vec<PathBuf>> {
    let failed = "cannot read directory";
    let entries = fs::read_dir(directory).context(ErrorKind::Io, failed, directory)?;
    let names = entries.map(|entry| entry.map(|entry| entry.file_name().into()));
    names
        .collect::<std::io::Result<_>>()
        .context(ErrorKind::Io, failed, directory)
}
