//! The tables of lengths and distances (RFC 1951, 3.2.5 and 3.2.7).

/// The number of symbols for literals, the end of block, and lengths.
pub(super) const LITERALS: usize = 286;
/// The number of symbols for distances.
pub(super) const DISTANCES: usize = 30;
/// The symbol for the end of a block.
pub(super) const END: usize = 256;
/// The symbol of the first length.
pub(super) const FIRST_LENGTH: usize = 257;

pub(super) const SHORTEST: usize = 3;
pub(super) const LONGEST: usize = 258;
/// The largest distance of a match.
pub(super) const WINDOW: usize = 32 << 10;

/// The number of symbols for lengths.
const LENGTHS: usize = LITERALS - FIRST_LENGTH;

/// The order in which the lengths of the code length codes are written.
pub(super) const HEADER_ORDER: [usize; 19] = [
    16, 17, 18, 0, 8, 7, 9, 6, 10, 5, 11, 4, 12, 3, 13, 2, 14, 1, 15,
];

/// Returns the number of extra bits of a length symbol.
const fn extra_bits(slot: usize) -> u8 {
    match slot {
        0..8 => 0,
        28 => 0,
        _ => (slot as u8 - 4) / 4,
    }
}

/// The symbol, the first length and the number of extra bits, for each length minus the shortest
/// length.
#[derive(Clone, Copy)]
pub(super) struct Length {
    pub(super) slot: u8,
    pub(super) over: u8,
    pub(super) extra_bits: u8,
}

pub(super) static LENGTH: [Length; LONGEST - SHORTEST + 1] = {
    let none = Length {
        slot: 0,
        over: 0,
        extra_bits: 0,
    };
    let mut table = [none; LONGEST - SHORTEST + 1];
    let (mut slot, mut at) = (0, 0);
    while slot < LENGTHS {
        // The longest length has its own symbol.
        if slot == LENGTHS - 1 {
            at = table.len() - 1;
        }
        let extra_bits = extra_bits(slot);
        let mut over = 0;
        while over < 1 << extra_bits && at < table.len() {
            table[at] = Length {
                slot: slot as u8,
                over: over as u8,
                extra_bits,
            };
            (over, at) = (over + 1, at + 1);
        }
        slot += 1;
    }
    table
};

/// Returns the symbol of the distance `before + 1`, and the number of the lowest bits of `before`
/// that follow the symbol.
#[inline(always)]
pub(super) fn distance(before: u32) -> (u32, u32) {
    let extra_bits = 30 - (before | 3).leading_zeros();
    (2 * extra_bits + (before >> extra_bits), extra_bits)
}
