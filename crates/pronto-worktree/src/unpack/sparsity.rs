//! Applies sparse-checkout patterns to entries and files, as far as no content is lost.
//!
//! The costs are one check of the patterns for each entry (one for each directory in cone mode), and
//! one `lstat` for each file that is added or removed. Files that exist despite their skip-worktree bit
//! have lost the bit when the index was read.

use bstr::{BStr, BString};
use pronto_index::{EntryRef, Flags, mode};

use super::guard;
use super::worktree_view::{Looker, WorktreeView};
use super::{TreeFile, UnpackPlan};
use crate::Error;
use crate::checkout::PathRemoval;

/// Computes a plan that makes entries and files match the patterns of the view, which must have
/// patterns (`git sparse-checkout reapply`). No object id changes.
///
/// # Errors
/// Fails with [`Io`](crate::ErrorKind::Io) if a file cannot be examined, or with
/// [`Interrupted`](crate::ErrorKind::Interrupted).
pub fn sparsity(view: &WorktreeView<'_>) -> Result<UnpackPlan, Error> {
    let _region = pronto_io::region!("unpack_trees", "update_sparsity");
    let mut unpacked = UnpackPlan {
        cached_tree: view.index.cached_tree(),
        ..UnpackPlan::default()
    };
    follow(&mut unpacked, view)?;
    Ok(unpacked)
}

/// Applies the patterns to entries that no change of `unpacked` covers.
pub(super) fn follow(unpacked: &mut UnpackPlan, view: &WorktreeView<'_>) -> Result<(), Error> {
    if view.sparse.is_none() {
        return Ok(());
    }
    let moves = find(unpacked, view);
    let before = unpacked.changes.len();
    come(unpacked, view, &moves.coming)?;
    go(unpacked, view, &moves.going)?;
    unpacked.leftover.unmerged = moves.unmerged;
    if unpacked.changes.len() > before {
        unpacked.changes.sort_by(|one, two| one.path.cmp(&two.path));
        unpacked.put_items_in_order();
    }
    Ok(())
}

/// The positions of entries that may change.
#[derive(Default)]
struct Moves {
    /// The entries whose files must be written.
    coming: Vec<usize>,
    /// The entries whose files must be removed.
    going: Vec<usize>,
    unmerged: Vec<BString>,
}

fn find(unpacked: &UnpackPlan, view: &WorktreeView<'_>) -> Moves {
    let Some(sparse) = view.sparse else {
        return Moves::default();
    };
    let mut matcher = sparse.matcher();
    let mut moves = Moves::default();
    let mut touched = unpacked
        .changes
        .iter()
        .map(|change| &change.path)
        .peekable();
    for (position, entry) in view.index.iter().enumerate() {
        if entry.is_sparse_directory() {
            continue;
        }
        while touched.next_if(|path| **path < *entry.path).is_some() {}
        if touched.peek().is_some_and(|path| **path == *entry.path) {
            continue;
        }
        if entry.stage() != 0 {
            if moves.unmerged.last().is_none_or(|last| last != entry.path) {
                moves.unmerged.push(entry.path.to_owned());
            }
            continue;
        }
        let skipped = entry.flags.contains(Flags::SKIP_WORKTREE);
        match (matcher.includes(entry.path), skipped) {
            (true, true) => moves.coming.push(position),
            (false, false) => moves.going.push(position),
            _ => {}
        }
    }
    moves
}

fn come(unpacked: &mut UnpackPlan, view: &WorktreeView<'_>, coming: &[usize]) -> Result<(), Error> {
    let index = view.index;
    let mut occupied = guard::occupied_entries(view, coming)?
        .into_iter()
        .peekable();
    let mut looker = Looker::new(view);
    for &position in coming {
        let entry = index.entry(position);
        if occupied.next_if(|(at, _)| *at == position).is_none() {
            let (id, mode) = (entry.id.to_owned(), entry.mode);
            view.protect.check_path(entry.path, mode == mode::SYMLINK)?;
            unpacked.write(entry.path, TreeFile { id, mode }, false);
            continue;
        }
        // An existing file is content of the user and is reported as such.
        let obstacle = looker.obstacle(entry.path)?;
        unpacked.leftover.obstructed.push(obstacle.to_owned());
        mark(unpacked, &entry, false);
    }
    Ok(())
}

fn go(unpacked: &mut UnpackPlan, view: &WorktreeView<'_>, going: &[usize]) -> Result<(), Error> {
    let index = view.index;
    let compared = guard::compare(view, going)?;
    let same = compared.same.into_iter().map(|(at, _)| (at, true));
    for (position, is_there) in same.chain(compared.missing.into_iter().map(|at| (at, false))) {
        let entry = index.entry(position);
        if is_there {
            unpacked.plan.remove.push(PathRemoval {
                path: entry.path.to_owned(),
                gitlink: entry.mode == mode::GITLINK,
            });
        }
        mark(unpacked, &entry, true);
    }
    // An obstructed file is reported as deleted.
    let mut left: Vec<usize> = compared.modified;
    left.extend(compared.obstructed);
    left.sort_unstable();
    for position in left {
        let entry = index.entry(position);
        unpacked.leftover.modified.push(entry.path.to_owned());
        mark(unpacked, &entry, false);
    }
    Ok(())
}

/// Sets or clears the skip-worktree bit of `entry`, unless it has the value already.
fn mark(unpacked: &mut UnpackPlan, entry: &EntryRef<'_>, skip: bool) {
    if entry.flags.contains(Flags::SKIP_WORKTREE) == skip {
        return;
    }
    let path: &BStr = entry.path;
    let mut entry = entry.to_owned();
    entry.flags = match skip {
        true => entry.flags.with(Flags::SKIP_WORKTREE),
        false => entry.flags.without(Flags::SKIP_WORKTREE),
    };
    unpacked.change(path, Some(entry), None);
}
