//! Builds a compressed bitmap, word by word.

use super::WORD_LEN;

/// The maximum length of a run, and the maximum number of literal words, that one marker can
/// announce.
const MOST_IN_RUN: u64 = u32::MAX as u64;
const MOST_LITERALS: u64 = (1 << 31) - 1;

/// A compressed bitmap that grows at its end. The result depends only on the sequence of words, not
/// on the calls that add them, and equals the result of JavaEWAH and Git.
#[derive(Clone, Debug)]
pub struct BitmapBuilder {
    words: Vec<u64>,
    /// The position of the last marker.
    marker: usize,
    /// The number of added words.
    count: u64,
}

impl Default for BitmapBuilder {
    fn default() -> Self {
        BitmapBuilder::new()
    }
}

impl BitmapBuilder {
    /// Creates a bitmap without words.
    pub fn new() -> BitmapBuilder {
        BitmapBuilder {
            words: vec![0],
            marker: 0,
            count: 0,
        }
    }

    /// Removes all words and keeps the memory.
    pub fn clear(&mut self) {
        self.words.clear();
        self.words.push(0);
        (self.marker, self.count) = (0, 0);
    }

    /// Appends 64 bits, the lowest bit first.
    #[inline]
    pub fn add_word(&mut self, word: u64) {
        if word == 0 || word == u64::MAX {
            self.add_run(word != 0, 1);
            return;
        }
        self.count += 1;
        if self.words[self.marker] >> 33 == MOST_LITERALS {
            self.start_marker(false);
        }
        self.words[self.marker] += 1 << 33;
        self.words.push(word);
    }

    /// Appends `count` words, in which all bits are set if `ones`, and clear otherwise.
    pub fn add_run(&mut self, ones: bool, mut count: u64) {
        self.count += count;
        while count > 0 {
            let marker = self.words[self.marker];
            let (run, literals) = (marker >> 1 & MOST_IN_RUN, marker >> 33);
            let is_ours = run == 0 || (marker & 1 == 1) == ones;
            if literals > 0 || !is_ours || run == MOST_IN_RUN {
                self.start_marker(ones);
                continue;
            }
            let added = count.min(MOST_IN_RUN - run);
            self.words[self.marker] = u64::from(ones) | (run + added) << 1;
            count -= added;
        }
    }

    fn start_marker(&mut self, ones: bool) {
        self.marker = self.words.len();
        self.words.push(u64::from(ones));
    }

    /// Returns the number of added words.
    pub fn len(&self) -> u64 {
        self.count
    }

    /// Whether no word was added.
    pub fn is_empty(&self) -> bool {
        self.count == 0
    }

    /// Returns the number of bytes that [`write`](Self::write) adds.
    pub fn size_bytes(&self) -> usize {
        self.words.len() * WORD_LEN + 12
    }

    /// Appends the serialised bitmap to `out`, with `bits` as its number of bits.
    pub fn write(&self, bits: u32, out: &mut Vec<u8>) {
        out.reserve(self.size_bytes());
        out.extend_from_slice(&bits.to_be_bytes());
        out.extend_from_slice(&(self.words.len() as u32).to_be_bytes());
        for word in &self.words {
            out.extend_from_slice(&word.to_be_bytes());
        }
        out.extend_from_slice(&(self.marker as u32).to_be_bytes());
    }
}

#[cfg(test)]
mod tests {
    use super::super::{Ewah, WordRun};
    use super::*;

    fn written(builder: &BitmapBuilder, bits: u32) -> Vec<u8> {
        let mut out = Vec::new();
        builder.write(bits, &mut out);
        assert_eq!(out.len(), builder.size_bytes());
        out
    }

    #[test]
    fn what_is_written_is_read() {
        let mut seed = 7u64;
        let mut next = || {
            seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
            seed >> 33
        };
        for _ in 0..200 {
            let mut words = Vec::new();
            for _ in 0..next() % 20 {
                let word = match next() % 3 {
                    0 => 0,
                    1 => u64::MAX,
                    _ => next(),
                };
                words.extend((0..=next() % 4).map(|_| word));
            }
            let mut builder = BitmapBuilder::new();
            words.iter().for_each(|word| builder.add_word(*word));
            assert_eq!(builder.len(), words.len() as u64);
            let bytes = written(&builder, words.len() as u32 * 64);
            let mut rest = &bytes[..];
            let read = Ewah::parse(&mut rest, words.len() as u64 * 64).expect("well formed");
            assert!(rest.is_empty() && read.len() as usize == words.len() * 64);
            let mut back = vec![0; words.len()];
            read.or_into(&mut back);
            assert_eq!(back, words);
        }
    }

    #[test]
    fn what_differs_is_combined() {
        let build = |words: &[u64]| {
            let mut builder = BitmapBuilder::new();
            words.iter().for_each(|word| builder.add_word(*word));
            written(&builder, words.len() as u32 * 64)
        };
        let full = u64::MAX;
        let one = [full, full, 5, 5, 0, 0, 0, full, 9];
        let two = [full, 7, 5, full, 0, full];
        let differing = [0, full ^ 7, 0, full ^ 5, 0, full, 0, full, 9];
        let (one, two) = (build(&one), build(&two));
        let read = |bytes: &'static [u8]| Ewah::parse(&mut &bytes[..], 1000).expect("well formed");
        let (one, two) = (read(one.leak()), read(two.leak()));
        for (left, right) in [(one, two), (two, one)] {
            let mut out = BitmapBuilder::new();
            assert!(left.xor(&right, &mut out, usize::MAX));
            assert_eq!(written(&out, 9 * 64), build(&differing));
            assert!(!left.xor(&right, &mut BitmapBuilder::new(), 40));
        }
    }

    #[test]
    fn runs_are_joined_and_split() {
        let mut builder = BitmapBuilder::new();
        builder.add_run(true, 2);
        builder.add_word(u64::MAX);
        builder.add_word(5);
        builder.add_run(false, MOST_IN_RUN + 3);
        assert_eq!(builder.words.len(), 4);
        assert_eq!((builder.marker, builder.len()), (3, MOST_IN_RUN + 7));
        let bytes = written(&builder, u32::MAX);
        let runs: Vec<WordRun> = Ewah::parse(&mut &bytes[..], u64::MAX)
            .expect("well formed")
            .runs()
            .collect();
        let expected = [
            WordRun::Ones(3),
            WordRun::Word(5),
            WordRun::Zeros(MOST_IN_RUN),
            WordRun::Zeros(3),
        ];
        assert_eq!(runs, expected);
        builder.clear();
        assert!(builder.is_empty());
        let mut empty = [0; 20];
        empty[7] = 1;
        assert_eq!(written(&builder, 0), empty);
    }
}
