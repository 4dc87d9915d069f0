//! Reads packs (`.pack`, versions 2 and 3) in place. Format: `gitformat-pack(5)`.
//!
//! A [`PackReader`] returns entries; a [`Decoder`] decodes an entry to an object by following its chain
//! of deltas, without recursion, and keeps bases in a shared [`BaseCache`].

mod cache;
mod decode;
mod kinds;
mod known_kinds;
mod links;
mod order;
mod spool;
mod stream;

use std::path::{Path, PathBuf};

use pronto_hash::{Kind, ObjectId};
use pronto_io::error::IoContext as _;
use pronto_io::view::{FileView, ViewAccess};

pub use cache::{BaseCache, CachedBase, PackKey};
pub use decode::{BaseSources, Decoder};
pub use kinds::kinds;
pub use links::shape::{EntryStarts, RawEntry, TreePiece};
pub use links::{EntryListPiece, LinkTarget, PackFiles, Scan, Tree, TreeEntryKind, TreeLinks};
pub use order::{PackOrder, PackPosition};
pub use spool::Spooled;
pub use stream::EntryReader;

use crate::entry::{Entry, EntryHeader, MAX_HEADER_LEN};
use crate::error::{Error, ErrorKind};
use crate::fanout::{be_u32, intact, unreadable};
use crate::idx::PackIndex;

pub use crate::position::PackOffset;

const SIGNATURE: [u8; 4] = *b"PACK";
const HEADER_LEN: u64 = 12;

/// The smallest read of a pack that is not mapped.
const WINDOW_LEN: usize = 4096;

/// An open pack. `Send + Sync`; no method takes a lock if the file is mapped.
#[derive(Debug)]
pub struct PackReader {
    path: PathBuf,
    view: FileView,
    kind: Kind,
    count: u32,
    /// The start of the trailer and end of the entries.
    end: u64,
    key: PackKey,
}

impl PackReader {
    /// Opens the pack at `path`, whose ids are of `kind`. Costs a constant number of system calls
    /// and a read of the first bytes; the checksum is not verified.
    ///
    /// # Errors
    /// Fails with `ErrorKind::Io` if the file cannot be opened, and with `ErrorKind::Corrupt`,
    /// `ErrorKind::Truncated` or `ErrorKind::Unsupported` if it is not a valid pack.
    pub fn open(
        path: impl AsRef<Path>,
        kind: Kind,
        access: ViewAccess,
    ) -> Result<PackReader, Error> {
        let path = path.as_ref();
        let view = FileView::open(path, access).context(ErrorKind::Io, "cannot open", path)?;
        PackReader::from_view(view, path, kind)
    }

    /// Does the same as [`open`](Self::open) for an open file with the path `path`.
    ///
    /// # Errors
    /// Fails as [`open`](Self::open) does.
    pub fn from_view(view: FileView, path: &Path, kind: Kind) -> Result<PackReader, Error> {
        let count = check_header(&view, kind).map_err(|error| error.at_path(path))?;
        Ok(PackReader {
            path: path.to_owned(),
            end: view.len() - kind.len_in_bytes() as u64,
            view,
            kind,
            count,
            key: PackKey::unique(),
        })
    }

    /// Checks that `index` belongs to this pack: the number of objects and the checksum must be
    /// equal.
    ///
    /// # Errors
    /// Fails with `ErrorKind::Corrupt` if the index does not belong to this pack, and with
    /// `ErrorKind::Io` if a file cannot be read.
    pub fn check_index(&self, index: &PackIndex) -> Result<(), Error> {
        if index.len() != self.count {
            let message = format!(
                "packfile claims to have {} objects while index indicates {} objects",
                self.count,
                index.len()
            );
            return Err(self.corrupt(message, 8));
        }
        if index.pack_checksum()? != self.checksum()? {
            return Err(self.corrupt("packfile does not match index", self.end));
        }
        Ok(())
    }

    /// Returns the path of the pack.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Returns the view of the file.
    pub fn view(&self) -> &FileView {
        &self.view
    }

    /// Returns the hash function of object ids.
    pub fn kind(&self) -> Kind {
        self.kind
    }

    /// Returns the number of entries in the header.
    pub fn len(&self) -> u32 {
        self.count
    }

    /// Returns whether the pack has no entries.
    pub fn is_empty(&self) -> bool {
        self.count == 0
    }

    /// Returns the key that identifies this pack in a [`BaseCache`].
    pub fn key(&self) -> PackKey {
        self.key
    }

    /// Returns the start of the trailer, and the end of the last entry.
    pub fn end(&self) -> PackOffset {
        PackOffset(self.end)
    }

    /// Returns the checksum at the end of the pack, which [`open`](Self::open) does not verify.
    ///
    /// # Errors
    /// Fails with `ErrorKind::Io` if the file cannot be read.
    pub fn checksum(&self) -> Result<ObjectId, Error> {
        let mut buffer = Vec::new();
        let bytes = self
            .view
            .read(self.end, self.kind.len_in_bytes(), &mut buffer);
        match bytes {
            Ok(bytes) => {
                let checksum = ObjectId::from_bytes_or_panic(bytes);
                self.intact(self.end)?;
                Ok(checksum)
            }
            Err(error) => Err(self.unreadable(error, self.end)),
        }
    }

    /// Parses the header of the entry at `offset`.
    ///
    /// # Errors
    /// Fails with `ErrorKind::Corrupt` or `ErrorKind::Truncated` if no entry can start at the
    /// offset, and with `ErrorKind::Io` if the file cannot be read.
    pub fn entry(&self, offset: PackOffset) -> Result<Entry, Error> {
        let entry = self.entry_in(&mut ReadWindow::default(), offset);
        self.intact(offset.0)?;
        entry
    }

    /// Returns the offset of the base of the entry at `offset` with the given `header`; `None` if
    /// the header does not name a base by its distance.
    ///
    /// # Errors
    /// Fails with `ErrorKind::BaseOffset` if the base is outside the pack.
    pub fn base_offset(
        &self,
        offset: PackOffset,
        header: &EntryHeader,
    ) -> Result<Option<PackOffset>, Error> {
        let EntryHeader::OffsetDelta { distance } = header else {
            return Ok(None);
        };
        match offset.0.checked_sub(*distance) {
            Some(base) if base >= HEADER_LEN => Ok(Some(PackOffset(base))),
            _ => Err(self
                .corrupt("delta base offset is out of bound", offset.0)
                .map_kind(|_| ErrorKind::BaseOffset)),
        }
    }

    fn entry_in(&self, window: &mut ReadWindow, offset: PackOffset) -> Result<Entry, Error> {
        if offset.0 < HEADER_LEN || offset.0 >= self.end {
            return Err(self.corrupt("object offset is outside of the pack", offset.0));
        }
        let bytes = self.bytes_at(window, offset.0, MAX_HEADER_LEN)?;
        Entry::parse(bytes, self.kind)
            .map_err(|error| error.at_path(&self.path).at_offset(offset.0))
    }

    /// Returns all mapped bytes from `offset` on, or reads at least `wanted` bytes into `window`.
    /// Returns fewer bytes only at the end of the entries.
    #[inline]
    fn bytes_at<'a>(
        &'a self,
        window: &'a mut ReadWindow,
        offset: u64,
        wanted: usize,
    ) -> Result<&'a [u8], Error> {
        if let Some(bytes) = self.view.bytes() {
            // The length of a mapped file fits into a `usize`.
            return Ok(bytes.get(offset as usize..self.end as usize).unwrap_or(&[]));
        }
        let rest = usize::try_from(self.end.saturating_sub(offset)).unwrap_or(usize::MAX);
        let wanted = wanted.min(rest);
        let within = offset.checked_sub(window.start).map(|at| at as usize);
        if let Some(at) = within.filter(|at| at.saturating_add(wanted) <= window.bytes.len()) {
            return Ok(&window.bytes[at..]);
        }
        match self.view.in_place(offset, wanted) {
            Ok(Some(bytes)) => return Ok(&bytes[..bytes.len().min(rest)]),
            Ok(None) => {}
            Err(error) => return Err(self.unreadable(error, offset)),
        }
        let len = wanted.max(WINDOW_LEN).min(rest);
        window.start = offset;
        if let Err(error) = self.view.read(offset, len, &mut window.bytes) {
            window.bytes.clear();
            return Err(self.unreadable(error, offset));
        }
        Ok(&window.bytes)
    }

    /// Checks that the bytes read for the entry at `at` are the contents of the file.
    #[inline]
    fn intact(&self, at: u64) -> Result<(), Error> {
        match self.view.check() {
            Ok(()) => Ok(()),
            Err(error) => Err(self.unreadable(error, at)),
        }
    }

    #[cold]
    fn unreadable(&self, error: std::io::Error, at: u64) -> Error {
        unreadable(error).at_path(&self.path).at_offset(at)
    }

    #[cold]
    fn corrupt(&self, message: impl Into<String>, at: u64) -> Error {
        Error::new(ErrorKind::Corrupt, message)
            .at_path(&self.path)
            .at_offset(at)
    }
}

/// The bytes that were read last from a pack that is not mapped. Belongs to one pack.
#[derive(Debug, Default)]
struct ReadWindow {
    start: u64,
    bytes: Vec<u8>,
}

fn check_header(view: &FileView, kind: Kind) -> Result<u32, Error> {
    let mut buffer = Vec::new();
    let least = HEADER_LEN + kind.len_in_bytes() as u64;
    if view.len() < least {
        let error = Error::new(ErrorKind::Truncated, "file is too short to be a packfile");
        return Err(error.at_offset(view.len()));
    }
    let header = view
        .read(0, HEADER_LEN as usize, &mut buffer)
        .map_err(|error| unreadable(error).at_offset(0))?;
    if header[..4] != SIGNATURE {
        let error = Error::new(ErrorKind::Corrupt, "file is not a packfile");
        return Err(error.at_offset(0));
    }
    match be_u32(&header[4..]) {
        2 | 3 => {
            let count = be_u32(&header[8..]);
            intact(view)?;
            Ok(count)
        }
        other => {
            let message = format!("packfile is of version {other}, which is not supported");
            Err(Error::new(ErrorKind::Unsupported, message).at_offset(4))
        }
    }
}
