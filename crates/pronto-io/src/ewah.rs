//! Compressed bitmaps (EWAH with words of 64 bits) in the format of JavaEWAH, which Git uses. A
//! bitmap consists of runs of equal words, and of literal words between the runs.

mod build;

pub use build::BitmapBuilder;

/// A compressed bitmap in a borrowed buffer. Parsing rejects a bitmap that claims more words than
/// the limit or than the input has, so the cost of iterating is bounded.
#[derive(Clone, Copy, Debug)]
pub struct Ewah<'a> {
    len: u32,
    words: &'a [u8],
}

/// One or more equal words.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum WordRun {
    /// A number of words in which all bits are clear.
    Zeros(u64),
    /// A number of words in which all bits are set.
    Ones(u64),
    /// One literal word.
    Word(u64),
}

impl WordRun {
    /// Returns the number of words, and the value of each.
    fn parts(self) -> (u64, u64) {
        match self {
            WordRun::Zeros(count) => (count, 0),
            WordRun::Ones(count) => (count, u64::MAX),
            WordRun::Word(word) => (1, word),
        }
    }
}

const WORD_LEN: usize = 8;

impl<'a> Ewah<'a> {
    /// Parses a bitmap at the front of `input` and advances `input`. Returns `None` if the input is
    /// malformed or if the bitmap has more than `limit` bits, rounded up to whole words.
    pub fn parse(input: &mut &'a [u8], limit: u64) -> Option<Ewah<'a>> {
        let mut rest = *input;
        let len = take_u32(&mut rest)?;
        let count = take_u32(&mut rest)? as usize;
        let (words, mut rest) = rest.split_at_checked(count.checked_mul(WORD_LEN)?)?;
        take_u32(&mut rest)?;
        let limit_words = limit.div_ceil(64);
        if u64::from(len).div_ceil(64) > limit_words {
            return None;
        }
        let (mut total, mut left) = (0u64, words);
        while let Some((marker, after)) = left.split_first_chunk::<WORD_LEN>() {
            let marker = RunMarker::new(*marker);
            total = total.checked_add(marker.run + marker.literals)?;
            let literals = usize::try_from(marker.literals).ok()?;
            left = after.get(literals.checked_mul(WORD_LEN)?..)?;
            if total > limit_words {
                return None;
            }
        }
        *input = rest;
        Some(Ewah { len, words })
    }

    /// Returns the number of bits, set or not.
    pub fn len(&self) -> u32 {
        self.len
    }

    /// Whether the bitmap has no bits.
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// Returns the runs of the bitmap, from the first bit on.
    pub fn runs(&self) -> impl Iterator<Item = WordRun> + 'a {
        let (mut left, mut literals, mut pending) = (self.words, 0u64, None);
        std::iter::from_fn(move || {
            loop {
                if let Some(run) = pending.take() {
                    return Some(run);
                }
                let (word, after) = left.split_first_chunk::<WORD_LEN>()?;
                left = after;
                if literals > 0 {
                    literals -= 1;
                    return Some(WordRun::Word(u64::from_be_bytes(*word)));
                }
                let marker = RunMarker::new(*word);
                literals = marker.literals;
                pending = match (marker.run, marker.ones) {
                    (0, _) => None,
                    (run, true) => Some(WordRun::Ones(run)),
                    (run, false) => Some(WordRun::Zeros(run)),
                };
            }
        })
    }

    /// Calls `change` with each nonzero word of the bitmap and its index, up to the length of
    /// `words`.
    fn apply(&self, words: &mut [u64], change: impl Fn(&mut u64, u64)) {
        let mut at = 0usize;
        for run in self.runs() {
            let (count, word) = run.parts();
            let end = at.saturating_add(usize::try_from(count).unwrap_or(usize::MAX));
            if word != 0 {
                let end = end.min(words.len());
                words[at.min(end)..end]
                    .iter_mut()
                    .for_each(|slot| change(slot, word));
            }
            at = end;
        }
    }

    /// Flips the bits of `words` that are set in this bitmap. Ignores bits beyond the end of
    /// `words`.
    pub fn xor_into(&self, words: &mut [u64]) {
        self.apply(words, |slot, word| *slot ^= word);
    }

    /// Appends the exclusive or of both bitmaps to `out`, up to the end of the longer bitmap. Stops
    /// and returns `false` when `out` reaches `most_bytes`.
    pub fn xor(&self, other: &Ewah<'_>, out: &mut BitmapBuilder, most_bytes: usize) -> bool {
        let (mut own, mut others) = (self.runs(), other.runs());
        let (mut left, mut right) = ((0, 0), (0, 0));
        while out.size_bytes() < most_bytes {
            if left.0 == 0 {
                left = own.next().map_or((0, 0), WordRun::parts);
            }
            if right.0 == 0 {
                right = others.next().map_or((0, 0), WordRun::parts);
            }
            let count = match (left.0, right.0) {
                (0, 0) => return true,
                // One bitmap has ended.
                (0, count) | (count, 0) => count,
                (left, right) => left.min(right),
            };
            match left.1 ^ right.1 {
                0 => out.add_run(false, count),
                u64::MAX => out.add_run(true, count),
                // At least one of the two runs is a literal word.
                word => out.add_word(word),
            }
            for side in [&mut left, &mut right] {
                side.0 = side.0.saturating_sub(count);
                if side.0 == 0 {
                    side.1 = 0;
                }
            }
        }
        false
    }

    /// Sets the bits of `words` that are set in this bitmap. Ignores bits beyond the end of
    /// `words`.
    pub fn or_into(&self, words: &mut [u64]) {
        self.apply(words, |slot, word| *slot |= word);
    }
}

struct RunMarker {
    ones: bool,
    run: u64,
    literals: u64,
}

impl RunMarker {
    fn new(word: [u8; WORD_LEN]) -> RunMarker {
        let word = u64::from_be_bytes(word);
        RunMarker {
            ones: word & 1 == 1,
            run: word >> 1 & 0xffff_ffff,
            literals: word >> 33,
        }
    }
}

fn take_u32(input: &mut &[u8]) -> Option<u32> {
    let (head, rest) = input.split_first_chunk::<4>()?;
    *input = rest;
    Some(u32::from_be_bytes(*head))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn encode(len: u32, words: &[u64]) -> Vec<u8> {
        let mut out = len.to_be_bytes().to_vec();
        out.extend((words.len() as u32).to_be_bytes());
        out.extend(words.iter().flat_map(|word| word.to_be_bytes()));
        out.extend(0u32.to_be_bytes());
        out
    }

    #[test]
    fn runs_and_words() {
        let bytes = encode(200, &[1 | 1 << 1 | 1 << 33, 0b10_0001, 1 << 1, 1 | 1 << 1]);
        let mut rest = &bytes[..];
        let bitmap = Ewah::parse(&mut rest, 256).expect("it is well formed");
        assert!(rest.is_empty());
        let runs: Vec<WordRun> = bitmap.runs().collect();
        let expected = [
            WordRun::Ones(1),
            WordRun::Word(0b10_0001),
            WordRun::Zeros(1),
            WordRun::Ones(1),
        ];
        assert_eq!(runs, expected);
        let mut words = [0; 4];
        bitmap.or_into(&mut words);
        assert_eq!(words, [u64::MAX, 0b10_0001, 0, u64::MAX]);
        bitmap.xor_into(&mut words);
        assert_eq!(words, [0; 4]);
        let mut few = [0; 1];
        bitmap.or_into(&mut few);
        assert_eq!(few, [u64::MAX]);
    }

    #[test]
    fn claims_beyond_the_bounds_are_refused() {
        let refused = |bytes: &[u8], limit| Ewah::parse(&mut &bytes[..], limit).is_none();
        assert!(refused(&encode(u32::MAX, &[]), 10));
        assert!(refused(&encode(10, &[1 | 0xffff_ffff << 1]), 10));
        assert!(refused(&encode(10, &[5 << 33]), 1000));
        assert!(refused(&encode(10, &[u64::MAX]), 1000));
        let whole = encode(70, &[1 | 1 << 1 | 1 << 33, 7]);
        for len in 0..whole.len() {
            assert!(refused(&whole[..len], 1000), "cut at {len}");
        }
    }
}
