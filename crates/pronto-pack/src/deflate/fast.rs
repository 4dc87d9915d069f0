//! Fast deflation: the first match is taken and written at once.
//!
//! Other encoders are slow for small contents because they process each block twice: to count its
//! symbols, and to write them in a code made for it. This one writes a block in the code of the
//! previous block, and the first block in a code for text. Nothing is stored between finding and
//! writing. If the first block would be much smaller in a code of its own, it is written again in
//! that. A block that does not become smaller is stored.
//!
//! Cost: for each byte outside of a match a hash, a lookup in a table and a write of eight bytes;
//! for each match three of these and the comparison. 64 KiB of memory, of which small contents use
//! less.

use super::bits::Bits;
use super::codes::{Codes, Counts, TEXT_CODES};
use super::tables::{FIRST_LENGTH, LENGTH, LONGEST, SHORTEST, WINDOW, distance};

const TABLE_BITS: u32 = 14;
const TABLE: usize = 1 << TABLE_BITS;
/// Smaller contents use less of the table.
const LEAST_TABLE_BITS: u32 = 9;

/// The size of a block.
const BLOCK: usize = 64 << 10;
/// The size of the first block, if there are more. The code of the others is made from it.
const FIRST_BLOCK: usize = 16 << 10;
/// The part of a block whose symbols are counted.
const COUNTED: usize = 8 << 10;
/// The smallest size of a last block.
const LAST_BLOCK: usize = 8 << 10;
/// The number of bytes that are read at once.
const WORD: usize = 8;
/// Matches are searched up to this many bytes before the end.
const MARGIN: usize = WORD + 4;
/// After this many bytes without a match every second position is tried, and fewer from there on.
const PATIENCE: usize = 64;
/// The largest size of a stored block.
const STORED: usize = 0xffff;

/// Smaller contents are not accepted: their code would take about 80 bytes.
pub(super) const LEAST_BYTES: usize = 512;
/// Larger contents are not taken.
pub(super) const MOST_BYTES: usize = 1 << 30;

/// State that is kept between contents.
#[derive(Debug)]
pub(super) struct Fast {
    /// The last position of each hash, counted through all contents, so that the table need not be
    /// cleared between them.
    table: Box<[u32; TABLE]>,
    /// The number of bytes that were deflated before.
    base: u32,
    /// The shift that reduces a hash to an index of the table.
    shift: u32,
    counts: Counts,
}

impl Fast {
    pub(super) fn new() -> Fast {
        let table = vec![0; TABLE].into_boxed_slice();
        let Ok(table) = table.try_into() else {
            unreachable!("it was made of that length");
        };
        Fast {
            table,
            base: 1,
            shift: u64::BITS - TABLE_BITS,
            counts: Counts::NONE,
        }
    }

    /// The room that the deflate stream of `content` needs.
    pub(super) fn room_for(content: &[u8]) -> usize {
        let len = content.len();
        len + len / 1024 + 2 * len.min(BLOCK + LAST_BLOCK + LONGEST) + 512
    }

    /// Writes the deflate stream of `content`, which is not empty and of [`MOST_BYTES`] at most, to
    /// `out`, and gives its length.
    ///
    /// # Panics
    /// If there is not the [room](Self::room_for) that it needs.
    pub(super) fn deflate(&mut self, content: &[u8], out: &mut [u8]) -> usize {
        self.begin(content);
        let mut bits = Bits::new(out);
        let mut own = None;
        let mut from = 0;
        loop {
            let codes = match &own {
                Some(codes) => codes,
                None => &*TEXT_CODES,
            };
            let end = block_end(from, content.len());
            let is_last = end == content.len();
            let start = bits.mark();
            codes.begin(is_last, &mut bits);
            let counted = end.min(from + COUNTED);
            let mut at;
            (at, bits) = self.write::<true>((content, from, counted), codes, bits);
            if own.is_none() && is_ill_suited(codes, &self.counts) {
                own = Some(Codes::for_counts(&self.counts));
                bits.go_back(start);
                self.forget(content);
                continue;
            }
            if at < end {
                (at, bits) = self.write::<false>((content, at, end), codes, bits);
            }
            bits.put(codes.end.bits, codes.end.count);
            bits.flush();
            if start.bits_until(bits.mark()) > (at - from) * 8 {
                bits.go_back(start);
                store(&content[from..at], is_last, &mut bits);
            }
            if is_last {
                break;
            }
            own = Some(Codes::for_counts(&self.counts));
            self.counts.fade();
            from = at;
        }
        bits.align();
        self.forget(content);
        bits.len()
    }

    fn begin(&mut self, content: &[u8]) {
        // The first block may be written twice.
        if u64::from(self.base) + 2 * content.len() as u64 > u64::from(u32::MAX) {
            self.table.fill(0);
            self.base = 1;
        }
        self.counts = Counts::NONE;
        let bits = usize::BITS - content.len().leading_zeros();
        self.shift = u64::BITS - bits.clamp(LEAST_TABLE_BITS, TABLE_BITS);
    }

    /// Makes the positions of `content` invalid as matches for later content.
    fn forget(&mut self, content: &[u8]) {
        self.base += content.len() as u32;
    }

    /// Writes a block of `content`, from `from` to about `end`, where the last one ends, and gives
    /// where it ends.
    #[inline(never)]
    fn write<'o, const COUNTS: bool>(
        &mut self,
        (content, from, end): (&[u8], usize, usize),
        codes: &Codes,
        bits: Bits<'o>,
    ) -> (usize, Bits<'o>) {
        let (shift, base) = (self.shift, self.base);
        let table = &mut *self.table;
        let counts = &mut self.counts;
        let mut sink: Sink<'_, '_, COUNTS> = Sink {
            codes,
            counts,
            bits,
        };
        let searched = end.min(content.len().saturating_sub(MARGIN));
        let (mut at, mut misses) = (from, 0);
        while at < searched {
            let word = load(content, at);
            let slot = &mut table[slot_of(word, shift)];
            let here = base + at as u32;
            let back = (here - *slot) as usize;
            *slot = here;
            let is_there = (back <= WINDOW) & (back <= at);
            let before = if is_there { at - back } else { 0 };
            if is_there & (load(content, before) as u32 == word as u32) {
                let len = 4 + same(content, before + 4, at + 4);
                sink.matched(len, back);
                let next = at + len;
                if next < searched {
                    for inside in [at + 1, next - 2] {
                        table[slot_of(load(content, inside), shift)] = base + inside as u32;
                    }
                }
                (at, misses) = (next, 0);
            } else {
                sink.literal(word as u8);
                (at, misses) = (at + 1, misses + 1);
                if misses >= PATIENCE {
                    let next = searched.min(at + misses / PATIENCE);
                    sink.literals(content.get(at..next).unwrap_or_default());
                    at = at.max(next);
                }
            }
        }
        if end == content.len() {
            sink.literals(&content[at..]);
            at = end;
        }
        (at, sink.bits)
    }
}

/// The stage in which symbols are counted and written as bits.
struct Sink<'a, 'o, const COUNTS: bool> {
    codes: &'a Codes,
    counts: &'a mut Counts,
    bits: Bits<'o>,
}

impl<const COUNTS: bool> Sink<'_, '_, COUNTS> {
    #[inline(always)]
    fn literal(&mut self, byte: u8) {
        if COUNTS {
            self.counts.literals[usize::from(byte)] += 1;
        }
        let word = self.codes.literals[usize::from(byte)];
        self.bits.put(word.bits, word.count);
        self.bits.flush();
    }

    #[inline(always)]
    fn literals(&mut self, bytes: &[u8]) {
        bytes.iter().for_each(|byte| self.literal(*byte));
    }

    /// A match of `len` bytes that were `back` bytes before.
    #[inline(always)]
    fn matched(&mut self, len: usize, back: usize) {
        let at = (len - SHORTEST) & 0xff;
        let before = back as u32 - 1;
        let (symbol, extra_bits) = distance(before);
        let symbol = symbol as usize & 0x1f;
        if COUNTS {
            self.counts.literals[FIRST_LENGTH + usize::from(LENGTH[at].slot)] += 1;
            self.counts.distances[symbol] += 1;
        }
        let word = self.codes.lengths[at];
        self.bits.put(word.bits, word.count);
        let word = self.codes.distances[symbol];
        self.bits.put(word.bits, word.count);
        self.bits.put(before & ((1 << extra_bits) - 1), extra_bits);
        self.bits.flush();
    }
}

/// Returns the end of the block that begins at `from`.
fn block_end(from: usize, len: usize) -> usize {
    let end = from + if from == 0 { FIRST_BLOCK } else { BLOCK };
    if end + LAST_BLOCK > len { len } else { end }
}

/// Eight bytes of `content`.
#[inline(always)]
fn load(content: &[u8], at: usize) -> u64 {
    let word = content[at..at + WORD].first_chunk();
    word.map_or(0, |word| u64::from_le_bytes(*word))
}

/// The place in the table for what begins with the lowest five bytes of `word`.
#[inline(always)]
fn slot_of(word: u64, shift: u32) -> usize {
    // The constant is the golden ratio's, as Knuth has it; the highest bits are the best mixed.
    let hash = (word << 24).wrapping_mul(0x9e37_79b9_7f4a_7c15) >> shift;
    hash as usize & (TABLE - 1)
}

/// Returns the number of equal bytes from `at` and from `before` on, up to the longest match.
#[inline(always)]
fn same(content: &[u8], mut before: usize, at: usize) -> usize {
    let end = content.len().min(at + LONGEST - 4);
    let mut now = at;
    while now + WORD <= end {
        let differs = load(content, before) ^ load(content, now);
        if differs != 0 {
            return now - at + (differs.trailing_zeros() >> 3) as usize;
        }
        (before, now) = (before + WORD, now + WORD);
    }
    while now < end && content[before] == content[now] {
        (before, now) = (before + 1, now + 1);
    }
    now - at
}

/// Returns whether `counts` would take much less space in a code of their own, including its
/// description.
fn is_ill_suited(codes: &Codes, counts: &Counts) -> bool {
    let total: u32 = counts.literals.iter().sum();
    let whole = log2(total);
    let bits = counts
        .literals
        .iter()
        .map(|count| *count as f32 * (whole - log2(*count)));
    let least = bits.sum::<f32>() as u64;
    codes.cost_bits(counts) > least + least / 12 + 256
}

/// The logarithm, to a tenth: the exponent, and the fraction as if it were linear between powers.
#[inline(always)]
fn log2(number: u32) -> f32 {
    (number as f32).to_bits() as f32 / (1 << 23) as f32 - 127.0
}

/// Writes `content` as it is.
fn store(content: &[u8], is_last: bool, bits: &mut Bits<'_>) {
    let mut pieces = content.chunks(STORED).peekable();
    while let Some(piece) = pieces.next() {
        bits.put(u32::from(is_last && pieces.peek().is_none()), 3);
        bits.align();
        let len = piece.len() as u16;
        bits.bytes(&len.to_le_bytes());
        bits.bytes(&(!len).to_le_bytes());
        bits.bytes(piece);
    }
}

#[cfg(test)]
mod tests;
