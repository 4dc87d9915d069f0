//! Asking a monitor over its socket.

use crate::protocol::{Answer, LONGEST_ANSWER_BYTES, read_message, write_message};
use bstr::BStr;
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

/// Connects to the monitor of the repository at `git_dir`.
///
/// # Errors
/// `NotFound` or `ConnectionRefused` if there is none.
pub fn connect(git_dir: &Path) -> io::Result<UnixStream> {
    let path = git_dir.join(SOCKET);
    let stream = if path.as_os_str().len() <= LONGEST_ADDRESS_BYTES {
        UnixStream::connect(path)?
    } else {
        let directory = std::fs::File::open(git_dir)?;
        let short = format!("/proc/self/fd/{}/{SOCKET}", directory.as_raw_fd());
        UnixStream::connect(short)?
    };
    stream.set_read_timeout(Some(PATIENCE))?;
    stream.set_write_timeout(Some(PATIENCE))?;
    Ok(stream)
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

/// Asks what changed since `token`.
///
/// # Errors
/// Those of [`send`]; `InvalidData` if the answer is none.
pub fn query(git_dir: &Path, token: &BStr) -> io::Result<Answer> {
    let message = send(git_dir, token)?;
    Answer::parse(&message)
        .ok_or_else(|| io::Error::new(io::ErrorKind::InvalidData, "the monitor gave no token"))
}

/// Whether a monitor listens.
pub fn is_listening(git_dir: &Path) -> bool {
    connect(git_dir).is_ok()
}
