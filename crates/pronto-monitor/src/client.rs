//! Asking a monitor over its socket.

use crate::protocol::{Answer, LONGEST_ANSWER_BYTES, read_message, write_message};
use bstr::BStr;
use rustix::io::Errno;
use rustix::net::{self, AddressFamily, SocketAddrUnix, SocketFlags, SocketType, sockopt::Timeout};
use std::io;
use std::os::fd::AsRawFd;
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::time::Duration;

/// The name of the socket in the directory of the repository.
pub const SOCKET: &str = "fsmonitor--daemon.ipc";
/// The longest path that the address of a socket holds on every system.
const LONGEST_ADDRESS_BYTES: usize = 100;
/// A monitor that takes longer is not waited for.
const PATIENCE: Duration = Duration::from_secs(10);
#[cfg(any(target_os = "linux", target_os = "android", target_os = "freebsd"))]
const CLOSED: SocketFlags = SocketFlags::CLOEXEC;
#[cfg(not(any(target_os = "linux", target_os = "android", target_os = "freebsd")))]
const CLOSED: SocketFlags = SocketFlags::empty();

/// Connects to the monitor of the repository at `git_dir`: four or five system calls. Waits no
/// longer than some seconds for one that does not take clients.
///
/// # Errors
/// `NotFound` or `ConnectionRefused` if there is none; `WouldBlock` if it takes nobody.
pub fn connect(git_dir: &Path) -> io::Result<UnixStream> {
    connect_within(git_dir, PATIENCE)
}

pub(crate) fn connect_within(git_dir: &Path, patience: Duration) -> io::Result<UnixStream> {
    let path = git_dir.join(SOCKET);
    // Kept open until the connection is there.
    let directory;
    let address = if path.as_os_str().len() <= LONGEST_ADDRESS_BYTES {
        SocketAddrUnix::new(&path)?
    } else {
        directory = std::fs::File::open(git_dir)?;
        SocketAddrUnix::new(format!("/proc/self/fd/{}/{SOCKET}", directory.as_raw_fd()))?
    };
    let stream = net::socket_with(AddressFamily::UNIX, SocketType::STREAM, CLOSED, None)?;
    // Before the call: with a full queue it would wait for ever.
    for timeout in [Timeout::Send, Timeout::Recv] {
        net::sockopt::set_socket_timeout(&stream, timeout, Some(patience))?;
    }
    loop {
        match net::connect(&stream, &address) {
            Ok(()) => return Ok(UnixStream::from(stream)),
            Err(Errno::INTR) => {}
            Err(error) => return Err(error.into()),
        }
    }
}

/// Sends `request` and returns the answer as it is.
///
/// # Errors
/// Those of [`connect`], of writing and of reading.
pub fn send(git_dir: &Path, request: &[u8]) -> io::Result<Vec<u8>> {
    let stream = connect(git_dir)?;
    write_message(&stream, request)?;
    read_message(&stream, LONGEST_ANSWER_BYTES)
}

/// Asks what changed since `token`: one connection, one message each way, and memory for the
/// paths in the answer. May be called from several threads at once.
///
/// # Errors
/// Those of [`send`]; `InvalidData` if the answer is none.
pub fn query(git_dir: &Path, token: &BStr) -> io::Result<Answer> {
    let message = send(git_dir, token)?;
    Answer::parse(&message)
        .ok_or_else(|| io::Error::new(io::ErrorKind::InvalidData, "the monitor gave no token"))
}

/// Whether a monitor listens. Connects to it, as [`connect`] does.
pub fn is_listening(git_dir: &Path) -> bool {
    connect(git_dir).is_ok()
}
