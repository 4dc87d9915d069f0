//! The distribution of grouped items. A group belongs to one worker as long as there are unclaimed
//! groups. After that, idle workers share the group with the most items left.

use std::ops::Range;
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};

/// Consecutive groups of items, with the position up to which each group has been handed out.
pub(super) struct ItemGroups<'a> {
    /// The end of each group, which is the start of the next group.
    ends: &'a [usize],
    /// The next item of each group. May be beyond the end of the group.
    next: Vec<AtomicUsize>,
    /// The next unclaimed group. May be beyond the last group.
    fresh: AtomicUsize,
}

impl<'a> ItemGroups<'a> {
    /// Creates groups that end at `ends` (ascending).
    pub(super) fn new(ends: &'a [usize]) -> Self {
        let begins = std::iter::once(&0).chain(ends);
        ItemGroups {
            ends,
            next: begins
                .take(ends.len())
                .map(|at| AtomicUsize::new(*at))
                .collect(),
            fresh: AtomicUsize::new(0),
        }
    }

    /// Takes up to `batch` items for a worker whose current group is `group`. The items are from
    /// that group if items are left there, else from an unclaimed group, else from the group with
    /// the most items left. If all groups are claimed, the batch is limited to a share for each of
    /// `workers`.
    pub(super) fn take(
        &self,
        group: &mut Option<usize>,
        batch: usize,
        workers: usize,
    ) -> Option<Range<usize>> {
        loop {
            let taken = group.and_then(|group| self.take_from(group, batch, workers));
            if taken.is_some() {
                return taken;
            }
            *group = Some(self.begin().or_else(|| self.fullest())?);
        }
    }

    fn take_from(&self, group: usize, batch: usize, workers: usize) -> Option<Range<usize>> {
        let end = self.ends[group];
        let left = end.saturating_sub(self.next[group].load(Relaxed));
        if left == 0 {
            return None;
        }
        let is_last = self.fresh.load(Relaxed) >= self.ends.len();
        let share = if is_last { left / (workers * 4) } else { left };
        let batch = batch.min(share).max(1);
        let from = self.next[group].fetch_add(batch, Relaxed);
        (from < end).then(|| from..(from + batch).min(end))
    }

    fn begin(&self) -> Option<usize> {
        // Checked first, so that the counter cannot overflow.
        let is_left = self.fresh.load(Relaxed) < self.ends.len();
        let group = is_left.then(|| self.fresh.fetch_add(1, Relaxed))?;
        (group < self.ends.len()).then_some(group)
    }

    fn fullest(&self) -> Option<usize> {
        let left = |group: &usize| self.left_in(*group);
        let fullest = (0..self.ends.len()).max_by_key(left)?;
        (self.left_in(fullest) > 0).then_some(fullest)
    }

    fn left_in(&self, group: usize) -> usize {
        self.ends[group].saturating_sub(self.next[group].load(Relaxed))
    }

    /// Returns the number of unclaimed items. Scans all groups.
    pub(super) fn left(&self) -> usize {
        (0..self.ends.len()).map(|group| self.left_in(group)).sum()
    }
}

/// Returns the ends of the groups of `items` for [`run_groups`](super::run_groups). Neighbouring
/// items for which `same` returns `true` are in one group. The result is empty if there are no
/// items.
pub fn ends_of_groups<T>(items: &[T], same: impl FnMut(&T, &T) -> bool) -> Vec<usize> {
    let groups = items.chunk_by(same);
    let ends = groups.scan(0, |end, group| {
        *end += group.len();
        Some(*end)
    });
    ends.collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn workers_have_groups_of_their_own_until_none_is_left() {
        let groups = ItemGroups::new(&[4, 4, 10, 11]);
        let (mut one, mut other) = (None, None);
        assert_eq!(groups.take(&mut one, 3, 2), Some(0..3));
        // The second group is empty.
        assert_eq!(groups.take(&mut other, 3, 2), Some(4..7));
        assert_eq!(groups.take(&mut one, 3, 2), Some(3..4));
        assert_eq!(groups.left(), 4);
        assert_eq!(groups.take(&mut one, 3, 2), Some(10..11));
        // No group is unclaimed: both workers share a group.
        assert_eq!(groups.take(&mut one, 3, 2), Some(7..8));
        assert_eq!(groups.take(&mut other, 3, 2), Some(8..9));
        assert_eq!(groups.take(&mut other, 3, 2), Some(9..10));
        assert_eq!(groups.take(&mut one, 3, 2), None);
        assert_eq!(groups.take(&mut other, 3, 2), None);
        assert_eq!(groups.left(), 0);
    }
}
