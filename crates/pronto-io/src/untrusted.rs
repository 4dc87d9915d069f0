//! Reads files that an attacker may have placed in a worktree or a repository.
//!
//! A path under the control of an attacker can be a FIFO whose `open` blocks, a device that never
//! ends, a symbolic link that leads outside, or a file that exhausts memory. All functions here
//! open without blocking, accept only regular files, and read at most the given number of bytes.

use std::fs::File;
use std::io;
use std::path::Path;

use rustix::fs::{Mode, OFlags};

use crate::dir::{file_metadata, read_at_most};
use crate::retry::retry;

/// The limit for text that users write (patterns, attributes, settings). Git has the same limit for
/// the first two.
pub const LARGEST_TEXT_BYTES: u64 = 100 << 20;

/// The limit for a small file of a repository, such as a `gitdir` pointer or a list of alternates.
pub const LARGEST_POINTER_BYTES: u64 = 1 << 20;

/// The limit for a file that grows with the history of a repository.
pub const LARGEST_TABLE_BYTES: u64 = 2 << 30;

/// The size of further reads from a file that has grown since it was opened.
const GROWN_BYTES: u64 = 64 << 10;

/// The treatment of a symbolic link in the last component of a path.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SymlinkPolicy {
    /// The link is followed.
    Follow,
    /// The link is an error (`ELOOP`).
    Refuse,
}

/// Opens the regular file at `path`. Never blocks.
///
/// # Errors
/// Fails with the errors of `open(2)`, such as `ELOOP` for a link with [`SymlinkPolicy::Refuse`], and with
/// `InvalidInput` if `path` is not a regular file.
pub fn open(path: &Path, links: SymlinkPolicy) -> io::Result<File> {
    let file = open_any(path, links)?;
    require_regular(&file)?;
    Ok(file)
}

/// Opens the file of any type at `path`, without waiting for the other end of a FIFO.
pub(crate) fn open_any(path: &Path, links: SymlinkPolicy) -> io::Result<File> {
    let mut flags = OFlags::RDONLY | OFlags::CLOEXEC | OFlags::NONBLOCK | OFlags::NOCTTY;
    if links == SymlinkPolicy::Refuse {
        flags |= OFlags::NOFOLLOW;
    }
    Ok(retry(|| rustix::fs::open(path, flags, Mode::empty()))?.into())
}

/// Reads the regular file at `path`, of at most `largest_bytes`. Costs four system calls.
///
/// # Errors
/// Fails with the errors of [`open`] and [`read_open`].
pub fn read(path: &Path, links: SymlinkPolicy, largest_bytes: u64) -> io::Result<Vec<u8>> {
    read_open(&open_any(path, links)?, largest_bytes)
}

/// Reads the regular file at `path` and follows links. For files of a repository that may be large.
///
/// # Errors
/// Fails with the errors of [`read`].
pub fn content(path: impl AsRef<Path>) -> io::Result<Vec<u8>> {
    read(path.as_ref(), SymlinkPolicy::Follow, LARGEST_TABLE_BYTES)
}

/// Reads a file that was opened in nonblocking mode, from its read position to its end.
///
/// # Errors
/// Fails with `InvalidInput` if the file is not a regular file, with `FileTooLarge` if it is longer
/// than `largest_bytes`, with `OutOfMemory` if the buffer cannot be allocated, and with the errors
/// of `read(2)`.
pub fn read_open(file: &File, largest_bytes: u64) -> io::Result<Vec<u8>> {
    let size = require_regular(file)?;
    let full = || io::Error::from(io::ErrorKind::FileTooLarge);
    if size > largest_bytes {
        return Err(full());
    }
    let mut content = Vec::new();
    // One more byte than the size detects the end of the file.
    let mut wanted = size.saturating_add(1);
    while read_at_most(file, wanted, &mut content)? as u64 == wanted {
        // The file has grown since it was opened.
        if content.len() as u64 > largest_bytes {
            return Err(full());
        }
        wanted = GROWN_BYTES;
    }
    Ok(content)
}

/// Returns the size of a regular file.
fn require_regular(file: &File) -> io::Result<u64> {
    let metadata = file_metadata(file)?;
    if metadata.is_file() {
        return Ok(metadata.size_bytes);
    }
    // The error that reading a directory returns.
    if metadata.is_directory() {
        return Err(io::ErrorKind::IsADirectory.into());
    }
    Err(io::Error::new(
        io::ErrorKind::InvalidInput,
        "not a regular file",
    ))
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::os::unix::fs::symlink;

    use super::*;

    struct Place(std::path::PathBuf);

    impl Place {
        fn new(name: &str) -> Place {
            let name = format!("pronto-io-untrusted-{name}-{}", std::process::id());
            let path = std::env::temp_dir().join(name);
            fs::create_dir(&path).expect("the name is free");
            Place(path)
        }
    }

    impl Drop for Place {
        fn drop(&mut self) {
            let _ = fs::remove_dir_all(&self.0);
        }
    }

    fn kind(path: &Path, links: SymlinkPolicy, largest: u64) -> Option<io::ErrorKind> {
        read(path, links, largest).err().map(|error| error.kind())
    }

    #[test]
    fn only_regular_files_are_read() {
        let place = Place::new("kinds");
        let fifo = place.0.join("fifo");
        let mode = Mode::from_bits_truncate(0o600);
        rustix::fs::mknodat(rustix::fs::CWD, &fifo, rustix::fs::FileType::Fifo, mode, 0)
            .expect("a pipe can be made");
        for links in [SymlinkPolicy::Follow, SymlinkPolicy::Refuse] {
            assert_eq!(kind(&fifo, links, 10), Some(io::ErrorKind::InvalidInput));
            let zero = Path::new("/dev/zero");
            assert_eq!(kind(zero, links, 10), Some(io::ErrorKind::InvalidInput));
            assert_eq!(kind(&place.0, links, 10), Some(io::ErrorKind::IsADirectory));
        }
        let missing = place.0.join("missing");
        assert_eq!(
            kind(&missing, SymlinkPolicy::Follow, 10),
            Some(io::ErrorKind::NotFound)
        );
    }

    #[test]
    fn links_are_followed_only_where_that_is_meant() {
        let place = Place::new("links");
        let (file, link) = (place.0.join("file"), place.0.join("link"));
        fs::write(&file, "0123456789").expect("it can be written");
        symlink(&file, &link).expect("it can be made");
        assert_eq!(
            read(&link, SymlinkPolicy::Follow, 10).expect("it leads there"),
            b"0123456789"
        );
        let error = read(&link, SymlinkPolicy::Refuse, 10).expect_err("it is a link");
        let errno = rustix::io::Errno::from_io_error(&error);
        assert_eq!(errno, Some(rustix::io::Errno::LOOP));
    }

    #[test]
    fn no_more_is_read_than_allowed() {
        let place = Place::new("sizes");
        let file = place.0.join("file");
        fs::write(&file, "0123456789").expect("it can be written");
        assert_eq!(
            read(&file, SymlinkPolicy::Refuse, 10).expect("it fits"),
            b"0123456789"
        );
        assert_eq!(
            kind(&file, SymlinkPolicy::Refuse, 9),
            Some(io::ErrorKind::FileTooLarge)
        );
        // The size is rejected before memory is allocated.
        let huge = File::create(&file).expect("it can be made");
        huge.set_len(1 << 40).expect("it takes no room");
        assert_eq!(
            kind(&file, SymlinkPolicy::Refuse, 1 << 30),
            Some(io::ErrorKind::FileTooLarge)
        );
    }
}
