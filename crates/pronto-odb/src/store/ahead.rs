//! Reading ahead of objects that will be read soon.

use std::collections::BTreeMap;

use pronto_hash::oid;
use pronto_io::view::blocks;

use super::Store;

impl Store {
    /// Whether [`prefetch`](Self::prefetch) can save time: whether the process reads any file by block from elsewhere.
    #[must_use]
    pub fn can_prefetch(&self) -> bool {
        blocks::is_any_published()
    }

    /// Begins to fetch the parts of packs in which objects lie, if their packs are read by block from elsewhere.
    ///
    /// Objects that are read one after the other cost a round trip each; when they are requested together, they cost
    /// one. Does not wait. What cannot be found or opened is left to the read that comes later. Costs a search of the
    /// indexes for each object.
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
