//! Reverse indexes (`.rev`): the rows of a pack index in pack order. Format: `gitformat-pack(5)`.

use std::io::{self, Write};
use std::path::{Path, PathBuf};

use pronto_hash::{Kind, ObjectId};
use pronto_io::error::IoContext as _;
use pronto_io::view::{FileView, ViewAccess};

use crate::error::{Error, ErrorKind};
use crate::fanout::{be_u32, intact, unreadable};
use crate::position::IndexPosition;
use crate::trailing::Trailing;

/// The first four bytes of the file.
pub const SIGNATURE: [u8; 4] = *b"RIDX";
/// The only version of the format.
pub const VERSION: u32 = 1;

/// Writes a reverse index to `out`, which need not be buffered, and returns its checksum. `rows[i]`
/// is the row in the pack index of the object at position `i` of the pack. Costs a few system calls
/// for each MiB.
///
/// # Errors
/// Fails if writing fails.
pub fn write(
    out: &mut dyn Write,
    kind: Kind,
    rows: &[u32],
    pack_checksum: &ObjectId,
) -> io::Result<ObjectId> {
    let mut out = Trailing::new(out, kind);
    out.put(&SIGNATURE)?;
    out.put(&VERSION.to_be_bytes())?;
    out.put(&format_id(kind).to_be_bytes())?;
    for row in rows {
        out.put(&row.to_be_bytes())?;
    }
    out.put(pack_checksum.as_slice())?;
    out.finish()
}

/// The length of the header, before the rows.
const HEADER_LEN: usize = 12;

/// An open reverse index. `Send + Sync`; no method takes a lock if the file is mapped.
#[derive(Debug)]
pub struct ReverseIndex {
    path: PathBuf,
    view: FileView,
    kind: Kind,
    count: u32,
}

impl ReverseIndex {
    /// Opens the reverse index at `path` of a pack or multi-pack-index with `count` objects whose
    /// ids are of `kind`.
    ///
    /// # Errors
    /// Fails with `ErrorKind::Io` if the file cannot be opened (with the source `NotFound` if it
    /// does not exist), and with `ErrorKind::Corrupt`, `ErrorKind::Truncated` or
    /// `ErrorKind::Unsupported` if it is not a valid reverse index.
    pub fn open(
        path: impl AsRef<Path>,
        kind: Kind,
        count: u32,
        access: ViewAccess,
    ) -> Result<ReverseIndex, Error> {
        let path = path.as_ref();
        let view = FileView::open(path, access).context(ErrorKind::Io, "cannot open", path)?;
        ReverseIndex::from_view(view, path, kind, count)
    }

    /// Does the same as [`open`](Self::open) for an open file with the path `path`.
    ///
    /// # Errors
    /// Fails as [`open`](Self::open) does.
    pub fn from_view(
        view: FileView,
        path: &Path,
        kind: Kind,
        count: u32,
    ) -> Result<ReverseIndex, Error> {
        check(&view, kind, count).map_err(|error| error.at_path(path))?;
        Ok(ReverseIndex {
            path: path.to_owned(),
            view,
            kind,
            count,
        })
    }

    /// Returns the number of objects.
    pub fn len(&self) -> u32 {
        self.count
    }

    /// Returns whether the reverse index has no objects.
    pub fn is_empty(&self) -> bool {
        self.count == 0
    }

    /// Returns the checksum of the pack or multi-pack-index to which the reverse index belongs.
    ///
    /// # Errors
    /// Fails with `ErrorKind::Io` if the file cannot be read.
    pub fn pack_checksum(&self) -> Result<ObjectId, Error> {
        let at = (HEADER_LEN as u64) + u64::from(self.count) * 4;
        let mut buffer = Vec::new();
        let bytes = self.view.read(at, self.kind.len_in_bytes(), &mut buffer);
        let bytes = bytes.map_err(|error| unreadable(error).at_path(&self.path).at_offset(at))?;
        Ok(ObjectId::from_bytes_or_panic(bytes))
    }

    /// Returns the row in the index of the object at position `place` in pack order.
    ///
    /// # Errors
    /// Fails with `ErrorKind::Corrupt` if the position does not exist or the stored row is invalid,
    /// and with `ErrorKind::Io` if the file cannot be read.
    pub fn row_at(&self, place: u32) -> Result<IndexPosition, Error> {
        let corrupt = |message: &str| {
            Error::new(ErrorKind::Corrupt, message)
                .at_path(&self.path)
                .at_offset(HEADER_LEN as u64 + u64::from(place) * 4)
        };
        if place >= self.count {
            return Err(corrupt("position is out of range in the reverse index"));
        }
        let at = HEADER_LEN as u64 + u64::from(place) * 4;
        let mut buffer = Vec::new();
        let bytes = self.view.read(at, 4, &mut buffer);
        let bytes = bytes.map_err(|error| unreadable(error).at_path(&self.path).at_offset(at))?;
        let row = be_u32(bytes);
        intact(&self.view).map_err(|error| error.at_path(&self.path))?;
        match row < self.count {
            true => Ok(IndexPosition(row)),
            false => Err(corrupt("corrupt reverse index: an entry is out of range")),
        }
    }
}

fn check(view: &FileView, kind: Kind, count: u32) -> Result<(), Error> {
    let trailers = 2 * kind.len_in_bytes() as u64;
    if view.len() < HEADER_LEN as u64 + trailers {
        let message = "reverse-index file is too small";
        return Err(Error::new(ErrorKind::Truncated, message));
    }
    if view.len() != HEADER_LEN as u64 + u64::from(count) * 4 + trailers {
        return Err(Error::new(
            ErrorKind::Corrupt,
            "reverse-index file is corrupt",
        ));
    }
    let mut buffer = Vec::new();
    let header = view.read(0, HEADER_LEN, &mut buffer).map_err(unreadable)?;
    if header[..4] != SIGNATURE {
        let message = "reverse-index file has unknown signature";
        return Err(Error::new(ErrorKind::Corrupt, message).at_offset(0));
    }
    let (version, id) = (be_u32(&header[4..]), be_u32(&header[8..]));
    if version != VERSION {
        let message = format!("reverse-index file has unsupported version {version}");
        return Err(Error::new(ErrorKind::Unsupported, message).at_offset(4));
    }
    if id != format_id(kind) {
        let message = format!("reverse-index file has unsupported hash id {id}");
        return Err(Error::new(ErrorKind::Unsupported, message).at_offset(8));
    }
    Ok(())
}

/// Returns the number of a hash function in the file formats.
pub(crate) fn format_id(kind: Kind) -> u32 {
    if kind == Kind::Sha256 { 2 } else { 1 }
}
