//! Flushes written files to disk.

use std::fs::File;
use std::io;

/// The method with which a written file is flushed to disk (`core.fsyncMethod`, `core.fsync`).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum SyncMethod {
    /// Do not flush. The system writes the file later.
    #[default]
    No,
    /// Wait until the content has been sent to the disk, which may still have it in its write cache
    /// (`writeout-only`).
    WriteOut,
    /// Wait until the content is on the disk (`fsync`).
    Flush,
}

impl SyncMethod {
    /// Whether the file is not flushed.
    pub fn is_no(self) -> bool {
        self == SyncMethod::No
    }

    /// Flushes `file`.
    ///
    /// # Errors
    /// Fails with the errors of `fsync(2)`.
    pub fn apply(self, file: &File) -> io::Result<()> {
        match self {
            SyncMethod::No => Ok(()),
            // Systems without a weaker call use `fsync`, as Git does.
            SyncMethod::WriteOut if write_out(file) => Ok(()),
            SyncMethod::WriteOut | SyncMethod::Flush => file.sync_all(),
        }
    }
}

/// Sends the content of the file to the disk. Returns whether that succeeded.
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
