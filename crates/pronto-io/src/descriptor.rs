//! Descriptors that the process was started with.

use std::io;
use std::os::fd::{BorrowedFd, OwnedFd};

/// A descriptor of our own for what the inherited descriptor `number` stands for. It is closed
/// on exec, and closing it leaves `number` open.
///
/// # Errors
/// `number` is not open, or no more descriptors may be opened.
pub fn duplicate(number: i32) -> io::Result<OwnedFd> {
    if number < 0 {
        return Err(io::ErrorKind::InvalidInput.into());
    }
    // SAFETY: the number is used for one call to `fcntl` alone, which fails with EBADF when it
    // is not open; nothing is read or closed through it.
    let borrowed = unsafe { BorrowedFd::borrow_raw(number) };
    borrowed.try_clone_to_owned()
}

#[cfg(test)]
mod tests {
    use super::duplicate;

    #[test]
    fn what_is_not_open_is_an_error() {
        assert!(duplicate(2).is_ok());
        assert!(duplicate(-1).is_err());
        assert!(duplicate(1_000_000).is_err());
    }
}
