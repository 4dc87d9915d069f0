//! The fast path of status when a monitor reports that nothing has changed since the last one.
//!
//! Costs, for any number of entries: the header of the index, the cached tree of the top, the
//! monitor's data and the untracked cache are read, and the commit of `HEAD`. No call for any file
//! of the worktree, no allocation for any entry. The untracked cache costs one pass over its
//! directories.

use super::monitor::Asked;
use super::state::Reader;
use super::tree::tree_of;
use super::{Ignored, Options, Report, State, Untracked, untracked_cache};
use crate::errors::from_index;
use crate::refs::Head;
use crate::{Repository, Result, ignores};
use pronto_index::Outline;
use pronto_odb::Store;

/// Returns the report if the `asked` monitor vouches for everything, and `HEAD` and the caches in
/// the index agree; `None` if something must be examined.
///
/// # Errors
/// As [`Repository::status`].
pub(super) fn report(
    repository: &Repository,
    (outline, store): (&Outline, &Store),
    (asked, options): (&Asked, &Options),
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
    let head = repository.head()?;
    let Some(id) = head.id() else {
        return Ok(None);
    };
    // A tree that stands for all entries leaves none in conflict, nor announced.
    let Some((tree, count)) = outline.root_tree() else {
        return Ok(None);
    };
    if count != outline.len()
        || tree != tree_of(store, id)?
        || !is_nothing_untracked(repository, outline, options)?
    {
        return Ok(None);
    }
    let mut state = State::default();
    if options.state {
        let reader = Reader { repository, store };
        let detached = Some(id).filter(|_| matches!(head, Head::Detached { .. }));
        state = reader.read(detached, options.detached_from)?;
    }
    pronto_io::data!("status", "lstat", 0);
    pronto_io::data!("status", "opendir", 0);
    outline.intact().map_err(from_index)?;
    Ok(Some(Report {
        head,
        entries: Vec::new(),
        untracked: Vec::new(),
        ignored: Vec::new(),
        state,
        has_foreign_cache: false,
        problems: Vec::new(),
    }))
}

/// Returns whether the untracked cache knows for every directory that it contains nothing
/// untracked, or untracked files are not requested.
fn is_nothing_untracked(
    repository: &Repository,
    outline: &Outline,
    options: &Options,
) -> Result<bool> {
    if options.untracked == Untracked::No {
        return Ok(!untracked_cache::is_to_be_removed(repository, outline)?);
    }
    let excludes = ignores::exclude_contents(repository)?;
    let prepared = untracked_cache::prepare(repository, outline, options, &excludes)?;
    let Some(cache) = prepared.unchanged() else {
        return Ok(false);
    };
    // Where each file is named, a directory without tracked files has to be gone through.
    let takes_all = options.untracked == Untracked::Normal;
    Ok(!cache.is_empty()
        && (0..cache.len()).all(|at| {
            let directory = cache.directory(at);
            directory.is_valid
                && directory.untracked.is_empty()
                && (takes_all || !directory.check_only)
        }))
}
