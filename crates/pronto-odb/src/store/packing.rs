//! Packs given objects (`git pack-objects`): [`Store::pack_to`] writes a pack to a stream,
//! [`Store::pack_into`] writes the files of a pack.
//!
//! Stored pack entries are copied unchanged, including deltas whose base is in the new pack or
//! known to the receiver. Other objects are deflated again, as deltas if [bases can be
//! found](pronto_pack::search).
//!
//! Costs: each object is looked up once, and the header of its entry is read once. Stored entries
//! are sorted by position, and consecutive entries are written as one slice of the mapped pack
//! without a copy. A pack that is copied as a whole is one such slice: the headers of its entries
//! are not read, and it keeps its checksum. Memory: 96 bytes for each object, an index of each pack
//! by offset, and the search for deltas. Each thread holds one content at a time, and 8 MiB are
//! deflated ahead of writing.

mod ahead;
mod block;
mod emit;
mod intact;
mod plan;
mod reuse;

use std::borrow::Cow;
use std::collections::HashSet;
use std::io::Write;
use std::ops::{AddAssign, Range};
use std::path::Path;

use pronto_hash::{ObjectId, oid};
use pronto_io::watch::Watch;
use pronto_pack::pack::PackReader;
use pronto_pack::search;
use pronto_pack::writer::sink::{PackStream, Streamed};
use pronto_pack::writer::{self, PackWriter, WrittenPack};

pub use block::BitmapSubset;
use block::Copied;

use super::Store;
use crate::error::{Error, ErrorKind, from_pack};

/// An object to pack, or an object that the receiver of the pack has.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PackMember {
    /// The id of the object.
    pub id: ObjectId,
    /// The [hash of its path](pronto_pack::bitmap::name_hash), zero if the object has no path.
    /// Objects with similar paths are tried as delta bases of one another.
    pub name_hash: u32,
}

/// The objects of a new pack.
#[derive(Clone, Copy, Default)]
pub struct PackContents<'a> {
    /// The objects to pack, each once. Loose objects keep this order; of two equally suitable
    /// objects, the first becomes the delta base.
    pub members: &'a [PackMember],
    /// Objects of the receiver that are tried as delta bases. With any base the pack is *thin*
    /// (`--thin`), and only a receiver that has the bases can complete it.
    pub bases: &'a [PackMember],
    /// A predicate for further objects that the receiver has. Stored deltas of such objects are
    /// reused, too.
    pub receiver_has: Option<&'a (dyn Fn(&oid) -> bool + Sync)>,
    /// Objects that the delta search neither deltifies nor uses as bases. Objects that are stored
    /// as deltas may stay deltas.
    pub whole: Option<&'a HashSet<ObjectId>>,
    /// The path of a pack whose bitmap selected the members. Its entries are copied unchanged, and
    /// are counted in [`PackCounts::whole_pack`].
    pub bitmapped: Option<&'a Path>,
    /// Further objects, which a bitmap selected. [`Store::pack_to`] copies them without a row for
    /// each object.
    pub block: Option<&'a BitmapSubset>,
    /// Objects that the receiver has, in addition to [`receiver_has`](Self::receiver_has).
    pub known: Option<&'a BitmapSubset>,
}

/// Options to write a pack (`git pack-objects`).
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Options {
    /// Options of the delta search (`--window`, `--depth`). A window or depth of zero disables the
    /// search.
    pub search: search::Options,
    /// Allow deltas that name their base by its offset (`--delta-base-offset`).
    pub offset_deltas: bool,
    /// Reuse stored deltas (`--no-reuse-delta` turns this off).
    pub reuse_deltas: bool,
    /// The largest inflated size of a stored delta that is reused.
    pub most_delta_bytes: u64,
    /// Reuse stored entries of any form (`--no-reuse-object` turns this off).
    pub reuse_objects: bool,
    /// The zlib level for newly deflated entries, 0 to 9 (`--compression`, `pack.compression`).
    pub level: u8,
    /// The size above which objects are never deltified and are streamed in pieces
    /// (`core.bigFileThreshold`).
    pub large_bytes: u64,
}

impl Default for Options {
    fn default() -> Self {
        Options {
            search: search::Options::default(),
            offset_deltas: true,
            reuse_deltas: true,
            most_delta_bytes: u64::MAX,
            reuse_objects: true,
            level: 6,
            large_bytes: 512 << 20,
        }
    }
}

/// Statistics of a new pack: the numbers of objects by their origin.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct PackCounts {
    /// The number of objects.
    pub objects: u32,
    /// The number of deltas, among the entries that were read.
    pub deltas: u32,
    /// The number of objects that were copied one by one, as stored.
    pub reused: u32,
    /// The number of deltas among the copied objects.
    pub reused_deltas: u32,
    /// The number of objects that were copied from the pack whose bitmap selected them, or as part
    /// of a whole pack. They count neither as reused objects nor as deltas.
    pub whole_pack: u32,
    /// The number of bytes that were copied as stored.
    pub reused_bytes: u64,
}

impl Options {
    /// Returns whether entries may be copied as stored, including deltas.
    fn copies_stored(&self) -> bool {
        self.reuse_objects
            && self.reuse_deltas
            && self.offset_deltas
            && self.most_delta_bytes == u64::MAX
    }
}

impl<'a> PackContents<'a> {
    /// Returns the members and all objects of the block.
    fn all_members(&self) -> Result<Cow<'a, [PackMember]>, Error> {
        match self.block {
            Some(block) => self.members_and(block.ids()),
            None => Ok(Cow::Borrowed(self.members)),
        }
    }

    /// Returns whether the receiver has the object `id`.
    fn is_known(&self, id: &oid) -> Result<bool, Error> {
        match self.known {
            Some(known) if known.contains(id)? => Ok(true),
            _ => Ok(self.receiver_has.is_some_and(|has| has(id))),
        }
    }

    /// Returns the members and the objects of another list.
    fn members_and(
        &self,
        others: impl Iterator<Item = Result<ObjectId, Error>>,
    ) -> Result<Cow<'a, [PackMember]>, Error> {
        let mut members = Cow::Borrowed(self.members);
        for id in others {
            members.to_mut().push(PackMember {
                id: id?,
                name_hash: 0,
            });
        }
        Ok(members)
    }
}

impl AddAssign for PackCounts {
    fn add_assign(&mut self, other: PackCounts) {
        self.objects += other.objects;
        self.deltas += other.deltas;
        self.reused += other.reused;
        self.reused_deltas += other.reused_deltas;
        self.whole_pack += other.whole_pack;
        self.reused_bytes += other.reused_bytes;
    }
}

impl Store {
    /// Writes a pack of `contents` to `out`, which need not be buffered: data is written in large
    /// pieces or with vectored writes. Nothing is written before all objects have been found.
    /// Replacements (`refs/replace/`) are ignored.
    ///
    /// # Errors
    /// Fails with `ErrorKind::Missing` if an object does not exist, with `ErrorKind::Corrupt` or
    /// another kind if an object cannot be read, with `ErrorKind::Io` if writing fails, with
    /// `ErrorKind::Limit` for more than 2^32 objects, and with `ErrorKind::Interrupted` if the
    /// operation is cancelled. After an error, the written data is not a valid pack, because its
    /// checksum is missing.
    pub fn pack_to(
        &self,
        contents: &PackContents<'_>,
        options: &Options,
        out: &mut dyn Write,
        watch: &Watch<'_>,
    ) -> Result<(Streamed, PackCounts), Error> {
        let store = self.without_replacements();
        let block = contents.block.filter(|_| options.copies_stored());
        let copied = block
            .map(|block| Copied::new(block, contents.known, watch))
            .transpose()?;
        let members = match &copied {
            Some(copied) => contents.members_and(copied.rest.iter().copied().map(Ok))?,
            None => contents.all_members()?,
        };
        let contents = &PackContents {
            members: &members,
            ..*contents
        };
        let mut plan = plan::PackPlan::new(&store, contents, options, watch)?;
        let whole = match &copied {
            None => plan.whole_pack(contents),
            Some(copied) if members.is_empty() => copied.whole_pack()?,
            Some(_) => None,
        };
        if let Some(whole) = whole {
            return whole.send(out, watch);
        }
        plan.decide(contents)?;
        let count = plan.count()?;
        let total = count.checked_add(copied.as_ref().map_or(0, Copied::count));
        let too_many = || Error::new(ErrorKind::Limit, "too many objects for one pack");
        let total = total.ok_or_else(too_many)?;
        let meter = watch
            .progress()
            .begin("Writing objects", Some(total.into()));
        let stream = PackStream::begin(out, store.kind(), total).map_err(from_pack)?;
        let mut gathered = emit::GatheredStream::new(stream);
        let mut counts = match &copied {
            Some(copied) => copied.emit(&mut gathered, &meter, watch)?,
            None => PackCounts::default(),
        };
        counts += emit::emit(&mut plan, &mut gathered, contents.bitmapped, &meter)?;
        meter.finish();
        let streamed = gathered.finish().map_err(from_pack)?;
        Ok((streamed, counts))
    }

    /// Writes the files of a pack of `contents` in the existing `directory`. All copied entries are
    /// verified by the CRC-32 in their index, or by the object id if the index has no CRC-32
    /// (version 1). A damaged entry is replaced with another copy of the object. `files` contains
    /// the options for the files; the object count and the level are set here.
    ///
    /// # Errors
    /// Fails as [`pack_to`](Self::pack_to) does; no files are left behind.
    pub fn pack_into(
        &self,
        contents: &PackContents<'_>,
        options: &Options,
        directory: &Path,
        mut files: writer::Options,
        watch: &Watch<'_>,
    ) -> Result<(WrittenPack, PackCounts), Error> {
        // Without this lock, pruners of other processes remove the unfinished files as garbage.
        self.begin_writing()?;
        let store = self.without_replacements();
        let members = contents.all_members()?;
        let contents = &PackContents {
            members: &members,
            ..*contents
        };
        let mut plan = plan::PackPlan::new(&store, contents, options, watch)?;
        plan.decide(contents)?;
        let count = plan.count()?;
        files.count = Some(count);
        files.level = options.level;
        let mut writer = PackWriter::begin(directory, files).map_err(from_pack)?;
        let meter = watch
            .progress()
            .begin("Writing objects", Some(count.into()));
        let counts = emit::emit(&mut plan, &mut writer, None, &meter)?;
        meter.finish();
        let written = writer.finish().map_err(from_pack)?;
        Ok((written, counts))
    }
}

/// Calls `visit` with the bytes of `range` in pieces. A piece is large enough for few calls, and
/// small enough to stay in the processor caches between hashing and writing. Fails if the file was
/// truncated.
fn each_piece(
    pack: &PackReader,
    range: Range<u64>,
    visit: &mut dyn FnMut(&[u8]) -> Result<(), pronto_pack::Error>,
) -> Result<(), Error> {
    const PIECE: u64 = 1 << 20;
    let view = pack.view();
    let mut buffer = Vec::new();
    let mut at = range.start;
    while at < range.end {
        let len = (range.end - at).min(PIECE) as usize;
        let unreadable = |error: std::io::Error| {
            let error = Error::new(ErrorKind::Io, "cannot read pack").because(error);
            error.at_path(pack.path()).at_offset(at)
        };
        let bytes = match view.in_place(at, len).map_err(unreadable)? {
            Some(bytes) => &bytes[..len],
            None => view.read(at, len, &mut buffer).map_err(unreadable)?,
        };
        let visited = visit(bytes);
        // The bytes may have been zeros of a truncated file; this error takes precedence.
        view.check().map_err(unreadable)?;
        visited.map_err(from_pack)?;
        at += len as u64;
    }
    Ok(())
}
