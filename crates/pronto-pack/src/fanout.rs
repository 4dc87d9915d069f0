//! The one way in which sorted tables of ids are searched: a fan-out of 256 counts, a guess where
//! an id should be if ids are spread evenly, and a short search on the first 64 bits from there.
//! Pack indexes, multi-pack-indexes and commit-graphs are all such tables.

mod rows;

use std::cmp::Ordering;
use std::ops::Range;

use pronto_hash::{Kind, ObjectId, Prefix, oid};
use pronto_io::view::View;
use rows::Ids;

use crate::error::{Error, ErrorKind};

/// The size in bytes of a fan-out on disk.
pub const FANOUT_LEN: usize = 256 * 4;

/// How many rows are looked at one by one where the next of many ids may be.
const NEAR_ROWS: u32 = 4;

/// How many rows are read at once around the guess when the file is not mapped.
const WINDOW_ROWS: u32 = 96;

/// For each first byte of an id, how many ids are not above it.
#[derive(Clone, Debug)]
pub struct Fanout(Box<[u32; 256]>);

impl Fanout {
    /// Takes over the fan-out at the start of `bytes`.
    ///
    /// # Errors
    /// `Truncated` if there are too few bytes, `Corrupt` if the counts do not rise.
    pub fn parse(bytes: &[u8]) -> Result<Fanout, Error> {
        let bytes = bytes
            .get(..FANOUT_LEN)
            .ok_or_else(|| Error::new(ErrorKind::Truncated, "fan-out table is cut short"))?;
        let mut counts = Box::new([0u32; 256]);
        let mut last = 0;
        for (at, (count, bytes)) in counts.iter_mut().zip(bytes.chunks_exact(4)).enumerate() {
            *count = be_u32(bytes);
            if *count < last {
                return Err(
                    Error::new(ErrorKind::Corrupt, "non-monotonic fan-out table")
                        .at_offset(at as u64 * 4),
                );
            }
            last = *count;
        }
        Ok(Fanout(counts))
    }

    /// How many ids the table has.
    pub fn len(&self) -> u32 {
        self.0[255]
    }

    /// Whether the table has no ids.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The rows whose ids start with `first_byte`.
    pub fn bucket(&self, first_byte: u8) -> Range<u32> {
        let start = match first_byte {
            0 => 0,
            byte => self.0[usize::from(byte) - 1],
        };
        start..self.0[usize::from(first_byte)]
    }
}

/// Where the rows with the ids are in a file, and how one looks.
#[derive(Clone, Copy, Debug)]
pub struct Table {
    /// The offset in bytes of the first row. All rows lie within the file: whoever makes a table
    /// has checked that.
    pub start: u64,
    /// The size of a row in bytes.
    pub row_len: u32,
    /// Where in its row an id begins.
    pub id_offset: u32,
    /// The hash of the ids.
    pub kind: Kind,
}

impl Table {
    /// The row of `id`, or the row before which it would stand. Reads two or three places of a
    /// mapped file, or one or two windows of one that is not. Takes no lock, allocates nothing
    /// when mapped.
    ///
    /// # Errors
    /// `Io` when the file is not mapped and cannot be read, `Truncated` when it was cut short under
    /// its map.
    #[inline]
    pub fn search(&self, view: &View, fanout: &Fanout, id: &oid) -> Result<Search, Error> {
        self.search_hinting(view, fanout, id, |_| ())
    }

    /// As [`search`](Self::search). While it waits for memory, `hint` is told which row it will
    /// probably be, twice: what belongs to that row can be fetched meanwhile.
    ///
    /// # Errors
    /// As [`search`](Self::search).
    #[inline]
    pub fn search_hinting(
        &self,
        view: &View,
        fanout: &Fanout,
        id: &oid,
        hint: impl Fn(u32),
    ) -> Result<Search, Error> {
        let rows = fanout.bucket(id.first_byte());
        match view.bytes() {
            Some(bytes) => {
                let found = self.ids(bytes).search(rows, id, hint);
                intact(view)?;
                Ok(found)
            }
            None => self.search_by_position(view, rows, id),
        }
    }

    /// As [`search`](Self::search), of an id that is not before `row`, where the search before it
    /// ended: when ids are many, the next one is only a few rows further.
    ///
    /// # Errors
    /// As [`search`](Self::search).
    #[inline]
    pub fn search_from(
        &self,
        view: &View,
        fanout: &Fanout,
        row: u32,
        id: &oid,
    ) -> Result<Search, Error> {
        let mut rows = fanout.bucket(id.first_byte());
        let Some(bytes) = view.bytes() else {
            rows.start = row.clamp(rows.start, rows.end);
            return self.search_by_position(view, rows, id);
        };
        let ids = self.ids(bytes);
        let near = match rows.contains(&row) {
            true => ids.search_few(row..rows.end.min(row.saturating_add(NEAR_ROWS)), id),
            false => None,
        };
        let found = near.unwrap_or_else(|| ids.search(rows, id, |_| ()));
        intact(view)?;
        Ok(found)
    }

    /// Looks up many ids, sorted in rising order, and tells `found` the place in `ids` and the row of
    /// each that is there.
    ///
    /// # Errors
    /// As [`search`](Self::search).
    pub fn search_sorted<'a>(
        &self,
        view: &View,
        fanout: &Fanout,
        ids: impl IntoIterator<Item = &'a oid>,
        mut found: impl FnMut(usize, u32),
    ) -> Result<(), Error> {
        let mut cursor = 0;
        for (place, id) in ids.into_iter().enumerate() {
            match self.search_from(view, fanout, cursor, id)? {
                Ok(row) => {
                    found(place, row);
                    cursor = row;
                }
                Err(row) => cursor = row,
            }
        }
        view.verify().map_err(unreadable)
    }

    /// The rows whose ids start with `prefix`.
    ///
    /// # Errors
    /// As [`search`](Self::search).
    pub fn prefix(
        &self,
        view: &View,
        fanout: &Fanout,
        prefix: &Prefix,
    ) -> Result<Range<u32>, Error> {
        let first = prefix.as_oid().first_byte();
        let end = match prefix.hex_len() {
            1 => fanout.bucket(first | 0x0f).end,
            _ => fanout.bucket(first).end,
        };
        let start = match self.search(view, fanout, prefix.as_oid())? {
            Ok(row) | Err(row) => row,
        };
        let (mut low, mut high) = (start, end.max(start));
        while low < high {
            let middle = low + (high - low) / 2;
            match prefix.cmp_oid(&self.id(view, middle)?) {
                Ordering::Less => high = middle,
                Ordering::Equal | Ordering::Greater => low = middle + 1,
            }
        }
        Ok(start..low)
    }

    /// The id of `row`, which must be a row of the table.
    ///
    /// # Errors
    /// `Io` when the file is not mapped and cannot be read.
    #[inline]
    pub fn id(&self, view: &View, row: u32) -> Result<ObjectId, Error> {
        let offset = self.start + u64::from(row) * u64::from(self.row_len);
        let mut buffer = Vec::new();
        let bytes = view
            .read(
                offset + u64::from(self.id_offset),
                self.kind.len_in_bytes(),
                &mut buffer,
            )
            .map_err(|error| unreadable(error).at_offset(offset))?;
        let id = ObjectId::from_bytes_or_panic(bytes);
        intact(view)?;
        Ok(id)
    }

    /// The rows of a table that starts within `bytes`.
    #[inline]
    fn ids<'a>(&self, bytes: &'a [u8]) -> Ids<'a> {
        Ids {
            bytes: &bytes[self.start as usize..],
            row_len: self.row_len as usize,
            id_offset: self.id_offset as usize,
            hash_len: self.kind.len_in_bytes(),
        }
    }

    #[cold]
    fn search_by_position(&self, view: &View, rows: Range<u32>, id: &oid) -> Result<Search, Error> {
        let wanted = prefix64(id.as_bytes());
        let Range {
            start: mut low,
            end: mut high,
        } = rows;
        let (mut low_key, mut high_key) = bucket_keys(wanted);
        let mut buffer = Vec::new();
        let mut steps = 0;
        while low < high {
            let guess = match steps {
                0..4 => interpolate(low..high, low_key, high_key, wanted),
                _ => low + (high - low) / 2,
            };
            steps += 1;
            let first = guess.saturating_sub(WINDOW_ROWS / 2).max(low);
            let last = (first + WINDOW_ROWS).min(high);
            let offset = self.start + u64::from(first) * u64::from(self.row_len);
            let len = (last - first) as usize * self.row_len as usize;
            let bytes = view
                .read(offset, len, &mut buffer)
                .map_err(|error| unreadable(error).at_offset(offset))?;
            let ids = Ids {
                bytes,
                row_len: self.row_len as usize,
                id_offset: self.id_offset as usize,
                hash_len: self.kind.len_in_bytes(),
            };
            let count = last - first;
            if first > low && id.as_bytes() < ids.id(0) {
                (high, high_key) = (first, ids.prefix(0));
            } else if last < high && id.as_bytes() > ids.id(count - 1) {
                (low, low_key) = (last, ids.prefix(count - 1));
            } else {
                return Ok(match ids.search(0..count, id, |_| ()) {
                    Ok(row) => Ok(first + row),
                    Err(row) => Err(first + row),
                });
            }
        }
        Ok(Err(low))
    }
}

/// Found at a row, or to be inserted before one.
pub type Search = Result<u32, u32>;

/// The least and the greatest prefix that start with the first byte of `wanted`.
#[inline]
fn bucket_keys(wanted: u64) -> (u64, u64) {
    const REST: u64 = u64::MAX >> 8;
    (wanted & !REST, wanted | REST)
}

/// Where among `rows`, which is not empty, `wanted` should stand, were the keys spread evenly
/// between `low_key` and `high_key`.
#[inline]
fn interpolate(rows: Range<u32>, low_key: u64, high_key: u64, wanted: u64) -> u32 {
    let span = u128::from(high_key.saturating_sub(low_key)) + 1;
    let into = u128::from(wanted.saturating_sub(low_key)).min(span - 1);
    let count = u128::from(rows.end - rows.start);
    rows.start + (into * count / span) as u32
}

#[inline]
fn prefix64(bytes: &[u8]) -> u64 {
    let mut first = [0; 8];
    first.copy_from_slice(&bytes[..8]);
    u64::from_be_bytes(first)
}

#[inline]
pub(crate) fn be_u32(bytes: &[u8]) -> u32 {
    let mut four = [0; 4];
    four.copy_from_slice(&bytes[..4]);
    u32::from_be_bytes(four)
}

#[inline]
pub(crate) fn be_u64(bytes: &[u8]) -> u64 {
    prefix64(bytes)
}

/// Whether what was read of `view` is what the file holds; see [`View::check`].
#[inline]
pub(crate) fn intact(view: &View) -> Result<(), Error> {
    match view.check() {
        Ok(()) => Ok(()),
        Err(error) => Err(unreadable(error)),
    }
}

#[cold]
pub(crate) fn unreadable(error: std::io::Error) -> Error {
    let kind = match error.kind() {
        std::io::ErrorKind::UnexpectedEof => ErrorKind::Truncated,
        _ => ErrorKind::Io,
    };
    Error::new(kind, "cannot read").because(error)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A table of `len` ids that are anything but spread evenly, from a seed.
    fn table(len: u32, seed: u64) -> (Fanout, View, Vec<ObjectId>) {
        let mut state = seed;
        let mut next = || {
            state = state
                .wrapping_mul(6364136223846793005)
                .wrapping_add(1442695040888963407);
            state >> 24
        };
        let mut ids: Vec<ObjectId> = (0..len)
            .map(|_| {
                let mut bytes = [0u8; 20];
                let shared = next() % 12;
                for byte in bytes.iter_mut().skip(shared as usize) {
                    *byte = next() as u8;
                }
                ObjectId::from_bytes_or_panic(&bytes)
            })
            .collect();
        ids.sort();
        ids.dedup();
        let mut fanout = Vec::new();
        for byte in 0..=255u8 {
            let count = ids.partition_point(|id| id.as_slice()[0] <= byte) as u32;
            fanout.extend_from_slice(&count.to_be_bytes());
        }
        let rows: Vec<u8> = ids.iter().flat_map(|id| id.as_slice().to_vec()).collect();
        let fanout = Fanout::parse(&fanout).expect("it rises");
        (fanout, View::from_bytes(rows), ids)
    }

    #[test]
    fn every_id_is_found_and_no_other() {
        for (len, seed) in [(0, 1), (1, 2), (9, 3), (300, 4), (20_000, 5)] {
            let (fanout, view, ids) = table(len, seed);
            let layout = Table {
                start: 0,
                row_len: 20,
                id_offset: 0,
                kind: Kind::Sha1,
            };
            for (row, id) in ids.iter().enumerate() {
                let found = layout.search(&view, &fanout, id).expect("mapped");
                assert_eq!(found, Ok(row as u32));
                let windows = layout.search_by_position(&view, fanout.bucket(id.first_byte()), id);
                assert_eq!(windows.expect("in memory"), Ok(row as u32));
                let mut other = *id;
                other.as_mut_slice()[19] ^= 1;
                let expected = ids
                    .binary_search(&other)
                    .map(|n| n as u32)
                    .map_err(|n| n as u32);
                let found = layout.search(&view, &fanout, &other).expect("mapped");
                assert_eq!(found, expected);
                for back in [0, 1, 3, 100, u32::MAX] {
                    let from = (row as u32).min(found.unwrap_or_else(|row| row));
                    let from = from.saturating_sub(back);
                    let found = layout.search_from(&view, &fanout, from, &other);
                    assert_eq!(found.expect("mapped"), expected);
                }
            }
            for hex_len in [1, 2, 3, 4, 7, 16, 17, 40] {
                for id in ids.iter().step_by(37) {
                    let prefix =
                        Prefix::from_hex_nonempty(&id.to_string()[..hex_len]).expect("hex");
                    let rows = layout.prefix(&view, &fanout, &prefix).expect("mapped");
                    let start = ids.partition_point(|id| prefix.cmp_oid(id) == Ordering::Greater);
                    let end = ids.partition_point(|id| prefix.cmp_oid(id) != Ordering::Less);
                    assert_eq!(rows, start as u32..end as u32, "{prefix}");
                }
            }
        }
    }
}
