//! Stores new trees: as loose objects if they are few, as a pack if they are many. The number is
//! not known before the last tree.

use gix_object::Kind;
use pronto_hash::ObjectId;
use pronto_odb::{Bulk, Store};
use pronto_pack::writer::{Encoder, Options};

use crate::Result;
use crate::objects::from_odb;

/// The limit in bytes for trees that are held in memory before a pack is started.
const WAITING_BYTES: usize = 16 << 20;

/// Receives trees one after another. Readers can find the trees after [`finish`](Self::finish),
/// which must be called.
pub(super) struct NewTrees<'a> {
    store: &'a Store,
    options: Options,
    packed_from: usize,
    waiting: Vec<(ObjectId, Vec<u8>)>,
    waiting_bytes: usize,
    bulk: Option<(Bulk, Encoder)>,
}

impl<'a> NewTrees<'a> {
    pub(super) fn new(store: &'a Store, options: Options, packed_from: usize) -> Self {
        NewTrees {
            store,
            options,
            packed_from,
            waiting: Vec::new(),
            waiting_bytes: 0,
            bulk: None,
        }
    }

    /// Adds a tree with this content, and returns its id.
    pub(super) fn add(
        &mut self,
        content: &[u8],
    ) -> std::result::Result<ObjectId, pronto_odb::Error> {
        let id = self.store.id_of(Kind::Tree, content)?;
        if let Some((bulk, encoder)) = &mut self.bulk {
            bulk.add(&id, Kind::Tree, content, encoder)?;
            return Ok(id);
        }
        self.waiting.push((id, content.to_vec()));
        self.waiting_bytes += content.len();
        if self.waiting_bytes > WAITING_BYTES {
            self.begin_bulk()?;
        }
        Ok(id)
    }

    /// Writes the trees that are held in memory, and completes the pack.
    ///
    /// # Errors
    /// Fails if a tree cannot be written.
    pub(super) fn finish(mut self) -> Result<()> {
        if self.bulk.is_none() && self.waiting.len() >= self.packed_from {
            self.begin_bulk().map_err(from_odb)?;
        }
        if let Some((bulk, _)) = self.bulk {
            return bulk.finish().map_err(from_odb);
        }
        let mut waiting = self.waiting.iter();
        let written =
            waiting.try_for_each(|(id, content)| self.store.write_known(id, Kind::Tree, content));
        written.map_err(from_odb)
    }

    fn begin_bulk(&mut self) -> std::result::Result<(), pronto_odb::Error> {
        let bulk = self
            .store
            .pack_from(self.packed_from, self.options.clone())?;
        let mut encoder = bulk.encoder();
        for (id, content) in std::mem::take(&mut self.waiting) {
            bulk.add(&id, Kind::Tree, &content, &mut encoder)?;
        }
        self.bulk = Some((bulk, encoder));
        Ok(())
    }
}
