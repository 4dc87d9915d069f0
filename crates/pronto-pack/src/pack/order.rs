//! The entries of a pack in pack order: their ends, and their rows in the index.

use super::{PackOffset, PackReader};
use crate::error::{Error, ErrorKind};
use crate::idx::{IndexPosition, PackIndex};
use crate::rev::ReverseIndex;

/// The number of an object in the order of offsets.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct PackPosition(pub u32);

/// The offset and the row in the index of each entry, in pack order. Takes 12 bytes for each
/// object.
#[derive(Debug)]
pub struct PackOrder {
    offsets: Vec<u64>,
    rows: Vec<u32>,
    end: u64,
}

impl PackOrder {
    /// Sorts the offsets of `index`, which must belong to `pack`.
    ///
    /// # Errors
    /// Fails as [`PackIndex::scan`] does.
    pub fn new(pack: &PackReader, index: &PackIndex) -> Result<PackOrder, Error> {
        let mut entries: Vec<(u64, u32)> = Vec::new();
        index.scan(0..index.len(), |position, _, offset| {
            entries.push((offset.0, position.0));
        })?;
        entries.sort_unstable();
        let (offsets, rows) = entries.into_iter().unzip();
        Ok(PackOrder {
            offsets,
            rows,
            end: pack.end().0,
        })
    }

    /// Does the same as [`new`](Self::new) with the order of a reverse index: costs one pass
    /// without sorting.
    ///
    /// # Errors
    /// Fails as [`new`](Self::new) does, and with `ErrorKind::Corrupt` if `reverse` does not list
    /// the entries in pack order.
    pub fn from_reverse(
        pack: &PackReader,
        index: &PackIndex,
        reverse: &ReverseIndex,
    ) -> Result<PackOrder, Error> {
        let mut by_row = Vec::new();
        index.scan(0..index.len(), |_, _, offset| by_row.push(offset.0))?;
        let mut order = PackOrder {
            offsets: Vec::with_capacity(by_row.len()),
            rows: Vec::with_capacity(by_row.len()),
            end: pack.end().0,
        };
        let mut last = None;
        for place in 0..reverse.len() {
            let row = reverse.row_at(place)?.0;
            let offset = by_row.get(row as usize).copied();
            let Some(offset) = offset.filter(|offset| last.is_none_or(|last| last < *offset))
            else {
                let message = "reverse-index file does not match the pack";
                return Err(Error::new(ErrorKind::Corrupt, message));
            };
            last = Some(offset);
            order.offsets.push(offset);
            order.rows.push(row);
        }
        match order.rows.len() == by_row.len() {
            true => Ok(order),
            false => Err(Error::new(
                ErrorKind::Corrupt,
                "reverse-index file is corrupt",
            )),
        }
    }

    /// Returns the number of entries.
    pub fn len(&self) -> u32 {
        self.rows.len() as u32
    }

    /// Returns whether there are no entries.
    pub fn is_empty(&self) -> bool {
        self.rows.is_empty()
    }

    /// Returns the start and the row in the index of the entry at `position`.
    pub fn get(&self, position: PackPosition) -> Option<(PackOffset, IndexPosition)> {
        let at = position.0 as usize;
        let offset = PackOffset(*self.offsets.get(at)?);
        Some((offset, IndexPosition(*self.rows.get(at)?)))
    }

    /// Returns the position of the entry that starts at `offset`, if there is one.
    pub fn position(&self, offset: PackOffset) -> Option<PackPosition> {
        let at = self.offsets.binary_search(&offset.0).ok()?;
        Some(PackPosition(at as u32))
    }

    /// Returns the row in the index of the entry that starts at `offset`, if there is one.
    pub fn row(&self, offset: PackOffset) -> Option<IndexPosition> {
        self.get(self.position(offset)?).map(|(_, row)| row)
    }

    /// Returns the size of the entry at `offset` in the pack, in bytes.
    ///
    /// # Errors
    /// Fails with `ErrorKind::Corrupt` if no entry starts at the offset.
    pub fn size_on_disk(&self, offset: PackOffset) -> Result<u64, Error> {
        let next = self.offsets.partition_point(|other| *other <= offset.0);
        let end = self.offsets.get(next).copied().unwrap_or(self.end);
        match self.position(offset) {
            Some(_) if end >= offset.0 => Ok(end - offset.0),
            _ => {
                let message = "corrupt pack index: no object starts at this offset";
                Err(Error::new(ErrorKind::Corrupt, message).at_offset(offset.0))
            }
        }
    }
}
