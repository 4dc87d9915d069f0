//! The index of a repository: read as stored or with an entry for each file, and written in the
//! configured form.

use std::borrow::Cow;
use std::collections::HashSet;

use bstr::{BStr, BString, ByteSlice};
use pronto_hash::oid;
use pronto_index::{Content, Flags, Index, Lock, OpenOptions, Writer};
use pronto_io::dir::Directory;
use pronto_io::error::IoContext;
use pronto_odb::{PACKED_FROM, Store};
use pronto_worktree::Objects;
use pronto_worktree::diff::{Announced, Difference, tree_and_index};
use pronto_worktree::sparse::{Sparse, expand};
use pronto_worktree::trees;

use crate::durability::Component;
use crate::status::{Pathspec, read_tree};
use crate::worktree::{from_index, from_worktree};
use crate::{ErrorKind, Repository, Result};

impl Repository {
    /// Takes the lock of the index. The index will be flushed as `core.fsync` requires.
    ///
    /// # Errors
    /// Another process holds the lock, or the file cannot be created.
    pub(crate) fn lock_index(&self) -> Result<Lock> {
        let lock = Lock::acquire(&self.index_path()).map_err(from_index)?;
        Ok(lock.waits(self.fsync()?.of(Component::Index)))
    }

    /// The index of this worktree with an entry for each file; an empty one if there is none yet.
    /// Of a sparse index the trees are read that entries stand for.
    ///
    /// # Errors
    /// It cannot be read, or such a tree cannot.
    pub fn index(&self) -> Result<Index> {
        let index = self.sparse_index()?;
        self.expand_index(index)
    }

    /// Returns the index as stored, in which entries may stand for whole directories
    /// ([`is_sparse`](Index::is_sparse)). With `index.sparse=false` there are none, as in Git.
    ///
    /// # Errors
    /// It cannot be read.
    pub fn sparse_index(&self) -> Result<Index> {
        let options = OpenOptions {
            shared_directory: Some(self.git_dir().to_owned()),
        };
        let path = self.index_path();
        let index = Index::open_with(&path, self.object_hash(), &options).map_err(from_index)?;
        self.mark_shared_as_used(&index);
        if index.is_sparse() && !self.wants_sparse_index()? {
            return self.expand_index(index);
        }
        Ok(index)
    }

    /// Like [`sparse_index`](Self::sparse_index), to compare files with: with an entry for each file
    /// if one of the directories for which one entry stands is there.
    ///
    /// # Errors
    /// It cannot be read, or a tree cannot.
    pub(crate) fn index_for_looking(&self) -> Result<Index> {
        let index = self.sparse_index()?;
        match self.has_present_directory(&index)? {
            true => self.expand_index(index),
            false => Ok(index),
        }
    }

    /// The index for a change, expanded in the directories for which `is_near` returns true. It
    /// gets their paths with a slash at the end.
    ///
    /// # Errors
    /// It cannot be read, or a tree cannot.
    pub(crate) fn index_near(&self, is_near: &mut dyn FnMut(&BStr) -> bool) -> Result<Index> {
        let index = self.index_for_looking()?;
        let mut directories = index.iter().filter(|entry| entry.is_sparse_directory());
        let is_any = directories.any(|entry| is_near(entry.path));
        drop(directories);
        match is_any {
            true => self.expand_part(index, is_near),
            false => Ok(index),
        }
    }

    /// Whether the index has a file, a link or a submodule at `path`.
    ///
    /// # Errors
    /// As for [`index`](Self::index).
    pub fn is_file_in_index(&self, path: &BStr) -> Result<bool> {
        let index = self.sparse_index()?;
        let (index, found) = self.find_expanding(index, path, 0)?;
        Ok(found.is_some_and(|at| !index.entry(at).is_sparse_directory()))
    }

    /// The index, to be changed where it differs from `tree`: with an entry for each file of the
    /// directories that do.
    ///
    /// # Errors
    /// It cannot be read, or a tree cannot.
    pub(crate) fn index_near_differences(&self, tree: &oid) -> Result<Index> {
        let index = self.index_for_looking()?;
        if !index.is_sparse() {
            return Ok(index);
        }
        let mut near: HashSet<BString> = HashSet::new();
        for difference in self.differences(tree, &index)? {
            let mut path = difference.path;
            let at = index.find(path.as_bstr(), 0).unwrap_or_else(|at| at);
            near.extend(stood_for(&index, at, path.as_bstr()).map(ToOwned::to_owned));
            // A file in place of a directory.
            path.push(b'/');
            near.insert(path);
        }
        self.expand_part(index, &mut |directory| near.contains(directory))
    }

    /// Where `index` differs from `tree`.
    pub(crate) fn differences(&self, tree: &oid, index: &Index) -> Result<Vec<Difference>> {
        let objects = self.objects()?;
        let cached = index.cached_tree();
        let mut read = |id: &oid, content: &mut Vec<u8>| read_tree(objects, id, content);
        let all = Pathspec::default();
        let how = (&all, Announced::Absent);
        tree_and_index(Some(tree), (index, cached.as_ref()), how, &mut read)
            .map(|found| found.differences)
            .map_err(from_worktree)
    }

    /// The position of the entry of `path`; the index is expanded if that may be in a directory
    /// for which one entry stands.
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

    /// `index` with an entry for each file; nothing is done where there is one already.
    ///
    /// # Errors
    /// A tree cannot be read.
    pub fn expand_index(&self, index: Index) -> Result<Index> {
        if !index.is_sparse() {
            return Ok(index);
        }
        self.expand_part(index, &mut |_| true)
    }

    /// Expands `index` in the directories for which `wanted` returns true. It gets their paths with
    /// a slash at the end.
    pub(crate) fn expand_part(
        &self,
        index: Index,
        wanted: &mut dyn FnMut(&BStr) -> bool,
    ) -> Result<Index> {
        let from: (&dyn Objects, _) = (self.objects()?, self.protection()?);
        expand(index, from, wanted).map_err(from_worktree)
    }

    /// Whether one of the directories for which one entry of `index` stands is there in spite of
    /// all. One `lstat` for each.
    pub(crate) fn has_present_directory(&self, index: &Index) -> Result<bool> {
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

    /// Returns `index` without the skip-worktree bits of files that are present. They count like
    /// others, as in Git, unless `sparse.expectFilesOutsideOfPatterns` is set. Costs one `lstat`
    /// for each entry with the bit, except below missing directories, and one call to open each
    /// directory. If there is such a file, all entries are copied.
    ///
    /// # Errors
    /// The worktree or the configuration cannot be read.
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

    /// Whether the index is to have entries for whole directories where the patterns allow it
    /// (`index.sparse`).
    pub(crate) fn wants_sparse_index(&self) -> Result<bool> {
        let config = self.config();
        Ok(config.bool_or("index.sparse", false)?
            && config.bool_or("core.sparsecheckout", false)?
            && config.bool_or("core.sparsecheckoutcone", false)?)
    }

    /// The bytes of the index that holds `content`, split as it was or is configured, or in
    /// sparse form if that is configured and the patterns are a cone. `sparse` are the patterns if
    /// they have been read already.
    ///
    /// # Errors
    /// It cannot be encoded, or a tree that is to stand for a directory cannot be written.
    pub(crate) fn encode_index(
        &self,
        writer: &Writer,
        content: Content<'_>,
        sparse: Option<&Sparse>,
    ) -> Result<Vec<u8>> {
        if self.is_to_be_split(writer, &content) {
            return self.encode_split(writer, &content);
        }
        let is_unmerged = content.entries.iter().any(|entry| entry.stage() != 0);
        if content.entries.is_empty() || is_unmerged || !self.wants_sparse_index()? {
            return writer.encode(&content).map_err(from_index);
        }
        let read = match sparse {
            Some(_) => None,
            None => self.sparse_checkout()?,
        };
        let Some(sparse) = sparse.or(read.as_ref()).filter(|sparse| sparse.is_cone()) else {
            return writer.encode(&content).map_err(from_index);
        };
        if content.sparse && !may_collapse(&content, sparse) {
            return writer.encode(&content).map_err(from_index);
        }
        let (known, made);
        let mut content = content;
        let mut cover = |directory: &BStr| sparse.cover(directory);
        known = content.tree.take().map(Cow::into_owned);
        let mut is_complete = false;
        if let Some(known) = &known {
            (content, is_complete) = content.collapse(known, &mut cover);
        }
        if !is_complete {
            made = self.trees_of(&content)?;
            if let Some(made) = &made {
                (content, _) = content.collapse(made, &mut cover);
            }
        }
        writer.encode(&content).map_err(from_index)
    }

    /// The trees that `content` makes, written; `None` if it makes none.
    fn trees_of(&self, content: &Content<'_>) -> Result<Option<pronto_index::CachedTree>> {
        let bytes = Writer {
            skip_hash: true,
            ..Writer::default()
        }
        .encode(content)
        .map_err(from_index)?;
        let index = Index::from_bytes(bytes, self.object_hash()).map_err(from_index)?;
        if !trees::faults(&index).is_empty() {
            return Ok(None);
        }
        let made = self.new_trees(&index, index.cached_tree().as_ref(), (true, PACKED_FROM))?;
        made.map(|(_, trees)| Some(trees)).map_err(from_worktree)
    }
}

/// Whether there are entries for files for whose directories one might stand.
fn may_collapse(content: &Content<'_>, sparse: &Sparse) -> bool {
    let mut matcher = sparse.matcher();
    content.entries.iter().any(|entry| {
        entry.flags.contains(Flags::SKIP_WORKTREE)
            && !entry.is_sparse_directory()
            && !matcher.includes(entry.path)
    })
}

/// The directory (a slash at its end) of `path`, which would be at `at`, if one entry stands for it.
fn stood_for<'a>(index: &'a Index, at: usize, path: &BStr) -> Option<&'a BStr> {
    let before = index.entry(at.checked_sub(1)?);
    let is_below = path.starts_with(before.path) && path != before.path;
    (is_below && before.is_sparse_directory()).then(|| index.path(at - 1))
}

/// Whether `store` has the object.
pub(crate) fn contains(
    store: &Store,
    id: &oid,
) -> std::result::Result<bool, pronto_worktree::Error> {
    let found = store.contains(id);
    found.map_err(|error| error.map_kind(|_| pronto_worktree::ErrorKind::CorruptObject))
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
        let (directory, name) = crate::add::split(entry.path);
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

/// The topmost part of `directory`, which cannot be opened, for which that is so.
fn missing<'a>(directory: &'a BStr, top: &Directory) -> &'a BStr {
    let ends = directory.find_iter(b"/");
    let mut parts = ends.map(|end| directory[..end].as_bstr());
    parts
        .find(|part| top.open_beneath(part).is_err())
        .unwrap_or(directory)
}
