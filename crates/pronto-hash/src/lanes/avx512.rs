//! Sixteen lanes with AVX-512.

use std::arch::x86_64::*;

use super::vector::Vector;

/// Whether the processor has what [`Sixteen`] and the functions made of it need.
pub(super) fn is_available() -> bool {
    is_x86_feature_detected!("avx2")
        && is_x86_feature_detected!("avx512f")
        && is_x86_feature_detected!("avx512bw")
        && is_x86_feature_detected!("avx512vl")
}

/// Sixteen words.
///
/// # Safety
///
/// Needs `avx512f` and `avx512bw`.
#[derive(Clone, Copy)]
pub(super) struct Sixteen(__m512i);

/// The 64 bytes at `offset` from the bases of four lanes, as big-endian words.
///
/// # Safety
///
/// Needs `avx512bw`, and the bytes must be readable.
#[inline(always)]
unsafe fn rows(bases: &[*const u8; 16], first: usize, offset: usize) -> [__m512i; 4] {
    // SAFETY: the caller vouches for the instructions and the bytes.
    unsafe {
        let swap = _mm512_broadcast_i32x4(_mm_set_epi8(
            12, 13, 14, 15, 8, 9, 10, 11, 4, 5, 6, 7, 0, 1, 2, 3,
        ));
        let [a, b, c, d] = [
            bases[first],
            bases[first + 1],
            bases[first + 2],
            bases[first + 3],
        ];
        [
            _mm512_shuffle_epi8(_mm512_loadu_si512(a.wrapping_add(offset).cast()), swap),
            _mm512_shuffle_epi8(_mm512_loadu_si512(b.wrapping_add(offset).cast()), swap),
            _mm512_shuffle_epi8(_mm512_loadu_si512(c.wrapping_add(offset).cast()), swap),
            _mm512_shuffle_epi8(_mm512_loadu_si512(d.wrapping_add(offset).cast()), swap),
        ]
    }
}

/// The four-by-four transposition of the 128-bit quarters of four vectors.
///
/// # Safety
///
/// Needs `avx512f`.
#[inline(always)]
unsafe fn transpose_quarters(rows: [__m512i; 4]) -> [__m512i; 4] {
    // SAFETY: the caller vouches for the instructions.
    unsafe {
        let even_low = _mm512_shuffle_i32x4::<0x88>(rows[0], rows[1]);
        let odd_low = _mm512_shuffle_i32x4::<0xdd>(rows[0], rows[1]);
        let even_high = _mm512_shuffle_i32x4::<0x88>(rows[2], rows[3]);
        let odd_high = _mm512_shuffle_i32x4::<0xdd>(rows[2], rows[3]);
        [
            _mm512_shuffle_i32x4::<0x88>(even_low, even_high),
            _mm512_shuffle_i32x4::<0x88>(odd_low, odd_high),
            _mm512_shuffle_i32x4::<0xdd>(even_low, even_high),
            _mm512_shuffle_i32x4::<0xdd>(odd_low, odd_high),
        ]
    }
}

/// Four rows of words, transposed within each 128-bit quarter.
///
/// # Safety
///
/// Needs `avx512f`.
#[inline(always)]
unsafe fn transpose_within_quarters(rows: [__m512i; 4]) -> [__m512i; 4] {
    // SAFETY: the caller vouches for the instructions.
    unsafe {
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
    }
}

impl Vector<16> for Sixteen {
    #[inline(always)]
    unsafe fn splat(word: u32) -> Self {
        // SAFETY: the caller vouches for the instructions.
        Sixteen(unsafe { _mm512_set1_epi32(word.cast_signed()) })
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
        // SAFETY: the caller vouches for the instructions.
        Sixteen(unsafe { _mm512_add_epi32(self.0, other.0) })
    }

    #[inline(always)]
    unsafe fn subtract(self, other: Self) -> Self {
        // SAFETY: the caller vouches for the instructions.
        Sixteen(unsafe { _mm512_sub_epi32(self.0, other.0) })
    }

    #[inline(always)]
    unsafe fn xor(self, other: Self) -> Self {
        // SAFETY: the caller vouches for the instructions.
        Sixteen(unsafe { _mm512_xor_si512(self.0, other.0) })
    }

    #[inline(always)]
    unsafe fn xor3(self, second: Self, third: Self) -> Self {
        // SAFETY: the caller vouches for the instructions.
        Sixteen(unsafe { _mm512_ternarylogic_epi32::<0x96>(self.0, second.0, third.0) })
    }

    #[inline(always)]
    unsafe fn choose(self, one: Self, zero: Self) -> Self {
        // SAFETY: the caller vouches for the instructions.
        Sixteen(unsafe { _mm512_ternarylogic_epi32::<0xca>(self.0, one.0, zero.0) })
    }

    #[inline(always)]
    unsafe fn majority(self, second: Self, third: Self) -> Self {
        // SAFETY: the caller vouches for the instructions.
        Sixteen(unsafe { _mm512_ternarylogic_epi32::<0xe8>(self.0, second.0, third.0) })
    }

    #[inline(always)]
    unsafe fn rotate_left<const COUNT: i32>(self) -> Self {
        // SAFETY: the caller vouches for the instructions.
        Sixteen(unsafe { _mm512_rol_epi32::<COUNT>(self.0) })
    }

    #[inline(always)]
    unsafe fn bits<const BIT: i32>(self) -> u16 {
        // SAFETY: the caller vouches for the instructions.
        unsafe { _mm512_test_epi32_mask(self.0, _mm512_set1_epi32(1 << BIT)) }
    }

    #[inline(always)]
    unsafe fn replace(self, lanes: u16, other: Self) -> Self {
        // SAFETY: the caller vouches for the instructions.
        Sixteen(unsafe { _mm512_mask_mov_epi32(self.0, lanes, other.0) })
    }

    #[inline(always)]
    unsafe fn equal(self, other: Self) -> u16 {
        // SAFETY: the caller vouches for the instructions.
        unsafe { _mm512_cmpeq_epi32_mask(self.0, other.0) }
    }

    #[inline(always)]
    unsafe fn load_blocks(bases: &[*const u8; 16], offset: usize) -> [Self; 16] {
        // SAFETY: the caller vouches for the instructions and for 64 readable bytes per lane.
        unsafe {
            let a = transpose_within_quarters(rows(bases, 0, offset));
            let b = transpose_within_quarters(rows(bases, 4, offset));
            let c = transpose_within_quarters(rows(bases, 8, offset));
            let d = transpose_within_quarters(rows(bases, 12, offset));
            let p = transpose_quarters([a[0], b[0], c[0], d[0]]);
            let q = transpose_quarters([a[1], b[1], c[1], d[1]]);
            let r = transpose_quarters([a[2], b[2], c[2], d[2]]);
            let s = transpose_quarters([a[3], b[3], c[3], d[3]]);
            [
                Sixteen(p[0]),
                Sixteen(q[0]),
                Sixteen(r[0]),
                Sixteen(s[0]),
                Sixteen(p[1]),
                Sixteen(q[1]),
                Sixteen(r[1]),
                Sixteen(s[1]),
                Sixteen(p[2]),
                Sixteen(q[2]),
                Sixteen(r[2]),
                Sixteen(s[2]),
                Sixteen(p[3]),
                Sixteen(q[3]),
                Sixteen(r[3]),
                Sixteen(s[3]),
            ]
        }
    }
}
