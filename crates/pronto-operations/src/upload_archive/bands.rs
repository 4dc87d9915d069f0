//! The sidebands of a response: the archive, messages, and the reason of a failure.

use std::io::{self, Write};
use std::sync::{Mutex, MutexGuard, PoisonError};

use pronto_wire::pktline::{self, MAX_PAYLOAD};

const DATA: u8 = 1;
const MESSAGE: u8 = 2;
const FAILURE: u8 = 3;

/// The largest number of data bytes in one packet, after the band number.
const MOST_BYTES: usize = MAX_PAYLOAD - 1;

/// The sidebands of one connection, to which several threads write.
pub(super) struct ArchiveBands<'a>(Mutex<ArchiveBand<'a>>);

struct ArchiveBand<'a> {
    out: &'a mut (dyn Write + Send),
    /// Data that do not fill a packet yet.
    data: Vec<u8>,
    is_broken: bool,
}

impl ArchiveBand<'_> {
    fn send(&mut self, bytes: &[u8]) -> io::Result<()> {
        let sent = self.out.write_all(bytes);
        self.is_broken |= sent.is_err();
        sent
    }

    fn send_packet(&mut self, band: u8, payload: &[u8]) -> io::Result<()> {
        let mut packet = Vec::with_capacity(payload.len() + 5);
        pktline::write_parts(&mut packet, &[&[band], payload]).map_err(io::Error::other)?;
        self.send(&packet)
    }

    fn send_data(&mut self) -> io::Result<()> {
        if self.data.is_empty() {
            return Ok(());
        }
        let data = std::mem::take(&mut self.data);
        let sent = self.send_packet(DATA, &data);
        self.data = data;
        self.data.clear();
        sent
    }

    fn flush(&mut self) -> io::Result<()> {
        let flushed = self.out.flush();
        self.is_broken |= flushed.is_err();
        flushed
    }
}

impl<'a> ArchiveBands<'a> {
    pub(super) fn new(out: &'a mut (dyn Write + Send)) -> Self {
        ArchiveBands(Mutex::new(ArchiveBand {
            out,
            data: Vec::new(),
            is_broken: false,
        }))
    }

    fn lock(&self) -> MutexGuard<'_, ArchiveBand<'a>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Returns whether the connection is broken.
    pub(super) fn is_broken(&self) -> bool {
        self.lock().is_broken
    }

    /// Sends the acknowledgement of the request.
    pub(super) fn confirm(&self) -> io::Result<()> {
        let mut output = self.lock();
        output.send(b"0008ACK\n0000")?;
        output.flush()
    }

    /// Sends a message. Errors are ignored.
    pub(super) fn say(&self, text: &[u8]) {
        let mut output = self.lock();
        for piece in text.chunks(MOST_BYTES) {
            let _ = output.send_packet(MESSAGE, piece);
        }
    }

    /// Ends a failed response with the message `text`.
    pub(super) fn fail(&self, text: &[u8]) -> io::Result<()> {
        let mut output = self.lock();
        output.send_data()?;
        output.send_packet(FAILURE, text)?;
        output.flush()
    }

    /// Ends a complete response.
    pub(super) fn end(&self) -> io::Result<()> {
        let mut output = self.lock();
        output.send_data()?;
        output.send(b"0000")?;
        output.flush()
    }
}

/// Writes to the band of the archive.
impl Write for &ArchiveBands<'_> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let mut output = self.lock();
        let room = MOST_BYTES - output.data.len();
        let taken = bytes.get(..room).unwrap_or(bytes);
        output.data.extend_from_slice(taken);
        if output.data.len() == MOST_BYTES {
            output.send_data()?;
        }
        Ok(taken.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        let mut output = self.lock();
        output.send_data()?;
        output.flush()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn data_fill_packets() {
        let mut out = Vec::new();
        let bands = ArchiveBands::new(&mut out);
        let content = vec![b'x'; MOST_BYTES + 1];
        let mut data = &bands;
        data.write_all(&content).expect("it is memory");
        bands.say(b"m");
        bands.end().expect("it is memory");
        drop(bands);
        let rest = &out[MOST_BYTES + 5..];
        assert!(out.starts_with(b"fff0\x01x"));
        assert_eq!(rest, b"0006\x02m0006\x01x0000");
    }
}
