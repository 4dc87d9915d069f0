//! The fast path of status if a file system monitor reports no changes since the last status.
//!
//! Reads the header of the index, the cached root tree, the monitor's data, the untracked cache,
//! and the commit of `HEAD`. Makes no system call for any file of the worktree and no allocation
//! for any entry. The untracked cache, or the list of all untracked files, costs one iteration over
//! its directories.

use super::monitor::UnmatchedAnswer;
use super::state::Reader;
use super::tree::tree_of;
use super::untracked_list::UntrackedState;
use super::{Ignored, OperationInProgress, Options, Report, Untracked, untracked_cache};
use crate::errors::from_index;
use crate::refs::HeadValue;
use crate::{Repository, Result, ignores};
use bstr::BString;
use pronto_index::{IndexOutline, UntrackedCache};
use pronto_odb::Store;
use pronto_worktree::status::recorded;

/// Returns the report if the monitor guarantees that nothing has changed, and `HEAD` and the caches
/// in the index agree; `None` if files must be examined.
///
/// # Errors
/// The same as for [`status`](super::status()).
pub(super) fn report(
    repository: &Repository,
    outline: &IndexOutline,
    store: &Store,
    asked: &UnmatchedAnswer,
    listed: Option<&UntrackedState<'_>>,
    options: &Options,
) -> Result<Option<Report>> {
    let is_plain = options.pathspec.is_empty()
        && options.ignored == Ignored::No
        && !outline.is_sparse()
        && !outline.is_split();
    if !is_plain
        || !asked.says_nothing_changed()
        || repository.config().bool_or("core.sparseCheckout", false)?
    {
        return Ok(None);
    }
    let head = options.head(repository)?;
    let Some(id) = head.id() else {
        return Ok(None);
    };
    // If a cached root tree covers all entries, no entry is unmerged or intent-to-add.
    let Some((tree, count)) = outline.root_tree() else {
        return Ok(None);
    };
    if count != outline.len() || tree != tree_of(repository, store, id)? {
        return Ok(None);
    }
    let untracked = match listed {
        Some(listed) => listed.unchanged(),
        None => untracked(repository, outline, options)?,
    };
    let Some(untracked) = untracked else {
        return Ok(None);
    };
    let mut state = OperationInProgress::default();
    if options.state {
        let reader = Reader { repository, store };
        let detached = Some(id).filter(|_| matches!(head, HeadValue::Detached { .. }));
        state = reader.read(detached, options.detached_from)?;
    }
    pronto_io::data!("status", "lstat", 0);
    pronto_io::data!("status", "opendir", 0);
    outline.intact().map_err(from_index)?;
    Ok(Some(Report {
        head,
        entries: Vec::new(),
        untracked,
        ignored: Vec::new(),
        state,
        has_foreign_cache: false,
        problems: Vec::new(),
    }))
}

/// Returns the untracked paths if the untracked cache is complete, or if no untracked paths are
/// requested.
fn untracked(
    repository: &Repository,
    outline: &IndexOutline,
    options: &Options,
) -> Result<Option<Vec<BString>>> {
    if options.untracked == Untracked::No {
        let is_kept = !untracked_cache::is_to_be_removed(repository, outline)?;
        return Ok(is_kept.then(Vec::new));
    }
    let excludes = ignores::exclude_contents(repository)?;
    let prepared = untracked_cache::prepare(repository, outline, options, &excludes)?;
    let cache = prepared.unchanged();
    // A cache of all files may have been written by git: see `untracked_list`.
    let cache = cache.filter(|cache| cache.flags == UntrackedCache::NORMAL);
    Ok(cache.and_then(|cache| recorded(cache, options.untracked)))
}
