//! Packs (`.pack`, versions 2 and 3) read in place. Format: `gitformat-pack(5)`.
//!
//! A [`Pack`] hands out entries; a [`Decoder`] turns an entry into an object by following its
//! chain of deltas, without recursion, keeping bases in a shared [`BaseCache`].

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
use pronto_io::view::{Access, View};

pub use cache::{BaseCache, CachedBase, PackKey};
pub use decode::{Bases, Decoder};
pub use kinds::kinds;
pub use links::shape::{RawEntry, Run, Starts};
pub use links::{Child, Found, PackFiles, Piece, Scan, Tree, TreeLinks};
pub use order::{PackOrder, PackPosition};
pub use spool::Spooled;
pub use stream::EntryReader;

use crate::entry::{Entry, Header, MAX_HEADER_LEN};
use crate::error::{Error, ErrorKind};
use crate::fanout::{be_u32, intact, unreadable};
use crate::idx::Index;

pub use crate::position::PackOffset;

const SIGNATURE: [u8; 4] = *b"PACK";
const HEADER_LEN: u64 = 12;

/// The smallest read of a pack that is not mapped.
const WINDOW_LEN: usize = 4096;

/// An open pack. `Send + Sync`; no method takes a lock while the file is mapped.
#[derive(Debug)]
pub struct Pack {
    path: PathBuf,
    view: View,
    kind: Kind,
    count: u32,
    /// The start of the trailer, and the end of the entries.
    end: u64,
    key: PackKey,
}

impl Pack {
    /// Opens the pack at `path`, whose ids are of `kind`. A handful of system calls and reads of
    /// its first bytes, whatever its size; the checksum is not verified.
    ///
    /// # Errors
    /// `Io` when it cannot be opened, `Corrupt`, `Truncated` or `Unsupported` when it is no pack.
    pub fn open(path: impl AsRef<Path>, kind: Kind, access: Access) -> Result<Pack, Error> {
        let path = path.as_ref();
        let view = View::open(path, access).context(ErrorKind::Io, "cannot open", path)?;
        Pack::from_view(view, path, kind)
    }

    /// Like [`open`](Self::open), of a file that is open already and was found at `path`.
    ///
    /// # Errors
    /// As [`open`](Self::open).
    pub fn from_view(view: View, path: &Path, kind: Kind) -> Result<Pack, Error> {
        let count = check_header(&view, kind).map_err(|error| error.at_path(path))?;
        Ok(Pack {
            path: path.to_owned(),
            end: view.len() - kind.len_in_bytes() as u64,
            view,
            kind,
            count,
            key: PackKey::unique(),
        })
    }

    /// Whether `index` is the index of this pack: as many objects, the same checksum.
    ///
    /// # Errors
    /// `Corrupt` when it is not, `Io` when a file cannot be read.
    pub fn check_index(&self, index: &Index) -> Result<(), Error> {
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

    /// The file as it was opened.
    pub fn view(&self) -> &View {
        &self.view
    }

    /// The hash of its ids.
    pub fn kind(&self) -> Kind {
        self.kind
    }

    /// Returns the number of entries in the header.
    pub fn len(&self) -> u32 {
        self.count
    }

    /// Whether it has no entry.
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

    /// The checksum at the end, which [opening](Self::open) does not verify.
    ///
    /// # Errors
    /// `Io` when the file cannot be read.
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

    /// The header of the entry at `offset`.
    ///
    /// # Errors
    /// `Corrupt` or `Truncated` when no entry can start there, `Io` when the file cannot be read.
    pub fn entry(&self, offset: PackOffset) -> Result<Entry, Error> {
        let entry = self.entry_in(&mut Window::default(), offset);
        self.intact(offset.0)?;
        entry
    }

    /// The offset of the base of `header`, which belongs to the entry at `offset`, if it names one
    /// by its distance.
    ///
    /// # Errors
    /// `BaseOffset` when it lies outside of the pack.
    pub fn base_offset(
        &self,
        offset: PackOffset,
        header: &Header,
    ) -> Result<Option<PackOffset>, Error> {
        let Header::OffsetDelta { distance } = header else {
            return Ok(None);
        };
        match offset.0.checked_sub(*distance) {
            Some(base) if base >= HEADER_LEN => Ok(Some(PackOffset(base))),
            _ => Err(self
                .corrupt("delta base offset is out of bound", offset.0)
                .map_kind(|_| ErrorKind::BaseOffset)),
        }
    }

    fn entry_in(&self, window: &mut Window, offset: PackOffset) -> Result<Entry, Error> {
        if offset.0 < HEADER_LEN || offset.0 >= self.end {
            return Err(self.corrupt("object offset is outside of the pack", offset.0));
        }
        let bytes = self.bytes_at(window, offset.0, MAX_HEADER_LEN)?;
        Entry::parse(bytes, self.kind)
            .map_err(|error| error.at_path(&self.path).at_offset(offset.0))
    }

    /// All that is mapped from `offset` on, or at least `wanted` bytes read into `window`; fewer
    /// only where the entries end.
    #[inline]
    fn bytes_at<'a>(
        &'a self,
        window: &'a mut Window,
        offset: u64,
        wanted: usize,
    ) -> Result<&'a [u8], Error> {
        if let Some(bytes) = self.view.bytes() {
            // A mapped file is no longer than a `usize` says.
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

    /// Whether what was read of the pack for the entry at `at` is what the file holds.
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

/// The last bytes that were read of a pack that is not mapped. Belongs to one pack.
#[derive(Debug, Default)]
struct Window {
    start: u64,
    bytes: Vec<u8>,
}

fn check_header(view: &View, kind: Kind) -> Result<u32, Error> {
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
