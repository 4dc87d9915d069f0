//! Finds the tree of `HEAD`.

use pronto_hash::ObjectId;
use pronto_object::CommitRef;
use pronto_odb::Store;

use crate::{Error, ErrorKind, Repository, Result};

pub(super) use crate::errors::from_odb as objects;

/// Returns the tree of the commit `id`, or of the commit to which the tag `id` peels.
pub(super) fn tree_of(repository: &Repository, store: &Store, id: ObjectId) -> Result<ObjectId> {
    let mut content = Vec::new();
    let found = store.find(&id, &mut content).map_err(objects)?;
    match (found, CommitRef::new(&content).tree()) {
        (Some(gix_object::Kind::Commit), Some(tree)) => Ok(tree),
        _ => {
            let tree = repository.peel_to(id, gix_object::Kind::Tree)?;
            tree.ok_or_else(|| Error::new(ErrorKind::Object, "bad object HEAD"))
        }
    }
}
