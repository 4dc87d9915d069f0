//! SHA-256 for one message in each lane of a vector.

use super::suspects::Suspects;
use super::vector::Vector;
use super::{LaneRun, LaneStates};

/// The initial state of SHA-256.
const INITIAL: [u32; 8] = [
    0x6a09_e667,
    0xbb67_ae85,
    0x3c6e_f372,
    0xa54f_f53a,
    0x510e_527f,
    0x9b05_688c,
    0x1f83_d9ab,
    0x5be0_cd19,
];

/// The constants of the steps.
const CONSTANTS: [u32; 64] = [
    0x428a_2f98,
    0x7137_4491,
    0xb5c0_fbcf,
    0xe9b5_dba5,
    0x3956_c25b,
    0x59f1_11f1,
    0x923f_82a4,
    0xab1c_5ed5,
    0xd807_aa98,
    0x1283_5b01,
    0x2431_85be,
    0x550c_7dc3,
    0x72be_5d74,
    0x80de_b1fe,
    0x9bdc_06a7,
    0xc19b_f174,
    0xe49b_69c1,
    0xefbe_4786,
    0x0fc1_9dc6,
    0x240c_a1cc,
    0x2de9_2c6f,
    0x4a74_84aa,
    0x5cb0_a9dc,
    0x76f9_88da,
    0x983e_5152,
    0xa831_c66d,
    0xb003_27c8,
    0xbf59_7fc7,
    0xc6e0_0bf3,
    0xd5a7_9147,
    0x06ca_6351,
    0x1429_2967,
    0x27b7_0a85,
    0x2e1b_2138,
    0x4d2c_6dfc,
    0x5338_0d13,
    0x650a_7354,
    0x766a_0abb,
    0x81c2_c92e,
    0x9272_2c85,
    0xa2bf_e8a1,
    0xa81a_664b,
    0xc24b_8b70,
    0xc76c_51a3,
    0xd192_e819,
    0xd699_0624,
    0xf40e_3585,
    0x106a_a070,
    0x19a4_c116,
    0x1e37_6c08,
    0x2748_774c,
    0x34b0_bcb5,
    0x391c_0cb3,
    0x4ed8_aa4a,
    0x5b9c_ca4f,
    0x682e_6ff3,
    0x748f_82ee,
    0x78a5_636f,
    0x84c8_7814,
    0x8cc7_0208,
    0x90be_fffa,
    0xa450_6ceb,
    0xbef9_a3f7,
    0xc671_78f2,
];

/// Computes one step. Expands the message if `STEP` is not one of the first sixteen (`words` is a
/// ring).
///
/// # Safety
///
/// Requires the instructions of the vector type.
#[inline(always)]
unsafe fn step<V: Vector<N>, const N: usize, const STEP: usize>(
    words: &mut [V; 16],
    state: [V; 8],
) -> [V; 8] {
    vouched!({
        if STEP >= 16 {
            let (second, fifteenth) = (words[(STEP + 14) % 16], words[(STEP + 1) % 16]);
            let early = fifteenth
                .rotate_left::<25>()
                .xor3(fifteenth.rotate_left::<14>(), fifteenth.shift_right::<3>());
            let late = second
                .rotate_left::<15>()
                .xor3(second.rotate_left::<13>(), second.shift_right::<10>());
            words[STEP % 16] = words[STEP % 16]
                .add(words[(STEP + 9) % 16])
                .add(early)
                .add(late);
        }
        let [a, b, c, d, e, f, g, h] = state;
        let added = h
            .add(V::splat(CONSTANTS[STEP]))
            .add(words[STEP % 16])
            .add(e.choose(f, g));
        let turned = e
            .rotate_left::<26>()
            .xor3(e.rotate_left::<21>(), e.rotate_left::<7>());
        let first = added.add(turned);
        let turned = a
            .rotate_left::<30>()
            .xor3(a.rotate_left::<19>(), a.rotate_left::<10>());
        let second = turned.add(a.majority(b, c));
        [first.add(second), a, b, c, d.add(first), e, f, g]
    })
}

/// Repeats a step with consecutive numbers, instead of a loop that the compiler may not unroll.
macro_rules! steps {
    ($words:ident, $state:ident: $($step:literal)*) => {
        $($state = step::<V, N, $step>(&mut $words, $state);)*
    };
}

/// Digests the blocks of `run`. SHA-256 has no collision detection.
///
/// # Safety
///
/// Requires the instructions of the vector type. The blocks of all lanes must be readable.
#[inline(always)]
pub(super) unsafe fn run<V: Vector<N>, const N: usize>(
    states: &mut LaneStates<N>,
    run: &LaneRun<'_, N>,
    _suspects: &mut Suspects<N>,
) {
    // SAFETY: the caller vouches for the instructions and the blocks.
    unsafe {
        let mut before = [V::splat(0); 8];
        for (index, word) in before.iter_mut().enumerate() {
            *word = V::load(&states[index]).replace(run.fresh, V::splat(INITIAL[index]));
        }
        for block in 0..run.blocks {
            let offset = run.offset.wrapping_add(64 * block);
            let mut words = V::load_blocks(run.bases, offset);
            let mut state = before;
            steps!(words, state: 0 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17 18 19 20 21);
            steps!(words, state: 22 23 24 25 26 27 28 29 30 31 32 33 34 35 36 37 38 39);
            steps!(words, state: 40 41 42 43 44 45 46 47 48 49 50 51 52 53 54 55 56 57);
            steps!(words, state: 58 59 60 61 62 63);
            for (word, end) in before.iter_mut().zip(state) {
                *word = word.add(end);
            }
        }
        for (word, lanes) in before.iter().zip(states) {
            word.store(lanes);
        }
    }
}
