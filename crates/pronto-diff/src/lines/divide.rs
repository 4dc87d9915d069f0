//! Splits two texts recursively at a point of the shortest edit path, until the parts have no lines
//! in common. The path is searched from both ends at once. If the path is long, a good point on it
//! is used instead of the best one.

use std::ops::Range;

use super::{ComparedLines, NumberedText, rough_root};

/// The number of consecutive equal lines that makes a point good (a snake).
const SNAKE: isize = 20;
/// The cost from which on a good point ends the search.
const COST_OF_GUESSES: isize = 256;
/// The minimum cost at which the search ends in any case. The limit is higher for long texts.
const LEAST_LIMIT: usize = 256;
/// The progress, relative to the cost, from which on a path is promising.
const PROGRESS: isize = 4;

/// Marks the lines of both sides that are not on a common path.
pub(super) fn mark(
    one: &ComparedLines,
    before: &mut NumberedText,
    other: &ComparedLines,
    after: &mut NumberedText,
) {
    let (rows, columns) = (one.lines.len(), other.lines.len());
    let diagonals = rows + columns + 3;
    let mut search = SplitSearch {
        one: &one.lines,
        other: &other.lines,
        forward: vec![0; 2 * diagonals + 2],
        backward: vec![0; 2 * diagonals + 2],
        zero: columns as isize + 1,
        limit: rough_root(diagonals).max(LEAST_LIMIT) as isize,
    };
    let mut boxes = vec![(0..rows, 0..columns, false)];
    while let Some((mut rows, mut columns, thorough)) = boxes.pop() {
        search.trim(&mut rows, &mut columns);
        if rows.is_empty() {
            columns.for_each(|at| after.changed[other.places[at]] = true);
        } else if columns.is_empty() {
            rows.for_each(|at| before.changed[one.places[at]] = true);
        } else {
            let split = search.split(&rows, &columns, thorough);
            let (row, column) = (split.row as usize, split.column as usize);
            boxes.push((row..rows.end, column..columns.end, split.rest_is_short));
            boxes.push((rows.start..row, columns.start..column, split.start_is_short));
        }
    }
}

/// A split point: the number of lines of each text before it.
struct SplitPoint {
    row: isize,
    column: isize,
    /// Whether the path to the point is a shortest one, so that its search needs no heuristics.
    start_is_short: bool,
    /// Whether the path from the point is a shortest one.
    rest_is_short: bool,
}

struct SplitSearch<'a> {
    one: &'a [u32],
    other: &'a [u32],
    /// The furthest row of the forward paths, by diagonal (row minus column).
    forward: Vec<isize>,
    /// The furthest row of the backward paths, by diagonal.
    backward: Vec<isize>,
    /// The index of diagonal zero in `forward` and `backward`.
    zero: isize,
    limit: isize,
}

/// The part of both texts that is being split.
#[derive(Clone, Copy)]
struct LineBox {
    top: isize,
    bottom: isize,
    left: isize,
    right: isize,
}

/// The diagonals that the paths from one end have reached.
struct ReachedDiagonals {
    middle: isize,
    low: isize,
    high: isize,
}

impl ReachedDiagonals {
    fn new(middle: isize) -> Self {
        ReachedDiagonals {
            middle,
            low: middle,
            high: middle,
        }
    }

    fn has(&self, diagonal: isize) -> bool {
        (self.low..=self.high).contains(&diagonal)
    }

    /// Returns every second diagonal, from the highest.
    fn diagonals(&self) -> impl Iterator<Item = isize> + use<> {
        let (low, high) = (self.low, self.high);
        (0..)
            .map(move |step| high - 2 * step)
            .take_while(move |diagonal| *diagonal >= low)
    }
}

impl SplitSearch<'_> {
    fn trim(&self, rows: &mut Range<usize>, columns: &mut Range<usize>) {
        let is_some =
            |rows: &Range<usize>, columns: &Range<usize>| !rows.is_empty() && !columns.is_empty();
        while is_some(rows, columns) && self.one[rows.start] == self.other[columns.start] {
            rows.start += 1;
            columns.start += 1;
        }
        while is_some(rows, columns) && self.one[rows.end - 1] == self.other[columns.end - 1] {
            rows.end -= 1;
            columns.end -= 1;
        }
    }

    fn agree(&self, row: isize, column: isize) -> bool {
        self.one[row as usize] == self.other[column as usize]
    }

    fn forward(&mut self, diagonal: isize) -> &mut isize {
        &mut self.forward[(self.zero + diagonal) as usize]
    }

    fn backward(&mut self, diagonal: isize) -> &mut isize {
        &mut self.backward[(self.zero + diagonal) as usize]
    }

    /// Finds the split point. Uses no heuristics if `thorough`.
    fn split(&mut self, rows: &Range<usize>, columns: &Range<usize>, thorough: bool) -> SplitPoint {
        let split = |(row, column), start_is_short, rest_is_short| SplitPoint {
            row,
            column,
            start_is_short,
            rest_is_short,
        };
        let part = LineBox {
            top: rows.start as isize,
            bottom: rows.end as isize,
            left: columns.start as isize,
            right: columns.end as isize,
        };
        let mut ahead = ReachedDiagonals::new(part.top - part.left);
        let mut back = ReachedDiagonals::new(part.bottom - part.right);
        let is_odd = (ahead.middle - back.middle) & 1 != 0;
        *self.forward(ahead.middle) = part.top;
        *self.backward(back.middle) = part.bottom;
        for cost in 1.. {
            let mut has_snake = false;
            self.widen(&mut ahead, part, true, -1);
            if let Some(point) = self.advance(&ahead, part, is_odd.then_some(&back), &mut has_snake)
            {
                return split(point, true, true);
            }
            self.widen(&mut back, part, false, isize::MAX);
            if let Some(point) =
                self.retreat(&back, part, (!is_odd).then_some(&ahead), &mut has_snake)
            {
                return split(point, true, true);
            }
            if thorough {
                continue;
            }
            if has_snake && cost > COST_OF_GUESSES {
                if let Some(point) = self.good_ahead(&ahead, part, cost) {
                    return split(point, true, false);
                }
                if let Some(point) = self.good_back(&back, part, cost) {
                    return split(point, false, true);
                }
            }
            if cost >= self.limit {
                let (point, is_from_start) = self.furthest(&ahead, &back, part);
                return split(point, is_from_start, !is_from_start);
            }
        }
        unreachable!("ways from both ends meet")
    }

    /// Extends the front by one diagonal on each side, within the part. `nowhere` is the row of a
    /// path that does not exist.
    fn widen(
        &mut self,
        front: &mut ReachedDiagonals,
        part: LineBox,
        is_forward: bool,
        nowhere: isize,
    ) {
        let (lowest, highest) = (part.top - part.right, part.bottom - part.left);
        let mut set = |diagonal| {
            let ways = match is_forward {
                true => &mut self.forward,
                false => &mut self.backward,
            };
            ways[(self.zero + diagonal) as usize] = nowhere;
        };
        if front.low > lowest {
            front.low -= 1;
            set(front.low - 1);
        } else {
            front.low += 1;
        }
        if front.high < highest {
            front.high += 1;
            set(front.high + 1);
        } else {
            front.high -= 1;
        }
    }

    /// Extends the forward paths by one step. Returns the point where they meet a backward path, if
    /// they do.
    fn advance(
        &mut self,
        front: &ReachedDiagonals,
        part: LineBox,
        against: Option<&ReachedDiagonals>,
        has_snake: &mut bool,
    ) -> Option<(isize, isize)> {
        for diagonal in front.diagonals() {
            let (below, above) = (*self.forward(diagonal - 1), *self.forward(diagonal + 1));
            let start = if below >= above { below + 1 } else { above };
            let mut row = start;
            while row < part.bottom
                && row - diagonal < part.right
                && self.agree(row, row - diagonal)
            {
                row += 1;
            }
            *has_snake |= row - start > SNAKE;
            *self.forward(diagonal) = row;
            if against.is_some_and(|back| back.has(diagonal)) && *self.backward(diagonal) <= row {
                return Some((row, row - diagonal));
            }
        }
        None
    }

    /// Extends the backward paths by one step. Returns the point where they meet a forward path, if
    /// they do.
    fn retreat(
        &mut self,
        front: &ReachedDiagonals,
        part: LineBox,
        against: Option<&ReachedDiagonals>,
        has_snake: &mut bool,
    ) -> Option<(isize, isize)> {
        for diagonal in front.diagonals() {
            let (below, above) = (*self.backward(diagonal - 1), *self.backward(diagonal + 1));
            let start = if below < above { below } else { above - 1 };
            let mut row = start;
            while row > part.top
                && row - diagonal > part.left
                && self.agree(row - 1, row - diagonal - 1)
            {
                row -= 1;
            }
            *has_snake |= start - row > SNAKE;
            *self.backward(diagonal) = row;
            if against.is_some_and(|ahead| ahead.has(diagonal)) && row <= *self.forward(diagonal) {
                return Some((row, row - diagonal));
            }
        }
        None
    }

    /// Returns the end of the best forward path that has made much progress and ends in a snake.
    fn good_ahead(
        &mut self,
        front: &ReachedDiagonals,
        part: LineBox,
        cost: isize,
    ) -> Option<(isize, isize)> {
        let (mut best, mut found) = (0, None);
        for diagonal in front.diagonals() {
            let row = *self.forward(diagonal);
            let column = row - diagonal;
            let aside = (diagonal - front.middle).abs();
            let value = (row - part.top) + (column - part.left) - aside;
            let is_inside = part.top + SNAKE <= row
                && row < part.bottom
                && part.left + SNAKE <= column
                && column < part.right;
            if value > PROGRESS * cost
                && value > best
                && is_inside
                && (1..=SNAKE).all(|step| self.agree(row - step, column - step))
            {
                (best, found) = (value, Some((row, column)));
            }
        }
        found
    }

    /// Returns the end of the best backward path that has made much progress and ends in a snake.
    fn good_back(
        &mut self,
        front: &ReachedDiagonals,
        part: LineBox,
        cost: isize,
    ) -> Option<(isize, isize)> {
        let (mut best, mut found) = (0, None);
        for diagonal in front.diagonals() {
            let row = *self.backward(diagonal);
            let column = row - diagonal;
            let aside = (diagonal - front.middle).abs();
            let value = (part.bottom - row) + (part.right - column) - aside;
            let is_inside = part.top < row
                && row <= part.bottom - SNAKE
                && part.left < column
                && column <= part.right - SNAKE;
            if value > PROGRESS * cost
                && value > best
                && is_inside
                && (0..SNAKE).all(|step| self.agree(row + step, column + step))
            {
                (best, found) = (value, Some((row, column)));
            }
        }
        found
    }

    /// Returns the end of the path with the most progress, and whether that path is a forward path.
    fn furthest(
        &mut self,
        ahead: &ReachedDiagonals,
        back: &ReachedDiagonals,
        part: LineBox,
    ) -> ((isize, isize), bool) {
        let (mut from_start, mut forward) = (-1, -1);
        for diagonal in ahead.diagonals() {
            let mut row = (*self.forward(diagonal)).min(part.bottom);
            let mut column = row - diagonal;
            if part.right < column {
                (row, column) = (part.right + diagonal, part.right);
            }
            if from_start < row + column {
                (from_start, forward) = (row + column, row);
            }
        }
        let (mut from_end, mut backward) = (isize::MAX, isize::MAX);
        for diagonal in back.diagonals() {
            let mut row = (*self.backward(diagonal)).max(part.top);
            let mut column = row - diagonal;
            if column < part.left {
                (row, column) = (part.left + diagonal, part.left);
            }
            if row + column < from_end {
                (from_end, backward) = (row + column, row);
            }
        }
        let left_behind = (part.bottom + part.right) - from_end;
        if left_behind < from_start - (part.top + part.left) {
            ((forward, from_start - forward), true)
        } else {
            ((backward, from_end - backward), false)
        }
    }
}
