//! EWAH bitmaps: compressed sets of positions in the `link` and `FSMN` extensions.

use pronto_io::ewah::{BitmapBuilder, Ewah, WordRun};

use crate::error::{Error, corrupt};

/// A sorted set of positions.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Bitmap {
    /// The number of positions in the bitmap, set or not.
    len: u32,
    set: Vec<u32>,
}

impl Bitmap {
    /// Removes one bitmap from the front of `input` and returns it.
    ///
    /// Fails if a position is not less than `limit`, and is therefore outside the index.
    pub(crate) fn parse(input: &mut &[u8], limit: usize) -> Result<Bitmap, Error> {
        Self::parse_inner(input, limit).ok_or_else(|| corrupt("corrupt ewah bitmap"))
    }

    fn parse_inner(input: &mut &[u8], limit: usize) -> Option<Bitmap> {
        let bitmap = Ewah::parse(input, limit as u64)?;
        let len = bitmap.len();
        let mut set = Vec::new();
        let mut at = 0u64;
        for run in bitmap.runs() {
            match run {
                WordRun::Zeros(words) => at += words * 64,
                WordRun::Ones(words) => {
                    let end = at + words * 64;
                    let run = at..end.min(u64::from(len));
                    if run.end > limit as u64 {
                        return None;
                    }
                    set.extend(run.map(|position| position as u32));
                    at = end;
                }
                WordRun::Word(mut word) => {
                    while word != 0 {
                        let position = at + u64::from(word.trailing_zeros());
                        if position >= limit as u64 {
                            return None;
                        }
                        set.push(position as u32);
                        word &= word - 1;
                    }
                    at += 64;
                }
            }
        }
        Some(Bitmap { len, set })
    }

    /// Returns the set of the ascending `positions`.
    pub(crate) fn new(positions: impl IntoIterator<Item = u32>) -> Bitmap {
        let set: Vec<u32> = positions.into_iter().collect();
        Bitmap {
            len: set.last().map_or(0, |last| last + 1),
            set,
        }
    }

    /// Appends the bitmap as Git writes it.
    pub(crate) fn encode(&self, out: &mut Vec<u8>) {
        let mut builder = BitmapBuilder::new();
        let mut rest = &self.set[..];
        let mut at = 0u64;
        while let Some(&first) = rest.first() {
            let word = u64::from(first / 64);
            builder.add_run(false, word - at);
            let here = rest.partition_point(|&position| u64::from(position / 64) == word);
            let bits = rest[..here]
                .iter()
                .fold(0, |bits, at| bits | 1u64 << (at % 64));
            builder.add_word(bits);
            (rest, at) = (&rest[here..], word + 1);
        }
        builder.write(self.len, out);
    }

    /// Returns whether `position` is in the set. Logarithmic.
    pub fn contains(&self, position: usize) -> bool {
        u32::try_from(position).is_ok_and(|position| self.set.binary_search(&position).is_ok())
    }

    /// Iterates over the positions in ascending order.
    pub fn iter(&self) -> impl Iterator<Item = usize> + '_ {
        self.set.iter().map(|&position| position as usize)
    }

    /// Returns the number of positions in the bitmap, set or not.
    pub fn len(&self) -> usize {
        self.len as usize
    }

    /// Returns whether no position is set.
    pub fn is_empty(&self) -> bool {
        self.set.is_empty()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_encoded_is_read() {
        for set in [vec![], vec![0], vec![5, 63, 64, 700], (0..200).collect()] {
            let bitmap = Bitmap::new(set.iter().copied());
            let mut bytes = Vec::new();
            bitmap.encode(&mut bytes);
            let mut rest = &bytes[..];
            assert_eq!(Bitmap::parse(&mut rest, 1000).expect("sound"), bitmap);
            assert!(rest.is_empty());
        }
    }

    fn encode(len: u32, words: &[u64]) -> Vec<u8> {
        let mut out = len.to_be_bytes().to_vec();
        out.extend((words.len() as u32).to_be_bytes());
        out.extend(words.iter().flat_map(|word| word.to_be_bytes()));
        out.extend(0u32.to_be_bytes());
        out
    }

    #[test]
    fn runs_and_literals() {
        // A run of one word of ones, then one literal word.
        let bytes = encode(70, &[1 | (1 << 1) | (1 << 33), 0b10_0001]);
        let bitmap = Bitmap::parse(&mut &bytes[..], 70).expect("it is well formed");
        assert_eq!(bitmap.iter().count(), 66);
        assert!(bitmap.contains(63) && bitmap.contains(64) && bitmap.contains(69));
        assert!(!bitmap.contains(65));
    }

    #[test]
    fn a_claim_beyond_the_index_allocates_nothing() {
        let huge = encode(u32::MAX, &[1 | (0xffff_ffff << 1)]);
        assert!(Bitmap::parse(&mut &huge[..], 10).is_err());
        let outside = encode(10, &[1 << 33, 1 << 40]);
        assert!(Bitmap::parse(&mut &outside[..], 10).is_err());
        let short = encode(10, &[5 << 33]);
        assert!(Bitmap::parse(&mut &short[..], 10).is_err());
    }
}
