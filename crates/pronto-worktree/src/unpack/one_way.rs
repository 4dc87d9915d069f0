//! Makes index and worktree equal to a tree and discards changes (`checkout -f`, `reset --hard`).

use bstr::{BStr, ByteSlice};
use pronto_hash::ObjectId;
use pronto_index::{CachedDirectory, CachedTree, CachedTreeBuilder, EntryRef, Flags, mode};

use super::guard::{self, IsExpendable, UntrackedPath};
use super::refusal::Refusals;
use super::worktree_view::WorktreeView;
use super::{
    IndexChange, PlanningResult, UnpackPlan, directory_entry, is_entry, new_entry, standing_for,
};
use crate::Error;
use crate::checkout::PathRemoval;
use crate::tree_walk::{Go, Subtree, TreePathChange, WalkEvent, walk};

/// Computes a plan that makes index and worktree equal to `tree`. The plan is refused because of the
/// current directory of the user, modified files of assume-unchanged or skip-worktree entries, and
/// untracked files. With `is_expendable`, untracked files are refused if it returns false; without it, no
/// untracked file is refused.
///
/// Files whose stat data differ from their entries are written again, so that their content is that of
/// a checkout. Sparse directory entries get the id of the tree and are not expanded. Trees that match a
/// valid cached tree are not read.
///
/// # Errors
/// Fails with [`MissingObject`](crate::ErrorKind::MissingObject),
/// [`CorruptObject`](crate::ErrorKind::CorruptObject) or [`HostilePath`](crate::ErrorKind::HostilePath)
/// if a tree is unusable, with [`Io`](crate::ErrorKind::Io) if a file cannot be examined, or with
/// [`Interrupted`](crate::ErrorKind::Interrupted).
pub fn one_way(
    tree: ObjectId,
    view: &WorktreeView<'_>,
    is_expendable: Option<&mut IsExpendable<'_>>,
) -> Result<PlanningResult, Error> {
    let _region = pronto_io::region!("unpack_trees", "unpack_trees");
    let view = &WorktreeView {
        stat_decides: true,
        ..*view
    };
    let mut reset = OneWayReset {
        view,
        next: 0,
        same: Vec::new(),
        unseen: Vec::new(),
        takes_directories: is_expendable.is_none(),
        refusals: Refusals::default(),
        unpacked: UnpackPlan::default(),
    };
    let cached = reset.tree(tree)?;
    reset.drop_before(None);
    guard::refuse_modified(view, &reset.unseen, &mut reset.refusals)?;
    let mut refusals = std::mem::take(&mut reset.refusals);
    let mut unpacked = reset.finish()?;
    unpacked.cached_tree = Some(cached);
    if let Some(is_expendable) = is_expendable {
        refuse_untracked(&unpacked, view, is_expendable, &mut refusals)?;
    }
    if refusals.is_empty() {
        return Ok(PlanningResult::Plan(unpacked));
    }
    refusals.sort();
    Ok(PlanningResult::Refused(refusals))
}

fn refuse_untracked(
    unpacked: &UnpackPlan,
    view: &WorktreeView<'_>,
    is_expendable: &mut IsExpendable<'_>,
    refusals: &mut Refusals,
) -> Result<(), Error> {
    let index = view.index;
    let items = unpacked.plan.write.iter();
    let free: Vec<UntrackedPath<'_>> = items
        .filter(|item| index.stages(item.path.as_bstr()).is_empty())
        .map(|item| UntrackedPath {
            path: item.path.as_bstr(),
            mode: Some(item.mode),
        })
        .collect();
    let leaving = index.iter().map(|entry| entry.path).collect();
    guard::refuse_untracked(view, &free, &leaving, is_expendable, refusals)
}

struct OneWayReset<'a, 's> {
    view: &'a WorktreeView<'s>,
    /// The position of the next index entry.
    next: usize,
    /// The entries that match the tree. Their files may be modified.
    same: Vec<usize>,
    /// The changed or removed entries whose files must be unmodified.
    unseen: Vec<usize>,
    /// Whether files may replace directories, regardless of their content.
    takes_directories: bool,
    refusals: Refusals,
    unpacked: UnpackPlan,
}

impl OneWayReset<'_, '_> {
    /// Walks the tree, and returns the cached trees of an index that equals it.
    fn tree(&mut self, tree: ObjectId) -> Result<CachedTree, Error> {
        let view = self.view;
        let known = view.index.cached_tree();
        let top = known.as_ref().map(CachedTree::root);
        let mut builder = CachedTree::builder(tree);
        if self.stays(top, BStr::new(""), tree, &mut builder) {
            return Ok(builder.finish());
        }
        let mut levels = vec![top];
        let mut visit = |step: WalkEvent<'_>| {
            match step {
                WalkEvent::Enter(subtree) => {
                    let above = levels.last().copied().flatten();
                    let known = above.and_then(|above| above.child(subtree.name()));
                    builder.enter(subtree.name(), subtree.new);
                    let stays = self.stays(known, subtree.path, subtree.new, &mut builder);
                    let stands = !stays && self.directory(&subtree);
                    if stands {
                        builder.add_entries(1);
                    }
                    if stays || stands {
                        builder.leave();
                        return Ok(Go::Past);
                    }
                    levels.push(known);
                }
                WalkEvent::Leave => {
                    levels.pop();
                    builder.leave();
                }
                WalkEvent::Change(change) => {
                    builder.add_entries(1);
                    self.path(&change);
                }
                WalkEvent::Same(_) | WalkEvent::Unchanged | WalkEvent::Gone(..) => {}
            }
            Ok(Go::On)
        };
        walk(
            view.objects,
            Some(view.protect),
            None,
            Some(tree),
            &mut visit,
        )?;
        Ok(builder.finish())
    }

    fn path(&mut self, change: &TreePathChange<'_>) {
        let Some(side) = change.new else {
            return;
        };
        let index = self.view.index;
        self.drop_before(Some(change.path));
        let stages = index.stages(change.path);
        let entry = (!stages.is_empty()).then(|| index.entry(stages.start));
        self.next = self.next.max(stages.end);
        let clean = entry.filter(|entry| entry.stage() == 0);
        if let Some(entry) = clean
            && is_entry(&entry, side)
        {
            return self.same(stages.start, &entry);
        }
        let skipped = clean.is_some() && self.is_skipped(stages.start);
        let wanted = self.is_wanted(change.path);
        if !wanted {
            // Local content of such files is not discarded without a comparison.
            if clean.is_some_and(|entry| entry.flags.contains(Flags::ASSUME_VALID)) {
                self.verify(stages.start);
            }
            return self.leave_out(change.path, side, entry.is_some() && !skipped);
        }
        if clean.is_some() {
            self.verify(stages.start);
        } else if self.takes_directories {
            guard::refuse_current_directory(self.view, change.path, &mut self.refusals);
        }
        let stays_marked = skipped && self.view.sparse.is_none();
        let is_there = entry.is_some() && (!skipped || stays_marked);
        self.unpacked.write(change.path, side, is_there);
        if stays_marked {
            self.unpacked.mark_last();
        }
    }

    /// Handles an entry that matches the tree.
    fn same(&mut self, position: usize, entry: &EntryRef<'_>) {
        let skipped = entry.flags.contains(Flags::SKIP_WORKTREE);
        let side = || super::TreeFile {
            id: entry.id.to_owned(),
            mode: entry.mode,
        };
        match (self.is_wanted(entry.path), skipped) {
            (true, false) => self.same.push(position),
            // Without sparse-checkout patterns the user has set the bit.
            (true, true) if self.view.sparse.is_none() => {}
            (true, true) => self.unpacked.write(entry.path, side(), false),
            (false, _) => self.leave_out(entry.path, side(), !skipped),
        }
    }

    /// Returns whether the entries below `path` match `tree` according to their cached tree. The
    /// directory is then completed, and its cached tree is kept.
    fn stays(
        &mut self,
        known: Option<CachedDirectory<'_>>,
        path: &BStr,
        tree: ObjectId,
        builder: &mut CachedTreeBuilder,
    ) -> bool {
        let makes = |known: &CachedDirectory<'_>| known.id().is_some_and(|id| *id == *tree);
        let Some(known) = known.filter(makes) else {
            return false;
        };
        let index = self.view.index;
        let entries = index.below(path);
        let is_plain = |entry: EntryRef<'_>| {
            entry.stage() == 0
                && entry.mode != mode::TREE
                && !entry.flags.contains(Flags::INTENT_TO_ADD)
        };
        if entries.is_empty()
            || known.entry_count() != Some(entries.len())
            || !entries.clone().all(|at| is_plain(index.entry(at)))
        {
            return false;
        }
        self.drop_before(Some(index.path(entries.start)));
        for at in entries.clone() {
            self.same(at, &index.entry(at));
        }
        self.next = self.next.max(entries.end);
        builder.copy(known);
        true
    }

    /// Returns whether a sparse directory entry covers the directory. The entry gets the id of the
    /// tree.
    fn directory(&mut self, subtree: &Subtree<'_>) -> bool {
        let index = self.view.index;
        let Some(position) = standing_for(index, subtree.path) else {
            return false;
        };
        let entry = index.entry(position);
        self.drop_before(Some(entry.path));
        self.next = self.next.max(position + 1);
        if *entry.id != *subtree.new {
            let entry = directory_entry(entry.path.to_owned(), subtree.new);
            self.unpacked.changes.push(IndexChange {
                path: entry.path.clone(),
                entry: Some(entry),
                item: None,
            });
        }
        true
    }

    fn is_wanted(&self, path: &BStr) -> bool {
        let sparse = self.view.sparse;
        sparse.is_none_or(|sparse| sparse.includes(path))
    }

    fn is_skipped(&self, position: usize) -> bool {
        let flags = self.view.index.entry(position).flags;
        flags.contains(Flags::SKIP_WORKTREE)
    }

    /// Requires that the file of a changed or removed entry is unmodified, if the entry's bits exclude
    /// it from other comparisons.
    fn verify(&mut self, position: usize) {
        if guard::is_unseen(&self.view.index.entry(position)) {
            self.unseen.push(position);
        }
    }

    /// Adds an entry for a path outside of the sparse-checkout patterns.
    fn leave_out(&mut self, path: &BStr, side: super::TreeFile, remove: bool) {
        if remove {
            self.unpacked.plan.remove.push(PathRemoval {
                path: path.to_owned(),
                gitlink: side.mode == mode::GITLINK,
            });
        }
        let mut entry = new_entry(path, side);
        entry.flags = entry.flags.with(Flags::SKIP_WORKTREE);
        self.unpacked.change(path, Some(entry), None);
    }

    /// Removes the entries that sort before `path`, which are not in the tree.
    fn drop_before(&mut self, path: Option<&BStr>) {
        let view = self.view;
        let index = view.index;
        while self.next < index.len() {
            let entry = index.entry(self.next);
            if path.is_some_and(|path| entry.path >= path) {
                break;
            }
            self.next += 1;
            let dropped = self.unpacked.changes.last();
            if dropped.is_some_and(|change| change.path == entry.path) {
                continue;
            }
            let is_seen = self.is_wanted(entry.path) || entry.flags.contains(Flags::ASSUME_VALID);
            if is_seen && entry.stage() == 0 {
                self.verify(self.next - 1);
            }
            guard::refuse_current_directory(view, entry.path, &mut self.refusals);
            if view.sparse.is_none() || !self.is_skipped(self.next - 1) {
                self.unpacked.plan.remove.push(PathRemoval {
                    path: entry.path.to_owned(),
                    gitlink: entry.mode == mode::GITLINK,
                });
            }
            self.unpacked.change(entry.path, None, None);
        }
    }

    /// Adds the files that differ from their entries, and updated stat data of the others.
    fn finish(self) -> Result<UnpackPlan, Error> {
        let (view, mut unpacked) = (self.view, self.unpacked);
        let index = view.index;
        let compared = guard::compare(view, &self.same)?;
        let check = |path: &BStr, mode: u32| {
            let is_symlink = mode & mode::TYPE == mode::SYMLINK;
            view.protect.check_path(path, is_symlink)
        };
        // Paths from the index alone come from no tree whose names were checked.
        if view.sparse.is_some() {
            for item in &unpacked.plan.write {
                check(item.path.as_bstr(), item.mode)?;
            }
        }
        let missing = compared.missing.iter().chain(&compared.obstructed);
        let rewrite = missing.map(|position| (*position, false));
        let rewrite = rewrite.chain(compared.modified.iter().map(|position| (*position, true)));
        for (position, replaces) in rewrite {
            let entry = index.entry(position);
            check(entry.path, entry.mode)?;
            let side = super::TreeFile {
                id: entry.id.to_owned(),
                mode: entry.mode,
            };
            unpacked.write(entry.path, side, replaces);
            let flags = entry.flags;
            if let Some(change) = unpacked.changes.last_mut()
                && let Some(entry) = &mut change.entry
            {
                entry.flags = flags;
            }
        }
        for (position, stat) in compared.same {
            let entry = index.entry(position);
            if entry.stat != stat {
                let mut entry = entry.to_owned();
                entry.stat = stat;
                entry.flags = entry.flags.with(Flags::UP_TO_DATE);
                unpacked.changes.push(IndexChange {
                    path: entry.path.clone(),
                    entry: Some(entry),
                    item: None,
                });
            }
        }
        unpacked.changes.sort_by(|one, two| one.path.cmp(&two.path));
        unpacked.put_items_in_order();
        Ok(unpacked)
    }
}

impl UnpackPlan {
    /// Sorts the items in index order, and updates the item numbers in the changes.
    pub(super) fn put_items_in_order(&mut self) {
        let mut items = Vec::with_capacity(self.plan.write.len());
        for change in &mut self.changes {
            if let Some(item) = &mut change.item {
                items.push(self.plan.write[*item as usize].clone());
                *item = items.len() as u32 - 1;
            }
        }
        self.plan.write = items;
        self.plan
            .remove
            .sort_by(|one, two| one.path.as_bstr().cmp(two.path.as_bstr()));
    }
}
