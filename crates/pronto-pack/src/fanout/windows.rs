//! The search in a file that is read by position. Windows of rows around the expected position are
//! read, and the last window is kept for the next id. For ascending ids that are close to one
//! another, the table is read once from front to back, in increasingly large pieces.

use std::ops::Range;

use pronto_hash::oid;
use pronto_io::view::FileView;

use super::rows::IdRows;
use super::{Fanout, FanoutTable, RowSearch, prefix64, unreadable};
use crate::error::Error;

/// The number of rows that are read around an expected position.
const LEAST_ROWS: u32 = 96;

/// The largest number of rows that are read at once in sequential order.
const MOST_ROWS: u32 = 4096;

/// The number of interpolation steps before bisection.
const GUESSES: u32 = 4;

/// A table that is read by position.
pub(super) struct Windows<'a> {
    table: &'a FanoutTable,
    view: &'a FileView,
    fanout: &'a Fanout,
    /// The first row of the window.
    first: u32,
    count: u32,
    bytes: Vec<u8>,
    /// The number of rows to read next.
    wanted: u32,
}

impl<'a> Windows<'a> {
    pub(super) fn new(table: &'a FanoutTable, view: &'a FileView, fanout: &'a Fanout) -> Self {
        Windows {
            table,
            view,
            fanout,
            first: 0,
            count: 0,
            bytes: Vec::new(),
            wanted: LEAST_ROWS,
        }
    }

    /// Returns the row of `id`, or the row before which `id` would be inserted. Costs one or two
    /// reads of the file, or none if the result is in the current window.
    pub(super) fn search(&mut self, id: &oid) -> Result<RowSearch, Error> {
        let rows = self.fanout.bucket(id.first_byte());
        if let WindowPosition::Here(found) = self.place(&rows, id) {
            return Ok(found);
        }
        let behind = self.first + self.count;
        let wanted = prefix64(id.as_bytes());
        let (mut low, mut high) = (rows.start, rows.end);
        let (mut low_key, mut high_key) = bucket_keys(wanted);
        let mut steps = 0;
        while low < high {
            let guess = match steps {
                0..GUESSES => interpolate(low..high, low_key, high_key, wanted),
                _ => low + (high - low) / 2,
            };
            // Rows shortly after the window are read sequentially from its end.
            let goes_on = steps == 0
                && (low..high).contains(&behind)
                && guess.wrapping_sub(behind) < self.wanted / 2;
            let first = match goes_on {
                true => {
                    self.wanted = MOST_ROWS.min(self.wanted * 2);
                    behind
                }
                false => {
                    self.wanted = LEAST_ROWS;
                    guess.saturating_sub(LEAST_ROWS / 2).max(low)
                }
            };
            steps += 1;
            let last = first.saturating_add(self.wanted).min(rows.end);
            self.read(first..last)?;
            match self.place(&rows, id) {
                WindowPosition::Here(found) => return Ok(found),
                WindowPosition::Before => (high, high_key) = (first, self.ids().prefix(0)),
                WindowPosition::Behind => {
                    (low, low_key) = (last, self.ids().prefix(last - first - 1));
                }
            }
        }
        Ok(Err(low))
    }

    /// Returns the position of `id`, which is within `rows`, relative to the window.
    fn place(&self, rows: &Range<u32>, id: &oid) -> WindowPosition {
        let end = self.first + self.count;
        let (start, stop) = (rows.start.max(self.first), rows.end.min(end));
        if rows.is_empty() {
            return WindowPosition::Here(Err(rows.start));
        }
        if start >= stop {
            return match rows.start >= end {
                true => WindowPosition::Behind,
                false => WindowPosition::Before,
            };
        }
        let ids = self.ids();
        if start > rows.start && id.as_bytes() < ids.id(start - self.first) {
            return WindowPosition::Before;
        }
        if stop < rows.end && id.as_bytes() > ids.id(stop - self.first - 1) {
            return WindowPosition::Behind;
        }
        let found = ids.search_by_halves(start - self.first..stop - self.first, id);
        WindowPosition::Here(match found {
            Ok(row) => Ok(self.first + row),
            Err(row) => Err(self.first + row),
        })
    }

    fn read(&mut self, rows: Range<u32>) -> Result<(), Error> {
        let row_len = self.table.row_len;
        let offset = self.table.start + u64::from(rows.start) * u64::from(row_len);
        let count = rows.end - rows.start;
        self.count = 0;
        self.view
            .read(offset, count as usize * row_len as usize, &mut self.bytes)
            .map_err(|error| unreadable(error).at_offset(offset))?;
        (self.first, self.count) = (rows.start, count);
        Ok(())
    }

    fn ids(&self) -> IdRows<'_> {
        IdRows {
            bytes: &self.bytes,
            row_len: self.table.row_len as usize,
            id_offset: self.table.id_offset as usize,
            hash_len: self.table.kind.len_in_bytes(),
        }
    }
}

/// The position of an id relative to a window of rows.
enum WindowPosition {
    Before,
    Here(RowSearch),
    Behind,
}

/// Returns the smallest and the largest prefix that start with the first byte of `wanted`.
fn bucket_keys(wanted: u64) -> (u64, u64) {
    const REST: u64 = u64::MAX >> 8;
    (wanted & !REST, wanted | REST)
}

/// Returns the expected position of `wanted` in the non-empty `rows`, assuming that the keys are
/// evenly distributed between `low_key` and `high_key`.
fn interpolate(rows: Range<u32>, low_key: u64, high_key: u64, wanted: u64) -> u32 {
    let span = u128::from(high_key.saturating_sub(low_key)) + 1;
    let into = u128::from(wanted.saturating_sub(low_key)).min(span - 1);
    let count = u128::from(rows.end - rows.start);
    rows.start + (into * count / span) as u32
}
