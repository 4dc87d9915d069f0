//! Limits for data of the remote side that are kept in memory.

use crate::error::{Error, malformed};

/// The memory limit for the refs of one response, including shallow lines of versions 0 and 1. It
/// suffices for five million refs.
pub(crate) const MOST_REF_BYTES: usize = 1 << 30;

/// The remaining part of a limit.
#[derive(Debug)]
pub(crate) struct ByteAllowance {
    left: usize,
    /// The limited quantity, for messages.
    what: &'static str,
}

impl ByteAllowance {
    pub(crate) fn new(left: usize, what: &'static str) -> Self {
        ByteAllowance { left, what }
    }

    /// Subtracts `count` from the remaining part.
    ///
    /// # Errors
    /// Fails with `ErrorKind::Malformed` if less than `count` remains.
    pub(crate) fn take(&mut self, count: usize) -> Result<(), Error> {
        match self.left.checked_sub(count) {
            Some(left) => {
                self.left = left;
                Ok(())
            }
            None => Err(malformed(format!(
                "protocol error: the remote end sent too many {}",
                self.what
            ))),
        }
    }
}
