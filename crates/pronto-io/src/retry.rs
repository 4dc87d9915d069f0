//! System calls that a signal may interrupt.

use rustix::io::Errno;

/// Repeats a system call until it is not interrupted by a signal (`EINTR`).
pub(crate) fn retry<T>(mut call: impl FnMut() -> Result<T, Errno>) -> Result<T, Errno> {
    loop {
        match call() {
            Err(Errno::INTR) => {}
            done => return done,
        }
    }
}
