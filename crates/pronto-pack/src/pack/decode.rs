//! Decodes an entry to an object: follows the chain of deltas to its end and back, without
//! recursion.

use std::sync::Arc;

use gix_object::Kind as ObjectKind;
use pronto_hash::oid;

use super::known_kinds::KnownKinds;
use super::{BaseCache, CachedBase, PackOffset, PackReader, ReadWindow};
use crate::delta;
use crate::entry::{Entry, EntryHeader};
use crate::error::{Error, ErrorKind};
use crate::inflate::Inflater;

/// The largest length of the two sizes at the start of a delta.
const DELTA_SIZES_LEN: usize = 20;

/// The size above which a buffer is not kept for the next object.
const LARGEST_SPARE: usize = 1 << 20;

/// The sources of delta bases, besides the pack.
#[derive(Clone, Copy)]
pub struct BaseSources<'a> {
    /// The cache of delta bases.
    pub cache: &'a BaseCache,
    /// A callback that finds the base of a delta that names it by id: returns its offset in the
    /// same pack.
    pub find: &'a dyn Fn(&oid) -> Result<Option<PackOffset>, Error>,
}

/// Decodes entries to objects with reusable buffers. Each thread needs its own decoder, for any
/// number of packs.
pub struct Decoder {
    inflater: Inflater,
    delta: Vec<u8>,
    chain: Vec<DeltaLink>,
    kinds: KnownKinds,
    window: ReadWindow,
}

/// One delta of a chain.
#[derive(Clone, Copy)]
pub(super) struct DeltaLink {
    pub(super) offset: PackOffset,
    pub(super) data_offset: u64,
    pub(super) size_bytes: u64,
}

/// The type of an entry in a chain.
enum ChainEntry {
    /// A delta, with the offset of its base.
    Base(DeltaLink, PackOffset),
    /// An object that is not a delta.
    Whole(ObjectKind, DeltaLink),
}

/// The end of a chain: an object that is not a delta.
enum ChainEnd {
    /// A cached object.
    Cached(CachedBase),
    /// An entry of the pack.
    Entry { kind: ObjectKind, link: DeltaLink },
}

impl Default for Decoder {
    fn default() -> Self {
        Self::new()
    }
}

impl Decoder {
    /// Returns a decoder with empty buffers.
    pub fn new() -> Self {
        Decoder {
            inflater: Inflater::new(),
            delta: Vec::new(),
            chain: Vec::new(),
            kinds: KnownKinds::default(),
            window: ReadWindow::default(),
        }
    }

    /// Decodes the object at `offset` of `pack` to `out`, replacing its content.
    ///
    /// Inflates and applies the parts of the chain that are not cached, and caches intermediate
    /// results, but not the object itself.
    ///
    /// # Errors
    /// Fails with `ErrorKind::Corrupt` or `ErrorKind::Truncated` if the pack is damaged, with
    /// `ErrorKind::Missing` if a base named by id is not in the pack, with `ErrorKind::Limit` if
    /// the object does not fit in memory, and with `ErrorKind::Io` if the file cannot be read.
    pub fn decode(
        &mut self,
        pack: &PackReader,
        offset: PackOffset,
        bases: BaseSources<'_>,
        out: &mut Vec<u8>,
    ) -> Result<ObjectKind, Error> {
        match self.decode_below(pack, offset, bases, u64::MAX, out)? {
            Some(kind) => Ok(kind),
            None => Err(pack.corrupt("corrupt pack: impossible object size", offset.0)),
        }
    }

    /// Does the same as [`decode`](Self::decode), but returns `None` if the object or a base takes
    /// at least `below` bytes, without allocating memory of this size. See
    /// [`PackReader::reader`](PackReader::reader) and [`PackReader::spool`](PackReader::spool).
    ///
    /// # Errors
    /// Fails as [`decode`](Self::decode) does.
    pub fn decode_below(
        &mut self,
        pack: &PackReader,
        offset: PackOffset,
        bases: BaseSources<'_>,
        below: u64,
        out: &mut Vec<u8>,
    ) -> Result<Option<ObjectKind>, Error> {
        self.begin();
        let result = self.decode_chain(pack, offset, bases, below, out);
        pack.intact(offset.0)?;
        result.map_err(|error| error.at_path(pack.path()).at_offset(offset.0))
    }

    /// Returns the type and the size of the object at `offset` of `pack`. Inflates at most the
    /// first bytes of a delta, which contain the size. The type is found at the end of the chain,
    /// or at the first base whose type this decoder has determined recently.
    ///
    /// # Errors
    /// Fails as [`decode`](Self::decode) does.
    pub fn header(
        &mut self,
        pack: &PackReader,
        offset: PackOffset,
        bases: BaseSources<'_>,
    ) -> Result<gix_object::Header, Error> {
        self.begin();
        let result = self.chain_header(pack, offset, bases.find);
        pack.intact(offset.0)?;
        result.map_err(|error| error.at_path(pack.path()).at_offset(offset.0))
    }

    fn begin(&mut self) {
        self.chain.clear();
        // The window may contain bytes of another pack.
        self.window.bytes.clear();
    }

    fn decode_chain(
        &mut self,
        pack: &PackReader,
        offset: PackOffset,
        bases: BaseSources<'_>,
        below: u64,
        out: &mut Vec<u8>,
    ) -> Result<Option<ObjectKind>, Error> {
        let Some(end) = self.follow_below(pack, offset, bases, below)? else {
            return Ok(None);
        };
        if let (true, ChainEnd::Entry { kind, link }) = (self.chain.is_empty(), &end) {
            self.inflate(pack, *link, out)?;
            return Ok(Some(*kind));
        }
        // The object itself is decoded to `out` and is not cached.
        let Some(base) = self.climb(pack, end, 1, bases, below)? else {
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

    /// Returns the object at `offset` of `pack`, shared with the cache. Large objects are thus
    /// built only once, even if they are bases of other objects. Returns `None` as
    /// [`decode_below`](Self::decode_below) does.
    ///
    /// # Errors
    /// Fails as [`decode`](Self::decode) does.
    pub fn share_below(
        &mut self,
        pack: &PackReader,
        offset: PackOffset,
        bases: BaseSources<'_>,
        below: u64,
    ) -> Result<Option<CachedBase>, Error> {
        self.begin();
        let end = self.follow_below(pack, offset, bases, below);
        let result = end.and_then(|end| match end {
            Some(end) => self.climb(pack, end, 0, bases, below),
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
        pack: &PackReader,
        offset: PackOffset,
        bases: BaseSources<'_>,
        below: u64,
    ) -> Result<Option<ChainEnd>, Error> {
        let end = self.follow(pack, offset, bases)?;
        let end_bytes = match &end {
            ChainEnd::Cached(base) => base.bytes.len() as u64,
            ChainEnd::Entry { link, .. } => link.size_bytes,
        };
        let largest = self.chain.iter().map(|link| link.size_bytes).max();
        Ok((end_bytes.max(largest.unwrap_or(0)) < below).then_some(end))
    }

    /// Applies the deltas of the chain to `end`, except for the last `left` deltas, and caches all
    /// results. Returns `None` if a result takes at least `below` bytes.
    fn climb(
        &mut self,
        pack: &PackReader,
        end: ChainEnd,
        left: usize,
        bases: BaseSources<'_>,
        below: u64,
    ) -> Result<Option<CachedBase>, Error> {
        let mut base = match end {
            ChainEnd::Cached(base) => base,
            ChainEnd::Entry { kind, link } => self.inflate_base(pack, kind, link, bases.cache)?,
        };
        while self.chain.len() > left
            && let Some(link) = self.chain.pop()
        {
            if self.inflate_delta(pack, link)? >= below {
                return Ok(None);
            }
            base = self.apply_delta(pack, &base, link, bases.cache)?;
        }
        Ok(Some(base))
    }

    /// Inflates the end of a chain, and caches it.
    fn inflate_base(
        &mut self,
        pack: &PackReader,
        kind: ObjectKind,
        link: DeltaLink,
        cache: &BaseCache,
    ) -> Result<CachedBase, Error> {
        let mut bytes = Vec::new();
        self.inflate(pack, link, &mut bytes)?;
        keep(cache, pack, link.offset, kind, bytes)
    }

    /// Inflates a delta. Returns the declared size of its result.
    fn inflate_delta(&mut self, pack: &PackReader, link: DeltaLink) -> Result<u64, Error> {
        let mut delta = std::mem::take(&mut self.delta);
        let inflated = self.inflate(pack, link, &mut delta);
        self.delta = delta;
        inflated?;
        let sizes = delta::sizes(&self.delta).map_err(at_link(pack, link))?;
        Ok(sizes.result_bytes)
    }

    /// Applies the delta that was inflated last, and caches the result.
    fn apply_delta(
        &mut self,
        pack: &PackReader,
        base: &CachedBase,
        link: DeltaLink,
        cache: &BaseCache,
    ) -> Result<CachedBase, Error> {
        let mut bytes = Vec::new();
        delta::apply(&base.bytes, &self.delta, &mut bytes).map_err(at_link(pack, link))?;
        keep(cache, pack, link.offset, base.kind, bytes)
    }

    fn chain_header(
        &mut self,
        pack: &PackReader,
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
                ChainEntry::Base(link, next) => (link, next),
                ChainEntry::Whole(kind, link) => {
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

    /// Follows the chain from `offset` to the first non-delta or cached base, and records the
    /// deltas.
    fn follow(
        &mut self,
        pack: &PackReader,
        offset: PackOffset,
        bases: BaseSources<'_>,
    ) -> Result<ChainEnd, Error> {
        let mut at = offset;
        loop {
            if let Some(base) = bases.cache.get(pack.key(), at) {
                return Ok(ChainEnd::Cached(base));
            }
            match self.step(pack, at, bases.find)? {
                ChainEntry::Whole(kind, link) => return Ok(ChainEnd::Entry { kind, link }),
                ChainEntry::Base(link, next) => {
                    self.push(pack, link)?;
                    at = next;
                }
            }
        }
    }

    /// Returns the type of the entry at `at`, and for a delta the position of its base.
    fn step(
        &mut self,
        pack: &PackReader,
        at: PackOffset,
        find: &dyn Fn(&oid) -> Result<Option<PackOffset>, Error>,
    ) -> Result<ChainEntry, Error> {
        let entry = pack.entry_in(&mut self.window, at)?;
        let link = DeltaLink {
            offset: at,
            data_offset: at.0 + entry.header_len as u64,
            size_bytes: entry.size_bytes,
        };
        Ok(match entry.header {
            EntryHeader::Object(kind) => ChainEntry::Whole(kind, link),
            EntryHeader::OffsetDelta { .. } | EntryHeader::RefDelta { .. } => {
                ChainEntry::Base(link, base_of(pack, at, &entry, find)?)
            }
        })
    }

    /// Records a delta of a chain. Fails if there are more deltas than the pack has entries.
    fn push(&mut self, pack: &PackReader, link: DeltaLink) -> Result<(), Error> {
        if self.chain.len() >= pack.len() as usize {
            return Err(pack.corrupt("corrupt pack: delta chain is a cycle", link.offset.0));
        }
        self.chain.push(link);
        Ok(())
    }

    fn inflate(
        &mut self,
        pack: &PackReader,
        link: DeltaLink,
        out: &mut Vec<u8>,
    ) -> Result<(), Error> {
        let inflater = &mut self.inflater;
        with_data(pack, &mut self.window, link, link.size_bytes, |data| {
            inflater.inflate(data, link.size_bytes, out)
        })?;
        Ok(())
    }

    /// Returns the size of the result of the delta `link`.
    fn result_size(&mut self, pack: &PackReader, link: DeltaLink) -> Result<u64, Error> {
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

/// Adds the path and the offset to an error.
fn at_link(pack: &PackReader, link: DeltaLink) -> impl Fn(Error) -> Error {
    move |error| error.at_path(pack.path()).at_offset(link.offset.0)
}

/// Returns the offset of the base of the delta `entry` at `offset`.
pub(super) fn base_of(
    pack: &PackReader,
    offset: PackOffset,
    entry: &Entry,
    find: &dyn Fn(&oid) -> Result<Option<PackOffset>, Error>,
) -> Result<PackOffset, Error> {
    if let EntryHeader::RefDelta { base } = &entry.header {
        return find(base)?.ok_or_else(|| {
            Error::new(ErrorKind::Missing, "delta base is not in the pack")
                .on_object(base)
                .at_path(pack.path())
                .at_offset(offset.0)
        });
    }
    pack.base_offset(offset, &entry.header)?
        .ok_or_else(|| pack.corrupt("pack entry is not a delta", offset.0))
}

/// Caches an object, unless a check shows that the pack was damaged while it was read.
fn keep(
    cache: &BaseCache,
    pack: &PackReader,
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

/// Calls `inflate` with the deflated bytes of `link`, which inflate to `size` bytes. The number of
/// deflated bytes is unknown: if the pack is not mapped and the bytes read so far are not
/// sufficient, more are read.
pub(super) fn with_data<T>(
    pack: &PackReader,
    window: &mut ReadWindow,
    link: DeltaLink,
    size: u64,
    mut inflate: impl FnMut(&[u8]) -> Result<T, Error>,
) -> Result<T, Error> {
    let rest = pack.end.saturating_sub(link.data_offset);
    // The largest deflated size of incompressible bytes, with a reserve.
    let mut wanted = size.saturating_add(size / 1000 + 64).min(rest);
    loop {
        let data = pack.bytes_at(window, link.data_offset, wanted as usize)?;
        let len = data.len() as u64;
        match inflate(data) {
            Err(error) if len < rest && error.kind() == ErrorKind::Truncated => {
                wanted = (len.saturating_mul(2)).max(super::WINDOW_LEN as u64);
            }
            Err(error) => return Err(error.at_path(pack.path()).at_offset(link.offset.0)),
            Ok(value) => return Ok(value),
        }
    }
}
