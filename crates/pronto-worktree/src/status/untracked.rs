//! Untracked and ignored files and directories.

use super::nested::{EnteredDirectory, ExamineOptions, Inside, NestedState, NestedStep};
use super::remembered::CachePosition;
use super::scan::Scanner;
use super::task::DirectoryTask;
use super::{Ignored, Untracked};
use crate::pathspec;
use bstr::{BStr, BString, ByteSlice};
use pronto_io::dir::{Directory, EntryKind};
use pronto_io::untrusted::{self, LARGEST_POINTER_BYTES, SymlinkPolicy};
use std::path::{Path, PathBuf};

impl Scanner<'_> {
    /// Processes a name without index entries in a directory with tracked files.
    pub(super) fn meet_untracked(
        &mut self,
        directory: &Directory,
        path: &BStr,
        name: &[u8],
        kind: EntryKind,
        tasks: &mut Vec<DirectoryTask>,
    ) {
        let look = ExamineOptions {
            check_only: false,
            stop_at_first: false,
            depth: 0,
            place: self.here,
        };
        if let NestedStep::Enter(entered) =
            self.judge(directory, path, name, kind, look, Some(tasks))
        {
            let state = self.state(&entered.full, entered.inside.look);
            self.leave(entered, look, state);
        }
    }

    /// Lists every file in an untracked directory. The current cache position is that of the directory
    /// in a cache of all files, if such a cache is in use.
    pub(super) fn scan_untracked(&mut self, path: &BString, tasks: &mut Vec<DirectoryTask>) {
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

    /// Determines the state of one name, adds the name to the result unless only a state is needed, and
    /// returns its contribution to the state of its directory. A directory must be entered to determine
    /// its state; [`leave`](Self::leave) completes the work afterwards. Directories that must be walked
    /// completely become tasks.
    pub(super) fn judge(
        &mut self,
        directory: &Directory,
        path: &BStr,
        name: &[u8],
        kind: EntryKind,
        look: ExamineOptions,
        tasks: Option<&mut Vec<DirectoryTask>>,
    ) -> NestedStep<EnteredDirectory> {
        let is_directory = match kind {
            EntryKind::Directory => true,
            EntryKind::File | EntryKind::Symlink => false,
            EntryKind::Other | EntryKind::Unknown => {
                return NestedStep::Known(NestedState::Nothing);
            }
        };
        if name.eq_ignore_ascii_case(b".git") && (name == b".git" || self.job.options.ignore_case) {
            return NestedStep::Known(NestedState::Nothing);
        }
        let mut full: BString = path.to_owned();
        full.extend_from_slice(name);
        let relation = self.job.pathspec.directory(full.as_bstr());
        if relation == pathspec::DirectoryRelation::Outside
            && !self.job.pathspec.matches(full.as_bstr(), is_directory)
        {
            return NestedStep::Known(NestedState::Nothing);
        }
        self.stack
            .enter(path.strip_suffix(b"/").unwrap_or(path).as_bstr());
        let ignored = self.stack.is_ignored(full.as_bstr(), is_directory);
        if ignored && !self.wants_ignored() {
            return NestedStep::Known(NestedState::Ignored);
        }
        let state = if is_directory {
            full.push(b'/');
            match self.judge_directory(directory, &full, name, ignored, look, tasks) {
                NestedStep::Known(state) => state,
                NestedStep::Enter(inside) => {
                    let name_start = path.len();
                    return NestedStep::Enter(EnteredDirectory {
                        full,
                        name_start,
                        inside,
                    });
                }
            }
        } else if !self.job.pathspec.matches(full.as_bstr(), false) {
            NestedState::Nothing
        } else if ignored {
            NestedState::Ignored
        } else {
            NestedState::Untracked
        };
        NestedStep::Known(self.conclude(full, path.len(), look, state))
    }

    /// Adds the path `full`, whose last component starts at `name_start`, to the result unless only a
    /// state is needed. Returns the state.
    fn conclude(
        &mut self,
        full: BString,
        name_start: usize,
        look: ExamineOptions,
        state: NestedState,
    ) -> NestedState {
        if state == NestedState::Untracked {
            let bare = full.strip_suffix(b"/");
            let name = &bare.unwrap_or(&full)[name_start..];
            self.note_untracked(name, bare.is_some());
        }
        if !look.check_only {
            match state {
                NestedState::Untracked => self.add_untracked(full),
                NestedState::Ignored if self.wants_ignored() => self.add_ignored(full),
                _ => {}
            }
        }
        state
    }

    /// Completes [`judge`](Self::judge) for a directory that was found to have the state `state`.
    pub(super) fn leave(
        &mut self,
        entered: EnteredDirectory,
        look: ExamineOptions,
        state: NestedState,
    ) -> NestedState {
        let state = self.leave_directory(&entered.inside, state);
        self.conclude(entered.full, entered.name_start, look, state)
    }

    /// Removes the names that the name of an entered directory replaces from the result. Returns the
    /// contribution of the directory to the state of its parent.
    pub(super) fn leave_directory(&mut self, inside: &Inside, state: NestedState) -> NestedState {
        let mut state = state;
        if state == NestedState::Ignored {
            if self.job.options.ignored == Ignored::Matching {
                state = NestedState::Nothing;
            } else {
                self.outcome.ignored.truncate(inside.ignored_before);
            }
        }
        if self.wants_ignored() {
            self.outcome.untracked.truncate(inside.untracked_before);
        }
        state
    }

    pub(super) fn judge_directory(
        &mut self,
        parent: &Directory,
        full: &BString,
        name: &[u8],
        ignored: bool,
        look: ExamineOptions,
        tasks: Option<&mut Vec<DirectoryTask>>,
    ) -> NestedStep<Inside> {
        let options = &self.job.options;
        let own = if ignored {
            NestedState::Ignored
        } else {
            NestedState::Untracked
        };
        if self.has_repository(parent, full, name) {
            let inside = self.job.pathspec.matches(full.as_bstr(), true);
            return NestedStep::Known(if inside { own } else { NestedState::Nothing });
        }
        let matching = options.ignored == Ignored::Matching;
        if options.untracked == Untracked::All {
            if ignored && matching {
                return NestedStep::Known(NestedState::Ignored);
            }
            let place = look.place.filter(|_| self.caches_all());
            let place = place.map(|place| self.place_below(place, name.as_bstr()));
            self.note_below(name);
            return NestedStep::Known(self.go_through(full, place, tasks));
        }
        let bare = full.strip_suffix(b"/").unwrap_or(full).as_bstr();
        if !ignored && self.job.pathspec.leads_below(bare) {
            return NestedStep::Known(self.go_through(full, None, tasks));
        }
        if ignored && (matching || options.show_empty_directories) {
            return NestedStep::Known(NestedState::Ignored);
        }
        if options.show_empty_directories && !self.wants_ignored() {
            return NestedStep::Known(NestedState::Untracked);
        }
        let check_only = !self.wants_ignored();
        let look = ExamineOptions {
            check_only,
            stop_at_first: check_only && ignored,
            depth: look.depth + 1,
            place: look
                .place
                .map(|place| self.place_below(place, name.as_bstr())),
        };
        self.note_below(name);
        NestedStep::Enter(Inside {
            look,
            ignored_before: self.outcome.ignored.len(),
            untracked_before: self.outcome.untracked.len(),
        })
    }

    /// Lists every file in the directory, immediately or as a task. `place` is the position in a cache
    /// of all files.
    fn go_through(
        &mut self,
        full: &BString,
        place: Option<CachePosition>,
        tasks: Option<&mut Vec<DirectoryTask>>,
    ) -> NestedState {
        let path = full.clone();
        match tasks {
            Some(tasks) => tasks.push(DirectoryTask::Untracked { path, place }),
            None => {
                let before = self.here;
                let mut own = vec![DirectoryTask::Untracked { path, place }];
                while let Some(DirectoryTask::Untracked { path, place }) = own.pop() {
                    self.here = place;
                    self.scan_untracked(&path, &mut own);
                }
                self.here = before;
            }
        }
        NestedState::Nothing
    }

    pub(super) fn report_unreadable(&mut self, path: &BStr, error: std::io::Error) {
        if error.kind() != std::io::ErrorKind::NotFound {
            self.problem(path, error);
        }
    }

    /// Returns whether the directory `name` of `parent` is the top of another repository.
    fn has_repository(&mut self, parent: &Directory, full: &BString, name: &[u8]) -> bool {
        let mut git = name.to_vec();
        git.extend_from_slice(b"/.git");
        // This lookup almost always finds no file.
        parent.metadata(&git).is_ok() && self.is_repository(full.as_bstr())
    }

    /// Returns whether the directory at `path` contains a repository other than this one.
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

/// Returns the repository for which `directory` appears to be the top of the worktree.
fn repository_at(directory: &Path) -> Option<PathBuf> {
    let read = |file: &Path| untrusted::read(file, SymlinkPolicy::Follow, LARGEST_POINTER_BYTES);
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
