//! Blocks that satisfy all conditions of a disturbance vector, waiting for the exact check.
//!
//! About one harmless block in eighteen gets here. The check follows the other message of the
//! supposed pair from the step at which the states of both are the same, backwards to the state
//! it would have begun with and forwards to the one it would have ended with, and asks whether
//! that end is the end of the block at hand. That is done for as many suspects at once as there
//! are lanes.

use super::Run;
use super::disturbance::{DIFFERENCES, Survivors, is_late};
use super::sha1::{step, step_back};
use super::vector::Vector;

/// Blocks to recheck, and the messages in which an attack was found.
pub(super) struct Suspects<const N: usize> {
    batch: Batch<N>,
    length: usize,
    messages: [u32; N],
    attacked: Vec<u32>,
    recheck: unsafe fn(&Batch<N>) -> u16,
}

/// As many suspects as there are lanes.
pub(super) struct Batch<const N: usize> {
    /// The block that looked suspicious.
    blocks: [[u8; 64]; N],
    /// The state before it: the first word of all, the second of all, and so on.
    before: [[u32; N]; 5],
    /// The disturbance vector it may belong to.
    vectors: [u8; N],
}

impl<const N: usize> Suspects<N> {
    /// None yet.
    ///
    /// # Safety
    ///
    /// `recheck` must be [`recheck`] for a vector whose instructions the processor has.
    pub(super) unsafe fn new(recheck: unsafe fn(&Batch<N>) -> u16) -> Self {
        Suspects {
            batch: Batch {
                blocks: [[0; 64]; N],
                before: [[0; N]; 5],
                vectors: [0; N],
            },
            length: 0,
            messages: [0; N],
            attacked: Vec::new(),
            recheck,
        }
    }

    /// Takes up the blocks at `offset` of the lanes in `survivors`.
    ///
    /// # Safety
    ///
    /// The blocks must be readable.
    #[inline(never)]
    pub(super) unsafe fn collect(
        &mut self,
        survivors: &Survivors,
        before: &[[u32; N]; 5],
        run: &Run<'_, N>,
        offset: usize,
    ) {
        for (vector, lanes) in survivors.as_flattened().iter().enumerate() {
            let mut lanes = *lanes;
            while lanes != 0 {
                let lane = lanes.trailing_zeros() as usize;
                lanes &= lanes - 1;
                let slot = self.length;
                let block = run.bases[lane].wrapping_add(offset).cast::<[u8; 64]>();
                // SAFETY: the caller vouches for it, and arrays of bytes need no alignment.
                self.batch.blocks[slot] = unsafe { *block };
                for (words, before) in self.batch.before.iter_mut().zip(before) {
                    words[slot] = before[lane];
                }
                self.batch.vectors[slot] = vector as u8;
                self.messages[slot] = run.messages[lane];
                self.length += 1;
                if self.length == N {
                    self.flush();
                }
            }
        }
    }

    /// The messages in which there is an attack, in no particular order and perhaps repeatedly.
    pub(super) fn finish(mut self) -> Vec<u32> {
        self.flush();
        self.attacked
    }

    /// Rechecks what there is.
    fn flush(&mut self) {
        if self.length == 0 {
            return;
        }
        // SAFETY: `new` was promised that the processor has the instructions.
        let mut attacks = unsafe { (self.recheck)(&self.batch) };
        attacks &= (u32::MAX >> (32 - self.length)) as u16;
        while attacks != 0 {
            self.attacked
                .push(self.messages[attacks.trailing_zeros() as usize]);
            attacks &= attacks - 1;
        }
        self.length = 0;
    }
}

/// The steps of one phase that lie in the range given, all of them forwards.
macro_rules! forwards {
    ($state:ident, $words:ident, $($phase:literal: $steps:expr),*) => {
        $(for index in $steps {
            $state = step::<V, N, $phase>($state, $words[index]);
        })*
    };
}

/// The same, all of them backwards.
macro_rules! backwards {
    ($state:ident, $words:ident, $($phase:literal: $steps:expr),*) => {
        $(for index in $steps.rev() {
            $state = step_back::<V, N, $phase>($state, $words[index]);
        })*
    };
}

/// The expanded message.
///
/// # Safety
///
/// Needs what the vector needs.
#[inline(always)]
unsafe fn expand<V: Vector<N>, const N: usize>(words: [V; 16]) -> [V; 80] {
    // SAFETY: the caller vouches for the instructions.
    unsafe {
        let mut expanded = [V::splat(0); 80];
        expanded[..16].copy_from_slice(&words);
        for index in 16..80 {
            expanded[index] = expanded[index - 3]
                .xor3(expanded[index - 8], expanded[index - 14])
                .xor(expanded[index - 16])
                .rotate_left::<1>();
        }
        expanded
    }
}

/// The states before steps 58 and 65, and at the end.
///
/// # Safety
///
/// Needs what the vector needs.
#[inline(always)]
unsafe fn follow<V: Vector<N>, const N: usize>(mut state: [V; 5], words: &[V; 80]) -> [[V; 5]; 3] {
    // SAFETY: the caller vouches for the instructions.
    unsafe {
        forwards!(state, words, 0: 0..20, 1: 20..40, 2: 40..58);
        let early = state;
        forwards!(state, words, 2: 58..60, 3: 60..65);
        let late = state;
        forwards!(state, words, 3: 65..80);
        [early, late, state]
    }
}

/// The states that the other message of the pair begins and ends with, if it is in `early` before
/// step 58, or, where `is_late`, in `late` before step 65.
///
/// # Safety
///
/// Needs what the vector needs.
#[inline(always)]
unsafe fn follow_partner<V: Vector<N>, const N: usize>(
    early: [V; 5],
    late: [V; 5],
    is_late: u16,
    words: &[V; 80],
) -> [[V; 5]; 2] {
    // SAFETY: the caller vouches for the instructions.
    unsafe {
        let mut start = late;
        backwards!(start, words, 3: (60..65), 2: (58..60));
        for (word, early) in start.iter_mut().zip(early) {
            *word = early.replace(is_late, *word);
        }
        backwards!(start, words, 2: (40..58), 1: (20..40), 0: (0..20));

        let mut end = early;
        forwards!(end, words, 2: 58..60, 3: 60..65);
        for (word, late) in end.iter_mut().zip(late) {
            *word = word.replace(is_late, late);
        }
        forwards!(end, words, 3: 65..80);
        [start, end]
    }
}

/// A bit for each suspect whose supposed partner ends in the same state.
///
/// # Safety
///
/// Needs what the vector needs.
#[inline(always)]
pub(super) unsafe fn recheck<V: Vector<N>, const N: usize>(batch: &Batch<N>) -> u16 {
    // SAFETY: the caller vouches for the instructions; blocks and differences are 64 bytes each.
    unsafe {
        let blocks = std::array::from_fn(|slot| batch.blocks[slot].as_ptr());
        let differences: [*const u8; N] =
            std::array::from_fn(|slot| DIFFERENCES[usize::from(batch.vectors[slot])].as_ptr());
        let mut late_slots = 0;
        for (slot, vector) in batch.vectors.iter().enumerate() {
            late_slots |= u16::from(is_late(usize::from(*vector))) << slot;
        }

        let words = V::load_blocks(&blocks, 0);
        let mut partner = V::load_blocks(&differences, 0);
        for (partner, word) in partner.iter_mut().zip(words) {
            *partner = partner.xor(word);
        }
        let mut before = [V::splat(0); 5];
        for (word, lanes) in before.iter_mut().zip(&batch.before) {
            *word = V::load(lanes);
        }
        let [early, late, end] = follow(before, &expand(words));
        let [partner_start, partner_end] =
            follow_partner(early, late, late_slots, &expand(partner));
        let mut same = u16::MAX;
        for index in 0..5 {
            let ours = before[index].add(end[index]);
            let theirs = partner_start[index].add(partner_end[index]);
            same &= ours.equal(theirs);
        }
        same
    }
}
