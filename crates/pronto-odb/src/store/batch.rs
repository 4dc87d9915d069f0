//! Queries the existence of many objects at once.

use std::path::{Path, PathBuf};
use std::sync::{Arc, OnceLock};

use pronto_hash::{ObjectId, oid};

use super::Store;
use crate::error::{Error, from_pack};
use crate::loose;
use crate::snapshot::PackSnapshot;

/// The number of ids below which loose objects are checked one by one.
const FEW: usize = 64;

/// The objects of a store at one moment, for queries about very many objects. Uses the packs of the
/// start, and lists loose objects on demand. Costs one listing of each object directory and one
/// listing of each existing fan-out directory that is queried, independent of the number of
/// objects. Objects that are added later may be missed.
#[derive(Debug)]
pub struct Inventory {
    store: Store,
    snapshot: Arc<PackSnapshot>,
    loose: Vec<LooseListing>,
}

/// The loose objects of one directory, listed on demand.
#[derive(Debug)]
struct LooseListing {
    objects: PathBuf,
    /// The fan-out directories that exist.
    fanouts: OnceLock<Box<[bool; 256]>>,
    ids: Box<[OnceLock<Vec<ObjectId>>; 256]>,
}

impl Store {
    /// Returns which of `ids` exist: `found[i]` is the result for `ids[i]`. Any order is allowed;
    /// ascending ids cost least.
    ///
    /// Each index is traversed once in parallel with the ids, and each fan-out directory of loose
    /// objects is listed at most once. So the number of system calls does not depend on the number
    /// of objects, unless packs change meanwhile. Replacements are ignored.
    ///
    /// # Errors
    /// Fails with `ErrorKind::Corrupt` or `ErrorKind::Io` if an index or directory cannot be read.
    pub fn contains_batch(&self, ids: &[ObjectId]) -> Result<Vec<bool>, Error> {
        let inventory = self.inventory()?;
        let mut found = vec![false; ids.len()];
        inventory.mark_packed(ids, &mut found)?;
        let missing = found.iter().filter(|found| !**found).count();
        if missing > FEW {
            inventory.mark_loose(ids, &mut found)?;
        } else if missing > 0 {
            for (id, found) in ids.iter().zip(&mut found).filter(|(_, found)| !**found) {
                let mut directories = self.inner.directories.iter();
                *found = directories.any(|objects| loose::exists(objects, id));
            }
        }
        if found.contains(&false) && self.newer_than(&inventory.snapshot)?.is_some() {
            // Objects may have been moved from loose files to a new pack meanwhile.
            for (id, found) in ids.iter().zip(&mut found).filter(|(_, found)| !**found) {
                *found = self.contains(id)?;
            }
        }
        Ok(found)
    }

    /// Returns an inventory of the store, for queries about many objects.
    ///
    /// # Errors
    /// Fails with `ErrorKind::Io` if the packs cannot be listed.
    pub fn inventory(&self) -> Result<Inventory, Error> {
        self.refresh()?;
        let directories = self.inner.directories.iter();
        Ok(Inventory {
            store: self.clone(),
            snapshot: Arc::clone(&*self.snapshot()?),
            loose: directories.map(LooseListing::new).collect(),
        })
    }
}

impl Inventory {
    /// Returns the store of the inventory.
    pub fn store(&self) -> &Store {
        &self.store
    }

    /// Appends the positions in `ids` of existing objects to `found`, in ascending order. As with
    /// [`Store::contains_batch`], ascending ids cost least.
    ///
    /// # Errors
    /// Fails with `ErrorKind::Corrupt` or `ErrorKind::Io` if an index or directory cannot be read.
    pub fn contains_batch(&self, ids: &[ObjectId], found: &mut Vec<usize>) -> Result<(), Error> {
        let mut marks = vec![false; ids.len()];
        self.mark_packed(ids, &mut marks)?;
        self.mark_loose(ids, &mut marks)?;
        found.extend((0..ids.len()).filter(|&place| marks[place]));
        Ok(())
    }

    /// Marks the ids of packed objects.
    fn mark_packed(&self, ids: &[ObjectId], found: &mut [bool]) -> Result<(), Error> {
        let ids = || ids.iter().map(|id| -> &oid { id });
        for multi in &self.snapshot.multi {
            let searched = multi.index.find_many(ids(), |place, _| found[place] = true);
            searched.map_err(from_pack)?;
        }
        for pack in &self.snapshot.single {
            let index = match pack.index() {
                Ok(index) => index,
                Err(_) if pack.has_vanished() => continue,
                Err(error) => return Err(error),
            };
            let searched = index.find_many(ids(), |place, _| found[place] = true);
            searched.map_err(from_pack)?;
        }
        Ok(())
    }

    fn mark_loose(&self, ids: &[ObjectId], found: &mut [bool]) -> Result<(), Error> {
        for listing in &self.loose {
            for (id, found) in ids.iter().zip(&mut *found) {
                let there = listing.bucket(id.first_byte(), self.store.kind())?;
                *found |= there.binary_search(id).is_ok();
            }
        }
        Ok(())
    }
}

impl LooseListing {
    fn new(objects: impl AsRef<Path>) -> Self {
        LooseListing {
            objects: objects.as_ref().to_owned(),
            fanouts: OnceLock::new(),
            ids: Box::new([const { OnceLock::new() }; 256]),
        }
    }

    /// Returns the sorted ids of the loose objects whose first byte is `first_byte`.
    fn bucket(&self, first_byte: u8, kind: pronto_hash::Kind) -> Result<&[ObjectId], Error> {
        let slot = &self.ids[usize::from(first_byte)];
        if let Some(ids) = slot.get() {
            return Ok(ids);
        }
        let mut ids = Vec::new();
        if self.has_fanout(first_byte)? {
            loose::list(&self.objects, first_byte, kind, &mut ids)?;
            ids.sort_unstable();
        }
        Ok(slot.get_or_init(|| ids))
    }

    fn has_fanout(&self, first_byte: u8) -> Result<bool, Error> {
        let fanouts = match self.fanouts.get() {
            Some(fanouts) => fanouts,
            None => {
                let listed = loose::fanouts(&self.objects)?;
                self.fanouts.get_or_init(|| listed)
            }
        };
        Ok(fanouts[usize::from(first_byte)])
    }
}
