//! Where contents come from.

use gix_object::Kind;
use pronto_hash::oid;
use pronto_odb::{Location, Store};

use crate::{Error, ErrorKind};

/// A place that has objects. Used by many threads at once.
pub trait Objects: Send + Sync {
    /// Puts the content of the object into `buffer`, replacing what is there, and says its kind.
    ///
    /// # Errors
    /// [`ErrorKind::MissingObject`] or [`ErrorKind::CorruptObject`].
    fn object(&self, id: &oid, buffer: &mut Vec<u8>) -> Result<Kind, Error>;

    /// Where the object is: reading in this order reads the disk in order. `None` when it is not
    /// in a pack or that is not known cheaply.
    fn position(&self, id: &oid) -> Option<Location> {
        let _ = id;
        None
    }

    /// Like [`object`](Self::object), for an object whose position is known: saves the search.
    ///
    /// # Errors
    /// As for [`object`](Self::object).
    fn object_at(&self, position: Location, id: &oid, buffer: &mut Vec<u8>) -> Result<Kind, Error> {
        let _ = position;
        self.object(id, buffer)
    }
}

impl Objects for Store {
    fn object(&self, id: &oid, buffer: &mut Vec<u8>) -> Result<Kind, Error> {
        found(self.find(id, buffer), id)
    }

    fn position(&self, id: &oid) -> Option<Location> {
        Store::position(self, id)
    }

    fn object_at(&self, position: Location, id: &oid, buffer: &mut Vec<u8>) -> Result<Kind, Error> {
        found(self.find_at(position, id, buffer), id)
    }
}

fn found(answer: Result<Option<Kind>, pronto_odb::Error>, id: &oid) -> Result<Kind, Error> {
    match answer {
        Ok(Some(kind)) => Ok(kind),
        Ok(None) => Err(Error::new(ErrorKind::MissingObject, "object not found").on_object(id)),
        Err(error) => Err(error.map_kind(|_| ErrorKind::CorruptObject).on_object(id)),
    }
}

impl<T: Objects + ?Sized> Objects for &T {
    fn object(&self, id: &oid, buffer: &mut Vec<u8>) -> Result<Kind, Error> {
        (**self).object(id, buffer)
    }

    fn position(&self, id: &oid) -> Option<Location> {
        (**self).position(id)
    }

    fn object_at(&self, position: Location, id: &oid, buffer: &mut Vec<u8>) -> Result<Kind, Error> {
        (**self).object_at(position, id, buffer)
    }
}

impl<T: Objects + ?Sized> Objects for std::sync::Arc<T> {
    fn object(&self, id: &oid, buffer: &mut Vec<u8>) -> Result<Kind, Error> {
        (**self).object(id, buffer)
    }

    fn position(&self, id: &oid) -> Option<Location> {
        (**self).position(id)
    }

    fn object_at(&self, position: Location, id: &oid, buffer: &mut Vec<u8>) -> Result<Kind, Error> {
        (**self).object_at(position, id, buffer)
    }
}

/// The content of the blob `id`.
pub(crate) fn blob(objects: &dyn Objects, id: &oid, buffer: &mut Vec<u8>) -> Result<(), Error> {
    expect(objects.object(id, buffer)?, Kind::Blob, id)
}

/// The content of the blob `id`, which is at `position` if that is known.
pub(crate) fn blob_at(
    objects: &dyn Objects,
    position: Option<Location>,
    id: &oid,
    buffer: &mut Vec<u8>,
) -> Result<(), Error> {
    let found = match position {
        Some(position) => objects.object_at(position, id, buffer)?,
        None => objects.object(id, buffer)?,
    };
    expect(found, Kind::Blob, id)
}

/// The content of the tree `id`.
pub(crate) fn tree(objects: &dyn Objects, id: &oid, buffer: &mut Vec<u8>) -> Result<(), Error> {
    // The empty tree exists everywhere, stored or not.
    if id.is_empty_tree() {
        buffer.clear();
        return Ok(());
    }
    expect(objects.object(id, buffer)?, Kind::Tree, id)
}

fn expect(found: Kind, kind: Kind, id: &oid) -> Result<(), Error> {
    if found == kind {
        return Ok(());
    }
    let message = format!("expected a {kind}, found a {found}");
    Err(Error::new(ErrorKind::CorruptObject, message).on_object(id))
}
