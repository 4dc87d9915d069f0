//! Asking for many objects at once.

use pronto_hash::{ObjectId, oid};

use super::Store;
use crate::error::{Error, from_pack};
use crate::loose;

/// With fewer ids than this, loose objects are asked for one by one.
const FEW: usize = 64;

impl Store {
    /// Which of `ids` are there: `found[i]` tells of `ids[i]`. They must be sorted in rising order.
    ///
    /// Each index is gone through once beside the ids, and each fan-out directory of loose objects
    /// is listed at most once, so no system call is made for each object. Packs are listed anew
    /// only at the start. Replacements do not count.
    ///
    /// # Errors
    /// `Corrupt` or `Io` when an index or directory cannot be read.
    pub fn contains_batch(&self, ids: &[ObjectId]) -> Result<Vec<bool>, Error> {
        let mut found = vec![false; ids.len()];
        self.refresh()?;
        let snapshot = self.snapshot()?;
        for multi in &snapshot.multi {
            for (id, found) in ids.iter().zip(&mut found).filter(|(_, found)| !**found) {
                *found = multi.index.find(id).map_err(from_pack)?.is_some();
            }
        }
        for pack in &snapshot.single {
            let index = match pack.index() {
                Ok(index) => index,
                Err(_) if pack.has_vanished() => continue,
                Err(error) => return Err(error),
            };
            let ids = ids.iter().map(|id| -> &oid { id });
            index
                .find_sorted(ids, |place, _| found[place] = true)
                .map_err(from_pack)?;
        }
        drop(snapshot);
        self.mark_loose(ids, &mut found)?;
        Ok(found)
    }

    fn mark_loose(&self, ids: &[ObjectId], found: &mut [bool]) -> Result<(), Error> {
        let missing: Vec<usize> = (0..ids.len()).filter(|&place| !found[place]).collect();
        for objects in &self.inner.directories {
            if missing.len() < FEW {
                for &place in missing.iter() {
                    found[place] |= loose::exists(objects, &ids[place]);
                }
                continue;
            }
            let same_directory =
                |a: &usize, b: &usize| ids[*a].first_byte() == ids[*b].first_byte();
            for places in missing.chunk_by(same_directory) {
                let mut there = Vec::new();
                let first_byte = ids[places[0]].first_byte();
                loose::list(objects, first_byte, self.kind(), &mut there)?;
                there.sort_unstable();
                for &place in places {
                    found[place] |= there.binary_search(&ids[place]).is_ok();
                }
            }
        }
        Ok(())
    }
}
