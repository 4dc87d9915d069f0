//! The exact check of suspects: blocks in which all conditions of a disturbance vector hold.
//!
//! About one in eighteen harmless blocks is a suspect. The check computes the second message of the
//! assumed pair from the step at which both states are equal, backwards to its initial state and
//! forwards to its final state. It then compares the sum of these states with the state after the
//! block. One suspect is checked in each lane at the same time.

use super::LaneRun;
use super::disturbance::{DIFFERENCES, Survivors, VECTORS, is_late, vector_of_bit};
use super::sha1_step::{step, step_back};
use super::vector::Vector;

/// The number of blocks of each lane between two searches for suspects. A search costs one or two
/// branch mispredictions, so it does not run for every block.
pub(super) const TRACES: usize = 8;

/// The trace of one block in all lanes.
#[repr(align(64))]
pub(super) struct Trace<const N: usize> {
    /// The states before step 58, before step 65, and after the block.
    pub(super) early: [[u32; N]; 5],
    pub(super) late: [[u32; N]; 5],
    pub(super) after: [[u32; N]; 5],
    /// The lanes and vectors for which all conditions hold.
    pub(super) survivors: Survivors,
    /// The offset of the blocks from the base addresses of the lanes.
    pub(super) offset: usize,
}

impl<const N: usize> Trace<N> {
    /// Creates an empty trace.
    const fn new() -> Self {
        Trace {
            early: [[0; N]; 5],
            late: [[0; N]; 5],
            after: [[0; N]; 5],
            survivors: Survivors::NONE,
            offset: 0,
        }
    }
}

/// The suspects to recheck, and the messages in which an attack was found.
pub(super) struct Suspects<const N: usize> {
    /// The traces of the blocks of a run.
    pub(super) traces: Box<[Trace<N>; TRACES]>,
    /// The positions in the traces to check: the index of the trace and the bit of the vector.
    places: Box<[(u8, u8); TRACES * VECTORS + 2]>,
    batch: SuspectBatch<N>,
    length: usize,
    /// The numbers of the messages in the batch.
    numbers: [u32; N],
    attacked: Vec<u32>,
    was_flushed: bool,
    recheck: unsafe fn(&SuspectBatch<N>) -> u16,
}

/// A batch of suspects, one for each lane.
pub(super) struct SuspectBatch<const N: usize> {
    /// The suspicious block.
    blocks: [[u8; 64]; N],
    /// The state of both messages before step 58 or 65, depending on the vector: the first words of
    /// all suspects, then the second words, and so on.
    middle: [[u32; N]; 5],
    /// The state after the block.
    after: [[u32; N]; 5],
    /// The disturbance vector of the suspect.
    vectors: [u8; N],
}

#[cfg(test)]
impl<const N: usize> SuspectBatch<N> {
    /// Creates a full batch.
    pub(super) fn of(suspects: &[super::tests::Suspect]) -> Self {
        use std::array::from_fn;
        SuspectBatch {
            blocks: from_fn(|slot| suspects[slot].0),
            middle: from_fn(|word| from_fn(|slot| suspects[slot].1[word])),
            after: from_fn(|word| from_fn(|slot| suspects[slot].2[word])),
            vectors: from_fn(|slot| suspects[slot].3),
        }
    }
}

impl<const N: usize> Suspects<N> {
    /// Creates an empty collection.
    ///
    /// # Safety
    ///
    /// `recheck` must be [`recheck`] for a vector whose instructions the processor has.
    pub(super) unsafe fn new(recheck: unsafe fn(&SuspectBatch<N>) -> u16) -> Self {
        let batch = SuspectBatch {
            blocks: [[0; 64]; N],
            middle: [[0; N]; 5],
            after: [[0; N]; 5],
            vectors: [0; N],
        };
        Suspects {
            traces: Box::new([const { Trace::new() }; TRACES]),
            places: Box::new([(0, 0); TRACES * VECTORS + 2]),
            batch,
            length: 0,
            numbers: [0; N],
            attacked: Vec::new(),
            was_flushed: false,
            recheck,
        }
    }

    /// Adds the suspects in the first `blocks` traces, which are those of blocks of `run`.
    ///
    /// # Safety
    ///
    /// The blocks must be readable.
    #[inline(always)]
    pub(super) unsafe fn collect(&mut self, run: &LaneRun<'_, N>, blocks: usize) {
        let count = self.find(blocks);
        for place in 0..count {
            let (trace, bit) = self.places[place];
            let vector = vector_of_bit(bit);
            let mut lanes = self.traces[usize::from(trace)].survivors.lanes[vector] & run.active;
            while lanes != 0 {
                let lane = lanes.trailing_zeros() as usize;
                lanes &= lanes - 1;
                // SAFETY: the caller vouches for the block.
                unsafe { self.take(run, usize::from(trace), vector, lane) };
            }
        }
    }

    /// Lists the vectors in `survivors` of each of the first `blocks` traces. Returns their number.
    ///
    /// Usually a block has one vector or none. Two entries are written in any case, so that the
    /// processor does not have to predict a branch.
    #[inline(always)]
    fn find(&mut self, blocks: usize) -> usize {
        let mut count = 0;
        for (index, trace) in self.traces[..blocks].iter().enumerate() {
            let mut vectors = trace.survivors.possible;
            let end = count + vectors.count_ones() as usize;
            for place in &mut self.places[count..count + 2] {
                *place = (index as u8, vectors.trailing_zeros() as u8);
                vectors &= vectors.wrapping_sub(1);
            }
            let mut beyond = count + 2;
            while vectors != 0 {
                self.places[beyond] = (index as u8, vectors.trailing_zeros() as u8);
                vectors &= vectors - 1;
                beyond += 1;
            }
            count = end;
        }
        count
    }

    /// Adds one block to the batch.
    ///
    /// # Safety
    ///
    /// The block must be readable.
    #[inline(always)]
    unsafe fn take(&mut self, run: &LaneRun<'_, N>, trace: usize, vector: usize, lane: usize) {
        let trace = &self.traces[trace];
        let middle = if is_late(vector) {
            &trace.late
        } else {
            &trace.early
        };
        let slot = self.length;
        for (words, lanes) in self.batch.middle.iter_mut().zip(middle) {
            words[slot] = lanes[lane];
        }
        for (words, lanes) in self.batch.after.iter_mut().zip(&trace.after) {
            words[slot] = lanes[lane];
        }
        let block = run.bases[lane]
            .wrapping_add(trace.offset)
            .cast::<[u8; 64]>();
        // SAFETY: the caller vouches for it, and arrays of bytes need no alignment.
        self.batch.blocks[slot] = unsafe { *block };
        self.batch.vectors[slot] = vector as u8;
        self.numbers[slot] = run.numbers[lane];
        self.length += 1;
        if self.length == N {
            self.flush();
        }
    }

    /// Whether the batch contains a block of the message with this number.
    pub(super) fn is_pending(&self, number: u32) -> bool {
        self.numbers[..self.length].contains(&number)
    }

    /// Whether an attack was found in the message with this number.
    pub(super) fn is_attacked(&self, number: u32) -> bool {
        self.attacked.contains(&number)
    }

    /// Returns whether the batch was rechecked since the last call of this method.
    pub(super) fn was_flushed(&mut self) -> bool {
        std::mem::take(&mut self.was_flushed)
    }

    /// Drops all suspects.
    pub(super) fn clear(&mut self) {
        self.length = 0;
        self.attacked.clear();
    }

    /// Rechecks the collected suspects.
    #[inline(never)]
    pub(super) fn flush(&mut self) {
        self.was_flushed = true;
        if self.length == 0 {
            return;
        }
        // SAFETY: `new` was promised that the processor has the instructions.
        let mut attacks = unsafe { (self.recheck)(&self.batch) };
        attacks &= (u32::MAX >> (32 - self.length)) as u16;
        while attacks != 0 {
            self.attacked
                .push(self.numbers[attacks.trailing_zeros() as usize]);
            attacks &= attacks - 1;
        }
        self.length = 0;
    }
}

/// Computes the steps `FROM..TO`, which belong to one phase. Five steps are unrolled, because after
/// five steps each word of the state is in its original variable.
///
/// # Safety
///
/// Requires the instructions of the vector type.
#[inline(always)]
unsafe fn forwards<
    V: Vector<N>,
    const N: usize,
    const PHASE: usize,
    const FROM: usize,
    const TO: usize,
>(
    mut state: [V; 5],
    words: &[V; 80],
) -> [V; 5] {
    vouched!({
        let mut index = FROM;
        while index + 5 <= TO {
            state = step::<V, N, PHASE>(state, words[index]);
            state = step::<V, N, PHASE>(state, words[index + 1]);
            state = step::<V, N, PHASE>(state, words[index + 2]);
            state = step::<V, N, PHASE>(state, words[index + 3]);
            state = step::<V, N, PHASE>(state, words[index + 4]);
            index += 5;
        }
        while index < TO {
            state = step::<V, N, PHASE>(state, words[index]);
            index += 1;
        }
        state
    })
}

/// Computes the inverse of [`forwards`].
///
/// # Safety
///
/// Requires the instructions of the vector type.
#[inline(always)]
unsafe fn backwards<
    V: Vector<N>,
    const N: usize,
    const PHASE: usize,
    const FROM: usize,
    const TO: usize,
>(
    mut state: [V; 5],
    words: &[V; 80],
) -> [V; 5] {
    vouched!({
        let mut index = TO;
        while index >= FROM + 5 {
            state = step_back::<V, N, PHASE>(state, words[index - 1]);
            state = step_back::<V, N, PHASE>(state, words[index - 2]);
            state = step_back::<V, N, PHASE>(state, words[index - 3]);
            state = step_back::<V, N, PHASE>(state, words[index - 4]);
            state = step_back::<V, N, PHASE>(state, words[index - 5]);
            index -= 5;
        }
        while index > FROM {
            state = step_back::<V, N, PHASE>(state, words[index - 1]);
            index -= 1;
        }
        state
    })
}

/// Expands the message.
///
/// # Safety
///
/// Requires the instructions of the vector type.
#[inline(always)]
unsafe fn expand<V: Vector<N>, const N: usize>(words: [V; 16]) -> [V; 80] {
    vouched!({
        let mut expanded = [V::splat(0); 80];
        expanded[..16].copy_from_slice(&words);
        for index in 16..80 {
            expanded[index] = expanded[index - 3]
                .xor3(expanded[index - 8], expanded[index - 14])
                .xor(expanded[index - 16])
                .rotate_left::<1>();
        }
        expanded
    })
}

/// Returns the sum of the initial and the final state of a message whose state is `middle` before
/// step 65 in the lanes `late`, and before step 58 in the others.
///
/// # Safety
///
/// Requires the instructions of the vector type.
#[inline(always)]
unsafe fn both_ways<V: Vector<N>, const N: usize>(
    middle: [V; 5],
    late: u16,
    words: &[V; 80],
) -> [V; 5] {
    vouched!({
        let mut begin = backwards::<V, N, 3, 60, 65>(middle, words);
        begin = backwards::<V, N, 2, 58, 60>(begin, words);
        for (word, middle) in begin.iter_mut().zip(middle) {
            *word = middle.replace(late, *word);
        }
        begin = backwards::<V, N, 2, 40, 58>(begin, words);
        begin = backwards::<V, N, 1, 20, 40>(begin, words);
        begin = backwards::<V, N, 0, 0, 20>(begin, words);

        let mut end = forwards::<V, N, 2, 58, 60>(middle, words);
        end = forwards::<V, N, 3, 60, 65>(end, words);
        for (word, middle) in end.iter_mut().zip(middle) {
            *word = word.replace(late, middle);
        }
        end = forwards::<V, N, 3, 65, 80>(end, words);

        for (word, begin) in end.iter_mut().zip(begin) {
            *word = word.add(begin);
        }
        end
    })
}

/// Returns the bit set of the suspects whose assumed partner has the same final state.
///
/// # Safety
///
/// Requires the instructions of the vector type.
#[inline(always)]
pub(super) unsafe fn recheck<V: Vector<N>, const N: usize>(batch: &SuspectBatch<N>) -> u16 {
    // SAFETY: the caller vouches for the instructions; blocks and differences are 64 bytes each.
    unsafe {
        let blocks: [*const u8; N] = std::array::from_fn(|slot| batch.blocks[slot].as_ptr());
        let differences: [*const u8; N] =
            std::array::from_fn(|slot| DIFFERENCES[usize::from(batch.vectors[slot])].as_ptr());
        let mut late = 0;
        for (slot, vector) in batch.vectors.iter().enumerate() {
            late |= u16::from(is_late(usize::from(*vector))) << slot;
        }

        let mut partner = V::load_blocks(&blocks, 0);
        for (partner, difference) in partner.iter_mut().zip(V::load_blocks(&differences, 0)) {
            *partner = partner.xor(difference);
        }
        let mut middle = [V::splat(0); 5];
        for (word, lanes) in middle.iter_mut().zip(&batch.middle) {
            *word = V::load(lanes);
        }
        let sum = both_ways(middle, late, &expand(partner));
        let mut same = u16::MAX;
        for (word, after) in sum.iter().zip(&batch.after) {
            same &= word.equal(V::load(after));
        }
        same
    }
}
