//! The search in sorted tables of object ids: a fan-out with 256 counts, an interpolated position
//! for evenly distributed ids, and a short search from there on the first 64 bits. Pack indexes,
//! multi-pack-indexes and commit-graphs use this module.

mod many;
mod rows;
mod windows;

use std::cmp::Ordering;
use std::ops::Range;

use pronto_hash::{Kind, ObjectId, Prefix, oid};
use pronto_io::view::FileView;
use rows::IdRows;
use windows::Windows;

use crate::error::{Error, ErrorKind};

/// The size in bytes of a fan-out on disk.
pub const FANOUT_LEN: usize = 256 * 4;

/// The fan-out: for each byte value, the number of ids whose first byte is not greater.
#[derive(Clone, Debug)]
pub struct Fanout(Box<[u32; 256]>);

impl Fanout {
    /// Parses the fan-out at the start of `bytes`.
    ///
    /// # Errors
    /// Fails with `ErrorKind::Truncated` if there are too few bytes, and with `ErrorKind::Corrupt`
    /// if the counts are not in ascending order.
    pub fn parse(bytes: &[u8]) -> Result<Fanout, Error> {
        let bytes = bytes
            .get(..FANOUT_LEN)
            .ok_or_else(|| Error::new(ErrorKind::Truncated, "truncated fan-out table"))?;
        let mut counts = Box::new([0u32; 256]);
        let mut last = 0;
        for (at, (count, bytes)) in counts.iter_mut().zip(bytes.chunks_exact(4)).enumerate() {
            *count = be_u32(bytes);
            if *count < last {
                return Err(
                    Error::new(ErrorKind::FanoutOrder, "non-monotonic fan-out table")
                        .at_offset(at as u64 * 4),
                );
            }
            last = *count;
        }
        Ok(Fanout(counts))
    }

    /// Returns the number of ids in the table.
    pub fn len(&self) -> u32 {
        self.0[255]
    }

    /// Returns whether the table has no ids.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Returns the rows whose ids start with `first_byte`.
    pub fn bucket(&self, first_byte: u8) -> Range<u32> {
        let start = match first_byte {
            0 => 0,
            byte => self.0[usize::from(byte) - 1],
        };
        start..self.0[usize::from(first_byte)]
    }
}

/// The position and the layout of the rows with the ids in a file.
#[derive(Clone, Copy, Debug)]
pub struct FanoutTable {
    /// The offset of the first row in bytes. All rows must be within the file; the creator of the
    /// table checks this.
    pub start: u64,
    /// The size of a row in bytes.
    pub row_len: u32,
    /// The offset of the id in its row.
    pub id_offset: u32,
    /// The hash function of object ids.
    pub kind: Kind,
}

impl FanoutTable {
    /// Returns the row of `id`, or the row before which `id` would be inserted. Reads two or three
    /// positions of a mapped file, or one or two windows of a file that is not mapped. Takes no
    /// lock, and allocates nothing for a mapped file.
    ///
    /// # Errors
    /// Fails with `ErrorKind::Io` if the file is not mapped and cannot be read, and with
    /// `ErrorKind::Truncated` if a mapped file was truncated.
    #[inline]
    pub fn search(&self, view: &FileView, fanout: &Fanout, id: &oid) -> Result<RowSearch, Error> {
        self.search_hinting(view, fanout, id, |_| ())
    }

    /// Does the same as [`search`](Self::search). While the search waits for memory, `hint` is
    /// called twice with the probable row, so that the caller can prefetch data of this row.
    ///
    /// # Errors
    /// Fails as [`search`](Self::search) does.
    #[inline]
    pub fn search_hinting(
        &self,
        view: &FileView,
        fanout: &Fanout,
        id: &oid,
        hint: impl Fn(u32),
    ) -> Result<RowSearch, Error> {
        match view.bytes() {
            Some(bytes) => {
                let rows = fanout.bucket(id.first_byte());
                let found = self.ids(bytes).search(rows, id, hint);
                intact(view)?;
                Ok(found)
            }
            None => Windows::new(self, view, fanout).search(id),
        }
    }

    /// Searches many ids in any order. `found` is called with the position in `ids` and the row of
    /// each id that exists. If the ids are ascending, each search begins at the result of the
    /// previous one; with many ids, the next row is close. Otherwise, several ids of a mapped file
    /// are searched in parallel, so that their cache misses overlap. `hint` is called with probable
    /// rows some time before `found`, so that the caller can prefetch their data. A file that is
    /// not mapped is searched in ascending order, which takes 32 bytes for each id that is out of
    /// order. Takes no lock, and allocates nothing for a mapped file.
    ///
    /// # Errors
    /// Fails as [`search`](Self::search) does, and with the error of `found`.
    #[inline]
    pub fn search_many<'a, I>(
        &self,
        view: &FileView,
        fanout: &Fanout,
        ids: I,
        hint: impl Fn(u32),
        mut found: impl FnMut(usize, u32) -> Result<(), Error>,
    ) -> Result<(), Error>
    where
        I: IntoIterator<Item = &'a oid>,
        I::IntoIter: Clone,
    {
        let ids = ids.into_iter();
        let rises = ids.clone().is_sorted();
        match view.bytes() {
            None if rises => self.search_windows(view, fanout, ids.enumerate(), found),
            None => {
                let mut sorted: Vec<(usize, &oid)> = ids.enumerate().collect();
                sorted.sort_unstable_by_key(|(_, id)| *id);
                self.search_windows(view, fanout, sorted, found)
            }
            Some(bytes) if rises => {
                let table = self.ids(bytes);
                let mut cursor = 0;
                for (place, id) in ids.enumerate() {
                    let rows = fanout.bucket(id.first_byte());
                    let row = table.search_from(rows, cursor, id);
                    if let Ok(row) = row {
                        intact(view)?;
                        found(place, row)?;
                    }
                    cursor = row.unwrap_or_else(|row| row);
                }
                view.verify().map_err(unreadable)
            }
            Some(bytes) => {
                search_groups(self.ids(bytes), fanout, view, ids, hint, &mut found)?;
                view.verify().map_err(unreadable)
            }
        }
    }

    /// Searches ascending ids, each with its position in the input, in a file that is not mapped.
    fn search_windows<'a>(
        &self,
        view: &FileView,
        fanout: &Fanout,
        ids: impl IntoIterator<Item = (usize, &'a oid)>,
        mut found: impl FnMut(usize, u32) -> Result<(), Error>,
    ) -> Result<(), Error> {
        let mut windows = Windows::new(self, view, fanout);
        for (place, id) in ids {
            if let Ok(row) = windows.search(id)? {
                found(place, row)?;
            }
        }
        Ok(())
    }

    /// Returns the rows whose ids start with `prefix`.
    ///
    /// # Errors
    /// Fails as [`search`](Self::search) does.
    pub fn prefix(
        &self,
        view: &FileView,
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

    /// Returns the id in `row`, which must exist in the table.
    ///
    /// # Errors
    /// Fails with `ErrorKind::Io` if the file is not mapped and cannot be read.
    #[inline]
    pub fn id(&self, view: &FileView, row: u32) -> Result<ObjectId, Error> {
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

    /// Returns the rows of the table within `bytes`.
    #[inline]
    fn ids<'a>(&self, bytes: &'a [u8]) -> IdRows<'a> {
        IdRows {
            bytes: &bytes[self.start as usize..],
            row_len: self.row_len as usize,
            id_offset: self.id_offset as usize,
            hash_len: self.kind.len_in_bytes(),
        }
    }
}

/// Searches ids in memory, in groups that are searched in parallel.
#[inline]
fn search_groups<'a>(
    table: IdRows<'_>,
    fanout: &Fanout,
    view: &FileView,
    mut ids: impl Iterator<Item = &'a oid>,
    hint: impl Fn(u32),
    found: &mut impl FnMut(usize, u32) -> Result<(), Error>,
) -> Result<(), Error> {
    let mut start = 0;
    while let Some(first) = ids.next() {
        let mut group = [first; many::GROUP];
        let mut len = 1;
        for (slot, id) in group[1..].iter_mut().zip(&mut ids) {
            *slot = id;
            len += 1;
        }
        let rows = many::search(table, fanout, &group[..len], &hint);
        intact(view)?;
        for (place, row) in rows[..len].iter().enumerate() {
            if let Ok(row) = row {
                found(start + place, *row)?;
            }
        }
        start += len;
    }
    Ok(())
}

/// The row of an id, or the row before which the id would be inserted.
pub type RowSearch = Result<u32, u32>;

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

/// Checks that the bytes read from `view` are the contents of the file; see [`FileView::check`].
#[inline]
pub(crate) fn intact(view: &FileView) -> Result<(), Error> {
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
    use pronto_io::view::ViewAccess;

    use super::*;

    /// Returns a table of `len` very unevenly distributed ids, generated from a seed.
    fn table(len: u32, seed: u64) -> (Fanout, FileView, Vec<ObjectId>) {
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
        (fanout, FileView::from_bytes(rows), ids)
    }

    /// Returns the file of `view` as a view that is read by position.
    fn positional(view: &FileView) -> (pronto_io::cleanup::Guard, FileView) {
        let bytes = view.bytes().expect("in memory");
        let name = format!("pronto-table-{}-{}", std::process::id(), bytes.len());
        let path = std::env::temp_dir().join(name);
        std::fs::write(&path, bytes).expect("the temporary directory can be written");
        let view = FileView::open(&path, ViewAccess::Positional).expect("it was just written");
        (pronto_io::cleanup::Guard::new(path), view)
    }

    #[test]
    fn every_id_is_found_and_no_other() {
        for (len, seed) in [(0, 1), (1, 2), (9, 3), (300, 4), (20_000, 5)] {
            let (fanout, view, ids) = table(len, seed);
            let (_guard, file) = positional(&view);
            let layout = FanoutTable {
                start: 0,
                row_len: 20,
                id_offset: 0,
                kind: Kind::Sha1,
            };
            for (row, id) in ids.iter().enumerate() {
                let found = layout.search(&view, &fanout, id).expect("mapped");
                assert_eq!(found, Ok(row as u32));
                let windows = Windows::new(&layout, &file, &fanout).search(id);
                assert_eq!(windows.expect("readable"), Ok(row as u32));
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
                    let rows = fanout.bucket(id.first_byte());
                    let found = layout.ids(view.bytes().expect("in memory"));
                    assert_eq!(found.search_from(rows, from, &other), expected);
                }
            }
            let mut mixed: Vec<ObjectId> = ids.iter().rev().copied().collect();
            mixed.extend(ids.iter().step_by(3).map(|id| {
                let mut other = *id;
                other.as_mut_slice()[19] ^= 1;
                other
            }));
            let mut windows = Windows::new(&layout, &file, &fanout);
            for id in ids.iter().chain(&mixed) {
                let expected = ids.binary_search(id);
                let expected = expected.map(|n| n as u32).map_err(|n| n as u32);
                assert_eq!(windows.search(id).expect("readable"), expected);
            }
            let mut rising = mixed.clone();
            rising.sort_unstable();
            for (asked, view) in [&mixed, &rising]
                .iter()
                .flat_map(|ids| [(ids, &view), (ids, &file)])
            {
                let mut many = vec![None; asked.len()];
                let each = asked.iter().map(|id| &**id);
                let searched = layout.search_many(
                    view,
                    &fanout,
                    each,
                    |_| (),
                    |place, row| {
                        many[place] = Some(row);
                        Ok(())
                    },
                );
                searched.expect("readable");
                for (id, found) in asked.iter().zip(many) {
                    assert_eq!(found, ids.binary_search(id).ok().map(|row| row as u32));
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
