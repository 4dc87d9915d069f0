//! Copies the objects that a bitmap selects from their packs, in pack order.
//!
//! Costs: one bit for each object of the bitmap file, and 16 bytes for each gap between the copied
//! objects. A pack that is copied as a whole costs nothing: its entries are not read.

use std::collections::HashSet;
use std::sync::Arc;

use gix_object::Kind as ObjectKind;
use pronto_hash::{ObjectId, oid};
use pronto_io::progress::Meter;
use pronto_io::watch::Watch;
use pronto_pack::bitmap::Bits;
use pronto_pack::entry::{Entry, EntryHeader};
use pronto_pack::pack::{PackOffset, PackPosition, PackReader};
use pronto_pack::writer::sink::PackSink;

use super::super::bitmapped::{BitmapSection, Bitmapped};
use super::emit::GatheredStream;
use super::plan::Whole;
use super::{PackCounts, each_piece};
use crate::error::{Error, ErrorKind, from_pack};

/// The length of the header of a pack.
const HEADER_LEN: u64 = 12;

/// The number of objects between two checks for interruption.
const CHECKED: u32 = 1024;

const KINDS: [ObjectKind; 4] = [
    ObjectKind::Commit,
    ObjectKind::Tree,
    ObjectKind::Blob,
    ObjectKind::Tag,
];

/// A set of objects of a bitmap file. `Send + Sync`; clones share the file and copy one bit for
/// each object of the file.
#[derive(Clone, Debug)]
pub struct BitmapSubset {
    bitmapped: Arc<Bitmapped>,
    bits: Bits,
}

impl BitmapSubset {
    /// Returns the set of the objects of `bits`.
    pub fn new(bitmapped: Arc<Bitmapped>, bits: Bits) -> BitmapSubset {
        BitmapSubset { bitmapped, bits }
    }

    /// Returns the number of objects. Counts the bits, as [`is_empty`](Self::is_empty) does.
    pub fn len(&self) -> u32 {
        self.bits.count()
    }

    /// Returns whether the set is empty.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Returns whether the set contains object `id`. Logarithmic.
    ///
    /// # Errors
    /// Fails with `ErrorKind::Corrupt` or `ErrorKind::Io` if the index cannot be read.
    pub fn contains(&self, id: &oid) -> Result<bool, Error> {
        let bit = self.bitmapped.bit(id)?;
        Ok(bit.is_some_and(|bit| self.bits.contains(bit)))
    }

    /// Keeps the objects whose type `takes` accepts, and the objects in `named`. Removes all
    /// others.
    ///
    /// # Errors
    /// Fails as [`contains`](Self::contains) does.
    pub fn retain_kinds(
        &mut self,
        takes: impl Fn(ObjectKind) -> bool,
        named: &HashSet<ObjectId>,
    ) -> Result<(), Error> {
        let mut kept = Bits::new(self.bits.limit());
        for id in named {
            if let Some(bit) = self.bitmapped.bit(id)? {
                kept.insert(bit);
            }
        }
        for kind in KINDS.into_iter().filter(|kind| takes(*kind)) {
            kept.union(self.bitmapped.file().of_kind(kind));
        }
        self.bits.intersect(&kept);
        Ok(())
    }

    /// Returns the ids of the objects, in the order of their bits.
    ///
    /// # Errors
    /// Each item fails as [`contains`](Self::contains) does.
    pub fn ids(&self) -> impl Iterator<Item = Result<ObjectId, Error>> + '_ {
        self.bits.iter().map(|bit| self.bitmapped.id(bit))
    }
}

/// The division of a [`BitmapSubset`] into entries that are copied, and other objects.
pub(super) struct Copied<'a> {
    block: &'a BitmapSubset,
    /// The objects that the receiver has.
    known: Option<&'a BitmapSubset>,
    parts: Vec<BitmapSection>,
    /// The objects whose entries are copied.
    bits: Bits,
    /// The deltas whose bases are not copied.
    pub(super) rest: Vec<ObjectId>,
}

/// A part of a block, with the opened files of its pack.
struct OpenBlockPart<'a> {
    part: &'a BitmapSection,
    pack: &'a PackReader,
}

/// An entry of a pack.
#[derive(Clone, Copy)]
struct PackExtent {
    start: u64,
    end: u64,
}

impl<'a> Copied<'a> {
    /// Selects the entries that can be copied: objects that are not deltas, and deltas whose base
    /// is copied from the same pack or is in `known`.
    ///
    /// # Errors
    /// Fails if a file cannot be read, and with `ErrorKind::Interrupted` if the operation is
    /// cancelled.
    pub(super) fn new(
        block: &'a BitmapSubset,
        known: Option<&'a BitmapSubset>,
        watch: &Watch<'_>,
    ) -> Result<Copied<'a>, Error> {
        // Bits of another bitmap file denote other objects.
        let known = known.filter(|known| Arc::ptr_eq(&known.bitmapped, &block.bitmapped));
        let mut copied = Copied {
            block,
            known,
            parts: block.bitmapped.parts()?,
            bits: Bits::new(block.bits.limit()),
            rest: Vec::new(),
        };
        for number in 0..copied.parts.len() {
            let part = copied.parts[number].clone();
            match copied.is_whole(&part)? {
                true => (part.bits.clone()).for_each(|bit| _ = copied.bits.insert(bit)),
                false => copied.choose(&part, watch)?,
            }
        }
        Ok(copied)
    }

    /// Returns the number of objects that are copied.
    pub(super) fn count(&self) -> u32 {
        self.bits.count()
    }

    /// Returns the pack that contains exactly the copied objects, if there is one.
    pub(super) fn whole_pack(&self) -> Result<Option<Whole>, Error> {
        let count = self.count();
        for part in &self.parts {
            if self.is_whole(part)? && part.bits.end - part.bits.start == count {
                return Ok(Whole::new(part.pack.clone()));
            }
        }
        Ok(None)
    }

    /// Returns whether the block contains all objects of the pack.
    fn is_whole(&self, part: &BitmapSection) -> Result<bool, Error> {
        let count = part.bits.end - part.bits.start;
        let pack = part.pack.pack()?;
        Ok(pack.len() == count && self.block.bits.count_in(part.bits.clone()) == count)
    }

    fn choose(&mut self, part: &BitmapSection, watch: &Watch<'_>) -> Result<(), Error> {
        let opened = OpenBlockPart::new(part)?;
        let mut places = EntryFinder::new(&opened, &self.block.bitmapped);
        for bit in self.block.bits.iter_in(part.bits.clone()) {
            check(bit, watch)?;
            // An entry that cannot be read may have another copy.
            let is_copied = match places.next(bit)? {
                Some(place) => self.can_copy(&opened, place)?,
                None => false,
            };
            match is_copied {
                true => _ = self.bits.insert(bit),
                false => self.rest.push(self.block.bitmapped.id(bit)?),
            }
        }
        Ok(())
    }

    fn can_copy(&self, opened: &OpenBlockPart<'_>, place: PackExtent) -> Result<bool, Error> {
        let offset = PackOffset(place.start);
        let Ok(entry) = opened.pack.entry(offset) else {
            return Ok(false);
        };
        let bitmapped = &self.block.bitmapped;
        let base = match &entry.header {
            EntryHeader::Object(_) => return Ok(true),
            EntryHeader::RefDelta { base } => bitmapped.bit(base)?,
            header => match opened.pack.base_offset(offset, header) {
                Ok(Some(base)) => bitmapped.bit_at(opened.part, base)?,
                _ => None,
            },
        };
        let has = |bits: &Bits| base.is_some_and(|base| bits.contains(base));
        Ok(has(&self.bits) || self.known.is_some_and(|known| has(&known.bits)))
    }

    /// Writes the copied entries.
    ///
    /// # Errors
    /// Fails if an entry cannot be read or written, and with `ErrorKind::Interrupted` if the
    /// operation is cancelled.
    pub(super) fn emit(
        &self,
        sink: &mut GatheredStream<'_>,
        meter: &Meter,
        watch: &Watch<'_>,
    ) -> Result<PackCounts, Error> {
        let mut counts = PackCounts::default();
        for part in &self.parts {
            let before = sink.bytes_put();
            let count = self.bits.count_in(part.bits.clone());
            match self.is_whole(part)? {
                true => emit_whole(part, sink, meter, watch)?,
                false => self.emit_part(part, sink, meter, watch)?,
            }
            sink.note_many(count).map_err(from_pack)?;
            counts.objects += count;
            counts.whole_pack += count;
            counts.reused_bytes += sink.bytes_put() - before;
        }
        Ok(counts)
    }

    fn emit_part(
        &self,
        part: &BitmapSection,
        sink: &mut GatheredStream<'_>,
        meter: &Meter,
        watch: &Watch<'_>,
    ) -> Result<(), Error> {
        let opened = OpenBlockPart::new(part)?;
        let mut copier = Copier {
            copied: self,
            opened: &opened,
            moves: Vec::new(),
            run: 0..0,
            at: 0,
            header: Vec::new(),
        };
        let mut places = EntryFinder::new(&opened, &self.block.bitmapped);
        for bit in self.bits.iter_in(part.bits.clone()) {
            check(bit, watch)?;
            let gone = || Error::new(ErrorKind::Corrupt, "a pack changed while it was read");
            let place = places.next(bit)?.ok_or_else(gone)?;
            copier.copy(place, sink)?;
            meter.add(1);
            meter.add_bytes(place.end - place.start);
        }
        copier.flush(sink)
    }
}

impl<'a> OpenBlockPart<'a> {
    fn new(part: &'a BitmapSection) -> Result<OpenBlockPart<'a>, Error> {
        Ok(OpenBlockPart {
            part,
            pack: part.pack.pack()?,
        })
    }
}

/// Finds the entries of bits, which must be ascending.
struct EntryFinder<'a> {
    opened: &'a OpenBlockPart<'a>,
    bitmapped: &'a Bitmapped,
    near: u32,
    /// The end of the previous entry.
    least: u64,
}

impl<'a> EntryFinder<'a> {
    fn new(opened: &'a OpenBlockPart<'a>, bitmapped: &'a Bitmapped) -> EntryFinder<'a> {
        EntryFinder {
            opened,
            bitmapped,
            near: 0,
            least: HEADER_LEN,
        }
    }

    /// Returns the entry of `bit`; `None` if the index of the pack has no entry at the offset.
    ///
    /// # Errors
    /// Fails if an index cannot be read.
    fn next(&mut self, bit: u32) -> Result<Option<PackExtent>, Error> {
        let (file, pack) = (&self.opened.part.pack, self.opened.pack);
        let offset = self.bitmapped.offset_of(bit)?;
        let Some(position) = self.position(offset)? else {
            return Ok(None);
        };
        self.near = position + 1;
        let following = file.entry_at(PackPosition(self.near))?;
        let end = following.map_or(pack.end(), |(offset, _)| offset);
        // A malformed reverse index may contain a wrong offset.
        let is_sound = offset.0 >= self.least && offset < end && end <= pack.end();
        if !is_sound {
            return Ok(None);
        }
        self.least = end.0;
        let (start, end) = (offset.0, end.0);
        Ok(Some(PackExtent { start, end }))
    }

    /// Returns the position of the entry at `offset`, which is usually the next entry or close to
    /// it.
    fn position(&self, offset: PackOffset) -> Result<Option<u32>, Error> {
        let file = &self.opened.part.pack;
        for near in self.near..self.near.saturating_add(4) {
            match file.entry_at(PackPosition(near))? {
                Some((start, _)) if start == offset => return Ok(Some(near)),
                Some((start, _)) if start < offset => {}
                _ => break,
            }
        }
        Ok(file.position_of(offset)?.map(|found| found.0))
    }
}

/// A change of the difference between the offset of an entry in its pack and in the new pack.
struct Move {
    /// The offset of the first entry to which the change applies, in its pack.
    from: u64,
    /// The difference that is added to offsets.
    by: i64,
}

/// Copies the entries of one pack.
struct Copier<'a> {
    copied: &'a Copied<'a>,
    opened: &'a OpenBlockPart<'a>,
    /// The changes, in the order of the offsets.
    moves: Vec<Move>,
    /// The range of the pack that is written next, unchanged.
    run: std::ops::Range<u64>,
    /// The end of the data that is written or in `run`, from the start of this part.
    at: u64,
    header: Vec<u8>,
}

impl Copier<'_> {
    fn copy(&mut self, place: PackExtent, sink: &mut GatheredStream<'_>) -> Result<(), Error> {
        let by = self.at as i64 - place.start as i64;
        if self.moves.last().map(|last| last.by) != Some(by) {
            let from = place.start;
            self.moves.push(Move { from, by });
        }
        let Some(entry) = self.changed_header(place, by)? else {
            self.at += place.end - place.start;
            if self.run.end == place.start {
                self.run.end = place.end;
                return Ok(());
            }
            self.flush(sink)?;
            self.run = place.start..place.end;
            return Ok(());
        };
        self.flush(sink)?;
        self.header.clear();
        entry.encode(&mut self.header);
        sink.put(&self.header).map_err(from_pack)?;
        let body = place.start + entry.header_len as u64..place.end;
        self.at += self.header.len() as u64 + (body.end - body.start);
        each_piece(self.opened.pack, body, &mut |bytes| sink.put(bytes))
    }

    /// Returns the entry with a new header, if the distance to its base is different in the new
    /// pack, or if only the receiver has the base.
    fn changed_header(&self, place: PackExtent, by: i64) -> Result<Option<Entry>, Error> {
        if self.moves.len() == 1 && self.copied.known.is_none() {
            return Ok(None);
        }
        let (pack, offset) = (self.opened.pack, PackOffset(place.start));
        let entry = pack.entry(offset).map_err(from_pack)?;
        let base = pack.base_offset(offset, &entry.header).map_err(from_pack)?;
        let Some(base) = base else {
            return Ok(None);
        };
        let header = match self.known_base(base)? {
            Some(base) => EntryHeader::RefDelta { base },
            None => {
                let behind = self.moves.partition_point(|one| one.from <= base.0);
                let moved = behind.checked_sub(1).map_or(by, |at| self.moves[at].by);
                let distance = (place.start as i64 + by) - (base.0 as i64 + moved);
                EntryHeader::OffsetDelta {
                    distance: distance as u64,
                }
            }
        };
        Ok((header != entry.header).then_some(Entry { header, ..entry }))
    }

    /// Returns the id of the object at `offset`, if its entry is not copied.
    fn known_base(&self, offset: PackOffset) -> Result<Option<ObjectId>, Error> {
        let Copied {
            block, bits, known, ..
        } = self.copied;
        if known.is_none() {
            return Ok(None);
        }
        let bit = block.bitmapped.bit_at(self.opened.part, offset)?;
        let bit = bit.filter(|bit| !bits.contains(*bit));
        bit.map(|bit| block.bitmapped.id(bit)).transpose()
    }

    fn flush(&mut self, sink: &mut GatheredStream<'_>) -> Result<(), Error> {
        let run = std::mem::take(&mut self.run);
        each_piece(self.opened.pack, run, &mut |bytes| sink.put(bytes))
    }
}

/// Writes all entries of a pack.
fn emit_whole(
    part: &BitmapSection,
    sink: &mut GatheredStream<'_>,
    meter: &Meter,
    watch: &Watch<'_>,
) -> Result<(), Error> {
    let pack = part.pack.pack()?;
    each_piece(pack, HEADER_LEN..pack.end().0, &mut |bytes| {
        watch.interrupt().check().map_err(|reason| {
            pronto_pack::Error::new(pronto_pack::ErrorKind::Interrupted, reason.to_string())
        })?;
        meter.add_bytes(bytes.len() as u64);
        sink.put(bytes)
    })?;
    meter.add(pack.len().into());
    Ok(())
}

fn check(bit: u32, watch: &Watch<'_>) -> Result<(), Error> {
    if !bit.is_multiple_of(CHECKED) {
        return Ok(());
    }
    let interrupted = watch.interrupt().check();
    interrupted.map_err(|reason| Error::new(ErrorKind::Interrupted, reason.to_string()))
}
