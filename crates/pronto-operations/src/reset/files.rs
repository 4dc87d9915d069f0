//! The modes of `reset` that change files.

use super::*;
use crate::merge::lacking;
use crate::sparse_checkout;
use pronto_io::watch::Watch;

/// The result of resetting files.
pub(super) enum FileReset {
    Done(pronto_worktree::checkout::Outcome),
    Refused(Refusals),
    NoHead,
}

pub(super) fn reset_files(
    repository: &Repository,
    options: &Options,
    watch: &Watch<'_>,
) -> Result<FileReset> {
    let read = || sparse_checkout::index_as_checked_out(repository);
    let (mut prepared, lock) = WorktreeSession::with_index(repository, read)?;
    let lock = lock?;
    let reference = repository.find_reference(&options.to.name).ok().flatten();
    let name = reference.map(|found| found.name);
    let name = name.filter(|name| name.starts_with(b"refs/"));
    let treeish = options.to.commit.unwrap_or(options.to.tree);
    prepared.write_as_of(name.as_ref(), Some(treeish));
    match options.mode {
        Mode::Hard => reset_hard(&prepared, lock, options, watch),
        _ => reset_carefully(repository, prepared, lock, options, watch),
    }
}

/// Resets files and overwrites local changes (`--hard`).
fn reset_hard(
    prepared: &WorktreeSession<'_>,
    lock: IndexLock,
    options: &Options,
    watch: &Watch<'_>,
) -> Result<FileReset> {
    let decision = prepared.with_worktree_view(watch, |worktree_view| {
        unpack::one_way(options.to.tree, worktree_view, None).map_err(from_worktree)
    })?;
    let mut unpacked = match decision {
        PlanningResult::Plan(unpacked) => unpacked,
        PlanningResult::Refused(refusals) => {
            return Ok(FileReset::Refused(refusals));
        }
        PlanningResult::Expand => return Err(lacking("'reset' that expands the sparse index")),
    };
    let outcome = {
        let entries = unpacked.entries(&prepared.index);
        prepared.write_files(&unpacked.plan, entries, watch)?
    };
    if outcome.failed.is_empty() {
        unpacked.record(&outcome);
        let bytes = prepared.encode_changed(&unpacked, watch)?;
        lock.commit(&bytes).map_err(from_index)?;
    }
    Ok(FileReset::Done(outcome))
}

/// Resets files, and keeps local changes or refuses (`--merge`, `--keep`).
fn reset_carefully(
    repository: &Repository,
    mut prepared: WorktreeSession<'_>,
    lock: IndexLock,
    options: &Options,
    watch: &Watch<'_>,
) -> Result<FileReset> {
    if prepared.sparse.is_some() {
        let mode = options.mode.name();
        let message = format!("'reset --{mode}' in a sparse checkout is not implemented natively");
        return Err(Error::new(ErrorKind::Unsupported, message));
    }
    let mut trees = vec![options.to.tree];
    if options.mode == Mode::Keep {
        let Some(head) = repository.head()?.id() else {
            return Ok(FileReset::NoHead);
        };
        trees.insert(0, crate::checkout_tree::tree_of(prepared.objects, head)?);
    }
    let how = read_tree::Options {
        mode: read_tree::Mode::Merge,
        trivial: false,
        aggressive: false,
        update: true,
        index_only: false,
        dry_run: false,
        ignore_sparse: false,
        output: None,
    };
    let mut merged = match read_tree::decide(&prepared, &trees, &how, watch)? {
        unpack::merge::MergeDecision::Plan(merged) => merged,
        unpack::merge::MergeDecision::Refused(refusals) => {
            return Ok(FileReset::Refused(refusals));
        }
    };
    let outcome = {
        let entries = merged.entries(&prepared.index);
        prepared.write_files(&merged.plan, entries, watch)?
    };
    if !outcome.failed.is_empty() {
        return Ok(FileReset::Done(outcome));
    }
    merged.record(&outcome);
    let mut writer = index::writer(repository)?;
    if options.mode == Mode::Keep {
        // The shared index is read again below.
        writer.splitting = pronto_index::Splitting::Join;
    }
    let mut bytes = read_tree::encode(&prepared, &merged, &writer, watch)?;
    if options.mode == Mode::Keep {
        // The staged changes are discarded.
        prepared.index = prepared.index.successor(bytes).map_err(from_index)?;
        take_tree(repository, &mut prepared, options)?;
        let edit = IndexEdit::new(&prepared.index);
        bytes = prepared.encode(edit.content(), watch)?;
    }
    lock.commit(&bytes).map_err(from_index)?;
    Ok(FileReset::Done(outcome))
}
