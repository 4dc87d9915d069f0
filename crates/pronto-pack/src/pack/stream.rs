//! Reads a large object in pieces.

use std::io::{self, BufRead, Read};
use std::sync::Arc;

use gix_object::Kind as ObjectKind;
use sirocco::{Format, inflate};

use super::{PackOffset, PackReader, ReadWindow};
use crate::entry::EntryHeader;
use crate::error::Error;

/// The number of bytes that are read at once from a pack that is not mapped.
const CHUNK_LEN: usize = 128 * 1024;

/// Reads an object that is not a delta, and inflates it in pieces: takes 256 KiB of memory,
/// independent of the size. Reading fails with `InvalidData` if the object does not have the
/// declared size, and with `UnexpectedEof` if the mapped pack was truncated.
pub struct EntryReader {
    kind: ObjectKind,
    size_bytes: u64,
    rest: u64,
    pack: Arc<PackReader>,
    reader: inflate::Reader<Deflated>,
}

impl PackReader {
    /// Returns a reader of the object at `offset`; `None` if the entry is a delta.
    ///
    /// # Errors
    /// Fails as [`PackReader::entry`] does.
    pub fn reader(self: &Arc<Self>, offset: PackOffset) -> Result<Option<EntryReader>, Error> {
        let entry = self.entry(offset)?;
        let EntryHeader::Object(kind) = entry.header else {
            return Ok(None);
        };
        let data_offset = offset.0 + entry.header_len as u64;
        Ok(Some(self.stream(data_offset, entry.size_bytes, kind)))
    }

    /// Returns a reader of the zlib stream at `at`, which inflates to `size_bytes`.
    pub(super) fn stream(
        self: &Arc<Self>,
        at: u64,
        size_bytes: u64,
        kind: ObjectKind,
    ) -> EntryReader {
        let deflated = Deflated {
            pack: self.clone(),
            at,
            window: ReadWindow::default(),
        };
        EntryReader {
            kind,
            size_bytes,
            rest: size_bytes,
            pack: self.clone(),
            reader: inflate::Reader::new(Format::Zlib, deflated),
        }
    }
}

impl EntryReader {
    /// Returns the type of the object.
    pub fn kind(&self) -> ObjectKind {
        self.kind
    }

    /// Returns the size of the content.
    pub fn size_bytes(&self) -> u64 {
        self.size_bytes
    }
}

impl Read for EntryReader {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        if buffer.is_empty() {
            return Ok(0);
        }
        let read = self.reader.read(buffer);
        self.pack.view.check()?;
        let len = read?;
        let ended = len == 0;
        match self.rest.checked_sub(len as u64) {
            Some(rest) if !ended || rest == 0 => {
                self.rest = rest;
                Ok(len)
            }
            _ => Err(io::Error::new(
                io::ErrorKind::InvalidData,
                "corrupt pack: an inflated object has another size than its header records",
            )),
        }
    }
}

/// The deflated bytes of a pack from an offset on.
struct Deflated {
    pack: Arc<PackReader>,
    at: u64,
    window: ReadWindow,
}

impl Read for Deflated {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let bytes = self.fill_buf()?;
        let len = bytes.len().min(buffer.len());
        buffer[..len].copy_from_slice(&bytes[..len]);
        self.consume(len);
        Ok(len)
    }
}

impl BufRead for Deflated {
    fn fill_buf(&mut self) -> io::Result<&[u8]> {
        let read = self.window.start + self.window.bytes.len() as u64;
        let wanted = match read.checked_sub(self.at) {
            Some(left @ 1..) => left as usize,
            _ => CHUNK_LEN,
        };
        self.pack
            .bytes_at(&mut self.window, self.at, wanted)
            .map_err(io::Error::other)
    }

    fn consume(&mut self, len: usize) {
        self.at += len as u64;
    }
}
