//! The source of the contents of objects.

use std::io::Read;

use gix_object::Kind;
use pronto_hash::oid;
use pronto_odb::{ObjectData, PackLocation, Store};

use crate::{Error, ErrorKind};

/// A source of objects that many threads use at the same time.
pub trait ObjectSource: Send + Sync {
    /// Reads the content of the object `id` into `buffer`, replaces the old content, and returns the
    /// type.
    ///
    /// # Errors
    /// Fails with [`ErrorKind::MissingObject`] or [`ErrorKind::CorruptObject`].
    fn object(&self, id: &oid, buffer: &mut Vec<u8>) -> Result<Kind, Error>;

    /// Returns the position of the object in its pack. Reading objects in this order reads the disk
    /// sequentially. Returns `None` if the object is not in a pack or its position is expensive to
    /// find.
    fn position(&self, id: &oid) -> Option<PackLocation> {
        let _ = id;
        None
    }

    /// Does the same as [`object`](Self::object) for an object with a known position, without a lookup.
    ///
    /// # Errors
    /// As for [`object`](Self::object).
    fn object_at(
        &self,
        position: PackLocation,
        id: &oid,
        buffer: &mut Vec<u8>,
    ) -> Result<Kind, Error> {
        let _ = position;
        self.object(id, buffer)
    }

    /// Does the same as [`object`](Self::object), but may return a reader for an object of at least
    /// `below` bytes. `position` is the position of the object, if known.
    ///
    /// # Errors
    /// As for [`object`](Self::object).
    fn object_or_reader(
        &self,
        position: Option<PackLocation>,
        id: &oid,
        below: u64,
        buffer: &mut Vec<u8>,
    ) -> Result<ObjectContent, Error> {
        let _ = below;
        let kind = match position {
            Some(position) => self.object_at(position, id, buffer),
            None => self.object(id, buffer),
        };
        kind.map(ObjectContent::Whole)
    }
}

/// The content of an object, from [`ObjectSource::object_or_reader`].
pub enum ObjectContent {
    /// The object is in the buffer.
    Whole(Kind),
    /// A large object, with its type, its size and a reader.
    Large(Kind, u64, Box<dyn Read>),
}

impl ObjectSource for Store {
    fn object(&self, id: &oid, buffer: &mut Vec<u8>) -> Result<Kind, Error> {
        found(self.find(id, buffer), id)
    }

    fn position(&self, id: &oid) -> Option<PackLocation> {
        Store::position(self, id)
    }

    fn object_at(
        &self,
        position: PackLocation,
        id: &oid,
        buffer: &mut Vec<u8>,
    ) -> Result<Kind, Error> {
        found(self.find_at(position, id, buffer), id)
    }

    fn object_or_reader(
        &self,
        position: Option<PackLocation>,
        id: &oid,
        below: u64,
        buffer: &mut Vec<u8>,
    ) -> Result<ObjectContent, Error> {
        let answer = match position {
            Some(position) => self.find_or_stream_at(position, id, below, buffer),
            None => self.find_or_stream(id, below, buffer),
        };
        Ok(match found(answer, id)? {
            ObjectData::Whole(kind) => ObjectContent::Whole(kind),
            ObjectData::Large(reader) => {
                ObjectContent::Large(reader.kind(), reader.size_bytes(), Box::new(reader))
            }
        })
    }
}

/// Converts an error of reading an object. An object is corrupt if a part is missing, such as the
/// base of a delta.
#[cold]
pub fn from_store(error: pronto_odb::Error) -> Error {
    error.map_kind(|kind| match kind {
        pronto_odb::ErrorKind::Interrupted => ErrorKind::Interrupted,
        pronto_odb::ErrorKind::Io => ErrorKind::UnreadableObject,
        _ => ErrorKind::CorruptObject,
    })
}

fn found<T>(answer: Result<Option<T>, pronto_odb::Error>, id: &oid) -> Result<T, Error> {
    match answer {
        Ok(Some(found)) => Ok(found),
        Ok(None) => Err(Error::new(ErrorKind::MissingObject, "object not found").on_object(id)),
        Err(error) => Err(from_store(error).on_object(id)),
    }
}

impl<T: ObjectSource + ?Sized> ObjectSource for &T {
    fn object(&self, id: &oid, buffer: &mut Vec<u8>) -> Result<Kind, Error> {
        (**self).object(id, buffer)
    }

    fn position(&self, id: &oid) -> Option<PackLocation> {
        (**self).position(id)
    }

    fn object_at(
        &self,
        position: PackLocation,
        id: &oid,
        buffer: &mut Vec<u8>,
    ) -> Result<Kind, Error> {
        (**self).object_at(position, id, buffer)
    }

    fn object_or_reader(
        &self,
        position: Option<PackLocation>,
        id: &oid,
        below: u64,
        buffer: &mut Vec<u8>,
    ) -> Result<ObjectContent, Error> {
        (**self).object_or_reader(position, id, below, buffer)
    }
}

impl<T: ObjectSource + ?Sized> ObjectSource for std::sync::Arc<T> {
    fn object(&self, id: &oid, buffer: &mut Vec<u8>) -> Result<Kind, Error> {
        (**self).object(id, buffer)
    }

    fn position(&self, id: &oid) -> Option<PackLocation> {
        (**self).position(id)
    }

    fn object_at(
        &self,
        position: PackLocation,
        id: &oid,
        buffer: &mut Vec<u8>,
    ) -> Result<Kind, Error> {
        (**self).object_at(position, id, buffer)
    }

    fn object_or_reader(
        &self,
        position: Option<PackLocation>,
        id: &oid,
        below: u64,
        buffer: &mut Vec<u8>,
    ) -> Result<ObjectContent, Error> {
        (**self).object_or_reader(position, id, below, buffer)
    }
}

/// Reads the content of the blob `id`.
pub(crate) fn blob(
    objects: &dyn ObjectSource,
    id: &oid,
    buffer: &mut Vec<u8>,
) -> Result<(), Error> {
    expect(objects.object(id, buffer)?, Kind::Blob, id)
}

/// A large blob with a reader.
pub(crate) struct LargeBlob {
    pub(crate) size_bytes: u64,
    pub(crate) reader: Box<dyn Read>,
}

impl LargeBlob {
    /// Reads the whole content into `buffer`, and replaces the old content.
    pub(crate) fn read_into(mut self, buffer: &mut Vec<u8>) -> Result<(), Error> {
        let limit = |_| {
            Error::new(
                ErrorKind::CorruptObject,
                "object is too large for the memory of this machine",
            )
        };
        let size = usize::try_from(self.size_bytes).map_err(|_| limit(()))?;
        buffer.clear();
        // The size is that of an unverified header.
        buffer
            .try_reserve(size.min(LARGEST_RESERVE))
            .map_err(|_| limit(()))?;
        self.reader.read_to_end(buffer).map_err(|error| {
            Error::new(ErrorKind::CorruptObject, "cannot read object").because(error)
        })?;
        Ok(())
    }
}

/// The largest memory reservation for a blob before its content is read.
const LARGEST_RESERVE: usize = 64 << 20;

/// Reads the content of the blob `id` into `buffer`, or returns a reader if it has at least `below`
/// bytes. `position` is the position of the blob, if known.
pub(crate) fn blob_or_reader(
    objects: &dyn ObjectSource,
    position: Option<PackLocation>,
    id: &oid,
    below: u64,
    buffer: &mut Vec<u8>,
) -> Result<Option<LargeBlob>, Error> {
    match objects.object_or_reader(position, id, below, buffer)? {
        ObjectContent::Whole(found) => expect(found, Kind::Blob, id).map(|()| None),
        ObjectContent::Large(found, size_bytes, reader) => {
            expect(found, Kind::Blob, id)?;
            Ok(Some(LargeBlob { size_bytes, reader }))
        }
    }
}

/// Reads the content of the tree `id`.
pub(crate) fn tree(
    objects: &dyn ObjectSource,
    id: &oid,
    buffer: &mut Vec<u8>,
) -> Result<(), Error> {
    // The empty tree always exists, even if it is not stored.
    if id.is_empty_tree() {
        buffer.clear();
        return Ok(());
    }
    let found = objects
        .object(id, buffer)
        .map_err(|error| match error.kind() {
            ErrorKind::MissingObject => {
                let message = format!("unable to read tree ({id})");
                Error::new(ErrorKind::MissingObject, message)
            }
            _ => error,
        })?;
    expect(found, Kind::Tree, id)
}

fn expect(found: Kind, kind: Kind, id: &oid) -> Result<(), Error> {
    if found == kind {
        return Ok(());
    }
    let message = format!("expected a {kind}, found a {found}");
    Err(Error::new(ErrorKind::CorruptObject, message).on_object(id))
}

/// The largest depth of nested trees (Git's default of `core.maxTreeDepth`).
pub(crate) const DEEPEST: usize = 2048;

/// Checks that `depth` does not exceed [`DEEPEST`].
///
/// # Errors
/// Fails with [`ErrorKind::CorruptObject`] if it does.
pub(crate) fn check_depth(depth: usize) -> Result<(), Error> {
    if depth <= DEEPEST {
        return Ok(());
    }
    let message = "exceeded maximum allowed tree depth";
    Err(Error::new(ErrorKind::CorruptObject, message))
}
