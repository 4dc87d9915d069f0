//! Reads the links of a commit from an object store.

use gix_object::Kind as ObjectKind;
use pronto_hash::oid;
use pronto_object::CommitLinks;
use pronto_odb::Store;

use crate::errors::from_odb;
use crate::{Error, ErrorKind, Result};

/// Returns the parents, tree and date of the commit `id` of `store`, without grafts, replacements and
/// the shallow boundary. `buffer` holds the content of the commit afterwards.
///
/// # Errors
/// Fails with [`MissingObject`](ErrorKind::MissingObject) if the object does not exist,
/// [`Object`](ErrorKind::Object) if the object is not a commit, or [`Corrupt`](ErrorKind::Corrupt)
/// if the object is damaged.
pub fn links_in(store: &Store, id: &oid, buffer: &mut Vec<u8>) -> Result<CommitLinks> {
    let fail = |kind, message: &str| Err(Error::new(kind, message).on_object(id));
    match store.find(id, buffer).map_err(from_odb)? {
        Some(ObjectKind::Commit) => {}
        Some(_) => return fail(ErrorKind::Object, "not a commit"),
        None => return fail(ErrorKind::MissingObject, "could not read commit"),
    }
    match CommitLinks::parse(buffer) {
        Some(links) => Ok(links),
        None => fail(ErrorKind::Corrupt, "malformed commit"),
    }
}
