//! Writes the objects of a plan in order, bases before their deltas.

use std::io::{self, Write};
use std::path::Path;

use pronto_hash::oid;
use pronto_io::progress::Meter;
use pronto_pack::delta::make::{BaseBlocks, make};
use pronto_pack::entry::{Entry, EntryHeader};
use pronto_pack::pack::PackOffset;
use pronto_pack::writer::Encoder;
use pronto_pack::writer::sink::{PackSink, PackStream, Streamed};
use sirocco::Format;
use sirocco::deflate::{Level, Writer};

use super::ahead::DeflatedAhead;
use super::plan::{EncodingChoice, NO_PACK, PackPlan, PlannedObject, content};
use super::{PackCounts, each_piece, intact};
use crate::error::{Error, ErrorKind, from_pack};

/// The size below which pieces are gathered in a buffer.
const SMALL: usize = 16 << 10;
/// The number of gathered bytes from which the buffer is written.
const GATHERED: usize = 64 << 10;

/// A stream that gathers small pieces in a buffer.
pub(super) struct GatheredStream<'a> {
    stream: PackStream<'a>,
    bytes: Vec<u8>,
    bytes_put: u64,
}

impl<'a> GatheredStream<'a> {
    pub(super) fn new(stream: PackStream<'a>) -> GatheredStream<'a> {
        GatheredStream {
            stream,
            bytes: Vec::with_capacity(GATHERED),
            bytes_put: 0,
        }
    }

    /// Returns the number of bytes put into the stream.
    pub(super) fn bytes_put(&self) -> u64 {
        self.bytes_put
    }

    /// Records that `count` entries were put into the stream.
    ///
    /// # Errors
    /// Fails with `ErrorKind::Limit` if there are more entries than announced in the header of the
    /// pack.
    pub(super) fn note_many(&mut self, count: u32) -> Result<(), pronto_pack::Error> {
        self.stream.note_many(count)
    }

    fn flush(&mut self) -> Result<(), pronto_pack::Error> {
        if !self.bytes.is_empty() {
            self.stream.put(&self.bytes)?;
            self.bytes.clear();
        }
        Ok(())
    }

    /// Writes the gathered bytes and the checksum of the pack.
    ///
    /// # Errors
    /// Fails as [`PackStream::finish`] does.
    pub(super) fn finish(mut self) -> Result<Streamed, pronto_pack::Error> {
        self.flush()?;
        self.stream.finish()
    }
}

impl PackSink for GatheredStream<'_> {
    fn put(&mut self, bytes: &[u8]) -> Result<(), pronto_pack::Error> {
        self.bytes_put += bytes.len() as u64;
        if bytes.len() < SMALL && self.bytes.len() + bytes.len() <= GATHERED {
            self.bytes.extend_from_slice(bytes);
            return Ok(());
        }
        self.flush()?;
        match bytes.len() < SMALL {
            true => self.bytes.extend_from_slice(bytes),
            false => self.stream.put(bytes)?,
        }
        Ok(())
    }

    fn note(&mut self, id: &oid, start: u64, crc: u32) -> Result<(), pronto_pack::Error> {
        self.stream.note(id, start, crc)
    }

    fn wants_crc(&self) -> bool {
        false
    }
}

/// Writes all objects of `plan`. The objects that are copied from the pack at the path `bitmapped`
/// are counted as [`PackCounts::whole_pack`].
///
/// # Errors
/// Fails if an object cannot be read or written, and with `ErrorKind::Interrupted` if the operation
/// is cancelled.
pub(super) fn emit(
    plan: &mut PackPlan<'_>,
    sink: &mut dyn PackSink,
    bitmapped: Option<&Path>,
    meter: &Meter,
) -> Result<PackCounts, Error> {
    let watch = plan.watch;
    let mut emitter = Emitter {
        starts: vec![0; plan.rows.len()],
        at: 12,
        run: None,
        ahead: DeflatedAhead::default(),
        encoder: Encoder::new(plan.options.level),
        header: Vec::new(),
        target: Vec::new(),
        base: Vec::new(),
        delta: Vec::new(),
        counts: PackCounts::default(),
        bitmapped: bitmapped.and_then(|path| plan.pack_at(path)),
        plan,
        sink,
    };
    let mut chain = Vec::new();
    for number in 0..emitter.starts.len() as u32 {
        watch
            .interrupt()
            .check()
            .map_err(|reason| Error::new(ErrorKind::Interrupted, reason.to_string()))?;
        if emitter.plan.rows[number as usize].is_base_only {
            continue;
        }
        emitter.look_ahead(number);
        let mut next = Some(number);
        while let Some(number) = next.filter(|number| !emitter.is_written(*number)) {
            chain.push(number);
            next = emitter.base_row(number);
        }
        while let Some(number) = chain.pop() {
            let before = emitter.at;
            emitter.write(number)?;
            meter.add(1);
            meter.add_bytes(emitter.at - before);
        }
    }
    emitter.flush()?;
    Ok(emitter.counts)
}

/// Consecutive entries of a pack that are copied unchanged.
struct EntryRun {
    pack: u32,
    start: u64,
    end: u64,
}

struct Emitter<'a, 'b> {
    plan: &'a mut PackPlan<'b>,
    sink: &'a mut dyn PackSink,
    /// The start of each entry in the new pack; zero if the entry is not written yet.
    starts: Vec<u64>,
    at: u64,
    run: Option<EntryRun>,
    ahead: DeflatedAhead,
    encoder: Encoder,
    header: Vec<u8>,
    target: Vec<u8>,
    base: Vec<u8>,
    delta: Vec<u8>,
    counts: PackCounts,
    /// The number of the pack whose bitmap selected the objects.
    bitmapped: Option<u32>,
}

impl Emitter<'_, '_> {
    /// Returns whether the entry is already written, or the receiver has the object.
    fn is_written(&self, number: u32) -> bool {
        let number = number as usize;
        self.starts[number] != 0 || self.plan.rows[number].is_base_only
    }

    /// Deflates the next entries ahead of writing, from row `number` on.
    fn look_ahead(&mut self, number: u32) {
        let starts = &self.starts;
        let is_written = |number: u32| starts[number as usize] != 0;
        self.ahead.prepare(number, self.plan, is_written);
    }

    fn base_row(&self, number: u32) -> Option<u32> {
        match self.plan.rows[number as usize].how {
            EncodingChoice::StoredDelta(base) => Some(base),
            EncodingChoice::Delta(found) => Some(self.plan.found[found as usize].base),
            _ => None,
        }
    }

    fn write(&mut self, number: u32) -> Result<(), Error> {
        let row = self.plan.rows[number as usize];
        let start = self.at;
        self.starts[number as usize] = start;
        self.counts.objects += 1;
        self.check_source(&row)?;
        match row.how {
            EncodingChoice::Fresh => match self.ahead.take(number) {
                Some((bytes, crc)) => self.write_encoded(&row, &bytes, crc),
                None => self.write_fresh(&row),
            },
            EncodingChoice::Delta(found) => self.write_delta(&row, found),
            _ => self.write_stored(number, &row),
        }
    }

    /// Verifies the stored entry of an object that is deflated again, if the new pack gets an
    /// index. An entry that does not match its index is not used.
    fn check_source(&self, row: &PlannedObject) -> Result<(), Error> {
        let is_deflated = matches!(row.how, EncodingChoice::Fresh | EncodingChoice::Delta(_))
            && row.pack != NO_PACK;
        let file = self.plan.snapshot.pack(row.pack);
        let Some(file) = file.filter(|_| is_deflated && self.sink.wants_crc()) else {
            return Ok(());
        };
        match intact::checked_crc(self.plan.store, file, row)? {
            Some(_) => Ok(()),
            None => intact::check_any_copy(self.plan.store, row, self.plan.options.large_bytes),
        }
    }

    /// Returns the header that names the base in the new pack.
    fn base_header(&self, base: u32) -> EntryHeader {
        match self.starts[base as usize] {
            start if start != 0 && self.plan.options.offset_deltas => EntryHeader::OffsetDelta {
                distance: self.at - start,
            },
            _ => EntryHeader::RefDelta {
                base: self.plan.rows[base as usize].id,
            },
        }
    }

    fn write_stored(&mut self, number: u32, row: &PlannedObject) -> Result<(), Error> {
        let file = self.plan.snapshot.pack(row.pack).cloned();
        let gone = || unreadable(row);
        let file = file.ok_or_else(gone)?;
        let pack = file.pack()?;
        let is_delta = row.how != EncodingChoice::Stored;
        let mut changed = None;
        let wants_crc = self.sink.wants_crc();
        if is_delta {
            let entry = pack.entry(PackOffset(row.offset)).map_err(from_pack)?;
            let header = match row.how {
                EncodingChoice::StoredDelta(base) => self.base_header(base),
                _ => EntryHeader::RefDelta {
                    base: self
                        .plan
                        .thin_bases
                        .get(&number)
                        .copied()
                        .ok_or_else(gone)?,
                },
            };
            changed = (header != entry.header).then_some((header, entry));
        }
        let mut crc = 0;
        if wants_crc {
            match intact::checked_crc(self.plan.store, &file, row)? {
                Some(found) => crc = found,
                None => {
                    // The entry is damaged; another copy of the object is used, if there is one.
                    self.plan.make_fresh(number)?;
                    let row = self.plan.rows[number as usize];
                    let large_bytes = self.plan.options.large_bytes;
                    intact::check_any_copy(self.plan.store, &row, large_bytes)?;
                    return self.write_fresh(&row);
                }
            }
        }
        if self.bitmapped == Some(row.pack) && row.how != EncodingChoice::StoredThin {
            self.counts.whole_pack += 1;
        } else {
            self.counts.reused += 1;
            self.counts.reused_deltas += u32::from(is_delta);
            self.counts.deltas += u32::from(is_delta);
        }
        let Some((header, entry)) = changed else {
            let len = row.end - row.offset;
            self.counts.reused_bytes += len;
            self.sink.note(&row.id, self.at, crc).map_err(from_pack)?;
            self.at += len;
            return self.extend_run(row);
        };
        self.flush()?;
        let new = Entry { header, ..entry };
        self.header.clear();
        new.encode(&mut self.header);
        let body = row.offset + entry.header_len as u64..row.end;
        if wants_crc {
            crc = intact::crc_of(&self.header, pack, body.clone())?;
        }
        let len = body.end - body.start;
        self.counts.reused_bytes += len;
        self.sink.note(&row.id, self.at, crc).map_err(from_pack)?;
        self.at += self.header.len() as u64 + len;
        self.sink.put(&self.header).map_err(from_pack)?;
        each_piece(pack, body, &mut |bytes| self.sink.put(bytes))
    }

    fn extend_run(&mut self, row: &PlannedObject) -> Result<(), Error> {
        if let Some(run) = &mut self.run
            && run.pack == row.pack
            && run.end == row.offset
        {
            run.end = row.end;
            return Ok(());
        }
        self.flush()?;
        self.run = Some(EntryRun {
            pack: row.pack,
            start: row.offset,
            end: row.end,
        });
        Ok(())
    }

    fn flush(&mut self) -> Result<(), Error> {
        let Some(run) = self.run.take() else {
            return Ok(());
        };
        let Some(file) = self.plan.snapshot.pack(run.pack) else {
            return Ok(());
        };
        let pack = file.pack()?;
        each_piece(pack, run.start..run.end, &mut |bytes| self.sink.put(bytes))
    }

    /// Deflates the content of any readable copy.
    fn write_fresh(&mut self, row: &PlannedObject) -> Result<(), Error> {
        self.flush()?;
        if row.kind.is_some() && row.size_bytes >= self.plan.options.large_bytes {
            return self.write_large(row);
        }
        let store = self.plan.store;
        let kind = store.find(&row.id, &mut self.target)?;
        let kind = kind.ok_or_else(|| unreadable(row))?;
        let encoded = self.encoder.encode(EntryHeader::Object(kind), &self.target);
        let id = &row.id;
        self.sink
            .note(id, self.at, encoded.crc())
            .map_err(from_pack)?;
        self.sink.put(encoded.bytes()).map_err(from_pack)?;
        self.at += encoded.bytes().len() as u64;
        Ok(())
    }

    /// Writes a stored entry.
    fn write_encoded(&mut self, row: &PlannedObject, bytes: &[u8], crc: u32) -> Result<(), Error> {
        self.flush()?;
        self.sink.note(&row.id, self.at, crc).map_err(from_pack)?;
        self.sink.put(bytes).map_err(from_pack)?;
        self.at += bytes.len() as u64;
        Ok(())
    }

    /// Deflates an object in pieces that is too large to be held in memory.
    fn write_large(&mut self, row: &PlannedObject) -> Result<(), Error> {
        let reader = self.plan.store.reader(&row.id)?;
        let mut reader = reader.ok_or_else(|| unreadable(row))?;
        self.header.clear();
        let entry = Entry {
            header: EntryHeader::Object(reader.kind()),
            size_bytes: reader.size_bytes(),
            header_len: 0,
        };
        entry.encode(&mut self.header);
        let failed = |error: io::Error| {
            let message = format!("unable to pack {}", row.id);
            Error::new(ErrorKind::Io, message).because(error)
        };
        let mut counted = CountedEntry {
            sink: &mut *self.sink,
            crc: crc32fast::Hasher::new(),
            bytes: 0,
        };
        counted.write_all(&self.header).map_err(failed)?;
        let level = Level::new(self.plan.options.level.min(9));
        let mut deflater = Writer::new(Format::Zlib, level, counted);
        let copied = io::copy(&mut reader, &mut deflater).map_err(failed)?;
        let counted = deflater.finish().map_err(failed)?;
        if copied != entry.size_bytes {
            return Err(unreadable(row));
        }
        let (crc, bytes) = (counted.crc.finalize(), counted.bytes);
        self.sink.note(&row.id, self.at, crc).map_err(from_pack)?;
        self.at += bytes;
        Ok(())
    }

    fn write_delta(&mut self, row: &PlannedObject, found: u32) -> Result<(), Error> {
        self.flush()?;
        let found = &self.plan.found[found as usize];
        let header = self.base_header(found.base);
        let unmakeable = || {
            let message = format!("unable to recompute the delta of {}", row.id);
            Error::new(ErrorKind::Corrupt, message)
        };
        let encoded = match &found.deflated {
            Some(deflated) => self.encoder.wrap(header, found.size_bytes, deflated),
            None => {
                content(self.plan.store, row, &mut self.target)?;
                let base = &self.plan.rows[found.base as usize];
                content(self.plan.store, base, &mut self.base)?;
                let blocks = BaseBlocks::new(&self.base).ok_or_else(unmakeable)?;
                let delta = &mut self.delta;
                if !make(&self.base, &blocks, &self.target, usize::MAX, delta) {
                    return Err(unmakeable());
                }
                self.encoder.encode(header, &self.delta)
            }
        };
        self.counts.deltas += 1;
        self.sink
            .note(&row.id, self.at, encoded.crc())
            .map_err(from_pack)?;
        self.sink.put(encoded.bytes()).map_err(from_pack)?;
        self.at += encoded.bytes().len() as u64;
        Ok(())
    }
}

/// The part of an entry that has been written, with its CRC-32.
struct CountedEntry<'a> {
    sink: &'a mut dyn PackSink,
    crc: crc32fast::Hasher,
    bytes: u64,
}

impl Write for CountedEntry<'_> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.crc.update(bytes);
        self.bytes += bytes.len() as u64;
        self.sink.put(bytes).map_err(io::Error::other)?;
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

#[cold]
fn unreadable(row: &PlannedObject) -> Error {
    Error::new(ErrorKind::Missing, format!("unable to read {}", row.id))
}
