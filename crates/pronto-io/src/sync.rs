//! Flushes written files to disk.

use std::fs::File;
use std::io;

/// The way to flush a written file.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum SyncMethod {
    /// Not at all: the system writes it when it suits.
    #[default]
    No,
    /// Until the disk has been given the content, which may still be in its cache.
    WriteOut,
    /// Until it is on the disk.
    Flush,
}

impl SyncMethod {
    /// Whether there is nothing to wait for.
    pub fn is_no(self) -> bool {
        self == SyncMethod::No
    }

    /// Waits for `file`.
    ///
    /// # Errors
    /// Those of `fsync(2)`.
    pub fn apply(self, file: &File) -> io::Result<()> {
        match self {
            SyncMethod::No => Ok(()),
            // Where the system cannot do less it does more, as in Git.
            SyncMethod::WriteOut if write_out(file) => Ok(()),
            SyncMethod::WriteOut | SyncMethod::Flush => file.sync_all(),
        }
    }
}

/// Whether the content has been given to the disk.
#[cfg(target_os = "linux")]
fn write_out(file: &File) -> bool {
    use std::os::fd::AsRawFd;
    let how = libc::SYNC_FILE_RANGE_WAIT_BEFORE
        | libc::SYNC_FILE_RANGE_WRITE
        | libc::SYNC_FILE_RANGE_WAIT_AFTER;
    // SAFETY: the call takes numbers only, and the descriptor is open.
    unsafe { libc::sync_file_range(file.as_raw_fd(), 0, 0, how) == 0 }
}

#[cfg(not(target_os = "linux"))]
fn write_out(_: &File) -> bool {
    false
}
