//! The sparse file that caches blocks.

use std::fs::File;
use std::io;
use std::ops::Range;
use std::os::unix::fs::{FileExt as _, MetadataExt as _, OpenOptionsExt as _};
use std::path::{Path, PathBuf};

use rustix::fs::SeekFrom;

use super::super::MappedFile;

/// A mapped sparse file. No descriptor stays open.
#[derive(Debug)]
pub(super) struct Disk {
    path: PathBuf,
    mapped: MappedFile,
    device: u64,
    inode: u64,
    /// Whether a file of another size was replaced.
    pub(super) was_replaced: bool,
}

impl Disk {
    /// Opens or creates the file, and returns its ranges that are not holes.
    pub(super) fn open(path: &Path, len: u64) -> io::Result<(Disk, Vec<Range<u64>>)> {
        let in_memory = usize::try_from(len).map_err(io::Error::other)?;
        let mut options = File::options();
        options
            .read(true)
            .write(true)
            .custom_flags(libc::O_NOFOLLOW | libc::O_NONBLOCK);
        let mut file = match options.open(path) {
            Ok(file) => Some(file),
            Err(error) if error.kind() == io::ErrorKind::NotFound => None,
            Err(error) => return Err(error),
        };
        let is_sound = |file: &File| {
            let metadata = file.metadata()?;
            Ok::<bool, io::Error>(metadata.is_file() && metadata.len() == len)
        };
        let mut was_replaced = false;
        if let Some(found) = &file
            && !is_sound(found)?
        {
            std::fs::remove_file(path)?;
            was_replaced = true;
            file = None;
        }
        let file = match file {
            Some(file) => file,
            None => {
                let file = options.create_new(true).open(path)?;
                file.set_len(len)?;
                file
            }
        };
        let metadata = file.metadata()?;
        let extents = extents(&file, len)?;
        let disk = Disk {
            path: path.to_owned(),
            mapped: MappedFile::new(&file, in_memory)?,
            device: metadata.dev(),
            inode: metadata.ino(),
            was_replaced,
        };
        Ok((disk, extents))
    }

    /// Returns the content. Holes read as zeros.
    pub(super) fn bytes(&self) -> &[u8] {
        &self.mapped.map
    }

    /// Whether the file was truncated, so that bytes that were read may have been zeros.
    pub(super) fn is_cut_short(&self) -> bool {
        self.mapped.registration.is_marked()
    }

    /// Writes `bytes` at `offset`. Fails if the path now names another file.
    pub(super) fn write(&self, offset: u64, bytes: &[u8]) -> io::Result<()> {
        let mut options = File::options();
        let file = options
            .write(true)
            .custom_flags(libc::O_NOFOLLOW | libc::O_NONBLOCK)
            .open(&self.path)?;
        let metadata = file.metadata()?;
        if (metadata.dev(), metadata.ino()) != (self.device, self.inode) {
            return Err(io::ErrorKind::StaleNetworkFileHandle.into());
        }
        file.write_all_at(bytes, offset)
    }
}

/// Returns the ranges of a file that are not holes, as far as the file system reports holes.
fn extents(file: &File, len: u64) -> io::Result<Vec<Range<u64>>> {
    let mut found: Vec<Range<u64>> = Vec::new();
    let mut at = 0;
    while at < len {
        let start = match rustix::fs::seek(file, SeekFrom::Data(at)) {
            Ok(start) => start,
            Err(rustix::io::Errno::NXIO) => break,
            Err(rustix::io::Errno::INVAL | rustix::io::Errno::OPNOTSUPP) => {
                return Ok(std::iter::once(0..len).collect());
            }
            Err(error) => return Err(error.into()),
        };
        at = rustix::fs::seek(file, SeekFrom::Hole(start))?.max(start + 1);
        match found.last_mut() {
            Some(last) if last.end == start => last.end = at,
            _ => found.push(start..at),
        }
    }
    Ok(found)
}
