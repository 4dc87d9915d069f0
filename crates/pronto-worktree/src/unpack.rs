//! Computes a plan for the worktree and a new index from trees and the current index (Git's
//! unpack-trees). As in Git, content that is not recorded as an object is never overwritten without
//! permission.
//!
//! - [`all`]: a whole tree into an empty worktree, for a clone.
//! - [`one_way`]: makes the index equal to a tree and discards changes, for `checkout -f` and
//!   `reset --hard`.
//! - [`two_way`]: from one tree to another with local changes kept, for a branch switch.
//! - [`merge`]: one, two or three trees, comparing only stat data, for `read-tree`.
//!
//! The costs depend on the differences: subtrees that two trees share are not read.

use bstr::{BStr, BString, ByteSlice};
use pronto_hash::ObjectId;
use pronto_index::{CachedTree, Entry, EntryRef, Flags, Index, Stat, mode};

use crate::checkout::{CheckoutItem, CheckoutPlan, Outcome};
use crate::sparse::Leftover;
use crate::tree_walk::TreeId;
pub use crate::tree_walk::{TreeFile, TreePathChange, diff};

mod cached;
mod fresh;
mod guard;
pub mod merge;
mod one_way;
mod refusal;
mod sparsity;
mod two_way;
mod worktree_view;

pub use fresh::{all, files};
pub use guard::IsExpendable;
pub use one_way::one_way;
pub use refusal::{ObstructedPath, Refusals};
pub use sparsity::sparsity;
pub use two_way::two_way;
pub use worktree_view::{ContentChecker, WorktreeView};

/// The result of planning.
#[derive(Debug)]
pub enum PlanningResult {
    /// The plan, which loses no content.
    Plan(UnpackPlan),
    /// The plan would lose content. Nothing was changed.
    Refused(Refusals),
    /// The sparse index is not sufficient: call again with an expanded index. Only [`two_way`] returns
    /// this, and nothing was changed.
    Expand,
}

/// The plan for the worktree and the changes of the index.
#[derive(Debug, Default)]
pub struct UnpackPlan {
    /// The plan for the worktree.
    pub plan: CheckoutPlan,
    /// The changes of index entries in index order, at most one for each path.
    pub changes: Vec<IndexChange>,
    /// The cached trees of the new index.
    pub cached_tree: Option<CachedTree>,
    /// Paths that do not match the sparse-checkout patterns.
    pub leftover: Leftover,
}

/// A path whose index entries change.
#[derive(Debug)]
pub struct IndexChange {
    /// The path from the top of the worktree.
    pub path: BString,
    /// The new entry; `None` if the path is removed from the index.
    pub entry: Option<Entry>,
    /// The item of the plan that supplies the stat data of the entry.
    pub item: Option<u32>,
}

impl UnpackPlan {
    /// Copies the stat data of the written files into the changed entries. The entry of a file that
    /// could not be written gets stat data that match no file.
    pub fn record(&mut self, outcome: &Outcome) {
        for change in &mut self.changes {
            let (Some(entry), Some(item)) = (&mut change.entry, change.item) else {
                continue;
            };
            record_stat(entry, item, outcome);
        }
    }

    /// Returns the entries of the new index: those of `index` with the changes applied.
    pub fn entries<'a>(&'a self, index: &'a Index) -> Vec<EntryRef<'a>> {
        let mut entries = Vec::with_capacity(index.len() + self.changes.len());
        let mut changes = self.changes.iter().peekable();
        for old in index.iter() {
            while let Some(change) = changes.next_if(|change| change.path.as_bstr() < old.path) {
                entries.extend(change.entry.as_ref().map(Entry::as_ref));
            }
            // A change replaces all stages of its path, so it ends with the path.
            if changes
                .peek()
                .is_none_or(|change| change.path.as_bstr() != old.path)
            {
                entries.push(old);
            }
        }
        entries.extend(changes.filter_map(|change| change.entry.as_ref().map(Entry::as_ref)));
        entries
    }

    /// Adds a new entry whose file is written.
    fn write(&mut self, path: &BStr, side: TreeFile, replaces: bool) {
        let item = add_item(&mut self.plan, path, side, replaces);
        self.change(path, Some(new_entry(path, side)), Some(item));
    }

    /// Marks the entry of the last change with [`Flags::SKIP_WORKTREE`].
    fn mark_last(&mut self) {
        let last = self
            .changes
            .last_mut()
            .and_then(|change| change.entry.as_mut());
        if let Some(entry) = last {
            entry.flags = entry.flags.with(Flags::SKIP_WORKTREE);
        }
    }

    fn change(&mut self, path: &BStr, entry: Option<Entry>, item: Option<u32>) {
        let path = path.to_owned();
        self.changes.push(IndexChange { path, entry, item });
    }
}

/// Copies the stat data of the file that `item` has written, if any, into its entry.
fn record_stat(entry: &mut Entry, item: u32, outcome: &Outcome) {
    if let Some(Some(stat)) = outcome.written.get(item as usize) {
        entry.stat = *stat;
        entry.flags = entry.flags.with(Flags::UP_TO_DATE);
    }
}

/// Adds a file to write. Returns its index in the plan.
fn add_item(plan: &mut CheckoutPlan, path: &BStr, side: TreeFile, replaces: bool) -> u32 {
    plan.write.push(CheckoutItem {
        path: path.to_owned(),
        id: side.id,
        mode: side.mode,
        replaces,
    });
    plan.write.len() as u32 - 1
}

fn new_entry(path: &BStr, side: TreeFile) -> Entry {
    Entry {
        path: path.to_owned(),
        id: side.id,
        mode: side.mode,
        flags: Flags::default(),
        stat: Stat::default(),
    }
}

/// Returns the position of the sparse directory entry of `index` for the directory `path`.
fn standing_for(index: &Index, path: &BStr) -> Option<usize> {
    if !index.is_sparse() {
        return None;
    }
    let path = [path, b"/".as_slice()].concat();
    let found = index.find(path.as_bstr(), 0).ok();
    found.filter(|at| index.entry(*at).is_sparse_directory())
}

/// Returns a sparse directory entry for a directory with `tree` that is completely outside of the
/// worktree.
fn directory_entry(path: BString, tree: ObjectId) -> Entry {
    Entry {
        path,
        id: tree,
        mode: mode::TREE,
        flags: Flags::SKIP_WORKTREE,
        stat: Stat::default(),
    }
}

/// Returns whether the entry has the id and mode of `side`.
fn is_entry(entry: &EntryRef<'_>, side: TreeFile) -> bool {
    entry.id == &side.id as &pronto_hash::oid && entry.mode == side.mode
}
