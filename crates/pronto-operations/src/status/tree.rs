//! The tree of `HEAD`.

use pronto_hash::ObjectId;
use pronto_object::CommitRef;
use pronto_odb::Store;

use crate::{Error, ErrorKind, Repository, Result};

pub(super) use crate::errors::from_odb as objects;

/// The tree of the commit `id` of `HEAD`, or of the commit that the tag `id` leads to.
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
