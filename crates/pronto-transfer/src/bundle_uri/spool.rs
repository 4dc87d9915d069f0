//! A temporary file for all downloads of a fetch.

use std::fs::File;
use std::io::{self, BufReader, Read, Seek, SeekFrom, Take, Write};
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// An unlinked file that contains all downloads one after another, so that the number of open files
/// does not depend on the number of downloads.
pub(super) struct DownloadSpool {
    directory: PathBuf,
    /// `None` before the first download.
    file: Option<Arc<File>>,
    /// The end of the last complete download. Bytes of a failed download may follow.
    end: u64,
}

/// The range of a download, or of a part of a download, in the file.
#[derive(Clone, Copy, Debug)]
pub(super) struct SpoolRange {
    pub(super) start: u64,
    pub(super) end: u64,
}

impl SpoolRange {
    pub(super) fn size_bytes(self) -> u64 {
        self.end.saturating_sub(self.start)
    }
}

impl DownloadSpool {
    /// Returns a spool that creates its file in `directory` when the first download starts.
    pub(super) fn new(directory: PathBuf) -> Self {
        DownloadSpool {
            directory,
            file: None,
            end: 0,
        }
    }

    pub(super) fn directory(&self) -> &Path {
        &self.directory
    }

    /// Starts a download. Its bytes are written to the [`Entrance`].
    ///
    /// # Errors
    /// Fails if the file cannot be created.
    pub(super) fn begin(&mut self) -> io::Result<Entrance<'_>> {
        let mut file = match &self.file {
            Some(file) => Arc::clone(file),
            None => Arc::clone(
                self.file
                    .insert(Arc::new(tempfile::tempfile_in(&self.directory)?)),
            ),
        };
        file.seek(SeekFrom::Start(self.end))?;
        let start = self.end;
        Ok(Entrance {
            spool: self,
            file,
            section: SpoolRange { start, end: start },
        })
    }

    /// Returns a reader of `section`. All readers and writers share one file offset: only the one
    /// that was created last may be used.
    ///
    /// # Errors
    /// Fails if the file cannot be read.
    pub(super) fn reader(&self, section: SpoolRange) -> io::Result<BufReader<Take<Arc<File>>>> {
        let file = self.file.as_ref().ok_or(io::ErrorKind::NotFound)?;
        let mut file = Arc::clone(file);
        file.seek(SeekFrom::Start(section.start))?;
        Ok(BufReader::new(file.take(section.size_bytes())))
    }

    /// Discards the last download, which is at `section`.
    pub(super) fn truncate(&mut self, section: SpoolRange) {
        self.end = section.start;
        if let Some(file) = &self.file {
            // The next download overwrites leftover bytes.
            let _ = file.set_len(self.end);
        }
    }
}

/// The writer of one download. Without [`finish`](Self::finish), the bytes are discarded.
pub(super) struct Entrance<'s> {
    spool: &'s mut DownloadSpool,
    file: Arc<File>,
    section: SpoolRange,
}

impl Entrance<'_> {
    /// Appends `bytes`.
    ///
    /// # Errors
    /// Fails if the bytes cannot be written.
    pub(super) fn write(&mut self, bytes: &[u8]) -> io::Result<()> {
        self.file.write_all(bytes)?;
        self.section.end += bytes.len() as u64;
        Ok(())
    }

    pub(super) fn size_bytes(&self) -> u64 {
        self.section.size_bytes()
    }

    /// Keeps the download, and returns its range.
    pub(super) fn finish(self) -> SpoolRange {
        self.spool.end = self.section.end;
        self.section
    }
}

impl Drop for Entrance<'_> {
    fn drop(&mut self) {
        if self.spool.end < self.section.end {
            self.spool.truncate(self.section);
        }
    }
}
