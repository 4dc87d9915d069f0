//! Asking a monitor over its socket.

use crate::credentials::is_trusted;
use crate::protocol::{Answer, LONGEST_ANSWER_BYTES, read_message, write_message};
use bstr::BStr;
use rustix::io::Errno;
use rustix::net::{self, AddressFamily, SocketAddrUnix, SocketFlags, SocketType, sockopt::Timeout};
use rustix::process::Uid;
use std::io;
use std::os::fd::AsRawFd;
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::time::Duration;

/// The name of the socket in the directory of the repository.
const SOCKET: &str = "fsmonitor--daemon.ipc";
/// The longest path that the address of a socket holds on every system.
const LONGEST_ADDRESS_BYTES: usize = 100;
/// A monitor that takes longer is not waited for.
const PATIENCE: Duration = Duration::from_secs(10);
#[cfg(any(target_os = "linux", target_os = "android", target_os = "freebsd"))]
pub(crate) const CLOSED: SocketFlags = SocketFlags::CLOEXEC;
#[cfg(not(any(target_os = "linux", target_os = "android", target_os = "freebsd")))]
pub(crate) const CLOSED: SocketFlags = SocketFlags::empty();

/// Where a monitor is to be asked.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Address {
    /// In which directory its socket is.
    pub directory: PathBuf,
    /// The name of the socket there.
    pub name: String,
}

impl Address {
    /// In the directory of a repository, where it is unless that is on the file system of another
    /// machine.
    pub fn in_repository(git_dir: &Path) -> Address {
        Address {
            directory: git_dir.to_owned(),
            name: SOCKET.to_owned(),
        }
    }

    /// In a directory for the sockets of several worktrees, of which this one's path has the SHA-1
    /// `digest`, in hexadecimal digits.
    pub fn among_others(directory: &Path, digest: &str) -> Address {
        Address {
            directory: directory.to_owned(),
            name: format!(".git-fsmonitor-{digest}"),
        }
    }
}

/// Connects to the monitor at `address`: five or six system calls. Waits no longer than some
/// seconds for one that does not take clients.
///
/// # Errors
/// `NotFound` or `ConnectionRefused` if there is none; `WouldBlock` if it takes nobody;
/// `PermissionDenied` if it belongs neither to this user, nor to root, nor to the owner of the
/// directory: in a directory that others can write, anyone could pretend that nothing changed.
pub fn connect(address: &Address) -> io::Result<UnixStream> {
    connect_within(address, PATIENCE)
}

pub(crate) fn connect_within(address: &Address, patience: Duration) -> io::Result<UnixStream> {
    let Address { directory, name } = address;
    let path = directory.join(name);
    // Kept open until the connection is there.
    let opened;
    let address = if path.as_os_str().len() <= LONGEST_ADDRESS_BYTES {
        SocketAddrUnix::new(&path)?
    } else {
        opened = std::fs::File::open(directory)?;
        SocketAddrUnix::new(format!("/proc/self/fd/{}/{name}", opened.as_raw_fd()))?
    };
    let stream = net::socket_with(AddressFamily::UNIX, SocketType::STREAM, CLOSED, None)?;
    // Before the call: with a full queue it would wait for ever.
    for timeout in [Timeout::Send, Timeout::Recv] {
        net::sockopt::set_socket_timeout(&stream, timeout, Some(patience))?;
    }
    loop {
        match net::connect(&stream, &address) {
            Ok(()) => {
                let stream = UnixStream::from(stream);
                return match is_trusted(&stream, || owner(directory)) {
                    true => Ok(stream),
                    false => Err(io::ErrorKind::PermissionDenied.into()),
                };
            }
            Err(Errno::INTR) => {}
            Err(error) => return Err(error.into()),
        }
    }
}

fn owner(directory: &Path) -> Option<Uid> {
    let metadata = rustix::fs::stat(directory).ok()?;
    Some(Uid::from_raw(metadata.st_uid))
}

/// Sends `request` and returns the answer as it is.
///
/// # Errors
/// Those of [`connect`], of writing and of reading.
pub fn send(address: &Address, request: &[u8]) -> io::Result<Vec<u8>> {
    let stream = connect(address)?;
    write_message(&stream, request)?;
    read_message(&stream, LONGEST_ANSWER_BYTES)
}

/// Asks what changed since `token`: one connection, one message each way, and memory for the
/// paths in the answer. May be called from several threads at once.
///
/// # Errors
/// Those of [`send`]; `InvalidData` if the answer is none.
pub fn query(address: &Address, token: &BStr) -> io::Result<Answer> {
    let message = send(address, token)?;
    Answer::parse(&message)
        .ok_or_else(|| io::Error::new(io::ErrorKind::InvalidData, "the monitor gave no token"))
}

/// Whether a monitor listens. Connects to it, as [`connect`] does.
pub fn is_listening(address: &Address) -> bool {
    connect(address).is_ok()
}
