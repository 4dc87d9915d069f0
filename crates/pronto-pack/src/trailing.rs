//! Writes files that end with their checksum.

use std::io::{self, Write};

use pronto_hash::{Kind, ObjectId, TrailerDigester};

/// A buffered writer that hashes all bytes and ends with the checksum.
pub(crate) struct Trailing<'a> {
    out: &'a mut dyn Write,
    digester: TrailerDigester,
    buffer: Vec<u8>,
}

const BUFFER_BYTES: usize = 256 << 10;

impl<'a> Trailing<'a> {
    pub(crate) fn new(out: &'a mut dyn Write, kind: Kind) -> Self {
        Trailing {
            out,
            digester: TrailerDigester::new(kind),
            buffer: Vec::with_capacity(BUFFER_BYTES),
        }
    }

    #[inline]
    pub(crate) fn put(&mut self, bytes: &[u8]) -> io::Result<()> {
        if self.buffer.len() + bytes.len() > BUFFER_BYTES {
            self.flush()?;
        }
        self.buffer.extend_from_slice(bytes);
        Ok(())
    }

    fn flush(&mut self) -> io::Result<()> {
        self.digester.update(&self.buffer);
        self.out.write_all(&self.buffer)?;
        self.buffer.clear();
        Ok(())
    }

    pub(crate) fn finish(mut self) -> io::Result<ObjectId> {
        self.flush()?;
        let checksum = self.digester.finish();
        self.out.write_all(checksum.as_slice())?;
        Ok(checksum)
    }
}
