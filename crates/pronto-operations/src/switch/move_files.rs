//! Updates the files and the index from one commit to another.

use super::LocalChange;
use pronto_diff::ChangeKind;
use std::collections::BTreeMap;

use bstr::BString;
use pronto_diff::Difference;
use pronto_hash::ObjectId;
use pronto_index::Index;
use pronto_io::watch::Watch;
use pronto_worktree::checkout;
use pronto_worktree::unpack::{self, PlanningResult, Refusals};

use super::{Options, SwitchTarget};
use crate::checkout_tree::tree_of;
use crate::errors::{from_index, from_worktree};
use crate::merge::lacking;
use crate::session::WorktreeSession;
use crate::{Repository, Result, index, sparse_checkout, status};

/// The result of updating files.
pub(crate) enum MovedFiles {
    Done(checkout::Outcome),
    Refused(Refusals),
    Unmerged(Vec<BString>),
}

pub(super) fn move_files(
    repository: &Repository,
    old: Option<ObjectId>,
    to: &SwitchTarget,
    options: &Options,
    watch: &Watch<'_>,
) -> Result<MovedFiles> {
    let read = || sparse_checkout::index_as_checked_out(repository);
    let (mut prepared, lock) = WorktreeSession::with_index(repository, read)?;
    let lock = lock?;
    prepared.write_as_of(to.reference.as_ref(), to.commit);
    let new_tree = match to.commit {
        Some(commit) => tree_of(prepared.objects, commit)?,
        None => ObjectId::empty_tree(repository.object_hash()),
    };
    // Without an index, nothing has been checked out yet, and all files are new.
    let old = old.filter(|_| prepared.index.identity().is_some());
    let old_tree = old
        .map(|commit| tree_or_empty(prepared.objects, commit))
        .transpose()?;
    let unmerged = unmerged(&prepared.index);
    if !unmerged.is_empty() && !options.discard {
        return Ok(MovedFiles::Unmerged(unmerged));
    }
    let mut decision = prepared.decide(old_tree, new_tree, options, watch)?;
    if matches!(decision, PlanningResult::Expand) {
        prepared = prepared.expanded()?;
        decision = prepared.decide(old_tree, new_tree, options, watch)?;
    }
    let mut unpacked = match decision {
        PlanningResult::Plan(unpacked) => unpacked,
        PlanningResult::Refused(refusals) => return Ok(MovedFiles::Refused(refusals)),
        PlanningResult::Expand => return Err(lacking("'switch' that expands the sparse index")),
    };
    let mut outcome = {
        let entries = unpacked.entries(&prepared.index);
        prepared.write_files(&unpacked.plan, entries, watch)?
    };
    unpacked.record(&outcome);
    let leftover = std::mem::take(&mut unpacked.leftover);
    let leftover = (!leftover.is_empty()).then_some(checkout::CheckoutWarning::Leftover(leftover));
    outcome.warnings.splice(..0, leftover);
    let is_news = !unpacked.changes.is_empty()
        || prepared.index.cached_tree() != unpacked.cached_tree
        || prepared.index.identity().is_none();
    if is_news {
        let bytes = prepared.encode_changed(&unpacked, watch)?;
        lock.commit(&bytes).map_err(from_index)?;
    }
    Ok(MovedFiles::Done(outcome))
}

/// Returns the files that differ from `commit`: Git's status letter and the path, in order.
pub(super) fn local_changes(
    repository: &Repository,
    commit: ObjectId,
    watch: &Watch<'_>,
) -> Result<Vec<LocalChange>> {
    let options = status::Options {
        untracked: status::Untracked::No,
        renames: None,
        state: false,
        detached_from: false,
        commit: Some(commit),
        ..status::Options::default()
    };
    let report = status::status(repository, &options, watch)?;
    let in_worktree = report.entries.iter().filter_map(|entry| {
        let kind = match entry.stages {
            Some(_) => ChangeKind::Unmerged,
            None => entry.worktree?,
        };
        Some((entry.path.clone(), (None, Some(kind))))
    });
    let mut paths: BTreeMap<BString, (Option<Difference>, Option<ChangeKind>)> =
        in_worktree.collect();
    for difference in staged_against(repository, commit)? {
        let path = difference.path.clone();
        paths.entry(path).or_default().0 = Some(difference);
    }
    let changes = paths.into_iter();
    Ok(changes
        .filter_map(|(path, (staged, file))| {
            let kind = local_change(staged.as_ref(), file)?;
            Some(LocalChange { kind, path })
        })
        .collect())
}

/// Returns the differences between the tree of `commit` and the index.
fn staged_against(repository: &Repository, commit: ObjectId) -> Result<Vec<Difference>> {
    let tree = tree_of(repository.objects()?, commit)?;
    let index = repository.sparse_index()?;
    index::differences(repository, &tree, &index)
}

/// Returns the tree of `commit`; the empty tree for the null object id.
fn tree_or_empty(objects: &pronto_odb::Store, commit: ObjectId) -> Result<ObjectId> {
    match commit.is_null() {
        true => Ok(ObjectId::empty_tree(commit.kind())),
        false => tree_of(objects, commit),
    }
}

/// Returns the unmerged paths.
fn unmerged(index: &Index) -> Vec<BString> {
    let entries = index.iter().filter(|entry| entry.stage() != 0);
    let mut paths: Vec<BString> = entries.map(|entry| entry.path.to_owned()).collect();
    paths.dedup();
    paths
}

/// Returns the change of a path whose index entry or file differs from a commit.
fn local_change(staged: Option<&Difference>, file: Option<ChangeKind>) -> Option<ChangeKind> {
    let Some(staged) = staged else {
        return file;
    };
    match (&staged.old, &staged.new, file) {
        // A path with conflicts: Git names it as any other change.
        _ if staged.unmerged => Some(ChangeKind::Modified),
        (None, _, Some(ChangeKind::Deleted)) => None,
        (None, ..) => Some(ChangeKind::Added),
        (Some(_), None, _) | (_, _, Some(ChangeKind::Deleted)) => Some(ChangeKind::Deleted),
        (Some(_), Some(_), _) => Some(staged.kind()),
    }
}

impl WorktreeSession<'_> {
    fn decide(
        &self,
        old: Option<ObjectId>,
        new: ObjectId,
        options: &Options,
        watch: &Watch<'_>,
    ) -> Result<PlanningResult> {
        self.with_untracked(options.keep_ignored, |is_expendable| {
            self.with_worktree_view(watch, |worktree_view| {
                match (options.discard, options.overwrite_untracked) {
                    (false, _) => unpack::two_way(old, new, worktree_view, is_expendable),
                    (true, false) => unpack::one_way(new, worktree_view, Some(is_expendable)),
                    (true, true) => unpack::one_way(new, worktree_view, None),
                }
                .map_err(from_worktree)
            })
        })
    }
}
