//! The tree of `HEAD`.

use pronto_hash::ObjectId;
use pronto_io::short::Short as _;
use pronto_odb::Store;

use crate::{Error, ErrorKind, Repository, Result};

/// An error of the object store as one of the repository.
pub(super) fn objects(error: pronto_odb::Error) -> Error {
    error.map_kind(|_| ErrorKind::Object)
}

/// The tree of the commit `id` of `HEAD`, or of the commit that the tag `id` leads to.
pub(super) fn tree_of(repository: &Repository, store: &Store, id: ObjectId) -> Result<ObjectId> {
    let mut content = Vec::new();
    let found = store.find(&id, &mut content).map_err(objects)?;
    let hex = content
        .strip_prefix(b"tree ")
        .and_then(|rest| rest.each_line().next());
    match (found, hex.and_then(|hex| pronto_hash::parse_hex(hex).ok())) {
        (Some(gix_object::Kind::Commit), Some(tree)) => Ok(tree),
        _ => {
            let tree = repository.peel_to(id, gix_object::Kind::Tree)?;
            tree.ok_or_else(|| Error::new(ErrorKind::Object, "bad object HEAD"))
        }
    }
}
