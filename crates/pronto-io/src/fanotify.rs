//! Events of whole file systems from `fanotify(7)`, and directories by their handles
//! (`open_by_handle_at(2)`). Both need privileges: `CAP_SYS_ADMIN` and `CAP_DAC_READ_SEARCH`.

use crate::dir::Directory;
use rustix::io::Errno;
use std::io;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, FromRawFd, OwnedFd};

/// The most bytes of a handle that any file system gives.
const LONGEST_HANDLE_BYTES: usize = 128;
/// In front of them: how many they are, and of which kind; four bytes each.
const HEAD_BYTES: usize = 8;

/// Everything that can be different afterwards.
const WANTED: u64 = libc::FAN_CREATE
    | libc::FAN_DELETE
    | libc::FAN_MODIFY
    | libc::FAN_CLOSE_WRITE
    | libc::FAN_ATTRIB
    | libc::FAN_MOVED_FROM
    | libc::FAN_MOVED_TO
    | libc::FAN_ONDIR;

/// In the mask of an event: the name was made.
pub const CREATED: u64 = libc::FAN_CREATE;
/// The name was removed by a rename of its file.
pub const MOVED_FROM: u64 = libc::FAN_MOVED_FROM;
/// The name is the new name of a renamed file.
pub const MOVED_TO: u64 = libc::FAN_MOVED_TO;
/// The event concerns a directory.
pub const IS_DIRECTORY: u64 = libc::FAN_ONDIR;
/// Events were lost.
pub const LOST: u64 = libc::FAN_Q_OVERFLOW;

/// A queue of events, each with the handle of a directory and a name in it. `Send` and `Sync`.
#[derive(Debug)]
pub struct Group {
    fd: OwnedFd,
}

impl Group {
    /// A queue into which nothing comes yet.
    ///
    /// # Errors
    /// Those of `fanotify_init(2)`: `EPERM` without the privilege, `EINVAL` and `ENOSYS` where the
    /// system is older than Linux 5.9.
    pub fn new() -> io::Result<Group> {
        let flags = libc::FAN_CLASS_NOTIF
            | libc::FAN_REPORT_DFID_NAME
            | libc::FAN_NONBLOCK
            | libc::FAN_CLOEXEC;
        let access = (libc::O_RDONLY | libc::O_CLOEXEC) as libc::c_uint;
        // SAFETY: the call takes two numbers and accesses no memory.
        let fd = unsafe { libc::fanotify_init(flags, access) };
        own(fd).map(|fd| Group { fd })
    }

    /// Requests events from the whole file system of `directory`, by any process.
    ///
    /// # Errors
    /// Those of `fanotify_mark(2)`: `ENODEV`, `EXDEV` and `EOPNOTSUPP` if the file system has no
    /// handles, or several for the same directory.
    pub fn add_file_system(&self, directory: &Directory) -> io::Result<()> {
        let flags = libc::FAN_MARK_ADD | libc::FAN_MARK_ONLYDIR | libc::FAN_MARK_FILESYSTEM;
        self.mark(flags, WANTED, directory)
    }

    /// Requests events for names in `directory` only.
    ///
    /// # Errors
    /// Those of [`add_file_system`](Self::add_file_system).
    pub fn add_directory(&self, directory: &Directory) -> io::Result<()> {
        let flags = libc::FAN_MARK_ADD | libc::FAN_MARK_ONLYDIR;
        self.mark(flags, libc::FAN_CREATE | libc::FAN_DELETE, directory)
    }

    /// Removes all marks. Events in the queue stay.
    ///
    /// # Errors
    /// Those of `fanotify_mark(2)`.
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

    /// Reads as many whole events as there are and as fit into `buffer`; none if there are none.
    ///
    /// # Errors
    /// Those of `read(2)`: `EINVAL` if not even one fits.
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

impl AsFd for Group {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.fd.as_fd()
    }
}

/// A `file_handle`, aligned as the system wants it.
#[repr(C, align(4))]
struct Room([u8; HEAD_BYTES + LONGEST_HANDLE_BYTES]);

/// The handle of `directory`, as events name it: a `file_handle` with its head.
///
/// # Errors
/// Those of `name_to_handle_at(2)`: `EOPNOTSUPP` where the file system has none.
pub fn handle_of(directory: &Directory) -> io::Result<Vec<u8>> {
    let mut room = Room([0; HEAD_BYTES + LONGEST_HANDLE_BYTES]);
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

/// Opens the directory of `handle` (a `file_handle` with its head) to reach what is in it, on the
/// mount where `mount` is.
///
/// # Errors
/// `ESTALE` if it is not there any more, `EINVAL` if that is no handle, and those of
/// `open_by_handle_at(2)`.
pub fn open_handle(mount: &Directory, handle: &[u8]) -> io::Result<Directory> {
    let mut room = Room([0; HEAD_BYTES + LONGEST_HANDLE_BYTES]);
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
    // SAFETY: the kernel has just returned it, and it has no other owner.
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
            // Without the privilege.
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
