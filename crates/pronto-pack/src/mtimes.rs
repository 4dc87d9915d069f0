//! The modification times of the unreachable objects of a cruft pack (`.mtimes`), in the order of
//! its index. Format: `gitformat-pack(5)`, cruft packs.

use std::io::{self, Write};
use std::path::{Path, PathBuf};

use pronto_hash::{Kind, ObjectId};
use pronto_io::error::IoContext as _;
use pronto_io::view::{FileView, ViewAccess};

use crate::error::{Error, ErrorKind};
use crate::fanout::{be_u32, intact, unreadable};
use crate::rev::format_id;
use crate::trailing::Trailing;

/// The first four bytes of the file.
pub const SIGNATURE: [u8; 4] = *b"MTME";
/// The only version of the format.
pub const VERSION: u32 = 1;
/// The length of the header, before the times.
const HEADER_LEN: usize = 12;

/// Writes the file to `out`, which need not be buffered, and returns its checksum. `seconds`
/// contains a time in seconds since 1970 for each row of the index.
///
/// # Errors
/// Fails if writing fails.
pub fn write(
    out: &mut dyn Write,
    kind: Kind,
    seconds: &[u32],
    pack_checksum: &ObjectId,
) -> io::Result<ObjectId> {
    let mut out = Trailing::new(out, kind);
    out.put(&SIGNATURE)?;
    out.put(&VERSION.to_be_bytes())?;
    out.put(&format_id(kind).to_be_bytes())?;
    for time in seconds {
        out.put(&time.to_be_bytes())?;
    }
    out.put(pack_checksum.as_slice())?;
    out.finish()
}

/// An open `.mtimes` file. `Send + Sync`.
#[derive(Debug)]
pub struct Mtimes {
    path: PathBuf,
    view: FileView,
    count: u32,
}

impl Mtimes {
    /// Opens the file at `path` of a pack with `count` objects whose ids are of `kind`.
    ///
    /// # Errors
    /// Fails with `ErrorKind::Io` if the file cannot be opened (with the source `NotFound` if it
    /// does not exist), and with `ErrorKind::Corrupt`, `ErrorKind::Truncated` or
    /// `ErrorKind::Unsupported` if it is not a valid file.
    pub fn open(
        path: impl AsRef<Path>,
        kind: Kind,
        count: u32,
        access: ViewAccess,
    ) -> Result<Mtimes, Error> {
        let path = path.as_ref();
        let view = FileView::open(path, access).context(ErrorKind::Io, "cannot open", path)?;
        Mtimes::from_view(view, path, kind, count)
    }

    /// Does the same as [`open`](Self::open) for an open file with the path `path`.
    ///
    /// # Errors
    /// Fails as [`open`](Self::open) does.
    pub fn from_view(view: FileView, path: &Path, kind: Kind, count: u32) -> Result<Mtimes, Error> {
        check(&view, kind, count).map_err(|error| error.at_path(path))?;
        Ok(Mtimes {
            path: path.to_owned(),
            view,
            count,
        })
    }

    /// Returns the modification time of the object in this row of the index, in seconds since 1970.
    ///
    /// # Errors
    /// Fails with `ErrorKind::Corrupt` if the row does not exist, and with `ErrorKind::Io` if the
    /// file cannot be read.
    pub fn at(&self, row: u32) -> Result<u32, Error> {
        let at = HEADER_LEN as u64 + u64::from(row) * 4;
        if row >= self.count {
            let error = Error::new(ErrorKind::Corrupt, "row is out of range in the mtimes file");
            return Err(error.at_path(&self.path).at_offset(at));
        }
        let mut buffer = Vec::new();
        let bytes = self.view.read(at, 4, &mut buffer);
        let bytes = bytes.map_err(|error| unreadable(error).at_path(&self.path).at_offset(at))?;
        let time = be_u32(bytes);
        intact(&self.view).map_err(|error| error.at_path(&self.path))?;
        Ok(time)
    }
}

fn check(view: &FileView, kind: Kind, count: u32) -> Result<(), Error> {
    let trailers = 2 * kind.len_in_bytes() as u64;
    if view.len() < HEADER_LEN as u64 + trailers {
        let message = "mtimes file is too small";
        return Err(Error::new(ErrorKind::Truncated, message));
    }
    if view.len() != HEADER_LEN as u64 + u64::from(count) * 4 + trailers {
        return Err(Error::new(ErrorKind::Corrupt, "mtimes file is corrupt"));
    }
    let mut buffer = Vec::new();
    let header = view.read(0, HEADER_LEN, &mut buffer).map_err(unreadable)?;
    if header[..4] != SIGNATURE {
        let message = "mtimes file has unknown signature";
        return Err(Error::new(ErrorKind::Corrupt, message).at_offset(0));
    }
    let (version, id) = (be_u32(&header[4..]), be_u32(&header[8..]));
    if version != VERSION {
        let message = format!("mtimes file has unsupported version {version}");
        return Err(Error::new(ErrorKind::Unsupported, message).at_offset(4));
    }
    if id != format_id(kind) {
        let message = format!("mtimes file has unsupported hash id {id}");
        return Err(Error::new(ErrorKind::Unsupported, message).at_offset(8));
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn open(bytes: &[u8], count: u32) -> Result<Mtimes, Error> {
        let view = FileView::from_bytes(bytes.to_vec());
        Mtimes::from_view(view, Path::new("t"), Kind::Sha1, count)
    }

    #[test]
    fn what_is_written_is_read_and_what_is_broken_is_not() {
        let mut bytes = Vec::new();
        let checksum = Kind::Sha1.null();
        write(&mut bytes, Kind::Sha1, &[7, 0, u32::MAX], &checksum).expect("memory");
        let times = open(&bytes, 3).expect("it is whole");
        let read: Vec<u32> = (0..3).filter_map(|row| times.at(row).ok()).collect();
        assert_eq!(read, [7, 0, u32::MAX]);
        assert!(times.at(3).is_err());
        for len in 0..bytes.len() {
            assert!(open(&bytes[..len], 3).is_err(), "{len}");
        }
        assert!(open(&bytes, 2).is_err());
        for at in [0, 7, 11] {
            let mut broken = bytes.clone();
            broken[at] ^= 4;
            assert!(open(&broken, 3).is_err(), "{at}");
        }
    }
}
