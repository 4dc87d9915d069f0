//! The receiver thread: finds the ends of entries by inflating them, and distributes the entries to
//! workers.

use super::batch::{BATCH_BYTES, BatchPool, Filling, InflatedBatch, InflatedEntry};
use super::digesting::{self, NumberedIds};
use super::scouted::{Scouted, ScoutedEntry};
use super::segment::{Lookahead, StreamSegment};
use super::tables::{EntryBase, EntryTables};
use super::window::InputWindow;
use super::{Options, StageContext};
use crate::entry::EntryHeader;
use crate::error::{Error, ErrorKind};
use gix_object::Kind as ObjectKind;
use pronto_hash::{Digester, ObjectId};
use pronto_io::progress::Meter;
use std::sync::Arc;

/// The receiver of inflated entries.
pub(super) trait Deliver {
    /// Returns the number of workers; at least one, at most 256.
    fn workers(&self) -> usize;

    /// Sends `batch` to a worker.
    fn deliver(&mut self, worker: usize, batch: InflatedBatch) -> Result<(), Error>;

    /// Returns the number of segments to read ahead, if the input is available; 1 disables reading
    /// ahead.
    fn segments(&self) -> usize;

    /// Offers a segment to idle threads for looking ahead.
    fn offer(&mut self, segment: &Arc<StreamSegment>);

    /// Looks ahead in an offered segment. Returns `false` if there is none left.
    fn look_ahead(&mut self) -> bool;
}

/// The data that are known when the last byte has arrived.
pub(super) struct ReceivedEntries {
    pub(super) tables: EntryTables,
    /// The deltas that name their base by its id.
    pub(super) by_id: Vec<ByBaseId>,
    /// The ids of the large blobs, which were hashed on arrival.
    pub(super) ids: NumberedIds,
    pub(super) trailer: Vec<u8>,
    /// Bytes after the pack that had already been read.
    pub(super) leftover: Vec<u8>,
    pub(super) deltas: u64,
}

/// A delta and the id of its base.
pub(super) struct ByBaseId {
    pub(super) index: u32,
    pub(super) base: ObjectId,
}

/// The receiver of a pack.
pub(super) struct PackReceiver<'a, 'w> {
    surroundings: &'a StageContext<'a>,
    options: &'a Options,
    window: InputWindow<'w>,
    deliver: &'a mut dyn Deliver,
    pool: &'a BatchPool,
    /// A callback that returns whether the next byte of the input is available.
    ready: Option<&'a (dyn Fn() -> bool + Sync)>,
    /// The batch under construction for each worker.
    batches: Vec<Filling>,
    /// The scouted entries of the current segment; empty for the first segment, in which no thread
    /// looks ahead.
    scouted: Scouted,
    scouted_number: u64,
    /// The worker that currently gets the entries that are not deltas.
    turn: u8,
    tables: EntryTables,
    by_id: Vec<ByBaseId>,
    ids: NumberedIds,
    deltas: u64,
    meter: Option<Meter>,
}

impl<'a, 'w> PackReceiver<'a, 'w> {
    pub(super) fn new(
        surroundings: &'a StageContext<'a>,
        options: &'a Options,
        window: InputWindow<'w>,
        deliver: &'a mut dyn Deliver,
        pool: &'a BatchPool,
        ready: Option<&'a (dyn Fn() -> bool + Sync)>,
    ) -> Self {
        let batches = (0..deliver.workers()).map(|_| Filling::default()).collect();
        PackReceiver {
            surroundings,
            options,
            window,
            deliver,
            pool,
            ready,
            batches,
            scouted: Scouted::default(),
            scouted_number: 0,
            turn: 0,
            tables: EntryTables::default(),
            by_id: Vec::new(),
            ids: NumberedIds::new(surroundings.kind),
            deltas: 0,
            meter: None,
        }
    }

    /// Receives the whole pack including the trailer.
    pub(super) fn run(mut self) -> Result<ReceivedEntries, Error> {
        let count = self.header()?;
        let meter = self
            .surroundings
            .progress
            .begin(self.options.title, Some(u64::from(count)));
        self.meter = Some(meter);
        let mut index = 0;
        while index < count {
            self.look_around();
            if let Some(entries) = self.known(count - index) {
                self.adopt(index, &entries)?;
                index += entries.len() as u32;
            } else {
                let offset = self.window.offset();
                self.entry(index, offset)
                    .map_err(|error| error.at_offset(offset))?;
                index += 1;
            }
        }
        for worker in 0..self.batches.len() {
            self.flush(worker)?;
        }
        self.tables.end = self.window.offset();
        let trailer_len = self.surroundings.kind.len_in_bytes();
        let ending = self.window.finish(trailer_len, self.options.must_end)?;
        if let Some(meter) = &self.meter {
            if self.options.show_bytes {
                meter.add_bytes(ending.len.saturating_sub(meter.bytes()));
            }
            meter.finish();
        }
        Ok(ReceivedEntries {
            tables: self.tables,
            by_id: self.by_id,
            ids: self.ids,
            trailer: ending.trailer,
            leftover: ending.leftover,
            deltas: self.deltas,
        })
    }

    /// Returns the declared number of entries of the pack.
    fn header(&mut self) -> Result<u32, Error> {
        let header: [u8; 12] = self.window.take()?;
        let (signature, rest) = header.split_at(4);
        if signature != b"PACK" {
            return Err(Error::new(ErrorKind::NotAPack, "pack signature mismatch").at_offset(0));
        }
        let (version, count) = rest.split_at(4);
        let version = u32::from_be_bytes(version.try_into().expect("four bytes were split off"));
        if version != 2 && version != 3 {
            let message = format!("pack version {version} unsupported");
            let kind = ErrorKind::PackVersion { version };
            return Err(Error::new(kind, message).at_offset(4));
        }
        let count = u32::from_be_bytes(count.try_into().expect("four bytes are left"));
        if count > EntryBase::MOST_ENTRIES {
            return Err(Error::new(ErrorKind::Limit, "pack has too many objects").at_offset(8));
        }
        Ok(count)
    }

    fn entry(&mut self, index: u32, offset: u64) -> Result<(), Error> {
        let entry = self.window.begin_entry(self.surroundings.kind)?;
        let (base, kind, worker) = self.place(&entry.header, index, offset)?;
        self.tables.push(offset, base, kind, worker);
        let large_blob = kind == Some(ObjectKind::Blob)
            && base == EntryBase::NONE
            && entry.size_bytes > self.options.big_file_threshold_bytes;
        if large_blob {
            self.large_blob(index, entry.size_bytes)?;
        } else {
            let size = usize::try_from(entry.size_bytes)
                .ok()
                .filter(|size| *size <= isize::MAX as usize)
                .ok_or_else(too_large)?;
            self.surroundings.limits.check(entry.size_bytes)?;
            let worker = usize::from(worker);
            let item = |range| InflatedEntry {
                index,
                offset,
                base,
                kind,
                range,
            };
            if size > BATCH_BYTES {
                self.flush(worker)?;
                let block = Arc::new(self.window.inflate_large(size)?);
                let batch = InflatedBatch::new(block, vec![item(0..size)]);
                self.deliver(worker, batch)?;
            } else {
                if !self.batches[worker].has_room(size) {
                    self.flush(worker)?;
                }
                let batch = &mut self.batches[worker];
                self.window.inflate(batch.room(size, self.pool))?;
                batch.push(size, item);
            }
        }
        self.tables.crcs.push(self.window.end_entry());
        Ok(())
    }

    /// Returns the base of the entry, its type if known, and the worker that gets it.
    fn place(
        &mut self,
        header: &EntryHeader,
        index: u32,
        offset: u64,
    ) -> Result<(EntryBase, Option<ObjectKind>, u8), Error> {
        match *header {
            EntryHeader::Object(kind) => Ok((EntryBase::NONE, Some(kind), self.turn)),
            EntryHeader::OffsetDelta { distance } => {
                self.deltas += 1;
                let base = offset
                    .checked_sub(distance)
                    .and_then(|offset| self.tables.find(offset))
                    .ok_or_else(base_out_of_bounds)?;
                let worker = self.tables.workers[base as usize];
                Ok((EntryBase::entry(base), self.tables.kind(base), worker))
            }
            EntryHeader::RefDelta { base } => {
                self.deltas += 1;
                self.by_id.push(ByBaseId { index, base });
                Ok((EntryBase::BY_ID, None, self.turn))
            }
        }
    }

    /// Hashes a blob without holding it in memory.
    fn large_blob(&mut self, index: u32, size: u64) -> Result<(), Error> {
        let mut digester = Digester::new(self.surroundings.kind);
        let (header, header_len) = digesting::header(ObjectKind::Blob, size);
        digester.update(&header[..header_len]);
        let surroundings = self.surroundings;
        self.window.inflate_in_pieces(size, |piece| {
            surroundings.check()?;
            digester.update(piece);
            Ok(())
        })?;
        let id = digester.finish().map_err(digesting::attack)?;
        digesting::inspect_large(surroundings.inspect, &id, size)?;
        self.ids.push(index, &id);
        if let Some(meter) = &self.meter {
            meter.add(1);
        }
        Ok(())
    }

    /// Called at the start of a segment: reads ahead, and takes the scouted entries of the segment.
    fn look_around(&mut self) {
        let Some(ready) = self.ready else {
            return;
        };
        let (_, number, _) = self.window.here();
        if number == self.scouted_number {
            return;
        }
        self.scouted_number = number;
        let deliver = &mut *self.deliver;
        self.window
            .read_ahead(deliver.segments(), ready, &mut |segment| {
                deliver.offer(segment)
            });
        let (segment, ..) = self.window.here();
        self.scouted = loop {
            match segment.arrive() {
                Lookahead::Known(scouted) => break scouted,
                Lookahead::Unknown => break Scouted::default(),
                // Looks ahead in a later segment instead of waiting.
                Lookahead::UnderWay if self.deliver.look_ahead() => {}
                Lookahead::UnderWay => segment.wait(),
            }
        };
    }

    /// Returns the scouted entries from the current position on that are in one block, at most
    /// `most`.
    fn known(&mut self, most: u32) -> Option<Vec<ScoutedEntry>> {
        let (_, number, at) = self.window.here();
        if number != self.scouted_number {
            return None;
        }
        let entries = &mut self.scouted.entries;
        while entries.front()?.extent.start < at {
            entries.pop_front();
        }
        let first = entries.front().filter(|found| found.extent.start == at)?;
        let block = first.block;
        let count = entries.iter().take(most as usize);
        let count = count.take_while(|found| found.block == block).count();
        Some(entries.drain(..count).collect())
    }

    /// Adopts the scouted entries of one block, which begin at the current position, as the entries
    /// from number `first` on.
    fn adopt(&mut self, first: u32, entries: &[ScoutedEntry]) -> Result<(), Error> {
        let Some(block) = entries.first().map(|found| found.block) else {
            return Ok(());
        };
        let mut lists: Vec<Vec<InflatedEntry>> = Vec::new();
        for worker in 0..self.batches.len() {
            // Bases must be sent before their deltas.
            self.flush(worker)?;
            lists.push(self.pool.list());
        }
        for (index, found) in (first..).zip(entries) {
            let offset = self.window.offset();
            let place = self.place(&found.header, index, offset);
            let (base, kind, worker) = place.map_err(|error| error.at_offset(offset))?;
            self.tables.push(offset, base, kind, worker);
            self.tables.crcs.push(found.crc);
            lists[usize::from(worker)].push(InflatedEntry {
                index,
                offset,
                base,
                kind,
                range: found.range.clone(),
            });
            self.window.pass_entry(found.extent.len())?;
        }
        let block = Arc::clone(&self.scouted.blocks[block]);
        for (worker, items) in lists.into_iter().enumerate() {
            if !items.is_empty() {
                self.deliver(worker, InflatedBatch::new(Arc::clone(&block), items))?;
            }
        }
        Ok(())
    }

    /// Sends the batch under construction to `worker`.
    fn flush(&mut self, worker: usize) -> Result<(), Error> {
        match self.batches[worker].take(self.pool) {
            Some(batch) => self.deliver(worker, batch),
            None => Ok(()),
        }
    }

    fn deliver(&mut self, worker: usize, batch: InflatedBatch) -> Result<(), Error> {
        self.surroundings.check()?;
        if let Some(meter) = &self.meter {
            meter.add(batch.items.len() as u64);
            if self.options.show_bytes {
                meter.add_bytes(self.window.offset().saturating_sub(meter.bytes()));
            }
        }
        if worker == usize::from(self.turn) {
            self.turn = ((worker + 1) % self.batches.len()) as u8;
        }
        self.deliver.deliver(worker, batch)
    }
}

#[cold]
fn base_out_of_bounds() -> Error {
    Error::new(ErrorKind::BaseOffset, "delta base offset is out of bound")
}

#[cold]
fn too_large() -> Error {
    Error::new(
        ErrorKind::Limit,
        "object is too large for the memory of this machine",
    )
}
