//! The roots of reachability: refs, reflogs, indexes and operations in progress of all worktrees. Files
//! that are unchanged since the last reading are not read again.

use std::collections::HashMap;
use std::fs::Metadata;
use std::ops::ControlFlow;
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};

use bstr::ByteSlice as _;
use pronto_hash::ObjectId;
use pronto_index::{Index, mode};
use pronto_repository::errors::from_index;
use pronto_repository::in_progress::OBJECT_FILES;
use pronto_repository::objects::from_odb;
use pronto_repository::refs::tables::{self, RefStacks};
use pronto_repository::refs::{BrokenRef, LogLine};
use pronto_repository::{Error, ErrorKind, Repository, Result};

use crate::name_files::{files_below, git_directories, is_missing, unreadable};

/// The file that changes with each change of a reftable stack.
const TABLES_LIST: &str = "reftable/tables.list";

/// The roots that were found in one reading.
#[derive(Debug, Default)]
pub(super) struct TipSnapshot {
    /// Objects that must exist with all objects reachable from them.
    pub(super) strict: Vec<ObjectId>,
    /// Objects that may be missing or incomplete.
    pub(super) lenient: Vec<ObjectId>,
    /// Staged blobs, which reference no objects and need not exist.
    pub(super) blobs: Vec<ObjectId>,
}

pub(super) struct TipReader<'a> {
    repository: &'a Repository,
    stamps: HashMap<PathBuf, TipFileStamp>,
}

/// The identity of a version of a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct TipFileStamp {
    inode: u64,
    len: u64,
    modified: (i64, i64),
    changed: (i64, i64),
}

impl TipFileStamp {
    fn of(found: &Metadata) -> TipFileStamp {
        TipFileStamp {
            inode: found.ino(),
            len: found.len(),
            modified: (found.mtime(), found.mtime_nsec()),
            changed: (found.ctime(), found.ctime_nsec()),
        }
    }
}

impl<'a> TipReader<'a> {
    pub(super) fn new(repository: &'a Repository) -> TipReader<'a> {
        TipReader {
            repository,
            stamps: HashMap::new(),
        }
    }

    /// # Errors
    /// Fails with [`ErrorKind::Reference`] if a ref is broken, or if a file cannot be read.
    pub(super) fn look(&mut self) -> Result<TipSnapshot> {
        let mut found = TipSnapshot::default();
        let repository = self.repository;
        found.strict = repository.work_tree_heads()?;
        repository.refs().for_each_or_broken("refs/", |reference| {
            match reference {
                Ok(reference) => found.strict.push(reference.id),
                Err(BrokenRef::Dangling(_)) => {}
                Err(BrokenRef::Contents(name)) => {
                    let message = format!("unable to parse object: {name}");
                    return Err(Error::new(ErrorKind::Reference, message));
                }
            }
            Ok(ControlFlow::Continue(()))
        })?;
        let own = repository.index_path();
        let mut indexes = vec![own];
        for directory in git_directories(repository)? {
            for name in OBJECT_FILES {
                self.pseudo(&directory.join(name), &mut found)?;
            }
            if let Some(tables) = repository.refs().tables() {
                self.tables(tables, &directory, &mut found)?;
            } else {
                self.logs(&directory.join("logs"), &mut found)?;
                if directory != repository.common_dir() {
                    self.own_references(&directory.join("refs"), &mut found)?;
                }
            }
            indexes.push(directory.join("index"));
        }
        indexes.sort_unstable();
        indexes.dedup();
        for path in indexes {
            self.index(&path, &mut found)?;
        }
        Ok(found)
    }

    /// Whether the file is there and has changed. One that was written just now is read again,
    /// as clocks tick.
    fn has_changed(&mut self, path: &Path) -> Result<bool> {
        let found = match path.metadata() {
            Ok(found) => found,
            Err(error) if is_missing(&error) => return Ok(false),
            Err(error) => return Err(unreadable(path, error)),
        };
        let stamp = TipFileStamp::of(&found);
        let is_settled = (found.modified())
            .is_ok_and(|modified| modified.elapsed().is_ok_and(|age| age.as_secs() >= 3));
        match is_settled {
            true => Ok(self.stamps.insert(path.to_owned(), stamp) != Some(stamp)),
            false => {
                self.stamps.remove(path);
                Ok(true)
            }
        }
    }

    fn content(&self, path: &Path) -> Result<Vec<u8>> {
        match pronto_io::untrusted::content(path) {
            Err(error) if is_missing(&error) => Ok(Vec::new()),
            content => content.map_err(|error| unreadable(path, error)),
        }
    }

    fn pseudo(&mut self, path: &Path, found: &mut TipSnapshot) -> Result<()> {
        if path.is_file() {
            let content = self.content(path)?;
            let ids = content.lines().map(|line| line.trim());
            let ids = ids.filter_map(|line| pronto_hash::parse_hex(line).ok());
            found.lenient.extend(ids);
        }
        Ok(())
    }

    /// Reads the refs of a linked worktree that are not shared.
    fn own_references(&mut self, directory: &Path, found: &mut TipSnapshot) -> Result<()> {
        for path in files_below(directory)? {
            self.pseudo(&path, found)?;
        }
        Ok(())
    }

    /// Reads the per-worktree refs and all reflogs of one reftable stack.
    fn tables(
        &mut self,
        tables: &RefStacks,
        directory: &Path,
        found: &mut TipSnapshot,
    ) -> Result<()> {
        tables.each_object(directory, |name, id| {
            if !name.starts_with(b"refs/") || directory != self.repository.common_dir() {
                found.lenient.push(id);
            }
        })?;
        if !self.has_changed(&directory.join(TABLES_LIST))? {
            return Ok(());
        }
        let store = self.repository.objects()?;
        let mut last = None;
        tables::log_ids(tables, directory, |_, id| {
            if !id.is_null() && last != Some(id) {
                last = Some(id);
                if store.contains(&id).map_err(from_odb)? {
                    found.strict.push(id);
                }
            }
            Ok(())
        })
    }

    fn logs(&mut self, directory: &Path, found: &mut TipSnapshot) -> Result<()> {
        let store = self.repository.objects()?;
        for path in files_below(directory)? {
            if !self.has_changed(&path)? {
                continue;
            }
            let content = self.content(&path)?;
            let mut last = None;
            for line in content.lines().filter_map(LogLine::parse) {
                for id in [line.old, line.new] {
                    if id.is_null() || last == Some(id) {
                        continue;
                    }
                    last = Some(id);
                    // A missing object cannot be kept. An existing object should be kept with all
                    // objects reachable from it.
                    if store.contains(&id).map_err(from_odb)? {
                        found.strict.push(id);
                    }
                }
            }
        }
        Ok(())
    }

    fn index(&mut self, path: &Path, found: &mut TipSnapshot) -> Result<()> {
        if !self.has_changed(path)? {
            return Ok(());
        }
        let index = Index::open(path, self.repository.object_hash()).map_err(from_index)?;
        for entry in index.iter() {
            if entry.is_sparse_directory() {
                found.lenient.push(entry.id.to_owned());
            } else if entry.mode != mode::GITLINK {
                found.blobs.push(entry.id.to_owned());
            }
        }
        if let Some(undo) = index.resolve_undo().map_err(from_index)? {
            let stages = undo.paths.iter().flat_map(|path| path.stages);
            found.blobs.extend(stages.flatten().map(|(_, id)| id));
        }
        if let Some(cached) = index.cached_tree() {
            let mut directories = vec![cached.root()];
            while let Some(directory) = directories.pop() {
                match directory.id() {
                    Some(id) => {
                        found.lenient.push(id.to_owned());
                        directories.extend(directory.children());
                    }
                    None => directories.extend(directory.children()),
                }
            }
        }
        Ok(())
    }
}
