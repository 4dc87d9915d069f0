//! Lists a directory before its files are examined.
//!
//! On many network file systems a listing also returns the attributes of the files (`READDIRPLUS`), so
//! that examining them needs no further round trip. A program cannot query whether a file system does
//! so. Listing ahead is tried in some directories and continued while it is faster, and only if threads
//! wait for the file system at all.

use pronto_io::dir::{Directory, DirectoryListing, is_missing};
use pronto_io::pool;

use super::scan::Scanner;
use bstr::BStr;
use std::io;
use std::ops::Range;

/// The smallest number of files for which listing ahead can be faster: opening, listing and closing a
/// directory take three calls.
const LEAST_FILES: usize = 4;

/// The names of a directory that were listed before its files are examined.
pub(super) struct ReadAhead {
    pub(super) names: io::Result<DirectoryListing>,
    /// Whether the attributes of the files are cached, according to the measurements so far.
    is_known: bool,
    /// The number of files that had been examined at the last measurement.
    files: usize,
    /// The number of waits of the thread up to the last measurement.
    waits: u64,
}

impl Scanner<'_> {
    /// Returns whether the directory of `entries` is listed ahead although its names are not needed.
    pub(super) fn lists_ahead(&self, entries: &Range<usize>, prefix_len: usize) -> bool {
        self.pace.is_wide() && self.ahead.is_tried() && self.has_files(entries, prefix_len)
    }

    /// Opens a directory with tracked files. It is opened for listing if its names are needed or it is
    /// listed `ahead`. If it cannot be listed, tracked files are examined anyway, and untracked files
    /// are not found.
    pub(super) fn open_tracked(
        &mut self,
        path: &BStr,
        lists: bool,
        ahead: bool,
    ) -> io::Result<(Directory, bool)> {
        let opened = match lists || ahead {
            true => self.open_to_list(path),
            false => self.open(path),
        };
        match opened {
            Ok(directory) => Ok((directory, lists || ahead)),
            Err(error) if is_missing(&error) => Err(error),
            Err(error) => {
                // Examining its files one by one would revalidate the directory each time.
                let directory = self.open(path)?;
                if lists {
                    self.problem(path, error);
                    self.note_gone(path);
                }
                Ok((directory, false))
            }
        }
    }

    fn has_files(&self, entries: &Range<usize>, prefix_len: usize) -> bool {
        let mut below = Vec::new();
        let (mut at, mut files) = (entries.start, 0);
        while at < entries.end && files < LEAST_FILES {
            let next = self.next_file(&mut at, entries.end, prefix_len, &mut below);
            files += usize::from(next.is_some());
        }
        files == LEAST_FILES
    }

    pub(super) fn list_ahead(&mut self, directory: &Directory) -> ReadAhead {
        let names = self.list(directory);
        let waits = pool::waits();
        ReadAhead {
            is_known: names.is_ok() && waits.is_some(),
            names,
            files: 0,
            waits: waits.unwrap_or_default(),
        }
    }

    /// Records that `files` of the directory were examined since it was listed. Returns whether the
    /// attributes of the others are cached as well, so that no other thread needs to help. A system may
    /// cache only as many as fit into one answer.
    pub(super) fn goes_on_alone(&self, listed: Option<&mut ReadAhead>, files: usize) -> bool {
        let Some(listed) = listed else {
            return false;
        };
        if !listed.is_known || files == listed.files {
            return listed.is_known;
        }
        let waits = pool::waits().unwrap_or_default();
        // An occasional wait for other threads is acceptable.
        listed.is_known = waits.saturating_sub(listed.waits) < (files - listed.files) as u64 / 2;
        if listed.files == 0 {
            self.ahead.vote(listed.is_known);
        }
        (listed.files, listed.waits) = (files, waits);
        listed.is_known && self.ahead.pays()
    }
}
