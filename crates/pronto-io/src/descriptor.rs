//! Inherited file descriptors.

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

/// Duplicates the inherited descriptor `number`. The new descriptor is close-on-exec. Closing it
/// does not close `number`.
///
/// # Errors
/// Fails with `EBADF` if `number` is not open, and with `EMFILE` if the process has too many open
/// descriptors.
pub fn duplicate(number: i32) -> io::Result<OwnedFd> {
    if number < 0 {
        return Err(io::ErrorKind::InvalidInput.into());
    }
    // SAFETY: the number is used for one call to `fcntl` alone, which fails with EBADF when it
    // is not open; nothing is read or closed through it.
    let borrowed = unsafe { BorrowedFd::borrow_raw(number) };
    borrowed.try_clone_to_owned()
}

/// Returns whether a read from `descriptor` returns at once: bytes are available, or the end is
/// reached. Always true for a regular file. Costs one system call.
pub fn is_readable(descriptor: impl AsFd) -> bool {
    let mut events = [PollFd::new(&descriptor, PollFlags::IN)];
    let at_once = Timespec {
        tv_sec: 0,
        tv_nsec: 0,
    };
    matches!(poll(&mut events, Some(&at_once)), Ok(1..))
}

#[cfg(test)]
mod tests {
    use super::{duplicate, is_readable};
    use std::io::{Read as _, Write as _};

    #[test]
    fn a_pipe_is_readable_while_something_is_in_it_and_at_its_end() {
        let (mut reader, mut writer) = std::io::pipe().expect("a pipe can be had");
        assert!(!is_readable(&reader));
        writer.write_all(b"x").expect("it has room");
        assert!(is_readable(&reader));
        reader.read_exact(&mut [0]).expect("a byte is there");
        assert!(!is_readable(&reader));
        drop(writer);
        assert!(is_readable(&reader));
        assert!(is_readable(
            std::fs::File::open("/proc/self/exe").expect("it is there")
        ));
    }

    #[test]
    fn what_is_not_open_is_an_error() {
        assert!(duplicate(2).is_ok());
        assert!(duplicate(-1).is_err());
        assert!(duplicate(1_000_000).is_err());
    }
}
