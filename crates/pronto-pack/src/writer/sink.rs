//! The destinations of pack entries: the files of a pack, or a stream.

use std::io::Write;

use pronto_hash::{ObjectId, TrailerDigester, oid};

use super::PackWriter;
use crate::error::{Error, ErrorKind};

/// Receives the bytes of entries in order, and the start of each entry.
pub trait PackSink {
    /// Writes the next bytes, which may be of many entries or a part of an entry.
    ///
    /// # Errors
    /// Fails with `ErrorKind::Io` if the bytes cannot be written.
    fn put(&mut self, bytes: &[u8]) -> Result<(), Error>;

    /// Records an entry that begins at `start`. Called once for each entry, in their order.
    ///
    /// # Errors
    /// Fails with `ErrorKind::Limit` if there are more entries than announced.
    fn note(&mut self, id: &oid, start: u64, crc: u32) -> Result<(), Error>;

    /// Returns whether the CRC-32 of entries is needed. The CRC-32 of copied entries must then be
    /// checked against their index.
    fn wants_crc(&self) -> bool;
}

impl PackSink for PackWriter {
    fn put(&mut self, bytes: &[u8]) -> Result<(), Error> {
        PackWriter::put(self, bytes)
    }

    fn note(&mut self, id: &oid, start: u64, crc: u32) -> Result<(), Error> {
        self.record(id, start, crc)
    }

    fn wants_crc(&self) -> bool {
        true
    }
}

/// A pack that is written to a stream while it is created. Data are passed on immediately without a
/// copy, so the caller or the stream should gather small pieces.
pub struct PackStream<'a> {
    out: &'a mut dyn Write,
    digester: TrailerDigester,
    announced: u32,
    count: u32,
    bytes: u64,
}

/// The result of writing a pack to a stream.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Streamed {
    /// The checksum at the end of the pack.
    pub checksum: ObjectId,
    /// The number of bytes, including the header and the checksum.
    pub bytes: u64,
}

impl<'a> PackStream<'a> {
    /// Writes the header of a pack of `count` entries whose ids are of `kind`.
    ///
    /// # Errors
    /// Fails with `ErrorKind::Io` if the header cannot be written.
    pub fn begin(
        out: &'a mut dyn Write,
        kind: pronto_hash::Kind,
        count: u32,
    ) -> Result<PackStream<'a>, Error> {
        let mut stream = PackStream {
            out,
            digester: TrailerDigester::new(kind),
            announced: count,
            count: 0,
            bytes: 0,
        };
        let mut header = *b"PACK\0\0\0\x02\0\0\0\0";
        header[8..].copy_from_slice(&count.to_be_bytes());
        stream.put(&header)?;
        Ok(stream)
    }

    /// Records `count` entries at once, as [`note`](PackSink::note) records one entry.
    ///
    /// # Errors
    /// Fails with `ErrorKind::Limit` if there are more entries than announced.
    pub fn note_many(&mut self, count: u32) -> Result<(), Error> {
        if count > self.announced - self.count {
            return Err(Error::new(ErrorKind::Limit, "pack has too many entries"));
        }
        self.count += count;
        Ok(())
    }

    /// Writes the checksum.
    ///
    /// # Errors
    /// Fails with `ErrorKind::Io` if the checksum cannot be written, and with `ErrorKind::Limit` if
    /// there were fewer entries than announced.
    pub fn finish(self) -> Result<Streamed, Error> {
        if self.count != self.announced {
            let message = format!(
                "the pack has {} entries, but its header announces another number",
                self.count
            );
            return Err(Error::new(ErrorKind::Limit, message));
        }
        let checksum = self.digester.finish();
        let trailer = checksum.as_slice();
        let written = self.out.write_all(trailer);
        written
            .and_then(|()| self.out.flush())
            .map_err(unwritable)?;
        Ok(Streamed {
            checksum,
            bytes: self.bytes + trailer.len() as u64,
        })
    }
}

impl PackSink for PackStream<'_> {
    fn put(&mut self, bytes: &[u8]) -> Result<(), Error> {
        self.digester.update(bytes);
        self.bytes += bytes.len() as u64;
        self.out.write_all(bytes).map_err(unwritable)
    }

    fn note(&mut self, _id: &oid, _start: u64, _crc: u32) -> Result<(), Error> {
        self.note_many(1)
    }

    fn wants_crc(&self) -> bool {
        false
    }
}

impl std::fmt::Debug for PackStream<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("PackStream")
            .field("announced", &self.announced)
            .field("count", &self.count)
            .field("bytes", &self.bytes)
            .finish_non_exhaustive()
    }
}

#[cold]
fn unwritable(error: std::io::Error) -> Error {
    Error::new(ErrorKind::Io, "unable to write pack").because(error)
}
