//! Copies one file or symbolic link.

use std::io;
use std::sync::atomic::Ordering::Relaxed;

use rustix::fs::{AtFlags, Mode, Timespec, Timestamps, UTIME_OMIT};
use rustix::io::Errno;

use super::{BlockSharing, CopyWalk, KEPT_MODE};
use crate::dir::{Directory, FileTime, Metadata, NewFile, file_metadata, read_at};
use crate::retry::retry;

/// The size of the pieces in which a file is copied whose blocks cannot be shared.
const PIECE_LEN: usize = 256 * 1024;

/// A file to be copied, with its metadata at the time of opening.
pub(super) struct CopiedFile {
    pub(super) file: std::fs::File,
    pub(super) metadata: Metadata,
}

impl CopyWalk<'_> {
    pub(super) fn copy_file(
        &self,
        CopiedFile { file, metadata }: &CopiedFile,
        to: &Directory,
        name: &[u8],
        piece: &mut Vec<u8>,
    ) -> io::Result<()> {
        let mut new = to.create_file(name, metadata.is_executable())?;
        if metadata.size_bytes > 0 {
            self.fill(file, &mut new, piece)?;
        }
        let mode = metadata.mode & KEPT_MODE & 0o777;
        if file_metadata(&new)?.mode & 0o7777 != mode {
            retry(|| rustix::fs::fchmod(&new, Mode::from_bits_truncate(mode as _)))?;
        }
        retry(|| rustix::fs::futimens(&new, &times(metadata)))?;
        self.copy.meter.add_bytes(metadata.size_bytes);
        new.finish().map(drop)
    }

    fn fill(&self, file: &std::fs::File, new: &mut NewFile, piece: &mut Vec<u8>) -> io::Result<()> {
        if !self.copies.load(Relaxed) {
            match new.share(file) {
                Err(error) if self.copy.sharing == BlockSharing::Auto && is_incapable(&error) => {
                    self.copies.store(true, Relaxed);
                }
                shared => return shared,
            }
        }
        piece.resize(PIECE_LEN, 0);
        let mut offset = 0;
        loop {
            let read = read_at(file, piece, offset)?;
            if read == 0 {
                return Ok(());
            }
            new.write_all(&piece[..read])?;
            offset += read as u64;
            if self.copy.interrupt.is_triggered() {
                return Err(io::ErrorKind::Interrupted.into());
            }
        }
    }
}

pub(super) fn copy_link(
    from: &Directory,
    to: &Directory,
    name: &[u8],
    metadata: &Metadata,
) -> io::Result<()> {
    to.make_symlink(&from.read_link(name)?, name)?;
    let flags = AtFlags::SYMLINK_NOFOLLOW;
    Ok(retry(|| {
        rustix::fs::utimensat(to, name, &times(metadata), flags)
    })?)
}

/// Returns the modification time of a file, with the access time left unchanged.
pub(super) fn times(metadata: &Metadata) -> Timestamps {
    let FileTime {
        seconds,
        nanoseconds,
    } = metadata.modified;
    Timestamps {
        last_access: Timespec {
            tv_sec: 0,
            tv_nsec: UTIME_OMIT as _,
        },
        last_modification: Timespec {
            tv_sec: seconds as _,
            tv_nsec: nanoseconds as _,
        },
    }
}

/// Returns whether the error of `FICLONE` means that the file systems cannot share blocks.
pub(super) fn is_incapable(error: &io::Error) -> bool {
    matches!(
        Errno::from_io_error(error),
        Some(Errno::OPNOTSUPP | Errno::XDEV | Errno::INVAL | Errno::NOTTY | Errno::NOSYS)
    ) || error.kind() == io::ErrorKind::Unsupported
}
