//! All unavoidable bit conditions, and blocks in which they hold.

use super::{FAMILY, FIRST_K, expand};

/// A condition for attacks along the vectors of a family with the given `k`: bit `from.1` of the
/// word `from.0` steps after `k`, and the bit that `to` describes in the same form, must differ or
/// be equal.
pub(super) struct Condition(usize, (i32, i32), (i32, i32), bool, &'static [usize]);

impl Condition {
    /// Returns whether the condition applies to the vector.
    pub(super) fn concerns(&self, vector: usize) -> bool {
        self.0 == vector / FAMILY && self.4.contains(&(FIRST_K + vector % FAMILY))
    }
}

/// A linear function of the 512 bits of a block.
type Row = [u64; 8];

fn sum(one: &Row, other: &Row) -> Row {
    std::array::from_fn(|at| one[at] ^ other[at])
}

/// A system of linear equations for the bits of a block.
pub(super) struct Solver {
    /// The bits of the block whose sum is the expanded bit, for each step and bit position.
    rows: Vec<[Row; 32]>,
    /// The pivot, the left side and the right side of each equation. A pivot does not occur in
    /// another equation.
    equations: Vec<(usize, Row, bool)>,
}

impl Solver {
    pub(super) fn new() -> Self {
        let mut rows = vec![[[0; 8]; 32]; 80];
        for bit in 0..512 {
            let mut block = [0; 16];
            block[bit / 32] = 1 << (bit % 32);
            for (row, word) in rows.iter_mut().zip(expand(block)) {
                for (position, row) in row.iter_mut().enumerate() {
                    row[bit / 64] |= u64::from(word >> position & 1) << (bit % 64);
                }
            }
        }
        Solver {
            rows,
            equations: Vec::new(),
        }
    }

    /// Adds a condition of the vector.
    pub(super) fn require(&mut self, condition: &Condition, vector: usize) {
        let k = (FIRST_K + vector % FAMILY) as i32;
        let row = |(distance, position): (i32, i32)| {
            self.rows[(k + distance) as usize][position as usize]
        };
        let (mut left, mut right) = (sum(&row(condition.1), &row(condition.2)), condition.3);
        for (pivot, equation, value) in &self.equations {
            if left[pivot / 64] >> (pivot % 64) & 1 == 1 {
                left = sum(&left, equation);
                right ^= value;
            }
        }
        let Some(pivot) = (0..512).find(|bit| left[bit / 64] >> (bit % 64) & 1 == 1) else {
            assert!(!right, "the conditions contradict each other");
            return;
        };
        for (_, equation, value) in &mut self.equations {
            if equation[pivot / 64] >> (pivot % 64) & 1 == 1 {
                *equation = sum(equation, &left);
                *value ^= right;
            }
        }
        self.equations.push((pivot, left, right));
    }

    /// Changes the block so that the equations hold. Each equation changes one bit.
    pub(super) fn solve(&self, mut block: [u32; 16]) -> [u32; 16] {
        for (pivot, equation, value) in &self.equations {
            let mut is = false;
            for bit in 0..512 {
                let bit_of_block = u64::from(block[bit / 32] >> (bit % 32) & 1);
                is ^= equation[bit / 64] >> (bit % 64) & bit_of_block == 1;
            }
            if is != *value {
                block[pivot / 32] ^= 1 << (pivot % 32);
            }
        }
        block
    }
}

/// Tables 4 and 5 of Stevens and Shumow (2017), for the families I with bit 0, I with bit 2, II
/// with bit 0 and II with bit 2.
pub(super) const PUBLISHED: &[Condition] = &[
    Condition(0, (-16, 3), (-12, 28), false, &[51]),
    Condition(0, (-14, 4), (-13, 4), true, &[50, 51, 52]),
    Condition(0, (-14, 4), (-9, 29), true, &[50, 51, 52]),
    Condition(0, (-13, 4), (-9, 29), false, &[48, 49]),
    Condition(0, (-10, 4), (-8, 29), false, &[48, 49, 50, 51, 52]),
    Condition(0, (-10, 4), (-7, 29), false, &[47, 48, 49, 50, 51, 52]),
    Condition(
        0,
        (-10, 4),
        (-6, 29),
        false,
        &[45, 46, 47, 48, 49, 50, 51, 52],
    ),
    Condition(
        0,
        (-6, 4),
        (-4, 4),
        true,
        &[43, 44, 45, 46, 47, 48, 49, 50, 51, 52],
    ),
    Condition(
        0,
        (-6, 4),
        (-4, 29),
        false,
        &[44, 45, 46, 47, 48, 49, 50, 51, 52],
    ),
    Condition(
        0,
        (-6, 4),
        (-3, 29),
        false,
        &[43, 44, 45, 46, 47, 48, 49, 50, 51, 52],
    ),
    Condition(
        0,
        (-6, 4),
        (-2, 4),
        false,
        &[43, 44, 45, 46, 47, 48, 49, 50, 51, 52],
    ),
    Condition(
        0,
        (-6, 4),
        (-1, 29),
        true,
        &[43, 44, 45, 46, 47, 48, 49, 50, 51, 52],
    ),
    Condition(
        0,
        (-6, 4),
        (0, 4),
        true,
        &[43, 44, 45, 46, 47, 48, 49, 50, 51, 52],
    ),
    Condition(
        0,
        (-6, 4),
        (1, 29),
        false,
        &[43, 44, 45, 46, 47, 48, 49, 50, 51, 52],
    ),
    Condition(
        0,
        (-6, 4),
        (3, 29),
        true,
        &[43, 44, 45, 46, 47, 48, 49, 50, 51, 52],
    ),
    Condition(
        0,
        (-6, 4),
        (4, 29),
        true,
        &[43, 44, 45, 46, 47, 48, 49, 50, 51, 52],
    ),
    Condition(0, (15, 0), (16, 5), true, &[43, 44, 45, 46, 47, 48]),
    Condition(0, (15, 0), (20, 30), true, &[43, 44]),
    Condition(0, (18, 1), (19, 6), true, &[43, 44, 45]),
    Condition(1, (-16, 5), (-12, 30), false, &[51]),
    Condition(1, (-14, 1), (-14, 6), false, &[51]),
    Condition(1, (-14, 1), (-13, 6), true, &[49, 50, 51]),
    Condition(1, (-11, 1), (-10, 6), true, &[46, 47, 48, 49, 50, 51]),
    Condition(1, (-11, 1), (-9, 1), true, &[49, 50, 51]),
    Condition(1, (-7, 1), (-6, 6), true, &[46, 47, 48, 49, 50, 51]),
    Condition(1, (-7, 1), (-4, 6), true, &[46, 47, 48, 49, 50, 51]),
    Condition(1, (-7, 1), (-2, 6), true, &[46, 47, 48, 49, 50, 51]),
    Condition(1, (-7, 1), (0, 6), true, &[46, 47, 48, 49, 50, 51]),
    Condition(1, (-7, 1), (1, 1), true, &[46, 47, 48, 49, 50, 51]),
    Condition(1, (15, 2), (16, 7), true, &[46, 47, 48]),
    Condition(2, (-18, 4), (-16, 4), true, &[54, 55, 56]),
    Condition(2, (-18, 4), (-16, 29), false, &[56]),
    Condition(2, (-18, 4), (-15, 29), false, &[55, 56]),
    Condition(2, (-18, 4), (-14, 4), false, &[54, 55, 56]),
    Condition(2, (-18, 4), (-13, 29), true, &[54, 55, 56]),
    Condition(2, (-16, 4), (-14, 4), true, &[52, 53]),
    Condition(2, (-16, 4), (-13, 29), false, &[53]),
    Condition(2, (-13, 30), (-12, 3), true, &[48, 49, 50, 51, 52]),
    Condition(2, (-13, 30), (-8, 28), true, &[48, 49, 50, 51, 52]),
    Condition(2, (-12, 3), (-8, 28), false, &[47, 53, 54, 55, 56]),
    Condition(
        2,
        (-12, 4),
        (-8, 29),
        false,
        &[47, 48, 49, 50, 51, 52, 53, 54, 55, 56],
    ),
    Condition(
        2,
        (-9, 4),
        (-7, 29),
        false,
        &[47, 48, 49, 50, 51, 52, 53, 54, 55, 56],
    ),
    Condition(
        2,
        (-9, 4),
        (-6, 29),
        false,
        &[46, 47, 48, 49, 50, 51, 52, 53, 54, 55, 56],
    ),
    Condition(
        2,
        (-9, 4),
        (-5, 29),
        false,
        &[45, 46, 47, 48, 49, 50, 51, 52, 53, 54, 55, 56],
    ),
    Condition(
        2,
        (-4, 4),
        (-2, 29),
        false,
        &[45, 46, 47, 48, 49, 50, 51, 52, 53, 54, 55, 56],
    ),
    Condition(
        2,
        (-4, 4),
        (-1, 29),
        false,
        &[45, 46, 47, 48, 49, 50, 51, 52, 53, 54, 55, 56],
    ),
    Condition(
        2,
        (-4, 4),
        (0, 29),
        false,
        &[45, 46, 47, 48, 49, 50, 51, 52, 53, 54, 55, 56],
    ),
    Condition(
        2,
        (2, 4),
        (4, 4),
        true,
        &[45, 46, 47, 48, 49, 50, 51, 52, 53],
    ),
    Condition(
        2,
        (2, 4),
        (4, 29),
        false,
        &[45, 46, 47, 48, 49, 50, 51, 52, 53, 54, 55],
    ),
    Condition(
        2,
        (2, 4),
        (5, 29),
        false,
        &[45, 46, 47, 48, 49, 50, 51, 52, 53, 54],
    ),
    Condition(2, (2, 4), (7, 29), true, &[45, 46, 47, 48, 49, 50, 51, 52]),
    Condition(
        2,
        (2, 4),
        (8, 29),
        true,
        &[45, 46, 47, 48, 49, 50, 51, 52, 53],
    ),
    Condition(2, (4, 4), (8, 29), false, &[54, 55, 56]),
    Condition(2, (15, 0), (16, 5), true, &[45, 46, 47, 48]),
    Condition(2, (18, 1), (19, 6), true, &[45]),
    Condition(3, (-13, 0), (-12, 5), true, &[49, 50, 51]),
    Condition(3, (-13, 0), (-8, 30), true, &[49, 50, 51]),
    Condition(3, (-10, 1), (-9, 6), true, &[46, 49, 50, 51]),
    Condition(3, (-10, 1), (-8, 1), true, &[49, 50, 51]),
    Condition(3, (-5, 1), (-4, 6), true, &[46, 49, 50, 51]),
    Condition(3, (-5, 1), (-3, 1), true, &[46, 49, 50, 51]),
    Condition(3, (1, 1), (2, 6), true, &[46, 49, 50, 51]),
    Condition(3, (1, 1), (4, 6), true, &[46, 49, 50, 51]),
    Condition(3, (1, 1), (5, 1), true, &[46, 49, 50, 51]),
    Condition(3, (15, 2), (16, 7), true, &[46]),
];
