//! Detects blocks that may be part of a collision attack.
//!
//! Every known practical attack on SHA-1 uses one of 32 disturbance vectors: families I and II,
//! each with a step `k` and a bit (0 or 2). A pair of messages with such a vector satisfies linear
//! conditions on single bits of the expanded message. These are the unavoidable bit conditions of
//! Stevens and Shumow, "Speeding up detection of SHA-1 collision attacks using unavoidable attack
//! conditions" (USENIX Security 2017), tables 4 and 5. A block that violates a condition of each
//! vector is harmless.
//!
//! The conditions of one family for different `k` differ only by a shift in time, so they are
//! tested for all `k` and all lanes at once. Each bit position of a condition has a [`Planes`] row,
//! with a 16-bit word for each step that contains that bit of all lanes. A condition is then the
//! exclusive or of two 256-bit parts of such rows.
//!
//! The table omits conditions that reject hardly any blocks beyond those that the others reject. An
//! omitted condition causes a rare needless recheck and never misses an attack.

use std::arch::x86_64::*;

use super::vector::Vector;

/// The smallest `k` of any disturbance vector, which is that of the first word of a family.
pub(super) const FIRST_K: usize = 43;

/// The number of values of `k` for which a family has space.
pub(super) const FAMILY: usize = 16;

/// The number of vectors for which the arrays have space. 32 of them exist.
pub(super) const VECTORS: usize = 4 * FAMILY;

/// The step of the first word of a row. The conditions need the steps from 25 (of vectors that do
/// not exist, but share a load with existing ones) to 77. Unused words are zero.
const FIRST_STEP: usize = 24;

/// The number of words in a row.
const ROW: usize = 64;

/// The bit positions of message words in the conditions.
const POSITIONS: [i32; 9] = [0, 1, 2, 4, 5, 6, 7, 29, 30];

/// Single bits of the expanded message words of all lanes.
#[repr(align(64))]
pub(super) struct Planes([[u16; ROW]; POSITIONS.len()]);

/// A bit set of lanes for each vector, by family and `k`.
type Families = [[u16; FAMILY]; 4];

/// The lanes and vectors for which all conditions hold.
pub(super) struct Survivors {
    /// A bit for each vector that has at least one lane. [`vector_of_bit`] returns the vector of a
    /// bit.
    pub(super) possible: u64,
    /// The bit set of the lanes, for each vector.
    pub(super) lanes: [u16; VECTORS],
}

impl Survivors {
    /// No lane and no vector.
    pub(super) const NONE: Survivors = Survivors {
        possible: 0,
        lanes: [0; VECTORS],
    };
}

/// Returns the vector for a bit of [`Survivors::possible`].
#[inline(always)]
pub(super) fn vector_of_bit(bit: u8) -> usize {
    // The bits, from the highest: the pair of families, the half of `k`, the family in the pair,
    // the rest of `k`.
    usize::from(bit & 0x27 | (bit & 8) << 1 | (bit & 16) >> 1)
}

/// A condition on two bits. For `k` in `first_k..=last_k`, one bit is bit `from.1` of the word
/// `from.0` steps after `k`, and the other bit is that of `to`.
struct BitCondition {
    from: (i32, i32),
    to: (i32, i32),
    first_k: usize,
    last_k: usize,
}

/// Returns the index of the row of a bit position.
const fn plane(position: i32) -> usize {
    let mut index = 0;
    while POSITIONS[index] != position {
        index += 1;
    }
    index
}

/// Returns the column of a row that contains the word for `k = FIRST_K`, `distance` steps later.
const fn column(distance: i32) -> usize {
    let column = (FIRST_K as i32 + distance - FIRST_STEP as i32) as usize;
    assert!(
        column + FAMILY <= ROW,
        "a row is too short for its conditions"
    );
    column
}

/// Returns words in which all bits are set for the given values of `k`.
const fn span(first_k: usize, last_k: usize) -> [u16; FAMILY] {
    let mut words = [0; FAMILY];
    let mut k = first_k;
    while k <= last_k {
        words[k - FIRST_K] = !0;
        k += 1;
    }
    words
}

/// The existing vectors of each family: I with bit 0, I with bit 2, II with bit 0, II with bit 2.
const EXISTING: Families = {
    let mut all = [span(43, 52), span(46, 51), span(45, 56), span(46, 51)];
    all[3][47 - FIRST_K] = 0;
    all[3][48 - FIRST_K] = 0;
    all
};

/// Returns whether the span contains all existing vectors of a family.
const fn covers(family: &[u16; FAMILY], first_k: usize, last_k: usize) -> bool {
    let span = span(first_k, last_k);
    let mut index = 0;
    while index < FAMILY {
        if family[index] & !span[index] != 0 {
            return false;
        }
        index += 1;
    }
    true
}

/// Defines the table of the conditions, and the code that tests them.
macro_rules! conditions {
    ($($family:literal: ($from:literal, $from_bit:literal) ($to:literal, $to_bit:literal)
        $relation:ident, $first_k:literal to $last_k:literal;)*) => {
        const CONDITIONS: &[BitCondition] = &[$(BitCondition {
            from: ($from, $from_bit),
            to: ($to, $to_bit),
            first_k: $first_k,
            last_k: $last_k,
        }),*];

        impl Planes {
            /// Returns the bit set of the lanes that violate a condition, for each vector.
            ///
            /// # Safety
            ///
            /// Requires `avx2`.
            #[inline(always)]
            unsafe fn violations(&self) -> [__m256i; 4] {
                vouched!({
                    let mut violations = [_mm256_setzero_si256(); 4];
                    $({
                        let from = self.piece::<{ plane($from_bit) }, { column($from) }>();
                        let to = self.piece::<{ plane($to_bit) }, { column($to) }>();
                        let violated = conditions!(@ $relation from to);
                        let violated = if const { covers(&EXISTING[$family], $first_k, $last_k) } {
                            violated
                        } else {
                            _mm256_and_si256(violated, words(const { &span($first_k, $last_k) }))
                        };
                        violations[$family] = _mm256_or_si256(violations[$family], violated);
                    })*
                    violations
                })
            }
        }
    };
    (@ same $from:ident $to:ident) => { _mm256_xor_si256($from, $to) };
    (@ differ $from:ident $to:ident) => {
        _mm256_xor_si256(_mm256_xor_si256($from, $to), _mm256_set1_epi32(-1))
    };
}

conditions! {
    0: (-10, 4) (-8, 29) same, 48 to 52;
    0: (-10, 4) (-7, 29) same, 47 to 52;
    0: (-10, 4) (-6, 29) same, 45 to 52;
    0: (-6, 4) (-4, 4) differ, 43 to 52;
    0: (-6, 4) (-4, 29) same, 44 to 52;
    0: (-6, 4) (-3, 29) same, 43 to 52;
    0: (-6, 4) (-2, 4) same, 43 to 52;
    0: (-6, 4) (-1, 29) differ, 43 to 52;
    0: (-6, 4) (0, 4) differ, 43 to 52;
    0: (-6, 4) (1, 29) same, 43 to 52;
    0: (-6, 4) (3, 29) differ, 43 to 52;
    0: (-6, 4) (4, 29) differ, 43 to 52;
    0: (18, 1) (19, 6) differ, 43 to 45;
    1: (-14, 1) (-14, 6) same, 51 to 51;
    1: (-14, 1) (-13, 6) differ, 49 to 51;
    1: (-11, 1) (-10, 6) differ, 46 to 51;
    1: (-11, 1) (-9, 1) differ, 49 to 51;
    1: (-7, 1) (-6, 6) differ, 46 to 51;
    1: (-7, 1) (-4, 6) differ, 46 to 51;
    1: (-7, 1) (-2, 6) differ, 46 to 51;
    1: (-7, 1) (0, 6) differ, 46 to 51;
    1: (-7, 1) (1, 1) differ, 46 to 51;
    1: (15, 2) (16, 7) differ, 46 to 48;
    2: (-18, 4) (-16, 4) differ, 54 to 56;
    2: (-18, 4) (-15, 29) same, 55 to 56;
    2: (-18, 4) (-14, 4) same, 54 to 56;
    2: (-18, 4) (-13, 29) differ, 54 to 56;
    2: (-12, 4) (-8, 29) same, 47 to 56;
    2: (-9, 4) (-7, 29) same, 47 to 56;
    2: (-9, 4) (-6, 29) same, 46 to 56;
    2: (-9, 4) (-5, 29) same, 45 to 56;
    2: (-4, 4) (-2, 29) same, 45 to 56;
    2: (-4, 4) (-1, 29) same, 45 to 56;
    2: (-4, 4) (0, 29) same, 45 to 56;
    2: (2, 4) (4, 4) differ, 45 to 53;
    2: (2, 4) (4, 29) same, 45 to 55;
    2: (2, 4) (5, 29) same, 45 to 54;
    2: (2, 4) (7, 29) differ, 45 to 52;
    2: (2, 4) (8, 29) differ, 45 to 53;
    2: (18, 1) (19, 6) differ, 45 to 45;
    3: (-13, 0) (-12, 5) differ, 49 to 51;
    3: (-13, 0) (-8, 30) differ, 49 to 51;
    3: (-10, 1) (-9, 6) differ, 46 to 51;
    3: (-10, 1) (-8, 1) differ, 49 to 51;
    3: (-5, 1) (-4, 6) differ, 46 to 51;
    3: (-5, 1) (-3, 1) differ, 46 to 51;
    3: (1, 1) (2, 6) differ, 46 to 51;
    3: (1, 1) (4, 6) differ, 46 to 51;
    3: (1, 1) (5, 1) differ, 46 to 51;
    3: (15, 2) (16, 7) differ, 46 to 46;
}

/// The steps whose words are in a condition, for each bit position.
const NEEDED: [u128; POSITIONS.len()] = {
    let mut needed = [0; POSITIONS.len()];
    let mut index = 0;
    while index < CONDITIONS.len() {
        let condition = &CONDITIONS[index];
        let mut k = condition.first_k;
        while k <= condition.last_k {
            needed[plane(condition.from.1)] |= 1 << (k as i32 + condition.from.0);
            needed[plane(condition.to.1)] |= 1 << (k as i32 + condition.to.0);
            k += 1;
        }
        index += 1;
    }
    needed
};

/// Loads sixteen words into a vector.
///
/// # Safety
///
/// Requires `avx2`.
#[inline(always)]
unsafe fn words(words: &[u16; FAMILY]) -> __m256i {
    // SAFETY: the caller vouches for the instructions, and the array is as long as the vector.
    unsafe { _mm256_loadu_si256(words.as_ptr().cast()) }
}

impl Planes {
    /// Creates rows of zeros.
    pub(super) fn new() -> Self {
        Planes([[0; ROW]; POSITIONS.len()])
    }

    /// Records the bits of the expanded message word of `STEP` that the conditions need.
    ///
    /// # Safety
    ///
    /// Requires the instructions of the vector type.
    #[inline(always)]
    pub(super) unsafe fn record<V: Vector<N>, const N: usize, const STEP: usize>(
        &mut self,
        word: V,
    ) {
        vouched!({
            self.record_position::<V, N, STEP, 0>(word);
            self.record_position::<V, N, STEP, 1>(word);
            self.record_position::<V, N, STEP, 2>(word);
            self.record_position::<V, N, STEP, 4>(word);
            self.record_position::<V, N, STEP, 5>(word);
            self.record_position::<V, N, STEP, 6>(word);
            self.record_position::<V, N, STEP, 7>(word);
            self.record_position::<V, N, STEP, 29>(word);
            self.record_position::<V, N, STEP, 30>(word);
        })
    }

    /// Collects the lanes in which all conditions of a vector hold.
    ///
    /// # Safety
    ///
    /// Requires `avx2`.
    #[inline(always)]
    pub(super) unsafe fn survivors(&self, survivors: &mut Survivors) {
        // SAFETY: the caller vouches for the instructions; the arrays are as long as the vectors.
        unsafe {
            let violations = self.violations();
            let zero = _mm256_setzero_si256();
            let mut none = [zero; 4];
            for family in 0..4 {
                let lanes = _mm256_andnot_si256(violations[family], words(&EXISTING[family]));
                let place = survivors.lanes.as_mut_ptr().add(family * FAMILY);
                _mm256_storeu_si256(place.cast(), lanes);
                none[family] = _mm256_cmpeq_epi16(lanes, zero);
            }
            let low = _mm256_movemask_epi8(_mm256_packs_epi16(none[0], none[1]));
            let high = _mm256_movemask_epi8(_mm256_packs_epi16(none[2], none[3]));
            let none = u64::from(low.cast_unsigned()) | u64::from(high.cast_unsigned()) << 32;
            survivors.possible = !none;
        }
    }

    /// # Safety
    ///
    /// Requires the instructions of the vector type.
    #[inline(always)]
    unsafe fn record_position<
        V: Vector<N>,
        const N: usize,
        const STEP: usize,
        const POSITION: i32,
    >(
        &mut self,
        word: V,
    ) {
        if const { NEEDED[plane(POSITION)] >> STEP & 1 == 1 } {
            let bits = vouched!(word.bits::<POSITION>());
            self.0[plane(POSITION)][STEP - FIRST_STEP] = bits;
        }
    }

    /// Loads the words of one row for all `k`.
    ///
    /// # Safety
    ///
    /// Requires `avx2`.
    #[inline(always)]
    unsafe fn piece<const PLANE: usize, const COLUMN: usize>(&self) -> __m256i {
        // SAFETY: the caller vouches for the instructions, `column` for the length.
        unsafe { _mm256_loadu_si256(self.0[PLANE].as_ptr().add(COLUMN).cast()) }
    }
}

/// Returns whether the vector with this index in [`Survivors`] has no differences in the state
/// before step 65. The other vectors have none before step 58. From that step the second message
/// can be computed in both directions.
pub(super) const fn is_late(vector: usize) -> bool {
    FIRST_K + vector % FAMILY >= 50
}

/// The message differences of each vector, as a block of 64 bytes, by index in [`Survivors`]. Zeros
/// for vectors that do not exist.
pub(super) static DIFFERENCES: [[u8; 64]; VECTORS] = {
    let mut differences = [[0; 64]; VECTORS];
    let mut vector = 0;
    while vector < VECTORS {
        if EXISTING[vector / FAMILY][vector % FAMILY] != 0 {
            let family_ii = vector / FAMILY >= 2;
            let bit = if (vector / FAMILY).is_multiple_of(2) {
                0
            } else {
                2
            };
            differences[vector] = difference(family_ii, FIRST_K + vector % FAMILY, bit);
        }
        vector += 1;
    }
    differences
};

/// Computes the message difference of one vector. The disturbances are computed backwards from the
/// sixteen steps that define them. Each disturbance adds its local collision to the following five
/// steps (sections 4.3 and 4.4 of the paper).
const fn difference(family_ii: bool, k: usize, bit: u32) -> [u8; 64] {
    // The disturbance of step `t` has index `t + 5`, because the five steps before step 0 are
    // needed, too.
    let mut disturbance = [0_u32; 96];
    if family_ii {
        disturbance[5 + k + 1] = (1_u32 << 31).rotate_left(bit);
        disturbance[5 + k + 3] = (1_u32 << 31).rotate_left(bit);
    }
    disturbance[5 + k + 15] = 1 << bit;
    let mut at = 5 + k;
    while at > 0 {
        at -= 1;
        disturbance[at] = disturbance[at + 16].rotate_right(1)
            ^ disturbance[at + 13]
            ^ disturbance[at + 8]
            ^ disturbance[at + 2];
    }
    let mut block = [0; 64];
    let mut step = 0;
    while step < 16 {
        let at = step + 5;
        let carried = disturbance[at - 3] ^ disturbance[at - 4] ^ disturbance[at - 5];
        let word = disturbance[at]
            ^ disturbance[at - 1].rotate_left(5)
            ^ disturbance[at - 2]
            ^ carried.rotate_left(30);
        let bytes = word.to_be_bytes();
        let mut byte = 0;
        while byte < 4 {
            block[4 * step + byte] = bytes[byte];
            byte += 1;
        }
        step += 1;
    }
    block
}
