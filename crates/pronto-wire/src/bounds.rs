//! Limits for data of the other side that are kept in memory.

use crate::error::{Error, malformed};

/// The memory that the references of one answer, with the cut of versions 0 and 1, may take: enough
/// for five million references.
pub(crate) const MOST_REF_BYTES: usize = 1 << 30;

/// The rest of an allowance.
#[derive(Debug)]
pub(crate) struct Room {
    left: usize,
    /// The limited quantity, for messages.
    what: &'static str,
}

impl Room {
    pub(crate) fn new(left: usize, what: &'static str) -> Self {
        Room { left, what }
    }

    /// Takes `count` away.
    ///
    /// # Errors
    /// If that is more than is left.
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
