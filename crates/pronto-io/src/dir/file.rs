//! File metadata and file contents.

use std::fs::File;
use std::io;
use std::os::fd::AsFd;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

use rustix::buffer::spare_capacity;
use rustix::fs::{FileType, Stat};

use super::EntryKind;
use crate::retry::retry;

/// The metadata of a file.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Metadata {
    /// The device of the file system that contains the file.
    pub device: u64,
    /// The inode number of the file on that device.
    pub inode: u64,
    /// The kind and the permissions, as in `st_mode`.
    pub mode: u32,
    /// The user id of the owner.
    pub user: u32,
    /// The group id of the file.
    pub group: u32,
    /// The size of the file.
    pub size_bytes: u64,
    /// The time of the last change of the content (`st_mtime`).
    pub modified: FileTime,
    /// The time of the last change of the content or the metadata (`st_ctime`).
    pub changed: FileTime,
}

/// A timestamp of a file system.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct FileTime {
    /// Seconds since 1970-01-01 UTC.
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
            modified: FileTime {
                seconds: stat.st_mtime as i64,
                nanoseconds: stat.st_mtime_nsec as u32,
            },
            changed: FileTime {
                seconds: stat.st_ctime as i64,
                nanoseconds: stat.st_ctime_nsec as u32,
            },
        }
    }

    /// Whether the file is a regular file.
    pub fn is_file(&self) -> bool {
        self.kind() == EntryKind::File
    }

    /// Whether the file is a directory.
    pub fn is_directory(&self) -> bool {
        self.kind() == EntryKind::Directory
    }

    /// Whether the file is a symbolic link.
    pub fn is_symlink(&self) -> bool {
        self.kind() == EntryKind::Symlink
    }

    /// Whether the owner of the file has the execute permission.
    pub fn is_executable(&self) -> bool {
        self.mode & 0o100 != 0
    }

    /// Returns the type of the file.
    pub fn kind(&self) -> EntryKind {
        EntryKind::new(FileType::from_raw_mode(self.mode))
    }
}

/// Returns the metadata of the open file.
///
/// # Errors
/// Fails with the errors of `fstat(2)`.
pub fn file_metadata(file: &impl AsFd) -> io::Result<Metadata> {
    Ok(Metadata::new(&retry(|| rustix::fs::fstat(file))?))
}

/// Returns the metadata of the file at `path`. A symbolic link in the last component is not
/// followed. For trusted paths.
///
/// # Errors
/// Fails with the errors of `lstat(2)`.
pub fn metadata(path: &Path) -> io::Result<Metadata> {
    Ok(Metadata::new(&retry(|| {
        rustix::fs::lstat(path.as_os_str().as_bytes())
    })?))
}

/// Appends at most `size_bytes` from the read position of `file` to `out`, and returns the number
/// of appended bytes. Costs one system call, unless the file is shorter or the kernel returns fewer
/// bytes.
///
/// # Errors
/// Fails with the errors of `read(2)`, and with `OutOfMemory` if the buffer cannot be allocated.
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

/// Reads from `offset` of `file` into `piece`, and returns the number of bytes: zero at the end of
/// the file. Makes one system call, which may return fewer bytes than `piece` holds.
///
/// # Errors
/// Fails with the errors of `pread(2)`.
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
