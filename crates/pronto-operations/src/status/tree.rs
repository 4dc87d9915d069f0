//! The tree of a commit.

use pronto_hash::ObjectId;
use pronto_object::CommitRef;
use pronto_odb::Store;

use crate::{Error, ErrorKind, Result};

/// An error of the object store as one of the repository.
pub(super) fn objects(error: pronto_odb::Error) -> Error {
    error.map_kind(|_| ErrorKind::Object)
}

/// The tree of the commit `id`.
pub(super) fn tree_of(store: &Store, id: ObjectId) -> Result<ObjectId> {
    let mut content = Vec::new();
    let found = store.find(&id, &mut content).map_err(objects)?;
    match (found, CommitRef::new(&content).tree()) {
        (Some(gix_object::Kind::Commit), Some(tree)) => Ok(tree),
        _ => Err(Error::new(ErrorKind::Object, format!("bad object {id}"))),
    }
}
