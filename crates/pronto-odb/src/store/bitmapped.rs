//! Reachability bitmaps of a store, with the mapping between bits and objects.

use std::ops::Range;
use std::path::PathBuf;
use std::sync::Arc;

use pronto_hash::{ObjectId, oid};
use pronto_io::error::IoContext as _;
use pronto_io::view::FileView;
use pronto_pack::bitmap::{BitmapFile, Bits};
use pronto_pack::idx::IndexPosition;
use pronto_pack::midx::{MultiIndex, PackNumber};
use pronto_pack::pack::{PackOffset, PackPosition};

use super::Store;
use crate::error::{Error, ErrorKind, from_pack, is_gone};
use crate::packs::PackFile;
use crate::snapshot::Multi;

/// The reachability bitmaps of a store. A bit is the position of an object in the pack, or in the
/// pseudo-pack order of a multi-pack-index.
#[derive(Debug)]
pub struct Bitmapped {
    bitmaps: BitmapFile,
    objects: BitmappedPacks,
}

#[derive(Debug)]
enum BitmappedPacks {
    Pack(Arc<PackFile>),
    Multi(Several),
}

/// The objects of a multi-pack-index.
#[derive(Debug)]
struct Several {
    index: Arc<MultiIndex>,
    packs: Vec<Option<Arc<PackFile>>>,
    /// The bit of each row of the multi-pack-index.
    bits: Vec<u32>,
}

/// The objects of one pack, which have consecutive bits.
#[derive(Clone, Debug)]
pub(crate) struct BitmapSection {
    pub(crate) pack: Arc<PackFile>,
    pub(crate) bits: Range<u32>,
}

impl Store {
    /// Returns the bitmaps of a multi-pack-index, or else those of a pack; `None` if there are no
    /// bitmaps. Each call opens the files again.
    ///
    /// # Errors
    /// Fails with `ErrorKind::Corrupt` or another kind if bitmaps exist and cannot be read or do
    /// not match their pack, and with `ErrorKind::Io` if the packs cannot be listed.
    pub fn bitmaps(&self) -> Result<Option<Bitmapped>, Error> {
        let snapshot = Arc::clone(&*self.snapshot()?);
        for multi in &snapshot.multi {
            if let Some(found) = self.bitmaps_of_multi(multi)? {
                return Ok(Some(found));
            }
        }
        for pack in snapshot.all_packs() {
            if let Some(found) = self.bitmaps_of_pack(pack)? {
                return Ok(Some(found));
            }
        }
        Ok(None)
    }

    fn bitmaps_of_multi(&self, multi: &Multi) -> Result<Option<Bitmapped>, Error> {
        let index = &multi.index;
        if !index.has_order() {
            return Ok(None);
        }
        let checksum = index.checksum().map_err(from_pack)?;
        let name = format!("multi-pack-index-{checksum}.bitmap");
        let path = index.path().with_file_name(name);
        let Some(bitmaps) = self.open_bitmaps(&path, index.len())? else {
            return Ok(None);
        };
        check(&bitmaps, &checksum)?;
        let mut bits = vec![u32::MAX; index.len() as usize];
        for place in 0..index.len() {
            if let Some(row) = index.position_at_place(place).map_err(from_pack)? {
                bits[row.0 as usize] = place;
            }
        }
        Ok(Some(Bitmapped {
            bitmaps,
            objects: BitmappedPacks::Multi(Several {
                index: index.clone(),
                packs: multi.packs.clone(),
                bits,
            }),
        }))
    }

    fn bitmaps_of_pack(&self, pack: &Arc<PackFile>) -> Result<Option<Bitmapped>, Error> {
        let path = pack.listed.index_path.with_extension("bitmap");
        let Ok(index) = pack.index() else {
            return Ok(None);
        };
        let Some(bitmaps) = self.open_bitmaps(&path, index.len())? else {
            return Ok(None);
        };
        check(&bitmaps, &pack.pack()?.checksum().map_err(from_pack)?)?;
        // The entries are sorted here if necessary, so that a later lookup of a bit cannot fail for
        // this reason.
        pack.entry_at(PackPosition(0))?;
        Ok(Some(Bitmapped {
            bitmaps,
            objects: BitmappedPacks::Pack(pack.clone()),
        }))
    }

    fn open_bitmaps(
        &self,
        path: &std::path::Path,
        count: u32,
    ) -> Result<Option<BitmapFile>, Error> {
        let options = self.options();
        let opened = FileView::open(path, options.access)
            .context(pronto_pack::ErrorKind::Io, "cannot open", path)
            .and_then(|view| BitmapFile::from_view(view, path, options.kind, count));
        match opened {
            Ok(bitmaps) => Ok(Some(bitmaps)),
            Err(error) if is_gone(&error) => Ok(None),
            Err(error) => Err(from_pack(error)),
        }
    }
}

fn check(bitmaps: &BitmapFile, checksum: &ObjectId) -> Result<(), Error> {
    if bitmaps.checksum() == *checksum {
        return Ok(());
    }
    let message = "the bitmap file does not match its pack or multi-pack-index";
    Err(Error::new(ErrorKind::Corrupt, message).at_path(bitmaps.path()))
}

impl Bitmapped {
    /// Returns the path of the pack from which packing copies a block of selected objects, as in
    /// Git: the pack of the bitmaps, or the preferred pack of a multi-pack-index.
    ///
    /// # Errors
    /// Fails if the multi-pack-index cannot be read.
    pub fn reused_pack(&self) -> Result<Option<PathBuf>, Error> {
        let index = match &self.objects {
            BitmappedPacks::Pack(pack) => return Ok(Some(pack.pack_path())),
            BitmappedPacks::Multi(several) => &several.index,
        };
        let Some(first) = index.position_at_place(0).map_err(from_pack)? else {
            return Ok(None);
        };
        let (number, _) = index.location_at(first).map_err(from_pack)?;
        let name = index.pack_names().get(number.0 as usize);
        let path = name.map(|name| index.path().with_file_name(name));
        Ok(path.map(|path| path.with_extension("pack")))
    }

    /// Returns the bitmap file.
    pub fn file(&self) -> &BitmapFile {
        &self.bitmaps
    }

    /// Returns an empty set of objects.
    pub fn empty(&self) -> Bits {
        let count = match &self.objects {
            BitmappedPacks::Pack(pack) => pack.index().map_or(0, |index| index.len()),
            BitmappedPacks::Multi(Several { index, .. }) => index.len(),
        };
        Bits::new(count)
    }

    /// Returns the bit of object `id`; `None` if the object has no bit. Logarithmic.
    ///
    /// # Errors
    /// Fails with `ErrorKind::Corrupt` or `ErrorKind::Io` if the index cannot be read.
    pub fn bit(&self, id: &oid) -> Result<Option<u32>, Error> {
        match &self.objects {
            BitmappedPacks::Pack(pack) => {
                let offset = pack.index()?.find_offset(id).map_err(from_pack)?;
                let Some(offset) = offset else {
                    return Ok(None);
                };
                Ok(pack.position_of(offset)?.map(|place| place.0))
            }
            BitmappedPacks::Multi(Several { index, bits, .. }) => {
                let row = index.find(id).map_err(from_pack)?;
                let bit = row.map(|row| bits[row.0 as usize]);
                Ok(bit.filter(|bit| *bit != u32::MAX))
            }
        }
    }

    /// Returns the id of the object of `bit`.
    ///
    /// # Errors
    /// Fails as [`bit`](Self::bit) does, and with `ErrorKind::Corrupt` if the bit has no object.
    pub fn id(&self, bit: u32) -> Result<ObjectId, Error> {
        match &self.objects {
            BitmappedPacks::Pack(pack) => {
                let found = pack.entry_at(PackPosition(bit))?;
                let (_, row) = found.ok_or_else(no_object)?;
                pack.index()?.id_at(row).map_err(from_pack)
            }
            BitmappedPacks::Multi(Several { index, .. }) => {
                let row = index.position_at_place(bit).map_err(from_pack)?;
                index.id_at(row.ok_or_else(no_object)?).map_err(from_pack)
            }
        }
    }

    /// Calls `found` with each stored name hash and the id of its object.
    ///
    /// # Errors
    /// Fails as [`bit`](Self::bit) does.
    pub fn for_each_name_hash(&self, mut found: impl FnMut(&oid, u32)) -> Result<(), Error> {
        let count = match &self.objects {
            BitmappedPacks::Pack(pack) => pack.index()?.len(),
            BitmappedPacks::Multi(Several { index, .. }) => index.len(),
        };
        for row in (0..count).map(IndexPosition) {
            let Some(hash) = self.bitmaps.name_hash(row).filter(|hash| *hash != 0) else {
                continue;
            };
            let id = match &self.objects {
                BitmappedPacks::Pack(pack) => pack.index()?.id_at(row),
                BitmappedPacks::Multi(Several { index, .. }) => index.id_at(row),
            };
            found(&id.map_err(from_pack)?, hash);
        }
        Ok(())
    }

    /// Returns all objects that are reachable from the commit `id`, including the commit; `None` if
    /// the commit has no bitmap.
    ///
    /// # Errors
    /// Fails as [`bit`](Self::bit) does, and with `ErrorKind::Corrupt` if the bitmap cannot be
    /// read.
    pub fn reachable_from(&self, id: &oid) -> Result<Option<Bits>, Error> {
        let row: Option<IndexPosition> = match &self.objects {
            BitmappedPacks::Pack(pack) => pack.index()?.find(id).map_err(from_pack)?,
            BitmappedPacks::Multi(Several { index, .. }) => index.find(id).map_err(from_pack)?,
        };
        match row {
            Some(row) => self.bitmaps.reachable_from(row).map_err(from_pack),
            None => Ok(None),
        }
    }

    /// Returns the packs of the objects, in the order of the bits.
    ///
    /// # Errors
    /// Fails if a pack cannot be opened, and as [`bit`](Self::bit) does.
    pub(crate) fn parts(&self) -> Result<Vec<BitmapSection>, Error> {
        let several = match &self.objects {
            BitmappedPacks::Pack(pack) => {
                let (pack, bits) = (pack.clone(), 0..pack.index()?.len());
                return Ok(vec![BitmapSection { pack, bits }]);
            }
            BitmappedPacks::Multi(several) => several,
        };
        let mut parts = Vec::new();
        let (mut start, len) = (0, several.index.len());
        while start < len {
            let (number, _) = several.location(start)?;
            let is_other = |bit| Ok(several.location(bit)?.0 != number);
            let end = first(start + 1..len, is_other)?;
            let pack = several.packs.get(number.0 as usize).cloned().flatten();
            let gone = || {
                Error::new(
                    ErrorKind::Missing,
                    "a pack of the multi-pack-index has disappeared",
                )
            };
            let pack = pack.ok_or_else(|| gone().at_path(several.index.path()))?;
            pack.pack()?;
            let bits = start..end;
            parts.push(BitmapSection { pack, bits });
            start = end;
        }
        Ok(parts)
    }

    /// Returns the start of the entry of `bit` in the pack of its part.
    ///
    /// # Errors
    /// Fails as [`id`](Self::id) does.
    pub(crate) fn offset_of(&self, bit: u32) -> Result<PackOffset, Error> {
        match &self.objects {
            BitmappedPacks::Pack(pack) => {
                let found = pack.entry_at(PackPosition(bit))?;
                found.map(|(offset, _)| offset).ok_or_else(no_object)
            }
            BitmappedPacks::Multi(several) => Ok(several.location(bit)?.1),
        }
    }

    /// Returns the bit of the entry that starts at `offset` in the pack of `part`; `None` if the
    /// bitmap uses the copy of the object in another pack.
    ///
    /// # Errors
    /// Fails as [`bit`](Self::bit) does.
    pub(crate) fn bit_at(
        &self,
        part: &BitmapSection,
        offset: PackOffset,
    ) -> Result<Option<u32>, Error> {
        match &self.objects {
            BitmappedPacks::Pack(pack) => Ok(pack.position_of(offset)?.map(|place| place.0)),
            BitmappedPacks::Multi(several) => {
                let is_behind = |bit| Ok(several.location(bit)?.1 >= offset);
                let bit = first(part.bits.clone(), is_behind)?;
                let is_there = bit < part.bits.end && several.location(bit)?.1 == offset;
                Ok(is_there.then_some(bit))
            }
        }
    }
}

impl Several {
    /// Returns the pack of the object of `bit`, and the start of its entry in this pack.
    fn location(&self, bit: u32) -> Result<(PackNumber, PackOffset), Error> {
        let row = self.index.position_at_place(bit).map_err(from_pack)?;
        (self.index.location_at(row.ok_or_else(no_object)?)).map_err(from_pack)
    }
}

/// Returns the first bit in `range` that satisfies the condition, provided that all following bits
/// satisfy it, too; otherwise the end of the range.
fn first(
    range: Range<u32>,
    mut fits: impl FnMut(u32) -> Result<bool, Error>,
) -> Result<u32, Error> {
    let Range { mut start, mut end } = range;
    while start < end {
        let middle = start + (end - start) / 2;
        match fits(middle)? {
            true => end = middle,
            false => start = middle + 1,
        }
    }
    Ok(start)
}

#[cold]
fn no_object() -> Error {
    Error::new(
        ErrorKind::Corrupt,
        "corrupt bitmap: a bit does not correspond to an object",
    )
}
