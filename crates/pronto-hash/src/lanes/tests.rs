//! Tests the collision detection for each of the 32 disturbance vectors. Published collisions cover
//! only a few of them.

mod conditions;

use super::disturbance::{DIFFERENCES, FAMILY, FIRST_K, VECTORS, is_late};
use super::suspects::{SuspectBatch, Suspects};
use super::{LaneRun, Width};
use conditions::{PUBLISHED, Solver};

/// Pseudo-random numbers.
pub(super) struct Numbers(u64);

impl Numbers {
    pub(super) fn next(&mut self) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0
    }

    fn words<const COUNT: usize>(&mut self) -> [u32; COUNT] {
        std::array::from_fn(|_| (self.next() >> 16) as u32)
    }
}

fn expand(words: [u32; 16]) -> [u32; 80] {
    let mut expanded = [0; 80];
    expanded[..16].copy_from_slice(&words);
    for t in 16..80 {
        expanded[t] = (expanded[t - 3] ^ expanded[t - 8] ^ expanded[t - 14] ^ expanded[t - 16])
            .rotate_left(1);
    }
    expanded
}

fn bytes(words: [u32; 16]) -> [u8; 64] {
    std::array::from_fn(|at| words[at / 4].to_be_bytes()[at % 4])
}

fn difference(vector: usize) -> [u32; 16] {
    let bytes = DIFFERENCES[vector];
    std::array::from_fn(|at| {
        u32::from_be_bytes([
            bytes[4 * at],
            bytes[4 * at + 1],
            bytes[4 * at + 2],
            bytes[4 * at + 3],
        ])
    })
}

/// The indexes of the existing vectors.
fn existing() -> impl Iterator<Item = usize> {
    (0..VECTORS).filter(|vector| {
        PUBLISHED
            .iter()
            .any(|condition| condition.concerns(*vector))
    })
}

/// Returns the sum of step `t` without the word and the rest of the state.
fn mix(t: usize, b: u32, c: u32, d: u32) -> u32 {
    match t / 20 {
        0 => ((b & c) | (!b & d)).wrapping_add(0x5a82_7999),
        1 => (b ^ c ^ d).wrapping_add(0x6ed9_eba1),
        2 => ((b & c) | (b & d) | (c & d)).wrapping_add(0x8f1b_bcdc),
        _ => (b ^ c ^ d).wrapping_add(0xca62_c1d6),
    }
}

fn forwards([a, b, c, d, e]: [u32; 5], t: usize, word: u32) -> [u32; 5] {
    let sum = a
        .rotate_left(5)
        .wrapping_add(mix(t, b, c, d))
        .wrapping_add(e)
        .wrapping_add(word);
    [sum, a, b.rotate_left(30), c, d]
}

fn backwards([sum, a, rotated, c, d]: [u32; 5], t: usize, word: u32) -> [u32; 5] {
    let b = rotated.rotate_left(2);
    let e = sum
        .wrapping_sub(a.rotate_left(5))
        .wrapping_sub(mix(t, b, c, d))
        .wrapping_sub(word);
    [a, b, c, d, e]
}

#[test]
fn there_are_32_vectors() {
    assert_eq!(existing().count(), 32);
    for vector in 0..VECTORS {
        assert_eq!(
            difference(vector) != [0; 16],
            existing().any(|other| other == vector)
        );
    }
}

/// After the last local collision and before the next disturbance, both messages have the same
/// state. This property and the two disturbances of family II determine the differences.
#[test]
fn differences_are_local_collisions() {
    for vector in existing() {
        let (k, family_ii) = (FIRST_K + vector % FAMILY, vector >= 2 * FAMILY);
        let expanded = expand(difference(vector));
        let quiet = if family_ii {
            k + 9..k + 15
        } else {
            k + 5..k + 15
        };
        assert_eq!(expanded[quiet.start - 1].count_ones(), 1, "vector {vector}");
        assert!(
            expanded[quiet.clone()].iter().all(|word| *word == 0),
            "vector {vector}"
        );
        let middle = if is_late(vector) { 65 } else { 58 };
        assert!(
            (quiet.start..=quiet.end).contains(&middle),
            "vector {vector}"
        );
        if quiet.end < 80 {
            assert_eq!(expanded[quiet.end].count_ones(), 1, "vector {vector}");
        }
    }
}

/// Runs one block in every lane and returns the suspicious lanes for each vector.
fn survivors(width: Width, blocks: &[[u8; 64]; 16]) -> [u16; VECTORS] {
    fn one_block<const N: usize>(
        blocks: &[[u8; 64]; 16],
        run: unsafe fn(&mut super::LaneStates<N>, &LaneRun<'_, N>, &mut Suspects<N>),
        recheck: unsafe fn(&SuspectBatch<N>) -> u16,
        first: usize,
    ) -> [u16; VECTORS] {
        let bases: [*const u8; N] = std::array::from_fn(|lane| blocks[first + lane].as_ptr());
        let numbers = std::array::from_fn(|lane| lane as u32);
        let (bases, numbers) = (&bases, &numbers);
        let blocks = LaneRun {
            bases,
            offset: 0,
            blocks: 1,
            fresh: u16::MAX,
            active: u16::MAX,
            numbers,
        };
        // SAFETY: the width is available, and the blocks are whole.
        unsafe {
            let mut suspects = Suspects::new(recheck);
            run(&mut [[0; N]; 8], &blocks, &mut suspects);
            let survivors = &suspects.traces[0].survivors;
            for bit in 0..64 {
                let vector = super::disturbance::vector_of_bit(bit);
                assert_eq!(
                    survivors.possible >> bit & 1 == 1,
                    survivors.lanes[vector] != 0
                );
            }
            survivors.lanes
        }
    }
    match width {
        Width::Eight => {
            let low = one_block(blocks, super::run_sha1_eight, super::recheck_eight, 0);
            let high = one_block(blocks, super::run_sha1_eight, super::recheck_eight, 8);
            std::array::from_fn(|vector| low[vector] | high[vector] << 8)
        }
        Width::Sixteen => one_block(blocks, super::run_sha1_sixteen, super::recheck_sixteen, 0),
    }
}

/// A block in which the published conditions of a vector hold is a suspect for that vector, in any
/// lane.
#[test]
fn blocks_that_satisfy_the_conditions_are_suspects() {
    let mut numbers = Numbers(0xfeed_beef);
    for vector in existing() {
        let mut solver = Solver::new();
        for condition in PUBLISHED
            .iter()
            .filter(|condition| condition.concerns(vector))
        {
            solver.require(condition, vector);
        }
        for width in Width::available() {
            let blocks = std::array::from_fn(|_| bytes(solver.solve(numbers.words())));
            assert_eq!(
                survivors(width, &blocks)[vector],
                u16::MAX,
                "{width:?}, vector {vector}"
            );
            // No other lane is a suspect.
            let mixed = std::array::from_fn(|lane| {
                if lane % 3 == 0 {
                    blocks[lane]
                } else {
                    bytes(numbers.words())
                }
            });
            let lanes = survivors(width, &mixed)[vector];
            assert_eq!(lanes & 0b1001_0010_0100_1001, 0b1001_0010_0100_1001);
        }
    }
}

/// All widths find the same suspects, and few of them.
#[test]
fn few_blocks_are_suspects() {
    let mut numbers = Numbers(0xdead_5eed);
    let (mut blocks, mut suspects) = (0, 0);
    for _ in 0..2000 {
        let batch = std::array::from_fn(|_| bytes(numbers.words()));
        let found: Vec<_> = Width::available()
            .map(|width| survivors(width, &batch))
            .collect();
        assert!(found.iter().all(|other| *other == found[0]));
        blocks += 16;
        suspects += found
            .first()
            .map_or(0, |found| found.iter().map(|l| l.count_ones()).sum());
    }
    // The fast test omits no condition that would reject many more blocks.
    let expected = existing()
        .map(|vector| {
            let count = PUBLISHED
                .iter()
                .filter(|condition| condition.concerns(vector))
                .count();
            f64::from(blocks) / f64::from(1 << count)
        })
        .sum::<f64>();
    assert!(
        f64::from(suspects) < 1.4 * expected + 10.0,
        "{suspects} against {expected}"
    );
    assert!(
        f64::from(suspects) > 0.9 * expected - 10.0 || found_nothing(),
        "{suspects}"
    );
}

/// Returns whether this processor supports no width.
fn found_nothing() -> bool {
    Width::available().next().is_none()
}

/// The exact check computes the final state of the second message for every vector, in every lane.
#[test]
fn recheck_follows_the_other_message() {
    let mut numbers = Numbers(0xabcd_ef01);
    let mut suspects = Vec::new();
    for vector in existing() {
        let (words, middle) = (numbers.words(), numbers.words());
        let difference = difference(vector);
        let partner = expand(std::array::from_fn(|at| words[at] ^ difference[at]));
        let from = if is_late(vector) { 65 } else { 58 };
        let begin = (0..from)
            .rev()
            .fold(middle, |state, t| backwards(state, t, partner[t]));
        let end = (from..80).fold(middle, |state, t| forwards(state, t, partner[t]));
        let after = std::array::from_fn(|word: usize| begin[word].wrapping_add(end[word]));
        suspects.push((bytes(words), middle, after, vector as u8));
    }
    for turn in 0..suspects.len() {
        suspects.rotate_left(1);
        for (width, batch) in Width::available()
            .flat_map(|width| suspects.chunks(16).map(move |batch| (width, batch)))
        {
            let wrong = turn % 16;
            let batch: Vec<_> = batch
                .iter()
                .enumerate()
                .map(|(slot, (block, middle, after, vector))| {
                    let mut after: [u32; 5] = *after;
                    if slot == wrong {
                        after[turn % 5] ^= 1 << (turn % 32);
                    }
                    (*block, *middle, after, *vector)
                })
                .collect();
            assert_eq!(recheck(width, &batch), !(1 << wrong), "{width:?}");
        }
    }
}

/// A block, the states of both messages in the middle, the state after the block, and the vector.
pub(super) type Suspect = ([u8; 64], [u32; 5], [u32; 5], u8);

fn recheck(width: Width, suspects: &[Suspect]) -> u16 {
    // SAFETY: the width is available.
    unsafe {
        match width {
            Width::Eight => {
                let low = super::recheck_eight(&SuspectBatch::of(&suspects[..8]));
                low & 0xff | super::recheck_eight(&SuspectBatch::of(&suspects[8..])) << 8
            }
            Width::Sixteen => super::recheck_sixteen(&SuspectBatch::of(suspects)),
        }
    }
}
