//! A list of all untracked files, stored in a file beside the index. A status uses the list if it
//! reports every untracked file and queries a file system monitor.
//!
//! The list has its own monitor token. A status queries the monitor for changes since that token,
//! which is another query than that for the index, unless both were written together. A change of
//! the index invalidates the directories whose tracked names have changed.
//!
//! The untracked cache of the index can contain all files, too (`status.showUntrackedFiles=all`).
//! This module does not use that cache: if git 2.55 updates the cache together with the response of
//! a monitor, renamed or removed directories can keep outdated data.

use super::monitor::{self, UnmatchedAnswer};
use super::{Ignored, Options, Untracked, untracked_cache};
use crate::ignores::ExcludeContents;
use crate::{Repository, Result};
use bstr::{BString, ByteSlice};
use pronto_index::{Index, IndexOutline, UntrackedCache, UntrackedList};
use pronto_monitor::MonitorResponse;
use pronto_worktree::status::{DirectoryNews, Remembered, recorded, renew, tracked_names};

/// The number of changes below which the list is not written. The next status examines these
/// changes again.
const MANY_CHANGES: usize = 100;

/// The content of the list's file; empty if there is none.
pub(super) struct ListFile {
    bytes: Vec<u8>,
}

/// The list, and the response of the monitor about changes since it was written.
pub(super) struct UntrackedState<'a> {
    /// The list; `None` if there is no usable list, so that a new one is created.
    list: Option<UntrackedList<'a>>,
    empty: UntrackedCache<'a>,
    answer: MonitorResponse,
    /// Whether the list was written for the current index.
    is_current: bool,
}

/// The data for writing the list after a walk.
pub(super) struct PendingList {
    /// The token of the monitor before the walk.
    token: BString,
    /// Whether the list is written even if the walk found few changes.
    is_due: bool,
}

/// Reads the list if this status uses one.
///
/// # Errors
/// Fails if a setting is malformed.
pub(super) fn read(
    repository: &Repository,
    index: &IndexOutline,
    options: &Options,
) -> Result<Option<ListFile>> {
    let is_used = options.untracked == Untracked::All
        && options.ignored == Ignored::No
        && options.pathspec.is_empty()
        && !index.is_sparse()
        && !index.is_split()
        && repository.index_path() == repository.git_dir().join("index")
        && untracked_cache::is_permitted(repository)?;
    Ok(is_used.then(|| ListFile {
        bytes: index.read_untracked_list().unwrap_or_default(),
    }))
}

impl ListFile {
    /// Parses the list, and queries the monitor if the token of the list differs from that of the
    /// index.
    ///
    /// # Errors
    /// Fails if a setting is malformed.
    pub(super) fn load(
        &self,
        repository: &Repository,
        index: &IndexOutline,
        asked: &UnmatchedAnswer,
        excludes: &ExcludeContents,
        options: &Options,
    ) -> Result<UntrackedState<'_>> {
        let kind = index.kind();
        let ident = untracked_cache::ident(repository)?;
        let mut empty = UntrackedCache::new(&ident, UntrackedCache::ALL, kind);
        untracked_cache::renew_excludes(&mut empty, excludes);
        let list = UntrackedList::parse(&self.bytes, kind);
        let list = list.filter(|list| {
            untracked_cache::is_here(&list.cache, &ident)
                && list.cache.info_exclude.id == empty.info_exclude.id
                && list.cache.excludes_file.id == empty.excludes_file.id
        });
        let token = list.as_ref().map(|list| list.token.as_bstr());
        let answer = match token {
            Some(token) => monitor::answer_since(repository, asked, token, options)?,
            None => asked.answer().clone(),
        };
        Ok(UntrackedState {
            is_current: list.as_ref().is_some_and(|list| list.is_for(index)),
            list,
            empty,
            answer,
        })
    }
}

impl<'a> UntrackedState<'a> {
    /// Returns the untracked files if nothing has changed since the list was written.
    pub(super) fn unchanged(&self) -> Option<Vec<BString>> {
        let is_same =
            matches!(&self.answer, MonitorResponse::Paths { paths, .. } if paths.is_empty());
        let list = self.list.as_ref();
        let list = list.filter(|_| is_same && self.is_current)?;
        recorded(&list.cache, Untracked::All)
    }

    /// Invalidates the directories that may have changed, for a walk of `index`. The walk records
    /// its results if `records` is true.
    pub(super) fn prepare(self, index: &Index, records: bool) -> (Remembered<'a>, PendingList) {
        let is_due = match &self.answer {
            MonitorResponse::Paths { paths, .. } => paths.len() > MANY_CHANGES,
            MonitorResponse::Everything { .. } => true,
        };
        let next = PendingList {
            token: self.answer.token().into(),
            is_due: is_due || !self.is_current,
        };
        let Some(mut list) = self.list else {
            return (Remembered::new(self.empty, records), next);
        };
        if !self.is_current {
            let now = tracked_names(index, &list.cache);
            let both = list.tracked.iter().zip(&now).enumerate();
            for (at, _) in both.filter(|(_, (before, now))| before != now) {
                list.cache.invalidate_directory(at, false);
            }
        }
        let mut remembered = Remembered::new(list.cache, records);
        if let MonitorResponse::Paths { paths, .. } = &self.answer {
            monitor::invalidate(&mut remembered.cache, paths);
            remembered.vouch();
        }
        (remembered, next)
    }
}

impl PendingList {
    /// Writes the list that results from `remembered` and `news`, if that saves enough work of the
    /// next status. Errors are ignored: the next status then has no list.
    pub(super) fn write(
        self,
        index: &Index,
        remembered: &Remembered<'_>,
        news: Vec<DirectoryNews>,
    ) {
        let is_due = self.is_due || news.len() > MANY_CHANGES;
        if !remembered.records || !is_due || self.token == monitor::NO_TOKEN {
            return;
        }
        let cache = renew(&remembered.cache, news);
        let tracked = tracked_names(index, &cache);
        let list = UntrackedList::new(index.outline(), self.token.into(), tracked, cache);
        if let Some(list) = list {
            let _ = index.outline().write_untracked_list(&list);
        }
    }
}
