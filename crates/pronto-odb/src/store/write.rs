//! Writes objects, one loose file each.

use std::io::Read;

use gix_object::Kind as ObjectKind;
use pronto_hash::{ObjectId, oid};

use super::{Store, lookup};
use crate::error::{Error, ErrorKind};
use crate::loose;

impl Store {
    /// Adds an object and returns its id. An existing object is marked as used instead.
    ///
    /// # Errors
    /// `Io` when it cannot be written, `Collision` when its content is part of a known attack on
    /// SHA-1.
    pub fn write(&self, kind: ObjectKind, content: &[u8]) -> Result<ObjectId, Error> {
        let id = self.id_of(kind, content)?;
        self.write_known(&id, kind, content)?;
        Ok(id)
    }

    /// The id that an object has in this store, whether it is there or not.
    ///
    /// # Errors
    /// `Collision` when the content is part of a known attack on SHA-1.
    pub fn id_of(&self, kind: ObjectKind, content: &[u8]) -> Result<ObjectId, Error> {
        loose::write::id_of(self.options(), kind, content)
    }

    /// Adds an object whose id is known to be `id`.
    ///
    /// # Errors
    /// As [`write`](Self::write).
    pub fn write_known(&self, id: &oid, kind: ObjectKind, content: &[u8]) -> Result<(), Error> {
        if self.freshen(id)? {
            return Ok(());
        }
        loose::write::write(self.path(), self.options(), id, kind, content)
    }

    /// Adds an object of `size_bytes` from a stream without holding it in memory. If it exists, it
    /// is marked as used, and the written file is removed.
    ///
    /// # Errors
    /// Like [`write`](Self::write), and `Corrupt` when the stream is of another size.
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

    /// Marks `id` as used now, so that it is not pruned. Returns `false` if it is missing, or only
    /// in cruft packs (`.mtimes`); then it has to be written. Does not list packs again.
    ///
    /// # Errors
    /// `Io` when the packs cannot be listed.
    pub fn freshen(&self, id: &oid) -> Result<bool, Error> {
        self.begin_writing()?;
        let snapshot = self.snapshot()?;
        let mut failure = None;
        let packed = lookup::in_packs(&snapshot, id, &mut failure, &mut |pack, _| {
            match pack.listed.cruft {
                // The age of such a pack says nothing about its objects.
                true => Err(Error::new(ErrorKind::Missing, "object may be pruned")),
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
