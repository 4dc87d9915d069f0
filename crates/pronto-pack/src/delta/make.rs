//! Creates deltas: finds the parts of an object that a base contains.
//!
//! The base is divided into blocks of 16 bytes, whose hashes are stored in a table. A window of the
//! same size moves over the target. If the hash of the window is in the table, the contents are
//! compared, and the equal part is extended in both directions and becomes a copy instruction.
//! Costs 8 bytes of memory for each block and 4 for each slot, and time in proportion to both
//! sizes; of blocks with the same hash, up to 64 are compared.

/// The size in bytes of a block and of the window over the target.
const BLOCK: usize = 16;

/// The largest number of blocks with the same hash that are kept.
const MOST_ALIKE: usize = 64;

/// The length from which a match is accepted without a search for a longer one.
const LONG_ENOUGH: usize = 4096;

/// The shortest match; a shorter copy instruction takes as many bytes as it replaces.
const SHORTEST: usize = 4;

/// The largest size of one copy instruction.
const LONGEST_COPY: usize = 0x10000;

/// The largest size of one insertion.
const LONGEST_INSERT: usize = 127;

/// The largest base in bytes: copy offsets have 32 bits.
pub const LARGEST_BASE_BYTES: usize = u32::MAX as usize;

/// The number of bytes kept pending as new, because they may still become the end of a match.
const SLACK: usize = 256;

const FACTOR: u32 = 0x0100_0193;

/// The weight of the byte that leaves the window.
const LEAVING: u32 = power(FACTOR, BLOCK as u32 - 1);

const fn power(factor: u32, exponent: u32) -> u32 {
    let mut result = 1u32;
    let mut left = exponent;
    while left > 0 {
        result = result.wrapping_mul(factor);
        left -= 1;
    }
    result
}

fn hash(window: &[u8]) -> u32 {
    window.iter().fold(0, |hash, byte| enter(hash, *byte))
}

#[inline(always)]
fn enter(hash: u32, byte: u8) -> u32 {
    // The summand is never zero, so that runs of zeros with different lengths have different
    // hashes.
    hash.wrapping_mul(FACTOR)
        .wrapping_add(u32::from(byte).wrapping_add(1))
}

#[inline(always)]
fn leave(hash: u32, byte: u8) -> u32 {
    hash.wrapping_sub(u32::from(byte).wrapping_add(1).wrapping_mul(LEAVING))
}

/// The blocks of a base, indexed by their hashes.
#[derive(Clone, Debug, Default)]
pub struct BaseBlocks {
    /// The start of the blocks of each slot in `entries`, and the end of the last slot.
    slots: Vec<u32>,
    /// The hash and the offset of each block, slot by slot.
    entries: Vec<(u32, u32)>,
    shift: u32,
}

impl BaseBlocks {
    /// Returns the table of `base`; `None` if `base` is shorter than a block or too large.
    pub fn new(base: &[u8]) -> Option<BaseBlocks> {
        if base.len() < BLOCK || base.len() > LARGEST_BASE_BYTES {
            return None;
        }
        let count = base.len() / BLOCK;
        let bits = (count / 4).max(16).next_power_of_two().trailing_zeros();
        let shift = 32 - bits;
        let mut found: Vec<(u32, u32)> = Vec::with_capacity(count);
        for (number, block) in base.chunks_exact(BLOCK).enumerate() {
            let hash = hash(block);
            // Of repeated blocks, only the first is stored: a match is extended from there.
            if found.last().is_none_or(|last| last.0 != hash) {
                found.push((hash, (number * BLOCK) as u32));
            }
        }
        let mut blocks = BaseBlocks {
            slots: vec![0; (1 << bits) + 1],
            entries: Vec::new(),
            shift,
        };
        blocks.fill(&found);
        Some(blocks)
    }

    /// Sorts the blocks by slot. If a slot has too many blocks, discards some at regular intervals.
    fn fill(&mut self, found: &[(u32, u32)]) {
        for (hash, _) in found {
            let slot = self.slot(*hash);
            self.slots[slot + 1] += 1;
        }
        let mut next = Vec::with_capacity(self.slots.len());
        let mut sum = 0;
        for slot in &mut self.slots {
            sum += *slot;
            *slot = sum;
            next.push(sum);
        }
        self.entries = vec![(0, 0); found.len()];
        for entry in found {
            let slot = self.slot(entry.0);
            self.entries[next[slot] as usize] = *entry;
            next[slot] += 1;
        }
        let crowded = |pair: &[u32]| (pair[1] - pair[0]) as usize > MOST_ALIKE;
        if self.slots.windows(2).any(crowded) {
            self.thin_out();
        }
    }

    fn thin_out(&mut self) {
        let mut kept = Vec::with_capacity(self.entries.len());
        let mut starts = Vec::with_capacity(self.slots.len());
        for pair in self.slots.windows(2) {
            starts.push(kept.len() as u32);
            let all = &self.entries[pair[0] as usize..pair[1] as usize];
            let len = all.len();
            match len > MOST_ALIKE {
                true => kept.extend((0..MOST_ALIKE).map(|at| all[at * len / MOST_ALIKE])),
                false => kept.extend_from_slice(all),
            }
        }
        starts.push(kept.len() as u32);
        (self.slots, self.entries) = (starts, kept);
    }

    #[inline(always)]
    fn slot(&self, hash: u32) -> usize {
        (hash.wrapping_mul(0x9e37_79b1) >> self.shift) as usize
    }

    /// Returns the memory of the table in bytes.
    pub fn memory_bytes(&self) -> usize {
        self.entries.capacity() * 8 + self.slots.capacity() * 4
    }

    /// Returns the offset and the length of the longest part of `base` with which `target` begins;
    /// `hash` is the hash of the first block of `target`.
    #[inline]
    fn longest(&self, base: &[u8], target: &[u8], hash: u32) -> (usize, usize) {
        let slot = self.slot(hash);
        let (start, end) = (self.slots[slot], self.slots[slot + 1]);
        let mut best = (0, 0);
        for (known, offset) in &self.entries[start as usize..end as usize] {
            let from = *offset as usize;
            if *known != hash {
                continue;
            }
            // A match that is not longer than the best one need not be compared.
            if best.1 > 0 && base.get(from + best.1) != target.get(best.1) {
                continue;
            }
            let len = common(&base[from..], target);
            if len > best.1 {
                best = (from, len);
                if len >= LONG_ENOUGH {
                    break;
                }
            }
        }
        best
    }
}

/// Returns the length of the common prefix of two slices in bytes.
#[inline]
fn common(one: &[u8], other: &[u8]) -> usize {
    let len = one.len().min(other.len());
    let (one, other) = (&one[..len], &other[..len]);
    let mut at = 0;
    for (a, b) in one.chunks_exact(8).zip(other.chunks_exact(8)) {
        let (Ok(a), Ok(b)) = (<[u8; 8]>::try_from(a), <[u8; 8]>::try_from(b)) else {
            break;
        };
        let difference = u64::from_le_bytes(a) ^ u64::from_le_bytes(b);
        if difference != 0 {
            return at + (difference.trailing_zeros() / 8) as usize;
        }
        at += 8;
    }
    while at < len && one[at] == other[at] {
        at += 1;
    }
    at
}

/// Writes a delta that builds `target` from `base`, whose blocks are `blocks`, to `out`, replacing
/// its content. Returns whether the delta takes at most `limit` bytes. Stops as soon as the limit
/// is exceeded; `out` then contains a part of the delta.
pub fn make(
    base: &[u8],
    blocks: &BaseBlocks,
    target: &[u8],
    limit: usize,
    out: &mut Vec<u8>,
) -> bool {
    out.clear();
    put_size(base.len(), out);
    put_size(target.len(), out);
    // The start of the bytes that no instruction covers yet.
    let mut pending = 0;
    let mut at = 0;
    while at + BLOCK <= target.len() {
        let mut rolling = hash(&target[at..at + BLOCK]);
        let (mut from, mut len) = loop {
            let found = blocks.longest(base, &target[at..], rolling);
            if found.1 >= SHORTEST {
                break found;
            }
            let Some(next) = target.get(at + BLOCK) else {
                at = target.len();
                break (0, 0);
            };
            rolling = enter(leave(rolling, target[at]), *next);
            at += 1;
            if out.len() + (at - pending) > limit.saturating_add(SLACK) {
                return false;
            }
        };
        if len == 0 {
            break;
        }
        while at > pending && from > 0 && base[from - 1] == target[at - 1] {
            (from, at, len) = (from - 1, at - 1, len + 1);
        }
        insert(&target[pending..at], out);
        copy(from, len, out);
        at += len;
        pending = at;
        if out.len() > limit {
            return false;
        }
    }
    insert(&target[pending..], out);
    out.len() <= limit
}

fn insert(bytes: &[u8], out: &mut Vec<u8>) {
    for piece in bytes.chunks(LONGEST_INSERT) {
        out.push(piece.len() as u8);
        out.extend_from_slice(piece);
    }
}

fn copy(mut from: usize, mut len: usize, out: &mut Vec<u8>) {
    while len > 0 {
        let piece = len.min(LONGEST_COPY);
        let at = out.len();
        out.push(0x80);
        for (bit, byte) in (from as u32).to_le_bytes().into_iter().enumerate() {
            if byte != 0 {
                out[at] |= 1 << bit;
                out.push(byte);
            }
        }
        // A length of zero encodes the longest copy.
        for (bit, byte) in (piece as u16).to_le_bytes().into_iter().enumerate() {
            if byte != 0 {
                out[at] |= 0x10 << bit;
                out.push(byte);
            }
        }
        from += piece;
        len -= piece;
    }
}

fn put_size(mut size: usize, out: &mut Vec<u8>) {
    while size >= 0x80 {
        out.push(size as u8 | 0x80);
        size >>= 7;
    }
    out.push(size as u8);
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::delta::apply;

    fn random(state: &mut u64, below: usize) -> usize {
        *state = state
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1_442_695_040_888_963_407);
        ((*state >> 33) as usize) % below.max(1)
    }

    /// Returns pieces of `base` with new bytes between some of them.
    fn changed(state: &mut u64, base: &[u8]) -> Vec<u8> {
        let mut target = Vec::new();
        for _ in 0..random(state, 12) {
            let start = random(state, base.len());
            let end = start + random(state, base.len() - start);
            target.extend_from_slice(&base[start..end]);
            for _ in 0..random(state, 40) {
                target.push(random(state, 256) as u8);
            }
        }
        target
    }

    #[test]
    fn deltas_make_the_target() {
        let mut state = 3;
        let (mut delta, mut out) = (Vec::new(), Vec::new());
        for round in 0..600 {
            let alphabet = [2, 4, 256][round % 3];
            let len = random(&mut state, 200_000 >> (round % 12));
            let base: Vec<u8> = (0..len)
                .map(|_| random(&mut state, alphabet) as u8)
                .collect();
            let target = changed(&mut state, &base);
            let Some(blocks) = BaseBlocks::new(&base) else {
                assert!(base.len() < BLOCK);
                continue;
            };
            assert!(make(&base, &blocks, &target, usize::MAX, &mut delta));
            apply(&base, &delta, &mut out).expect("it is sound");
            assert!(out == target, "round {round}");
            let len = delta.len();
            assert!(make(&base, &blocks, &target, len, &mut delta));
            assert!(!make(&base, &blocks, &target, len - 1, &mut delta));
        }
    }

    #[test]
    fn what_repeats_costs_little() {
        let base = vec![7u8; 1 << 20];
        let blocks = BaseBlocks::new(&base).expect("it is long enough");
        assert_eq!(blocks.entries.len(), 1);
        let mut delta = Vec::new();
        assert!(make(&base, &blocks, &vec![7u8; 1 << 19], 100, &mut delta));
        let period: Vec<u8> = (0..1 << 20).map(|at: u32| (at % 48) as u8).collect();
        let blocks = BaseBlocks::new(&period).expect("it is long enough");
        assert!(blocks.entries.len() <= 3 * MOST_ALIKE);
        assert!(make(&period, &blocks, &period, 200, &mut delta));
    }
}
