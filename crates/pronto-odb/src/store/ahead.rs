//! Prefetches objects that will be read soon.

use std::collections::BTreeMap;

use pronto_hash::oid;
use pronto_io::view::blocks;

use super::Store;

impl Store {
    /// Returns whether [`prefetch`](Self::prefetch) can save time: whether the process reads any
    /// file in blocks from remote storage.
    #[must_use]
    pub fn can_prefetch(&self) -> bool {
        blocks::is_any_published()
    }

    /// Begins to fetch the parts of packs that contain the objects `ids`, if their packs are read
    /// in blocks from remote storage.
    ///
    /// Reading such objects one after the other costs one round trip each; requesting them together
    /// costs one round trip. Does not wait. An object that cannot be found, or a pack that cannot
    /// be opened, is skipped; a later read reports the error. Costs a search of the indexes for
    /// each object.
    pub fn prefetch<'a>(&self, ids: impl IntoIterator<Item = &'a oid>) {
        if !self.can_prefetch() {
            return;
        }
        let mut offsets: BTreeMap<u32, Vec<u64>> = BTreeMap::new();
        for location in ids.into_iter().filter_map(|id| self.position(id)) {
            let of_pack = offsets.entry(location.pack).or_default();
            of_pack.push(location.offset.0);
        }
        let Ok(snapshot) = self.snapshot() else {
            return;
        };
        for (pack, mut offsets) in offsets {
            offsets.sort_unstable();
            let opened = snapshot.pack(pack).and_then(|pack| pack.pack().ok());
            if let Some(opened) = opened {
                opened.view().prefetch_all(&offsets);
            }
        }
    }
}
