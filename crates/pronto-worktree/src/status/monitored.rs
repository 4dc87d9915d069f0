//! The use of a file system monitor (`core.fsmonitor`): entries that need not be examined, and parts of
//! the untracked cache that are used unchanged.

use super::Untracked;
use super::recorded::each_recorded;
use super::remembered::{CachePosition, Remembered, Vouched};
use super::scan::Scanner;
use bstr::BStr;
use pronto_index::UntrackedDirectory;
use std::ops::Range;

/// The entries whose files may have changed according to a file system monitor.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Monitored {
    /// The sorted positions of the entries; `None` if all files may have changed.
    pub dirty: Option<Vec<u32>>,
}

impl Monitored {
    /// Returns whether an entry of `entries` must be examined. The cost is logarithmic.
    fn touches(&self, entries: &Range<usize>) -> bool {
        self.dirty.as_ref().is_none_or(|dirty| {
            let first = dirty.partition_point(|&at| (at as usize) < entries.start);
            dirty
                .get(first)
                .is_some_and(|&at| (at as usize) < entries.end)
        })
    }
}

impl<'a> Remembered<'a> {
    /// Records that a monitor was queried and that the paths in its answer are marked as invalid in the
    /// cache. The rest of the cache is used unchanged. The cost is linear.
    pub fn vouch(&mut self) {
        let count = |wanted: &dyn Fn(&UntrackedDirectory<'a>) -> bool| {
            let mut total = 0;
            let mut counts = vec![0];
            counts.extend((0..self.cache.len()).map(|at| {
                total += u32::from(wanted(self.cache.directory(at)));
                total
            }));
            counts
        };
        self.vouched = Some(Vouched {
            invalid: count(&|it| !it.is_valid),
            with_directories: count(&|it| {
                it.check_only || it.untracked.iter().any(|name| name.ends_with(b"/"))
            }),
        });
    }
}

impl Scanner<'_> {
    /// Returns whether the files of `entries` must be examined.
    pub(super) fn must_look(&self, entries: &Range<usize>) -> bool {
        self.job
            .monitored
            .is_none_or(|monitored| monitored.touches(entries))
    }

    /// Returns the directory at `place` in the cache, if the monitor reports no change of it.
    pub(super) fn vouched(&self, place: CachePosition, check_only: bool) -> Option<usize> {
        let remembered = self.job.remembered?;
        let node = place.node.filter(|_| place.is_trusted)?;
        let known = remembered.cache.directory(node);
        let is_vouched =
            remembered.vouched.is_some() && known.is_valid && known.check_only == check_only;
        is_vouched.then_some(node)
    }

    /// Returns the directory at `place` in the cache, if the monitor reports no change of it and of all
    /// directories below.
    fn vouched_tree(&self, place: CachePosition) -> Option<usize> {
        let remembered = self.job.remembered?;
        let node = self.vouched(place, false)?;
        let counts = remembered.vouched.as_ref()?;
        let below = node..remembered.cache.end(node);
        let none = |counts: &[u32]| counts[below.start] == counts[below.end];
        let is_simple = self.job.options.untracked == Untracked::Normal
            || self.caches_all()
            || none(&counts.with_directories);
        (none(&counts.invalid) && is_simple).then_some(node)
    }

    /// Skips the directory of `entries` if the monitor reports no change in it.
    pub(super) fn pass_over(&mut self, entries: &Range<usize>, path: &BStr, lists: bool) -> bool {
        if self.must_look(entries) {
            return false;
        }
        if !lists {
            return true;
        }
        self.recall_vouched(path)
    }

    /// Lists the untracked files in the current untracked directory and below from the cache, if the
    /// monitor reports no change in it.
    pub(super) fn recall_vouched(&mut self, path: &BStr) -> bool {
        let node = self.here.and_then(|place| self.vouched_tree(place));
        if let Some((node, remembered)) = node.zip(self.job.remembered) {
            let mut path = path.to_owned();
            each_recorded(&remembered.cache, node, &mut path, &mut |path| {
                self.add_untracked(path.to_owned());
            });
        }
        node.is_some()
    }
}
