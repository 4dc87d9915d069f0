//! Queries the storage details of an object, and reads an object in pieces.

use std::cell::RefCell;
use std::io::{self, Cursor, Read};
use std::sync::{Arc, PoisonError};

use gix_object::Kind as ObjectKind;
use pronto_hash::{ObjectId, oid};
use pronto_pack::entry::EntryHeader;
use pronto_pack::pack::{CachedBase, EntryReader, PackOffset, Spooled};

use super::{PackLocation, Store, base_by_id, with_bases, with_scratch};
use crate::error::{Error, ErrorKind, from_pack};
use crate::loose::{self, LooseReader};
use crate::packs::PackFile;

/// The size from which a streamed delta is built in a temporary file instead of memory.
const SPOOLED_FROM_BYTES: u64 = 16 << 20;

/// The stored form of an object.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct StoredForm {
    /// The size on disk in bytes.
    pub size_on_disk: u64,
    /// The base of the delta, if the object is stored as a delta.
    pub delta_base: Option<ObjectId>,
}

/// A reader that returns the content of an object in pieces.
pub struct ObjectReader(ContentReader);

/// The content of an object, from [`Store::find_or_stream`].
pub enum ObjectData {
    /// The whole content has been read into the buffer.
    Whole(ObjectKind),
    /// A large object, whose content must be read in pieces.
    Large(ObjectReader),
}

enum ContentReader {
    Entry(EntryReader),
    Loose(LooseReader),
    Memory(ObjectKind, Cursor<SharedBase>),
    Spooled(Spooled),
}

/// A content that is shared with the cache of delta bases.
struct SharedBase(Arc<Vec<u8>>);

impl AsRef<[u8]> for SharedBase {
    fn as_ref(&self) -> &[u8] {
        &self.0
    }
}

impl Store {
    /// Returns the stored form of `id`; `None` if the object does not exist. The first call sorts
    /// the offsets of the pack. Replacements apply.
    ///
    /// # Errors
    /// Fails as [`find`](Self::find) does.
    pub fn details(&self, id: &oid) -> Result<Option<StoredForm>, Error> {
        let id = self.replaced(id)?;
        self.lookup(&id, packed_details, |objects| {
            let size = loose::size_on_disk(objects, &id);
            Ok(size.map(|size_on_disk| StoredForm {
                size_on_disk,
                delta_base: None,
            }))
        })
    }

    /// Returns the size of `id` on disk in bytes (`%(objectsize:disk)`).
    ///
    /// # Errors
    /// Fails as [`details`](Self::details) does.
    pub fn disk_size(&self, id: &oid) -> Result<Option<u64>, Error> {
        let details = self.details(id)?;
        Ok(details.map(|details| details.size_on_disk))
    }

    /// Returns the base of the delta as which `id` is stored, if there is one (`%(deltabase)`).
    ///
    /// # Errors
    /// Fails as [`details`](Self::details) does.
    pub fn delta_base(&self, id: &oid) -> Result<Option<ObjectId>, Error> {
        let details = self.details(id)?;
        Ok(details.and_then(|details| details.delta_base))
    }

    /// Reads the content of `id` into `out` as [`find`](Self::find) does. If the content takes at
    /// least `threshold_bytes`, returns a reader instead: see [`reader`](Self::reader). Costs no
    /// more than `find`.
    ///
    /// # Errors
    /// Fails as [`find`](Self::find) does.
    pub fn find_or_stream(
        &self,
        id: &oid,
        threshold_bytes: u64,
        out: &mut Vec<u8>,
    ) -> Result<Option<ObjectData>, Error> {
        let id = self.replaced(id)?;
        match self.find_or_stream_present(&id, threshold_bytes, out)? {
            None if self.fetch_missing(&id)? => {
                self.find_or_stream_present(&id, threshold_bytes, out)
            }
            found => Ok(found),
        }
    }

    fn find_or_stream_present(
        &self,
        id: &oid,
        threshold_bytes: u64,
        out: &mut Vec<u8>,
    ) -> Result<Option<ObjectData>, Error> {
        let out = RefCell::new(out);
        let found = self.lookup(
            id,
            |pack, offset| self.content(pack, offset, threshold_bytes, &mut out.borrow_mut()),
            |objects| {
                let found = with_scratch(|scratch| {
                    let (scratch, out) = (&mut scratch.loose, &mut out.borrow_mut());
                    loose::read_below(objects, id, scratch, threshold_bytes, out)
                })?;
                Ok(match found {
                    Some(loose::LooseContent::Whole(kind)) => Some(ObjectData::Whole(kind)),
                    Some(loose::LooseContent::Large) => {
                        let reader = loose::reader(objects, id)?;
                        reader.map(|reader| {
                            ObjectData::Large(ObjectReader(ContentReader::Loose(reader)))
                        })
                    }
                    None => None,
                })
            },
        )?;
        if found.is_none() && id.is_empty_tree() {
            out.borrow_mut().clear();
            return Ok(Some(ObjectData::Whole(ObjectKind::Tree)));
        }
        Ok(found)
    }

    /// Does the same as [`find_or_stream`](Self::find_or_stream) for an object with a known
    /// [`position`](Self::position), without a search.
    ///
    /// # Errors
    /// Fails as [`find`](Self::find) does.
    pub fn find_or_stream_at(
        &self,
        location: PackLocation,
        id: &oid,
        threshold_bytes: u64,
        out: &mut Vec<u8>,
    ) -> Result<Option<ObjectData>, Error> {
        if self.replacements.is_none() {
            let snapshot = self.snapshot()?;
            if let Some(pack) = snapshot.pack(location.pack)
                && let Ok(content) = self.content(pack, location.offset, threshold_bytes, out)
            {
                return Ok(Some(content));
            }
        }
        self.find_or_stream(id, threshold_bytes, out)
    }

    fn content(
        &self,
        pack: &PackFile,
        offset: PackOffset,
        threshold_bytes: u64,
        out: &mut Vec<u8>,
    ) -> Result<ObjectData, Error> {
        Ok(
            match self.decode_below(pack, offset, threshold_bytes, out)? {
                Some(kind) => ObjectData::Whole(kind),
                None => ObjectData::Large(self.entry_reader(pack, offset)?),
            },
        )
    }

    pub(super) fn entry_reader(
        &self,
        pack: &PackFile,
        offset: PackOffset,
    ) -> Result<ObjectReader, Error> {
        let opened = pack.pack()?;
        if let Some(reader) = opened.reader(offset).map_err(from_pack)? {
            return Ok(ObjectReader(ContentReader::Entry(reader)));
        }
        let find = |id: &oid| base_by_id(pack, id);
        if let Some(made) = self.share_below(pack, offset, SPOOLED_FROM_BYTES)? {
            let content = Cursor::new(SharedBase(made.bytes));
            return Ok(ObjectReader(ContentReader::Memory(made.kind, content)));
        }
        let spooled = opened.spool(offset, &find, &self.path().join("pack"));
        Ok(match spooled {
            Ok(spooled) => ObjectReader(ContentReader::Spooled(spooled)),
            // The temporary file cannot be written, so the content is built in memory.
            Err(error) if error.kind() == pronto_pack::ErrorKind::Io => {
                let mut content = Vec::new();
                let kind = self.decode(pack, offset, &mut content)?;
                let content = Cursor::new(SharedBase(Arc::new(content)));
                ObjectReader(ContentReader::Memory(kind, content))
            }
            Err(error) => return Err(pack.failed(error)),
        })
    }

    /// Returns the object at `offset`, shared with the cache of delta bases; `None` if the object
    /// or a base takes at least `below` bytes. Concurrent requests for objects of one chain of
    /// deltas wait, so common bases are built once.
    fn share_below(
        &self,
        pack: &PackFile,
        offset: PackOffset,
        below: u64,
    ) -> Result<Option<CachedBase>, Error> {
        let opened = pack.pack()?;
        with_bases(&self.inner.bases, pack, |bases| {
            let root = opened.root(offset, bases.find)?;
            let chain = root.0 as usize % self.inner.chains.len();
            let chain = &self.inner.chains[chain];
            let _alone = chain.lock().unwrap_or_else(PoisonError::into_inner);
            with_scratch(|scratch| (scratch.decoder).share_below(opened, offset, bases, below))
        })
        .map_err(|error| pack.failed(error))
    }

    /// Returns a reader of `id`; `None` if the object does not exist. An object that is not stored
    /// as a delta is never held in memory as a whole. A small delta is built in memory; a large one
    /// is built in an unnamed temporary file in the directory of packs.
    ///
    /// # Errors
    /// Fails as [`find`](Self::find) does.
    pub fn reader(&self, id: &oid) -> Result<Option<ObjectReader>, Error> {
        let id = self.replaced(id)?;
        match self.reader_of_present(&id)? {
            None if self.fetch_missing(&id)? => self.reader_of_present(&id),
            found => Ok(found),
        }
    }

    fn reader_of_present(&self, id: &oid) -> Result<Option<ObjectReader>, Error> {
        self.lookup(
            id,
            |pack, offset| self.entry_reader(pack, offset),
            |objects| {
                let reader = loose::reader(objects, id)?;
                Ok(reader.map(|reader| ObjectReader(ContentReader::Loose(reader))))
            },
        )
    }
}

fn packed_details(pack: &PackFile, offset: PackOffset) -> Result<StoredForm, Error> {
    let (opened, order) = (pack.pack()?, pack.order()?);
    let size_on_disk = order
        .size_on_disk(offset)
        .map_err(|error| from_pack(error).at_path(opened.path()))?;
    let entry = opened.entry(offset).map_err(|error| pack.failed(error))?;
    let delta_base = match &entry.header {
        EntryHeader::Object(_) => None,
        EntryHeader::RefDelta { base } => Some(*base),
        EntryHeader::OffsetDelta { .. } => {
            let base = opened
                .base_offset(offset, &entry.header)
                .map_err(from_pack)?;
            let row = base.and_then(|base| order.row(base)).ok_or_else(|| {
                let message = "corrupt pack index: no object starts at the offset of a delta base";
                Error::new(ErrorKind::Corrupt, message)
                    .at_path(opened.path())
                    .at_offset(offset.0)
            })?;
            let base = pack.index()?.id_at(row);
            Some(base.map_err(|error| pack.failed(error))?)
        }
    };
    Ok(StoredForm {
        size_on_disk,
        delta_base,
    })
}

impl ObjectReader {
    /// Returns the type of the object.
    pub fn kind(&self) -> ObjectKind {
        match &self.0 {
            ContentReader::Entry(reader) => reader.kind(),
            ContentReader::Loose(reader) => reader.kind,
            ContentReader::Memory(kind, _) => *kind,
            ContentReader::Spooled(spooled) => spooled.kind,
        }
    }

    /// Returns the size of the content.
    pub fn size_bytes(&self) -> u64 {
        match &self.0 {
            ContentReader::Entry(reader) => reader.size_bytes(),
            ContentReader::Loose(reader) => reader.size_bytes,
            ContentReader::Memory(_, content) => content.get_ref().0.len() as u64,
            ContentReader::Spooled(spooled) => spooled.size_bytes,
        }
    }
}

impl Read for ObjectReader {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        match &mut self.0 {
            ContentReader::Entry(reader) => reader.read(buffer),
            ContentReader::Loose(reader) => reader.read(buffer),
            ContentReader::Memory(_, content) => content.read(buffer),
            ContentReader::Spooled(spooled) => spooled.file.read(buffer),
        }
    }
}
