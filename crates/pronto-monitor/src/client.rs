//! The client of a file system monitor, which connects to the monitor's socket.

use crate::credentials::is_trusted;
use crate::protocol::{LONGEST_ANSWER_BYTES, MonitorResponse, read_message, write_message};
use bstr::BStr;
use rustix::io::Errno;
use rustix::net::{self, AddressFamily, SocketAddrUnix, SocketFlags, SocketType, sockopt::Timeout};
use rustix::process::Uid;
use std::io;
use std::os::fd::AsRawFd;
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::time::Duration;

/// The name of the socket in the directory of the repository. Git uses the same name.
const SOCKET: &str = "fsmonitor--daemon.ipc";
/// The maximum length of a socket address that every system supports.
const LONGEST_ADDRESS_BYTES: usize = 100;
/// The timeout for a connection to the monitor.
const PATIENCE: Duration = Duration::from_secs(10);
#[cfg(any(target_os = "linux", target_os = "android", target_os = "freebsd"))]
pub(crate) const CLOSED: SocketFlags = SocketFlags::CLOEXEC;
#[cfg(not(any(target_os = "linux", target_os = "android", target_os = "freebsd")))]
pub(crate) const CLOSED: SocketFlags = SocketFlags::empty();

/// The address of the socket of a monitor.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MonitorAddress {
    /// The directory that contains the socket.
    pub directory: PathBuf,
    /// The name of the socket in that directory.
    pub name: String,
}

impl MonitorAddress {
    /// Returns the address in the directory of a repository. Not for repositories on a network file
    /// system.
    pub fn in_repository(git_dir: &Path) -> MonitorAddress {
        MonitorAddress {
            directory: git_dir.to_owned(),
            name: SOCKET.to_owned(),
        }
    }

    /// Returns the address in a directory for the sockets of several worktrees
    /// (`fsmonitor.socketDir`). `digest` is the SHA-1 of the path of this worktree, in hexadecimal.
    pub fn among_others(directory: &Path, digest: &str) -> MonitorAddress {
        MonitorAddress {
            directory: directory.to_owned(),
            name: format!(".git-fsmonitor-{digest}"),
        }
    }
}

/// Connects to the monitor at `address`, with five or six system calls. Waits at most some seconds
/// if the monitor does not accept the client.
///
/// # Errors
/// - Fails with `NotFound` or `ConnectionRefused` if no monitor is running.
/// - Fails with `WouldBlock` if the monitor does not accept the client until the timeout.
/// - Fails with `PermissionDenied` if the monitor belongs neither to this user, nor to root, nor to
///   the owner of the directory. In a directory that other users can write to, any user could start
///   a monitor that hides changes.
pub fn connect(address: &MonitorAddress) -> io::Result<UnixStream> {
    connect_within(address, PATIENCE)
}

pub(crate) fn connect_within(
    address: &MonitorAddress,
    patience: Duration,
) -> io::Result<UnixStream> {
    let MonitorAddress { directory, name } = address;
    let path = directory.join(name);
    // Must stay open until the socket is connected.
    let opened;
    let address = if path.as_os_str().len() <= LONGEST_ADDRESS_BYTES {
        SocketAddrUnix::new(&path)?
    } else {
        opened = std::fs::File::open(directory)?;
        SocketAddrUnix::new(format!("/proc/self/fd/{}/{name}", opened.as_raw_fd()))?
    };
    let stream = net::socket_with(AddressFamily::UNIX, SocketType::STREAM, CLOSED, None)?;
    // The timeouts are set first, because `connect` would wait without a limit for a full queue.
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

/// Sends `request` and returns the unparsed answer.
///
/// # Errors
/// Fails with the errors of [`connect`], of writing and of reading.
pub fn send(address: &MonitorAddress, request: &[u8]) -> io::Result<Vec<u8>> {
    let stream = connect(address)?;
    write_message(&stream, request)?;
    read_message(&stream, LONGEST_ANSWER_BYTES)
}

/// Queries the changes since `token`. Uses one connection with one message in each direction, and
/// memory for the paths in the answer. May be called from several threads at once.
///
/// # Errors
/// Fails with the errors of [`send`], and with `InvalidData` if the answer is malformed.
pub fn query(address: &MonitorAddress, token: &BStr) -> io::Result<MonitorResponse> {
    let message = send(address, token)?;
    MonitorResponse::parse(&message).ok_or_else(|| {
        io::Error::new(
            io::ErrorKind::InvalidData,
            "the fsmonitor daemon returned no token",
        )
    })
}

/// Returns whether a monitor is listening at `address`. Connects like [`connect`].
pub fn is_listening(address: &MonitorAddress) -> bool {
    connect(address).is_ok()
}
