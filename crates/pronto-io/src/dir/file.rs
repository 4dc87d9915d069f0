//! File types, and file contents.

use std::fs::File;
use std::io;
use std::os::fd::AsFd;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

use rustix::buffer::spare_capacity;
use rustix::fs::{FileType, Stat};

use super::{EntryKind, retry};

/// The metadata of a file.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Metadata {
    /// The device the file is on.
    pub device: u64,
    /// Its number on that device.
    pub inode: u64,
    /// Kind and permissions, as in `st_mode`.
    pub mode: u32,
    /// The user who owns it.
    pub user: u32,
    /// The group that owns it.
    pub group: u32,
    /// Its size.
    pub size_bytes: u64,
    /// When its content last changed.
    pub modified: Time,
    /// When it last changed in any respect.
    pub changed: Time,
}

/// A moment as file systems record it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct Time {
    /// Seconds since 1970.
    pub seconds: i64,
    /// Nanoseconds within the second.
    pub nanoseconds: u32,
}

impl Metadata {
    #[allow(
        clippy::unnecessary_cast,
        reason = "the widths of these fields differ between platforms"
    )]
    pub(super) fn new(stat: &Stat) -> Self {
        Metadata {
            device: stat.st_dev as u64,
            inode: stat.st_ino as u64,
            mode: stat.st_mode as u32,
            user: stat.st_uid,
            group: stat.st_gid,
            size_bytes: stat.st_size as u64,
            modified: Time {
                seconds: stat.st_mtime as i64,
                nanoseconds: stat.st_mtime_nsec as u32,
            },
            changed: Time {
                seconds: stat.st_ctime as i64,
                nanoseconds: stat.st_ctime_nsec as u32,
            },
        }
    }

    /// Whether it is a regular file.
    pub fn is_file(&self) -> bool {
        self.kind() == EntryKind::File
    }

    /// Whether it is a directory.
    pub fn is_directory(&self) -> bool {
        self.kind() == EntryKind::Directory
    }

    /// Whether it is a symbolic link.
    pub fn is_symlink(&self) -> bool {
        self.kind() == EntryKind::Symlink
    }

    /// Whether its owner may execute it.
    pub fn is_executable(&self) -> bool {
        self.mode & 0o100 != 0
    }

    /// Returns the type.
    pub fn kind(&self) -> EntryKind {
        EntryKind::new(FileType::from_raw_mode(self.mode))
    }
}

/// Returns the metadata of the open file.
///
/// # Errors
/// Those of `fstat(2)`.
pub fn file_metadata(file: &impl AsFd) -> io::Result<Metadata> {
    Ok(Metadata::new(&retry(|| rustix::fs::fstat(file))?))
}

/// Returns the metadata of the file at `path`, without following a link in its last component. For
/// trusted paths.
///
/// # Errors
/// Those of `lstat(2)`.
pub fn metadata(path: &Path) -> io::Result<Metadata> {
    Ok(Metadata::new(&retry(|| {
        rustix::fs::lstat(path.as_os_str().as_bytes())
    })?))
}

/// Appends at most `size_bytes` of `file`, from where it stands, to `out`, and says how many those
/// are: with one system call, unless the file is shorter or the kernel gives less at a time.
///
/// # Errors
/// Those of `read(2)`; `OutOfMemory` when there is no room.
pub fn read_at_most(file: &File, size_bytes: u64, out: &mut Vec<u8>) -> io::Result<usize> {
    let full = || io::Error::from(io::ErrorKind::OutOfMemory);
    let size = usize::try_from(size_bytes).map_err(|_| full())?;
    out.try_reserve_exact(size).map_err(|_| full())?;
    let start = out.len();
    while out.len() - start < size {
        if retry(|| rustix::io::read(file, spare_capacity(&mut *out)))? == 0 {
            break;
        }
    }
    out.truncate(start + size);
    Ok(out.len() - start)
}

/// Reads what is at `offset` of `file`, as much as there is and `piece` holds: one system call. Zero
/// at the end.
///
/// # Errors
/// Those of `pread(2)`.
pub fn read_at(file: &impl AsFd, piece: &mut [u8], offset: u64) -> io::Result<usize> {
    Ok(retry(|| rustix::io::pread(file, &mut *piece, offset))?)
}

#[cfg(test)]
mod tests {
    use super::read_at_most;
    use std::fs::File;

    #[test]
    fn no_more_is_read_than_was_asked_for() {
        let name = format!("pronto-io-read-{}", std::process::id());
        let path = std::env::temp_dir().join(name);
        std::fs::write(&path, b"0123456789").expect("it can be written");
        for (size, expected) in [
            (0, &b""[..]),
            (4, b"0123"),
            (10, b"0123456789"),
            (99, b"0123456789"),
        ] {
            let file = File::open(&path).expect("it is there");
            let mut out = b"before ".to_vec();
            let len = read_at_most(&file, size, &mut out).expect("it can be read");
            assert_eq!((len, &out[7..]), (expected.len(), expected));
        }
        let file = File::open(&path).expect("it is there");
        assert!(read_at_most(&file, u64::MAX, &mut Vec::new()).is_err());
        std::fs::remove_file(&path).expect("it is there");
    }
}
