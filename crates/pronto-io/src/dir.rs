//! Directory handles. Every call names an entry of an open directory and follows no symbolic link.
//! Therefore no call reads or writes outside of the directory, even if other processes change the
//! tree at the same time.
//!
//! Names are bytes: one path component, except where a method takes a path. All methods may be
//! called from several threads at once.

use std::ffi::CStr;
use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::path::Path;

use rustix::fs::{AtFlags, FileType, Mode, OFlags, RawDir, ResolveFlags};
use rustix::io::Errno;

use crate::file_system::FileSystem;
use crate::retry::retry;

mod copy_tree;
mod file;
mod listing;
mod new_file;
#[cfg(target_os = "linux")]
mod overwrite;
#[cfg(not(target_os = "linux"))]
#[path = "dir/overwrite_elsewhere.rs"]
mod overwrite;
mod remove;

pub use copy_tree::{BlockSharing, CopyFailure, SkipReason, Skipped, TreeCopy};
pub use file::{FileTime, Metadata, file_metadata, metadata, read_at, read_at_most};
pub use listing::DirectoryListing;
pub use new_file::NewFile;
pub use overwrite::Overwriter;
pub use remove::remove_tree;

/// An open directory.
#[derive(Debug)]
pub struct Directory {
    fd: OwnedFd,
}

/// Flags for a handle with which the entries are listed.
const OPEN_DIRECTORY: OFlags = OFlags::RDONLY
    .union(OFlags::DIRECTORY)
    .union(OFlags::NOFOLLOW)
    .union(OFlags::CLOEXEC);

/// Flags for a handle with which the entries are accessed by name. Opening needs no read permission
/// and no request to a network file system.
#[cfg(target_os = "linux")]
const REACH_DIRECTORY: OFlags = OPEN_DIRECTORY.union(OFlags::PATH);
#[cfg(not(target_os = "linux"))]
const REACH_DIRECTORY: OFlags = OPEN_DIRECTORY;

impl Directory {
    /// Opens the directory at the trusted path `path`. Symbolic links in `path` are followed.
    ///
    /// # Errors
    /// Fails with the errors of `open(2)`.
    pub fn open(path: &Path) -> io::Result<Self> {
        let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
        let fd = retry(|| rustix::fs::open(path, flags, Mode::empty()))?;
        Ok(Directory { fd })
    }

    /// Opens the directory at `path` (components separated by `/`, relative; empty for this
    /// directory itself) to access its entries by name. No component may be a symbolic link. The
    /// directory need not be readable. Costs one system call if the kernel has `openat2`, else one
    /// for each component.
    ///
    /// # Errors
    /// Fails with `ENOTDIR` or `ELOOP` if a component is a link or not a directory, and with
    /// `ENOENT` if a component is missing.
    pub fn open_beneath(&self, path: &[u8]) -> io::Result<Self> {
        self.open_as(path, REACH_DIRECTORY)
    }

    /// Opens the directory at `path` like [`open_beneath`](Self::open_beneath), for
    /// [`read_once`](Self::read_once), too.
    ///
    /// # Errors
    /// Fails with the errors of [`open_beneath`](Self::open_beneath), and with `EACCES` if the
    /// directory is not readable.
    pub fn open_readable_beneath(&self, path: &[u8]) -> io::Result<Self> {
        self.open_as(path, OPEN_DIRECTORY)
    }

    fn open_as(&self, path: &[u8], flags: OFlags) -> io::Result<Self> {
        let path = if path.is_empty() { b"." } else { path };
        if !path.contains(&b'/') {
            let fd = retry(|| rustix::fs::openat(&self.fd, path, flags, Mode::empty()))?;
            return Ok(Directory { fd });
        }
        let resolve = ResolveFlags::BENEATH | ResolveFlags::NO_SYMLINKS;
        match retry(|| rustix::fs::openat2(&self.fd, path, flags, Mode::empty(), resolve)) {
            Ok(fd) => Ok(Directory { fd }),
            Err(Errno::NOSYS | Errno::PERM | Errno::INVAL) => self.open_stepwise(path, flags),
            Err(error) => Err(error.into()),
        }
    }

    fn open_stepwise(&self, path: &[u8], flags: OFlags) -> io::Result<Self> {
        let mut current: Option<OwnedFd> = None;
        for component in path.split(|byte| *byte == b'/') {
            if component.is_empty() || component == b".." {
                return Err(Errno::INVAL.into());
            }
            let from = current.as_ref().unwrap_or(&self.fd);
            let next = retry(|| rustix::fs::openat(from, component, flags, Mode::empty()))?;
            current = Some(next);
        }
        match current {
            Some(fd) => Ok(Directory { fd }),
            None => Err(Errno::INVAL.into()),
        }
    }

    /// Duplicates the handle, for another thread. Sends no request to the file system.
    ///
    /// # Errors
    /// Fails with `EMFILE` if the process has too many open descriptors.
    pub fn try_clone(&self) -> io::Result<Directory> {
        Ok(Directory {
            fd: self.fd.try_clone()?,
        })
    }

    /// Creates the directory `name` with the mode 0777, less the umask.
    ///
    /// # Errors
    /// Fails with the errors of `mkdirat(2)`, such as `EEXIST` if the name exists.
    pub fn make_directory(&self, name: &[u8]) -> io::Result<()> {
        Ok(retry(|| {
            rustix::fs::mkdirat(&self.fd, name, Mode::from_bits_truncate(0o777))
        })?)
    }

    /// Returns the metadata of `name`. A symbolic link is not followed.
    ///
    /// # Errors
    /// Fails with the errors of `fstatat(2)`.
    pub fn metadata(&self, name: &[u8]) -> io::Result<Metadata> {
        let flags = AtFlags::SYMLINK_NOFOLLOW;
        Ok(Metadata::new(&retry(|| {
            rustix::fs::statat(&self.fd, name, flags)
        })?))
    }

    /// Returns the metadata of `name` like [`metadata`](Self::metadata), without a copy of the
    /// name.
    ///
    /// # Errors
    /// Fails with the errors of `fstatat(2)`.
    #[inline]
    pub fn metadata_of(&self, name: &CStr) -> io::Result<Metadata> {
        let flags = AtFlags::SYMLINK_NOFOLLOW;
        Ok(Metadata::new(&retry(|| {
            rustix::fs::statat(&self.fd, name, flags)
        })?))
    }

    /// Returns the metadata of this directory.
    ///
    /// # Errors
    /// Fails with the errors of `fstat(2)`.
    pub fn own_metadata(&self) -> io::Result<Metadata> {
        Ok(Metadata::new(&retry(|| rustix::fs::fstat(&self.fd))?))
    }

    /// Removes the file or symbolic link `name`.
    ///
    /// # Errors
    /// Fails with the errors of `unlinkat(2)`.
    pub fn remove_file(&self, name: &[u8]) -> io::Result<()> {
        Ok(retry(|| {
            rustix::fs::unlinkat(&self.fd, name, AtFlags::empty())
        })?)
    }

    /// Removes the empty directory `name`.
    ///
    /// # Errors
    /// Fails with the errors of `unlinkat(2)`, such as `ENOTEMPTY` (or `EEXIST`) if the directory
    /// has entries.
    pub fn remove_directory(&self, name: &[u8]) -> io::Result<()> {
        Ok(retry(|| {
            rustix::fs::unlinkat(&self.fd, name, AtFlags::REMOVEDIR)
        })?)
    }

    /// Removes `name` and, if `name` is a directory, all of its contents, without following
    /// symbolic links. The depth is limited by memory, not by the stack.
    ///
    /// # Errors
    /// Stops at the first failure and returns its error. The remaining entries are not removed.
    pub fn remove_all(&self, name: &[u8]) -> io::Result<()> {
        match self.remove_file(name) {
            Err(error) if is_directory_error(&error) => {}
            done => return done,
        }
        // Each level has the open directory, its name in the parent level, and the entries that are
        // still to be removed.
        let mut levels = vec![RemovedDirectory::open(self, name)?];
        while let Some(level) = levels.last_mut() {
            if let Some(child) = level.rest.pop() {
                match level.directory.remove_file(&child) {
                    Ok(()) => {}
                    Err(error) if is_directory_error(&error) => {
                        let below = RemovedDirectory::open(&level.directory, &child)?;
                        levels.push(below);
                    }
                    Err(error) => return Err(error),
                }
                continue;
            }
            let Some(done) = levels.pop() else { break };
            let parent = levels.last().map_or(self, |level| &level.directory);
            parent.remove_directory(&done.name)?;
        }
        Ok(())
    }

    /// Renames `from` in this directory to `to` in `target`. An existing file `to` is replaced.
    ///
    /// # Errors
    /// Fails with the errors of `renameat(2)`.
    pub fn rename(&self, from: &[u8], target: &Directory, to: &[u8]) -> io::Result<()> {
        Ok(retry(|| {
            rustix::fs::renameat(&self.fd, from, &target.fd, to)
        })?)
    }

    /// Creates the symbolic link `name` that points to `target`.
    ///
    /// # Errors
    /// Fails with the errors of `symlinkat(2)`, such as `EEXIST` if the name exists.
    pub fn make_symlink(&self, target: &[u8], name: &[u8]) -> io::Result<()> {
        Ok(retry(|| rustix::fs::symlinkat(target, &self.fd, name))?)
    }

    /// Returns the target of the symbolic link `name`.
    ///
    /// # Errors
    /// Fails with the errors of `readlinkat(2)`, such as `EINVAL` if `name` is not a symbolic link.
    pub fn read_link(&self, name: &[u8]) -> io::Result<Vec<u8>> {
        let target = retry(|| rustix::fs::readlinkat(&self.fd, name, Vec::new()))?;
        Ok(target.into_bytes())
    }

    /// Creates the file `name` for writing. The name must not exist, not even as a symbolic link.
    /// `executable` requests the mode 0777 instead of 0666, less the umask.
    ///
    /// # Errors
    /// Fails with the errors of `openat(2)`, such as `EEXIST` if the name exists.
    pub fn create_file(&self, name: &[u8], executable: bool) -> io::Result<NewFile> {
        self.create_with(name, OFlags::WRONLY, executable)
    }

    /// Creates a file like [`create_file`](Self::create_file), for writing and reading.
    ///
    /// # Errors
    /// Fails with the errors of [`create_file`](Self::create_file).
    pub fn create_readable_file(&self, name: &[u8], executable: bool) -> io::Result<NewFile> {
        self.create_with(name, OFlags::RDWR, executable)
    }

    fn create_with(&self, name: &[u8], access: OFlags, executable: bool) -> io::Result<NewFile> {
        let flags = access | OFlags::CREATE | OFlags::EXCL | OFlags::NOFOLLOW;
        let mode = Mode::from_bits_truncate(if executable { 0o777 } else { 0o666 });
        let fd = retry(|| rustix::fs::openat(&self.fd, name, flags | OFlags::CLOEXEC, mode))?;
        Ok(NewFile { fd })
    }

    /// Checks that `path` names a directory, without opening the directory. A symbolic link as the
    /// last component is not followed; links before it are followed. Costs one system call.
    ///
    /// # Errors
    /// Fails with `ENOTDIR` if `path` names something else, and with the errors of `fstatat(2)`.
    pub fn expect_directory(&self, path: &[u8]) -> io::Result<()> {
        match self.metadata(path)?.is_directory() {
            true => Ok(()),
            false => Err(Errno::NOTDIR.into()),
        }
    }

    /// Returns the file system of the directory. Costs one system call, and another one for the
    /// first directory on each device.
    ///
    /// # Errors
    /// Fails with the errors of `fstat(2)`.
    pub fn file_system(&self) -> io::Result<FileSystem> {
        FileSystem::of(&self.fd)
    }

    /// Returns a path of this directory for calls that accept only paths. The path stays valid
    /// while the handle is open, even if the directory is renamed. Makes no system call. Valid only
    /// on Linux.
    pub fn open_path(&self) -> std::path::PathBuf {
        use std::os::fd::AsRawFd;
        format!("/proc/self/fd/{}", self.fd.as_raw_fd()).into()
    }

    /// Opens the file `name` for reading.
    ///
    /// # Errors
    /// Fails with the errors of `openat(2)`, such as `ELOOP` if `name` is a symbolic link.
    pub fn open_file(&self, name: &[u8]) -> io::Result<std::fs::File> {
        let flags = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::CLOEXEC | OFlags::NONBLOCK;
        Ok(retry(|| rustix::fs::openat(&self.fd, name, flags, Mode::empty()))?.into())
    }

    /// Opens the file at `path` (components separated by `/`, relative) for reading. No component
    /// may be a symbolic link. Costs one system call if the kernel has `openat2`.
    ///
    /// # Errors
    /// Fails with the errors of [`open_beneath`](Self::open_beneath) and
    /// [`open_file`](Self::open_file).
    pub fn open_file_beneath(&self, path: &[u8]) -> io::Result<std::fs::File> {
        let Some(slash) = path.iter().rposition(|byte| *byte == b'/') else {
            return self.open_file(path);
        };
        let flags = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::CLOEXEC | OFlags::NONBLOCK;
        let resolve = ResolveFlags::BENEATH | ResolveFlags::NO_SYMLINKS;
        match retry(|| rustix::fs::openat2(&self.fd, path, flags, Mode::empty(), resolve)) {
            Ok(fd) => Ok(fd.into()),
            Err(Errno::NOSYS | Errno::PERM | Errno::INVAL) => self
                .open_beneath(&path[..slash])?
                .open_file(&path[slash + 1..]),
            Err(error) => Err(error.into()),
        }
    }

    /// Returns the names in this directory, without `.` and `..`, in the order of the file system.
    /// Each name has the kind that the file system returned with the listing.
    ///
    /// # Errors
    /// Fails with the errors of `openat(2)` and `getdents64(2)`.
    pub fn entries(&self) -> io::Result<Vec<(Vec<u8>, EntryKind)>> {
        // A separate handle, because the read position belongs to the open file.
        let fd = retry(|| rustix::fs::openat(&self.fd, ".", OPEN_DIRECTORY, Mode::empty()))?;
        let mut space = Vec::with_capacity(32 * 1024);
        let mut found = Vec::new();
        let mut stream = RawDir::new(fd, space.spare_capacity_mut());
        while let Some(entry) = stream.next() {
            let entry = entry?;
            let name = entry.file_name().to_bytes();
            if name != b"." && name != b".." {
                found.push((name.to_vec(), EntryKind::new(entry.file_type())));
            }
        }
        Ok(found)
    }
}

impl From<OwnedFd> for Directory {
    fn from(fd: OwnedFd) -> Self {
        Directory { fd }
    }
}

impl AsFd for Directory {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.fd.as_fd()
    }
}

/// One level of a directory tree that is being removed.
struct RemovedDirectory {
    directory: Directory,
    name: Vec<u8>,
    rest: Vec<Vec<u8>>,
}

impl RemovedDirectory {
    fn open(parent: &Directory, name: &[u8]) -> io::Result<Self> {
        let directory = parent.open_beneath(name)?;
        let rest = directory.entries()?.into_iter().map(|(name, _)| name);
        let rest = rest.collect();
        Ok(RemovedDirectory {
            directory,
            name: name.to_vec(),
            rest,
        })
    }
}

/// Returns whether the error means that there is no file at a path without symbolic links: the name
/// does not exist, or a link or a file is found where a directory is expected.
pub fn is_missing(error: &io::Error) -> bool {
    matches!(
        Errno::from_io_error(error),
        Some(Errno::NOENT | Errno::NOTDIR | Errno::LOOP)
    )
}

/// Returns whether the error of an unlink means that the name is a directory: `EISDIR` on Linux,
/// `EPERM` in POSIX.
fn is_directory_error(error: &io::Error) -> bool {
    matches!(
        Errno::from_io_error(error),
        Some(Errno::ISDIR | Errno::PERM)
    )
}

/// The type of a directory entry, as returned by a listing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum EntryKind {
    /// A regular file.
    File,
    /// A directory.
    Directory,
    /// A symbolic link.
    Symlink,
    /// A device, a socket or a FIFO.
    Other,
    /// The file system returns no kind. Read the [`Metadata`] instead.
    Unknown,
}

impl EntryKind {
    fn new(kind: FileType) -> Self {
        match kind {
            FileType::RegularFile => EntryKind::File,
            FileType::Directory => EntryKind::Directory,
            FileType::Symlink => EntryKind::Symlink,
            FileType::Unknown => EntryKind::Unknown,
            _ => EntryKind::Other,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn scratch(name: &str) -> (crate::cleanup::Guard, std::path::PathBuf) {
        let path = std::env::temp_dir().join(format!("pronto-dir-{name}-{}", std::process::id()));
        std::fs::create_dir_all(&path).expect("a directory");
        (crate::cleanup::Guard::new(&path), path)
    }

    #[test]
    fn files_are_made_exclusively_and_links_are_not_followed() {
        let (_guard, path) = scratch("exclusive");
        let outside = path.join("outside");
        let inside = path.join("inside");
        std::fs::create_dir_all(&outside).expect("a directory");
        std::fs::create_dir_all(inside.join("deep/er")).expect("a directory");
        let root = Directory::open(&inside).expect("it is there");
        root.make_symlink(b"../outside", b"link").expect("a link");
        root.make_symlink(b"../outside/x", b"file").expect("a link");
        assert!(root.create_file(b"file", false).is_err());
        assert!(root.open_beneath(b"link").is_err());
        assert!(root.open_beneath(b"deep/../link").is_err());
        assert!(root.open_beneath(b"deep/er/../../../outside").is_err());
        assert!(root.open_beneath(b"../outside").is_err());
        assert!(root.open_stepwise(b"link/x", REACH_DIRECTORY).is_err());
        assert!(root.open_stepwise(b"../outside", REACH_DIRECTORY).is_err());
        let deep = root.open_beneath(b"deep/er").expect("it is there");
        let same = root
            .open_stepwise(b"deep/er", OPEN_DIRECTORY)
            .expect("it is there");
        assert_eq!(
            deep.own_metadata().expect("open").inode,
            same.own_metadata().expect("open").inode
        );
        let mut file = deep.create_file(b"f", true).expect("it is new");
        file.write_all(b"hello").expect("there is space");
        let metadata = file.finish().expect("it closes");
        assert_eq!(metadata.size_bytes, 5);
        assert!(metadata.is_executable() && metadata.is_file());
        assert!(!outside.join("x").exists());
    }

    #[test]
    fn removing_a_tree_leaves_what_its_links_point_to() {
        let (_guard, path) = scratch("remove");
        std::fs::create_dir_all(path.join("outside")).expect("a directory");
        std::fs::write(path.join("outside/kept"), b"x").expect("a file");
        std::fs::create_dir_all(path.join("tree/a/b/c")).expect("a directory");
        std::fs::write(path.join("tree/a/b/f"), b"x").expect("a file");
        let root = Directory::open(&path).expect("it is there");
        let inner = root.open_beneath(b"tree/a").expect("it is there");
        inner
            .make_symlink(b"../../outside", b"link")
            .expect("a link");
        root.remove_all(b"tree").expect("nothing is in the way");
        assert!(root.metadata(b"tree").is_err());
        assert!(path.join("outside/kept").exists());
        let names = root.entries().expect("it lists");
        assert_eq!(names, vec![(b"outside".to_vec(), EntryKind::Directory)]);
    }
}
