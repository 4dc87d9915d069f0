//! Lists the names in a directory, in one buffer that is reused for the next directory.

use std::io;

use rustix::fs::RawDir;

use super::{Directory, EntryKind};

/// The size of the buffer for the directory entries of one system call.
const CHUNK_BYTES: usize = 32 * 1024;

/// The names in a directory. Reading another directory into the same listing allocates only if that
/// directory has longer contents.
#[derive(Debug, Default)]
pub struct DirectoryListing {
    chunk: Vec<u8>,
    names: Vec<u8>,
    /// The start of each name in `names`. A name ends at the start of the next name.
    entries: Vec<(u32, EntryKind)>,
}

impl DirectoryListing {
    /// Creates an empty listing.
    pub fn new() -> Self {
        Self::default()
    }

    /// Returns the number of names, without `.` and `..`.
    pub fn len(&self) -> usize {
        self.entries.len()
    }

    /// Whether the directory is empty.
    pub fn is_empty(&self) -> bool {
        self.entries.is_empty()
    }

    /// Returns the names in the order of the file system, with the kind of each name that the file
    /// system returned.
    pub fn iter(&self) -> impl ExactSizeIterator<Item = (&[u8], EntryKind)> + '_ {
        (0..self.entries.len()).map(|at| self.at(at))
    }

    /// Returns the name at `position` of [`iter`](Self::iter), or `None` beyond the last name.
    pub fn get(&self, position: usize) -> Option<(&[u8], EntryKind)> {
        (position < self.entries.len()).then(|| self.at(position))
    }

    fn at(&self, position: usize) -> (&[u8], EntryKind) {
        let (start, kind) = self.entries[position];
        let end = self
            .entries
            .get(position + 1)
            .map_or(self.names.len(), |(start, _)| *start as usize);
        (&self.names[start as usize..end], kind)
    }
}

impl Directory {
    /// Reads the names in this directory. Call this once for each handle: a second call finds no
    /// names, because the read position belongs to the handle. The handle must be from
    /// [`open_readable_beneath`](Self::open_readable_beneath). Compared with
    /// [`entries`](Self::entries), this saves one `open` and the allocation of each name.
    ///
    /// # Errors
    /// Fails with the errors of `getdents64(2)`, such as `EBADF` if the handle is not readable.
    pub fn read_once(&self, into: &mut DirectoryListing) -> io::Result<()> {
        into.names.clear();
        into.entries.clear();
        into.chunk.clear();
        into.chunk.reserve(CHUNK_BYTES);
        let mut stream = RawDir::new(&self.fd, into.chunk.spare_capacity_mut());
        while let Some(entry) = stream.next() {
            let entry = entry?;
            let name = entry.file_name().to_bytes();
            if name != b"." && name != b".." {
                let start = u32::try_from(into.names.len()).map_err(io::Error::other)?;
                into.entries
                    .push((start, EntryKind::new(entry.file_type())));
                into.names.extend_from_slice(name);
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_read_into_one_buffer() {
        let base = std::env::temp_dir().join(format!("pronto-listing-{}", std::process::id()));
        std::fs::create_dir_all(base.join("below")).expect("a directory");
        let _guard = crate::cleanup::Guard::new(&base);
        std::fs::write(base.join("file"), b"x").expect("a file");
        let mut listing = DirectoryListing::new();
        for _ in 0..2 {
            let directory = Directory::open(&base).expect("it is there");
            directory.read_once(&mut listing).expect("it can be read");
            let mut names: Vec<_> = listing.iter().collect();
            names.sort_by_key(|(name, _)| *name);
            assert_eq!(
                names,
                [
                    (&b"below"[..], EntryKind::Directory),
                    (&b"file"[..], EntryKind::File)
                ]
            );
        }
    }
}
