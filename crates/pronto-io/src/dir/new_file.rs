//! Files under construction.

use std::io;
use std::os::fd::{AsFd, BorrowedFd, IntoRawFd, OwnedFd};

use rustix::io::Errno;

use super::Metadata;
use crate::retry::retry;

/// A file that is written from its beginning: a new one, or one that no other process has open.
/// Dropping it closes it and leaves it.
#[derive(Debug)]
pub struct NewFile {
    pub(super) fd: OwnedFd,
}

impl NewFile {
    /// Writes all of `bytes` at the end of what was written before: one system call unless the
    /// operating system takes less at once.
    ///
    /// # Errors
    /// Those of `write(2)`; part of the bytes may have been written.
    pub fn write_all(&mut self, mut bytes: &[u8]) -> io::Result<()> {
        while !bytes.is_empty() {
            match retry(|| rustix::io::write(&self.fd, bytes))? {
                0 => return Err(io::ErrorKind::WriteZero.into()),
                written => bytes = &bytes[written..],
            }
        }
        Ok(())
    }

    /// Lets the file, which is empty, share all blocks of `source` until one of both is written
    /// (`FICLONE`).
    ///
    /// # Errors
    /// Those of `ioctl(2)`: the file system cannot, or it is another one. `Unsupported` where
    /// there is no such call.
    pub fn share(&self, source: &impl AsFd) -> io::Result<()> {
        #[cfg(target_os = "linux")]
        return Ok(retry(|| rustix::fs::ioctl_ficlone(&self.fd, source))?);
        #[cfg(not(target_os = "linux"))]
        {
            let _ = source;
            Err(io::ErrorKind::Unsupported.into())
        }
    }

    /// Closes the file and returns its metadata. Errors of closing count: network file systems
    /// report there that they are full.
    ///
    /// # Errors
    /// Those of `fstat(2)` and `close(2)`.
    pub fn finish(self) -> io::Result<Metadata> {
        let metadata = Metadata::new(&retry(|| rustix::fs::fstat(&self.fd))?);
        let raw = self.fd.into_raw_fd();
        // SAFETY: the descriptor was owned by `self.fd`, which has just given it up, so nothing
        // else closes or uses it.
        match unsafe { rustix::io::try_close(raw) } {
            // The descriptor is gone even so, and what was written is with the kernel.
            Ok(()) | Err(Errno::INTR) => Ok(metadata),
            Err(error) => Err(error.into()),
        }
    }
}

impl AsFd for NewFile {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.fd.as_fd()
    }
}

impl io::Write for NewFile {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        Ok(retry(|| rustix::io::write(&self.fd, bytes))?)
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}
