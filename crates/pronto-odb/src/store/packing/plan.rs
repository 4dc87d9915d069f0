//! The plan of a pack: each object is copied as stored, written as a new delta, or deflated again.

use std::cmp::Reverse;
use std::collections::{HashMap, HashSet};
use std::io::Write;
use std::path::Path;
use std::sync::Arc;

use gix_object::Kind as ObjectKind;
use pronto_hash::{ObjectId, oid};
use pronto_io::watch::Watch;
use pronto_pack::idx::PackIndex;
use pronto_pack::pack::PackOffset;
use pronto_pack::search::{self, DeltaCandidate, FoundDelta};
use pronto_pack::writer::sink::Streamed;

use super::super::lookup::in_packs;
use super::super::{PackLocation, Store};
use super::{Options, PackContents, PackCounts, PackMember, each_piece};
use crate::error::{Error, ErrorKind, from_pack, to_pack};
use crate::packs::PackFile;
use crate::snapshot::{Multi, PackSnapshot};

/// The pack number of a loose object.
pub(super) const NO_PACK: u32 = u32::MAX;

/// One object of the plan.
#[derive(Clone, Copy, Debug)]
pub(super) struct PlannedObject {
    pub(super) id: ObjectId,
    pub(super) name_hash: u32,
    /// The number of the pack that contains the object, or [`NO_PACK`].
    pub(super) pack: u32,
    /// The start and the end of the entry in this pack.
    pub(super) offset: u64,
    pub(super) end: u64,
    pub(super) how: EncodingChoice,
    /// Whether the object is only a delta base, because the receiver has it.
    pub(super) is_base_only: bool,
    /// The type of the object; `None` for a stored delta that is reused.
    pub(super) kind: Option<ObjectKind>,
    /// The size of the content, if `kind` is known.
    pub(super) size_bytes: u64,
}

/// The form in which an object is written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum EncodingChoice {
    /// The content is deflated again.
    Fresh,
    /// The stored entry, which is not a delta, is copied.
    Stored,
    /// The stored delta is copied; its base is the object in this row.
    StoredDelta(u32),
    /// The stored delta is copied; its base is an object that the receiver has.
    StoredThin,
    /// The new delta with this number is written.
    Delta(u32),
}

/// All objects, in the order in which they are written.
pub(super) struct PackPlan<'a> {
    pub(super) store: &'a Store,
    pub(super) options: &'a Options,
    pub(super) watch: &'a Watch<'a>,
    pub(super) snapshot: Arc<PackSnapshot>,
    /// The objects, sorted by pack and offset. Loose objects are last, in the given order.
    pub(super) rows: Vec<PlannedObject>,
    /// The row numbers sorted by object id, filled on first use.
    by_id: Vec<u32>,
    /// The bases of the rows with [`EncodingChoice::StoredThin`].
    pub(super) thin_bases: HashMap<u32, ObjectId>,
    pub(super) found: Vec<FoundDelta>,
}

/// A pack that is copied as a whole.
pub(super) struct Whole {
    pack: Arc<PackFile>,
}

impl<'a> PackPlan<'a> {
    /// Finds all objects.
    ///
    /// # Errors
    /// Fails with `ErrorKind::Missing` if an object does not exist, and with other kinds if a file
    /// cannot be read.
    pub(super) fn new(
        store: &'a Store,
        contents: &PackContents<'_>,
        options: &'a Options,
        watch: &'a Watch<'a>,
    ) -> Result<PackPlan<'a>, Error> {
        store.refresh()?;
        let snapshot = Arc::clone(&*store.snapshot()?);
        let mut rows = Vec::with_capacity(contents.members.len() + contents.bases.len());
        rows.extend(locate(&snapshot, contents.members, false));
        for row in locate(&snapshot, contents.bases, true) {
            // A delta base that does not exist is skipped.
            if row.pack != NO_PACK || store.contains(&row.id)? {
                rows.push(row);
            }
        }
        // The sort is stable: loose objects keep their order, and members precede bases.
        rows.sort_by_key(|row| (row.pack, row.offset));
        remove_repeated(&mut rows);
        Ok(PackPlan {
            store,
            options,
            watch,
            snapshot,
            rows,
            by_id: Vec::new(),
            thin_bases: HashMap::new(),
            found: Vec::new(),
        })
    }

    /// Returns the pack that contains exactly these objects, if it can be copied as a whole.
    pub(super) fn whole_pack(&self, contents: &PackContents<'_>) -> Option<Whole> {
        let (first, options) = (self.rows.first()?, self.options);
        let is_asked_for = options.reuse_objects && options.reuse_deltas && options.offset_deltas;
        let is_one = self.rows.last()?.pack == first.pack && first.pack != NO_PACK;
        if !is_asked_for || !is_one || !contents.bases.is_empty() {
            return None;
        }
        let pack = self.snapshot.pack(first.pack)?;
        let opened = pack.pack().ok()?;
        let is_whole = opened.len() as usize == self.rows.len();
        Whole::new(pack.clone()).filter(|_| is_whole)
    }

    /// Returns the number of the pack at `path`.
    pub(super) fn pack_at(&self, path: &Path) -> Option<u32> {
        let mut packs = self.snapshot.all_packs();
        let pack = packs.find(|pack| pack.pack_path() == path)?;
        Some(pack.number)
    }

    /// Returns the number of objects in the pack.
    ///
    /// # Errors
    /// Fails with `ErrorKind::Limit` if there are more objects than a pack can contain.
    pub(super) fn count(&self) -> Result<u32, Error> {
        let count = self.rows.iter().filter(|row| !row.is_base_only).count();
        let too_many = |_| Error::new(ErrorKind::Limit, "too many objects for one pack");
        u32::try_from(count).map_err(too_many)
    }

    /// Selects the form of each object: reads entry headers, and searches for deltas.
    ///
    /// # Errors
    /// Fails if an object is missing or cannot be read, and with `ErrorKind::Interrupted` if the
    /// operation is cancelled.
    pub(super) fn decide(&mut self, contents: &PackContents<'_>) -> Result<(), Error> {
        self.look_at_entries(contents)?;
        let heights = self.cut_chains()?;
        self.look_for_deltas(&heights, contents)
    }

    /// Returns the row number of `id`.
    pub(super) fn row_of(&mut self, id: &oid) -> Option<u32> {
        if self.by_id.is_empty() {
            self.by_id = (0..self.rows.len() as u32).collect();
            let rows = &self.rows;
            self.by_id
                .sort_unstable_by_key(|number| rows[*number as usize].id);
        }
        let rows = &self.rows;
        let at = (self.by_id).binary_search_by(|number| {
            let known: &oid = &rows[*number as usize].id;
            known.cmp(id)
        });
        at.ok().map(|at| self.by_id[at])
    }

    /// Changes a row to be deflated again, and reads the type and the size of its object.
    ///
    /// # Errors
    /// Fails if the object is missing or cannot be read.
    pub(super) fn make_fresh(&mut self, number: u32) -> Result<(), Error> {
        let row = &mut self.rows[number as usize];
        let missing = || Error::new(ErrorKind::Missing, format!("unable to read {}", row.id));
        let header = self.store.header(&row.id)?.ok_or_else(missing)?;
        row.how = EncodingChoice::Fresh;
        (row.kind, row.size_bytes) = (Some(header.kind), header.size);
        Ok(())
    }

    fn look_for_deltas(
        &mut self,
        heights: &[u32],
        contents: &PackContents<'_>,
    ) -> Result<(), Error> {
        let mut options = self.options.search.clone();
        options.level = self.options.level;
        if options.window == 0 || options.depth == 0 {
            return Ok(());
        }
        let mut candidates = self.candidates(heights, contents);
        let targets = candidates.iter().filter(|one| !one.is_base_only).count();
        let first = candidates.first().and_then(|one| one.stored);
        let were_compared = first.is_some()
            && candidates
                .iter()
                .all(|one| one.stored == first && !one.is_base_only);
        if targets == 0 || were_compared {
            return Ok(());
        }
        let (watch, interrupt) = (self.watch, self.watch.interrupt());
        let meter = watch
            .progress()
            .begin("Compressing objects", Some(targets as u64));
        let contents = Reader(self);
        let found = search::search(&mut candidates, &options, &contents, &meter, interrupt);
        let found = found.map_err(from_pack)?;
        meter.finish();
        for (at, delta) in found.iter().enumerate() {
            self.rows[delta.number as usize].how = EncodingChoice::Delta(at as u32);
        }
        self.found = found;
        Ok(())
    }

    fn candidates(&self, heights: &[u32], contents: &PackContents<'_>) -> Vec<DeltaCandidate> {
        let (least, most) = (search::SMALLEST_BYTES, self.options.large_bytes);
        let bitmapped = contents.bitmapped.and_then(|path| self.pack_at(path));
        let mut candidates = Vec::new();
        for (number, row) in self.rows.iter().enumerate() {
            let Some(kind) = row.kind else { continue };
            let is_whole = contents.whole.is_some_and(|whole| whole.contains(&row.id));
            if is_whole || row.size_bytes < least || row.size_bytes >= most {
                continue;
            }
            let was_compared = row.how == EncodingChoice::Stored && self.options.reuse_deltas;
            let stays = was_compared && bitmapped == Some(row.pack);
            candidates.push(DeltaCandidate {
                number: number as u32,
                kind,
                name_hash: row.name_hash,
                size_bytes: row.size_bytes,
                is_base_only: row.is_base_only || stays,
                stored: was_compared.then_some(row.pack),
                height: heights[number],
            });
        }
        candidates
    }
}

struct Reader<'a, 'b>(&'a PackPlan<'b>);

impl search::ReadObjects for Reader<'_, '_> {
    fn read(&self, number: u32, out: &mut Vec<u8>) -> Result<(), pronto_pack::Error> {
        let row = &self.0.rows[number as usize];
        content(self.0.store, row, out).map_err(to_pack)
    }
}

/// Reads the content of an object into `out`.
///
/// # Errors
/// Fails if the object is missing or cannot be read.
pub(super) fn content(store: &Store, row: &PlannedObject, out: &mut Vec<u8>) -> Result<(), Error> {
    let found = match row.pack {
        NO_PACK => store.find(&row.id, out)?,
        pack => {
            let offset = PackOffset(row.offset);
            store.find_at(PackLocation { pack, offset }, &row.id, out)?
        }
    };
    match found {
        Some(_) => Ok(()),
        None => Err(Error::new(
            ErrorKind::Missing,
            format!("unable to read {}", row.id),
        )),
    }
}

/// Finds objects in packs; each index is traversed once. Loose objects get [`NO_PACK`].
fn locate(
    snapshot: &PackSnapshot,
    members: &[PackMember],
    is_base_only: bool,
) -> Vec<PlannedObject> {
    let row = |member: &PackMember| PlannedObject {
        id: member.id,
        name_hash: member.name_hash,
        pack: NO_PACK,
        offset: 0,
        end: 0,
        how: EncodingChoice::Fresh,
        is_base_only,
        kind: None,
        size_bytes: 0,
    };
    let mut search = FileSearch {
        rows: members.iter().map(row).collect(),
        left: (0..members.len() as u32).collect(),
        is_doubtful: false,
    };
    for multi in &snapshot.multi {
        search.in_multi(multi);
    }
    // The largest pack is searched first, so that as many entries as possible are consecutive.
    let mut packs = Vec::with_capacity(snapshot.single.len());
    for pack in &snapshot.single {
        match (pack.index(), pack.pack()) {
            (Ok(index), Ok(_)) => packs.push((pack.number, index)),
            _ => search.is_doubtful = true,
        }
    }
    packs.sort_by_key(|(_, index)| Reverse(index.len()));
    for (number, index) in packs {
        search.in_pack(number, index);
    }
    if search.is_doubtful {
        search.one_by_one(snapshot);
    }
    search.rows
}

/// A search for objects in one index after another.
struct FileSearch {
    rows: Vec<PlannedObject>,
    /// The numbers of the rows that are not found yet.
    left: Vec<u32>,
    /// Whether an index could not be read, so that the remaining objects may have copies that were
    /// not found.
    is_doubtful: bool,
}

impl FileSearch {
    fn in_multi(&mut self, multi: &Multi) {
        let (mut found, rows) = (Vec::new(), &mut self.rows);
        let ids = self
            .left
            .iter()
            .map(|row| -> &oid { &rows[*row as usize].id });
        let searched = (multi.index).find_many(ids, |place, at| found.push((place, at)));
        self.is_doubtful |= searched.is_err();
        for (place, at) in found {
            let located = multi.index.location_at(at).ok();
            let located = located.and_then(|(number, offset)| {
                let pack = multi.packs.get(number.0 as usize)?.as_ref()?;
                pack.pack().ok().map(|_| (pack.number, offset.0))
            });
            self.is_doubtful |= located.is_none();
            if let Some((pack, offset)) = located {
                let row = &mut rows[self.left[place] as usize];
                (row.pack, row.offset) = (pack, offset);
            }
        }
        self.left.retain(|row| rows[*row as usize].pack == NO_PACK);
    }

    fn in_pack(&mut self, number: u32, index: &PackIndex) {
        let (mut found, rows) = (Vec::new(), &mut self.rows);
        let ids = self
            .left
            .iter()
            .map(|row| -> &oid { &rows[*row as usize].id });
        let searched = index.find_offsets(ids, |place, _, offset| found.push((place, offset)));
        self.is_doubtful |= searched.is_err();
        for (place, offset) in found {
            let row = &mut rows[self.left[place] as usize];
            (row.pack, row.offset) = (number, offset.0);
        }
        self.left.retain(|row| rows[*row as usize].pack == NO_PACK);
    }

    fn one_by_one(&mut self, snapshot: &PackSnapshot) {
        for number in &self.left {
            let row = &mut self.rows[*number as usize];
            let place = in_packs(snapshot, &row.id, &mut None, &mut |pack, offset| {
                pack.pack()?;
                Ok((pack.number, offset))
            });
            if let Some((pack, offset)) = place {
                (row.pack, row.offset) = (pack, offset.0);
            }
        }
    }
}

/// Removes repeated objects; the first row of each object stays.
fn remove_repeated(rows: &mut Vec<PlannedObject>) {
    let mut loose: HashSet<ObjectId> = HashSet::new();
    let mut last: Option<(u32, u64)> = None;
    rows.retain(|row| match row.pack {
        NO_PACK => loose.insert(row.id),
        pack => last.replace((pack, row.offset)) != Some((pack, row.offset)),
    });
}

impl Whole {
    /// Returns `pack` if it has the pack version that all receivers support.
    pub(super) fn new(pack: Arc<PackFile>) -> Option<Whole> {
        let opened = pack.pack().ok()?;
        let mut buffer = Vec::new();
        let version = opened.view().read(4, 4, &mut buffer).ok()?;
        (version == [0, 0, 0, 2]).then_some(Whole { pack })
    }

    /// Writes the whole pack to `out`.
    ///
    /// # Errors
    /// Fails if the pack cannot be read or written.
    pub(super) fn send(
        self,
        out: &mut dyn Write,
        watch: &Watch<'_>,
    ) -> Result<(Streamed, PackCounts), Error> {
        let pack = self.pack.pack()?;
        let (len, count) = (pack.view().len(), pack.len());
        let meter = watch
            .progress()
            .begin("Writing objects", Some(count.into()));
        each_piece(pack, 0..len, &mut |bytes| {
            watch.interrupt().check().map_err(|reason| {
                pronto_pack::Error::new(pronto_pack::ErrorKind::Interrupted, reason.to_string())
            })?;
            meter.add_bytes(bytes.len() as u64);
            out.write_all(bytes).map_err(unwritable)
        })?;
        out.flush().map_err(unwritable).map_err(from_pack)?;
        meter.add(count.into());
        meter.finish();
        let counts = PackCounts {
            objects: count,
            whole_pack: count,
            reused_bytes: len,
            ..PackCounts::default()
        };
        let streamed = Streamed {
            checksum: pack.checksum().map_err(from_pack)?,
            bytes: len,
        };
        Ok((streamed, counts))
    }
}

#[cold]
fn unwritable(error: std::io::Error) -> pronto_pack::Error {
    let kind = pronto_pack::ErrorKind::Io;
    pronto_pack::Error::new(kind, "unable to write pack").because(error)
}
