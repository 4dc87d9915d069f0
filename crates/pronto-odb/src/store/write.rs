//! Writes objects as loose files.

use std::io::Read;

use gix_object::Kind as ObjectKind;
use pronto_hash::{ObjectId, oid};

use super::{Store, lookup};
use crate::error::{Error, ErrorKind};
use crate::loose;

impl Store {
    /// Adds an object and returns its id. If the object exists, its modification time is refreshed
    /// instead.
    ///
    /// # Errors
    /// Fails with `ErrorKind::Io` if the object cannot be written, and with `ErrorKind::Collision`
    /// if its content is part of a known attack on SHA-1.
    pub fn write(&self, kind: ObjectKind, content: &[u8]) -> Result<ObjectId, Error> {
        let id = self.id_of(kind, content)?;
        self.write_known(&id, kind, content)?;
        Ok(id)
    }

    /// Returns the id of an object with this content, whether the object exists or not.
    ///
    /// # Errors
    /// Fails with `ErrorKind::Collision` if the content is part of a known attack on SHA-1.
    pub fn id_of(&self, kind: ObjectKind, content: &[u8]) -> Result<ObjectId, Error> {
        loose::write::id_of(self.options(), kind, content)
    }

    /// Adds an object with the known id `id`.
    ///
    /// # Errors
    /// Fails as [`write`](Self::write) does.
    pub fn write_known(&self, id: &oid, kind: ObjectKind, content: &[u8]) -> Result<(), Error> {
        if self.freshen(id)? {
            return Ok(());
        }
        loose::write::write(self.path(), self.options(), id, kind, content)
    }

    /// Adds an object of `size_bytes` from a stream without holding the content in memory. If the
    /// object exists, its modification time is refreshed and the written file is removed.
    ///
    /// # Errors
    /// Fails as [`write`](Self::write) does, and with `ErrorKind::Corrupt` if the stream has
    /// another size.
    pub fn write_stream(
        &self,
        kind: ObjectKind,
        size_bytes: u64,
        from: &mut dyn Read,
    ) -> Result<ObjectId, Error> {
        self.begin_writing()?;
        let exists = &mut |id: &oid| self.freshen(id);
        let (objects, options) = (self.path(), self.options());
        loose::write::write_stream(objects, options, kind, size_bytes, from, exists)
    }

    /// Refreshes the modification time of the object `id`, so that it is not pruned. Returns
    /// `false` if the object is missing, or exists only in cruft packs (`.mtimes`); then the caller
    /// must write the object. Does not list packs again.
    ///
    /// # Errors
    /// Fails with `ErrorKind::Io` if the packs cannot be listed.
    pub fn freshen(&self, id: &oid) -> Result<bool, Error> {
        self.begin_writing()?;
        let snapshot = self.snapshot()?;
        let mut failure = None;
        let packed = lookup::in_packs(&snapshot, id, &mut failure, &mut |pack, _| {
            match pack.listed.cruft {
                // The modification time of a cruft pack does not protect its objects.
                true => Err(Error::new(
                    ErrorKind::Missing,
                    "the object may be pruned at any time",
                )),
                false => pack.pack().map(|_| pack.pack_path()),
            }
        });
        if packed.is_some_and(|path| loose::write::freshen(&path)) {
            return Ok(true);
        }
        let mut directories = self.inner.directories.iter();
        Ok(directories.any(|objects| loose::write::freshen(&loose::path(objects, id))))
    }
}
