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
/// Fails with [`ErrorKind::Object`] if the object does not exist, is not a commit, or is malformed.
pub fn links_in(store: &Store, id: &oid, buffer: &mut Vec<u8>) -> Result<CommitLinks> {
    let fail = |message: &str| Err(Error::new(ErrorKind::Object, message).on_object(id));
    match store.find(id, buffer).map_err(from_odb)? {
        Some(ObjectKind::Commit) => {}
        Some(_) => return fail("not a commit"),
        None => return fail("could not read commit"),
    }
    match CommitLinks::parse(buffer) {
        Some(links) => Ok(links),
        None => fail("malformed commit"),
    }
}
