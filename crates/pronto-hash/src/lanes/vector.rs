//! The vector operations that the digests need, on one 32-bit word in each lane.

/// A vector of `N` words of 32 bits, one for each message that is being digested.
///
/// # Safety
///
/// A method may be called only if the processor has the instructions of the implementation; see the
/// implementing type.
pub(super) trait Vector<const N: usize>: Copy {
    /// Returns `word` in all lanes.
    unsafe fn splat(word: u32) -> Self;

    /// Loads one word for each lane, the first lane first.
    unsafe fn load(words: &[u32; N]) -> Self;

    /// Stores one word for each lane, the first lane first.
    unsafe fn store(self, words: &mut [u32; N]);

    /// Wrapping addition.
    unsafe fn add(self, other: Self) -> Self;

    /// Wrapping subtraction.
    unsafe fn subtract(self, other: Self) -> Self;

    /// Exclusive or.
    unsafe fn xor(self, other: Self) -> Self;

    /// Exclusive or of three vectors.
    unsafe fn xor3(self, second: Self, third: Self) -> Self;

    /// The bits of `one` if the same bit of `self` is set, and those of `zero` otherwise.
    unsafe fn choose(self, one: Self, zero: Self) -> Self;

    /// The bits that are set in at least two of three vectors.
    unsafe fn majority(self, second: Self, third: Self) -> Self;

    /// Rotation to the left by `COUNT`, which is 1 to 31.
    unsafe fn rotate_left<const COUNT: i32>(self) -> Self;

    /// Logical shift to the right by `COUNT`, which is 1 to 31.
    unsafe fn shift_right<const COUNT: u32>(self) -> Self;

    /// Bit `BIT` of the word in each lane; the first lane has the lowest bit of the result.
    unsafe fn bits<const BIT: i32>(self) -> u16;

    /// The word of `other` in the lanes of the bit set `lanes`, and that of `self` in the others.
    unsafe fn replace(self, lanes: u16, other: Self) -> Self;

    /// The bit set of the lanes whose words are equal.
    unsafe fn equal(self, other: Self) -> u16;

    /// Loads 64 bytes for each lane, at `offset` from its base, as 16 big-endian words. Returns the
    /// first words of all lanes, then the second words, and so on.
    ///
    /// The 64 bytes must be readable for each of the `N` bases.
    unsafe fn load_blocks(bases: &[*const u8; N], offset: usize) -> [Self; 16];
}
