//! Untracked and ignored files and directories.

use super::remembered::{Place, Seen};
use super::scan::Scanner;
use super::task::Task;
use super::{Ignored, Untracked};
use crate::pathspec;
use bstr::{BStr, BString, ByteSlice};
use pronto_io::dir::{Directory, EntryKind};
use pronto_io::untrusted::{self, LARGEST_POINTER_BYTES, Links};
use std::path::{Path, PathBuf};

/// Directories nested deeper are taken to be untracked as a whole.
const DEEPEST: usize = 1000;

/// The state of a directory without tracked files, the strongest last.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum State {
    /// Nothing to name: empty, or only what does not count.
    Nothing,
    /// Nothing but ignored files.
    Ignored,
    /// At least one untracked file.
    Untracked,
}

/// Options for examining an untracked directory.
#[derive(Clone, Copy)]
pub(super) struct Look {
    /// Only its state is wanted, none of the names in it.
    pub(super) check_only: bool,
    /// Any file settles its state.
    pub(super) stop_at_first: bool,
    pub(super) depth: usize,
    /// The position of the directory in the untracked cache, if there is one.
    pub(super) place: Option<Place>,
}

impl Scanner<'_> {
    /// A name that the index does not know, in a directory that it knows.
    pub(super) fn meet_untracked(
        &mut self,
        directory: &Directory,
        path: &BStr,
        name: &[u8],
        kind: EntryKind,
        tasks: &mut Vec<Task>,
    ) {
        let look = Look {
            check_only: false,
            stop_at_first: false,
            depth: 0,
            place: self.here,
        };
        self.judge(directory, path, name, kind, look, Some(tasks));
    }

    /// Names every file in an untracked directory. Its place in a cache of all files, if there is
    /// one, is the place at hand.
    pub(super) fn scan_untracked(&mut self, path: &BString, tasks: &mut Vec<Task>) {
        let path = path.as_bstr();
        if self.recall_vouched(path) {
            return;
        }
        let directory = match self.open_to_list(path) {
            Ok(directory) => directory,
            Err(error) => return self.report_unreadable(path, error),
        };
        let seen = self.see(&directory, path, true);
        if let Some(node) = seen.as_ref().and_then(|seen| seen.valid) {
            return self.recall(&directory, path, &[], node, tasks);
        }
        let listed = self.list(&directory);
        let is_read = listed.is_ok();
        match listed {
            Ok(listing) => {
                for (name, kind) in listing.iter() {
                    let kind = self.kind(&directory, name, kind);
                    self.meet_untracked(&directory, path, name, kind, tasks);
                }
                self.put_back(listing);
            }
            Err(error) => self.report_unreadable(path, error),
        }
        if seen.is_some() {
            self.end_news(is_read);
        }
    }

    /// Decides about one name, adds it to the result unless only a state is wanted, and returns its
    /// contribution to the state of its directory. Directories that must be walked completely
    /// become tasks.
    fn judge(
        &mut self,
        directory: &Directory,
        path: &BStr,
        name: &[u8],
        kind: EntryKind,
        look: Look,
        tasks: Option<&mut Vec<Task>>,
    ) -> State {
        let is_directory = match kind {
            EntryKind::Directory => true,
            EntryKind::File | EntryKind::Symlink => false,
            EntryKind::Other | EntryKind::Unknown => return State::Nothing,
        };
        if name.eq_ignore_ascii_case(b".git") && (name == b".git" || self.job.options.ignore_case) {
            return State::Nothing;
        }
        let mut full: BString = path.to_owned();
        full.extend_from_slice(name);
        let relation = self.job.pathspec.directory(full.as_bstr());
        if relation == pathspec::Directory::Outside
            && !self.job.pathspec.matches(full.as_bstr(), is_directory)
        {
            return State::Nothing;
        }
        self.stack
            .enter(path.strip_suffix(b"/").unwrap_or(path).as_bstr());
        let ignored = self.stack.is_ignored(full.as_bstr(), is_directory);
        if ignored && !self.wants_ignored() {
            return State::Ignored;
        }
        let state = if is_directory {
            full.push(b'/');
            self.judge_directory(directory, &full, name, ignored, look, tasks)
        } else if !self.job.pathspec.matches(full.as_bstr(), false) {
            State::Nothing
        } else if ignored {
            State::Ignored
        } else {
            State::Untracked
        };
        if state == State::Untracked {
            self.note_untracked(name, is_directory);
        }
        if !look.check_only {
            match state {
                State::Untracked => self.add_untracked(full),
                State::Ignored if self.wants_ignored() => self.add_ignored(full),
                _ => {}
            }
        }
        state
    }

    pub(super) fn judge_directory(
        &mut self,
        parent: &Directory,
        full: &BString,
        name: &[u8],
        ignored: bool,
        look: Look,
        tasks: Option<&mut Vec<Task>>,
    ) -> State {
        let options = &self.job.options;
        let own = if ignored {
            State::Ignored
        } else {
            State::Untracked
        };
        if self.has_repository(parent, full, name) {
            let inside = self.job.pathspec.matches(full.as_bstr(), true);
            return if inside { own } else { State::Nothing };
        }
        let matching = options.ignored == Ignored::Matching;
        if options.untracked == Untracked::All {
            if ignored && matching {
                return State::Ignored;
            }
            let place = look.place.filter(|_| self.caches_all());
            let place = place.map(|place| self.place_below(place, name.as_bstr()));
            self.note_below(name);
            return self.go_through(full, place, tasks);
        }
        let bare = full.strip_suffix(b"/").unwrap_or(full).as_bstr();
        if !ignored && self.job.pathspec.leads_below(bare) {
            return self.go_through(full, None, tasks);
        }
        if ignored && (matching || options.show_empty_directories) {
            return State::Ignored;
        }
        if options.show_empty_directories && !self.wants_ignored() {
            return State::Untracked;
        }
        let check_only = !self.wants_ignored();
        let look = Look {
            check_only,
            stop_at_first: check_only && ignored,
            depth: look.depth + 1,
            place: look
                .place
                .map(|place| self.place_below(place, name.as_bstr())),
        };
        self.note_below(name);
        let (ignored_before, untracked_before) =
            (self.outcome.ignored.len(), self.outcome.untracked.len());
        let mut state = self.state(full, look);
        if state == State::Ignored {
            if matching {
                state = State::Nothing;
            } else {
                self.outcome.ignored.truncate(ignored_before);
            }
        }
        if self.wants_ignored() {
            self.outcome.untracked.truncate(untracked_before);
        }
        state
    }

    /// Names every file in the directory, now or as a task. `place` is where it is in a cache of all
    /// files.
    fn go_through(
        &mut self,
        full: &BString,
        place: Option<Place>,
        tasks: Option<&mut Vec<Task>>,
    ) -> State {
        let path = full.clone();
        match tasks {
            Some(tasks) => tasks.push(Task::Untracked { path, place }),
            None => {
                let before = self.here;
                let mut own = vec![Task::Untracked { path, place }];
                while let Some(Task::Untracked { path, place }) = own.pop() {
                    self.here = place;
                    self.scan_untracked(&path, &mut own);
                }
                self.here = before;
            }
        }
        State::Nothing
    }

    /// Returns the state of the directory at `full`.
    pub(super) fn state(&mut self, full: &BString, look: Look) -> State {
        if look.depth > DEEPEST {
            return State::Untracked;
        }
        let path = full.as_bstr();
        let seen = look
            .place
            .and_then(|place| self.see_untracked(place, path).ok());
        match &seen {
            Some(Seen {
                valid: Some(node), ..
            }) => self.recall_state(full, *node, look, seen.as_ref()),
            _ => self.read_state(full, look, seen.as_ref()),
        }
    }

    /// Returns the state of the directory at `full`. Names are read up to the first untracked file
    /// if only the state is needed.
    pub(super) fn read_state(&mut self, full: &BString, look: Look, seen: Option<&Seen>) -> State {
        let path = full.as_bstr();
        let listed = self.open_to_list(path).and_then(|directory| {
            let listing = self.list(&directory)?;
            Ok((directory, listing))
        });
        let (directory, listing) = match listed {
            Ok(listed) => listed,
            Err(error) => {
                self.report_unreadable(path, error);
                return State::Nothing;
            }
        };
        if let Some(seen) = seen {
            self.start_news(path, seen, true);
        }
        let place = seen.map(|seen| seen.place);
        let look = Look { place, ..look };
        let mut state = State::Nothing;
        for (name, kind) in listing.iter() {
            let kind = self.kind(&directory, name, kind);
            state = state.max(self.judge(&directory, path, name, kind, look, None));
            if look.check_only {
                if look.stop_at_first && state >= State::Ignored {
                    state = State::Ignored;
                    break;
                }
                if state == State::Untracked {
                    break;
                }
            }
        }
        self.put_back(listing);
        if seen.is_some() {
            self.end_news(true);
        }
        state
    }

    fn report_unreadable(&mut self, path: &BStr, error: std::io::Error) {
        if error.kind() != std::io::ErrorKind::NotFound {
            self.problem(path, error);
        }
    }

    /// Whether the directory `name` of `parent` is the top of another repository.
    fn has_repository(&mut self, parent: &Directory, full: &BString, name: &[u8]) -> bool {
        let mut git = name.to_vec();
        git.extend_from_slice(b"/.git");
        // One look that almost always says no.
        parent.metadata(&git).is_ok() && self.is_repository(full.as_bstr())
    }

    /// Whether there is a repository other than the one at hand in the directory at `path`.
    pub(super) fn is_repository(&self, path: &BStr) -> bool {
        use std::os::unix::ffi::OsStrExt;
        let directory = self.job.work_tree.join(std::ffi::OsStr::from_bytes(path));
        let Some(found) = repository_at(&directory) else {
            return false;
        };
        let same = |one: &Path, two: &Path| match (one.canonicalize(), two.canonicalize()) {
            (Ok(one), Ok(two)) => one == two,
            _ => false,
        };
        !same(&directory.join(".git"), self.job.git_dir) && !same(&found, self.job.git_dir)
    }
}

/// The repository whose worktree `directory` looks to be the top of.
fn repository_at(directory: &Path) -> Option<PathBuf> {
    let read = |file: &Path| untrusted::read(file, Links::Follow, LARGEST_POINTER_BYTES);
    let git = directory.join(".git");
    let metadata = git.symlink_metadata().ok()?;
    let git_dir = if metadata.is_file() {
        use std::os::unix::ffi::OsStrExt;
        let content = read(&git).ok()?;
        let target = content.strip_prefix(b"gitdir: ")?.trim_end();
        directory.join(std::ffi::OsStr::from_bytes(target))
    } else {
        git
    };
    let head = std::fs::symlink_metadata(git_dir.join("HEAD")).is_ok();
    let common = match read(&git_dir.join("commondir")) {
        Ok(common) => {
            use std::os::unix::ffi::OsStrExt;
            git_dir.join(std::ffi::OsStr::from_bytes(common.trim_end()))
        }
        Err(_) => git_dir.clone(),
    };
    (head && common.join("objects").is_dir() && common.join("refs").is_dir()).then_some(git_dir)
}
