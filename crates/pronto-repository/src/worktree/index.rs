//! Reads the index: as stored, or expanded so that each file has an entry.

use std::fs::{File, FileTimes};
use std::path::Path;
use std::time::{Duration, SystemTime};

use bstr::{BStr, ByteSlice};
use pronto_index::{Flags, Index, OpenOptions, SharedIndex};
use pronto_io::dir::Directory;
use pronto_io::error::IoContext;
use pronto_worktree::sparse::expand;

use crate::errors::{from_index, from_worktree};
use crate::{Error, ErrorKind, Repository, Result, path};

impl Repository {
    /// Returns the index of this worktree, with an entry for each file; an empty index if the file does
    /// not exist. A sparse index is expanded, which reads the trees of its sparse directories.
    ///
    /// # Errors
    /// Fails with [`ErrorKind::Worktree`] or [`ErrorKind::Io`] if the index cannot be read, or
    /// [`ErrorKind::Object`] if a tree cannot be read.
    pub fn index(&self) -> Result<Index> {
        let index = self.sparse_index()?;
        self.expand_index(index)
    }

    /// Returns the index as stored, in which sparse directory entries may stand for whole directories
    /// ([`is_sparse`](Index::is_sparse)). As in Git, the index is expanded if `index.sparse` is off.
    ///
    /// # Errors
    /// Fails with [`ErrorKind::Worktree`] or [`ErrorKind::Io`] if the index cannot be read.
    pub fn sparse_index(&self) -> Result<Index> {
        let mut options = OpenOptions::default();
        options.shared_directory = Some(self.git_dir().to_owned());
        let path = self.index_path();
        let index = Index::open_with(&path, self.object_hash(), &options);
        let index = index.map_err(|error| self.index_error(error))?;
        self.mark_shared_as_used(&index);
        if index.is_sparse() && !self.wants_sparse_index()? {
            return self.expand_index(index);
        }
        Ok(index)
    }

    /// Converts an error of reading the index. As in Git, the messages about a file that is no index begin
    /// with its path in the spelling of the user.
    pub fn index_error(&self, error: pronto_index::Error) -> Error {
        let path = self.index_path();
        let problem = match error.message() {
            "index file smaller than expected" => "index file smaller than expected",
            _ if path.is_dir() => "unable to map index file: No such device",
            _ => return from_index(error),
        };
        let named = self.environment().path("GIT_INDEX_FILE");
        let named = named.map_or_else(|| self.display_path(&path), Path::to_owned);
        let kind = from_index(error).kind();
        Error::new(kind, format!("{}: {problem}", named.display()))
    }

    /// Returns the index as [`sparse_index`](Self::sparse_index) does, for a comparison with files. The
    /// index is expanded if one of its sparse directories exists in the worktree.
    ///
    /// # Errors
    /// As for [`index`](Self::index).
    pub fn index_for_looking(&self) -> Result<Index> {
        let index = self.sparse_index()?;
        match self.has_present_directory(&index)? {
            true => self.expand_index(index),
            false => Ok(index),
        }
    }

    /// Returns the index for a change, expanded in the sparse directories for which `is_near` returns
    /// true. `is_near` gets the path of the directory with a slash at its end.
    ///
    /// # Errors
    /// As for [`index`](Self::index).
    pub fn index_near(&self, is_near: &mut dyn FnMut(&BStr) -> bool) -> Result<Index> {
        let index = self.index_for_looking()?;
        let mut directories = index.iter().filter(|entry| entry.is_sparse_directory());
        let is_any = directories.any(|entry| is_near(entry.path));
        drop(directories);
        match is_any {
            true => self.expand_part(index, is_near),
            false => Ok(index),
        }
    }

    /// Returns whether the index has a file, a symbolic link or a submodule at `path`.
    ///
    /// # Errors
    /// As for [`index`](Self::index).
    pub fn is_file_in_index(&self, path: &BStr) -> Result<bool> {
        let index = self.sparse_index()?;
        let (index, found) = self.find_expanding(index, path, 0)?;
        Ok(found.is_some_and(|at| !index.entry(at).is_sparse_directory()))
    }

    /// Returns the position of the entry for `path`. The index is expanded if the path may be inside a
    /// sparse directory.
    pub(crate) fn find_expanding(
        &self,
        index: Index,
        path: &BStr,
        stage: u8,
    ) -> Result<(Index, Option<usize>)> {
        let index = match index.find(path, stage) {
            Err(at) if stood_for(&index, at, path).is_some() => self.expand_index(index)?,
            _ => index,
        };
        let found = index.find(path, stage).ok();
        Ok((index, found))
    }

    /// Expands `index` so that each file has an entry. Does nothing if the index is not sparse.
    ///
    /// # Errors
    /// Fails with [`ErrorKind::Object`] if a tree cannot be read.
    pub fn expand_index(&self, index: Index) -> Result<Index> {
        if !index.is_sparse() {
            return Ok(index);
        }
        self.expand_part(index, &mut |_| true)
    }

    /// Expands the sparse directories of `index` for which `wanted` returns true. `wanted` gets the
    /// path of the directory with a slash at its end.
    ///
    /// # Errors
    /// Fails with [`ErrorKind::Object`] if a tree cannot be read.
    pub fn expand_part(
        &self,
        index: Index,
        wanted: &mut dyn FnMut(&BStr) -> bool,
    ) -> Result<Index> {
        expand(index, self.objects()?, self.protection()?, wanted).map_err(from_worktree)
    }

    /// Returns whether one of the sparse directories of `index` exists in the worktree. Costs one
    /// `lstat` for each sparse directory.
    ///
    /// # Errors
    /// Fails with [`ErrorKind::NoWorkTree`] if there is no worktree, or [`ErrorKind::Io`] if its top
    /// cannot be opened.
    pub fn has_present_directory(&self, index: &Index) -> Result<bool> {
        if !index.is_sparse() {
            return Ok(false);
        }
        let top = self.require_work_tree()?;
        let top = Directory::open(top).context(ErrorKind::Io, "could not open directory", top)?;
        let mut directories = index.iter().filter(|entry| entry.is_sparse_directory());
        Ok(directories.any(|entry| {
            let path = entry.path.strip_suffix(b"/").unwrap_or(entry.path);
            top.metadata(path).is_ok()
        }))
    }

    /// Returns `index` without the skip-worktree bits of files that exist in the worktree. As in Git,
    /// such files count as present unless `sparse.expectFilesOutsideOfPatterns` is set.
    ///
    /// Costs one `lstat` for each entry with the bit, except below missing directories, and one call to
    /// open each directory. If there is such a file, all entries are copied.
    ///
    /// # Errors
    /// Fails with [`ErrorKind::NoWorkTree`] or [`ErrorKind::Io`] if the worktree cannot be opened, or
    /// [`ErrorKind::ConfigValue`].
    pub fn with_present_files(&self, mut index: Index) -> Result<Index> {
        let config = self.config();
        let expects = config.bool_or("sparse.expectFilesOutsideOfPatterns", false)?;
        if expects || !config.bool_or("core.sparsecheckout", false)? || self.work_tree().is_none() {
            return Ok(index);
        }
        let top = self.require_work_tree()?;
        let top = Directory::open(top).context(ErrorKind::Io, "could not open directory", top)?;
        let present = present_files(&index, &top);
        index.unskip(&present);
        Ok(index)
    }

    /// Returns whether the index should be sparse: `index.sparse`, `core.sparseCheckout` and
    /// `core.sparseCheckoutCone` are set.
    ///
    /// # Errors
    /// Fails with [`ErrorKind::ConfigValue`] if a value is not a boolean.
    pub fn wants_sparse_index(&self) -> Result<bool> {
        let config = self.config();
        Ok(config.bool_or("index.sparse", false)?
            && config.bool_or("core.sparsecheckout", false)?
            && config.bool_or("core.sparsecheckoutcone", false)?)
    }

    /// Marks the shared index of the split index `index` as used, at most once a day. Git removes
    /// unused shared indexes (`splitIndex.sharedIndexExpire`).
    pub(crate) fn mark_shared_as_used(&self, index: &Index) {
        if let Some(id) = index.shared_id() {
            freshen(&SharedIndex::path(self.git_dir(), &id));
        }
    }
}

/// Returns the sparse directory entry (with a slash at its end) that covers `path`, if there is one.
/// `at` is the position at which `path` would be inserted.
pub fn stood_for<'a>(index: &'a Index, at: usize, path: &BStr) -> Option<&'a BStr> {
    let before = index.entry(at.checked_sub(1)?);
    let is_below = path.starts_with(before.path) && path != before.path;
    (is_below && before.is_sparse_directory()).then(|| index.path(at - 1))
}

/// Returns the positions of entries with the skip-worktree bit whose files are present.
fn present_files(index: &Index, top: &Directory) -> Vec<usize> {
    let mut present = Vec::new();
    let mut here: Option<(&BStr, Option<Directory>)> = None;
    let mut at = 0;
    while at < index.len() {
        let entry = index.entry(at);
        let position = at;
        at += 1;
        if !entry.flags.contains(Flags::SKIP_WORKTREE) || entry.is_sparse_directory() {
            continue;
        }
        let (directory, name) = path::split(entry.path);
        let directory = directory.as_bstr();
        if here.as_ref().is_none_or(|(path, _)| *path != directory) {
            here = Some((directory, top.open_beneath(directory).ok()));
        }
        match here.as_ref().and_then(|(_, open)| open.as_ref()) {
            Some(open) if open.metadata(name).is_ok() => present.push(position),
            Some(_) => {}
            None => at = index.below(missing(directory, top)).end.max(at),
        }
    }
    present
}

/// Returns the topmost missing parent of `directory`, which cannot be opened.
fn missing<'a>(directory: &'a BStr, top: &Directory) -> &'a BStr {
    let ends = directory.find_iter(b"/");
    let mut parts = ends.map(|end| directory[..end].as_bstr());
    parts
        .find(|part| top.open_beneath(part).is_err())
        .unwrap_or(directory)
}

/// The age up to which a shared index is not marked as used again.
const FRESH: Duration = Duration::from_secs(24 * 60 * 60);

/// Sets the modification time of the file at `path` to the current time, unless it is less than a day
/// old.
pub fn freshen(path: &Path) {
    let now = SystemTime::now();
    let used = path.metadata().and_then(|metadata| metadata.modified());
    let age = used.map(|used| now.duration_since(used).unwrap_or_default());
    if age.is_ok_and(|age| age > FRESH)
        && let Ok(file) = File::open(path)
    {
        // The file may belong to another user; then its time is unchanged.
        let _ = file.set_times(FileTimes::new().set_modified(now).set_accessed(now));
    }
}
