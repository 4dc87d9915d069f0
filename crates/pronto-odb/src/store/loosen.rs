//! Writes packed objects as loose objects.

use std::fs::File;
use std::time::SystemTime;

use pronto_hash::oid;
use pronto_io::error::IoContext as _;

use super::Store;
use crate::error::{Error, ErrorKind};
use crate::loose;

impl Store {
    /// Writes the packed object `id` as a loose object with the modification time `modified`,
    /// unless a loose one exists. Never holds the whole content in memory.
    ///
    /// # Errors
    /// Fails with `ErrorKind::Missing` if the object does not exist, with `ErrorKind::Corrupt` or
    /// another kind if it cannot be read, and with `ErrorKind::Io` if it cannot be written.
    pub fn loosen(&self, id: &oid, modified: SystemTime) -> Result<(), Error> {
        let mut directories = self.inner.directories.iter();
        if directories.any(|objects| loose::exists(objects, id)) {
            return Ok(());
        }
        let failed = |kind| Error::new(kind, "unable to force loose object").on_object(id);
        let mut reader = self.reader(id)?.ok_or_else(|| failed(ErrorKind::Missing))?;
        let (kind, size_bytes) = (reader.kind(), reader.size_bytes());
        let (objects, options) = (self.path(), self.options());
        let never = &mut |_: &oid| Ok(false);
        let from = &mut reader;
        let written = loose::write::write_stream(objects, options, kind, size_bytes, from, never)?;
        if *written != *id {
            return Err(failed(ErrorKind::Corrupt));
        }
        let path = loose::path(objects, id);
        let dated = File::open(&path).and_then(|file| file.set_modified(modified));
        dated.context(ErrorKind::Io, "cannot set the time of", &path)
    }
}
