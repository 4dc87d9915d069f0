//! The user of the peer process of a socket, as the kernel reports it.

use rustix::process::Uid;
use std::os::unix::net::UnixStream;

/// Returns the user id that the peer process had when it connected or listened, or `None` if the
/// system does not report the user id.
#[cfg(any(target_os = "linux", target_os = "android"))]
fn user(stream: &UnixStream) -> Option<Uid> {
    let credentials = rustix::net::sockopt::socket_peercred(stream);
    credentials.ok().map(|credentials| credentials.uid)
}

/// On other systems, only the mode of the socket restricts access.
#[cfg(not(any(target_os = "linux", target_os = "android")))]
fn user(_: &UnixStream) -> Option<Uid> {
    Some(rustix::process::geteuid())
}

/// Returns whether the peer process belongs to the user of this process, to root, or to `owner`.
pub(crate) fn is_trusted(stream: &UnixStream, owner: impl FnOnce() -> Option<Uid>) -> bool {
    user(stream).is_some_and(|user| {
        user == rustix::process::geteuid() || user.is_root() || owner() == Some(user)
    })
}
