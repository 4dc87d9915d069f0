//! Events of whole file systems from `fanotify(7)`, and directories by file handle
//! (`open_by_handle_at(2)`). Both need privileges: `CAP_SYS_ADMIN` and `CAP_DAC_READ_SEARCH`.

use crate::dir::Directory;
use rustix::io::Errno;
use std::io;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, FromRawFd, OwnedFd};

/// The maximum size of a file handle on any file system (`MAX_HANDLE_SZ`).
const LONGEST_HANDLE_BYTES: usize = 128;
/// The size of the header of a `file_handle`: the size and the type of the handle, four bytes each.
const HEAD_BYTES: usize = 8;

/// All events that can change the result of a scan.
const WANTED: u64 = libc::FAN_CREATE
    | libc::FAN_DELETE
    | libc::FAN_MODIFY
    | libc::FAN_CLOSE_WRITE
    | libc::FAN_ATTRIB
    | libc::FAN_MOVED_FROM
    | libc::FAN_MOVED_TO
    | libc::FAN_ONDIR;

/// The bit in the mask of an event for a name that was created.
pub const CREATED: u64 = libc::FAN_CREATE;
/// The bit for the old name of a renamed file.
pub const MOVED_FROM: u64 = libc::FAN_MOVED_FROM;
/// The bit for the new name of a renamed file.
pub const MOVED_TO: u64 = libc::FAN_MOVED_TO;
/// The bit for an event that concerns a directory.
pub const IS_DIRECTORY: u64 = libc::FAN_ONDIR;
/// The bit for an overflow of the queue: events were lost.
pub const LOST: u64 = libc::FAN_Q_OVERFLOW;

/// A queue of events (a fanotify group). Each event has the handle of a directory and a name in it.
/// `Send + Sync`.
#[derive(Debug)]
pub struct FanotifyGroup {
    fd: OwnedFd,
}

impl FanotifyGroup {
    /// Creates a queue without marks, which receives no events yet.
    ///
    /// # Errors
    /// Fails with the errors of `fanotify_init(2)`: `EPERM` without the privilege, `EINVAL` or
    /// `ENOSYS` before Linux 5.9.
    pub fn new() -> io::Result<FanotifyGroup> {
        let flags = libc::FAN_CLASS_NOTIF
            | libc::FAN_REPORT_DFID_NAME
            | libc::FAN_NONBLOCK
            | libc::FAN_CLOEXEC;
        let access = (libc::O_RDONLY | libc::O_CLOEXEC) as libc::c_uint;
        // SAFETY: the call takes two numbers and accesses no memory.
        let fd = unsafe { libc::fanotify_init(flags, access) };
        own(fd).map(|fd| FanotifyGroup { fd })
    }

    /// Requests events from the whole file system of `directory`, by any process.
    ///
    /// # Errors
    /// Fails with the errors of `fanotify_mark(2)`: `ENODEV`, `EXDEV` and `EOPNOTSUPP` if the file
    /// system has no file handles, or several handles for the same directory.
    pub fn add_file_system(&self, directory: &Directory) -> io::Result<()> {
        let flags = libc::FAN_MARK_ADD | libc::FAN_MARK_ONLYDIR | libc::FAN_MARK_FILESYSTEM;
        self.mark(flags, WANTED, directory)
    }

    /// Requests events for names in `directory` only.
    ///
    /// # Errors
    /// Fails with the errors of [`add_file_system`](Self::add_file_system).
    pub fn add_directory(&self, directory: &Directory) -> io::Result<()> {
        let flags = libc::FAN_MARK_ADD | libc::FAN_MARK_ONLYDIR;
        self.mark(flags, libc::FAN_CREATE | libc::FAN_DELETE, directory)
    }

    /// Removes all marks. Events in the queue stay.
    ///
    /// # Errors
    /// Fails with the errors of `fanotify_mark(2)`.
    pub fn remove_all(&self, directory: &Directory) -> io::Result<()> {
        for kind in [libc::FAN_MARK_FILESYSTEM, 0] {
            self.mark(libc::FAN_MARK_FLUSH | kind, 0, directory)?;
        }
        Ok(())
    }

    fn mark(&self, flags: libc::c_uint, mask: u64, directory: &Directory) -> io::Result<()> {
        let descriptor = directory.as_fd().as_raw_fd();
        // SAFETY: both descriptors are open while they are borrowed, and the path is a string that
        // ends with a zero and lives as long as the program.
        let result = unsafe {
            libc::fanotify_mark(self.fd.as_raw_fd(), flags, mask, descriptor, c".".as_ptr())
        };
        match result {
            0 => Ok(()),
            _ => Err(io::Error::last_os_error()),
        }
    }

    /// Reads all available events that fit into `buffer` and returns their size in bytes: zero if
    /// there are no events.
    ///
    /// # Errors
    /// Fails with the errors of `read(2)`: `EINVAL` if the buffer is too small for the first event.
    pub fn read(&self, buffer: &mut [u8]) -> io::Result<usize> {
        loop {
            match rustix::io::read(&self.fd, &mut *buffer) {
                Ok(count) => return Ok(count),
                Err(Errno::AGAIN) => return Ok(0),
                Err(Errno::INTR) => {}
                Err(error) => return Err(error.into()),
            }
        }
    }
}

impl AsFd for FanotifyGroup {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.fd.as_fd()
    }
}

/// A buffer for a `file_handle`, with the alignment that the kernel requires.
#[repr(C, align(4))]
struct FileHandleBuffer([u8; HEAD_BYTES + LONGEST_HANDLE_BYTES]);

/// Returns the handle of `directory` in the form that events use: a `file_handle` with its header.
///
/// # Errors
/// Fails with the errors of `name_to_handle_at(2)`: `EOPNOTSUPP` if the file system has no file
/// handles.
pub fn handle_of(directory: &Directory) -> io::Result<Vec<u8>> {
    let mut room = FileHandleBuffer([0; HEAD_BYTES + LONGEST_HANDLE_BYTES]);
    room.0[..4].copy_from_slice(&(LONGEST_HANDLE_BYTES as u32).to_ne_bytes());
    let mut mount = 0;
    // SAFETY: the descriptor is open while it is borrowed, the path ends with a zero, and the
    // handle is aligned and says how much room it has, which is no more than there is.
    let result = unsafe {
        libc::name_to_handle_at(
            directory.as_fd().as_raw_fd(),
            c"".as_ptr(),
            room.0.as_mut_ptr().cast(),
            &raw mut mount,
            libc::AT_EMPTY_PATH,
        )
    };
    if result != 0 {
        return Err(io::Error::last_os_error());
    }
    let len = u32::from_ne_bytes([room.0[0], room.0[1], room.0[2], room.0[3]]) as usize;
    Ok(room.0[..HEAD_BYTES + len.min(LONGEST_HANDLE_BYTES)].to_vec())
}

/// Opens the directory of `handle` (a `file_handle` with its header) to access its entries by name.
/// `mount` is any directory on the same mount.
///
/// # Errors
/// Fails with `ESTALE` if the directory no longer exists, with `EINVAL` if `handle` is malformed,
/// and with the other errors of `open_by_handle_at(2)`.
pub fn open_handle(mount: &Directory, handle: &[u8]) -> io::Result<Directory> {
    let mut room = FileHandleBuffer([0; HEAD_BYTES + LONGEST_HANDLE_BYTES]);
    let said = handle.first_chunk().map(|len| u32::from_ne_bytes(*len));
    let is = handle.len().checked_sub(HEAD_BYTES);
    if said.is_none() || said.map(|len| len as usize) != is || handle.len() > room.0.len() {
        return Err(Errno::INVAL.into());
    }
    room.0[..handle.len()].copy_from_slice(handle);
    let flags = libc::O_PATH | libc::O_DIRECTORY | libc::O_CLOEXEC;
    // SAFETY: the descriptor is open while it is borrowed, and the handle is aligned and as long as
    // it says.
    let fd = unsafe {
        libc::open_by_handle_at(mount.as_fd().as_raw_fd(), room.0.as_mut_ptr().cast(), flags)
    };
    own(fd).map(Directory::from)
}

fn own(fd: libc::c_int) -> io::Result<OwnedFd> {
    if fd < 0 {
        return Err(io::Error::last_os_error());
    }
    // SAFETY: the kernel has just returned the descriptor, which has no other owner.
    Ok(unsafe { OwnedFd::from_raw_fd(fd) })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_handle_leads_to_its_directory() {
        let scratch = tempfile::tempdir().expect("a directory");
        let directory = Directory::open(scratch.path()).expect("it is there");
        let handle = handle_of(&directory).expect("the file system has handles");
        assert!(handle.len() > HEAD_BYTES);
        match open_handle(&directory, &handle) {
            Ok(same) => assert_eq!(
                same.own_metadata().expect("it is there").inode,
                directory.own_metadata().expect("it is there").inode
            ),
            // The test runs without the privilege.
            Err(error) => assert_eq!(error.kind(), io::ErrorKind::PermissionDenied, "{error}"),
        }
        for wrong in [&handle[..7], &handle[..handle.len() - 1], &[0xff; 200], &[]] {
            let errno = open_handle(&directory, wrong)
                .err()
                .and_then(|error| error.raw_os_error());
            assert_eq!(errno, Some(libc::EINVAL));
        }
    }
}
