//! Buffers the lines of a response, multiplexed if the client requests that (`sideband-all`).

use pronto_wire::pktline;

use crate::Result;
use crate::remote::connection::from_wire;

/// The lines that were not sent yet.
#[derive(Debug, Default)]
pub(super) struct UnsentLines {
    pub(super) bytes: Vec<u8>,
    /// Whether each line starts with its band number.
    pub(super) sideband: bool,
}

impl UnsentLines {
    /// # Errors
    /// Fails if the line is too long.
    pub(super) fn text(&mut self, line: impl AsRef<[u8]>) -> Result<()> {
        let band: &[u8] = if self.sideband { b"\x01" } else { b"" };
        self.parts(&[band, line.as_ref()])
    }

    /// Adds a line that reports an error.
    ///
    /// # Errors
    /// Fails if the line is too long.
    pub(super) fn error(&mut self, message: impl AsRef<[u8]>) -> Result<()> {
        let start: &[u8] = if self.sideband { b"\x03" } else { b"ERR " };
        self.parts(&[start, message.as_ref()])
    }

    fn parts(&mut self, parts: &[&[u8]]) -> Result<()> {
        pktline::write_parts(&mut self.bytes, parts).map_err(from_wire)
    }

    pub(super) fn flush(&mut self) {
        pktline::write_flush(&mut self.bytes);
    }

    pub(super) fn delimiter(&mut self) {
        pktline::write_delimiter(&mut self.bytes);
    }
}
