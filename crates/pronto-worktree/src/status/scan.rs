//! The part of a status walk in one thread.

use super::pace::CallPace;
use super::remembered::{CachePosition, DirectoryNews};
use super::task::DirectoryTask;
use super::votes::ReadAheadVotes;
use super::{
    ChangedFile, EarlyResult, FileChange, Ignored, OnStatusPath, Outcome, StatusJob,
    SubmoduleState, Untracked,
};
use crate::Error;
use crate::ignore::{IgnoreStack, Reader};
use bstr::{BStr, BString, ByteSlice};
use pronto_index::{EntryRef, Flags, IndexTime};
use pronto_io::dir::{Directory, DirectoryListing, EntryKind};
use std::rc::Rc;

/// Examines directories, one after another.
pub(super) struct Scanner<'a> {
    pub(super) job: &'a StatusJob<'a>,
    pub(super) root: &'a Directory,
    pub(super) stack: IgnoreStack<'a>,
    pub(super) outcome: Outcome,
    pub(super) index_time: IndexTime,
    /// The directories whose content is recorded for the untracked cache, outermost first.
    pub(super) noting: Vec<DirectoryNews>,
    /// The position of the current directory in the untracked cache.
    pub(super) here: Option<CachePosition>,
    /// Reusable listings.
    spare: Vec<DirectoryListing>,
    /// The numbers of changed and untracked files that were reported.
    reported: (usize, usize),
    pub(super) pace: CallPace<'a>,
    pub(super) ahead: &'a ReadAheadVotes,
    /// A separate handle of the top for this thread: threads that share an open directory contend for
    /// its reference count. Used only on a local file system.
    pub(super) own_top: Option<Rc<Directory>>,
}

impl<'a> Scanner<'a> {
    pub(super) fn new(
        job: &'a StatusJob<'a>,
        read: Option<&'a Reader<'a>>,
        root: &'a Directory,
        own_top: Option<Rc<Directory>>,
        pace: CallPace<'a>,
        ahead: &'a ReadAheadVotes,
    ) -> Scanner<'a> {
        Scanner {
            job,
            root,
            stack: IgnoreStack::new(job.patterns, read),
            outcome: Outcome::default(),
            index_time: job.index.timestamp(),
            noting: Vec::new(),
            here: None,
            spare: Vec::new(),
            reported: (0, 0),
            pace,
            ahead,
            own_top,
        }
    }

    /// Starts the clock. The time before, in which the thread waited for a task, is not counted.
    pub(super) fn start_clock(&mut self) {
        self.pace.start();
    }

    pub(super) fn into_outcome(self) -> Outcome {
        self.outcome
    }

    /// Reports the files found since the last call.
    pub(super) fn on_path(&mut self, on_path: Option<&OnStatusPath<'_>>) {
        let Some(on_path) = on_path else { return };
        for changed in &self.outcome.changed[self.reported.0..] {
            let path = self.job.index.path(changed.position);
            on_path(path, EarlyResult::Changed(changed.change));
        }
        for path in &self.outcome.untracked[self.reported.1..] {
            on_path(path.as_bstr(), EarlyResult::Untracked);
        }
        self.reported = (self.outcome.changed.len(), self.outcome.untracked.len());
    }

    /// Examines a directory. Directories below it that must be examined are added to `tasks`.
    pub(super) fn scan(
        &mut self,
        task: DirectoryTask,
        tasks: &mut Vec<DirectoryTask>,
    ) -> Result<(), Error> {
        match task {
            DirectoryTask::Tracked {
                entries,
                prefix_len,
                ignored,
                place,
            } => {
                self.here = place.filter(|_| !ignored);
                self.scan_tracked(entries, prefix_len, ignored, tasks)
            }
            DirectoryTask::Files {
                directory,
                entries,
                prefix_len,
            } => self.scan_files(&directory, entries, prefix_len),
            DirectoryTask::Untracked { path, place } => {
                self.here = place;
                self.scan_untracked(&path, tasks);
                Ok(())
            }
        }
    }

    pub(super) fn wants_untracked(&self) -> bool {
        self.job.options.untracked != Untracked::No
    }

    pub(super) fn wants_ignored(&self) -> bool {
        self.job.options.ignored != Ignored::No
    }

    /// Opens the directory at `path` (with a slash at its end, or empty for the top) to access its
    /// entries.
    pub(super) fn open(&mut self, path: &BStr) -> std::io::Result<Directory> {
        self.open_by(path, Directory::open_beneath)
    }

    /// Opens the directory at `path` to access and [list](Self::list) its entries.
    pub(super) fn open_to_list(&mut self, path: &BStr) -> std::io::Result<Directory> {
        self.open_by(path, Directory::open_readable_beneath)
    }

    fn open_by(
        &mut self,
        path: &BStr,
        open: fn(&Directory, &[u8]) -> std::io::Result<Directory>,
    ) -> std::io::Result<Directory> {
        self.outcome.open_count += 1;
        let opened = open(self.root, path.strip_suffix(b"/").unwrap_or(path));
        self.pace.step();
        opened
    }

    /// Lists the names in `directory`. Return the listing with [`put_back`](Self::put_back) after use.
    pub(super) fn list(&mut self, directory: &Directory) -> std::io::Result<DirectoryListing> {
        let mut listing = self.spare.pop().unwrap_or_default();
        let read = directory.read_once(&mut listing);
        self.pace.step();
        read.map(|()| listing)
    }

    pub(super) fn put_back(&mut self, listing: DirectoryListing) {
        self.spare.push(listing);
    }

    pub(super) fn report(
        &mut self,
        position: usize,
        change: Option<FileChange>,
        mode: u32,
        submodule: SubmoduleState,
    ) {
        self.outcome.changed.push(ChangedFile {
            position,
            change,
            mode,
            submodule,
        });
    }

    /// Records that an entry is unchanged, if there is a file system monitor.
    pub(super) fn verify(&mut self, position: usize) {
        if self.job.monitored.is_some() {
            self.outcome.verified.push(position as u32);
        }
    }

    pub(super) fn problem(&mut self, path: &BStr, error: std::io::Error) {
        let path = path.to_owned();
        self.outcome.problems.push(super::Problem { path, error });
    }

    /// Returns whether the file of `entry` is not examined: its entry is assume-unchanged or
    /// skip-worktree.
    pub(super) fn is_exempt(&self, entry: &EntryRef<'_>) -> bool {
        (entry.flags.contains(Flags::ASSUME_VALID) && !self.job.options.looks_at_assumed)
            || (entry.flags.contains(Flags::SKIP_WORKTREE)
                && !self.job.options.notice_present_sparse)
    }

    /// Returns the kind of the entry `name` of `directory`. Queries the file system only if the listing
    /// does not contain the kind.
    pub(super) fn kind(
        &mut self,
        directory: &Directory,
        name: &[u8],
        kind: EntryKind,
    ) -> EntryKind {
        match kind {
            EntryKind::Unknown => directory
                .metadata(name)
                .map_or(EntryKind::Unknown, |metadata| metadata.kind()),
            known => known,
        }
    }

    /// Returns whether the index has an entry with exactly this path (without a slash at its end). Such
    /// a path is not untracked, regardless of its state.
    pub(super) fn is_in_index(&self, path: &BStr) -> bool {
        let path = path.strip_suffix(b"/").unwrap_or(path).as_bstr();
        match self.job.index.find(path, 0) {
            Ok(_) => true,
            Err(at) => at < self.job.index.len() && self.job.index.path(at) == path,
        }
    }

    pub(super) fn add_untracked(&mut self, path: BString) {
        if !self.is_in_index(path.as_bstr()) {
            self.outcome.untracked.push(path);
        }
    }

    pub(super) fn add_ignored(&mut self, path: BString) {
        if !self.is_in_index(path.as_bstr()) {
            self.outcome.ignored.push(path);
        }
    }
}
