//! Turns the merged entries into a plan, unless content would be lost.

use bstr::{BStr, ByteSlice};
use pronto_index::Flags;

use super::super::TreeFile;
use super::super::guard::{self, IsExpendable, UntrackedPath};
use super::{MergeDecision, MergeRule, MergedEntries, UnpackWalk};
use crate::{Error, ErrorKind};

impl UnpackWalk<'_, '_> {
    /// Creates the plan, if no content would be lost.
    pub(super) fn finish(
        mut self,
        is_expendable: &mut IsExpendable<'_>,
    ) -> Result<MergeDecision, Error> {
        self.refuse_swaps()?;
        self.guard(is_expendable)?;
        if !self.refusals.is_empty() {
            self.refusals.sort();
            return Ok(MergeDecision::Refused(self.refusals));
        }
        self.restore()?;
        let (mut merged, builder) = (self.merged, self.builder);
        merged.cached_tree = match builder {
            Some(builder) => Some(builder.finish()),
            None => self.view.index.cached_tree().map(|mut cached| {
                for path in &self.changed {
                    cached.invalidate(path.as_bstr());
                }
                cached
            }),
        };
        Ok(MergeDecision::Plan(merged))
    }

    /// Refuses new files above or below existing entries, which are not supported.
    fn refuse_swaps(&self) -> Result<(), Error> {
        let index = self.view.index;
        let stays = |at: usize| !self.gone.contains(&at) && index.entry(at).stage() == 0;
        for part in &self.merged.parts {
            let MergedEntries::New(entry, _) = part else {
                continue;
            };
            let path = entry.path.as_bstr();
            let above = path
                .find_iter("/")
                .filter_map(|end| index.find(path[..end].into(), 0).ok());
            if entry.stage() == 0 && index.below(path).chain(above).any(stays) {
                let message =
                    "merging a file over a directory in the index is not implemented natively";
                return Err(Error::new(ErrorKind::Unsupported, message));
            }
        }
        Ok(())
    }

    /// Checks whether content would be lost.
    fn guard(&mut self, is_expendable: &mut IsExpendable<'_>) -> Result<(), Error> {
        if !self.request.look {
            return Ok(());
        }
        let index = self.view.index;
        if self.request.reset {
            self.present
                .retain(|at| guard::is_unseen(&index.entry(*at)));
        }
        guard::refuse_modified(self.view, &self.present, &mut self.refusals)?;
        if self.request.reset || !self.request.update {
            return Ok(());
        }
        let removals = &self.merged.plan.remove;
        let goes = |path: &BStr| removals.iter().any(|removal| removal.path == path);
        guard::report_directories(self.view, &goes, is_expendable, &mut self.refusals)?;
        let free: Vec<UntrackedPath<'_>> = self
            .free
            .iter()
            .map(|(path, mode)| UntrackedPath {
                path: path.as_bstr(),
                mode: *mode,
            })
            .collect();
        let leaving = self
            .merged
            .plan
            .remove
            .iter()
            .map(|removal| removal.path.as_bstr());
        let leaving = leaving.collect();
        guard::refuse_untracked(
            self.view,
            &free,
            &leaving,
            is_expendable,
            &mut self.refusals,
        )
    }

    /// With `--reset`, schedules modified files to be written again.
    fn restore(&mut self) -> Result<(), Error> {
        if !(self.request.reset && self.request.update && self.request.rule == MergeRule::One) {
            return Ok(());
        }
        let index = self.view.index;
        let is_skipped = |at: &usize| index.entry(*at).flags.contains(Flags::SKIP_WORKTREE);
        let same: Vec<usize> = self
            .same
            .iter()
            .copied()
            .filter(|at| !is_skipped(at))
            .collect();
        let compared = guard::compare(self.view, &same)?;
        let missing = compared.missing.into_iter().chain(compared.obstructed);
        let missing = missing.map(|at| (at, false));
        let modified = compared.modified.into_iter().map(|at| (at, true));
        let mut again: Vec<(usize, bool)> = missing.chain(modified).collect();
        again.sort_unstable();
        let mut again = again.into_iter().peekable();
        for part in std::mem::take(&mut self.merged.parts) {
            let MergedEntries::Old(mut range) = part else {
                self.merged.parts.push(part);
                continue;
            };
            while let Some((at, replaces)) = again.next_if(|(at, _)| *at < range.end) {
                let entry = index.entry(at).to_owned();
                let (id, mode) = (entry.id, entry.mode);
                let item = self.write(entry.path.as_bstr(), TreeFile { id, mode }, replaces);
                let parts = &mut self.merged.parts;
                parts.push(MergedEntries::Old(range.start..at));
                parts.push(MergedEntries::New(Box::new(entry), Some(item)));
                range.start = at + 1;
            }
            self.merged.parts.push(MergedEntries::Old(range));
        }
        self.put_in_order();
        Ok(())
    }

    /// Sorts the items in index order, and updates the item numbers in the parts.
    fn put_in_order(&mut self) {
        let merged = &mut self.merged;
        let mut order: Vec<u32> = (0..merged.plan.write.len() as u32).collect();
        order.sort_by(|one, two| {
            let path = |at: &u32| &merged.plan.write[*at as usize].path;
            path(one).cmp(path(two))
        });
        let mut places = vec![0; order.len()];
        for (place, at) in (0..).zip(&order) {
            places[*at as usize] = place;
        }
        merged
            .plan
            .write
            .sort_by(|one, two| one.path.cmp(&two.path));
        for part in &mut merged.parts {
            if let MergedEntries::New(_, Some(item)) = part {
                *item = places[*item as usize];
            }
        }
    }
}
