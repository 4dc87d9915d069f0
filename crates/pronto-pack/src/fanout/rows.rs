//! The search in rows in memory.

use std::cmp::Ordering;
use std::ops::Range;

use pronto_hash::oid;
use pronto_io::view::prefetch;

use super::{RowSearch, prefix64};

/// The size of a cache line in bytes.
const LINE_LEN: usize = 64;

/// The number of rows that are searched without further interpolation; a power of two. In a bucket
/// of fewer than [`MANY_ROWS`] evenly distributed rows, the interpolated position is wrong by 4
/// rows on average. Twice as many rows would cost more memory accesses than they save interpolation
/// steps.
const FEW_ROWS: u32 = 16;

/// The number of rows that are compared one by one for the next of many ids.
const NEAR_ROWS: u32 = 4;

/// The number of rows of a bucket from which another interpolation step is necessary for the same
/// accuracy.
const MANY_ROWS: u32 = 64 << 10;

/// Rows in memory.
#[derive(Clone, Copy)]
pub(super) struct IdRows<'a> {
    pub(super) bytes: &'a [u8],
    pub(super) row_len: usize,
    pub(super) id_offset: usize,
    pub(super) hash_len: usize,
}

impl<'a> IdRows<'a> {
    #[inline]
    pub(super) fn prefix(&self, row: u32) -> u64 {
        prefix64(&self.bytes[row as usize * self.row_len + self.id_offset..])
    }

    #[inline]
    pub(super) fn id(&self, row: u32) -> &'a [u8] {
        let start = row as usize * self.row_len + self.id_offset;
        &self.bytes[start..start + self.hash_len]
    }

    #[inline]
    pub(super) fn search(&self, rows: Range<u32>, id: &oid, hint: impl Fn(u32)) -> RowSearch {
        let wanted = prefix64(id.as_bytes());
        let mut guess = first_guess(&rows, wanted);
        for left in (0..corrections(&rows)).rev() {
            guess = self.better_guess(&rows, guess, wanted, left == 0);
        }
        hint(guess);
        self.search_near(rows, guess, id)
    }

    /// Searches `id` in `rows`, near `guess`. A few rows are bisected without a branch that depends
    /// on their content, so that the processor can execute the following code (such as another
    /// search) while it waits for memory. In an unevenly distributed table, the search takes steps
    /// of doubling width and bisects, and the result is always correct.
    #[inline]
    pub(super) fn search_near(&self, rows: Range<u32>, guess: u32, id: &oid) -> RowSearch {
        let wanted = prefix64(id.as_bytes());
        let row = match rows.end - rows.start < FEW_ROWS {
            true => self.bisect(rows.start, rows.end, wanted),
            false => self.settle(&rows, guess, wanted),
        };
        self.decide(row..rows.end, wanted, id)
    }

    /// Returns whether `id` is in `rows`, whose first row is the first row with a prefix that is
    /// not less than `wanted`, the prefix of `id`.
    #[inline]
    fn decide(&self, rows: Range<u32>, wanted: u64, id: &oid) -> RowSearch {
        let Range {
            start: mut row,
            end,
        } = rows;
        while row < end && self.prefix(row) == wanted {
            match self.id(row)[8..].cmp(&id.as_bytes()[8..]) {
                Ordering::Less => row += 1,
                Ordering::Equal => return Ok(row),
                Ordering::Greater => return Err(row),
            }
        }
        Err(row)
    }

    /// Does the same as [`search`](Self::search) by bisection, for rows that are not a whole
    /// bucket.
    pub(super) fn search_by_halves(&self, rows: Range<u32>, id: &oid) -> RowSearch {
        let wanted = prefix64(id.as_bytes());
        let row = self.bisect(rows.start, rows.end, wanted);
        self.decide(row..rows.end, wanted, id)
    }

    /// Does the same as [`search`](Self::search) for an id that is not before `row`, the result of
    /// the previous search.
    #[inline]
    pub(super) fn search_from(&self, rows: Range<u32>, row: u32, id: &oid) -> RowSearch {
        let near = match rows.contains(&row) {
            true => self.search_few(row..rows.end.min(row.saturating_add(NEAR_ROWS)), id),
            false => None,
        };
        near.unwrap_or_else(|| self.search(rows, id, |_| ()))
    }

    /// Compares `rows` one by one; `None` if `id` is after all of them.
    #[inline]
    fn search_few(&self, rows: Range<u32>, id: &oid) -> Option<RowSearch> {
        let wanted = prefix64(id.as_bytes());
        for row in rows {
            let found = self.prefix(row).cmp(&wanted);
            match found.then_with(|| self.id(row)[8..].cmp(&id.as_bytes()[8..])) {
                Ordering::Less => {}
                Ordering::Equal => return Some(Ok(row)),
                Ordering::Greater => return Some(Err(row)),
            }
        }
        None
    }

    /// Returns the first of `rows` whose prefix is not less than `wanted`, which should be near
    /// `guess`. There must be at least [`FEW_ROWS`] rows.
    #[inline]
    fn settle(&self, rows: &Range<u32>, guess: u32, wanted: u64) -> u32 {
        let first = first_of_few(rows, guess);
        let below = self.count_below(first, wanted);
        let is_enclosed =
            (below > 0 || first == rows.start) && (below < FEW_ROWS || first + below == rows.end);
        match is_enclosed {
            true => first + below,
            false => self.search_beside(rows.clone(), first, wanted),
        }
    }

    /// Returns a better position than `guess`, computed from the difference between its prefix and
    /// `wanted`. Prefetches the memory of the next step: the next correction, or after the last one
    /// [`search_near`](Self::search_near).
    #[inline]
    pub(super) fn better_guess(
        &self,
        rows: &Range<u32>,
        guess: u32,
        wanted: u64,
        is_last: bool,
    ) -> u32 {
        let guess = guess.min(rows.end - 1);
        // Both prefixes start with the same byte, so the difference of the other seven bytes fits.
        let distance = (wanted.wrapping_sub(self.prefix(guess)) as i64) << 8;
        let step = (i128::from(distance) * i128::from(rows.end - rows.start)) >> 64;
        let guess = (i64::from(guess) + step as i64)
            .clamp(i64::from(rows.start), i64::from(rows.end) - 1) as u32;
        match is_last {
            true => self.prefetch_rows(first_of_few(rows, guess), FEW_ROWS),
            false => self.prefetch_rows(guess, 1),
        }
        guess
    }

    /// Prefetches the prefixes of `count` rows from `first` on.
    #[inline]
    pub(super) fn prefetch_rows(&self, first: u32, count: u32) {
        let place = first as usize * self.row_len + self.id_offset;
        let len = (count as usize - 1) * self.row_len + 8;
        for line in (0..len + LINE_LEN).step_by(LINE_LEN) {
            prefetch(self.bytes, place + line.min(len));
        }
    }

    /// Returns the number of the [`FEW_ROWS`] rows from `first` on whose prefixes are less than
    /// `wanted`, without a branch.
    #[inline]
    fn count_below(&self, first: u32, wanted: u64) -> u32 {
        let place = first as usize * self.row_len + self.id_offset;
        let len = (FEW_ROWS as usize - 1) * self.row_len + 8;
        let window = &self.bytes[place..place + len];
        let is_below = |row: usize| prefix64(&window[row * self.row_len..]) < wanted;
        let mut below = 0;
        let mut half = FEW_ROWS as usize / 2;
        while half > 0 {
            below += usize::from(is_below(below + half - 1)) * half;
            half /= 2;
        }
        (below + usize::from(is_below(below))) as u32
    }

    /// Returns the first row of `rows` whose prefix is not less than `wanted`, and which is not
    /// among the few rows from `first` on.
    #[cold]
    fn search_beside(&self, rows: Range<u32>, first: u32, wanted: u64) -> u32 {
        let (low, high) = self.enclose(rows, first, wanted);
        self.bisect(low, high, wanted)
    }

    #[inline]
    fn bisect(&self, mut low: u32, mut high: u32, wanted: u64) -> u32 {
        while low < high {
            let middle = low + (high - low) / 2;
            if self.prefix(middle) < wanted {
                low = middle + 1;
            } else {
                high = middle;
            }
        }
        low
    }

    fn enclose(&self, rows: Range<u32>, guess: u32, wanted: u64) -> (u32, u32) {
        let Range {
            start: mut low,
            end: mut high,
        } = rows;
        if low >= high {
            return (low, high);
        }
        let guess = guess.clamp(low, high - 1);
        let mut step = FEW_ROWS;
        if self.prefix(guess) < wanted {
            low = guess + 1;
            while high - low > step {
                let probe = low + step;
                if self.prefix(probe) < wanted {
                    low = probe + 1;
                } else {
                    high = probe;
                    break;
                }
                step = step.saturating_mul(2);
            }
        } else {
            high = guess;
            while high - low > step {
                let probe = high - step;
                if self.prefix(probe) < wanted {
                    low = probe + 1;
                    break;
                }
                high = probe;
                step = step.saturating_mul(2);
            }
        }
        (low, high)
    }
}

/// Returns the number of corrections of a guess among `rows`.
#[inline]
pub(super) fn corrections(rows: &Range<u32>) -> u32 {
    match rows.end - rows.start {
        ..FEW_ROWS => 0,
        FEW_ROWS..=MANY_ROWS => 1,
        _ => 2,
    }
}

/// Returns the expected position of a prefix in `rows`, assuming an even distribution.
#[inline]
pub(super) fn first_guess(rows: &Range<u32>, wanted: u64) -> u32 {
    rows.start + share(wanted, rows.end - rows.start)
}

/// Returns the first of the few rows around `guess`; `rows` must have at least as many.
#[inline]
fn first_of_few(rows: &Range<u32>, guess: u32) -> u32 {
    guess
        .saturating_sub(FEW_ROWS / 2)
        .clamp(rows.start, rows.end - FEW_ROWS)
}

/// Returns the expected number of rows within a difference of `keys`, among the `count` rows of a
/// bucket, assuming an even distribution. All keys of a bucket start with the same byte, so only
/// the other seven bytes count.
#[inline]
fn share(keys: u64, count: u32) -> u32 {
    ((u128::from(keys << 8) * u128::from(count)) >> 64) as u32
}
