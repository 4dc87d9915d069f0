//! The objects of a bitmap, their bits and their types.

use gix_object::Kind as ObjectKind;
use pronto_hash::oid;
use pronto_pack::bitmap::Bits;
use pronto_pack::idx::{IndexPosition, PackIndex};
use pronto_pack::midx::MultiIndex;
use pronto_pack::pack::{PackOrder, PackPosition, PackReader, kinds};
use pronto_repository::Notice;
use pronto_repository::objects::from_odb;
use pronto_repository::packs::from_pack;
use pronto_repository::{Error, ErrorKind, Result};

use super::BitmapContext;
use super::lacking;

/// A callback that gets the bit of an object and a name hash.
pub(super) type VisitHash<'f> = dyn FnMut(u32, u32) + 'f;

/// The objects of a pack or a multi-pack-index.
pub(crate) struct BitmapObjects<'a> {
    index: BitmappedIndex<'a>,
    /// The bit of the object in each row of the index.
    bits: Vec<u32>,
    kinds: [Bits; 4],
}

enum BitmappedIndex<'a> {
    Pack(&'a PackIndex),
    Multi(&'a MultiIndex),
}

/// A pack of the multi-pack-index.
pub(crate) struct MidxPack {
    pub(crate) pack: PackReader,
    pub(crate) index: PackIndex,
}

impl<'a> BitmapObjects<'a> {
    /// Lists the objects of one pack.
    ///
    /// # Errors
    /// Fails with [`ErrorKind::Object`] or [`ErrorKind::Io`] if the pack cannot be read.
    pub(crate) fn of_pack(pack: &PackReader, index: &'a PackIndex) -> Result<BitmapObjects<'a>> {
        let order = PackOrder::new(pack, index).map_err(from_pack)?;
        let mut objects = BitmapObjects::new(BitmappedIndex::Pack(index), order.len());
        let kinds = kinds(pack, index, &order).map_err(from_pack)?;
        for (bit, kind) in kinds.into_iter().enumerate() {
            let bit = bit as u32;
            if let Some((_, row)) = order.get(PackPosition(bit)) {
                objects.place(row, bit, kind);
            }
        }
        Ok(objects)
    }

    /// Lists the objects of a multi-pack-index with a pack order (`.rev`). `open` opens a pack by its
    /// number.
    ///
    /// # Errors
    /// Fails with [`ErrorKind::Object`] if a pack cannot be read or lacks an object.
    pub(crate) fn of_multi(
        index: &'a MultiIndex,
        open: &dyn Fn(usize) -> Result<MidxPack>,
    ) -> Result<BitmapObjects<'a>> {
        let mut objects = BitmapObjects::new(BitmappedIndex::Multi(index), index.len());
        let mut opened = None;
        for bit in 0..index.len() {
            let row = index.position_at_place(bit).map_err(from_pack)?;
            let row = row.ok_or_else(|| {
                Error::new(ErrorKind::Object, "the multi-pack-index has no pack order")
            })?;
            let (number, offset) = index.location_at(row).map_err(from_pack)?;
            let is_open = matches!(&opened, Some((known, _, _)) if *known == number);
            if !is_open {
                let member = open(number.0 as usize)?;
                let order = PackOrder::new(&member.pack, &member.index).map_err(from_pack)?;
                let kinds = kinds(&member.pack, &member.index, &order).map_err(from_pack)?;
                opened = Some((number, order, kinds));
            }
            let kind = opened.as_ref().and_then(|(_, order, kinds)| {
                let place = order.position(offset)?;
                kinds.get(place.0 as usize).copied()
            });
            let kind = kind.ok_or_else(|| {
                let message = "corrupt multi-pack-index: no object at an offset";
                Error::new(ErrorKind::Corrupt, message).at_offset(offset.0)
            })?;
            objects.place(row, bit, kind);
        }
        Ok(objects)
    }

    fn new(index: BitmappedIndex<'a>, count: u32) -> BitmapObjects<'a> {
        BitmapObjects {
            index,
            bits: vec![u32::MAX; count as usize],
            kinds: std::array::from_fn(|_| Bits::new(count)),
        }
    }

    fn place(&mut self, row: IndexPosition, bit: u32, kind: ObjectKind) {
        self.bits[row.0 as usize] = bit;
        let kind = match kind {
            ObjectKind::Commit => 0,
            ObjectKind::Tree => 1,
            ObjectKind::Blob => 2,
            ObjectKind::Tag => 3,
        };
        self.kinds[kind].insert(bit);
    }

    /// Returns the number of objects.
    pub(crate) fn len(&self) -> u32 {
        self.bits.len() as u32
    }

    /// Returns the bits of the commits, trees, blobs and tags.
    pub(crate) fn kinds(&self) -> &[Bits; 4] {
        &self.kinds
    }

    /// Returns the row of `id` in the index; `None` if the index does not list it.
    ///
    /// # Errors
    /// Fails with [`ErrorKind::Object`] or [`ErrorKind::Io`] if the index cannot be read.
    pub(crate) fn row(&self, id: &oid) -> Result<Option<IndexPosition>> {
        let row = match self.index {
            BitmappedIndex::Pack(index) => index.find(id),
            BitmappedIndex::Multi(index) => index.find(id),
        };
        row.map_err(from_pack)
    }

    /// Returns the bit of the object in row `row`.
    pub(crate) fn bit_at(&self, row: IndexPosition) -> u32 {
        self.bits[row.0 as usize]
    }

    /// Returns the bit of `id`.
    ///
    /// # Errors
    /// Fails with [`ErrorKind::Refused`] if the index does not list `id`.
    pub(crate) fn bit(&self, id: &oid) -> Result<u32> {
        match self.row(id)? {
            Some(row) => Ok(self.bit_at(row)),
            None => Err(lacking(id)),
        }
    }

    /// Returns the name hashes in the order of the index: those of the existing bitmaps and, for a
    /// pack, those that `introduced` reports. `introduced` calls its argument with the bit of each
    /// object and the hash of its name.
    ///
    /// # Errors
    /// Fails with [`ErrorKind::Object`] or [`ErrorKind::Io`] if the index cannot be read.
    pub(super) fn name_hashes(
        &self,
        work: &BitmapContext<'_>,
        introduced: &dyn Fn(&mut VisitHash<'_>),
    ) -> Result<Vec<u32>> {
        let mut hashes = vec![0; self.bits.len()];
        let present = work.store.bitmaps().unwrap_or_else(|error| {
            let error = error.without_context(ErrorKind::Object);
            work.repository.notify(Notice::Failure(error));
            None
        });
        if let Some(present) = &present {
            present
                .for_each_name_hash(|id, hash| {
                    if let Ok(Some(row)) = self.row(id) {
                        hashes[row.0 as usize] = hash;
                    }
                })
                .map_err(from_odb)?;
        }
        if let BitmappedIndex::Pack(_) = self.index {
            let mut by_bit = vec![0; self.bits.len()];
            introduced(&mut |bit, hash| {
                let slot = &mut by_bit[bit as usize];
                if *slot == 0 {
                    *slot = hash;
                }
            });
            for (hash, bit) in hashes.iter_mut().zip(&self.bits) {
                if *hash == 0 {
                    *hash = by_bit[*bit as usize];
                }
            }
        }
        Ok(hashes)
    }
}
