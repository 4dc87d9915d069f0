//! Vectors of sixteen lanes with AVX-512.

use std::arch::x86_64::*;

use super::vector::Vector;

/// Returns whether the processor has the instructions of [`Sixteen`] and of the functions that use
/// it.
pub(super) fn is_available() -> bool {
    super::avx2::is_available()
        && is_x86_feature_detected!("avx512f")
        && is_x86_feature_detected!("avx512bw")
        && is_x86_feature_detected!("avx512vl")
}

/// A vector of sixteen words.
///
/// # Safety
///
/// Requires `avx512f` and `avx512bw`.
#[derive(Clone, Copy)]
pub(super) struct Sixteen(__m512i);

/// Loads the 16 bytes at `offset` from the bases of four lanes, which are four lanes apart, as
/// big-endian words.
///
/// Uses loads instead of shuffles, because the processor has only one port for shuffles.
///
/// # Safety
///
/// Requires `avx512f` and `avx512bw`. The bytes must be readable.
#[inline(always)]
unsafe fn quarters(bases: &[*const u8; 16], first: usize, offset: usize) -> __m512i {
    // SAFETY: the caller vouches for the instructions and the bytes.
    unsafe {
        let swap = _mm512_broadcast_i32x4(_mm_set_epi8(
            12, 13, 14, 15, 8, 9, 10, 11, 4, 5, 6, 7, 0, 1, 2, 3,
        ));
        let a = _mm_loadu_si128(bases[first].wrapping_add(offset).cast());
        let b = _mm_loadu_si128(bases[first + 4].wrapping_add(offset).cast());
        let c = _mm_loadu_si128(bases[first + 8].wrapping_add(offset).cast());
        let d = _mm_loadu_si128(bases[first + 12].wrapping_add(offset).cast());
        let words = _mm512_castsi128_si512(a);
        let words = _mm512_inserti32x4::<1>(words, b);
        let words = _mm512_inserti32x4::<2>(words, c);
        let words = _mm512_inserti32x4::<3>(words, d);
        _mm512_shuffle_epi8(words, swap)
    }
}

/// Loads four words of all lanes, from the 16 bytes at `offset` from their bases.
///
/// # Safety
///
/// Has the requirements of [`quarters`].
#[inline(always)]
unsafe fn four_words(bases: &[*const u8; 16], offset: usize) -> [__m512i; 4] {
    // SAFETY: the caller vouches for the instructions and the bytes.
    unsafe {
        transpose_within_quarters([
            quarters(bases, 0, offset),
            quarters(bases, 1, offset),
            quarters(bases, 2, offset),
            quarters(bases, 3, offset),
        ])
    }
}

/// Transposes four rows of words within each 128-bit quarter.
///
/// # Safety
///
/// Requires `avx512f`.
#[inline(always)]
unsafe fn transpose_within_quarters(rows: [__m512i; 4]) -> [__m512i; 4] {
    vouched!({
        let low_0 = _mm512_unpacklo_epi32(rows[0], rows[1]);
        let high_0 = _mm512_unpackhi_epi32(rows[0], rows[1]);
        let low_1 = _mm512_unpacklo_epi32(rows[2], rows[3]);
        let high_1 = _mm512_unpackhi_epi32(rows[2], rows[3]);
        [
            _mm512_unpacklo_epi64(low_0, low_1),
            _mm512_unpackhi_epi64(low_0, low_1),
            _mm512_unpacklo_epi64(high_0, high_1),
            _mm512_unpackhi_epi64(high_0, high_1),
        ]
    })
}

impl Vector<16> for Sixteen {
    #[inline(always)]
    unsafe fn splat(word: u32) -> Self {
        Sixteen(vouched!(_mm512_set1_epi32(word.cast_signed())))
    }

    #[inline(always)]
    unsafe fn load(words: &[u32; 16]) -> Self {
        // SAFETY: as above, and the array is as long as the vector.
        Sixteen(unsafe { _mm512_loadu_si512(words.as_ptr().cast()) })
    }

    #[inline(always)]
    unsafe fn store(self, words: &mut [u32; 16]) {
        // SAFETY: as above, and the array is as long as the vector.
        unsafe { _mm512_storeu_si512(words.as_mut_ptr().cast(), self.0) }
    }

    #[inline(always)]
    unsafe fn add(self, other: Self) -> Self {
        Sixteen(vouched!(_mm512_add_epi32(self.0, other.0)))
    }

    #[inline(always)]
    unsafe fn subtract(self, other: Self) -> Self {
        Sixteen(vouched!(_mm512_sub_epi32(self.0, other.0)))
    }

    #[inline(always)]
    unsafe fn xor(self, other: Self) -> Self {
        Sixteen(vouched!(_mm512_xor_si512(self.0, other.0)))
    }

    #[inline(always)]
    unsafe fn xor3(self, second: Self, third: Self) -> Self {
        Sixteen(vouched!(_mm512_ternarylogic_epi32::<0x96>(
            self.0, second.0, third.0
        )))
    }

    #[inline(always)]
    unsafe fn choose(self, one: Self, zero: Self) -> Self {
        Sixteen(vouched!(_mm512_ternarylogic_epi32::<0xca>(
            self.0, one.0, zero.0
        )))
    }

    #[inline(always)]
    unsafe fn majority(self, second: Self, third: Self) -> Self {
        Sixteen(vouched!(_mm512_ternarylogic_epi32::<0xe8>(
            self.0, second.0, third.0
        )))
    }

    #[inline(always)]
    unsafe fn rotate_left<const COUNT: i32>(self) -> Self {
        Sixteen(vouched!(_mm512_rol_epi32::<COUNT>(self.0)))
    }

    #[inline(always)]
    unsafe fn shift_right<const COUNT: u32>(self) -> Self {
        Sixteen(vouched!(_mm512_srli_epi32::<COUNT>(self.0)))
    }

    #[inline(always)]
    unsafe fn bits<const BIT: i32>(self) -> u16 {
        vouched!(_mm512_test_epi32_mask(self.0, _mm512_set1_epi32(1 << BIT)))
    }

    #[inline(always)]
    unsafe fn replace(self, lanes: u16, other: Self) -> Self {
        Sixteen(vouched!(_mm512_mask_mov_epi32(self.0, lanes, other.0)))
    }

    #[inline(always)]
    unsafe fn equal(self, other: Self) -> u16 {
        vouched!(_mm512_cmpeq_epi32_mask(self.0, other.0))
    }

    #[inline(always)]
    unsafe fn load_blocks(bases: &[*const u8; 16], offset: usize) -> [Self; 16] {
        // SAFETY: the caller vouches for the instructions and for 64 readable bytes per lane.
        unsafe {
            let a = four_words(bases, offset);
            let b = four_words(bases, offset.wrapping_add(16));
            let c = four_words(bases, offset.wrapping_add(32));
            let d = four_words(bases, offset.wrapping_add(48));
            [
                Sixteen(a[0]),
                Sixteen(a[1]),
                Sixteen(a[2]),
                Sixteen(a[3]),
                Sixteen(b[0]),
                Sixteen(b[1]),
                Sixteen(b[2]),
                Sixteen(b[3]),
                Sixteen(c[0]),
                Sixteen(c[1]),
                Sixteen(c[2]),
                Sixteen(c[3]),
                Sixteen(d[0]),
                Sixteen(d[1]),
                Sixteen(d[2]),
                Sixteen(d[3]),
            ]
        }
    }
}
