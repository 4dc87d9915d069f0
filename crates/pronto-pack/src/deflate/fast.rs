//! A fast DEFLATE encoder: takes the first match and writes it immediately.
//!
//! Other encoders are slow for small contents because they process each block twice: to count its
//! symbols, and to write them with a code computed for the block. This encoder writes a block with
//! the code of the previous block, and the first block with a code for text. No symbols are
//! buffered. If the first block would be much smaller with its own code, the block is written again
//! with that code. A block that does not become smaller is stored.
//!
//! Cost: for each byte outside of a match one hash, one table lookup and one write of eight bytes;
//! for each match three of these and the comparison. Uses 64 KiB of memory, or less for small
//! contents.

use super::bits::BitWriter;
use super::codes::{Codes, SymbolCounts, TEXT_CODES};
use super::tables::{FIRST_LENGTH, LENGTH, LONGEST, SHORTEST, WINDOW, distance};

const TABLE_BITS: u32 = 14;
const TABLE: usize = 1 << TABLE_BITS;
/// The smallest table in bits; small contents use only a part of the table.
const LEAST_TABLE_BITS: u32 = 9;

/// The size of a block.
const BLOCK: usize = 64 << 10;
/// The size of the first block, if there are several. The codes of later blocks are computed from
/// its symbols.
const FIRST_BLOCK: usize = 16 << 10;
/// The part of a block whose symbols are counted.
const COUNTED: usize = 8 << 10;
/// The smallest size of a last block.
const LAST_BLOCK: usize = 8 << 10;
/// The number of bytes that are read at once.
const WORD: usize = 8;
/// The number of bytes at the end of the content in which no match is searched.
const MARGIN: usize = WORD + 4;
/// The number of bytes without a match after which only every second position is tried, and then
/// fewer.
const PATIENCE: usize = 64;
/// The largest size of a stored block.
const STORED: usize = 0xffff;

/// The smallest content that is accepted; smaller contents do not outweigh the description of a
/// code, of about 80 bytes.
pub(super) const LEAST_BYTES: usize = 512;
/// The largest content that is accepted.
pub(super) const MOST_BYTES: usize = 1 << 30;

/// The state that is reused for the next content.
#[derive(Debug)]
pub(super) struct Fast {
    /// The last position of each hash. Positions are counted across all contents, so that the table
    /// need not be cleared.
    table: Box<[u32; TABLE]>,
    /// The number of bytes of all earlier contents.
    base: u32,
    /// The shift that reduces a hash to an index of the table.
    shift: u32,
    counts: SymbolCounts,
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
            counts: SymbolCounts::NONE,
        }
    }

    /// Returns the size of the buffer that the deflate stream of `content` requires.
    pub(super) fn room_for(content: &[u8]) -> usize {
        let len = content.len();
        len + len / 1024 + 2 * len.min(BLOCK + LAST_BLOCK + LONGEST) + 512
    }

    /// Writes the deflate stream of `content` to `out` and returns its length. `content` must not
    /// be empty or larger than [`MOST_BYTES`].
    ///
    /// # Panics
    /// Panics if `out` is smaller than the [required size](Self::room_for).
    pub(super) fn deflate(&mut self, content: &[u8], out: &mut [u8]) -> usize {
        self.begin(content);
        let mut bits = BitWriter::new(out);
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
            (at, bits) = self.write::<true>(content, from, counted, codes, bits);
            if own.is_none() && is_ill_suited(codes, &self.counts) {
                own = Some(Codes::for_counts(&self.counts));
                bits.go_back(start);
                self.forget(content);
                continue;
            }
            if at < end {
                (at, bits) = self.write::<false>(content, at, end, codes, bits);
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
        // The first block may be processed twice.
        if u64::from(self.base) + 2 * content.len() as u64 > u64::from(u32::MAX) {
            self.table.fill(0);
            self.base = 1;
        }
        self.counts = SymbolCounts::NONE;
        let bits = usize::BITS - content.len().leading_zeros();
        self.shift = u64::BITS - bits.clamp(LEAST_TABLE_BITS, TABLE_BITS);
    }

    /// Makes the positions of `content` invalid as matches for later content.
    fn forget(&mut self, content: &[u8]) {
        self.base += content.len() as u32;
    }

    /// Writes a block of `content`, from `from` to about `end`, extended to the end of the last
    /// match. Returns the end of the block.
    #[inline(never)]
    fn write<'o, const COUNTS: bool>(
        &mut self,
        content: &[u8],
        from: usize,
        end: usize,
        codes: &Codes,
        bits: BitWriter<'o>,
    ) -> (usize, BitWriter<'o>) {
        let (shift, base) = (self.shift, self.base);
        let table = &mut *self.table;
        let counts = &mut self.counts;
        let mut sink: SymbolWriter<'_, '_, COUNTS> = SymbolWriter {
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

/// Counts symbols and writes them as bits.
struct SymbolWriter<'a, 'o, const COUNTS: bool> {
    codes: &'a Codes,
    counts: &'a mut SymbolCounts,
    bits: BitWriter<'o>,
}

impl<const COUNTS: bool> SymbolWriter<'_, '_, COUNTS> {
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

    /// Writes a match of `len` bytes at the distance `back`.
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

/// Loads eight bytes of `content`.
#[inline(always)]
fn load(content: &[u8], at: usize) -> u64 {
    let word = content[at..at + WORD].first_chunk();
    word.map_or(0, |word| u64::from_le_bytes(*word))
}

/// Returns the table index for the lowest five bytes of `word`.
#[inline(always)]
fn slot_of(word: u64, shift: u32) -> usize {
    // The multiplier is derived from the golden ratio (Fibonacci hashing); the highest bits are
    // mixed best.
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

/// Returns whether symbols with the frequencies `counts` would take much less space with their own
/// code, including its description.
fn is_ill_suited(codes: &Codes, counts: &SymbolCounts) -> bool {
    let total: u32 = counts.literals.iter().sum();
    let whole = log2(total);
    let bits = counts
        .literals
        .iter()
        .map(|count| *count as f32 * (whole - log2(*count)));
    let least = bits.sum::<f32>() as u64;
    codes.cost_bits(counts) > least + least / 12 + 256
}

/// Returns the approximate binary logarithm with an error below a tenth: the exponent plus the
/// fraction, as if linear between powers.
#[inline(always)]
fn log2(number: u32) -> f32 {
    (number as f32).to_bits() as f32 / (1 << 23) as f32 - 127.0
}

/// Writes `content` as stored blocks.
fn store(content: &[u8], is_last: bool, bits: &mut BitWriter<'_>) {
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
