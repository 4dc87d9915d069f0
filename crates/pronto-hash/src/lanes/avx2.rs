//! Vectors of eight lanes with AVX2.

use std::arch::x86_64::*;

use super::vector::Vector;

/// Returns whether the processor has the instructions of [`Eight`] and of the functions that use
/// it.
pub(super) fn is_available() -> bool {
    is_x86_feature_detected!("avx2")
        && is_x86_feature_detected!("bmi1")
        && is_x86_feature_detected!("popcnt")
}

/// A vector of eight words.
///
/// # Safety
///
/// Requires `avx2`.
#[derive(Clone, Copy)]
pub(super) struct Eight(__m256i);

/// Loads the 32 bytes at `offset` from the base of one lane, as big-endian words.
///
/// # Safety
///
/// Requires `avx2`. The bytes must be readable.
#[inline(always)]
unsafe fn row(base: *const u8, offset: usize) -> __m256i {
    // SAFETY: the caller vouches for the instructions and the bytes.
    unsafe {
        let swap = _mm256_broadcastsi128_si256(_mm_set_epi8(
            12, 13, 14, 15, 8, 9, 10, 11, 4, 5, 6, 7, 0, 1, 2, 3,
        ));
        _mm256_shuffle_epi8(_mm256_loadu_si256(base.wrapping_add(offset).cast()), swap)
    }
}

/// Loads the [`row`]s of all lanes.
///
/// # Safety
///
/// Has the requirements of [`row`].
#[inline(always)]
unsafe fn rows(bases: &[*const u8; 8], offset: usize) -> [__m256i; 8] {
    // SAFETY: the caller vouches for the instructions and the bytes.
    unsafe {
        [
            row(bases[0], offset),
            row(bases[1], offset),
            row(bases[2], offset),
            row(bases[3], offset),
            row(bases[4], offset),
            row(bases[5], offset),
            row(bases[6], offset),
            row(bases[7], offset),
        ]
    }
}

/// Transposes an eight-by-eight matrix of words.
///
/// # Safety
///
/// Requires `avx2`.
#[inline(always)]
unsafe fn transpose(rows: [__m256i; 8]) -> [__m256i; 8] {
    vouched!({
        let [a, b, c, d, e, f, g, h] = rows;
        let (ab_low, ab_high) = (_mm256_unpacklo_epi32(a, b), _mm256_unpackhi_epi32(a, b));
        let (cd_low, cd_high) = (_mm256_unpacklo_epi32(c, d), _mm256_unpackhi_epi32(c, d));
        let (ef_low, ef_high) = (_mm256_unpacklo_epi32(e, f), _mm256_unpackhi_epi32(e, f));
        let (gh_low, gh_high) = (_mm256_unpacklo_epi32(g, h), _mm256_unpackhi_epi32(g, h));
        let top = [
            _mm256_unpacklo_epi64(ab_low, cd_low),
            _mm256_unpackhi_epi64(ab_low, cd_low),
            _mm256_unpacklo_epi64(ab_high, cd_high),
            _mm256_unpackhi_epi64(ab_high, cd_high),
        ];
        let bottom = [
            _mm256_unpacklo_epi64(ef_low, gh_low),
            _mm256_unpackhi_epi64(ef_low, gh_low),
            _mm256_unpacklo_epi64(ef_high, gh_high),
            _mm256_unpackhi_epi64(ef_high, gh_high),
        ];
        [
            _mm256_permute2x128_si256::<0x20>(top[0], bottom[0]),
            _mm256_permute2x128_si256::<0x20>(top[1], bottom[1]),
            _mm256_permute2x128_si256::<0x20>(top[2], bottom[2]),
            _mm256_permute2x128_si256::<0x20>(top[3], bottom[3]),
            _mm256_permute2x128_si256::<0x31>(top[0], bottom[0]),
            _mm256_permute2x128_si256::<0x31>(top[1], bottom[1]),
            _mm256_permute2x128_si256::<0x31>(top[2], bottom[2]),
            _mm256_permute2x128_si256::<0x31>(top[3], bottom[3]),
        ]
    })
}

impl Vector<8> for Eight {
    #[inline(always)]
    unsafe fn splat(word: u32) -> Self {
        Eight(vouched!(_mm256_set1_epi32(word.cast_signed())))
    }

    #[inline(always)]
    unsafe fn load(words: &[u32; 8]) -> Self {
        // SAFETY: as above, and the array is as long as the vector.
        Eight(unsafe { _mm256_loadu_si256(words.as_ptr().cast()) })
    }

    #[inline(always)]
    unsafe fn store(self, words: &mut [u32; 8]) {
        // SAFETY: as above, and the array is as long as the vector.
        unsafe { _mm256_storeu_si256(words.as_mut_ptr().cast(), self.0) }
    }

    #[inline(always)]
    unsafe fn add(self, other: Self) -> Self {
        Eight(vouched!(_mm256_add_epi32(self.0, other.0)))
    }

    #[inline(always)]
    unsafe fn subtract(self, other: Self) -> Self {
        Eight(vouched!(_mm256_sub_epi32(self.0, other.0)))
    }

    #[inline(always)]
    unsafe fn xor(self, other: Self) -> Self {
        Eight(vouched!(_mm256_xor_si256(self.0, other.0)))
    }

    #[inline(always)]
    unsafe fn xor3(self, second: Self, third: Self) -> Self {
        Eight(vouched!(_mm256_xor_si256(
            _mm256_xor_si256(self.0, second.0),
            third.0
        )))
    }

    #[inline(always)]
    unsafe fn choose(self, one: Self, zero: Self) -> Self {
        Eight(vouched!({
            let differing = _mm256_and_si256(self.0, _mm256_xor_si256(one.0, zero.0));
            _mm256_xor_si256(zero.0, differing)
        }))
    }

    #[inline(always)]
    unsafe fn majority(self, second: Self, third: Self) -> Self {
        Eight(vouched!({
            let either = _mm256_and_si256(third.0, _mm256_xor_si256(self.0, second.0));
            _mm256_xor_si256(_mm256_and_si256(self.0, second.0), either)
        }))
    }

    #[inline(always)]
    unsafe fn rotate_left<const COUNT: i32>(self) -> Self {
        Eight(vouched!({
            let high = _mm256_sll_epi32(self.0, _mm_cvtsi32_si128(COUNT));
            let low = _mm256_srl_epi32(self.0, _mm_cvtsi32_si128(32 - COUNT));
            _mm256_or_si256(high, low)
        }))
    }

    #[inline(always)]
    unsafe fn shift_right<const COUNT: u32>(self) -> Self {
        Eight(vouched!(_mm256_srl_epi32(
            self.0,
            _mm_cvtsi32_si128(COUNT.cast_signed())
        )))
    }

    #[inline(always)]
    unsafe fn bits<const BIT: i32>(self) -> u16 {
        vouched!({
            let signs = _mm256_sll_epi32(self.0, _mm_cvtsi32_si128(31 - BIT));
            _mm256_movemask_ps(_mm256_castsi256_ps(signs)) as u16
        })
    }

    #[inline(always)]
    unsafe fn replace(self, lanes: u16, other: Self) -> Self {
        Eight(vouched!({
            let each = _mm256_setr_epi32(1, 2, 4, 8, 16, 32, 64, 128);
            let set = _mm256_and_si256(_mm256_set1_epi32(i32::from(lanes)), each);
            _mm256_blendv_epi8(self.0, other.0, _mm256_cmpeq_epi32(set, each))
        }))
    }

    #[inline(always)]
    unsafe fn equal(self, other: Self) -> u16 {
        vouched!({
            let equal = _mm256_cmpeq_epi32(self.0, other.0);
            _mm256_movemask_ps(_mm256_castsi256_ps(equal)) as u16
        })
    }

    #[inline(always)]
    unsafe fn load_blocks(bases: &[*const u8; 8], offset: usize) -> [Self; 16] {
        // SAFETY: the caller vouches for the instructions and for 64 readable bytes per lane.
        unsafe {
            let [a, b, c, d, e, f, g, h] = transpose(rows(bases, offset));
            let [i, j, k, l, m, n, o, p] = transpose(rows(bases, offset.wrapping_add(32)));
            [
                Eight(a),
                Eight(b),
                Eight(c),
                Eight(d),
                Eight(e),
                Eight(f),
                Eight(g),
                Eight(h),
                Eight(i),
                Eight(j),
                Eight(k),
                Eight(l),
                Eight(m),
                Eight(n),
                Eight(o),
                Eight(p),
            ]
        }
    }
}
