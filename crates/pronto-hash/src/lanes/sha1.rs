//! SHA-1 of as many messages as a vector has lanes, with collision detection.

use super::disturbance::Planes;
use super::suspects::{Suspects, TRACES, Trace};
use super::vector::Vector;
use super::{Run, States};

/// The state that a message begins with.
pub(super) const INITIAL: [u32; 5] = [
    0x6745_2301,
    0xefcd_ab89,
    0x98ba_dcfe,
    0x1032_5476,
    0xc3d2_e1f0,
];

/// The constants of the four phases of twenty steps.
const CONSTANTS: [u32; 4] = [0x5a82_7999, 0x6ed9_eba1, 0x8f1b_bcdc, 0xca62_c1d6];

/// The function of three words of the phase that `STEP` belongs to.
///
/// # Safety
///
/// Needs what the vector needs.
#[inline(always)]
pub(super) unsafe fn mix<V: Vector<N>, const N: usize, const PHASE: usize>(b: V, c: V, d: V) -> V {
    vouched!(match PHASE {
        0 => b.choose(c, d),
        2 => b.majority(c, d),
        _ => b.xor3(c, d),
    })
}

/// One step, with the expanded message word of that step.
///
/// # Safety
///
/// Needs what the vector needs.
#[inline(always)]
pub(super) unsafe fn step<V: Vector<N>, const N: usize, const PHASE: usize>(
    state: [V; 5],
    word: V,
) -> [V; 5] {
    vouched!({
        let [a, b, c, d, e] = state;
        let sum = e
            .add(V::splat(CONSTANTS[PHASE]))
            .add(word)
            .add(mix::<V, N, PHASE>(b, c, d));
        [
            sum.add(a.rotate_left::<5>()),
            a,
            b.rotate_left::<30>(),
            c,
            d,
        ]
    })
}

/// Undoes [`step`].
///
/// # Safety
///
/// Needs what the vector needs.
#[inline(always)]
pub(super) unsafe fn step_back<V: Vector<N>, const N: usize, const PHASE: usize>(
    state: [V; 5],
    word: V,
) -> [V; 5] {
    vouched!({
        let [sum, a, rotated, c, d] = state;
        let b = rotated.rotate_left::<2>();
        let added = V::splat(CONSTANTS[PHASE])
            .add(word)
            .add(mix::<V, N, PHASE>(b, c, d))
            .add(a.rotate_left::<5>());
        [a, b, c, d, sum.subtract(added)]
    })
}

/// Writes the state of all lanes.
///
/// # Safety
///
/// Needs what the vector needs.
#[inline(always)]
unsafe fn store<V: Vector<N>, const N: usize>(state: &[V; 5], place: &mut [[u32; N]; 5]) {
    for (word, lanes) in state.iter().zip(place) {
        vouched!(word.store(lanes));
    }
}

/// One step of a whole compression: expands the message where `STEP` is beyond its sixteen words,
/// which `words` holds as a ring, and keeps the bits that the detection needs.
///
/// # Safety
///
/// Needs what the vector needs.
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

/// Spells out consecutive steps, so that nothing is left to the unroller.
macro_rules! full_steps {
    ($words:ident, $state:ident, $planes:ident, $trace:ident: $($step:literal)*) => {
        $($state = full_step::<V, N, $step>(&mut $words, $state, $planes, $trace);)*
    };
}

/// All 80 steps for one block of each lane, without adding the state from before.
///
/// # Safety
///
/// Needs what the vector needs.
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

/// Digests the blocks of `run`, and has the suspicious ones rechecked.
///
/// # Safety
///
/// Needs `avx2` and what the vector needs, and the blocks of all lanes must be readable.
#[inline(always)]
pub(super) unsafe fn run<V: Vector<N>, const N: usize>(
    states: &mut States<N>,
    run: &Run<'_, N>,
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
