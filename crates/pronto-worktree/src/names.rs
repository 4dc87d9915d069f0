//! The names in a single directory of the index.

use pronto_index::Index;
use pronto_io::short::Short as _;
use std::cmp::Ordering;
use std::ops::Range;

/// A name in a directory of the index.
pub(crate) struct IndexedName<'a> {
    pub(crate) name: &'a [u8],
    /// The entries with this name (the stages), or below it.
    pub(crate) entries: Range<usize>,
    /// Whether the entries are below the name.
    pub(crate) is_directory: bool,
}

impl<'a> IndexedName<'a> {
    /// Returns the name of the entry at `at`. Its directory has a path of `prefix_len` bytes with a
    /// slash, and entries up to `end`. The cost is logarithmic in the number of entries of the name.
    pub(crate) fn at(
        index: &'a Index,
        at: usize,
        end: usize,
        prefix_len: usize,
    ) -> IndexedName<'a> {
        let path = index.path(at);
        let rest = path.get(prefix_len..).unwrap_or_default();
        let slash = rest.position_of(b'/').filter(|&slash| slash > 0);
        let same = |other: usize| {
            let other = index.path(other);
            match slash {
                Some(slash) => other.starts_with(&path[..prefix_len + slash + 1]),
                None => other == path,
            }
        };
        IndexedName {
            name: &rest[..slash.unwrap_or(rest.len())],
            entries: at..gallop(at, end, same),
            is_directory: slash.is_some(),
        }
    }

    /// Returns the sort key of the name.
    pub(crate) fn key(&self) -> NameSortKey<'a> {
        NameSortKey {
            name: self.name,
            is_directory: self.is_directory,
        }
    }

    /// Returns whether the name is a sparse directory entry. `end` is the length of its path.
    pub(crate) fn is_sparse(&self, index: &Index, end: usize) -> bool {
        self.is_directory && is_sparse(index, &self.entries, end + 1)
    }

    /// Returns all names in a directory.
    pub(crate) fn all(
        index: &'a Index,
        entries: Range<usize>,
        prefix_len: usize,
    ) -> Vec<IndexedName<'a>> {
        let mut names = Vec::new();
        let mut at = entries.start;
        while at < entries.end {
            let name = IndexedName::at(index, at, entries.end, prefix_len);
            at = name.entries.end;
            names.push(name);
        }
        names
    }
}

/// Returns whether the directory, whose path has `prefix_len` bytes with a slash, is a single sparse
/// directory entry.
pub(crate) fn is_sparse(index: &Index, entries: &Range<usize>, prefix_len: usize) -> bool {
    entries.len() == 1
        && index.is_sparse()
        && index.path(entries.start).len() == prefix_len
        && index.entry(entries.start).is_sparse_directory()
}

/// The sort key of a name in a directory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct NameSortKey<'a> {
    pub(crate) name: &'a [u8],
    pub(crate) is_directory: bool,
}

/// Compares names in the order of trees and of the index, in which names of directories end with a
/// slash.
pub(crate) fn compare(one: NameSortKey<'_>, two: NameSortKey<'_>) -> Ordering {
    let common = one.name.len().min(two.name.len());
    let next = |key: NameSortKey<'_>| match key.name.get(common) {
        Some(&byte) => u16::from(byte) + 1,
        None if key.is_directory => u16::from(b'/') + 1,
        None => 0,
    };
    let after = |key: NameSortKey<'_>| key.name.len() + usize::from(key.is_directory);
    one.name[..common]
        .cmp(&two.name[..common])
        .then_with(|| next(one).cmp(&next(two)))
        .then_with(|| after(one).cmp(&after(two)))
}

/// Returns the first position between `from` and `end` for which `same` does not hold.
pub(crate) fn gallop(from: usize, end: usize, same: impl Fn(usize) -> bool) -> usize {
    let mut low = from;
    let mut step = 1;
    while low + step < end && same(low + step) {
        low += step;
        step *= 2;
    }
    let mut high = end.min(low + step);
    while low + 1 < high {
        let middle = low + (high - low) / 2;
        if same(middle) {
            low = middle;
        } else {
            high = middle;
        }
    }
    low + 1
}
