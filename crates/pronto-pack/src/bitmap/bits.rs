//! Sets of objects with one bit for each object.

use std::ops::Range;

use pronto_io::ewah::{BitmapBuilder, Ewah};

/// A set of numbers below a limit.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Bits {
    len: u32,
    words: Vec<u64>,
}

impl Bits {
    /// Returns an empty set of numbers below `len`. Allocates one bit for each number.
    pub fn new(len: u32) -> Bits {
        Bits {
            len,
            words: vec![0; (len as usize).div_ceil(64)],
        }
    }

    /// Returns the capacity of the set.
    pub fn limit(&self) -> u32 {
        self.len
    }

    pub(crate) fn words_mut(&mut self) -> &mut [u64] {
        &mut self.words
    }

    /// Clears the bits beyond the limit.
    pub(crate) fn trim(&mut self) {
        if let (Some(last), rest @ 1..) = (self.words.last_mut(), self.len % 64) {
            *last &= (1 << rest) - 1;
        }
    }

    /// Returns whether `number` is in the set.
    pub fn contains(&self, number: u32) -> bool {
        let word = self.words.get(number as usize / 64).copied().unwrap_or(0);
        word >> (number % 64) & 1 == 1
    }

    /// Adds `number` and returns whether it was absent. Ignores a number that is not below the
    /// limit.
    pub fn insert(&mut self, number: u32) -> bool {
        if number >= self.len || self.contains(number) {
            return false;
        }
        self.words[number as usize / 64] |= 1 << (number % 64);
        true
    }

    /// Adds all members of `other`.
    pub fn union(&mut self, other: &Bits) {
        let pairs = self.words.iter_mut().zip(&other.words);
        pairs.for_each(|(own, other)| *own |= other);
        self.trim();
    }

    /// Adds all members of a [compressed](Self::compress) set; ignores malformed data.
    pub fn union_compressed(&mut self, other: &[u8]) {
        if let Some(other) = Ewah::parse(&mut &other[..], self.len.into()) {
            other.or_into(&mut self.words);
            self.trim();
        }
    }

    /// Removes all members of `other`.
    pub fn subtract(&mut self, other: &Bits) {
        let pairs = self.words.iter_mut().zip(&other.words);
        pairs.for_each(|(own, other)| *own &= !other);
    }

    /// Removes all members that are not in `other`.
    pub fn intersect(&mut self, other: &Bits) {
        let others = other.words.iter().copied().chain(std::iter::repeat(0));
        self.words
            .iter_mut()
            .zip(others)
            .for_each(|(own, other)| *own &= other);
    }

    /// Appends the compressed set to `out`, up to the last word that is not zero.
    pub fn compress(&self, out: &mut Vec<u8>) {
        let used = self.used_words();
        let builder = build(&self.words[..used.max(1).min(self.words.len())]);
        builder.write((builder.len() * 64) as u32, out);
    }

    /// Does the same as [`compress`](Self::compress), but limits the declared number of bits to the
    /// last member. Git stores type bitmaps in this form.
    pub(crate) fn compress_set(&self, out: &mut Vec<u8>) {
        let words = &self.words[..self.used_words()];
        let last = words.last().map_or(0, |last| 64 - last.leading_zeros());
        let bits = (words.len().saturating_sub(1) * 64) as u32 + last;
        build(words).write(bits, out);
    }

    fn used_words(&self) -> usize {
        let last = self.words.iter().rposition(|word| *word != 0);
        last.map_or(0, |last| last + 1)
    }

    /// Returns whether the set is empty.
    pub fn is_empty(&self) -> bool {
        self.words.iter().all(|word| *word == 0)
    }

    /// Returns the number of members.
    pub fn count(&self) -> u32 {
        self.words.iter().map(|word| word.count_ones()).sum()
    }

    /// Returns the number of members in `range`.
    pub fn count_in(&self, range: Range<u32>) -> u32 {
        self.words_in(range)
            .map(|(_, word)| word.count_ones())
            .sum()
    }

    /// Iterates over the members in `range` in ascending order.
    pub fn iter_in(&self, range: Range<u32>) -> impl Iterator<Item = u32> + '_ {
        self.words_in(range)
            .flat_map(|(at, word)| members(at, word))
    }

    /// Iterates over the words that contain bits of `range`, each with its position and with all
    /// other bits cleared.
    fn words_in(&self, range: Range<u32>) -> impl Iterator<Item = (usize, u64)> + '_ {
        let (start, end) = (range.start as usize, range.end.min(self.len) as usize);
        let words = start / 64..end.div_ceil(64).max(start / 64);
        words.map(move |at| {
            let mut word = self.words[at];
            if at == start / 64 {
                word &= u64::MAX << (start % 64);
            }
            if at == end / 64 {
                word &= (1 << (end % 64)) - 1;
            }
            (at, word)
        })
    }

    /// Iterates over the members in ascending order.
    pub fn iter(&self) -> impl Iterator<Item = u32> + '_ {
        let words = self.words.iter().enumerate();
        words.flat_map(|(at, word)| members(at, *word))
    }
}

/// Iterates over the members in the word at position `at`.
fn members(at: usize, mut word: u64) -> impl Iterator<Item = u32> {
    std::iter::from_fn(move || {
        let bit = word.trailing_zeros();
        word &= word.checked_sub(1)?;
        Some(at as u32 * 64 + bit)
    })
}

fn build(words: &[u64]) -> BitmapBuilder {
    let mut builder = BitmapBuilder::new();
    words.iter().for_each(|word| builder.add_word(*word));
    builder
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ranges_end_within_words() {
        let mut bits = Bits::new(200);
        for number in [0, 5, 63, 64, 100, 127, 128, 199] {
            bits.insert(number);
        }
        let range = |range: Range<u32>| {
            let found: Vec<u32> = bits.iter_in(range.clone()).collect();
            assert_eq!(found.len() as u32, bits.count_in(range));
            found
        };
        assert_eq!(range(0..200), [0, 5, 63, 64, 100, 127, 128, 199]);
        assert_eq!(range(0..1000), range(0..200));
        assert_eq!(range(5..64), [5, 63]);
        assert_eq!(range(64..128), [64, 100, 127]);
        assert_eq!(range(101..128), [127]);
        assert_eq!(range(128..128), []);
        assert_eq!(range(500..600), []);
    }

    #[test]
    fn sets_are_added_and_removed() {
        let mut one = Bits::new(130);
        for number in [0, 63, 64, 129] {
            assert!(one.insert(number));
        }
        assert!(!one.insert(64) && !one.insert(130));
        assert_eq!(one.iter().collect::<Vec<_>>(), [0, 63, 64, 129]);
        let mut two = Bits::new(130);
        two.insert(63);
        two.insert(100);
        let mut both = one.clone();
        both.union(&two);
        assert_eq!(both.count(), 5);
        both.subtract(&one);
        assert_eq!(both.iter().collect::<Vec<_>>(), [100]);
        two.intersect(&one);
        assert_eq!(two.iter().collect::<Vec<_>>(), [63]);
        assert!(!two.contains(1000));
    }
}
