//! Reads tree objects, and writes those of an index.

mod new_trees;

use new_trees::NewTrees;
use pronto_hash::{ObjectId, oid};
use pronto_index::{CachedTree, Index};
use pronto_odb::Store;
use pronto_worktree::from_store;
use pronto_worktree::trees::{self, Workshop};

use crate::packs::bulk_options;
use crate::{Repository, Result};

/// Reads the tree `id` into `content`.
pub(crate) fn read_tree(
    store: &Store,
    id: &oid,
    content: &mut Vec<u8>,
) -> Result<(), pronto_worktree::Error> {
    use pronto_worktree::ErrorKind as Kind;
    if *id == *ObjectId::empty_tree(id.kind()) {
        content.clear();
        return Ok(());
    }
    match store.find(id, content) {
        Ok(Some(gix_object::Kind::Tree)) => Ok(()),
        Ok(_) => Err(pronto_worktree::Error::new(
            Kind::MissingObject,
            format!("unable to read tree ({id})"),
        )),
        Err(error) => Err(from_store(error)),
    }
}

/// Whether `store` has the object.
pub(crate) fn contains(
    store: &Store,
    id: &oid,
) -> std::result::Result<bool, pronto_worktree::Error> {
    let found = store.contains(id);
    found.map_err(from_store)
}

/// Writes the trees of `index`, except those that are `cached`. The index must form valid trees.
pub(crate) fn new_trees(
    repository: &Repository,
    index: &Index,
    cached: Option<&CachedTree>,
    missing_ok: bool,
    packed_from: usize,
) -> Result<std::result::Result<(ObjectId, CachedTree), pronto_worktree::Error>> {
    let store = repository.objects()?;
    let options = bulk_options(repository.config(), repository.object_hash())?;
    let mut new = NewTrees::new(store, options, packed_from);
    let mut workshop = Workshop {
        contains: &mut |id| contains(store, id),
        write: &mut |content| new.add(content).map_err(not_written),
        missing_ok,
    };
    let made = trees::make(index, cached, &mut workshop);
    if made.is_ok() {
        new.finish()?;
    }
    Ok(made)
}

fn not_written(error: pronto_odb::Error) -> pronto_worktree::Error {
    error.map_kind(|kind| match kind {
        pronto_odb::ErrorKind::Interrupted => pronto_worktree::ErrorKind::Interrupted,
        _ => pronto_worktree::ErrorKind::Io,
    })
}
