//! Reads a large object piece by piece.

use std::io::{self, BufRead, Read};
use std::sync::Arc;

use gix_object::Kind as ObjectKind;
use sirocco::{Format, inflate};

use super::{Pack, PackOffset, Window};
use crate::entry::Header;
use crate::error::Error;

/// The number of bytes that are read at once from a pack that is not mapped.
const CHUNK_LEN: usize = 128 * 1024;

/// Reads an object that is stored whole, inflating as it goes: 256 KiB of memory whatever its
/// size. Fails with `InvalidData` when the object is not of the size that its header claims, with
/// `UnexpectedEof` when the pack was cut short under its map.
pub struct EntryReader {
    kind: ObjectKind,
    size_bytes: u64,
    rest: u64,
    pack: Arc<Pack>,
    reader: inflate::Reader<Deflated>,
}

impl Pack {
    /// A reader of the object at `offset`, unless it is a delta.
    ///
    /// # Errors
    /// As [`Pack::entry`].
    pub fn reader(self: &Arc<Self>, offset: PackOffset) -> Result<Option<EntryReader>, Error> {
        let entry = self.entry(offset)?;
        let Header::Object(kind) = entry.header else {
            return Ok(None);
        };
        let data_offset = offset.0 + entry.header_len as u64;
        Ok(Some(self.stream((data_offset, entry.size_bytes), kind)))
    }

    /// A reader of what is deflated at `at`, of `size_bytes`.
    pub(super) fn stream(
        self: &Arc<Self>,
        (at, size_bytes): (u64, u64),
        kind: ObjectKind,
    ) -> EntryReader {
        let deflated = Deflated {
            pack: self.clone(),
            at,
            window: Window::default(),
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
    /// Returns the kind of the object.
    pub fn kind(&self) -> ObjectKind {
        self.kind
    }

    /// The size of its content.
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
                "inflated object is not of the size its header claims",
            )),
        }
    }
}

/// The deflated bytes of a pack from some place on.
struct Deflated {
    pack: Arc<Pack>,
    at: u64,
    window: Window,
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
