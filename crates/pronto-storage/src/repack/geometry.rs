//! Geometric repacking: each pack has several times the objects of the next smaller one.

use bstr::BString;
use pronto_hash::ObjectId;
use pronto_odb::packing::PackMember;
use pronto_repository::packs::from_pack;
use pronto_repository::{Error, ErrorKind, Result};

use super::RepackRun;
use crate::pack_objects::{ExistingPack, SelectedObjects, known_packs, loose_objects, mark};

/// The packs, sorted by their number of objects.
pub(super) struct Geometry {
    /// The packs, smallest first.
    packs: Vec<ExistingPack>,
    /// The number of smallest packs that are combined.
    split: usize,
}

impl Geometry {
    /// Returns the name of the largest pack, if it is not combined with others.
    pub(super) fn largest(&self) -> Option<BString> {
        let largest = self.packs.last().filter(|_| self.split < self.packs.len());
        largest.map(ExistingPack::name)
    }
}

impl RepackRun<'_> {
    /// # Errors
    /// Fails with [`ErrorKind::Io`] or [`ErrorKind::Object`] if the packs cannot be listed, or
    /// [`ErrorKind::InvalidInput`] if a pack is too large.
    pub(super) fn geometry(&self, factor: u32) -> Result<Geometry> {
        let mut packs = known_packs(self.repository)?;
        packs.retain(|pack| {
            let is_kept = pack.is_kept || self.is_named(pack);
            let is_cruft = pack.path.with_extension("mtimes").exists();
            pack.is_own && !is_cruft && (self.options.pack_kept_objects || !is_kept)
        });
        packs.sort_by_key(|pack| pack.index.len());
        let too_large = |pack: &ExistingPack, what: &str| {
            let message = format!("pack {} too large to {what}", pack.path.display());
            Error::new(ErrorKind::InvalidInput, message)
        };
        let mut split = packs.len().saturating_sub(1);
        while split > 0 {
            let (ours, before) = (&packs[split], &packs[split - 1]);
            let least = before.index.len().checked_mul(factor);
            let least =
                least.ok_or_else(|| too_large(before, "consider in geometric progression"))?;
            if ours.index.len() < least {
                // The larger pack of the pair is combined, too.
                split += 1;
                break;
            }
            split -= 1;
        }
        let mut total = 0u64;
        for pack in &packs[..split] {
            total += u64::from(pack.index.len());
        }
        for pack in &packs[split..] {
            let count = u64::from(pack.index.len());
            let least = total.checked_mul(factor.into());
            if count >= least.ok_or_else(|| too_large(pack, "roll up"))? {
                break;
            }
            split += 1;
            total += count;
        }
        Ok(Geometry { packs, split })
    }

    fn is_named(&self, pack: &ExistingPack) -> bool {
        self.options.keep_packs.contains(&pack.name())
    }

    /// Selects the loose objects and the objects of the packs to combine, without objects in other
    /// packs.
    ///
    /// # Errors
    /// Fails with [`ErrorKind::Io`] or [`ErrorKind::Object`] if a pack index or a directory cannot be
    /// read.
    pub(super) fn select_geometric(&self, geometry: &Geometry) -> Result<SelectedObjects> {
        let (included, others) = geometry.packs.split_at(geometry.split);
        let objects = self.directory.parent().unwrap_or(&self.directory);
        let mut ids: Vec<ObjectId> = loose_objects(objects)?;
        for pack in included {
            let scanned = (pack.index).scan_ids(0..pack.index.len(), |id| ids.push(id.to_owned()));
            scanned.map_err(from_pack)?;
        }
        ids.sort_unstable();
        ids.dedup();
        let mut marks = vec![false; ids.len()];
        for pack in others {
            mark(&pack.index, &ids, &mut marks)?;
        }
        for pack in known_packs(self.repository)? {
            let honors = !self.options.pack_kept_objects && pack.is_kept;
            if pack.is_own && (honors || self.is_named(&pack)) {
                mark(&pack.index, &ids, &mut marks)?;
            }
        }
        let wanted = ids.into_iter().zip(marks).filter(|(_, mark)| !mark);
        Ok(SelectedObjects {
            members: wanted
                .map(|(id, _)| PackMember { id, name_hash: 0 })
                .collect(),
            ..SelectedObjects::default()
        })
    }

    /// Returns the packs that the new pack replaces.
    pub(super) fn rolled_up(&self, geometry: &Geometry, new: Option<&BString>) -> Vec<BString> {
        let mut stems = Vec::new();
        for pack in &geometry.packs[..geometry.split] {
            let name = pack.name();
            let stem = name.strip_suffix(b".pack".as_slice()).unwrap_or(&name);
            let is_kept = pack.is_kept || self.is_named(pack);
            if !is_kept && new.is_none_or(|new| new != stem) {
                stems.push(stem.into());
            }
        }
        stems
    }
}
