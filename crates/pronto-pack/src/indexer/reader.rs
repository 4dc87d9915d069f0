//! Reads entries of the pack that has just been written.

use super::buffers::{BufferPool, ObjectBuffer};
use super::limits::ObjectLimits;
use super::tables::EntryTables;
use crate::entry::Entry;
use crate::error::{Error, ErrorKind};
use crate::inflate::Inflater;
use gix_object::Kind as ObjectKind;
use pronto_hash::Kind;
use pronto_io::view::FileView;

/// The number of bytes that are read at once from a pack that is not mapped. The base of a delta
/// usually precedes it closely.
const WINDOW_LEN: u64 = 32 << 10;

/// Reads entries for one thread.
pub(super) struct Reader<'a> {
    kind: Kind,
    tables: &'a EntryTables,
    limits: ObjectLimits<'a>,
    inflater: Inflater,
    raw: RawPack<'a>,
    delta: Vec<u8>,
}

impl<'a> Reader<'a> {
    pub(super) fn new(
        kind: Kind,
        view: &'a FileView,
        tables: &'a EntryTables,
        limits: ObjectLimits<'a>,
    ) -> Self {
        Reader {
            kind,
            tables,
            limits,
            inflater: Inflater::new(),
            raw: RawPack {
                view,
                start: 0,
                window: Vec::new(),
            },
            delta: Vec::new(),
        }
    }

    /// Returns the content of an entry that is not a delta.
    pub(super) fn whole(
        &mut self,
        index: u32,
        pool: &mut BufferPool,
    ) -> Result<ObjectBuffer, Error> {
        let (offset, len) = self.tables.extent(index);
        let bytes = self.raw.read(offset, len)?;
        let entry = Entry::parse(bytes, self.kind).map_err(|error| error.at_offset(offset))?;
        let stream = &bytes[entry.header_len..];
        let kind = self.tables.kind(index).unwrap_or(ObjectKind::Blob);
        (self.limits)
            .inflate(stream, &mut self.inflater, kind, entry.size_bytes, pool)
            .map_err(|error| error.at_offset(offset))
    }

    /// Returns the instructions of an entry that is a delta.
    pub(super) fn delta(&mut self, index: u32) -> Result<&[u8], Error> {
        let (offset, len) = self.tables.extent(index);
        let bytes = self.raw.read(offset, len)?;
        let entry = Entry::parse(bytes, self.kind).map_err(|error| error.at_offset(offset))?;
        self.inflater
            .inflate(
                &bytes[entry.header_len..],
                entry.size_bytes,
                &mut self.delta,
            )
            .map_err(|error| error.at_offset(offset))?;
        Ok(&self.delta)
    }

    /// Returns the content of any entry whose bases are known, by resolving its chain of deltas.
    pub(super) fn content(
        &mut self,
        index: u32,
        pool: &mut BufferPool,
    ) -> Result<ObjectBuffer, Error> {
        let mut chain = Vec::new();
        let mut root = index;
        while let Some(base) = self.tables.bases[root as usize].index() {
            chain.push(root);
            root = base;
        }
        let mut content = self.whole(root, pool)?;
        for index in chain.into_iter().rev() {
            let limits = self.limits;
            let made = limits.make(&content, self.delta(index)?, pool)?;
            pool.put(std::mem::replace(&mut content, made));
        }
        Ok(content)
    }
}

/// The bytes of the pack: mapped, or in a window with the bytes that were read last.
struct RawPack<'a> {
    view: &'a FileView,
    /// The offset of the window in the pack.
    start: u64,
    window: Vec<u8>,
}

impl RawPack<'_> {
    fn read(&mut self, offset: u64, len: usize) -> Result<&[u8], Error> {
        if let Some(within) = self.within(offset, len) {
            return Ok(&self.window[within..][..len]);
        }
        let ahead = match self.view.bytes() {
            Some(_) => 0,
            None => self.view.len().saturating_sub(offset).min(WINDOW_LEN),
        };
        self.start = offset;
        let wanted = len.max(ahead as usize);
        match self.view.read(offset, wanted, &mut self.window) {
            Ok(bytes) => Ok(&bytes[..len]),
            Err(error) => {
                // The content of the window is no longer valid.
                self.start = u64::MAX;
                Err(Error::new(ErrorKind::Io, "cannot read back the pack")
                    .because(error)
                    .at_offset(offset))
            }
        }
    }

    /// Returns the offset of the bytes in the window, if the window contains all of them.
    fn within(&self, offset: u64, len: usize) -> Option<usize> {
        let within = usize::try_from(offset.checked_sub(self.start)?).ok()?;
        (within.checked_add(len)? <= self.window.len()).then_some(within)
    }
}
