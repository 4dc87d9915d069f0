//! Packs of given objects: [`Store::pack_to`] writes one to a stream, [`Store::pack_into`] makes
//! its files.
//!
//! Deflated pack entries are copied as stored, deltas included, if their base is in the pack too
//! (or with the receiver). The rest is deflated again, as deltas where [some can be
//! found](pronto_pack::search).
//!
//! Costs: each object is looked up once, and the header of its entry is read once. Stored entries
//! are sorted by position, and consecutive ones are written as one slice of the mapped pack without
//! a copy. A pack that is taken whole is one such slice: its headers are not read, and it keeps its
//! checksum. Memory: 96 bytes for each object, an index of each pack by offset, and the search for
//! deltas. Each thread holds one content at a time, and 8 MiB are deflated ahead of writing.

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
use pronto_pack::pack::Pack;
use pronto_pack::search;
use pronto_pack::writer::sink::{PackStream, Streamed};
use pronto_pack::writer::{self, PackWriter, Written};

pub use block::Block;
use block::Copied;

use super::Store;
use crate::error::{Error, ErrorKind, from_pack};

/// An object that is to be packed, or that the receiver of a pack has.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Member {
    /// Which one.
    pub id: ObjectId,
    /// The [hash of its path](pronto_pack::bitmap::name_hash), zero if it has none: objects with
    /// like paths are tried as deltas of one another.
    pub name_hash: u32,
}

/// The objects of a new pack.
#[derive(Clone, Copy, Default)]
pub struct Contents<'a> {
    /// The objects, each once. Those that are not stored in packs keep this order; of two that are
    /// alike the first becomes the base.
    pub members: &'a [Member],
    /// Objects of the receiver that are tried as bases. With any of these the pack is *thin*, and
    /// only a receiver that has them can complete it.
    pub bases: &'a [Member],
    /// Whether the receiver has an object besides: then stored deltas of it are used as well.
    pub receiver_has: Option<&'a (dyn Fn(&oid) -> bool + Sync)>,
    /// Objects that are neither deltified nor used as bases in the search. Objects stored as deltas
    /// may stay deltas.
    pub whole: Option<&'a HashSet<ObjectId>>,
    /// The path of a pack whose bitmap selected the members: what is stored in it stays as it is,
    /// and is counted as taken from a pack as a block.
    pub bitmapped: Option<&'a Path>,
    /// More objects, which a bitmap selected. [`Store::pack_to`] copies them without a row for each.
    pub block: Option<&'a Block>,
    /// Objects that the receiver has, as [`receiver_has`](Self::receiver_has).
    pub known: Option<&'a Block>,
}

/// Options for making a pack.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Options {
    /// The search for deltas. A window or depth of zero disables it.
    pub search: search::Options,
    /// Whether deltas may name their base by its distance (`--delta-base-offset`).
    pub offset_deltas: bool,
    /// Whether deltas are taken as they are stored (`--no-reuse-delta`).
    pub reuse_deltas: bool,
    /// Deltas of more bytes, inflated, are not taken.
    pub most_delta_bytes: u64,
    /// Whether anything is taken as it is stored (`--no-reuse-object`).
    pub reuse_objects: bool,
    /// The zlib level for new deflation, 0 to 9 (`pack.compression`).
    pub level: u8,
    /// Larger objects are never made deltas, and pass through in pieces
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

/// Counts of the objects of a new pack, by their origin.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counts {
    /// The number of objects.
    pub objects: u32,
    /// The number of deltas, as far as entries were read.
    pub deltas: u32,
    /// The number of objects that were copied as stored, one by one.
    pub reused: u32,
    /// The number of deltas among the copied objects.
    pub reused_deltas: u32,
    /// The number of objects that were copied from the pack whose bitmap selected them, or in a
    /// pack that was copied whole. They count neither as reused nor as deltas.
    pub whole_pack: u32,
    /// The number of bytes that were copied as stored.
    pub reused_bytes: u64,
}

impl Options {
    /// Whether entries may go out as they are stored, deltas included.
    fn copies_stored(&self) -> bool {
        self.reuse_objects
            && self.reuse_deltas
            && self.offset_deltas
            && self.most_delta_bytes == u64::MAX
    }
}

impl<'a> Contents<'a> {
    /// The members, and all objects of the block.
    fn all_members(&self) -> Result<Cow<'a, [Member]>, Error> {
        match self.block {
            Some(block) => self.members_and(block.ids()),
            None => Ok(Cow::Borrowed(self.members)),
        }
    }

    /// Whether the receiver has an object.
    fn is_known(&self, id: &oid) -> Result<bool, Error> {
        match self.known {
            Some(known) if known.contains(id)? => Ok(true),
            _ => Ok(self.receiver_has.is_some_and(|has| has(id))),
        }
    }

    /// The members and others.
    fn members_and(
        &self,
        others: impl Iterator<Item = Result<ObjectId, Error>>,
    ) -> Result<Cow<'a, [Member]>, Error> {
        let mut members = Cow::Borrowed(self.members);
        for id in others {
            members.to_mut().push(Member {
                id: id?,
                name_hash: 0,
            });
        }
        Ok(members)
    }
}

impl AddAssign for Counts {
    fn add_assign(&mut self, other: Counts) {
        self.objects += other.objects;
        self.deltas += other.deltas;
        self.reused += other.reused;
        self.reused_deltas += other.reused_deltas;
        self.whole_pack += other.whole_pack;
        self.reused_bytes += other.reused_bytes;
    }
}

impl Store {
    /// Sends a pack of `contents` down `out`, which need not be buffered: writes come in large
    /// pieces, or gathered. Nothing is sent before all objects have been found. What the store
    /// replaces (`refs/replace/`) does not count.
    ///
    /// # Errors
    /// `Missing` when an object is not there, `Corrupt` and others when one cannot be read, `Io`
    /// when writing fails, `Limit` for more than 2^32 objects, `Interrupted`. After an error what
    /// was sent is no pack: its checksum is missing.
    pub fn pack_to(
        &self,
        contents: &Contents<'_>,
        options: &Options,
        out: &mut dyn Write,
        watch: &Watch<'_>,
    ) -> Result<(Streamed, Counts), Error> {
        let store = self.without_replacements();
        let block = contents.block.filter(|_| options.copies_stored());
        let copied = block
            .map(|block| Copied::new(block, contents.known, watch))
            .transpose()?;
        let members = match &copied {
            Some(copied) => contents.members_and(copied.rest.iter().copied().map(Ok))?,
            None => contents.all_members()?,
        };
        let contents = &Contents {
            members: &members,
            ..*contents
        };
        let mut plan = plan::Plan::new(&store, contents, options, watch)?;
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
        let mut gathered = emit::Gathered::new(stream);
        let mut counts = match &copied {
            Some(copied) => copied.emit(&mut gathered, &meter, watch)?,
            None => Counts::default(),
        };
        counts += emit::emit(&mut plan, &mut gathered, contents.bitmapped, &meter)?;
        meter.finish();
        let streamed = gathered.finish().map_err(from_pack)?;
        Ok((streamed, counts))
    }

    /// Makes the files of a pack of `contents` in `directory`, which exists: all that is copied is
    /// compared with the CRC-32 in its index, or with its id where that has none (version 1), and
    /// taken from elsewhere if it is damaged. `files` says how they are made; its count and level are set here.
    ///
    /// # Errors
    /// As [`pack_to`](Self::pack_to); nothing is left behind.
    pub fn pack_into(
        &self,
        contents: &Contents<'_>,
        options: &Options,
        directory: &Path,
        mut files: writer::Options,
        watch: &Watch<'_>,
    ) -> Result<(Written, Counts), Error> {
        // Pruners take unfinished files of others for left behind.
        self.begin_writing()?;
        let store = self.without_replacements();
        let members = contents.all_members()?;
        let contents = &Contents {
            members: &members,
            ..*contents
        };
        let mut plan = plan::Plan::new(&store, contents, options, watch)?;
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

/// Calls `visit` with the bytes of `range` in pieces: many enough for few calls, few enough to stay
/// in the caches between digesting and writing. Ends with an error if the file was cut short.
fn each_piece(
    pack: &Pack,
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
        // What was read may have been zeros: then that is the error.
        view.check().map_err(unreadable)?;
        visited.map_err(from_pack)?;
        at += len as u64;
    }
    Ok(())
}
