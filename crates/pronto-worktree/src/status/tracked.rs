//! The walk of a directory with tracked files.
//!
//! The cost for each name in an unchanged directory: one pass over the bytes of its index entry, one
//! `fstatat` with the name in the index, one comparison of numbers, and one step in the listing. No
//! memory is allocated or copied for a file. The absence of untracked files is shown by counting, see
//! [`Scanner::has_only`].

use super::scan::Scanner;
use super::task::DirectoryTask;
use super::{FileChange, SubmoduleState};
use crate::names::{IndexedName, NameSortKey, compare, gallop};
use crate::{Error, pathspec, recorded};
use bstr::{BStr, ByteSlice};
use pronto_index::{EntryRef, Flags, PlainEntry, mode};
use pronto_io::dir::{Directory, DirectoryListing, EntryKind, Metadata, is_missing};
use pronto_io::short::Short as _;
use std::io;
use std::ops::Range;
use std::sync::Arc;

/// The names in a directory after its tracked files were examined.
#[derive(Default)]
pub(super) struct DirectoryNames<'a> {
    /// The subdirectories with tracked files.
    pub(super) directories: Vec<IndexedName<'a>>,
    /// The number of existing tracked files that are not directories.
    present: usize,
    /// The ranges of entries that other threads examine.
    left: Vec<Range<usize>>,
}

/// The number of files of a directory that one thread takes at a time if threads wait for the file
/// system.
const FILES_PER_PART: usize = 8;

/// Returns whether the path of `entry` is in a subdirectory of the directory whose path has
/// `prefix_len` bytes.
fn is_below(entry: &EntryRef<'_>, prefix_len: usize) -> bool {
    let slash = entry.path[prefix_len..].position_of(b'/');
    slash.is_some_and(|slash| slash > 0)
}

/// Returns the mode with which an unchanged file is staged, if the file system has reliable modes.
#[inline]
fn own_mode(metadata: &Metadata) -> Option<u32> {
    match metadata.kind() {
        EntryKind::File if metadata.is_executable() => Some(mode::EXECUTABLE),
        EntryKind::File => Some(mode::FILE),
        EntryKind::Symlink => Some(mode::SYMLINK),
        _ => None,
    }
}

impl<'a> Scanner<'a> {
    pub(super) fn scan_tracked(
        &mut self,
        entries: Range<usize>,
        prefix_len: usize,
        ignored: bool,
        tasks: &mut Vec<DirectoryTask>,
    ) -> Result<(), Error> {
        let job = self.job;
        let lists = self.wants_untracked() && !ignored;
        let path: &BStr = match entries.is_empty() {
            true => BStr::new(b""),
            false => job.index.path(entries.start)[..prefix_len].as_bstr(),
        };
        if self.pass_over(&entries, path, lists) {
            return Ok(());
        }
        if !lists && let Some(top) = self.top_if_small(&entries, prefix_len) {
            return self.scan_small(&top, entries, path, prefix_len, ignored, tasks);
        }
        let ahead = self.lists_ahead(&entries, prefix_len);
        let (directory, can_list) = match self.open_tracked(path, lists, ahead) {
            Ok(opened) => opened,
            Err(error) => return self.all_missing(entries, path, &error),
        };
        let (lists, ignored) = (lists && can_list, ignored || (lists && !can_list));
        let seen = self.see(&directory, path, lists);
        let mut listed = (ahead && can_list).then(|| self.list_ahead(&directory));
        let mut met = DirectoryNames::default();
        let (mut files, mut leaves) = (0, false);
        let mut at = entries.start;
        while at < entries.end {
            if let Some(plain) = self.plain(at, prefix_len) {
                let is_there = self.check_plain(&directory, &plain, at)?;
                met.present += usize::from(is_there);
                (at, files) = (at + 1, files + 1);
                continue;
            }
            let below = &mut met.directories;
            let next = self.next_file(&mut at, entries.end, prefix_len, below);
            let Some((entry, stages)) = next else {
                continue;
            };
            let begins = files % FILES_PER_PART == 0;
            if begins && files > 0 {
                leaves = self.pace.is_wide() && !self.goes_on_alone(listed.as_mut(), files);
            }
            files += 1;
            match met.left.last_mut() {
                Some(part) if leaves && !begins => part.end = stages.end,
                _ if leaves => met.left.push(stages),
                _ => {
                    let is_there = self.check(&directory, stages, &entry, prefix_len)?;
                    met.present += usize::from(is_there);
                }
            }
        }
        self.goes_on_alone(listed.as_mut(), files);
        self.hand_out(&directory, &met, prefix_len, tasks)?;
        self.go_below(&met, prefix_len, ignored, lists, seen.as_ref(), tasks);
        if let Some(node) = seen.as_ref().and_then(|seen| seen.valid) {
            let children = IndexedName::all(job.index, entries, prefix_len);
            self.recall(&directory, path, &children, node, tasks);
        } else if lists {
            let listed = listed.map_or_else(|| self.list(&directory), |listed| listed.names);
            self.meet_all(listed, &directory, path, entries, &met, tasks);
        } else if let Some(Ok(listing)) = listed.map(|listed| listed.names) {
            self.put_back(listing);
        }
        Ok(())
    }

    /// Examines the files of these entries, except for those in subdirectories.
    pub(super) fn scan_files(
        &mut self,
        directory: &Directory,
        entries: Range<usize>,
        prefix_len: usize,
    ) -> Result<(), Error> {
        let mut below = Vec::new();
        let mut at = entries.start;
        while at < entries.end {
            let next = self.next_file(&mut at, entries.end, prefix_len, &mut below);
            if let Some((entry, stages)) = next {
                self.check(directory, stages, &entry, prefix_len)?;
            }
        }
        Ok(())
    }

    /// Processes the name at `at`, in a directory whose entries end at `end`. Returns the entry and its
    /// stages for a file to examine; adds a subdirectory to `below`.
    pub(super) fn next_file(
        &self,
        at: &mut usize,
        end: usize,
        prefix_len: usize,
        below: &mut Vec<IndexedName<'a>>,
    ) -> Option<(EntryRef<'a>, Range<usize>)> {
        let job = self.job;
        let entry = job.index.entry(*at);
        if is_below(&entry, prefix_len) {
            let child = IndexedName::at(job.index, *at, end, prefix_len);
            *at = child.entries.end;
            below.push(child);
            return None;
        }
        let stages = self.stages(&entry, *at, end);
        *at = stages.end;
        self.counts(&entry, &stages).then_some((entry, stages))
    }

    /// Returns the stages of the path of `entry`, which is at `at`.
    fn stages(&self, entry: &EntryRef<'_>, at: usize, end: usize) -> Range<usize> {
        match entry.stage() {
            0 => at..at + 1,
            _ => {
                let same = |other| self.job.index.path(other) == entry.path;
                at..gallop(at, end, same)
            }
        }
    }

    /// Returns whether the file of `entry` must be examined.
    fn counts(&self, entry: &EntryRef<'_>, stages: &Range<usize>) -> bool {
        self.job.options.tracked
            && self.must_look(stages)
            && self.job.pathspec.matches(entry.path, entry.is_submodule())
    }

    /// Creates a task for each part of a directory that other threads should examine. If the directory
    /// cannot be shared, this thread examines the files.
    fn hand_out(
        &mut self,
        directory: &Directory,
        met: &DirectoryNames<'_>,
        prefix_len: usize,
        tasks: &mut Vec<DirectoryTask>,
    ) -> Result<(), Error> {
        if met.left.is_empty() {
            return Ok(());
        }
        let shared = directory.try_clone().map(Arc::new);
        for entries in met.left.iter().cloned() {
            match &shared {
                Ok(directory) => tasks.push(DirectoryTask::Files {
                    directory: Arc::clone(directory),
                    entries,
                    prefix_len,
                }),
                Err(_) => self.scan_files(directory, entries, prefix_len)?,
            }
        }
        Ok(())
    }

    /// Adds a task for each subdirectory with tracked files that must be examined.
    pub(super) fn go_below(
        &mut self,
        met: &DirectoryNames<'_>,
        prefix_len: usize,
        ignored: bool,
        lists: bool,
        seen: Option<&super::remembered::CacheMatch>,
        tasks: &mut Vec<DirectoryTask>,
    ) {
        let job = self.job;
        for child in &met.directories {
            let end = prefix_len + child.name.len();
            if child.is_sparse(job.index, end) {
                continue;
            }
            let below = job.index.path(child.entries.start)[..end].as_bstr();
            if job.pathspec.directory(below) == pathspec::DirectoryRelation::Outside {
                continue;
            }
            let (ignored, place) = match seen {
                Some(seen) => self.place_of(seen, below, prefix_len),
                None => (ignored || (prefix_len == 0 && self.is_hidden(below)), None),
            };
            if !self.must_look(&child.entries) && (ignored || !lists) {
                continue;
            }
            tasks.push(DirectoryTask::Tracked {
                entries: child.entries.clone(),
                prefix_len: end + 1,
                ignored,
                place,
            });
        }
    }

    /// Processes all names in the listing of a directory with tracked files.
    fn meet_all(
        &mut self,
        listed: io::Result<DirectoryListing>,
        directory: &Directory,
        path: &BStr,
        entries: Range<usize>,
        met: &DirectoryNames<'_>,
        tasks: &mut Vec<DirectoryTask>,
    ) {
        match listed {
            Ok(listing) => {
                if !self.has_only(&listing, met) {
                    let children = IndexedName::all(self.job.index, entries, path.len());
                    for (name, kind) in listing.iter() {
                        self.meet(directory, path, &children, name, kind, tasks);
                    }
                }
                self.put_back(listing);
                self.end_news(true);
            }
            Err(error) => {
                self.problem(path, error);
                self.end_news(false);
            }
        }
    }

    /// Returns whether the directory contains only tracked names: every subdirectory is tracked, and
    /// the number of other names equals that of the tracked files that were found.
    fn has_only(&self, listing: &DirectoryListing, met: &DirectoryNames<'_>) -> bool {
        if !met.left.is_empty() {
            // The number of existing files among those is not known.
            return false;
        }
        let mut others = 0;
        for (name, kind) in listing.iter() {
            match kind {
                EntryKind::Directory => {
                    let is_directory = true;
                    let wanted = NameSortKey { name, is_directory };
                    let find = |known: &IndexedName<'_>| compare(known.key(), wanted);
                    // This name is never listed, in any directory.
                    if name != b".git" && met.directories.binary_search_by(find).is_err() {
                        return false;
                    }
                }
                EntryKind::Unknown => return false,
                _ => others += 1,
            }
        }
        others == met.present
    }

    /// Processes a name in the listing of a directory with tracked files. Tracked names are skipped.
    fn meet(
        &mut self,
        directory: &Directory,
        path: &BStr,
        children: &[IndexedName<'_>],
        name: &[u8],
        kind: EntryKind,
        tasks: &mut Vec<DirectoryTask>,
    ) {
        let find = |is_directory| {
            let wanted = NameSortKey { name, is_directory };
            children
                .binary_search_by(|child| compare(child.key(), wanted))
                .ok()
        };
        let kind = self.kind(directory, name, kind);
        let is_directory = kind == EntryKind::Directory;
        if is_directory {
            // A directory with entries is a separate task.
            if find(true).is_some() {
                return;
            }
            let submodule = find(false).is_some_and(|at| {
                let entry = self.job.index.entry(children[at].entries.start);
                entry.mode & mode::TYPE == mode::GITLINK
            });
            if submodule {
                return;
            }
        } else if find(false).is_some() {
            return;
        }
        if self.job.options.ignore_case {
            let same = |child: &&IndexedName<'_>| {
                child.is_directory == is_directory && child.name.eq_ignore_ascii_case(name)
            };
            if children.iter().any(|child| same(&child)) {
                return;
            }
        }
        self.meet_untracked(directory, path, name, kind, tasks);
    }

    /// Returns whether the directory `path` is ignored, so that its untracked files are not listed and
    /// it need not be read. Without a cache this is checked only at the top, where the check is cheap
    /// and most useful.
    pub(super) fn is_hidden(&mut self, path: &BStr) -> bool {
        if !self.wants_untracked() || self.wants_ignored() {
            return false;
        }
        let parent = path.last_position_of(b'/').map_or(0, |slash| slash);
        self.stack.enter(path[..parent].as_bstr());
        self.stack.is_ignored(path, true)
    }

    /// Reports the files of these entries as missing, because their directory does not exist.
    pub(super) fn all_missing(
        &mut self,
        entries: Range<usize>,
        path: &BStr,
        error: &io::Error,
    ) -> Result<(), Error> {
        self.note_gone(path);
        if !self.job.options.tracked {
            return Ok(());
        }
        let is_missing = is_missing(error);
        let mut at = entries.start;
        while at < entries.end {
            let path = self.job.index.path(at);
            let end = gallop(at, entries.end, |other| self.job.index.path(other) == path);
            let entry = self.job.index.entry(at);
            if !self.job.pathspec.matches(path, false) {
                at = end;
                continue;
            }
            if !is_missing {
                let error = io::Error::from_raw_os_error(error.raw_os_error().unwrap_or_default());
                self.problem(path, error);
            } else if entry.stage() != 0 {
                self.report(at, None, 0, SubmoduleState::default());
            } else if !self.is_exempt(&entry) && !entry.flags.contains(Flags::SKIP_WORKTREE) {
                self.report(at, Some(FileChange::Deleted), 0, SubmoduleState::default());
            }
            at = end;
        }
        Ok(())
    }

    /// Compares the file of `entries` (the stages of one path; `entry` is the first) in `directory`
    /// with its entry, or determines its mode if it is in conflict. Returns whether the path exists and
    /// is not a directory.
    pub(super) fn check(
        &mut self,
        directory: &Directory,
        entries: Range<usize>,
        entry: &EntryRef<'_>,
        prefix_len: usize,
    ) -> Result<bool, Error> {
        let job = self.job;
        let position = entries.start;
        if self.is_exempt(entry) && entry.stage() == 0 {
            return Ok(false);
        }
        let looked = match job.index.c_path(position, prefix_len) {
            Some(name) => directory.metadata_of(name),
            None => directory.metadata(&entry.path[prefix_len..]),
        };
        self.step();
        self.settle(looked, directory, entries, entry)
    }

    /// Records that a file has been examined.
    pub(super) fn step(&mut self) {
        self.outcome.stat_count += 1;
        self.pace.step();
    }

    /// Returns the entry at `at`, if its file is in this directory and the entry is a regular one.
    #[inline]
    pub(super) fn plain(&self, at: usize, prefix_len: usize) -> Option<PlainEntry<'a>> {
        let job = self.job;
        let all = job.options.tracked && job.monitored.is_none() && job.pathspec.is_empty();
        if !all || self.pace.is_wide() {
            return None;
        }
        job.index.plain(at, prefix_len)
    }

    /// Does the same as [`check`](Self::check) for a regular entry, whose file is usually unchanged.
    #[inline]
    fn check_plain(
        &mut self,
        directory: &Directory,
        plain: &PlainEntry<'_>,
        at: usize,
    ) -> Result<bool, Error> {
        let looked = directory.metadata_of(plain.name());
        self.step();
        if self.is_certain(plain, &looked) {
            return Ok(true);
        }
        let entry = self.job.index.entry(at);
        self.settle(looked, directory, at..at + 1, &entry)
    }

    /// Returns whether a file with the metadata `looked` certainly matches its entry.
    #[inline]
    pub(super) fn is_certain(&self, plain: &PlainEntry<'_>, looked: &io::Result<Metadata>) -> bool {
        looked.as_ref().is_ok_and(|metadata| {
            own_mode(metadata)
                .is_some_and(|mode| plain.is_certainly(&recorded(metadata), mode, self.index_time))
        })
    }

    /// Applies the metadata of a file to its entries (the stages of one path; `entry` is the first).
    /// Returns whether the path exists and is not a directory.
    fn settle(
        &mut self,
        looked: io::Result<Metadata>,
        directory: &Directory,
        entries: Range<usize>,
        entry: &EntryRef<'_>,
    ) -> Result<bool, Error> {
        let (job, position) = (self.job, entries.start);
        let metadata = match looked {
            Ok(metadata) => metadata,
            Err(error) if is_missing(&error) => {
                let change = (entry.stage() == 0).then_some(FileChange::Deleted);
                if !entry.flags.contains(Flags::SKIP_WORKTREE) || change.is_none() {
                    self.report(position, change, 0, SubmoduleState::default());
                }
                return Ok(false);
            }
            Err(error) => {
                self.problem(entry.path, error);
                return Ok(false);
            }
        };
        if entry.flags.contains(Flags::SKIP_WORKTREE) {
            self.outcome.present_sparse += 1;
        }
        let is_there = !metadata.is_directory();
        if entry.stage() != 0 {
            // If the file system has no modes, Git uses the mode of our side.
            let ours = entries
                .map(|at| job.index.entry(at))
                .find(|e| e.stage() == 2);
            let mode = self
                .staged_mode(&ours.unwrap_or(*entry), &metadata)
                .unwrap_or(0);
            self.report(position, None, mode, SubmoduleState::default());
            return Ok(is_there);
        }
        self.compare(directory, position, entry, &metadata)?;
        Ok(is_there)
    }
}
