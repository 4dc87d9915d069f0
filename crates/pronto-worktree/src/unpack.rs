//! Computes a plan for the worktree and a new index from trees and the present index. Refuses to
//! lose content that is recorded nowhere, as Git does.
//!
//! - [`all`]: a whole tree into an empty worktree: clone.
//! - [`one_way`]: makes the index equal to a tree, discarding changes: `checkout -f`, `reset
//!   --hard`.
//! - [`two_way`]: from one tree to another, keeping local changes: switching branches.
//! - [`merge`]: one, two or three trees, comparing stat data only: `read-tree`.
//!
//! Costs depend on what differs: subtrees that two trees share are not read.

use bstr::{BStr, BString, ByteSlice};
use pronto_hash::ObjectId;
use pronto_index::{CachedTree, Entry, EntryRef, Flags, Index, Stat, mode};

use crate::checkout::{Item, Outcome, Plan};
use crate::sparse::Leftover;
use crate::tree_walk::TreeId;
pub use crate::tree_walk::{Change, Side, diff};

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
pub use guard::MayGo;
pub use one_way::one_way;
pub use refusal::{Refusal, Refusals};
pub use sparsity::sparsity;
pub use two_way::two_way;
pub use worktree_view::{Checker, WorktreeView};

/// The result of planning.
#[derive(Debug)]
pub enum Decision {
    /// Nothing is lost by this.
    Plan(Unpacked),
    /// Something would be lost. Nothing has been done.
    Refused(Refusals),
    /// A sparse index is not sufficient: call again with an entry for each file. Only [`two_way`]
    /// returns this, and nothing has been done.
    Expand,
}

/// The actions and the new index.
#[derive(Debug, Default)]
pub struct Unpacked {
    /// For the worktree.
    pub plan: Plan,
    /// The changes of index entries, in the order of the index; at most one for each path.
    pub changes: Vec<IndexChange>,
    /// The cached trees of the new index.
    pub cached_tree: Option<CachedTree>,
    /// Paths that do not follow the patterns of a sparse checkout.
    pub leftover: Leftover,
}

/// A path whose entries change.
#[derive(Debug)]
pub struct IndexChange {
    /// From the top of the worktree.
    pub path: BString,
    /// The new entry; `None` if there is none any more.
    pub entry: Option<Entry>,
    /// The item of the plan that supplies the stat data of the entry.
    pub item: Option<u32>,
}

impl Unpacked {
    /// Copies the stat data of the written files into the changes. The entry of a file that could
    /// not be written gets stat data that match nothing.
    pub fn record(&mut self, outcome: &Outcome) {
        for change in &mut self.changes {
            let (Some(entry), Some(item)) = (&mut change.entry, change.item) else {
                continue;
            };
            record_stat(entry, item, outcome);
        }
    }

    /// The entries of the new index: those of `index` with the changes.
    pub fn entries<'a>(&'a self, index: &'a Index) -> Vec<EntryRef<'a>> {
        let mut entries = Vec::with_capacity(index.len() + self.changes.len());
        let mut changes = self.changes.iter().peekable();
        for old in index.iter() {
            while let Some(change) = changes.next_if(|change| change.path.as_bstr() < old.path) {
                entries.extend(change.entry.as_ref().map(Entry::as_ref));
            }
            // The change replaces all stages, so it is passed when the path is.
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

    /// A new entry that is to be written.
    fn write(&mut self, path: &BStr, side: Side, replaces: bool) {
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

/// Copies the stat data of the file that `item` wrote, if it did, into its entry.
fn record_stat(entry: &mut Entry, item: u32, outcome: &Outcome) {
    if let Some(Some(stat)) = outcome.written.get(item as usize) {
        entry.stat = *stat;
        entry.flags = entry.flags.with(Flags::UP_TO_DATE);
    }
}

/// Adds a file to be written, and gives its number in the plan.
fn add_item(plan: &mut Plan, path: &BStr, side: Side, replaces: bool) -> u32 {
    plan.write.push(Item {
        path: path.to_owned(),
        id: side.id,
        mode: side.mode,
        replaces,
    });
    plan.write.len() as u32 - 1
}

fn new_entry(path: &BStr, side: Side) -> Entry {
    Entry {
        path: path.to_owned(),
        id: side.id,
        mode: side.mode,
        flags: Flags::default(),
        stat: Stat::default(),
    }
}

/// The position of the sparse entry of `index` for the directory `path`.
fn standing_for(index: &Index, path: &BStr) -> Option<usize> {
    if !index.is_sparse() {
        return None;
    }
    let path = [path, b"/".as_slice()].concat();
    let found = index.find(path.as_bstr(), 0).ok();
    found.filter(|at| index.entry(*at).is_sparse_directory())
}

/// Returns the index entry of a whole directory with `tree`, of which nothing is to be in the
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

/// Whether two sides are the same entry.
fn is_entry(entry: &EntryRef<'_>, side: Side) -> bool {
    entry.id == &side.id as &pronto_hash::oid && entry.mode == side.mode
}
