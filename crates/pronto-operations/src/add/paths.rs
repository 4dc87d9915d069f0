//! Finds invalid and ignored paths among the given ones.

use std::collections::BTreeSet;

use bstr::{BStr, BString, ByteSlice};
use pronto_index::{EntryRef, Flags, mode};
use pronto_io::dir::{Directory, EntryKind};
use pronto_worktree::ignore::IgnoreStack;
use pronto_worktree::status::Outcome;

use super::{AddChange, AddRun, AddSelection, Event};
use crate::status::read_ignore_file;
use crate::{Error, ErrorKind, Result, path};

impl AddRun<'_> {
    /// Returns the error if a path cannot be staged because of its position: beyond a symbolic
    /// link, or in a submodule.
    pub(super) fn misplaced(&self) -> Option<Error> {
        let refused = |message| Some(Error::new(ErrorKind::Refused, message));
        let pathspec = &self.options.pathspec;
        for at in 0..pathspec.len() {
            let path = pathspec.path(at);
            if is_beyond_link(&self.prepared.top, path.as_bstr()) {
                let spec = pathspec.original(at);
                return refused(format!("pathspec '{spec}' is beyond a symbolic link"));
            }
        }
        let prefix = self.repository.prefix_or_empty();
        let links = || {
            let entries = self.index().iter();
            entries.filter(|entry| entry.mode & mode::TYPE == mode::GITLINK)
        };
        if !prefix.is_empty()
            && let Some(entry) = links().find(|entry| prefix.strip_suffix(b"/") == Some(entry.path))
        {
            return refused(format!("in unpopulated submodule '{}'", entry.path));
        }
        for entry in links() {
            for at in 0..pathspec.len() {
                let path = pathspec.path(at);
                let below = path.strip_prefix(entry.path.as_bytes());
                if below.is_some_and(|rest| rest.len() > 1 && rest[0] == b'/') {
                    let (spec, module) = (pathspec.original(at), entry.path);
                    return refused(format!("Pathspec '{spec}' is in submodule '{module}'"));
                }
            }
        }
        None
    }

    /// Stops the operation if a pathspec matches no tracked file.
    pub(super) fn refuse_untracked(&mut self) {
        let pathspec = &self.options.pathspec;
        let mut seen: Vec<bool> = (0..pathspec.len())
            .map(|at| pathspec.excludes(at))
            .collect();
        for entry in self.index().iter() {
            if seen.iter().all(|seen| *seen) {
                return;
            }
            pathspec.mark(entry.path, &mut seen);
        }
        let unknown: Vec<Event> = (0..seen.len())
            .filter(|at| !seen[*at])
            .map(|at| Event::Unmatched(pathspec.original(at).to_owned()))
            .collect();
        if !unknown.is_empty() {
            self.report.events.extend(unknown);
            self.report.is_explained = true;
            self.report
                .refuse("some pathspecs did not match any file(s) known to git");
        }
    }

    /// Returns the ignored paths that were named explicitly, or that are leading directories of
    /// named paths.
    pub(super) fn ignored(&self) -> Result<Vec<BString>> {
        let pathspec = &self.options.pathspec;
        let prepared = self.prepared;
        let read = |directory: &BStr| {
            let (index, objects) = (&prepared.index, Some(prepared.objects));
            read_ignore_file(&prepared.top, b".gitignore", index, objects, directory)
        };
        let mut stack = IgnoreStack::new(&self.patterns, Some(&read));
        let mut ignored = BTreeSet::new();
        for at in (0..pathspec.len()).filter(|at| !pathspec.excludes(*at)) {
            let path = pathspec.path(at);
            let ends = path.find_iter("/").chain([path.len()]);
            let mut start = 0;
            for end in ends.filter(|end| *end > 0) {
                let part = path[..end].as_bstr();
                if end < start || !pathspec.asks_for(part) {
                    break;
                }
                let (directory, name) = path::split(part);
                if name.is_empty() || name == b".git" {
                    break;
                }
                start = end + 1;
                let opened = prepared.top.open_beneath(directory);
                let kind = opened.and_then(|directory| directory.metadata(name));
                let Ok(kind) = kind.map(|metadata| metadata.kind()) else {
                    break;
                };
                let is_directory = kind == EntryKind::Directory;
                if !is_directory && self.index().find(part, 0).is_ok() {
                    break;
                }
                stack.enter(directory.into());
                if stack.is_ignored(part, is_directory) {
                    if self.index().stages(part).is_empty() {
                        ignored.insert(part.to_owned());
                    }
                    break;
                }
            }
        }
        Ok(ignored.into_iter().collect())
    }

    /// Finds pathspecs that match no file. Returns an error for the first one that has to match.
    pub(super) fn unmatched(
        &mut self,
        outcome: &Outcome,
        ignored: &mut Vec<BString>,
    ) -> Option<Error> {
        let pathspec = &self.options.pathspec;
        let mut seen: Vec<bool> = (0..pathspec.len())
            .map(|at| pathspec.excludes(at))
            .collect();
        let index = self.index();
        let skipped = |entry: &EntryRef<'_>| {
            entry.flags.contains(Flags::SKIP_WORKTREE) || self.is_outside(entry.path)
        };
        let entries = index.iter().filter(|entry| !skipped(entry));
        let untracked = outcome.untracked.iter().map(|path| path.as_bstr());
        for path in untracked.chain(entries.map(|entry| entry.path)) {
            if seen.iter().all(|seen| *seen) {
                break;
            }
            pathspec.mark(path, &mut seen);
        }
        let mut outside = Vec::new();
        for at in (0..seen.len()).filter(|at| !seen[*at]) {
            let mut hidden = index.iter().filter(|entry| skipped(entry));
            if !self.options.sparse && hidden.any(|entry| pathspec.matches_at(at, entry.path)) {
                outside.push(pathspec.original(at).to_owned());
                continue;
            }
            let path = pathspec.path(at);
            if path.is_empty() {
                continue;
            }
            if !pathspec.is_loose(at) && exists(&self.prepared.top, path.as_bstr()) {
                continue;
            }
            if !self.options.ignore_missing {
                let spec = pathspec.original(at);
                let message = format!("pathspec '{spec}' did not match any files");
                return Some(Error::new(ErrorKind::InvalidInput, message));
            }
            if self.options.selection == AddSelection::All && self.would_be_ignored(path.as_bstr())
            {
                ignored.push(path);
                ignored.sort();
            }
        }
        if !outside.is_empty() {
            self.report.failed = true;
            self.report.events.push(Event::OutsideSparse(outside));
        }
        None
    }

    fn would_be_ignored(&self, path: &BStr) -> bool {
        let prepared = self.prepared;
        let read = |directory: &BStr| {
            let (index, objects) = (&prepared.index, Some(prepared.objects));
            read_ignore_file(&prepared.top, b".gitignore", index, objects, directory)
        };
        let path = path.strip_suffix(b"/").unwrap_or(path).as_bstr();
        let mut stack = IgnoreStack::new(&self.patterns, Some(&read));
        stack.enter(path::split(path).0.into());
        stack.is_ignored(path, false)
    }

    /// Returns the tracked files that the pathspec selects, for `--renormalize`.
    pub(super) fn all_tracked(&self) -> Vec<AddChange> {
        let counts = |entry: &EntryRef<'_>| {
            let hidden = entry.flags.contains(Flags::SKIP_WORKTREE);
            let kind = entry.mode & mode::TYPE;
            (self.options.sparse || !(hidden || self.is_outside(entry.path)))
                && entry.stage() == 0
                && kind != mode::GITLINK
                && self.options.pathspec.matches(entry.path, false)
        };
        let entries = self.index().iter().filter(counts);
        entries
            .map(|entry| AddChange::Add(entry.path.to_owned()))
            .collect()
    }
}

fn exists(top: &Directory, path: &BStr) -> bool {
    let (directory, name) = match path.strip_suffix(b"/") {
        Some(directory) => (directory, &b"."[..]),
        None => path::split(path),
    };
    let opened = top.open_beneath(directory);
    opened
        .and_then(|directory| directory.metadata(name))
        .is_ok()
}

/// Whether a leading directory of `path` is a symbolic link.
pub(crate) fn is_beyond_link(top: &Directory, path: &BStr) -> bool {
    for slash in path.find_iter("/") {
        let (directory, name) = path::split(path[..slash].as_bstr());
        let opened = top.open_beneath(directory);
        match opened.and_then(|directory| directory.metadata(name)) {
            Ok(metadata) if metadata.is_symlink() => return true,
            Ok(metadata) if metadata.is_directory() => {}
            _ => return false,
        }
    }
    false
}
