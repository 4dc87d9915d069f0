//! Moves from one tree to another, for a branch switch. Local changes are kept at paths where both
//! trees are equal. At other paths the plan is refused if a local change would be lost.
//!
//! The rules are those of the table in git-read-tree(1), "Two Tree Merge".

use std::collections::{BTreeSet, HashMap, HashSet};

use bstr::{BStr, BString, ByteSlice};
use pronto_hash::ObjectId;
use pronto_index::{EntryRef, Flags, mode};

use super::cached::Trees;
use super::guard::{self, IsExpendable, UntrackedPath};
use super::refusal::Refusals;
use super::worktree_view::WorktreeView;
use super::{
    PlanningResult, TreeId, UnpackPlan, directory_entry, is_entry, new_entry, standing_for,
};
use crate::Error;
use crate::checkout::PathRemoval;
use crate::tree_walk::{Go, TreeFile, TreePathChange, WalkEvent, walk};

/// The result for a path.
struct PathDecision {
    path: BString,
    /// The position of its index entry.
    position: Option<usize>,
    new: Option<TreeFile>,
    standing: PathRelation,
}

/// The relation of a path to other changed paths.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum PathRelation {
    /// The path has no conflicts with others.
    Alone,
    /// A staged file in place of a directory of the new tree. It is removed only if it does not exist
    /// in the worktree any more.
    Above,
    /// A staged file in a directory that a file of the new tree replaces. It is kept.
    Below,
    /// A file of the new tree in place of a directory with staged files. It is not written.
    Yields,
}

/// Computes a plan that leads from the tree `old` (`None` for the empty tree) to the tree `new`.
///
/// Untracked files may be overwritten if `is_expendable` reports them as ignored. Sparse directory entries are
/// not expanded, and their directories must not exist. The result is [`PlanningResult::Expand`] if a change
/// is staged inside such a directory, which requires an expanded index.
///
/// # Errors
/// Fails with [`MissingObject`](crate::ErrorKind::MissingObject),
/// [`CorruptObject`](crate::ErrorKind::CorruptObject) or [`HostilePath`](crate::ErrorKind::HostilePath)
/// if a tree is unusable, with [`Io`](crate::ErrorKind::Io) if a file cannot be examined, or with
/// [`Interrupted`](crate::ErrorKind::Interrupted). A loss of content is not an error: see
/// [`PlanningResult::Refused`].
pub fn two_way(
    old: Option<ObjectId>,
    new: ObjectId,
    view: &WorktreeView<'_>,
    is_expendable: &mut IsExpendable<'_>,
) -> Result<PlanningResult, Error> {
    let _region = pronto_io::region!("unpack_trees", "unpack_trees");
    let mut refusals = Refusals::default();
    let mut verdicts = Vec::new();
    // Whether the sparse index is sufficient.
    let mut is_reported = true;
    let cached = view.index.cached_tree();
    let mut trees = Trees::new(new, old, cached.as_ref(), view.index);
    if old == Some(new) {
        trees.same_top();
    } else {
        walk(
            view.objects,
            Some(view.protect),
            old,
            Some(new),
            &mut |step| {
                match &step {
                    WalkEvent::Change(change) => {
                        is_reported &= standing_for(view.index, change.path).is_none();
                        decide(change, view, &mut verdicts, &mut refusals);
                    }
                    WalkEvent::Enter(subtree) => {
                        let (path, old, new) = (subtree.path, subtree.old, Some(subtree.new));
                        if let Some(known) = directory(path, old, new, view, &mut verdicts) {
                            is_reported &= known;
                            trees.stands(subtree);
                            return Ok(Go::Past);
                        }
                    }
                    WalkEvent::Gone(path, old) => {
                        let known = directory(path, Some(*old), None, view, &mut verdicts);
                        if let Some(known) = known {
                            is_reported &= known;
                            return Ok(Go::Past);
                        }
                    }
                    WalkEvent::Same(_) | WalkEvent::Unchanged | WalkEvent::Leave => {}
                }
                trees.step(&step);
                Ok(Go::On)
            },
        )?;
    }
    if !is_reported {
        return Ok(PlanningResult::Expand);
    }
    give_way(view, &mut verdicts);
    guard(view, &verdicts, is_expendable, &mut refusals)?;
    if !refusals.is_empty() {
        refusals.sort();
        return Ok(PlanningResult::Refused(refusals));
    }
    let mut unpacked = UnpackPlan::default();
    let stands = |verdict: &PathDecision| {
        matches!(verdict.standing, PathRelation::Alone | PathRelation::Above)
    };
    for verdict in verdicts.iter().filter(|verdict| stands(verdict)) {
        carry_out(verdict, view, &mut unpacked);
    }
    unpacked.cached_tree = Some(trees.finish());
    super::sparsity::follow(&mut unpacked, view)?;
    Ok(PlanningResult::Plan(unpacked))
}

/// Handles a directory that differs between the trees, if a sparse directory entry covers it. The entry
/// gets the new tree if it matches the old or the new tree; the result is true then.
fn directory(
    path: &BStr,
    old: TreeId,
    new: TreeId,
    view: &WorktreeView<'_>,
    verdicts: &mut Vec<PathDecision>,
) -> Option<bool> {
    let index = view.index;
    let position = standing_for(index, path)?;
    let entry = index.entry(position);
    let is = |tree: TreeId| tree.is_some_and(|tree| *entry.id == *tree);
    if is(new) {
        return Some(true);
    }
    verdicts.push(PathDecision {
        path: entry.path.to_owned(),
        position: Some(position),
        new: new.map(|id| TreeFile {
            id,
            mode: mode::TREE,
        }),
        standing: PathRelation::Alone,
    });
    Some(is(old))
}

/// Determines the result for one path that differs between the trees.
fn decide(
    change: &TreePathChange<'_>,
    view: &WorktreeView<'_>,
    verdicts: &mut Vec<PathDecision>,
    refusals: &mut Refusals,
) {
    let index = view.index;
    let mut refuse = || refusals.staged.push(change.path.to_owned());
    let position = match index.find(change.path, 0) {
        Ok(position) => Some(position),
        // An entry in conflict is never overwritten.
        Err(_) if !index.stages(change.path).is_empty() => return refuse(),
        Err(_) => None,
    };
    let is = |side: Option<TreeFile>| match (position, side) {
        (Some(position), Some(side)) => is_entry(&index.entry(position), side),
        _ => false,
    };
    match (position, change.old, change.new) {
        // The entry matches the new tree already.
        (Some(_), _, Some(_)) if is(change.new) => {}
        // The entry is unchanged: it is updated or removed.
        (Some(_), Some(_), _) if is(change.old) => {}
        // The entry was added or changed locally.
        (Some(_), ..) => return refuse(),
        // The path was removed locally, and changes in the new tree.
        (None, Some(_), Some(_)) => return refuse(),
        // The path is new, or removed on both sides.
        (None, ..) => {}
    }
    if is(change.new) {
        return;
    }
    verdicts.push(PathDecision {
        path: change.path.to_owned(),
        position,
        new: change.new,
        standing: PathRelation::Alone,
    });
}

/// Removes entries that obstruct new paths, as files in place of directories or the reverse, if no
/// content is lost.
fn give_way(view: &WorktreeView<'_>, verdicts: &mut Vec<PathDecision>) {
    let index = view.index;
    let known: BTreeSet<BString> = verdicts
        .iter()
        .map(|verdict| verdict.path.clone())
        .collect();
    let mut more: HashMap<usize, PathRelation> = HashMap::new();
    let mut last = BString::default();
    for verdict in verdicts.iter_mut() {
        if verdict.new.is_none() || verdict.position.is_some() {
            continue;
        }
        let below = index.below(verdict.path.as_bstr());
        let staged = below.filter(|position| !known.contains(index.path(*position)));
        // If the old tree had a directory, all of it is removed; otherwise staged files are kept.
        if had_directory(&known, verdict.path.as_bstr()) {
            more.extend(staged.map(|position| (position, PathRelation::Alone)));
        } else {
            let before = more.len();
            more.extend(staged.map(|position| (position, PathRelation::Below)));
            if more.len() > before {
                verdict.standing = PathRelation::Yields;
            }
        }
        let directory = super::worktree_view::split(verdict.path.as_bstr()).0;
        if directory == last {
            continue;
        }
        last = directory.to_owned();
        let slashes = directory.find_iter("/").chain([directory.len()]);
        for end in slashes.filter(|end| *end > 0) {
            let above = index.find(directory[..end].as_bstr(), 0).ok();
            more.extend(above.map(|position| (position, PathRelation::Above)));
        }
    }
    let before = verdicts.len();
    for (position, standing) in more {
        let path = index.path(position);
        if !known.contains(path) {
            verdicts.push(PathDecision {
                path: path.to_owned(),
                position: Some(position),
                new: None,
                standing,
            });
        }
    }
    if verdicts.len() > before {
        verdicts.sort_by(|one, two| one.path.cmp(&two.path));
    }
}

fn had_directory(changed: &BTreeSet<BString>, path: &BStr) -> bool {
    let mut below = path.to_owned();
    below.push(b'/');
    let next = changed.range(below.clone()..).next();
    next.is_some_and(|next| next.starts_with(&below))
}

/// Checks whether content would be lost.
fn guard(
    view: &WorktreeView<'_>,
    verdicts: &[PathDecision],
    is_expendable: &mut IsExpendable<'_>,
    refusals: &mut Refusals,
) -> Result<(), Error> {
    let index = view.index;
    let mut tracked: Vec<usize> = verdicts
        .iter()
        .filter(|verdict| verdict.standing != PathRelation::Above)
        .filter_map(|verdict| verdict.position)
        .filter(|position| {
            let entry = index.entry(*position);
            entry.mode != mode::GITLINK && !is_kept_away(view, &entry)
        })
        .collect();
    tracked.sort_unstable();
    guard::refuse_modified(view, &tracked, refusals)?;
    let goes = |path: &BStr| {
        let found = verdicts.binary_search_by(|verdict| verdict.path.as_bstr().cmp(path));
        found.is_ok_and(|at| verdicts[at].new.is_none())
    };
    guard::report_directories(view, &goes, is_expendable, refusals)?;
    let leaving: HashSet<&BStr> = verdicts
        .iter()
        .filter(|verdict| verdict.position.is_some() && verdict.standing != PathRelation::Above)
        .map(|verdict| verdict.path.as_bstr())
        .collect();
    let free: Vec<UntrackedPath<'_>> = verdicts
        .iter()
        .filter(|verdict| verdict.position.is_none())
        .filter(|verdict| is_wanted(verdict.path.as_bstr(), view))
        .map(|verdict| UntrackedPath {
            path: verdict.path.as_bstr(),
            mode: verdict.new.map(|side| side.mode),
        })
        .collect();
    guard::refuse_untracked(view, &free, &leaving, is_expendable, refusals)
}

/// Returns whether `entry` has no file because of the sparse checkout. As in Git, without
/// sparse-checkout patterns the skip-worktree bit has no effect.
fn is_kept_away(view: &WorktreeView<'_>, entry: &EntryRef<'_>) -> bool {
    view.sparse.is_some() && entry.flags.contains(Flags::SKIP_WORKTREE)
}

fn is_wanted(path: &BStr, view: &WorktreeView<'_>) -> bool {
    view.sparse.is_none_or(|sparse| sparse.includes(path))
}

fn carry_out(verdict: &PathDecision, view: &WorktreeView<'_>, unpacked: &mut UnpackPlan) {
    let path = verdict.path.as_bstr();
    let before = verdict.position.map(|position| view.index.entry(position));
    let skipped = before.is_some_and(|entry| is_kept_away(view, &entry));
    let Some(side) = verdict.new else {
        let Some(entry) = before else {
            return;
        };
        if !skipped && verdict.standing != PathRelation::Above {
            unpacked.plan.remove.push(PathRemoval {
                path: verdict.path.clone(),
                gitlink: entry.mode == mode::GITLINK,
            });
        }
        return unpacked.change(path, None, None);
    };
    if side.mode == mode::TREE {
        let entry = directory_entry(verdict.path.clone(), side.id);
        return unpacked.change(path, Some(entry), None);
    }
    if is_wanted(path, view) {
        unpacked.write(path, side, before.is_some() && !skipped);
        let is_marked = before.is_some_and(|entry| entry.flags.contains(Flags::SKIP_WORKTREE));
        if view.sparse.is_none() && is_marked {
            unpacked.mark_last();
        }
        return;
    }
    if before.is_some() && !skipped {
        unpacked.plan.remove.push(PathRemoval {
            path: verdict.path.clone(),
            gitlink: before.is_some_and(|entry| entry.mode == mode::GITLINK),
        });
    }
    let mut entry = new_entry(path, side);
    entry.flags = entry.flags.with(Flags::SKIP_WORKTREE);
    unpacked.change(path, Some(entry), None);
}
