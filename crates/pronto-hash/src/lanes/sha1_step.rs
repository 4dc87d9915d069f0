//! One step of SHA-1 in all lanes, and its inverse.

use super::vector::Vector;

/// The constants of the four phases of twenty steps.
const CONSTANTS: [u32; 4] = [0x5a82_7999, 0x6ed9_eba1, 0x8f1b_bcdc, 0xca62_c1d6];

/// Computes the function of three words for the phase `PHASE`.
///
/// # Safety
///
/// Requires the instructions of the vector type.
#[inline(always)]
unsafe fn mix<V: Vector<N>, const N: usize, const PHASE: usize>(b: V, c: V, d: V) -> V {
    vouched!(match PHASE {
        0 => b.choose(c, d),
        2 => b.majority(c, d),
        _ => b.xor3(c, d),
    })
}

/// Computes one step with the expanded message word of that step.
///
/// # Safety
///
/// Requires the instructions of the vector type.
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

/// Computes the inverse of [`step`].
///
/// # Safety
///
/// Requires the instructions of the vector type.
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
