//! Writes the index as tree objects: `git write-tree`.

use bstr::{BStr, ByteSlice};
use pronto_hash::{ObjectId, oid};
use pronto_index::{CachedTree, Index, IndexEdit, IndexLock};
use pronto_io::watch::Watch;
use pronto_odb::PACKED_FROM;
use pronto_repository::Notice;
use pronto_worktree::trees::{self, TreeFault};

use crate::errors::from_worktree;
use crate::index;
use crate::session::WorktreeSession;
use crate::support::{self, Operation};
use crate::tree_objects::{contains, new_trees};
use crate::{Error, ErrorKind, Repository, Result, hooks};

/// The result of writing a tree.
#[derive(Debug)]
#[must_use]
#[non_exhaustive]
pub enum WrittenTree {
    /// The id of the written tree.
    Tree(ObjectId),
    /// The entries of the index form no valid tree, for these reasons.
    Faults(Vec<TreeFault>),
    /// The object of an entry is missing.
    Missing(Error),
    /// The index has no directory `prefix`.
    NoSuchDirectory,
}

/// Writes the trees of the index, and returns the root tree, or the tree of the directory `prefix`
/// (`--prefix`). Records new trees in the cached trees of the index. The objects of entries must
/// exist, unless `missing_ok` is set (`--missing-ok`).
///
/// # Errors
/// Fails with `ErrorKind::Locked` if the index is locked, with [`ErrorKind::Object`] if a tree
/// cannot be written, and with other kinds if the index cannot be read.
pub fn write_tree(
    repository: &Repository,
    prefix: Option<&BStr>,
    missing_ok: bool,
    watch: &Watch<'_>,
) -> Result<WrittenTree> {
    support::require(repository, Operation::WriteTree)?;
    if repository.work_tree().is_some() {
        let read = || {
            repository.index_near(&mut |directory| {
                prefix.is_some_and(|prefix| prefix.starts_with(directory) && prefix != directory)
            })
        };
        let (prepared, lock) = WorktreeSession::with_index(repository, read)?;
        let lock = lock?;
        let encode = |edit: &IndexEdit<'_>| prepared.encode(edit.content(), watch);
        return write_trees(
            repository,
            &prepared.index,
            lock,
            prefix,
            missing_ok,
            &encode,
        );
    }
    let lock = index::lock(repository)?;
    let index = repository.sparse_index()?;
    let writer = index::writer(repository)?;
    let encode = |edit: &IndexEdit<'_>| index::encode(repository, &writer, edit.content(), None);
    write_trees(repository, &index, lock, prefix, missing_ok, &encode)
}

fn write_trees(
    repository: &Repository,
    index: &Index,
    lock: IndexLock,
    prefix: Option<&BStr>,
    missing_ok: bool,
    encode: &dyn Fn(&IndexEdit<'_>) -> Result<Vec<u8>>,
) -> Result<WrittenTree> {
    let (id, made) = match make_trees(repository, index, missing_ok, PACKED_FROM)? {
        TreeWriting::Known(cached, _) => return Ok(find(&cached, prefix)),
        TreeWriting::New(made, id) => (id, made),
        TreeWriting::Not(why) => return Ok(why),
    };
    let found = match prefix {
        None => WrittenTree::Tree(id),
        Some(_) => find(&made, prefix),
    };
    if matches!(found, WrittenTree::NoSuchDirectory) {
        return Ok(found);
    }
    let mut edit = IndexEdit::new(index);
    edit.set_cached_tree(Some(made));
    // The tree is valid even if the index cannot be written.
    if let Ok(bytes) = encode(&edit)
        && lock.commit(&bytes).is_ok()
    {
        run_hook(repository);
    }
    Ok(found)
}

/// Runs the hook `post-index-change` with the arguments for an unchanged worktree and unchanged
/// skip-worktree bits. A failure is only sent as a notice.
fn run_hook(repository: &Repository) {
    let call = hooks::HookCall {
        arguments: vec!["0".as_ref(), "0".as_ref()],
        needs_no_worktree: true,
        ..hooks::HookCall::default()
    };
    if let Err(error) = hooks::run(repository, "post-index-change", &call) {
        repository.notify(Notice::Failure(error));
    }
}

/// The trees of an index, and the id of the root tree.
pub(crate) enum TreeWriting {
    /// The cached trees of the index were complete.
    Known(CachedTree, ObjectId),
    /// New trees, which should be recorded in the index.
    New(CachedTree, ObjectId),
    /// There are no trees, for this reason.
    Not(WrittenTree),
}

/// Writes the trees of `index`, unless its cached trees are complete. The trees are stored as a
/// pack if there are at least `packed_from`. The objects of entries must exist, unless `missing_ok`
/// is set.
pub(crate) fn make_trees(
    repository: &Repository,
    index: &Index,
    missing_ok: bool,
    packed_from: usize,
) -> Result<TreeWriting> {
    let store = repository.objects()?;
    // Objects that are known to exist must not be pruned meanwhile.
    store.begin_writing().map_err(crate::objects::from_odb)?;
    let mut contains = |id: &oid| contains(store, id);
    let cached = index.cached_tree();
    let known = trees::are_known(index, cached.as_ref(), &mut contains);
    let is_known = known.map_err(from_worktree)?;
    if let Some(cached) = cached.as_ref().filter(|_| is_known)
        && let WrittenTree::Tree(id) = find(cached, None)
    {
        return Ok(TreeWriting::Known(cached.clone(), id));
    }
    let faults = trees::faults(index);
    if !faults.is_empty() {
        return Ok(TreeWriting::Not(WrittenTree::Faults(faults)));
    }
    match new_trees(repository, index, cached.as_ref(), missing_ok, packed_from)? {
        Ok((id, made)) => Ok(TreeWriting::New(made, id)),
        Err(error) if error.kind() == pronto_worktree::ErrorKind::MissingObject => {
            let error = error.without_context(ErrorKind::MissingObject);
            Ok(TreeWriting::Not(WrittenTree::Missing(error)))
        }
        Err(error) => Err(from_worktree(error)),
    }
}

/// Returns the tree of `prefix` in `cached`, whose trees are all known or were just written.
fn find(cached: &CachedTree, prefix: Option<&BStr>) -> WrittenTree {
    let names = prefix.map(|prefix| {
        let names = prefix.split_str("/").filter(|name| !name.is_empty());
        bstr::join("/", names)
    });
    let directory = cached.lookup(names.unwrap_or_default().as_bstr());
    match directory {
        None => WrittenTree::NoSuchDirectory,
        Some(directory) => WrittenTree::Tree(directory.made_id().to_owned()),
    }
}
