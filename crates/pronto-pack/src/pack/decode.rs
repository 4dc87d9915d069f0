//! Decodes an entry to an object: follows the delta chain to its end and back, without recursion.

use std::sync::Arc;

use gix_object::Kind as ObjectKind;
use pronto_hash::oid;

use super::known_kinds::KnownKinds;
use super::{BaseCache, CachedBase, Pack, PackOffset, Window};
use crate::delta;
use crate::entry::{Entry, Header};
use crate::error::{Error, ErrorKind};
use crate::inflate::Inflater;

/// The two sizes at the start of a delta take no more bytes than this.
const DELTA_SIZES_LEN: usize = 20;

/// A buffer of more bytes than this is not kept for the next large object.
const LARGEST_SPARE: usize = 1 << 20;

/// The sources of bases for a chain of deltas, besides its pack.
#[derive(Clone, Copy)]
pub struct Bases<'a> {
    /// The cache of bases.
    pub cache: &'a BaseCache,
    /// Finds the base of a delta that names it by its id: where it is in the same pack.
    pub find: &'a dyn Fn(&oid) -> Result<Option<PackOffset>, Error>,
}

/// Turns entries into objects, reusing its buffers. One for each thread, for any pack.
pub struct Decoder {
    inflater: Inflater,
    delta: Vec<u8>,
    chain: Vec<Link>,
    kinds: KnownKinds,
    window: Window,
}

/// One delta of a chain.
#[derive(Clone, Copy)]
pub(super) struct Link {
    pub(super) offset: PackOffset,
    pub(super) data_offset: u64,
    pub(super) size_bytes: u64,
}

/// The kind of an entry.
enum Step {
    /// A delta, and where its base is.
    Base(Link, PackOffset),
    /// An object.
    Whole(ObjectKind, Link),
}

/// The end of a chain: a whole object.
enum End {
    /// A cached object.
    Cached(CachedBase),
    /// An entry of the pack.
    Entry { kind: ObjectKind, link: Link },
}

impl Default for Decoder {
    fn default() -> Self {
        Self::new()
    }
}

impl Decoder {
    /// A decoder with empty buffers.
    pub fn new() -> Self {
        Decoder {
            inflater: Inflater::new(),
            delta: Vec::new(),
            chain: Vec::new(),
            kinds: KnownKinds::default(),
            window: Window::default(),
        }
    }

    /// Decodes the object at `offset` of `pack` into `out`, replacing its content.
    ///
    /// Inflates and applies the parts of its chain that are not cached, and caches intermediate
    /// results, but not the object itself.
    ///
    /// # Errors
    /// `Corrupt` or `Truncated` when the pack is damaged, `Missing` when a base named by id is not
    /// in the pack, `Limit` when memory cannot hold it, `Io` when the file cannot be read.
    pub fn decode(
        &mut self,
        pack: &Pack,
        offset: PackOffset,
        bases: Bases<'_>,
        out: &mut Vec<u8>,
    ) -> Result<ObjectKind, Error> {
        match self.decode_below(pack, offset, (bases, u64::MAX), out)? {
            Some(kind) => Ok(kind),
            None => Err(pack.corrupt("object is of no possible size", offset.0)),
        }
    }

    /// Does the same as [`decode`](Self::decode), but returns `None` if the object, or a base,
    /// takes at least `below` bytes: then nothing of that size has been allocated. See
    /// [`Pack::reader`](Pack::reader) and [`Pack::spool`](Pack::spool).
    ///
    /// # Errors
    /// As [`decode`](Self::decode).
    pub fn decode_below(
        &mut self,
        pack: &Pack,
        offset: PackOffset,
        (bases, below): (Bases<'_>, u64),
        out: &mut Vec<u8>,
    ) -> Result<Option<ObjectKind>, Error> {
        self.begin();
        let result = self.decode_chain(pack, offset, (bases, below), out);
        pack.intact(offset.0)?;
        result.map_err(|error| error.at_path(pack.path()).at_offset(offset.0))
    }

    /// Returns type and size of the object at `offset` of `pack`. Inflates at most the first bytes
    /// of a delta, which contain the size. The type is at the end of the chain, or at the first
    /// base whose type this decoder has determined lately.
    ///
    /// # Errors
    /// As [`decode`](Self::decode).
    pub fn header(
        &mut self,
        pack: &Pack,
        offset: PackOffset,
        bases: Bases<'_>,
    ) -> Result<gix_object::Header, Error> {
        self.begin();
        let result = self.chain_header(pack, offset, bases.find);
        pack.intact(offset.0)?;
        result.map_err(|error| error.at_path(pack.path()).at_offset(offset.0))
    }

    fn begin(&mut self) {
        self.chain.clear();
        // It may be that of another pack.
        self.window.bytes.clear();
    }

    fn decode_chain(
        &mut self,
        pack: &Pack,
        offset: PackOffset,
        (bases, below): (Bases<'_>, u64),
        out: &mut Vec<u8>,
    ) -> Result<Option<ObjectKind>, Error> {
        let Some(end) = self.follow_below(pack, offset, (bases, below))? else {
            return Ok(None);
        };
        if let (true, End::Entry { kind, link }) = (self.chain.is_empty(), &end) {
            self.inflate(pack, *link, out)?;
            return Ok(Some(*kind));
        }
        // The object itself goes to `out` and is not kept.
        let Some(base) = self.climb(pack, (end, 1), (bases, below))? else {
            return Ok(None);
        };
        let Some(link) = self.chain.pop() else {
            out.clear();
            out.extend_from_slice(&base.bytes);
            return Ok(Some(base.kind));
        };
        if self.inflate_delta(pack, link)? >= below {
            return Ok(None);
        }
        delta::apply(&base.bytes, &self.delta, out).map_err(at_link(pack, link))?;
        Ok(Some(base.kind))
    }

    /// The object at `offset` of `pack`, shared with the cache: for large ones, which are then made
    /// once though others are made of them. `None` as for [`decode_below`](Self::decode_below).
    ///
    /// # Errors
    /// As [`decode`](Self::decode).
    pub fn share_below(
        &mut self,
        pack: &Pack,
        offset: PackOffset,
        (bases, below): (Bases<'_>, u64),
    ) -> Result<Option<CachedBase>, Error> {
        self.begin();
        let end = self.follow_below(pack, offset, (bases, below));
        let result = end.and_then(|end| match end {
            Some(end) => self.climb(pack, (end, 0), (bases, below)),
            None => Ok(None),
        });
        if self.delta.capacity() > LARGEST_SPARE {
            self.delta = Vec::new();
        }
        pack.intact(offset.0)?;
        result.map_err(|error| error.at_path(pack.path()).at_offset(offset.0))
    }

    /// Does the same as [`follow`](Self::follow), but returns `None` if the end or a delta of the
    /// chain takes at least `below` bytes.
    fn follow_below(
        &mut self,
        pack: &Pack,
        offset: PackOffset,
        (bases, below): (Bases<'_>, u64),
    ) -> Result<Option<End>, Error> {
        let end = self.follow(pack, offset, bases)?;
        let end_bytes = match &end {
            End::Cached(base) => base.bytes.len() as u64,
            End::Entry { link, .. } => link.size_bytes,
        };
        let largest = self.chain.iter().map(|link| link.size_bytes).max();
        Ok((end_bytes.max(largest.unwrap_or(0)) < below).then_some(end))
    }

    /// Makes of `end` what the deltas of the chain make of it, down to the first `left` of them,
    /// and keeps all of it. `None` if one of them makes at least `below` bytes.
    fn climb(
        &mut self,
        pack: &Pack,
        (end, left): (End, usize),
        (bases, below): (Bases<'_>, u64),
    ) -> Result<Option<CachedBase>, Error> {
        let mut base = match end {
            End::Cached(base) => base,
            End::Entry { kind, link } => self.inflate_base(pack, (kind, link), bases.cache)?,
        };
        while self.chain.len() > left
            && let Some(link) = self.chain.pop()
        {
            if self.inflate_delta(pack, link)? >= below {
                return Ok(None);
            }
            base = self.apply_delta(pack, (&base, link), bases.cache)?;
        }
        Ok(Some(base))
    }

    /// Inflates what a chain ends in, and keeps it.
    fn inflate_base(
        &mut self,
        pack: &Pack,
        (kind, link): (ObjectKind, Link),
        cache: &BaseCache,
    ) -> Result<CachedBase, Error> {
        let mut bytes = Vec::new();
        self.inflate(pack, link, &mut bytes)?;
        keep(cache, pack, link.offset, kind, bytes)
    }

    /// Inflates a delta; how many bytes it says that it makes.
    fn inflate_delta(&mut self, pack: &Pack, link: Link) -> Result<u64, Error> {
        let mut delta = std::mem::take(&mut self.delta);
        let inflated = self.inflate(pack, link, &mut delta);
        self.delta = delta;
        inflated?;
        let sizes = delta::sizes(&self.delta).map_err(at_link(pack, link))?;
        Ok(sizes.result_bytes)
    }

    /// Makes what the delta that was just inflated describes, and keeps it.
    fn apply_delta(
        &mut self,
        pack: &Pack,
        (base, link): (&CachedBase, Link),
        cache: &BaseCache,
    ) -> Result<CachedBase, Error> {
        let mut bytes = Vec::new();
        delta::apply(&base.bytes, &self.delta, &mut bytes).map_err(at_link(pack, link))?;
        keep(cache, pack, link.offset, base.kind, bytes)
    }

    fn chain_header(
        &mut self,
        pack: &Pack,
        offset: PackOffset,
        find: &dyn Fn(&oid) -> Result<Option<PackOffset>, Error>,
    ) -> Result<gix_object::Header, Error> {
        let (mut at, mut size) = (offset, None);
        let kind = loop {
            let known = size.and_then(|_| self.kinds.get(pack.key(), at));
            if let Some(kind) = known {
                break kind;
            }
            let (link, next) = match self.step(pack, at, find)? {
                Step::Base(link, next) => (link, next),
                Step::Whole(kind, link) => {
                    size.get_or_insert(link.size_bytes);
                    self.kinds.insert(pack.key(), at, kind);
                    break kind;
                }
            };
            if size.is_none() {
                size = Some(self.result_size(pack, link)?);
            }
            self.push(pack, link)?;
            at = next;
        };
        for link in self.chain.drain(..) {
            self.kinds.insert(pack.key(), link.offset, kind);
        }
        let size = size.unwrap_or_default();
        Ok(gix_object::Header { kind, size })
    }

    /// Walks from `offset` to the first whole entry or cached base, recording the deltas.
    fn follow(&mut self, pack: &Pack, offset: PackOffset, bases: Bases<'_>) -> Result<End, Error> {
        let mut at = offset;
        loop {
            if let Some(base) = bases.cache.get(pack.key(), at) {
                return Ok(End::Cached(base));
            }
            match self.step(pack, at, bases.find)? {
                Step::Whole(kind, link) => return Ok(End::Entry { kind, link }),
                Step::Base(link, next) => {
                    self.push(pack, link)?;
                    at = next;
                }
            }
        }
    }

    /// Returns the kind of the entry at `at`, and for a delta the position of its base.
    fn step(
        &mut self,
        pack: &Pack,
        at: PackOffset,
        find: &dyn Fn(&oid) -> Result<Option<PackOffset>, Error>,
    ) -> Result<Step, Error> {
        let entry = pack.entry_in(&mut self.window, at)?;
        let link = Link {
            offset: at,
            data_offset: at.0 + entry.header_len as u64,
            size_bytes: entry.size_bytes,
        };
        Ok(match entry.header {
            Header::Object(kind) => Step::Whole(kind, link),
            Header::OffsetDelta { .. } | Header::RefDelta { .. } => {
                Step::Base(link, base_of(pack, at, &entry, find)?)
            }
        })
    }

    /// Notes a delta of a chain, which cannot have more of them than the pack has entries.
    fn push(&mut self, pack: &Pack, link: Link) -> Result<(), Error> {
        if self.chain.len() >= pack.len() as usize {
            return Err(pack.corrupt("chain of deltas leads back to itself", link.offset.0));
        }
        self.chain.push(link);
        Ok(())
    }

    fn inflate(&mut self, pack: &Pack, link: Link, out: &mut Vec<u8>) -> Result<(), Error> {
        let inflater = &mut self.inflater;
        with_data(pack, &mut self.window, link, link.size_bytes, |data| {
            inflater.inflate(data, link.size_bytes, out)
        })?;
        Ok(())
    }

    /// The size of what the delta `link` makes.
    fn result_size(&mut self, pack: &Pack, link: Link) -> Result<u64, Error> {
        let inflater = &mut self.inflater;
        let mut start = [0; DELTA_SIZES_LEN];
        let wanted = start.len() as u64;
        let len = with_data(pack, &mut self.window, link, wanted, |data| {
            inflater.inflate_start(data, &mut start)
        })?;
        match delta::sizes(&start[..len]) {
            Ok(sizes) => Ok(sizes.result_bytes),
            Err(error) => Err(error.at_path(pack.path()).at_offset(link.offset.0)),
        }
    }
}

/// Says where an error is.
fn at_link(pack: &Pack, link: Link) -> impl Fn(Error) -> Error {
    move |error| error.at_path(pack.path()).at_offset(link.offset.0)
}

/// The base of the delta `entry` at `offset`.
pub(super) fn base_of(
    pack: &Pack,
    offset: PackOffset,
    entry: &Entry,
    find: &dyn Fn(&oid) -> Result<Option<PackOffset>, Error>,
) -> Result<PackOffset, Error> {
    if let Header::RefDelta { base } = &entry.header {
        return find(base)?.ok_or_else(|| {
            Error::new(ErrorKind::Missing, "base of delta is not in the pack")
                .on_object(base)
                .at_path(pack.path())
                .at_offset(offset.0)
        });
    }
    pack.base_offset(offset, &entry.header)?
        .ok_or_else(|| pack.corrupt("entry is not a delta", offset.0))
}

/// Keeps what was read, which must not outlive the finding that the pack was damaged meanwhile.
fn keep(
    cache: &BaseCache,
    pack: &Pack,
    offset: PackOffset,
    kind: ObjectKind,
    bytes: Vec<u8>,
) -> Result<CachedBase, Error> {
    pack.intact(offset.0)?;
    let base = CachedBase {
        kind,
        bytes: Arc::new(bytes),
    };
    cache.insert(pack.key(), offset, base.clone());
    Ok(base)
}

/// Calls `inflate` with the deflated bytes of `link`, which inflate to `size`. How many there are
/// is not known: when the pack is not mapped and those read do not suffice, more are read.
pub(super) fn with_data<T>(
    pack: &Pack,
    window: &mut Window,
    link: Link,
    size: u64,
    mut inflate: impl FnMut(&[u8]) -> Result<T, Error>,
) -> Result<T, Error> {
    let rest = pack.end.saturating_sub(link.data_offset);
    // What zlib makes at most of incompressible bytes, and some to spare.
    let mut wanted = size.saturating_add(size / 1000 + 64).min(rest);
    loop {
        let data = pack.bytes_at(window, link.data_offset, wanted as usize)?;
        let len = data.len() as u64;
        match inflate(data) {
            Err(error) if len < rest && *error.kind() == ErrorKind::Truncated => {
                wanted = (len.saturating_mul(2)).max(super::WINDOW_LEN as u64);
            }
            Err(error) => return Err(error.at_path(pack.path()).at_offset(link.offset.0)),
            Ok(value) => return Ok(value),
        }
    }
}
