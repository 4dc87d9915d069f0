//! The list of all untracked files beside the index, for a status that names every untracked file and
//! asks a file system monitor.
//!
//! The list has a token of its own. A status asks the monitor what has changed since then, which is
//! another question than the one for the index, unless both were written together. A change of the
//! index invalidates the directories whose tracked names have changed.

use super::monitor::{self, Asked};
use super::{Ignored, Options, Untracked, untracked_cache};
use crate::ignores::ExcludeContents;
use crate::{Repository, Result};
use bstr::{BString, ByteSlice};
use pronto_index::{Index, Outline, UntrackedCache, UntrackedList};
use pronto_monitor::Answer;
use pronto_worktree::status::{News, Remembered, recorded, renew, tracked_names};

/// With fewer changes than this the list is not written: the next status examines them again.
const MANY_CHANGES: usize = 100;

/// The file of the list; empty if there is none.
pub(super) struct Stored {
    bytes: Vec<u8>,
}

/// The list, and what the monitor says about the time since it was written.
pub(super) struct Listed<'a> {
    /// `None` if there is no list that can be used: one is made.
    list: Option<UntrackedList<'a>>,
    empty: UntrackedCache<'a>,
    answer: Answer,
    /// Whether it was written for the index at hand.
    is_current: bool,
}

/// A list to be written after a walk.
pub(super) struct Next {
    /// The token of the monitor before the walk.
    token: BString,
    /// Whether it is written even if the walk found little.
    is_due: bool,
}

/// Reads the list if this status uses one.
///
/// # Errors
/// The configuration is malformed.
pub(super) fn read(
    repository: &Repository,
    index: &Outline,
    options: &Options,
) -> Result<Option<Stored>> {
    let is_used = options.untracked == Untracked::All
        && options.ignored == Ignored::No
        && options.pathspec.is_empty()
        && !index.is_sparse()
        && !index.is_split()
        && repository.index_path() == repository.git_dir().join("index")
        && untracked_cache::is_permitted(repository)?
        && !untracked_cache::is_in_index(repository, index)?;
    Ok(is_used.then(|| Stored {
        bytes: index.read_untracked_list().unwrap_or_default(),
    }))
}

impl Stored {
    /// Parses the list, and asks the monitor about it if its token is not that of the index.
    ///
    /// # Errors
    /// The configuration is malformed.
    pub(super) fn load(
        &self,
        repository: &Repository,
        index: &Outline,
        asked: &Asked,
        (excludes, options): (&ExcludeContents, &Options),
    ) -> Result<Listed<'_>> {
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
        Ok(Listed {
            is_current: list.as_ref().is_some_and(|list| list.is_for(index)),
            list,
            empty,
            answer,
        })
    }
}

impl<'a> Listed<'a> {
    /// Returns the untracked files if nothing has changed since the list was written.
    pub(super) fn unchanged(&self) -> Option<Vec<BString>> {
        let is_same = matches!(&self.answer, Answer::Paths { paths, .. } if paths.is_empty());
        let list = self.list.as_ref();
        let list = list.filter(|_| is_same && self.is_current)?;
        recorded(&list.cache, Untracked::All)
    }

    /// Marks what may have changed as invalid, for a walk of `index`, which records what it finds
    /// if `records`.
    pub(super) fn prepare(self, index: &Index, records: bool) -> (Remembered<'a>, Next) {
        let is_due = match &self.answer {
            Answer::Paths { paths, .. } => paths.len() > MANY_CHANGES,
            Answer::Everything { .. } => true,
        };
        let next = Next {
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
        if let Answer::Paths { paths, .. } = &self.answer {
            monitor::invalidate(&mut remembered.cache, paths);
            remembered.vouch();
        }
        (remembered, next)
    }
}

impl Next {
    /// Writes the list that `remembered` and `news` result in, if that saves the next status enough.
    /// A list that cannot be written is one that the next status does not have.
    pub(super) fn write(self, index: &Index, remembered: &Remembered<'_>, news: Vec<News>) {
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
