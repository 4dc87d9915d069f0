//! Buffered standard output that remembers failures until the end.

use std::io::{self, Write};

/// Large enough that a status of a large worktree takes few system calls.
const CAPACITY_BYTES: usize = 64 * 1024;

/// Standard output. It is written after 64 KiB, on [`flush`](Write::flush), and at the end of the
/// process.
#[derive(Debug, Default)]
pub struct Output {
    buffer: Vec<u8>,
}

impl Output {
    /// Creates an empty buffer. Allocates on the first write.
    pub const fn new() -> Self {
        Output { buffer: Vec::new() }
    }

    /// Discards unwritten bytes, before a call is handed to git.
    pub(crate) fn discard(&mut self) {
        self.buffer.clear();
    }

    /// Writes `bytes` past the buffer. A closed standard output is an error only if there is
    /// something to write.
    fn write_through(mut bytes: &[u8]) -> io::Result<()> {
        while !bytes.is_empty() {
            match rustix::io::write(rustix::stdio::stdout(), bytes) {
                Ok(0) => return Err(io::ErrorKind::WriteZero.into()),
                Ok(written) => bytes = &bytes[written..],
                Err(rustix::io::Errno::INTR) => {}
                Err(error) => return Err(error.into()),
            }
        }
        Ok(())
    }
}

impl Write for Output {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.write_all(bytes)?;
        Ok(bytes.len())
    }

    fn write_all(&mut self, bytes: &[u8]) -> io::Result<()> {
        if self.buffer.len() + bytes.len() > CAPACITY_BYTES {
            self.flush()?;
        }
        if bytes.len() > CAPACITY_BYTES {
            return Self::write_through(bytes);
        }
        self.buffer.extend_from_slice(bytes);
        Ok(())
    }

    fn flush(&mut self) -> io::Result<()> {
        let result = Self::write_through(&self.buffer);
        self.buffer.clear();
        result
    }
}
