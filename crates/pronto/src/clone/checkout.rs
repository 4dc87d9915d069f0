//! The first checkout, preceded by a fetch of the objects that a partial clone needs for it.

use std::collections::HashSet;

use bstr::{BString, ByteSlice};
use gix_object::Kind as ObjectKind;
use pronto_hash::ObjectId;
use pronto_index::Cover;
use pronto_odb::Store;

use super::{CloneRun, Outcome, objects};
use crate::checkout_tree;
use crate::objects::from_odb;
use crate::{ErrorKind, Repository, Result};
use pronto_object::TreeEntries;

/// Writes the files of `commit` into the worktree of the repository, then the index. `head` is the
/// full name of the branch, or `HEAD` if it is detached.
pub(super) fn check_out(
    work: &CloneRun<'_>,
    head: &BString,
    commit: ObjectId,
    store: &Store,
    outcome: &mut Outcome,
) -> Result<()> {
    let repository = &outcome.repository;
    if work.options.filter.is_some() {
        fetch_contents(work, commit, store, repository)?;
    }
    let mut options = checkout_tree::Options::default();
    options.ref_name = Some(head.clone()).filter(|name| name != "HEAD");
    match checkout_tree::checkout_tree(repository, store, commit, &options, work.watch) {
        Ok(done) => {
            outcome.checkout_failed = !done.failed.is_empty();
            outcome.checkout = done;
        }
        // The repository can be read, and something else can be checked out.
        Err(error) if is_of_checkout(error.kind()) => {
            outcome.checkout_failed = true;
            outcome.checkout_error = Some(error);
        }
        Err(error) => return Err(error),
    }
    Ok(())
}

/// Returns whether an error of this kind ends the checkout, but does not fail the clone.
fn is_of_checkout(kind: ErrorKind) -> bool {
    use ErrorKind::{ConfigValue, Corrupt, Hostile, MissingObject, Object};
    matches!(
        kind,
        Hostile | Object | MissingObject | Corrupt | ConfigValue
    )
}

/// Fetches in one go the contents that were left out and are needed now.
fn fetch_contents(
    work: &CloneRun<'_>,
    commit: ObjectId,
    store: &Store,
    repository: &Repository,
) -> Result<()> {
    let sparse = repository.sparse_checkout()?;
    let mut trees = vec![(checkout_tree::tree_of(store, commit)?, BString::default())];
    let (mut seen, mut files) = (HashSet::new(), Vec::new());
    let mut content = Vec::new();
    while let Some((id, path)) = trees.pop() {
        // With sparse patterns, the needed entries of a tree depend on its path.
        if sparse.is_none() && !seen.insert(id) {
            continue;
        }
        // The filter may have left out trees, too. Their blobs are fetched later.
        if store.find(&id, &mut content).map_err(from_odb)? != Some(ObjectKind::Tree) {
            objects::fetch_exactly(work, vec![id], repository)?;
            if store.find(&id, &mut content).map_err(from_odb)? != Some(ObjectKind::Tree) {
                continue;
            }
        }
        for entry in TreeEntries::new(&content, id.kind().len_in_bytes()) {
            let Ok(child) = ObjectId::try_from(entry.id) else {
                continue;
            };
            let mut below = path.clone();
            below.extend_from_slice(entry.name);
            if entry.is_directory() {
                let cover = sparse.as_ref().map(|sparse| sparse.cover(below.as_bstr()));
                if cover != Some(Cover::Nothing) {
                    below.push(b'/');
                    trees.push((child, below));
                }
            } else if !entry.is_submodule()
                && sparse
                    .as_ref()
                    .is_none_or(|sparse| sparse.includes(below.as_bstr()))
            {
                files.push(child);
            }
        }
    }
    files.sort_unstable();
    files.dedup();
    let found = store.contains_batch(&files).map_err(from_odb)?;
    let missing = files.iter().zip(found).filter(|(_, found)| !found);
    let missing: Vec<ObjectId> = missing.map(|(id, _)| *id).collect();
    if missing.is_empty() {
        return Ok(());
    }
    objects::fetch_exactly(work, missing, repository)
}
