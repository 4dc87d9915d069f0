//! A directory with tracked files.
//!
//! Budget of one in which nothing has changed, for each name in it: one pass over the bytes of its
//! entry, one `fstatat` with the name as it lies in the index, one comparison of numbers, and one
//! step through the listing. Nothing is allocated or copied for a file. That there is nothing
//! untracked is told by counting, see [`Scanner::has_only`].

use super::content::digest_file;
use super::scan::Scanner;
use super::scheduler::Task;
use super::{Change, SubmoduleState};
use crate::names::{Name, compare, gallop};
use crate::{Error, pathspec, recorded};
use bstr::{BStr, ByteSlice};
use pronto_index::{EntryRef, Flags, Stat, mode};
use pronto_io::dir::{Directory, EntryKind, Listing, Metadata, is_missing};
use std::io;
use std::ops::Range;

/// What is known of the names in a directory once its tracked files have been looked at.
#[derive(Default)]
struct Met<'a> {
    /// Tracked directories.
    directories: Vec<Name<'a>>,
    /// Tracked files that are there, as something else than a directory.
    present: usize,
}

impl Scanner<'_> {
    pub(super) fn scan_tracked(
        &mut self,
        entries: Range<usize>,
        (prefix_len, ignored): (usize, bool),
        tasks: &mut Vec<Task>,
    ) -> Result<(), Error> {
        let job = self.job;
        let lists = self.wants_untracked() && !ignored;
        let path: &BStr = match entries.is_empty() {
            true => BStr::new(b""),
            false => job.index.path(entries.start)[..prefix_len].as_bstr(),
        };
        if self.pass_over(&entries, (path, lists)) {
            return Ok(());
        }
        let directory = match self.open(path) {
            Ok(directory) => directory,
            Err(error) => return self.all_missing(entries, (path, &error)),
        };
        let seen = self.see(&directory, path, lists);
        let mut met = Met::default();
        let mut at = entries.start;
        while at < entries.end {
            let entry = job.index.entry(at);
            let rest = &entry.path[prefix_len..];
            if rest.find_byte(b'/').is_some_and(|slash| slash > 0) {
                let child = Name::at(job.index, at, entries.end, prefix_len);
                at = child.entries.end;
                met.directories.push(child);
                continue;
            }
            let stages = match entry.stage() {
                0 => at..at + 1,
                _ => {
                    let same = |other| job.index.path(other) == entry.path;
                    at..gallop(at, entries.end, same)
                }
            };
            at = stages.end;
            if job.options.tracked
                && self.must_look(&stages)
                && job.pathspec.matches(entry.path, false)
            {
                let is_there = self.check(&directory, stages, (&entry, prefix_len))?;
                met.present += usize::from(is_there);
            }
        }
        self.go_below(&met, (prefix_len, ignored, lists), seen.as_ref(), tasks);
        if let Some(node) = seen.as_ref().and_then(|seen| seen.valid) {
            let children = Name::all(job.index, entries, prefix_len);
            self.recall(&directory, (path, &children), node, tasks);
        } else if lists {
            self.meet_all(&directory, (path, entries, &met), tasks);
        }
        Ok(())
    }

    /// A task for each directory with tracked files that has to be looked at.
    fn go_below(
        &mut self,
        met: &Met<'_>,
        (prefix_len, ignored, lists): (usize, bool, bool),
        seen: Option<&super::remember::Seen>,
        tasks: &mut Vec<Task>,
    ) {
        let job = self.job;
        for child in &met.directories {
            let end = prefix_len + child.name.len();
            if child.is_sparse(job.index, end) {
                continue;
            }
            let below = job.index.path(child.entries.start)[..end].as_bstr();
            if job.pathspec.directory(below) == pathspec::Directory::Outside {
                continue;
            }
            let (ignored, place) = match seen {
                Some(seen) => self.place_of(seen, below, prefix_len),
                None => (ignored || (prefix_len == 0 && self.is_hidden(below)), None),
            };
            if !self.must_look(&child.entries) && (ignored || !lists) {
                continue;
            }
            tasks.push(Task::Tracked {
                entries: child.entries.clone(),
                prefix_len: end + 1,
                ignored,
                place,
            });
        }
    }

    /// Everything in the listing of a directory with tracked files.
    fn meet_all(
        &mut self,
        directory: &Directory,
        (path, entries, met): (&BStr, Range<usize>, &Met<'_>),
        tasks: &mut Vec<Task>,
    ) {
        match self.list(directory) {
            Ok(listing) => {
                if !self.has_only(&listing, met) {
                    let children = Name::all(self.job.index, entries, path.len());
                    for (name, kind) in listing.iter() {
                        self.meet(directory, (path, &children), (name, kind), tasks);
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

    /// Whether nothing is in the directory but what is tracked: every directory is, and of all
    /// else there is as much as was found by its tracked name.
    fn has_only(&self, listing: &Listing, met: &Met<'_>) -> bool {
        let mut others = 0;
        for (name, kind) in listing.iter() {
            match kind {
                EntryKind::Directory => {
                    let find = |known: &Name<'_>| compare((known.name, true), (name, true));
                    // Nothing of that name counts, wherever it is.
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

    /// A name in the listing of a directory with tracked files: passed over if it is tracked.
    fn meet(
        &mut self,
        directory: &Directory,
        (path, children): (&BStr, &[Name<'_>]),
        (name, kind): (&[u8], EntryKind),
        tasks: &mut Vec<Task>,
    ) {
        let find = |is_directory| {
            let wanted = (name, is_directory);
            children
                .binary_search_by(|child| compare((child.name, child.is_directory), wanted))
                .ok()
        };
        let kind = self.kind(directory, name, kind);
        let is_directory = kind == EntryKind::Directory;
        if is_directory {
            // A directory below which there are entries is a task of its own.
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
            let same = |child: &&Name<'_>| {
                child.is_directory == is_directory && child.name.eq_ignore_ascii_case(name)
            };
            if children.iter().any(|child| same(&child)) {
                return;
            }
        }
        self.meet_untracked(directory, path, (name, kind), tasks);
    }

    /// Whether nothing untracked in the directory `path` can count, because it is ignored: then it
    /// need not be read. Without a cache asked only at the top, where it costs little and says
    /// most.
    pub(super) fn is_hidden(&mut self, path: &BStr) -> bool {
        if !self.wants_untracked() || self.wants_ignored() {
            return false;
        }
        let parent = path.rfind_byte(b'/').map_or(0, |slash| slash);
        self.stack.enter(path[..parent].as_bstr());
        self.stack.is_ignored(path, true)
    }

    /// The directory of these entries is not there: so are their files.
    fn all_missing(
        &mut self,
        entries: Range<usize>,
        (path, error): (&BStr, &io::Error),
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
                self.report(at, Some(Change::Deleted), 0, SubmoduleState::default());
            }
            at = end;
        }
        Ok(())
    }

    /// Compares the file of `entries` (stages of one path, of which `entry` is the first) in
    /// `directory` with its entry, or finds its mode if it is in conflict. Whether something is
    /// there that is not a directory.
    fn check(
        &mut self,
        directory: &Directory,
        entries: Range<usize>,
        (entry, prefix_len): (&EntryRef<'_>, usize),
    ) -> Result<bool, Error> {
        let job = self.job;
        let position = entries.start;
        if self.is_exempt(entry) && entry.stage() == 0 {
            return Ok(false);
        }
        self.outcome.stat_count += 1;
        let looked = match job.index.c_path(position, prefix_len) {
            Some(name) => directory.metadata_of(name),
            None => directory.metadata(&entry.path[prefix_len..]),
        };
        let metadata = match looked {
            Ok(metadata) => metadata,
            Err(error) if is_missing(&error) => {
                let change = (entry.stage() == 0).then_some(Change::Deleted);
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
            // Git takes the mode from "ours" where the file system does not tell.
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

    fn compare(
        &mut self,
        directory: &Directory,
        position: usize,
        entry: &EntryRef<'_>,
        metadata: &Metadata,
    ) -> Result<(), Error> {
        let clean = SubmoduleState::default();
        let is_link = entry.mode & mode::TYPE == mode::GITLINK;
        let is_racy = !is_link && entry.stat.is_racy_by_second(self.index_time);
        self.outcome.racy_count += usize::from(is_racy);
        if is_link && metadata.is_directory() {
            let state = self.job.submodules.inspect(entry.path, entry.id)?;
            if !state.is_clean() {
                self.report(position, Some(Change::Modified), mode::GITLINK, state);
            }
            return Ok(());
        }
        let Some(now) = self.staged_mode(entry, metadata) else {
            self.report(position, Some(Change::Deleted), 0, clean);
            return Ok(());
        };
        if entry.flags.contains(Flags::INTENT_TO_ADD) {
            self.report(position, Some(Change::Added), now, clean);
            return Ok(());
        }
        if now & mode::TYPE != entry.mode & mode::TYPE {
            self.report(position, Some(Change::TypeChanged), now, clean);
            return Ok(());
        }
        if (now ^ entry.mode) & 0o100 != 0 {
            self.report(position, Some(Change::Modified), now, clean);
            return Ok(());
        }
        let stat = recorded(metadata);
        let matches = entry.stat.matches(&stat, self.job.options.rules)
            && (entry.stat.size_bytes != 0 || self.is_empty_blob(entry));
        if matches && !entry.stat.is_racy(self.index_time) {
            self.verify(position);
            return Ok(());
        }
        let differs = self.job.options.facts_decide && self.facts_differ(entry, stat);
        if differs || self.is_settled(entry, metadata) {
            self.report(position, Some(Change::Modified), now, clean);
            return Ok(());
        }
        self.compare_content(directory, position, (entry, now), (metadata, stat, matches));
        Ok(())
    }

    /// Decides by the content what the facts do not tell, or only seem to.
    fn compare_content(
        &mut self,
        directory: &Directory,
        position: usize,
        (entry, now): (&EntryRef<'_>, u32),
        (metadata, stat, matches): (&Metadata, Stat, bool),
    ) {
        let name = entry.path.rfind_byte(b'/').map_or(0, |slash| slash + 1);
        let digest = digest_file(
            (directory, &entry.path[name..]),
            metadata,
            (entry.path, entry.id),
            (self.job.conversion, self.job.index.kind()),
        );
        match digest {
            Ok(id) if *id == *entry.id => {
                if !matches {
                    self.outcome.refreshed.push((position, stat));
                }
                self.verify(position);
                return;
            }
            Ok(_) if matches => {
                // Nothing but the content tells: leave a trace for the next reader.
                let trace = Stat {
                    size_bytes: 0,
                    ..entry.stat
                };
                self.outcome.refreshed.push((position, trace));
            }
            Err(error) if error.kind() != io::ErrorKind::InvalidData => {
                self.problem(entry.path, error);
            }
            Ok(_) | Err(_) => {}
        }
        let clean = SubmoduleState::default();
        self.report(position, Some(Change::Modified), now, clean);
    }

    /// Whether facts other than nanoseconds, which Git does not go by, differ.
    fn facts_differ(&self, entry: &EntryRef<'_>, now: Stat) -> bool {
        let rules = self.job.options.rules;
        !entry.stat.matches(&now.without_nanoseconds(), rules)
            || (entry.stat.size_bytes == 0 && !self.is_empty_blob(entry))
    }

    /// Whether a file whose facts differ, or say too little, counts as modified without a look at
    /// its content.
    fn is_settled(&self, entry: &EntryRef<'_>, metadata: &Metadata) -> bool {
        let recorded_size = entry.stat.size_bytes;
        let size = Stat::recorded_size(metadata.size_bytes);
        !self.job.options.compare_content
            || (recorded_size != 0 && recorded_size != size)
            || !(metadata.is_file() || metadata.is_symlink())
    }

    fn is_empty_blob(&self, entry: &EntryRef<'_>) -> bool {
        entry.id == pronto_hash::ObjectId::empty_blob(self.job.index.kind())
    }

    /// The mode the file would be staged with; `None` if a directory or something special is in
    /// its place.
    fn staged_mode(&self, entry: &EntryRef<'_>, metadata: &Metadata) -> Option<u32> {
        let options = &self.job.options;
        if metadata.is_symlink() {
            Some(mode::SYMLINK)
        } else if !metadata.is_directory() {
            // A device or a pipe counts as a file that differs.
            let kind = entry.mode & mode::TYPE;
            if kind == mode::SYMLINK && !options.has_symlinks {
                return Some(mode::SYMLINK);
            }
            if !options.trust_executable && kind == mode::FILE & mode::TYPE {
                return Some(entry.mode);
            }
            let trusted = options.trust_executable && metadata.is_executable();
            Some(if trusted {
                mode::EXECUTABLE
            } else {
                mode::FILE
            })
        } else if self.is_repository(entry.path) {
            Some(mode::GITLINK)
        } else {
            None
        }
    }
}
