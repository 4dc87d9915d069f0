//! The walk of a directory with few tracked files, if its untracked files are not needed.
//!
//! The directory is not opened: `openat2` and `close` cost as much as examining three files. Its files
//! are examined by their paths from the top of the worktree, after the directory itself, which must not
//! be a symbolic link; its parents were examined before. A file whose content must be read is opened as
//! in any other directory.
//!
//! Only local file systems are accessed in this way, because resolving a path costs almost nothing
//! there. Over a network each component can cost a round trip.

use super::Untracked;
use super::scan::Scanner;
use super::task::DirectoryTask;
use super::tracked::DirectoryNames;
use crate::Error;
use bstr::BStr;
use pronto_io::dir::Directory;
use std::ops::Range;
use std::rc::Rc;

/// The largest number of entries in a directory, including those below, for which the directory is not
/// opened.
const MOST_ENTRIES: usize = 16;

impl<'a> Scanner<'a> {
    /// Returns the directory from which the files of the directory of `entries` are examined, if that
    /// directory should not be opened.
    pub(super) fn top_if_small(
        &self,
        entries: &Range<usize>,
        prefix_len: usize,
    ) -> Option<Rc<Directory>> {
        let job = self.job;
        let is_small = entries.len() <= MOST_ENTRIES
            && prefix_len > 0
            && job.options.untracked == Untracked::No
            && job.options.tracked
            && job.monitored.is_none()
            && job.pathspec.is_empty()
            && !self.pace.is_wide();
        is_small.then(|| self.own_top.clone())?
    }

    pub(super) fn scan_small(
        &mut self,
        top: &Directory,
        entries: Range<usize>,
        path: &BStr,
        prefix_len: usize,
        ignored: bool,
        tasks: &mut Vec<DirectoryTask>,
    ) -> Result<(), Error> {
        if let Some(met) = self.scan_from(top, path, entries, prefix_len)? {
            self.go_below(&met, prefix_len, ignored, false, None, tasks);
        }
        Ok(())
    }

    /// Examines the files of the directory at `path`, and returns its subdirectories. Returns `None` if
    /// the directory does not exist.
    fn scan_from(
        &mut self,
        top: &Directory,
        path: &BStr,
        entries: Range<usize>,
        prefix_len: usize,
    ) -> Result<Option<DirectoryNames<'a>>, Error> {
        let looked = top.expect_directory(path.strip_suffix(b"/").unwrap_or(path));
        self.pace.step();
        if let Err(error) = looked {
            return self.all_missing(entries, path, &error).map(|()| None);
        }
        let mut met = DirectoryNames::default();
        let mut directory = None;
        let mut at = entries.start;
        while at < entries.end {
            if let Some(plain) = self.plain(at, prefix_len) {
                let looked = top.metadata_of(plain.path());
                self.pace.step();
                if self.is_certain(&plain, &looked) {
                    self.outcome.stat_count += 1;
                    at += 1;
                    continue;
                }
            }
            let below = &mut met.directories;
            let next = self.next_file(&mut at, entries.end, prefix_len, below);
            let Some((entry, stages)) = next else {
                continue;
            };
            let opened = directory.get_or_insert_with(|| self.open(path));
            match opened {
                Ok(directory) => {
                    self.check(directory, stages, &entry, prefix_len)?;
                }
                Err(error) => self.all_missing(stages, path, error)?,
            }
        }
        Ok(Some(met))
    }
}
