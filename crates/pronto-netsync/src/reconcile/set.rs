//! A sorted set of entries with the sums of their digests.

use std::cmp::Ordering;
use std::ops::Range;

use super::sum::Sum;
use super::{Fingerprint, Fingerprinter, MAX_KEY_BYTES, MAX_VALUE_BYTES};
use crate::{Error, ErrorKind};

/// A key with its value: the name of a ref with its ids, or the date and id of a commit with an
/// empty value.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Entry {
    /// The key, by whose bytes a set is sorted.
    pub key: Vec<u8>,
    /// The value.
    pub value: Vec<u8>,
}

/// A builder that accepts entries in any order.
#[derive(Debug, Default)]
pub struct SetBuilder {
    bytes: Vec<u8>,
    spans: Vec<EntrySpan>,
}

#[derive(Clone, Copy, Debug)]
struct EntrySpan {
    start: usize,
    key_bytes: u16,
    value_bytes: u16,
}

/// A set of entries, sorted by unique keys. It takes 16 bytes for each entry besides the content,
/// and 2 bytes for sums.
#[derive(Debug)]
pub struct SortedSet {
    bytes: Vec<u8>,
    spans: Vec<EntrySpan>,
    /// The sums of all entries before each multiple of [`STRIDE`], and the sum of all entries.
    sums: Vec<Sum>,
}

/// The number of entries that share one stored sum. A fingerprint costs a subtraction, and the
/// digests of at most that many entries at each end, whatever the size of the set.
const STRIDE: usize = 16;

impl SetBuilder {
    /// Adds an entry. Entries that are too long are reported by [`finish`](Self::finish).
    pub fn push(&mut self, key: &[u8], value: &[u8]) {
        let start = self.bytes.len();
        self.bytes.extend_from_slice(key);
        self.bytes.extend_from_slice(value);
        self.spans.push(EntrySpan {
            start,
            key_bytes: key.len().min(usize::from(u16::MAX)) as u16,
            value_bytes: value.len().min(usize::from(u16::MAX)) as u16,
        });
    }

    /// Sorts the entries and computes the sums, in O(N log N) with one digest for each entry.
    ///
    /// # Errors
    /// Fails if a key or value is too long, or a key is empty or occurs twice.
    pub fn finish(self, key: &Fingerprinter) -> Result<SortedSet, Error> {
        let mut set = SortedSet {
            bytes: self.bytes,
            spans: self.spans,
            sums: Vec::new(),
        };
        for span in &set.spans {
            let (key, value) = (usize::from(span.key_bytes), usize::from(span.value_bytes));
            if key == 0 || key > MAX_KEY_BYTES || value > MAX_VALUE_BYTES {
                return Err(Error::new(
                    ErrorKind::Unsupported,
                    format!(
                        "an entry is too large: its key has {key} bytes and its value {value} bytes"
                    ),
                ));
            }
        }
        let bytes = &set.bytes;
        set.spans.sort_unstable_by_key(|span| &bytes[span.key()]);
        if let Some(at) = (1..set.len()).find(|&at| set.key(at - 1) == set.key(at)) {
            return Err(Error::new(
                ErrorKind::Unsupported,
                format!("the entry '{}' appears twice", set.key(at).escape_ascii()),
            ));
        }
        let mut sum = Sum::default();
        for at in 0..set.len() {
            if at % STRIDE == 0 {
                set.sums.push(sum);
            }
            sum = sum.plus(key.entry(set.key(at), set.value(at)));
        }
        set.sums.push(sum);
        Ok(set)
    }
}

impl EntrySpan {
    fn key(&self) -> Range<usize> {
        self.start..self.start + usize::from(self.key_bytes)
    }

    fn value(&self) -> Range<usize> {
        let start = self.key().end;
        start..start + usize::from(self.value_bytes)
    }
}

impl SortedSet {
    /// Returns the number of entries.
    pub fn len(&self) -> usize {
        self.spans.len()
    }

    /// Returns whether the set has no entries.
    pub fn is_empty(&self) -> bool {
        self.spans.is_empty()
    }

    /// Returns the key of an entry.
    ///
    /// # Panics
    /// Panics if the set has fewer entries.
    pub fn key(&self, at: usize) -> &[u8] {
        &self.bytes[self.spans[at].key()]
    }

    /// Returns the value of an entry.
    ///
    /// # Panics
    /// Panics if the set has fewer entries.
    pub fn value(&self, at: usize) -> &[u8] {
        &self.bytes[self.spans[at].value()]
    }

    /// Returns the fingerprint of the entries `range`. The cost is at most 30 digests and a
    /// subtraction, and at most twice as many digests as there are entries.
    ///
    /// # Panics
    /// Panics if the set has fewer entries.
    pub fn fingerprint(&self, key: &Fingerprinter, range: Range<usize>) -> Fingerprint {
        let count = range.len();
        let sum = if count <= STRIDE {
            self.add(key, Sum::default(), range)
        } else {
            let (end, start) = (range.end, range.start);
            self.sum_before(key, end).minus(self.sum_before(key, start))
        };
        key.range(sum, count)
    }

    /// Returns the index of the first entry of `within` whose key is not less than `bound`. `None`
    /// is greater than all keys.
    pub(super) fn position(&self, within: Range<usize>, bound: Option<&[u8]>) -> usize {
        let Some(bound) = bound else {
            return within.end;
        };
        let spans = &self.spans[within.clone()];
        within.start
            + spans.partition_point(|span| self.bytes[span.key()].cmp(bound) == Ordering::Less)
    }

    /// Returns the shortest bound that separates entry `at` from the previous entry.
    pub(super) fn bound_before(&self, at: usize) -> &[u8] {
        let key = self.key(at);
        let shared = at
            .checked_sub(1)
            .map_or(0, |before| shared_prefix(self.key(before), key));
        &key[..(shared + 1).min(key.len())]
    }

    fn sum_before(&self, key: &Fingerprinter, at: usize) -> Sum {
        if at == self.len() {
            return self.sums.last().copied().unwrap_or_default();
        }
        let stored = at / STRIDE;
        self.add(key, self.sums[stored], stored * STRIDE..at)
    }

    /// Returns `sum` with the entries `range` added individually.
    fn add(&self, key: &Fingerprinter, sum: Sum, range: Range<usize>) -> Sum {
        range.fold(sum, |sum, at| {
            sum.plus(key.entry(self.key(at), self.value(at)))
        })
    }
}

/// Returns the number of bytes that two keys share at their start.
pub(super) fn shared_prefix(left: &[u8], right: &[u8]) -> usize {
    left.iter()
        .zip(right)
        .take_while(|(left, right)| left == right)
        .count()
}
