//! Recovers objects of a damaged pack as loose objects.

use std::io::Read;

use gix_object::Kind as ObjectKind;
use pronto_hash::{ObjectId, oid};
use pronto_io::interrupt::Interrupt;
use pronto_io::progress::{Meter, Progress};
use pronto_pack::indexer::UNPACKING;
use pronto_pack::salvage::{self, Salvage};

use super::Store;
use crate::error::{Error, from_pack, to_pack};

/// The objects that were recovered from a pack.
#[derive(Debug)]
pub struct Salvaged {
    /// The defects, in Git's words. If there is none, every object was recovered.
    pub complaints: Vec<String>,
    /// The bytes behind the pack, or why reading failed. The objects before are saved.
    pub ended: Result<Vec<u8>, Error>,
}

impl Store {
    /// Writes each recoverable object of a pack as a loose one, however damaged the rest is, up to
    /// the place where it cannot be read further: see [`salvage::salvage`]. Existing objects are
    /// marked as used.
    pub fn salvage(
        &self,
        input: &mut dyn Read,
        options: &salvage::Options,
        (progress, interrupt): (&dyn Progress, &Interrupt),
    ) -> Salvaged {
        let store = self.without_replacements();
        let mut into = Into {
            store: &store,
            complaints: Vec::new(),
            meter: None,
            watch: (progress, interrupt),
        };
        let ended = salvage::salvage(input, options, &mut into);
        if let Some(meter) = into.meter.filter(|_| ended.is_ok()) {
            meter.finish();
        }
        Salvaged {
            complaints: into.complaints,
            ended: ended.map_err(from_pack),
        }
    }
}

/// Writes the objects that it receives.
struct Into<'a> {
    store: &'a Store,
    complaints: Vec<String>,
    meter: Option<Meter>,
    watch: (&'a dyn Progress, &'a Interrupt),
}

impl Salvage for Into<'_> {
    fn begin(&mut self, count: u32) {
        let meter = self.watch.0.begin(UNPACKING, Some(count.into()));
        self.meter = Some(meter);
    }

    fn object(&mut self, kind: ObjectKind, content: &[u8]) -> Result<ObjectId, pronto_pack::Error> {
        self.store.write(kind, content).map_err(to_pack)
    }

    fn large_blob(
        &mut self,
        size_bytes: u64,
        content: &mut dyn Read,
    ) -> Result<ObjectId, pronto_pack::Error> {
        let written = self
            .store
            .write_stream(ObjectKind::Blob, size_bytes, content);
        written.map_err(to_pack)
    }

    fn base(&mut self, id: &oid) -> Result<Option<(ObjectKind, Vec<u8>)>, pronto_pack::Error> {
        let mut content = Vec::new();
        let found = self.store.find(id, &mut content).map_err(to_pack)?;
        Ok(found.map(|kind| (kind, content)))
    }

    fn complain(&mut self, text: String) {
        self.complaints.push(text);
    }

    fn advanced(&mut self) -> Result<(), pronto_pack::Error> {
        if let Some(meter) = &self.meter {
            meter.add(1);
        }
        self.watch.1.check().map_err(|reason| {
            pronto_pack::Error::new(pronto_pack::ErrorKind::Interrupted, reason.to_string())
        })
    }
}
