//! Selects the stored entries that are reused unchanged.

use std::ops::Range;
use std::sync::Arc;

use pronto_hash::ObjectId;
use pronto_pack::entry::EntryHeader;
use pronto_pack::pack::{PackOffset, PackOrder, PackPosition, PackReader};

use super::PackContents;
use super::plan::{EncodingChoice, NO_PACK, PackPlan, PlannedObject};
use crate::error::{Error, from_pack};
use crate::packs::PackFile;

/// A pack from which entries are reused.
#[derive(Clone, Copy)]
struct ReusedPack<'a> {
    file: &'a PackFile,
    pack: &'a PackReader,
    order: &'a PackOrder,
}

/// The base of a stored delta.
enum StoredBase {
    Row(u32),
    /// The id of the base, if the base is not among the rows of the same pack.
    Elsewhere(ObjectId),
    None,
}

impl PackPlan<'_> {
    /// Reads the header of each entry.
    ///
    /// # Errors
    /// Fails if an object is missing or cannot be read.
    pub(super) fn look_at_entries(&mut self, contents: &PackContents<'_>) -> Result<(), Error> {
        let mut start = 0;
        while let Some(first) = self.rows.get(start) {
            let number = first.pack;
            let len = self.rows[start..].partition_point(|row| row.pack == number);
            let end = start + len;
            let pack = match number {
                NO_PACK => None,
                _ => self.snapshot.pack(number).cloned(),
            };
            match pack.filter(|_| self.options.reuse_objects) {
                Some(pack) => self.look_at_pack(start..end, &pack, contents)?,
                None => (start..end).try_for_each(|row| self.make_fresh(row as u32))?,
            }
            start = end;
        }
        Ok(())
    }

    fn look_at_pack(
        &mut self,
        rows: Range<usize>,
        file: &Arc<PackFile>,
        contents: &PackContents<'_>,
    ) -> Result<(), Error> {
        let (pack, order) = (file.pack()?, file.order()?);
        let opened = ReusedPack { file, pack, order };
        let start = rows.start;
        let mut position = 0;
        for at in rows {
            let offset = PackOffset(self.rows[at].offset);
            let Some(next) = seek(order, position, offset) else {
                // The multi-pack-index contradicts the index of the pack.
                self.make_fresh(at as u32)?;
                continue;
            };
            position = next;
            let following = order.get(PackPosition(position + 1));
            let stop = following.map_or(pack.end().0, |(offset, _)| offset.0);
            let Ok(entry) = pack.entry(offset) else {
                // The object may have another copy.
                self.make_fresh(at as u32)?;
                continue;
            };
            let row = &mut self.rows[at];
            row.end = stop;
            let base = match entry.header {
                EntryHeader::Object(kind) => {
                    row.how = EncodingChoice::Stored;
                    (row.kind, row.size_bytes) = (Some(kind), entry.size_bytes);
                    continue;
                }
                _ if row.is_base_only || !self.options.reuse_deltas => StoredBase::None,
                _ if entry.size_bytes > self.options.most_delta_bytes => StoredBase::None,
                header => self.base(start..at, opened, offset, &header)?,
            };
            self.take_delta(at as u32, &base, contents)?;
        }
        Ok(())
    }

    /// Finds the base of the delta at `offset`; all of `rows` precede this delta in its pack.
    fn base(
        &self,
        rows: Range<usize>,
        ReusedPack { file, pack, order }: ReusedPack<'_>,
        offset: PackOffset,
        header: &EntryHeader,
    ) -> Result<StoredBase, Error> {
        if let EntryHeader::RefDelta { base } = header {
            return Ok(StoredBase::Elsewhere(*base));
        }
        let Ok(Some(base)) = pack.base_offset(offset, header) else {
            return Ok(StoredBase::None);
        };
        let start = rows.start;
        if let Some(row) = before(&self.rows[rows], base.0) {
            return Ok(StoredBase::Row((start + row) as u32));
        }
        // The base can be among the rows only if another pack contains it, too.
        let id = order
            .row(base)
            .map(|row| file.index()?.id_at(row).map_err(from_pack));
        Ok(id
            .transpose()?
            .map_or(StoredBase::None, StoredBase::Elsewhere))
    }

    fn take_delta(
        &mut self,
        number: u32,
        base: &StoredBase,
        contents: &PackContents<'_>,
    ) -> Result<(), Error> {
        let how = match base {
            StoredBase::None => None,
            StoredBase::Row(base) => Some(EncodingChoice::StoredDelta(*base)),
            StoredBase::Elsewhere(id) => match self.row_of(id) {
                Some(base) => Some(EncodingChoice::StoredDelta(base)),
                None if contents.is_known(id)? => {
                    self.thin_bases.insert(number, *id);
                    Some(EncodingChoice::StoredThin)
                }
                None => None,
            },
        };
        match how {
            Some(how) => {
                self.rows[number as usize].how = how;
                Ok(())
            }
            None => self.make_fresh(number),
        }
    }

    /// Replaces stored deltas that form a cycle (which is possible across packs), or a chain that
    /// is too long, with newly written objects. Returns for each row the length of the longest
    /// chain that ends in it.
    ///
    /// # Errors
    /// Fails if an object cannot be read.
    pub(super) fn cut_chains(&mut self) -> Result<Vec<u32>, Error> {
        const UNKNOWN: u32 = u32::MAX;
        const UNDER_WAY: u32 = u32::MAX - 1;
        let mut depths = vec![UNKNOWN; self.rows.len()];
        let mut heights = vec![0; self.rows.len()];
        let mut chain = Vec::new();
        for start in 0..self.rows.len() as u32 {
            let mut at = start;
            while depths[at as usize] == UNKNOWN {
                depths[at as usize] = UNDER_WAY;
                chain.push(at);
                match self.rows[at as usize].how {
                    EncodingChoice::StoredDelta(base) => at = base,
                    _ => break,
                }
            }
            while let Some(number) = chain.pop() {
                let below = match self.rows[number as usize].how {
                    EncodingChoice::StoredDelta(base) => Some(depths[base as usize]),
                    EncodingChoice::StoredThin => Some(0),
                    _ => None,
                };
                depths[number as usize] = match below {
                    None => 0,
                    Some(below) if below < self.options.search.depth.max(1) => below + 1,
                    Some(_) => {
                        self.make_fresh(number)?;
                        0
                    }
                };
            }
        }
        for number in 0..self.rows.len() {
            let (mut at, mut height) = (number, 0);
            while let EncodingChoice::StoredDelta(base) = self.rows[at].how {
                height += 1;
                at = base as usize;
                if heights[at] >= height {
                    break;
                }
                heights[at] = height;
            }
        }
        Ok(heights)
    }
}

/// Returns the position of the entry that starts at `offset`, searching from `position` on.
fn seek(order: &PackOrder, position: u32, offset: PackOffset) -> Option<u32> {
    for near in position..(position + 4).min(order.len()) {
        if order
            .get(PackPosition(near))
            .is_some_and(|(start, _)| start == offset)
        {
            return Some(near);
        }
    }
    order.position(offset).map(|found| found.0)
}

/// Returns the row at `offset`, searching from the end, because bases are usually close.
fn before(rows: &[PlannedObject], offset: u64) -> Option<usize> {
    let mut step = 1;
    let mut high = rows.len();
    let mut low = high.saturating_sub(step);
    while low > 0 && rows[low].offset > offset {
        high = low;
        step *= 2;
        low = high.saturating_sub(step);
    }
    let found = rows[low..high].binary_search_by_key(&offset, |row| row.offset);
    found.ok().map(|at| low + at)
}
