//! The answer to a list: the merge of the listed entries with the entries of this side.

use super::SortedSet;
use super::message::write_entry;

/// An answer to a list, during the merge.
pub(super) struct ListAnswer<'s> {
    set: &'s SortedSet,
    /// The largest length of the answer in bytes.
    budget: usize,
    /// The index of this side's next entry.
    pub(super) next: usize,
    /// The last settled key, of either side.
    pub(super) last: Vec<u8>,
    /// The key of this side's last entry in the answer.
    before: &'s [u8],
    /// The key of the entry that did not fit.
    pub(super) cut_at: Option<Vec<u8>>,
    /// The number of listed entries that were compared.
    pub(super) listed_count: usize,
    /// A bit for each compared entry, set if this side lacks the entry.
    pub(super) lacking: Vec<u8>,
    /// The indexes of this side's entries that the list lacks.
    pub(super) own_places: Vec<usize>,
    /// These entries, encoded.
    pub(super) own: Vec<u8>,
}

impl<'s> ListAnswer<'s> {
    /// Starts an answer at this side's entry `next`, of at most `budget` bytes.
    pub(super) fn new(set: &'s SortedSet, next: usize, budget: usize) -> Self {
        ListAnswer {
            set,
            budget,
            next,
            last: Vec::new(),
            before: &[],
            cut_at: None,
            listed_count: 0,
            lacking: Vec::new(),
            own_places: Vec::new(),
            own: Vec::new(),
        }
    }

    /// Adds this side's entries below `key`. Returns `false` when the message is full.
    pub(super) fn own_before(&mut self, key: &[u8], end: usize) -> bool {
        while self.next < end && self.set.key(self.next) < key {
            if !self.put_own() {
                return false;
            }
        }
        true
    }

    /// Adds this side's remaining entries below the index `end`, as far as they fit.
    pub(super) fn own_rest(&mut self, end: usize) {
        while self.next < end && self.put_own() {}
    }

    /// Marks whether this side has the listed entry. Returns `false` if this side has a different
    /// value for the key that does not fit.
    pub(super) fn listed(&mut self, key: &[u8], value: &[u8], end: usize) -> bool {
        if self.listed_count.is_multiple_of(8) {
            if self.own.len() + self.lacking.len() + 1 > self.budget {
                self.cut_at = Some(key.to_vec());
                return false;
            }
            self.lacking.push(0);
        }
        let has_key = self.next < end && self.set.key(self.next) == key;
        let has_entry = has_key && self.set.value(self.next) == value;
        if has_entry {
            self.next += 1;
        } else if has_key && !self.put_own() {
            if self.listed_count.is_multiple_of(8) {
                self.lacking.pop();
            }
            return false;
        }
        if let Some(bits) = self.lacking.last_mut() {
            *bits |= u8::from(!has_entry) << (self.listed_count % 8);
        }
        self.listed_count += 1;
        self.last.clear();
        self.last.extend_from_slice(key);
        true
    }

    /// Returns the number of this side's entries in the answer.
    pub(super) fn own_count(&self) -> usize {
        self.own_places.len()
    }

    /// Returns whether this side lacks the entry that was compared last.
    pub(super) fn is_last_new(&self) -> bool {
        let place = self.listed_count - 1;
        self.lacking[place / 8] >> (place % 8) & 1 != 0
    }

    /// Adds this side's next entry. Returns `false` if it does not fit.
    fn put_own(&mut self) -> bool {
        let length = self.own.len();
        let key = self.set.key(self.next);
        write_entry(&mut self.own, self.before, key, self.set.value(self.next));
        if self.own.len() + self.lacking.len() + 1 > self.budget {
            self.own.truncate(length);
            self.cut_at = Some(key.to_vec());
            return false;
        }
        self.before = key;
        self.last.clear();
        self.last.extend_from_slice(key);
        self.own_places.push(self.next);
        self.next += 1;
        true
    }
}
