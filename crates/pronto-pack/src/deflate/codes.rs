//! The Huffman codes of a block for literals, lengths and distances.

use std::sync::LazyLock;

use super::bits::BitWriter;
use super::huffman::{LONGEST_CODE, code_lengths, code_words};
use super::tables::{DISTANCES, END, FIRST_LENGTH, HEADER_ORDER, LENGTH, LITERALS};
use super::text::{TEXT_DISTANCES, TEXT_LITERALS};

/// The frequencies of symbols.
#[derive(Clone, Debug)]
pub(super) struct SymbolCounts {
    pub(super) literals: [u32; LITERALS],
    pub(super) distances: [u32; DISTANCES + 2],
}

impl SymbolCounts {
    pub(super) const NONE: SymbolCounts = SymbolCounts {
        literals: [0; LITERALS],
        distances: [0; DISTANCES + 2],
    };

    /// Halves all frequencies, so that later symbols have more weight than earlier ones.
    pub(super) fn fade(&mut self) {
        let all = self.literals.iter_mut().chain(&mut self.distances);
        all.for_each(|count| *count /= 2);
    }
}

/// A sequence of bits and its length.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct CodeWord {
    pub(super) bits: u32,
    pub(super) count: u32,
}

impl CodeWord {
    fn new(bits: u16, count: u8) -> CodeWord {
        CodeWord {
            bits: u32::from(bits),
            count: u32::from(count),
        }
    }
}

/// The codes of a block.
#[derive(Clone, Debug)]
pub(super) struct Codes {
    pub(super) literals: [CodeWord; 256],
    pub(super) end: CodeWord,
    /// The codes of lengths with their extra bits, indexed by the length minus the shortest length.
    pub(super) lengths: [CodeWord; 256],
    pub(super) distances: [CodeWord; DISTANCES + 2],
    /// The code lengths of literals, the end of block, and lengths.
    code_lengths: [u8; LITERALS],
    /// The encoded description of the codes.
    header: Vec<CodeWord>,
}

/// The type of blocks with dynamic codes (RFC 1951, 3.2.3).
const DYNAMIC: u32 = 2;

/// Codes for text, primarily source code.
pub(super) static TEXT_CODES: LazyLock<Codes> =
    LazyLock::new(|| Codes::of(&TEXT_LITERALS, &TEXT_DISTANCES));

impl Codes {
    /// Returns codes for symbols with the frequencies `counts`. Every symbol gets a code.
    pub(super) fn for_counts(counts: &SymbolCounts) -> Codes {
        let at_least_once = |count: &u32| (*count).max(1);
        let literals = counts.literals.each_ref().map(at_least_once);
        let mut literal_lengths = [0; LITERALS];
        code_lengths(&literals, LONGEST_CODE, &mut literal_lengths);
        let distances = counts.distances.each_ref().map(at_least_once);
        let mut distance_lengths = [0; DISTANCES];
        code_lengths(&distances[..DISTANCES], LONGEST_CODE, &mut distance_lengths);
        Codes::of(&literal_lengths, &distance_lengths)
    }

    fn of(literal_lengths: &[u8; LITERALS], distance_lengths: &[u8; DISTANCES]) -> Codes {
        let mut words = [0; LITERALS];
        code_words(literal_lengths, &mut words);
        let literal = |symbol: usize| CodeWord::new(words[symbol], literal_lengths[symbol]);
        let length = |at: usize| {
            let length = &LENGTH[at];
            let word = literal(FIRST_LENGTH + usize::from(length.slot));
            CodeWord {
                bits: word.bits | u32::from(length.over) << word.count,
                count: word.count + u32::from(length.extra_bits),
            }
        };
        let mut codes = Codes {
            literals: std::array::from_fn(literal),
            end: literal(END),
            lengths: std::array::from_fn(length),
            distances: [CodeWord::default(); DISTANCES + 2],
            code_lengths: *literal_lengths,
            header: header(literal_lengths, distance_lengths),
        };
        let mut words = [0; DISTANCES];
        code_words(distance_lengths, &mut words);
        let all = codes
            .distances
            .iter_mut()
            .zip(words.iter().zip(distance_lengths));
        all.for_each(|(code, (word, length))| *code = CodeWord::new(*word, *length));
        codes
    }

    /// Writes the header of a block.
    pub(super) fn begin(&self, is_last: bool, bits: &mut BitWriter<'_>) {
        bits.put(u32::from(is_last) | DYNAMIC << 1, 3);
        for word in &self.header {
            bits.put(word.bits, word.count);
            bits.flush();
        }
    }

    /// Returns the number of bits of the counted literals and lengths, without the extra bits of
    /// lengths.
    pub(super) fn cost_bits(&self, counts: &SymbolCounts) -> u64 {
        let pairs = counts.literals.iter().zip(&self.code_lengths);
        let cost: u32 = pairs.map(|(count, len)| count * u32::from(*len)).sum();
        cost.into()
    }
}

/// Encodes the lengths of the codes (RFC 1951, 3.2.7).
fn header(literals: &[u8], distances: &[u8]) -> Vec<CodeWord> {
    let used = |lengths: &[u8]| lengths.iter().rposition(|length| *length > 0);
    let literals = &literals[..used(literals).map_or(0, |at| at + 1).max(FIRST_LENGTH)];
    let distances = &distances[..used(distances).map_or(0, |at| at + 1).max(1)];
    let all: Vec<u8> = [literals, distances].concat();
    let mut steps = Vec::with_capacity(all.len());
    for run in all.chunk_by(u8::eq) {
        push_run(&mut steps, run[0], run.len());
    }
    let mut counts = [0; HEADER_ORDER.len()];
    steps
        .iter()
        .for_each(|(symbol, _)| counts[usize::from(*symbol)] += 1);
    let mut lengths = [0; HEADER_ORDER.len()];
    code_lengths(&counts, 7, &mut lengths);
    let mut words = [0; HEADER_ORDER.len()];
    code_words(&lengths, &mut words);
    let stored = HEADER_ORDER.iter().rposition(|at| lengths[*at] > 0);
    let stored = stored.map_or(0, |at| at + 1).max(4);
    let number = |bits: usize, count| CodeWord {
        bits: bits as u32,
        count,
    };
    let mut header = vec![
        number(literals.len() - FIRST_LENGTH, 5),
        number(distances.len() - 1, 5),
        number(stored - 4, 4),
    ];
    header.extend(
        HEADER_ORDER[..stored]
            .iter()
            .map(|at| number(usize::from(lengths[*at]), 3)),
    );
    for (symbol, extra) in steps {
        let at = usize::from(symbol);
        header.extend([CodeWord::new(words[at], lengths[at]), extra]);
    }
    header
}

/// Appends the symbols for a run of `length`, with their extra bits.
fn push_run(steps: &mut Vec<(u8, CodeWord)>, length: u8, mut times: usize) {
    let mut repeat = |symbol, (least, most): (usize, usize), bits, times: &mut usize| {
        while *times >= least {
            let now = (*times).min(most);
            steps.push((
                symbol,
                CodeWord {
                    bits: (now - least) as u32,
                    count: bits,
                },
            ));
            *times -= now;
        }
    };
    if length == 0 {
        repeat(18, (11, 138), 7, &mut times);
        repeat(17, (3, 10), 3, &mut times);
    } else {
        let single = &mut 1;
        repeat(length, (1, 1), 0, single);
        times -= 1;
        repeat(16, (3, 6), 2, &mut times);
    }
    repeat(length, (1, 1), 0, &mut times);
}
