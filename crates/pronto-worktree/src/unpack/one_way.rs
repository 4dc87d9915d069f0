//! The index becomes a tree and the worktree follows, whatever is there: `checkout -f`,
//! `reset --hard`.

use bstr::{BStr, ByteSlice};
use pronto_hash::ObjectId;
use pronto_index::{CachedTree, Flags, mode};

use super::guard::{self, Free, MayGo};
use super::refusal::Refusals;
use super::situation::Situation;
use super::trees::{Change, Go, Step, walk};
use super::{Decision, IndexChange, Unpacked, is_entry, new_entry};
use crate::Error;
use crate::checkout::Removal;

/// A plan after which index and worktree are what `tree` says. Only untracked files can be in the
/// way: with `may_go` those of which it says no, else none.
///
/// # Errors
/// When the tree is missing, corrupt or hostile, a file cannot be looked at, or it is interrupted.
pub fn one_way(
    tree: ObjectId,
    situation: &Situation<'_>,
    may_go: Option<&mut MayGo<'_>>,
) -> Result<Decision, Error> {
    let _region = pronto_io::region!("unpack_trees", "unpack_trees");
    let mut cached = CachedTree::builder(tree);
    let mut reset = Reset {
        situation,
        next: 0,
        same: Vec::new(),
        unpacked: Unpacked::default(),
    };
    walk(
        situation.objects,
        Some(situation.protect),
        (None, Some(tree)),
        &mut |step| {
            match step {
                Step::Enter(subtree) => cached.enter(subtree.name(), subtree.new),
                Step::Leave => cached.leave(),
                Step::Change(change) => {
                    cached.add_entries(1);
                    reset.path(&change);
                }
                Step::Same(_) | Step::Unchanged | Step::Gone(..) => {}
            }
            Ok(Go::On)
        },
    )?;
    reset.drop_before(None);
    let mut unpacked = reset.finish()?;
    unpacked.cached_tree = Some(cached.finish());
    match may_go {
        Some(may_go) => protect_untracked(unpacked, situation, may_go),
        None => Ok(Decision::Plan(unpacked)),
    }
}

fn protect_untracked(
    unpacked: Unpacked,
    situation: &Situation<'_>,
    may_go: &mut MayGo<'_>,
) -> Result<Decision, Error> {
    let index = situation.index;
    let items = unpacked.plan.write.iter();
    let free: Vec<Free<'_>> = items
        .filter(|item| index.stages(item.path.as_bstr()).is_empty())
        .map(|item| Free {
            path: item.path.as_bstr(),
            mode: Some(item.mode),
        })
        .collect();
    let leaving = index.iter().map(|entry| entry.path).collect();
    let mut refusals = Refusals::default();
    guard::refuse_untracked(situation, &free, &leaving, may_go, &mut refusals)?;
    if refusals.is_empty() {
        return Ok(Decision::Plan(unpacked));
    }
    refusals.sort();
    Ok(Decision::Refused(refusals))
}

struct Reset<'a, 's> {
    situation: &'a Situation<'s>,
    /// The next entry of the index.
    next: usize,
    /// The entries that are as the tree says; their files may not be.
    same: Vec<usize>,
    unpacked: Unpacked,
}

impl Reset<'_, '_> {
    fn path(&mut self, change: &Change<'_>) {
        let Some(side) = change.new else {
            return;
        };
        let index = self.situation.index;
        self.drop_before(Some(change.path));
        let stages = index.stages(change.path);
        let entry = (!stages.is_empty()).then(|| index.entry(stages.start));
        self.next = self.next.max(stages.end);
        let skipped = entry.is_some_and(|entry| entry.flags.contains(Flags::SKIP_WORKTREE));
        let wanted = match self.situation.sparse {
            Some(sparse) => sparse.includes(change.path),
            None => !skipped,
        };
        match entry {
            Some(entry) if entry.stage() == 0 && is_entry(&entry, side) => {
                match (wanted, skipped) {
                    (true, false) => self.same.push(stages.start),
                    (true, true) => self.unpacked.write(change.path, side, false),
                    (false, _) => self.leave_out(change.path, side, !skipped),
                }
            }
            Some(_) if wanted => self.unpacked.write(change.path, side, !skipped),
            None if wanted => self.unpacked.write(change.path, side, false),
            entry => self.leave_out(change.path, side, entry.is_some() && !skipped),
        }
    }

    /// An entry for a path that is not to be in the worktree.
    fn leave_out(&mut self, path: &BStr, side: super::Side, remove: bool) {
        if remove {
            self.unpacked.plan.remove.push(Removal {
                path: path.to_owned(),
                gitlink: side.mode == mode::GITLINK,
            });
        }
        let mut entry = new_entry(path, side);
        entry.flags = entry.flags.with(Flags::SKIP_WORKTREE);
        self.unpacked.change(path, Some(entry), None);
    }

    /// Entries that sort before `path` are not in the tree.
    fn drop_before(&mut self, path: Option<&BStr>) {
        let index = self.situation.index;
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
            if !entry.flags.contains(Flags::SKIP_WORKTREE) {
                self.unpacked.plan.remove.push(Removal {
                    path: entry.path.to_owned(),
                    gitlink: entry.mode == mode::GITLINK,
                });
            }
            self.unpacked.change(entry.path, None, None);
        }
    }

    /// Adds the files that are not as their entries say, and newer facts of those that are.
    fn finish(self) -> Result<Unpacked, Error> {
        let (situation, mut unpacked) = (self.situation, self.unpacked);
        let index = situation.index;
        let compared = guard::compare(situation, &self.same)?;
        let rewrite = compared.missing.iter().map(|position| (*position, false));
        let rewrite = rewrite.chain(compared.modified.iter().map(|position| (*position, true)));
        for (position, replaces) in rewrite {
            let entry = index.entry(position);
            let side = super::Side {
                id: entry.id.to_owned(),
                mode: entry.mode,
            };
            unpacked.write(entry.path, side, replaces);
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

impl Unpacked {
    /// Items follow the order of the index again, and the changes know them by their new numbers.
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
