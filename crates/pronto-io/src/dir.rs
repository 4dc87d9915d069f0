//! Directory handles. Every call names an entry of an open directory and follows no symbolic link.
//! So nothing is read or written outside of it, whatever other processes change meanwhile.
//!
//! Names are bytes: one component, except where a method takes a path. All methods may be called
//! from several threads at once.

use std::ffi::CStr;
use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::path::Path;

use rustix::fs::{AtFlags, FileType, Mode, OFlags, RawDir, ResolveFlags};
use rustix::io::Errno;

use crate::file_system::FileSystem;

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

pub use copy_tree::{CopyFailure, Sharing, SkipReason, Skipped, TreeCopy};
pub use file::{Metadata, Time, file_metadata, metadata, read_at, read_at_most};
pub use listing::Listing;
pub use new_file::NewFile;
pub use overwrite::Overwriter;
pub use remove::remove_tree;

/// An open directory.
#[derive(Debug)]
pub struct Directory {
    fd: OwnedFd,
}

/// To read the names in it.
const OPEN_DIRECTORY: OFlags = OFlags::RDONLY
    .union(OFlags::DIRECTORY)
    .union(OFlags::NOFOLLOW)
    .union(OFlags::CLOEXEC);

/// For access to its entries. This needs no read permission, and no message to a network file
/// system.
#[cfg(target_os = "linux")]
const REACH_DIRECTORY: OFlags = OPEN_DIRECTORY.union(OFlags::PATH);
#[cfg(not(target_os = "linux"))]
const REACH_DIRECTORY: OFlags = OPEN_DIRECTORY;

impl Directory {
    /// Opens the directory at `path`, which the caller trusts: links in it are followed.
    ///
    /// # Errors
    /// Those of `open(2)`.
    pub fn open(path: &Path) -> io::Result<Self> {
        let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
        let fd = retry(|| rustix::fs::open(path, flags, Mode::empty()))?;
        Ok(Directory { fd })
    }

    /// Opens the directory at `path` (components separated by `/`, relative, empty for this
    /// directory itself), none of whose components may be a symbolic link, to reach what is in it by
    /// name: it need not be readable. One system call where the kernel has `openat2`, else one per
    /// component.
    ///
    /// # Errors
    /// `ENOTDIR` or `ELOOP` when a component is a link or no directory, `ENOENT` when it is
    /// missing.
    pub fn open_beneath(&self, path: &[u8]) -> io::Result<Self> {
        self.open_as(path, REACH_DIRECTORY)
    }

    /// The same to [read](Self::read_once) the names in it, too.
    ///
    /// # Errors
    /// Those of [`open_beneath`](Self::open_beneath), and `EACCES` when it may not be read.
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

    /// The same open directory once more, for another thread. Asks no file system.
    ///
    /// # Errors
    /// When there are too many descriptors.
    pub fn try_clone(&self) -> io::Result<Directory> {
        Ok(Directory {
            fd: self.fd.try_clone()?,
        })
    }

    /// Makes the directory `name`, open to all that the umask allows.
    ///
    /// # Errors
    /// Those of `mkdirat(2)`: `EEXIST` when there is anything of that name already.
    pub fn make_directory(&self, name: &[u8]) -> io::Result<()> {
        Ok(retry(|| {
            rustix::fs::mkdirat(&self.fd, name, Mode::from_bits_truncate(0o777))
        })?)
    }

    /// Returns the metadata of `name` itself: a link is not followed.
    ///
    /// # Errors
    /// Those of `fstatat(2)`.
    pub fn metadata(&self, name: &[u8]) -> io::Result<Metadata> {
        let flags = AtFlags::SYMLINK_NOFOLLOW;
        Ok(Metadata::new(&retry(|| {
            rustix::fs::statat(&self.fd, name, flags)
        })?))
    }

    /// Like [`metadata`](Self::metadata), of a name that need not be copied for the call.
    ///
    /// # Errors
    /// Those of `fstatat(2)`.
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
    /// Those of `fstat(2)`.
    pub fn own_metadata(&self) -> io::Result<Metadata> {
        Ok(Metadata::new(&retry(|| rustix::fs::fstat(&self.fd))?))
    }

    /// Removes `name`, which is not a directory.
    ///
    /// # Errors
    /// Those of `unlinkat(2)`.
    pub fn remove_file(&self, name: &[u8]) -> io::Result<()> {
        Ok(retry(|| {
            rustix::fs::unlinkat(&self.fd, name, AtFlags::empty())
        })?)
    }

    /// Removes the empty directory `name`.
    ///
    /// # Errors
    /// Those of `unlinkat(2)`: `ENOTEMPTY` (or `EEXIST`) when there is something in it.
    pub fn remove_directory(&self, name: &[u8]) -> io::Result<()> {
        Ok(retry(|| {
            rustix::fs::unlinkat(&self.fd, name, AtFlags::REMOVEDIR)
        })?)
    }

    /// Removes `name` and, if it is a directory, all that is in it, without following a link.
    /// Depth is bounded by memory, not by the stack.
    ///
    /// # Errors
    /// The first failure, after which the rest is left alone.
    pub fn remove_all(&self, name: &[u8]) -> io::Result<()> {
        match self.remove_file(name) {
            Err(error) if is_directory_error(&error) => {}
            done => return done,
        }
        // Each level: the open directory, its name in the level above, and what is left in it.
        let mut levels = vec![Level::open(self, name)?];
        while let Some(level) = levels.last_mut() {
            if let Some(child) = level.rest.pop() {
                match level.directory.remove_file(&child) {
                    Ok(()) => {}
                    Err(error) if is_directory_error(&error) => {
                        let below = Level::open(&level.directory, &child)?;
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

    /// Renames `from` here to `to` in `target`, replacing a file of that name.
    ///
    /// # Errors
    /// Those of `renameat(2)`.
    pub fn rename(&self, from: &[u8], target: &Directory, to: &[u8]) -> io::Result<()> {
        Ok(retry(|| {
            rustix::fs::renameat(&self.fd, from, &target.fd, to)
        })?)
    }

    /// Makes the symbolic link `name` that points to `target`.
    ///
    /// # Errors
    /// Those of `symlinkat(2)`: `EEXIST` when there is anything of that name already.
    pub fn make_symlink(&self, target: &[u8], name: &[u8]) -> io::Result<()> {
        Ok(retry(|| rustix::fs::symlinkat(target, &self.fd, name))?)
    }

    /// Returns the target of the symbolic link `name`.
    ///
    /// # Errors
    /// Those of `readlinkat(2)`: `EINVAL` when it is no link.
    pub fn read_link(&self, name: &[u8]) -> io::Result<Vec<u8>> {
        let target = retry(|| rustix::fs::readlinkat(&self.fd, name, Vec::new()))?;
        Ok(target.into_bytes())
    }

    /// Creates the file `name`, which must not exist in any form, for writing. `executable`
    /// requests the mode 0777 instead of 0666, less the umask.
    ///
    /// # Errors
    /// Those of `openat(2)`: `EEXIST` if the name exists.
    pub fn create_file(&self, name: &[u8], executable: bool) -> io::Result<NewFile> {
        self.create_with(name, OFlags::WRONLY, executable)
    }

    /// Like [`create_file`](Self::create_file), for one that is to be read back, too.
    ///
    /// # Errors
    /// As there.
    pub fn create_readable_file(&self, name: &[u8], executable: bool) -> io::Result<NewFile> {
        self.create_with(name, OFlags::RDWR, executable)
    }

    fn create_with(&self, name: &[u8], access: OFlags, executable: bool) -> io::Result<NewFile> {
        let flags = access | OFlags::CREATE | OFlags::EXCL | OFlags::NOFOLLOW;
        let mode = Mode::from_bits_truncate(if executable { 0o777 } else { 0o666 });
        let fd = retry(|| rustix::fs::openat(&self.fd, name, flags | OFlags::CLOEXEC, mode))?;
        Ok(NewFile { fd })
    }

    /// That the path `path` leads to a directory, without opening it: one system call. A link at its end
    /// is not followed, those before it are.
    ///
    /// # Errors
    /// `ENOTDIR` if it is something else, and those of `fstatat(2)`.
    pub fn expect_directory(&self, path: &[u8]) -> io::Result<()> {
        match self.metadata(path)?.is_directory() {
            true => Ok(()),
            false => Err(Errno::NOTDIR.into()),
        }
    }

    /// The file system it is on. One system call, and another one the first time that a file system is
    /// met.
    ///
    /// # Errors
    /// Those of `fstat(2)`.
    pub fn file_system(&self) -> io::Result<FileSystem> {
        FileSystem::of(&self.fd)
    }

    /// Returns a path that leads to this directory as long as it is open, wherever it is moved: for
    /// calls that only accept paths. No system call. The path is valid only on Linux.
    pub fn open_path(&self) -> std::path::PathBuf {
        use std::os::fd::AsRawFd;
        format!("/proc/self/fd/{}", self.fd.as_raw_fd()).into()
    }

    /// Opens the file `name` for reading.
    ///
    /// # Errors
    /// Those of `openat(2)`: `ELOOP` when it is a symbolic link.
    pub fn open_file(&self, name: &[u8]) -> io::Result<std::fs::File> {
        let flags = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::CLOEXEC | OFlags::NONBLOCK;
        Ok(retry(|| rustix::fs::openat(&self.fd, name, flags, Mode::empty()))?.into())
    }

    /// Opens the file at `path` (components separated by `/`, relative) for reading, none of whose
    /// components may be a symbolic link. One system call where the kernel has `openat2`.
    ///
    /// # Errors
    /// As [`open_beneath`](Self::open_beneath) and [`open_file`](Self::open_file).
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

    /// The names in this directory, without `.` and `..`, in the order the file system has them,
    /// with the kind of each as far as the file system says it without being asked again.
    ///
    /// # Errors
    /// Those of `openat(2)` and `getdents64(2)`.
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

/// One level of a directory that is being removed.
struct Level {
    directory: Directory,
    name: Vec<u8>,
    rest: Vec<Vec<u8>>,
}

impl Level {
    fn open(parent: &Directory, name: &[u8]) -> io::Result<Self> {
        let directory = parent.open_beneath(name)?;
        let rest = directory.entries()?.into_iter().map(|(name, _)| name);
        let rest = rest.collect();
        Ok(Level {
            directory,
            name: name.to_vec(),
            rest,
        })
    }
}

/// Whether an error says that there is nothing at a path that may not lead through a link: nothing
/// of that name, or a link or a file where a directory should be.
pub fn is_missing(error: &io::Error) -> bool {
    matches!(
        Errno::from_io_error(error),
        Some(Errno::NOENT | Errno::NOTDIR | Errno::LOOP)
    )
}

/// Linux says `EISDIR` of unlinking a directory, POSIX `EPERM`.
fn is_directory_error(error: &io::Error) -> bool {
    matches!(
        Errno::from_io_error(error),
        Some(Errno::ISDIR | Errno::PERM)
    )
}

/// The type of a directory entry, if the file system returns it in the listing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum EntryKind {
    /// A regular file.
    File,
    /// A directory.
    Directory,
    /// A symbolic link.
    Symlink,
    /// A device, a socket, a pipe.
    Other,
    /// The file system does not say: ask for its [`Metadata`].
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

/// Calls again what a signal interrupted.
pub(crate) fn retry<T>(mut call: impl FnMut() -> Result<T, Errno>) -> Result<T, Errno> {
    loop {
        match call() {
            Err(Errno::INTR) => {}
            done => return done,
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
