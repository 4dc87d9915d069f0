//! The operations on a vector of 32-bit words, one word per lane, that the digests need.

/// `N` words of 32 bits, one for each message that is being digested.
///
/// # Safety
///
/// Every method may only be called on a processor that has the instructions the implementation
/// is made of; see the implementing type.
pub(super) trait Vector<const N: usize>: Copy {
    /// The same word in all lanes.
    unsafe fn splat(word: u32) -> Self;

    /// One word for each lane, the first lane first.
    unsafe fn load(words: &[u32; N]) -> Self;

    /// The reverse of [`Vector::load`].
    unsafe fn store(self, words: &mut [u32; N]);

    /// The sum without carry out of the word.
    unsafe fn add(self, other: Self) -> Self;

    /// The difference without borrow into the word.
    unsafe fn subtract(self, other: Self) -> Self;

    /// Exclusive or.
    unsafe fn xor(self, other: Self) -> Self;

    /// Exclusive or of three.
    unsafe fn xor3(self, second: Self, third: Self) -> Self;

    /// The bits of `one` where `self` has a bit, those of `zero` elsewhere.
    unsafe fn choose(self, one: Self, zero: Self) -> Self;

    /// The bits that at least two of the three have.
    unsafe fn majority(self, second: Self, third: Self) -> Self;

    /// Rotation towards the high end by `COUNT`, which is 1 to 31.
    unsafe fn rotate_left<const COUNT: i32>(self) -> Self;

    /// Shift towards the low end by `COUNT`, which is 1 to 31.
    unsafe fn shift_right<const COUNT: u32>(self) -> Self;

    /// A bit for each lane, the first lane lowest: bit `BIT` of that lane's word.
    unsafe fn bits<const BIT: i32>(self) -> u16;

    /// The word of `other` in lanes whose bit in `lanes` is set, that of `self` elsewhere.
    unsafe fn replace(self, lanes: u16, other: Self) -> Self;

    /// A bit for each lane whose word is the same in both.
    unsafe fn equal(self, other: Self) -> u16;

    /// Reads 64 bytes for each lane, at `offset` from its base, as 16 big-endian words, and gives
    /// the first word of all lanes, the second of all, and so on.
    ///
    /// The 64 bytes must be readable for each of the `N` bases.
    unsafe fn load_blocks(bases: &[*const u8; N], offset: usize) -> [Self; 16];
}
