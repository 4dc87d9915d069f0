//! Files that are being written.

use std::io;
use std::os::fd::{AsFd, BorrowedFd, IntoRawFd, OwnedFd};

use rustix::io::Errno;

use super::Metadata;
use crate::retry::retry;

/// A file that is written from its beginning: a new file, or a file that no other process has open.
/// Dropping the value closes the file and does not remove it.
#[derive(Debug)]
pub struct NewFile {
    pub(super) fd: OwnedFd,
}

impl NewFile {
    /// Appends all of `bytes` to the file. Costs one system call, unless the operating system
    /// writes fewer bytes at once.
    ///
    /// # Errors
    /// Fails with the errors of `write(2)`. A part of the bytes may have been written.
    pub fn write_all(&mut self, mut bytes: &[u8]) -> io::Result<()> {
        while !bytes.is_empty() {
            match retry(|| rustix::io::write(&self.fd, bytes))? {
                0 => return Err(io::ErrorKind::WriteZero.into()),
                written => bytes = &bytes[written..],
            }
        }
        Ok(())
    }

    /// Makes the file, which is empty, share all blocks of `source` (`FICLONE`). A later write to
    /// either file does not change the other file.
    ///
    /// # Errors
    /// Fails with the errors of `ioctl(2)`, such as those for a file system without shared blocks
    /// or for two different file systems. Fails with `Unsupported` on systems without the call.
    pub fn share(&self, source: &impl AsFd) -> io::Result<()> {
        #[cfg(target_os = "linux")]
        return Ok(retry(|| rustix::fs::ioctl_ficlone(&self.fd, source))?);
        #[cfg(not(target_os = "linux"))]
        {
            let _ = source;
            Err(io::ErrorKind::Unsupported.into())
        }
    }

    /// Closes the file and returns its metadata. An error of `close` is returned, too: network file
    /// systems report there that they are full.
    ///
    /// # Errors
    /// Fails with the errors of `fstat(2)` and `close(2)`.
    pub fn finish(self) -> io::Result<Metadata> {
        let metadata = Metadata::new(&retry(|| rustix::fs::fstat(&self.fd))?);
        let raw = self.fd.into_raw_fd();
        // SAFETY: the descriptor was owned by `self.fd`, which has just given it up, so nothing
        // else closes or uses it.
        match unsafe { rustix::io::try_close(raw) } {
            // The descriptor is closed nevertheless, and the kernel has the written bytes.
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
