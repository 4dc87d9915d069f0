//! Buffered standard output. A terminal receives no untrusted control characters.

use std::io::{self, IsTerminal as _, Write};

use crate::terminal::text::{for_terminal, sanitized_bytes};

/// The capacity of the buffer, so that a status of a large worktree takes few system calls.
const CAPACITY_BYTES: usize = 64 * 1024;

/// Standard output. The buffer is written when it is full (64 KiB), on [`flush`](Write::flush), and
/// at the end of the process. On a terminal, control characters become `?`, except for colours and
/// line ends.
#[derive(Debug, Default)]
pub struct StdoutWriter {
    buffer: Vec<u8>,
    /// Whether standard output is a terminal; `None` before the first check.
    is_terminal: Option<bool>,
}

impl StdoutWriter {
    /// Creates an empty buffer. The first write allocates.
    pub const fn new() -> Self {
        StdoutWriter {
            buffer: Vec::new(),
            is_terminal: None,
        }
    }

    /// Writes untrusted text that is never coloured, such as unchecked names.
    ///
    /// # Errors
    /// Fails if standard output cannot be written.
    pub(crate) fn write_foreign(&mut self, bytes: &[u8]) -> io::Result<()> {
        match self.is_terminal() {
            true => self.write_all(&sanitized_bytes(bytes)),
            false => self.write_all(bytes),
        }
    }

    fn is_terminal(&mut self) -> bool {
        *self
            .is_terminal
            .get_or_insert_with(|| io::stdout().is_terminal())
    }

    /// Writes the first `end` bytes of the buffer.
    fn write_up_to(&mut self, end: usize) -> io::Result<()> {
        if end == 0 {
            return Ok(());
        }
        let result = match self.is_terminal() {
            true => Self::write_through(&for_terminal(&self.buffer[..end])),
            false => Self::write_through(&self.buffer[..end]),
        };
        self.buffer.drain(..end);
        result
    }

    /// Discards the unwritten bytes before a call is handed to git.
    pub(crate) fn discard(&mut self) {
        self.buffer.clear();
    }

    /// Writes `bytes` without the buffer. A closed standard output is an error only if `bytes` is
    /// not empty.
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

impl Write for StdoutWriter {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.write_all(bytes)?;
        Ok(bytes.len())
    }

    fn write_all(&mut self, bytes: &[u8]) -> io::Result<()> {
        if self.buffer.len() + bytes.len() > CAPACITY_BYTES && self.is_terminal() {
            // Lines are written whole, so that no escape sequence is cut.
            self.buffer.extend_from_slice(bytes);
            let last = self.buffer.iter().rposition(|byte| *byte == b'\n');
            return self.write_up_to(last.map_or(self.buffer.len(), |last| last + 1));
        }
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
        self.write_up_to(self.buffer.len())
    }
}
