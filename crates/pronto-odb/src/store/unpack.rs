//! Unpacks a received pack into loose objects (`git unpack-objects`).

use std::io::Read;
use std::sync::{Mutex, PoisonError};

use gix_object::Kind as ObjectKind;
use pronto_hash::{ObjectId, oid};
use pronto_pack::indexer::{
    self, IndexContext, IndexedObjects, Inspect, UNPACKING, examine_stream,
};

use super::Store;
use crate::error::{Error, ErrorKind, from_pack, to_pack};

impl Store {
    /// Reads a pack from `input` as it arrives, and writes each of its objects as a loose object.
    /// The modification time of existing objects is refreshed. Missing bases of a thin pack are
    /// read from `context.existing`, or else from this store. `context.inspect` checks each object
    /// before it is written, in many threads and in no particular order.
    ///
    /// Of the options, only the limits and `threads` have an effect. Objects are flushed to the
    /// disk as [`write`](Self::write) does, so a malformed pack may leave some of its objects:
    /// unpack into a [`Quarantine`](crate::Quarantine) to avoid this. Blobs above the limit are
    /// never held in memory as a whole. Until the end, the pack itself also occupies disk space.
    ///
    /// # Errors
    /// Fails as [`indexer::index_stream`] and [`write`](Self::write) do.
    pub fn unpack(
        &self,
        input: &mut dyn Read,
        options: &indexer::Options,
        context: &IndexContext<'_>,
    ) -> Result<indexer::Outcome, pronto_pack::Error> {
        let mut options = options.clone();
        options.kind = self.kind();
        options.fix_thin = true;
        // As with every write, an existing object is kept.
        options.check_collisions = false;
        options.show_resolving = false;
        options.title = UNPACKING;
        let writer = Writer {
            store: self,
            inspect: context.inspect,
            large: Mutex::default(),
        };
        let context = IndexContext {
            existing: Some(context.existing.unwrap_or(self)),
            inspect: Some(&writer),
            ..*context
        };
        let examined = examine_stream(input, self.path(), &options, &context)?;
        let large = writer.large.into_inner();
        for id in large.unwrap_or_else(PoisonError::into_inner) {
            self.write_large(&examined, &id).map_err(to_pack)?;
        }
        Ok(examined.into_outcome())
    }

    fn write_large(&self, examined: &indexer::ExaminedPack, id: &oid) -> Result<(), Error> {
        if self.freshen(id)? {
            return Ok(());
        }
        let reader = examined.reader(id).map_err(from_pack)?;
        let mut reader = reader.ok_or_else(|| {
            Error::new(ErrorKind::Missing, "object is not in the pack").on_object(id)
        })?;
        let (kind, size_bytes) = (reader.kind(), reader.size_bytes());
        self.write_stream(kind, size_bytes, &mut reader)?;
        Ok(())
    }
}

/// An inspector that writes every object that it receives.
struct Writer<'a> {
    store: &'a Store,
    inspect: Option<&'a dyn Inspect>,
    /// The large objects, which are read in pieces when the pack is complete.
    large: Mutex<Vec<ObjectId>>,
}

impl Inspect for Writer<'_> {
    fn object(
        &self,
        kind: ObjectKind,
        id: &ObjectId,
        content: &[u8],
    ) -> Result<(), pronto_pack::Error> {
        if let Some(inspect) = self.inspect {
            inspect.object(kind, id, content)?;
        }
        let written = self.store.write_known(id, kind, content);
        written.map_err(to_pack)
    }

    fn large_blob(&self, id: &ObjectId, size_bytes: u64) -> Result<(), pronto_pack::Error> {
        if let Some(inspect) = self.inspect {
            inspect.large_blob(id, size_bytes)?;
        }
        let mut large = self.large.lock().unwrap_or_else(PoisonError::into_inner);
        large.push(*id);
        Ok(())
    }

    fn complete(&self, contents: &dyn IndexedObjects) -> Result<(), pronto_pack::Error> {
        match self.inspect {
            Some(inspect) => inspect.complete(contents),
            None => Ok(()),
        }
    }
}
