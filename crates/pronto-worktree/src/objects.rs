//! Where contents come from.

use gix_object::Kind;
use pronto_hash::oid;

use crate::{Error, ErrorKind};

/// A place that has objects. Used by many threads at once.
pub trait Objects: Send + Sync {
    /// Puts the content of the object into `buffer`, replacing what is there, and says its kind.
    ///
    /// # Errors
    /// [`ErrorKind::MissingObject`] or [`ErrorKind::CorruptObject`].
    fn object(&self, id: &oid, buffer: &mut Vec<u8>) -> Result<Kind, Error>;

    /// Where the object is, as a number of the pack and an offset in it: reading in this order
    /// reads the disk in order. `None` when it is not in a pack or that is not known cheaply.
    fn position(&self, id: &oid) -> Option<(u32, u64)>;
}

impl<T: Objects + ?Sized> Objects for &T {
    fn object(&self, id: &oid, buffer: &mut Vec<u8>) -> Result<Kind, Error> {
        (**self).object(id, buffer)
    }

    fn position(&self, id: &oid) -> Option<(u32, u64)> {
        (**self).position(id)
    }
}

impl<T: Objects + ?Sized> Objects for std::sync::Arc<T> {
    fn object(&self, id: &oid, buffer: &mut Vec<u8>) -> Result<Kind, Error> {
        (**self).object(id, buffer)
    }

    fn position(&self, id: &oid) -> Option<(u32, u64)> {
        (**self).position(id)
    }
}

/// The content of the blob `id`.
pub(crate) fn blob(objects: &dyn Objects, id: &oid, buffer: &mut Vec<u8>) -> Result<(), Error> {
    expect(objects, id, Kind::Blob, buffer)
}

/// The content of the tree `id`.
pub(crate) fn tree(objects: &dyn Objects, id: &oid, buffer: &mut Vec<u8>) -> Result<(), Error> {
    // The empty tree exists everywhere, stored or not.
    if id.is_empty_tree() {
        buffer.clear();
        return Ok(());
    }
    expect(objects, id, Kind::Tree, buffer)
}

fn expect(objects: &dyn Objects, id: &oid, kind: Kind, buffer: &mut Vec<u8>) -> Result<(), Error> {
    let found = objects.object(id, buffer)?;
    if found == kind {
        return Ok(());
    }
    let message = format!("expected a {kind}, found a {found}");
    Err(Error::new(ErrorKind::CorruptObject, message).on_object(id))
}
