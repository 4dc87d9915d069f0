//! Reverse indexes (`.rev`): the rows of a pack index in the order of the pack. Format:
//! `gitformat-pack(5)`.

use pronto_hash::{Kind, ObjectId, TrailerDigester};
use std::io::{self, Write};

/// The first four bytes.
pub const SIGNATURE: [u8; 4] = *b"RIDX";
/// The only version there is.
pub const VERSION: u32 = 1;

/// Writes a reverse index to `out`, which need not be buffered, and returns its checksum.
/// `rows[i]` is the row of the pack index that the object at place `i` of the pack has. Costs a
/// few system calls for each MiB.
///
/// # Errors
/// Those of writing.
pub fn write(
    out: &mut dyn Write,
    kind: Kind,
    rows: &[u32],
    pack_checksum: &ObjectId,
) -> io::Result<ObjectId> {
    let mut out = Trailing::new(out, kind);
    out.put(&SIGNATURE)?;
    out.put(&VERSION.to_be_bytes())?;
    out.put(&format_id(kind).to_be_bytes())?;
    for row in rows {
        out.put(&row.to_be_bytes())?;
    }
    out.put(pack_checksum.as_slice())?;
    out.finish()
}

/// How the formats number hashes.
pub(crate) fn format_id(kind: Kind) -> u32 {
    if kind == Kind::Sha256 { 2 } else { 1 }
}

/// Collects small pieces, digests and writes them, and ends with the checksum.
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
