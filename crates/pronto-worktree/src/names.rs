//! The names directly in a directory, according to the index.

use bstr::ByteSlice;
use pronto_index::Index;
use std::cmp::Ordering;
use std::ops::Range;

/// A name in a directory that the index knows.
pub(crate) struct Name<'a> {
    pub(crate) name: &'a [u8],
    /// The entries of the name (its stages), or below it.
    pub(crate) entries: Range<usize>,
    /// Entries are below the name, not of it.
    pub(crate) is_directory: bool,
}

impl<'a> Name<'a> {
    /// The name of the entry at `at`, which is in a directory whose path takes `prefix_len` bytes
    /// with its slash and whose entries end at `end`. Logarithmic in the entries of the name.
    pub(crate) fn at(index: &'a Index, at: usize, end: usize, prefix_len: usize) -> Name<'a> {
        let path = index.path(at);
        let rest = path.get(prefix_len..).unwrap_or_default();
        let slash = rest.find_byte(b'/').filter(|&slash| slash > 0);
        let same = |other: usize| {
            let other = index.path(other);
            match slash {
                Some(slash) => other.starts_with(&path[..prefix_len + slash + 1]),
                None => other == path,
            }
        };
        Name {
            name: &rest[..slash.unwrap_or(rest.len())],
            entries: at..gallop(at, end, same),
            is_directory: slash.is_some(),
        }
    }

    /// Whether it is a directory for which one entry stands. `end` is the length of its path.
    pub(crate) fn is_sparse(&self, index: &Index, end: usize) -> bool {
        self.is_directory && is_sparse(index, &self.entries, end + 1)
    }

    /// All names in a directory.
    pub(crate) fn all(index: &'a Index, entries: Range<usize>, prefix_len: usize) -> Vec<Name<'a>> {
        let mut names = Vec::new();
        let mut at = entries.start;
        while at < entries.end {
            let name = Name::at(index, at, entries.end, prefix_len);
            at = name.entries.end;
            names.push(name);
        }
        names
    }
}

/// Whether one entry stands for the directory whose path takes `prefix_len` bytes with its slash.
pub(crate) fn is_sparse(index: &Index, entries: &Range<usize>, prefix_len: usize) -> bool {
    entries.len() == 1
        && index.is_sparse()
        && index.path(entries.start).len() == prefix_len
        && index.entry(entries.start).is_sparse_directory()
}

/// The order of trees and of the index: a directory has a slash at its end.
pub(crate) fn compare(one: (&[u8], bool), two: (&[u8], bool)) -> Ordering {
    let common = one.0.len().min(two.0.len());
    let next = |(name, is_directory): (&[u8], bool)| match name.get(common) {
        Some(&byte) => u16::from(byte) + 1,
        None if is_directory => u16::from(b'/') + 1,
        None => 0,
    };
    let after = |(name, is_directory): (&[u8], bool)| name.len() + usize::from(is_directory);
    one.0[..common]
        .cmp(&two.0[..common])
        .then_with(|| next(one).cmp(&next(two)))
        .then_with(|| after(one).cmp(&after(two)))
}

/// The first position after `from` and before `end` for which `same` does not hold.
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
