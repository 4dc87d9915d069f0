//! Uses the untracked cache for unchanged directories.

use super::Untracked;
use super::nested::{
    ExamineOptions, NestedDirectories, NestedDirectory, NestedState, NestedStep, Recalling,
};
use super::remembered::{CacheMatch, CachePosition};
use super::scan::Scanner;
use super::task::DirectoryTask;
use crate::names::{IndexedName, NameSortKey, compare};
use bstr::{BStr, BString, ByteSlice};
use pronto_io::dir::Directory;
use std::io;

impl Scanner<'_> {
    /// Compares an open directory that has tracked files with the cache, if a cache is in use. Starts
    /// to record its content if it must be read.
    pub(super) fn see(
        &mut self,
        directory: &Directory,
        path: &BStr,
        lists: bool,
    ) -> Option<CacheMatch> {
        let place = self.here.filter(|_| lists)?;
        let own = || directory.own_metadata();
        let seen = self.examine(place, path, false, own).ok()?;
        self.here = Some(seen.place);
        if seen.valid.is_none() {
            self.start_news(path, &seen, false);
        }
        Some(seen)
    }

    /// Compares an untracked directory with the cache.
    pub(super) fn see_untracked(
        &mut self,
        place: CachePosition,
        path: &BStr,
    ) -> io::Result<CacheMatch> {
        let root = self.root;
        let bare = path.strip_suffix(b"/").unwrap_or(path);
        let seen = self.examine(place, path, true, || root.metadata(bare));
        self.pace.step();
        seen
    }

    /// Returns whether the directory `path` with tracked files is ignored, and its position in the
    /// cache. The cache contains only directories that are not ignored.
    pub(super) fn place_of(
        &mut self,
        seen: &CacheMatch,
        path: &BStr,
        prefix_len: usize,
    ) -> (bool, Option<CachePosition>) {
        let name = path[prefix_len..].as_bstr();
        let place = self.place_below(seen.place, name);
        let is_known = seen.valid.is_some() && place.node.is_some();
        let ignored = !is_known && self.is_hidden(path);
        if !ignored && seen.valid.is_none() {
            self.note_below(name);
        }
        (ignored, Some(place))
    }

    /// Lists the untracked files of an unchanged directory with tracked files.
    pub(super) fn recall(
        &mut self,
        directory: &Directory,
        path: &BStr,
        tracked: &[IndexedName<'_>],
        node: usize,
        tasks: &mut Vec<DirectoryTask>,
    ) {
        let Some(remembered) = self.job.remembered else {
            return;
        };
        let cache = &remembered.cache;
        let is_tracked = |name: &BStr| has_directory(tracked, name);
        let join = |name: &BStr| BString::from([path.as_bytes(), name].concat());
        if self.job.options.untracked == Untracked::All {
            return self.recall_all(directory, path, tracked, node, tasks);
        }
        let below = self.look_below(path, node, &is_tracked);
        for name in &below.untracked {
            self.add_untracked(join(name.as_bstr()));
        }
        let known = &cache.directory(node).untracked;
        let files = known.iter().filter(|name| !name.ends_with(b"/"));
        for name in files.clone() {
            self.add_untracked(join(name));
        }
        let unknown = self.unknown_directories(path, tracked, node);
        if below.differs || !unknown.is_empty() {
            self.start_copy(path, node);
            for name in files {
                self.note_untracked(name, false);
            }
            for name in &below.untracked {
                self.note_untracked(name.strip_suffix(b"/").unwrap_or(name), true);
            }
            unknown.into_iter().for_each(|name| self.note_below(name));
            self.end_news(self.records());
        }
    }

    /// Does the same as [`recall`](Self::recall) if every untracked file is listed.
    fn recall_all(
        &mut self,
        directory: &Directory,
        path: &BStr,
        tracked: &[IndexedName<'_>],
        node: usize,
        tasks: &mut Vec<DirectoryTask>,
    ) {
        let Some(remembered) = self.job.remembered else {
            return;
        };
        let cache = &remembered.cache;
        let known = &cache.directory(node).untracked;
        let children = cache.children(node);
        let children = children.map(|child| cache.directory(child).name.as_ref());
        let repositories = known.iter().filter_map(|name| name.strip_suffix(b"/"));
        let mut below: Vec<&BStr> = children
            .filter(|name| !has_directory(tracked, name))
            .chain(repositories.clone().map(ByteSlice::as_bstr))
            .collect();
        below.sort_unstable();
        below.dedup();
        let (mut found, mut converted) = (Vec::new(), false);
        for name in below {
            let full = BString::from([path.as_bytes(), name, b"/"].concat());
            let look = self.look(self.here, 0);
            let judged = self.judge_directory(directory, &full, name, false, look, Some(tasks));
            let state = match judged {
                NestedStep::Known(state) => state,
                NestedStep::Enter(inside) => {
                    let state = self.state(&full, inside.look);
                    self.leave_directory(&inside, state)
                }
            };
            if state != NestedState::Untracked {
                continue;
            }
            found.push(name.as_bytes());
            if cache.child(node, name).is_some() {
                // The directory has become a repository: its cached content is invalid.
                self.note_gone(full.as_bstr());
                converted = true;
            }
            self.add_untracked(full);
        }
        let files = known.iter().filter(|name| !name.ends_with(b"/"));
        for name in files.clone() {
            self.add_untracked([path.as_bytes(), name].concat().into());
        }
        if !self.caches_all() {
            return;
        }
        let unknown = self.unknown_directories(path, tracked, node);
        let is_same = repositories.eq(found.iter().copied());
        if converted || !is_same || !unknown.is_empty() {
            self.start_copy(path, node);
            files.for_each(|name| self.note_untracked(name, false));
            let is_found = |name: &&[u8]| found.binary_search(name).is_ok();
            let entered = cache.directory(node).untracked.iter();
            let entered = entered.filter_map(|name| name.strip_suffix(b"/"));
            entered
                .filter(|name| !is_found(name))
                .for_each(|name| self.note_below(name));
            found
                .iter()
                .for_each(|name| self.note_untracked(name, true));
            unknown.into_iter().for_each(|name| self.note_below(name));
            self.end_news(self.records());
        }
    }

    /// Returns the directories of `tracked` that are not in the cache, without ignored ones.
    fn unknown_directories<'n>(
        &mut self,
        path: &BStr,
        tracked: &[IndexedName<'n>],
        node: usize,
    ) -> Vec<&'n [u8]> {
        let Some(remembered) = self.job.remembered else {
            return Vec::new();
        };
        let mut unknown = Vec::new();
        for child in tracked.iter().filter(|child| child.is_directory) {
            if remembered.cache.child(node, child.name.as_bstr()).is_none()
                && !self.is_hidden([path.as_bytes(), child.name].concat().as_bstr())
            {
                unknown.push(child.name);
            }
        }
        unknown
    }

    fn look(&self, place: Option<CachePosition>, depth: usize) -> ExamineOptions {
        ExamineOptions {
            check_only: !self.wants_ignored(),
            stop_at_first: false,
            depth,
            place,
        }
    }

    /// Starts to determine the state of an unchanged untracked directory.
    pub(super) fn begin_recall(
        &mut self,
        full: &BString,
        node: usize,
        look: ExamineOptions,
        seen: Option<CacheMatch>,
    ) -> NestedStep<NestedDirectory> {
        let Some(remembered) = self.job.remembered else {
            return NestedStep::Known(NestedState::Nothing);
        };
        let known = &remembered.cache.directory(node).untracked;
        let has_files = known.iter().any(|name| !name.ends_with(b"/"));
        // Results that are recorded with the answer of a monitor are used unchanged later, so
        // everything must be examined.
        let will_be_vouched =
            self.records() && self.job.monitored.is_some() && remembered.vouched.is_none();
        if has_files && !will_be_vouched {
            return NestedStep::Known(NestedState::Untracked);
        }
        NestedStep::Enter(NestedDirectory::Recall(Recalling {
            path: full.clone(),
            node,
            look,
            seen,
            next: node + 1,
            below: NestedDirectories::default(),
            entered: BString::default(),
        }))
    }

    /// Examines the subdirectories. Returns the next one that must be entered.
    pub(super) fn continue_recall(&mut self, recalling: &mut Recalling) -> Option<NestedDirectory> {
        let cache = &self.job.remembered?.cache;
        while recalling.next < cache.end(recalling.node) {
            let child = recalling.next;
            recalling.next = cache.end(child);
            let full = path_below(
                recalling.path.as_bstr(),
                cache.directory(child).name.as_ref(),
            );
            match self.look_again(&full, child, recalling.look.depth) {
                NestedStep::Known(state) => recalling.receive(cache, full.as_bstr(), state),
                NestedStep::Enter(level) => {
                    recalling.entered = full;
                    return Some(level);
                }
            }
        }
        None
    }

    /// Returns the state after all subdirectories were examined, or starts to read the directory again.
    pub(super) fn end_recall(&mut self, recalling: Recalling) -> NestedStep<NestedDirectory> {
        let Some(remembered) = self.job.remembered else {
            return NestedStep::Known(NestedState::Nothing);
        };
        let (full, node) = (&recalling.path, recalling.node);
        let mut below = recalling.below;
        below.add_repositories(&remembered.cache, node);
        let known = &remembered.cache.directory(node).untracked;
        let files = known.iter().filter(|name| !name.ends_with(b"/"));
        let has_files = files.clone().next().is_some();
        if !has_files && below.untracked.is_empty() && !known.is_empty() {
            // The directory was read up to the first subdirectory that was not empty, which is empty
            // now. The rest of its content is unknown.
            return self.begin_read(full, recalling.look, recalling.seen.as_ref());
        }
        if below.differs {
            self.start_copy(full.as_bstr(), node);
            for name in files {
                self.note_untracked(name, false);
            }
            for name in &below.untracked {
                self.note_untracked(name.strip_suffix(b"/").unwrap_or(name), true);
            }
            self.end_news(self.records());
        }
        NestedStep::Known(match has_files || !below.untracked.is_empty() {
            true => NestedState::Untracked,
            false => NestedState::Nothing,
        })
    }

    /// Returns which untracked subdirectories of the directory `path`, which has tracked files, have
    /// untracked files.
    fn look_below(
        &mut self,
        path: &BStr,
        node: usize,
        is_tracked: &dyn Fn(&BStr) -> bool,
    ) -> NestedDirectories {
        let mut below = NestedDirectories::default();
        let Some(remembered) = self.job.remembered else {
            return below;
        };
        let cache = &remembered.cache;
        for child in cache.children(node) {
            let name = cache.directory(child).name.as_ref();
            if is_tracked(name) {
                continue;
            }
            let full = path_below(path, name);
            let step = self.look_again(&full, child, 0);
            let state = self.finish(step);
            below.add(cache, node, full[path.len()..].as_bstr(), state);
        }
        below.add_repositories(cache, node);
        below
    }

    /// Starts to determine the state of the untracked directory at `node` of the cache.
    fn look_again(
        &mut self,
        full: &BString,
        node: usize,
        depth: usize,
    ) -> NestedStep<NestedDirectory> {
        let bare = full.strip_suffix(b"/").unwrap_or(full).as_bstr();
        let place = CachePosition {
            node: Some(node),
            is_trusted: true,
        };
        let Ok(seen) = self.see_untracked(place, full.as_bstr()) else {
            return NestedStep::Known(NestedState::Nothing);
        };
        let look = self.look(Some(place), depth + 1);
        if let Some(node) = seen.valid {
            return self.begin_recall(full, node, look, Some(seen));
        }
        // The directory may have become a repository.
        let git = [bare.as_bytes(), b"/.git"].concat();
        if self.root.metadata(&git).is_ok() && self.is_repository(full.as_bstr()) {
            // The cached content of the directory is invalid.
            self.note_gone(full.as_bstr());
            return NestedStep::Known(NestedState::Untracked);
        }
        self.begin(full, look)
    }
}

/// Returns the path of the subdirectory `name` of the directory `path`. Both paths end with a slash.
fn path_below(path: &BStr, name: &BStr) -> BString {
    BString::from([path.as_bytes(), name, b"/"].concat())
}

/// Returns whether `name` is a directory of `tracked`.
fn has_directory(tracked: &[IndexedName<'_>], name: &BStr) -> bool {
    let is_directory = true;
    let wanted = NameSortKey { name, is_directory };
    let find = |child: &IndexedName<'_>| compare(child.key(), wanted);
    tracked.binary_search_by(find).is_ok()
}
