//! Writes the index in the configured format, and compares it with a tree.

use std::borrow::Cow;
use std::collections::HashSet;

use bstr::{BStr, BString, ByteSlice};
use pronto_diff::Difference;
use pronto_hash::oid;
use pronto_index::{Flags, Index, IndexContent, IndexLock, Writer};
use pronto_odb::PACKED_FROM;
use pronto_worktree::diff::{IntentToAdd, tree_and_index};
use pronto_worktree::pathspec::Pathspec;
use pronto_worktree::sparse::Sparse;
use pronto_worktree::trees;

use crate::durability::Component;
use crate::errors::{from_index, from_worktree};
use crate::tree_objects::{new_trees, read_tree};
use crate::{Repository, Result, split_index};
use pronto_repository::index::stood_for;

/// Locks the index. The new index will be flushed to disk as `core.fsync` requires.
///
/// # Errors
/// Fails with `ErrorKind::Locked` if another process holds the lock, and with `ErrorKind::Io` if
/// the lock file cannot be created.
pub(crate) fn lock(repository: &Repository) -> Result<IndexLock> {
    let mut lock = IndexLock::acquire(&repository.index_path()).map_err(from_index)?;
    if repository.config().records_lock_holders() {
        lock.record_process();
    }
    Ok(lock.waits(repository.fsync()?.of(Component::Index)))
}

/// Reads the index, with the sparse directory entries expanded that differ from `tree`, so that
/// they can be changed.
///
/// # Errors
/// Fails if the index or a tree cannot be read.
pub(crate) fn near_differences(repository: &Repository, tree: &oid) -> Result<Index> {
    let index = repository.index_for_looking()?;
    if !index.is_sparse() {
        return Ok(index);
    }
    let mut near: HashSet<BString> = HashSet::new();
    for difference in differences(repository, tree, &index)? {
        let mut path = difference.path;
        let at = index.find(path.as_bstr(), 0).unwrap_or_else(|at| at);
        near.extend(stood_for(&index, at, path.as_bstr()).map(ToOwned::to_owned));
        // The tree has a file at the path of a directory.
        path.push(b'/');
        near.insert(path);
    }
    repository.expand_part(index, &mut |directory| near.contains(directory))
}

/// Compares `index` with `tree`.
pub(crate) fn differences(
    repository: &Repository,
    tree: &oid,
    index: &Index,
) -> Result<Vec<Difference>> {
    let objects = repository.objects()?;
    let cached = index.cached_tree();
    let mut read = |id: &oid, content: &mut Vec<u8>| read_tree(objects, id, content);
    let all = Pathspec::default();
    let absent = IntentToAdd::Absent;
    tree_and_index(Some(tree), index, cached.as_ref(), &all, absent, &mut read)
        .map(|found| found.differences)
        .map_err(from_worktree)
}

/// Encodes an index with `content`. The index is split as it was or as configured, or sparse if
/// that is configured and the patterns are in cone mode. `sparse` are the patterns if the caller
/// has read them already.
///
/// # Errors
/// Fails if the index cannot be encoded, or the tree of a sparse directory entry cannot be written.
pub(crate) fn encode(
    repository: &Repository,
    writer: &Writer,
    content: IndexContent<'_>,
    sparse: Option<&Sparse>,
) -> Result<Vec<u8>> {
    if split_index::is_to_be_split(repository, writer, &content) {
        return split_index::encode_split(repository, writer, &content);
    }
    let is_unmerged = content.entries.iter().any(|entry| entry.stage() != 0);
    if content.entries.is_empty() || is_unmerged || !repository.wants_sparse_index()? {
        return writer.encode(&content).map_err(from_index);
    }
    let read = match sparse {
        Some(_) => None,
        None => repository.sparse_checkout()?,
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
        made = trees_of(repository, &content)?;
        if let Some(made) = &made {
            (content, _) = content.collapse(made, &mut cover);
        }
    }
    writer.encode(&content).map_err(from_index)
}

/// Writes the trees of `content`, and returns them as cached trees; `None` if the entries form no
/// valid trees.
fn trees_of(
    repository: &Repository,
    content: &IndexContent<'_>,
) -> Result<Option<pronto_index::CachedTree>> {
    let bytes = Writer {
        skip_hash: true,
        ..Writer::default()
    }
    .encode(content)
    .map_err(from_index)?;
    let index = Index::from_bytes(bytes, repository.object_hash()).map_err(from_index)?;
    if !trees::faults(&index).is_empty() {
        return Ok(None);
    }
    let made = new_trees(
        repository,
        &index,
        index.cached_tree().as_ref(),
        true,
        PACKED_FROM,
    )?;
    made.map(|(_, trees)| Some(trees)).map_err(from_worktree)
}

/// Whether there are entries that sparse directory entries could replace.
fn may_collapse(content: &IndexContent<'_>, sparse: &Sparse) -> bool {
    let mut matcher = sparse.matcher();
    content.entries.iter().any(|entry| {
        entry.flags.contains(Flags::SKIP_WORKTREE)
            && !entry.is_sparse_directory()
            && !matcher.includes(entry.path)
    })
}

/// Returns the configured index writer (`index.version`, `index.threads`, `index.skipHash` and so
/// on).
///
/// # Errors
/// Fails if a setting is malformed.
pub(crate) fn writer(repository: &Repository) -> Result<Writer> {
    use pronto_index::{IndexVersion, OffsetTable};
    let config = repository.config();
    let many_files = config.bool_or("feature.manyfiles", false)?;
    let version = match repository.environment().text("GIT_INDEX_VERSION") {
        Some(text) => text.parse().ok(),
        None => config.i64("index.version")?,
    };
    let four = match version {
        Some(version) => version == 4,
        None => many_files,
    };
    let threads = match config.bool_or_i64("index.threads")? {
        None => None,
        Some(crate::config::BoolOrInt::Bool(true)) => Some(0),
        Some(crate::config::BoolOrInt::Bool(false)) => Some(1),
        Some(crate::config::BoolOrInt::Int(number)) => usize::try_from(number).ok(),
    };
    Ok(Writer {
        new_version: if four {
            IndexVersion::Four
        } else {
            IndexVersion::Two
        },
        force_version: None,
        skip_hash: config.bool_or("index.skiphash", many_files)?,
        offset_table: OffsetTable {
            threads,
            // The query takes a dozen system calls, so it is made only if its result matters.
            cores: match threads {
                Some(0) => pronto_io::pool::cores(),
                _ => 1,
            },
            record_end: config.bool("index.recordendofindexentries")?,
            // As in Git, which checks the setting only if several threads read the index.
            record_offsets: match threads {
                None | Some(1) => None,
                Some(_) => config.bool("index.recordoffsettable")?,
            },
        },
        splitting: split_index::splitting(repository),
    })
}
