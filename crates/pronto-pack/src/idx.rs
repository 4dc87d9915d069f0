//! Reads pack indexes (`.idx`, versions 1 and 2) in place. Format: `gitformat-pack(5)`.
//!
//! The cost of opening does not depend on the size: the header, the fan-out and the size of the
//! file are checked, and the tables are neither copied nor hashed. Every offset is checked when it
//! is used.

mod scan;
pub mod write;

use std::ops::Range;
use std::path::{Path, PathBuf};

use pronto_hash::{Kind, ObjectId, Prefix, oid};
use pronto_io::error::IoContext as _;
use pronto_io::view::{FileView, ViewAccess};

pub use scan::{IndexEntry, IndexRows};

use crate::error::{Error, ErrorKind};
use crate::fanout::{FANOUT_LEN, Fanout, FanoutTable, be_u32, be_u64, intact, unreadable};
use crate::position::PackOffset;

pub use crate::position::IndexPosition;

/// The first four bytes of a version 2 index; version 1 has none.
const SIGNATURE: [u8; 4] = *b"\xfftOc";
const HEADER_LEN: u64 = 8;

/// The version of the format of an index.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PackIndexVersion {
    /// Version 1: rows of offset and id; only packs below 4 GiB; no CRC-32 of entries.
    One,
    /// Version 2: separate tables of ids, CRC-32, offsets and large offsets.
    Two,
}

/// An open pack index. `Send + Sync`; no method takes a lock if the file is mapped.
#[derive(Debug)]
pub struct PackIndex {
    path: PathBuf,
    view: FileView,
    fanout: Fanout,
    version: PackIndexVersion,
    ids: FanoutTable,
    /// The number of 64-bit offsets in the file.
    large_offsets: u64,
}

impl PackIndex {
    /// Opens the index at `path`, whose ids are of `kind`. Costs a constant number of system calls,
    /// and reads of the first page and the file size.
    ///
    /// # Errors
    /// Fails with `ErrorKind::Io` if the file cannot be opened, and with `ErrorKind::Corrupt`,
    /// `ErrorKind::Truncated` or `ErrorKind::IndexVersion` if it is not a valid index.
    pub fn open(
        path: impl AsRef<Path>,
        kind: Kind,
        access: ViewAccess,
    ) -> Result<PackIndex, Error> {
        let path = path.as_ref();
        let view = FileView::open(path, access).context(ErrorKind::Io, "cannot open", path)?;
        PackIndex::from_view(view, path, kind)
    }

    /// Does the same as [`open`](Self::open) for an open file with the path `path`.
    ///
    /// # Errors
    /// Fails as [`open`](Self::open) does.
    pub fn from_view(view: FileView, path: &Path, kind: Kind) -> Result<PackIndex, Error> {
        PackIndex::check(view, path, kind).map_err(|error| error.at_path(path))
    }

    fn check(view: FileView, path: &Path, kind: Kind) -> Result<PackIndex, Error> {
        let hash_len = kind.len_in_bytes() as u64;
        let mut buffer = Vec::new();
        let header_len = FANOUT_LEN + HEADER_LEN as usize;
        let header = view.read(0, header_len, &mut buffer).map_err(|_| {
            Error::new(ErrorKind::Truncated, "index file is too small").at_offset(view.len())
        })?;
        let version = if header[..4] == SIGNATURE {
            match be_u32(&header[4..]) {
                2 => PackIndexVersion::Two,
                version => {
                    let message = format!("index file is of version {version}, which is not known");
                    let kind = ErrorKind::IndexVersion { version };
                    return Err(Error::new(kind, message).at_offset(4));
                }
            }
        } else {
            PackIndexVersion::One
        };
        let fanout = match version {
            PackIndexVersion::One => Fanout::parse(header)?,
            PackIndexVersion::Two => Fanout::parse(&header[HEADER_LEN as usize..])?,
        };
        let count = u64::from(fanout.len());
        let (ids, least, most) = match version {
            PackIndexVersion::One => {
                let row = hash_len + 4;
                let size = FANOUT_LEN as u64 + count * row + 2 * hash_len;
                (table(FANOUT_LEN as u64, row, 4, kind), size, size)
            }
            PackIndexVersion::Two => {
                let start = HEADER_LEN + FANOUT_LEN as u64;
                let least = start + count * (hash_len + 8) + 2 * hash_len;
                let most = least + count.saturating_sub(1) * 8;
                (table(start, hash_len, 0, kind), least, most)
            }
        };
        if view.len() < least || view.len() > most || !(view.len() - least).is_multiple_of(8) {
            let kind = ErrorKind::IndexSize;
            return Err(Error::new(kind, "wrong index file size").at_offset(view.len()));
        }
        intact(&view)?;
        Ok(PackIndex {
            path: path.to_owned(),
            large_offsets: (view.len() - least) / 8,
            view,
            fanout,
            version,
            ids,
        })
    }

    /// Returns the path of the index.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Returns the view of the file.
    pub fn view(&self) -> &FileView {
        &self.view
    }

    /// Returns the version of the file format.
    pub fn version(&self) -> PackIndexVersion {
        self.version
    }

    /// Returns the hash function of object ids.
    pub fn kind(&self) -> Kind {
        self.ids.kind
    }

    /// Returns the number of objects.
    pub fn len(&self) -> u32 {
        self.fanout.len()
    }

    /// Returns whether the index has no objects.
    pub fn is_empty(&self) -> bool {
        self.fanout.is_empty()
    }

    /// Returns the position of `id`, if the index contains it. An `id` of another hash function is
    /// not found.
    ///
    /// # Errors
    /// Fails with `ErrorKind::Io` if the file is not mapped and cannot be read, and with
    /// `ErrorKind::Truncated` if a mapped file was truncated.
    #[inline]
    pub fn find(&self, id: &oid) -> Result<Option<IndexPosition>, Error> {
        if id.kind() != self.ids.kind {
            return Ok(None);
        }
        match self.ids.search(&self.view, &self.fanout, id) {
            Ok(found) => Ok(found.ok().map(IndexPosition)),
            Err(error) => Err(error.at_path(&self.path)),
        }
    }

    /// Returns the offset of `id` in the pack, if the index contains it.
    ///
    /// # Errors
    /// Fails as [`find`](Self::find) and [`offset_at`](Self::offset_at) do.
    #[inline]
    pub fn find_offset(&self, id: &oid) -> Result<Option<PackOffset>, Error> {
        if id.kind() != self.ids.kind {
            return Ok(None);
        }
        let (start, row_len) = self.offset_rows();
        let hint = |row: u32| self.view.prefetch(start + u64::from(row) * row_len);
        match self.ids.search_hinting(&self.view, &self.fanout, id, hint) {
            Ok(Ok(row)) => self.offset_at(IndexPosition(row)).map(Some),
            Ok(Err(_)) => Ok(None),
            Err(error) => Err(error.at_path(&self.path)),
        }
    }

    /// Returns the position of the first offset, and the distance between offsets, in bytes.
    #[inline]
    fn offset_rows(&self) -> (u64, u64) {
        match self.version {
            PackIndexVersion::One => (self.ids.start, u64::from(self.ids.row_len)),
            PackIndexVersion::Two => (self.offsets_start(), 4),
        }
    }

    /// Searches many ids in any order. Calls `found` with the position in `ids` and the position in
    /// the index of each id that the index contains. If the ids are ascending, each search starts
    /// at the result of the previous one; otherwise several ids are searched in parallel.
    ///
    /// # Errors
    /// Fails as [`find`](Self::find) does.
    pub fn find_many<'a, I>(
        &self,
        ids: I,
        mut found: impl FnMut(usize, IndexPosition),
    ) -> Result<(), Error>
    where
        I: IntoIterator<Item = &'a oid>,
        I::IntoIter: Clone,
    {
        let found = |place, row| {
            found(place, IndexPosition(row));
            Ok(())
        };
        let searched = (self.ids).search_many(&self.view, &self.fanout, ids, |_| (), found);
        searched.map_err(|error| error.at_path(&self.path))
    }

    /// Does the same as [`find_many`](Self::find_many), and also passes the offset of each object
    /// in the pack.
    ///
    /// # Errors
    /// Fails as [`find`](Self::find) and [`offset_at`](Self::offset_at) do.
    pub fn find_offsets<'a, I>(
        &self,
        ids: I,
        mut found: impl FnMut(usize, IndexPosition, PackOffset),
    ) -> Result<(), Error>
    where
        I: IntoIterator<Item = &'a oid>,
        I::IntoIter: Clone,
    {
        let (start, row_len) = self.offset_rows();
        let hint = |row: u32| self.view.prefetch(start + u64::from(row) * row_len);
        let found = |place, row| {
            let position = IndexPosition(row);
            found(place, position, self.offset_at(position)?);
            Ok(())
        };
        let searched = (self.ids).search_many(&self.view, &self.fanout, ids, hint, found);
        searched.map_err(|error| error.at_path(&self.path))
    }

    /// Checks that the file is unchanged since it was opened. Call this function before reporting
    /// an id as missing; see [`FileView::verify`].
    ///
    /// # Errors
    /// Fails with `ErrorKind::Truncated` if the mapped file was truncated.
    pub fn verify(&self) -> Result<(), Error> {
        let verified = self.view.verify();
        verified.map_err(|error| unreadable(error).at_path(&self.path))
    }

    /// Returns the positions of all ids that start with `first_byte`.
    pub fn bucket(&self, first_byte: u8) -> Range<u32> {
        self.fanout.bucket(first_byte)
    }

    /// Returns the positions of all ids that start with `prefix`.
    ///
    /// # Errors
    /// Fails as [`find`](Self::find) does.
    pub fn prefix(&self, prefix: &Prefix) -> Result<Range<IndexPosition>, Error> {
        let rows = self.ids.prefix(&self.view, &self.fanout, prefix);
        let rows = rows.map_err(|error| error.at_path(&self.path))?;
        Ok(IndexPosition(rows.start)..IndexPosition(rows.end))
    }

    /// Returns the id at `position`.
    ///
    /// # Errors
    /// Fails with `ErrorKind::Corrupt` if the position does not exist, and with `ErrorKind::Io` if
    /// the file cannot be read.
    #[inline]
    pub fn id_at(&self, position: IndexPosition) -> Result<ObjectId, Error> {
        self.check_position(position)?;
        let id = self.ids.id(&self.view, position.0);
        id.map_err(|error| error.at_path(&self.path))
    }

    /// Returns the offset in the pack of the object at `position`.
    ///
    /// # Errors
    /// Fails with `ErrorKind::Corrupt` if the position does not exist or its large offset is not in
    /// the file, and with `ErrorKind::Io` if the file cannot be read.
    #[inline]
    pub fn offset_at(&self, position: IndexPosition) -> Result<PackOffset, Error> {
        self.check_position(position)?;
        let row = u64::from(position.0);
        match self.version {
            PackIndexVersion::One => {
                let at = self.ids.start + row * u64::from(self.ids.row_len);
                Ok(PackOffset(u64::from(self.read_u32(at)?)))
            }
            PackIndexVersion::Two => {
                let small = self.read_u32(self.offsets_start() + row * 4)?;
                self.resolve_offset(small)
            }
        }
    }

    /// Returns the CRC-32 of the stored entry at `position`; `None` in version 1.
    ///
    /// # Errors
    /// Fails as [`id_at`](Self::id_at) does.
    pub fn crc_at(&self, position: IndexPosition) -> Result<Option<u32>, Error> {
        self.check_position(position)?;
        match self.version {
            PackIndexVersion::One => Ok(None),
            PackIndexVersion::Two => {
                let at = self.checksums_start() + u64::from(position.0) * 4;
                self.read_u32(at).map(Some)
            }
        }
    }

    /// Returns the checksum in the trailer of the pack to which the index belongs.
    ///
    /// # Errors
    /// Fails with `ErrorKind::Io` if the file cannot be read.
    pub fn pack_checksum(&self) -> Result<ObjectId, Error> {
        let hash_len = self.ids.kind.len_in_bytes();
        self.read_id(self.view.len() - 2 * hash_len as u64)
    }

    /// Returns the checksum at the end of the index, which [`open`](Self::open) does not verify.
    ///
    /// # Errors
    /// Fails with `ErrorKind::Io` if the file cannot be read.
    pub fn checksum(&self) -> Result<ObjectId, Error> {
        let hash_len = self.ids.kind.len_in_bytes();
        self.read_id(self.view.len() - hash_len as u64)
    }

    /// Returns the offsets that are stored in 64 bits, in ascending order.
    pub(crate) fn offsets_in_64_bits(&self) -> Result<Vec<u64>, Error> {
        let mut offsets = Vec::new();
        if self.large_offsets > 0 {
            for row in 0..self.len() {
                let small = self.read_u32(self.offsets_start() + u64::from(row) * 4)?;
                if small >> 31 == 1 {
                    offsets.push(self.resolve_offset(small)?.0);
                }
            }
        }
        offsets.sort_unstable();
        Ok(offsets)
    }

    /// Converts a 32-bit offset of a version 2 index to the offset in the pack.
    #[inline]
    fn resolve_offset(&self, small: u32) -> Result<PackOffset, Error> {
        const LARGE: u32 = 1 << 31;
        if small & LARGE == 0 {
            return Ok(PackOffset(u64::from(small)));
        }
        let slot = u64::from(small & !LARGE);
        let at = self.large_offsets_start() + slot * 8;
        if slot >= self.large_offsets {
            return Err(self.corrupt("large offset is out of bounds", at));
        }
        let mut buffer = Vec::new();
        let bytes = self.view.read(at, 8, &mut buffer);
        let offset = be_u64(bytes.map_err(|error| self.unreadable(error, at))?);
        self.intact()?;
        if offset > i64::MAX as u64 {
            return Err(self.corrupt("large offset is out of bounds", at));
        }
        Ok(PackOffset(offset))
    }

    fn checksums_start(&self) -> u64 {
        self.ids.start + u64::from(self.len()) * u64::from(self.ids.row_len)
    }

    #[inline]
    fn offsets_start(&self) -> u64 {
        self.checksums_start() + u64::from(self.len()) * 4
    }

    fn large_offsets_start(&self) -> u64 {
        self.offsets_start() + u64::from(self.len()) * 4
    }

    #[inline]
    fn check_position(&self, position: IndexPosition) -> Result<(), Error> {
        match position.0 < self.len() {
            true => Ok(()),
            false => Err(self.corrupt(
                "position is out of range in the pack index",
                self.view.len(),
            )),
        }
    }

    #[inline]
    fn read_u32(&self, at: u64) -> Result<u32, Error> {
        let mut buffer = Vec::new();
        match self.view.read(at, 4, &mut buffer) {
            Ok(bytes) => {
                let number = be_u32(bytes);
                self.intact()?;
                Ok(number)
            }
            Err(error) => Err(self.unreadable(error, at)),
        }
    }

    fn read_id(&self, at: u64) -> Result<ObjectId, Error> {
        let mut buffer = Vec::new();
        match self
            .view
            .read(at, self.ids.kind.len_in_bytes(), &mut buffer)
        {
            Ok(bytes) => {
                let id = ObjectId::from_bytes_or_panic(bytes);
                self.intact()?;
                Ok(id)
            }
            Err(error) => Err(self.unreadable(error, at)),
        }
    }

    #[inline]
    fn intact(&self) -> Result<(), Error> {
        intact(&self.view).map_err(|error| error.at_path(&self.path))
    }

    #[cold]
    fn unreadable(&self, error: std::io::Error, at: u64) -> Error {
        unreadable(error).at_path(&self.path).at_offset(at)
    }

    #[cold]
    fn corrupt(&self, message: &str, at: u64) -> Error {
        Error::new(ErrorKind::Corrupt, message)
            .at_path(&self.path)
            .at_offset(at)
    }
}

fn table(start: u64, row_len: u64, id_offset: u32, kind: Kind) -> FanoutTable {
    FanoutTable {
        start,
        row_len: row_len as u32,
        id_offset,
        kind,
    }
}
