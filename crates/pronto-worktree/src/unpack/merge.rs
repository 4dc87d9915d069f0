//! Merges up to three trees and the index into a new index, path by path (`git read-tree -m`).
//!
//! Unlike [`two_way`](super::two_way), this compares only stat data, as Git's plumbing does.
//! Directories that are equal in all trees and in the cached trees of the index are not read.

use std::collections::HashSet;
use std::ops::Range;

use bstr::{BStr, BString, ByteSlice};
use pronto_hash::{ObjectId, oid};
use pronto_index::{
    CachedDirectory, CachedTree, CachedTreeBuilder, Entry, EntryRef, Flags, Index, mode,
};

use super::guard::{self, IsExpendable};
use super::refusal::Refusals;
use super::worktree_view::WorktreeView;
use super::{TreeFile, TreeId, add_item, is_entry, new_entry, record_stat};
use crate::checkout::{CheckoutPlan, Outcome, PathRemoval};
use crate::error::check;
use crate::names::{IndexedName, compare};
use crate::tree_list::{ListedTreeEntry, read_tree};
use crate::tree_walk::put_in_order;
use crate::{Error, objects};
use lists::{files, slots, take};
use rules::{MergeResult, TreeSide};

mod bind;
mod finish;
mod lists;
mod rules;

pub use bind::bind;
pub use rules::MergeRule;

/// The trees and options of a merge.
#[derive(Clone, Copy, Debug)]
pub struct Request<'a> {
    /// The trees, in the number that the rule requires.
    pub trees: &'a [ObjectId],
    /// The rule for each path.
    pub rule: MergeRule,
    /// Discard local changes (`--reset`).
    pub reset: bool,
    /// Update the worktree (`-u`).
    pub update: bool,
    /// Whether files are examined. Otherwise only the index matters (the opposite of `-i`).
    pub look: bool,
}

/// The result of a merge.
#[derive(Debug)]
pub enum MergeDecision {
    /// The plan, which loses no content.
    Plan(MergedIndex),
    /// The plan would lose content.
    Refused(Refusals),
}

/// The new index, and the plan for the worktree.
#[derive(Debug, Default)]
pub struct MergedIndex {
    /// The plan for the worktree.
    pub plan: CheckoutPlan,
    /// The cached trees of the new index.
    pub cached_tree: Option<CachedTree>,
    /// Whether a path is in conflict.
    pub has_conflicts: bool,
    parts: Vec<MergedEntries>,
}

#[derive(Debug)]
enum MergedEntries {
    /// Entries of the old index.
    Old(Range<usize>),
    /// A new entry, and the item that writes its file.
    New(Box<Entry>, Option<u32>),
}

impl MergedIndex {
    /// Copies the stat data of the written files into the new entries.
    pub fn record(&mut self, outcome: &Outcome) {
        for part in &mut self.parts {
            let MergedEntries::New(entry, Some(item)) = part else {
                continue;
            };
            record_stat(entry, *item, outcome);
        }
    }

    /// Returns the entries of the new index. `index` is the old one.
    pub fn entries<'a>(&'a self, index: &'a Index) -> Vec<EntryRef<'a>> {
        let mut entries = Vec::with_capacity(index.len());
        for part in &self.parts {
            match part {
                MergedEntries::Old(range) => {
                    entries.extend(range.clone().map(|at| index.entry(at)))
                }
                MergedEntries::New(entry, _) => entries.push((**entry).as_ref()),
            }
        }
        entries
    }
}

/// Merges trees and index. `is_expendable` returns which untracked files may be overwritten.
///
/// # Errors
/// Fails with one of these [kinds](crate::ErrorKind): `MissingObject`, `CorruptObject` or `HostilePath` if a
/// tree is unusable, `Io` if a file cannot be examined, `Interrupted`, or `Unsupported` if files and
/// directories replace each other in the index.
pub fn merge(
    request: &Request<'_>,
    view: &WorktreeView<'_>,
    is_expendable: &mut IsExpendable<'_>,
) -> Result<MergeDecision, Error> {
    let _region = pronto_io::region!("unpack_trees", "unpack_trees");
    let index = view.index;
    let cached = index.cached_tree();
    let mut walk = UnpackWalk::new(request, view);
    if let [tree] = request.trees {
        walk.builder = Some(CachedTree::builder(*tree));
    }
    let trees: Vec<TreeId> = request.trees.iter().map(|tree| Some(*tree)).collect();
    let top = cached.as_ref().map(CachedTree::root);
    walk.run(&trees, top)?;
    walk.finish(is_expendable)
}

struct UnpackWalk<'a, 's> {
    request: &'a Request<'a>,
    view: &'a WorktreeView<'s>,
    /// The builder of the cached trees, if the index becomes equal to a single tree.
    builder: Option<CachedTreeBuilder>,
    merged: MergedIndex,
    refusals: Refusals,
    /// The entries whose files must be unmodified.
    present: Vec<usize>,
    /// The kept entries whose files may have to be restored.
    same: Vec<usize>,
    /// The paths that must have no untracked file, with their new mode.
    free: Vec<(BString, Option<u32>)>,
    /// The entries that are changed or removed.
    gone: HashSet<usize>,
    changed: Vec<BString>,
    /// For each tree, whether it has a file with the path of this directory.
    blocked: [bool; 3],
    /// The number of directories that the walk has entered.
    depth: usize,
}

/// A directory that is being merged, on an explicit stack, which nested trees cannot overflow.
struct MergedDirectory<'c> {
    lists: Vec<Vec<ListedTreeEntry>>,
    /// The position of the next entry in each list.
    cursors: Vec<usize>,
    /// The entries of the index that are not merged yet.
    entries: Range<usize>,
    cached: Option<CachedDirectory<'c>>,
    outer: ParentState,
}

/// The state of the parent directory.
#[derive(Clone, Copy, Default)]
struct ParentState {
    prefix_len: usize,
    blocked: [bool; 3],
    /// Whether the builder has entered the directory.
    is_built: bool,
}

/// A name in a directory.
struct DirectoryName {
    name: Vec<u8>,
    is_directory: bool,
    /// The entries of the index.
    entries: Option<Range<usize>>,
}

impl<'a, 's> UnpackWalk<'a, 's> {
    fn new(request: &'a Request<'a>, view: &'a WorktreeView<'s>) -> UnpackWalk<'a, 's> {
        UnpackWalk {
            request,
            view,
            builder: None,
            merged: MergedIndex::default(),
            refusals: Refusals::default(),
            present: Vec::new(),
            same: Vec::new(),
            free: Vec::new(),
            gone: HashSet::new(),
            changed: Vec::new(),
            blocked: [false; 3],
            depth: 0,
        }
    }

    fn run<'c>(
        &mut self,
        trees: &[TreeId],
        cached: Option<CachedDirectory<'c>>,
    ) -> Result<(), Error> {
        let mut prefix = BString::default();
        let (entries, outer) = (0..self.view.index.len(), ParentState::default());
        let top = self.level(trees, entries, prefix.as_bstr(), cached, outer)?;
        let mut levels: Vec<MergedDirectory<'c>> = top.into_iter().collect();
        self.depth = levels.len();
        while let Some(level) = levels.last_mut() {
            let Some(next) = level.next(self.view.index, prefix.len()) else {
                self.leave(level.outer, &mut prefix);
                levels.pop();
                self.depth = levels.len();
                continue;
            };
            let len = prefix.len();
            prefix.extend_from_slice(&next.name);
            if next.is_directory {
                let below = self.below(level, next, &mut prefix)?;
                levels.extend(below);
                self.depth = levels.len();
                continue;
            }
            let (cursors, name) = (&mut level.cursors, &next.name);
            let found = take(&level.lists, cursors, name, false);
            let mut slots = slots(&level.lists, cursors, &found, name);
            for (slot, blocked) in slots.iter_mut().zip(self.blocked) {
                if blocked {
                    *slot = TreeSide::OtherKind;
                }
            }
            self.file(&slots, next.entries, prefix.as_bstr())?;
            prefix.truncate(len);
        }
        Ok(())
    }

    /// Opens the directory `prefix`. Returns `None` if the directory is unchanged.
    fn level<'c>(
        &mut self,
        trees: &[TreeId],
        entries: Range<usize>,
        prefix: &BStr,
        cached: Option<CachedDirectory<'c>>,
        outer: ParentState,
    ) -> Result<Option<MergedDirectory<'c>>, Error> {
        let known = cached.filter(|cached| cached.entry_count() == Some(entries.len()));
        let id = known.and_then(|known| known.id());
        let restores = self.request.reset && self.request.update;
        let is_id = |tree: &TreeId| {
            tree.as_ref()
                .zip(id)
                .is_some_and(|(tree, id)| **tree == *id)
        };
        if !restores && trees.iter().all(is_id) {
            if let (Some(builder), Some(known)) = (&mut self.builder, known) {
                builder.copy(known);
            }
            self.keep(entries);
            return Ok(None);
        }
        objects::check_depth(self.depth)?;
        check(self.view.interrupt)?;
        let lists = self.read(trees, prefix)?;
        Ok(Some(MergedDirectory {
            cursors: vec![0; lists.len()],
            lists,
            entries,
            cached,
            outer,
        }))
    }

    /// Enters the subdirectory `next` of `above`, whose path without a slash is `prefix`. Returns the
    /// level unless the directory is unchanged.
    fn below<'c>(
        &mut self,
        above: &mut MergedDirectory<'c>,
        next: DirectoryName,
        prefix: &mut BString,
    ) -> Result<Option<MergedDirectory<'c>>, Error> {
        let name = next.name.as_bstr();
        let found = take(&above.lists, &mut above.cursors, name, true);
        let trees: Vec<TreeId> = found
            .iter()
            .map(|found| Some(found.as_ref()?.side.id))
            .collect();
        let mut outer = ParentState {
            prefix_len: prefix.len() - name.len(),
            blocked: self.blocked,
            is_built: false,
        };
        let files = files(&above.lists, &above.cursors, name);
        for (blocked, is_file) in self.blocked.iter_mut().zip(files) {
            *blocked |= is_file;
        }
        if let (Some(builder), Some(Some(id))) = (&mut self.builder, trees.first()) {
            builder.enter(name, *id);
            outer.is_built = true;
        }
        let cached = above.cached.and_then(|cached| cached.child(name));
        prefix.push(b'/');
        let entries = next.entries.unwrap_or_default();
        let below = self.level(&trees, entries, prefix.as_bstr(), cached, outer)?;
        if below.is_none() {
            self.leave(outer, prefix);
        }
        Ok(below)
    }

    /// Leaves a directory.
    fn leave(&mut self, outer: ParentState, prefix: &mut BString) {
        if outer.is_built
            && let Some(builder) = &mut self.builder
        {
            builder.leave();
        }
        self.blocked = outer.blocked;
        prefix.truncate(outer.prefix_len);
    }

    fn read(&self, trees: &[TreeId], prefix: &BStr) -> Result<Vec<Vec<ListedTreeEntry>>, Error> {
        let source = self.view.objects;
        let mut read = |id: &oid, content: &mut Vec<u8>| objects::tree(source, id, content);
        let mut lists: Vec<Vec<ListedTreeEntry>> = Vec::with_capacity(trees.len());
        for (at, tree) in trees.iter().enumerate() {
            let known = trees[..at].iter().position(|other| other == tree);
            lists.push(match (known, tree) {
                (_, None) => Vec::new(),
                (Some(known), _) => lists[known].clone(),
                (None, Some(tree)) => {
                    let mut list = read_tree(tree, &mut read)?;
                    put_in_order(&mut list, *tree, prefix)?;
                    list
                }
            });
        }
        Ok(lists)
    }

    fn keep(&mut self, entries: Range<usize>) {
        if let Some(MergedEntries::Old(last)) = self.merged.parts.last_mut()
            && last.end == entries.start
        {
            last.end = entries.end;
        } else if !entries.is_empty() {
            self.merged.parts.push(MergedEntries::Old(entries));
        }
    }

    fn file(
        &mut self,
        slots: &[TreeSide],
        stages: Option<Range<usize>>,
        path: &BStr,
    ) -> Result<(), Error> {
        let index = self.view.index;
        let position = stages.as_ref().map(|stages| stages.start);
        let current = position.map(|position| index.entry(position));
        if let (Some(builder), Some(TreeSide::File(_))) = (&mut self.builder, slots.first()) {
            builder.add_entries(1);
        }
        let verdict = rules::decide(
            self.request.rule,
            self.request.reset,
            current.as_ref(),
            slots,
        );
        let clean = current.filter(|current| current.stage() == 0);
        if self.takes_directory(verdict, clean.is_some()) {
            guard::refuse_current_directory(self.view, path, &mut self.refusals);
        }
        match verdict {
            MergeResult::Become(side) if clean.is_some_and(|clean| is_entry(&clean, side)) => {
                self.same.extend(position);
                self.keep(stages.unwrap_or_default());
                return Ok(());
            }
            MergeResult::Keep => {
                self.keep(stages.unwrap_or_default());
                return Ok(());
            }
            MergeResult::Nothing => return Ok(()),
            MergeResult::Free => {
                self.free.push((path.to_owned(), None));
                return Ok(());
            }
            MergeResult::Refuse => {
                self.refusals.staged.push(path.to_owned());
                return Ok(());
            }
            MergeResult::Become(_) | MergeResult::Go | MergeResult::Conflict(_) => {}
        }
        self.gone.extend(stages.into_iter().flatten());
        self.changed.push(path.to_owned());
        self.present.extend(position.filter(|_| clean.is_some()));
        match verdict {
            MergeResult::Become(side) => self.change(path, side, current),
            MergeResult::Conflict(sides) => self.conflict(path, sides),
            _ => {
                if self.request.update && current.is_some() {
                    self.merged.plan.remove.push(PathRemoval {
                        path: path.to_owned(),
                        gitlink: current.is_some_and(|current| current.mode == mode::GITLINK),
                    });
                }
                Ok(())
            }
        }
    }

    /// Returns whether a reset replaces a directory by a file, or removes it. As in Git, this is not
    /// checked if the index has an entry for the file already.
    fn takes_directory(&self, verdict: MergeResult, has_entry: bool) -> bool {
        let request = self.request;
        request.reset
            && request.update
            && match verdict {
                MergeResult::Become(_) => !has_entry,
                MergeResult::Go | MergeResult::Free => true,
                _ => false,
            }
    }

    fn change(
        &mut self,
        path: &BStr,
        side: TreeFile,
        current: Option<EntryRef<'_>>,
    ) -> Result<(), Error> {
        let is_link = side.mode == mode::SYMLINK;
        self.view.protect.check_path(path, is_link)?;
        let skipped = current.is_some_and(|it| it.flags.contains(Flags::SKIP_WORKTREE));
        let sparse = self.view.sparse.filter(|_| self.request.update);
        let stays_out = sparse.is_some_and(|sparse| !sparse.includes(path));
        if (current.is_none() && !stays_out) || (sparse.is_some() && skipped && !stays_out) {
            self.free.push((path.to_owned(), Some(side.mode)));
        }
        let mut entry = new_entry(path, side);
        // The skip-worktree bit is kept. Without sparse-checkout patterns, the file is written.
        if stays_out || (skipped && sparse.is_none()) {
            entry.flags = entry.flags.with(Flags::SKIP_WORKTREE);
        }
        let mut item = None;
        let is_there = current.is_some() && !(skipped && sparse.is_some());
        if self.request.update && !stays_out {
            item = Some(self.write(path, side, is_there));
        } else if stays_out && is_there {
            self.merged.plan.remove.push(PathRemoval {
                path: path.to_owned(),
                gitlink: current.is_some_and(|current| current.mode == mode::GITLINK),
            });
        }
        self.merged
            .parts
            .push(MergedEntries::New(Box::new(entry), item));
        Ok(())
    }

    fn write(&mut self, path: &BStr, side: TreeFile, replaces: bool) -> u32 {
        add_item(&mut self.merged.plan, path, side, replaces)
    }

    fn conflict(&mut self, path: &BStr, sides: [Option<TreeFile>; 3]) -> Result<(), Error> {
        self.merged.has_conflicts = true;
        for (stage, side) in (1..).zip(sides) {
            let Some(side) = side else { continue };
            let is_link = side.mode == mode::SYMLINK;
            self.view.protect.check_path(path, is_link)?;
            let mut entry = new_entry(path, side);
            entry.flags = entry.flags.with_stage(stage);
            self.merged
                .parts
                .push(MergedEntries::New(Box::new(entry), None));
        }
        Ok(())
    }
}

impl MergedDirectory<'_> {
    /// Returns the next name of the directory, whose path has `prefix_len` bytes with a slash, and
    /// removes its index entries from the level.
    fn next(&mut self, index: &Index, prefix_len: usize) -> Option<DirectoryName> {
        let Range { start, end } = self.entries;
        let child = (start < end).then(|| IndexedName::at(index, start, end, prefix_len));
        let lists = self.lists.iter().zip(&self.cursors);
        let trees = lists.filter_map(|(list, at)| list.get(*at));
        let own = child.as_ref().map(IndexedName::key);
        let names = trees.map(ListedTreeEntry::key).chain(own);
        let least = names.min_by(|one, two| compare(*one, *two))?;
        let child = child.filter(|_| own == Some(least));
        if let Some(child) = &child {
            self.entries.start = child.entries.end;
        }
        Some(DirectoryName {
            name: least.name.to_vec(),
            is_directory: least.is_directory,
            entries: child.map(|child| child.entries),
        })
    }
}
