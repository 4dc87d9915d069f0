//! SHA-1 with collision detection, for one message in each lane of a vector.

use super::disturbance::Planes;
use super::sha1_step::step;
use super::suspects::{Suspects, TRACES, Trace};
use super::vector::Vector;
use super::{LaneRun, LaneStates};

/// The initial state of SHA-1.
pub(super) const INITIAL: [u32; 5] = [
    0x6745_2301,
    0xefcd_ab89,
    0x98ba_dcfe,
    0x1032_5476,
    0xc3d2_e1f0,
];

/// Stores the state of all lanes.
///
/// # Safety
///
/// Requires the instructions of the vector type.
#[inline(always)]
unsafe fn store<V: Vector<N>, const N: usize>(state: &[V; 5], place: &mut [[u32; N]; 5]) {
    for (word, lanes) in state.iter().zip(place) {
        vouched!(word.store(lanes));
    }
}

/// Computes one step of the compression function. Expands the message if `STEP` is not one of the
/// first sixteen (`words` is a ring), and records the bits that the detection needs.
///
/// # Safety
///
/// Requires the instructions of the vector type.
#[inline(always)]
unsafe fn full_step<V: Vector<N>, const N: usize, const STEP: usize>(
    words: &mut [V; 16],
    state: [V; 5],
    planes: &mut Planes,
    trace: &mut Trace<N>,
) -> [V; 5] {
    vouched!({
        if STEP == 58 {
            store(&state, &mut trace.early);
        } else if STEP == 65 {
            store(&state, &mut trace.late);
        }
        if STEP >= 16 {
            words[STEP % 16] = words[(STEP + 13) % 16]
                .xor3(words[(STEP + 8) % 16], words[(STEP + 2) % 16])
                .xor(words[STEP % 16])
                .rotate_left::<1>();
        }
        let word = words[STEP % 16];
        planes.record::<V, N, STEP>(word);
        match STEP / 20 {
            0 => step::<V, N, 0>(state, word),
            1 => step::<V, N, 1>(state, word),
            2 => step::<V, N, 2>(state, word),
            _ => step::<V, N, 3>(state, word),
        }
    })
}

/// Repeats a step with consecutive numbers, instead of a loop that the compiler may not unroll.
macro_rules! full_steps {
    ($words:ident, $state:ident, $planes:ident, $trace:ident: $($step:literal)*) => {
        $($state = full_step::<V, N, $step>(&mut $words, $state, $planes, $trace);)*
    };
}

/// Computes all 80 steps for one block in each lane, without adding the previous state.
///
/// # Safety
///
/// Requires the instructions of the vector type.
#[inline(always)]
unsafe fn compress<V: Vector<N>, const N: usize>(
    mut state: [V; 5],
    mut words: [V; 16],
    trace: &mut Trace<N>,
    planes: &mut Planes,
) -> [V; 5] {
    vouched!({
        full_steps!(words, state, planes, trace: 0 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17 18 19);
        full_steps!(words, state, planes, trace: 20 21 22 23 24 25 26 27 28 29 30 31 32 33 34 35 36 37);
        full_steps!(words, state, planes, trace: 38 39 40 41 42 43 44 45 46 47 48 49 50 51 52 53 54 55);
        full_steps!(words, state, planes, trace: 56 57 58 59 60 61 62 63 64 65 66 67 68 69 70 71 72 73);
        full_steps!(words, state, planes, trace: 74 75 76 77 78 79);
        state
    })
}

/// Digests the blocks of `run`, and rechecks the suspicious blocks.
///
/// # Safety
///
/// Requires `avx2` and the instructions of the vector type. The blocks of all lanes must be
/// readable.
#[inline(always)]
pub(super) unsafe fn run<V: Vector<N>, const N: usize>(
    states: &mut LaneStates<N>,
    run: &LaneRun<'_, N>,
    suspects: &mut Suspects<N>,
) {
    // SAFETY: the caller vouches for the instructions and the blocks.
    unsafe {
        let mut planes = Planes::new();
        let mut state = [V::splat(0); 5];
        for (index, word) in state.iter_mut().enumerate() {
            *word = V::load(&states[index]).replace(run.fresh, V::splat(INITIAL[index]));
        }
        let mut traced = 0;
        for block in 0..run.blocks {
            let offset = run.offset.wrapping_add(64 * block);
            let trace = &mut suspects.traces[traced];
            let words = V::load_blocks(run.bases, offset);
            let end = compress(state, words, trace, &mut planes);
            for (word, end) in state.iter_mut().zip(end) {
                *word = word.add(end);
            }
            store(&state, &mut trace.after);
            planes.survivors(&mut trace.survivors);
            trace.offset = offset;
            traced += 1;
            if traced == TRACES || block + 1 == run.blocks {
                suspects.collect(run, traced);
                traced = 0;
            }
        }
        for (word, lanes) in state.iter().zip(states.iter_mut()) {
            word.store(lanes);
        }
    }
}
