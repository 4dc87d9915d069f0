//! Recovers objects of a damaged pack as loose objects (`git unpack-objects -r`).

use std::io::Read;

use gix_object::Kind as ObjectKind;
use pronto_hash::{ObjectId, oid};
use pronto_io::progress::Meter;
use pronto_io::watch::Watch;
use pronto_pack::indexer::UNPACKING;
use pronto_pack::salvage::{self, Damage, Salvage};

use super::Store;
use crate::error::{Error, from_pack, to_pack};

/// The result of salvaging a pack.
#[derive(Debug)]
pub struct Salvaged {
    /// The damage that prevented objects from being recovered. If the list is empty, every object
    /// was recovered.
    pub damage: Vec<Damage>,
    /// The bytes after the pack, or the error that ended reading. The objects before the error are
    /// recovered.
    pub ended: Result<Vec<u8>, Error>,
}

impl Store {
    /// Writes each recoverable object of a damaged pack as a loose object, up to the position after
    /// which the pack cannot be read: see [`salvage::salvage`]. The modification time of existing
    /// objects is refreshed.
    pub fn salvage(
        &self,
        input: &mut dyn Read,
        options: &salvage::Options,
        watch: &Watch<'_>,
    ) -> Salvaged {
        let store = self.without_replacements();
        let mut into = Into {
            store: &store,
            damage: Vec::new(),
            meter: None,
            watch,
        };
        let ended = salvage::salvage(input, options, &mut into);
        if let Some(meter) = into.meter.filter(|_| ended.is_ok()) {
            meter.finish();
        }
        Salvaged {
            damage: into.damage,
            ended: ended.map_err(from_pack),
        }
    }
}

/// An inspector that writes the objects that it receives.
struct Into<'a> {
    store: &'a Store,
    damage: Vec<Damage>,
    meter: Option<Meter>,
    watch: &'a Watch<'a>,
}

impl Salvage for Into<'_> {
    fn begin(&mut self, count: u32) {
        let meter = self.watch.progress().begin(UNPACKING, Some(count.into()));
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

    fn damaged(&mut self, damage: Damage) {
        self.damage.push(damage);
    }

    fn advanced(&mut self) -> Result<(), pronto_pack::Error> {
        if let Some(meter) = &self.meter {
            meter.add(1);
        }
        self.watch.interrupt().check().map_err(|reason| {
            pronto_pack::Error::new(pronto_pack::ErrorKind::Interrupted, reason.to_string())
        })
    }
}
