//! The stream as it arrives: a buffer that is parsed in place and then handed on to be written.
//! No byte is copied except the few of a header that a buffer's end cuts in two.

use super::spool::Sink;
use crate::entry::{Entry, MAX_HEADER_LEN};
use crate::error::{Error, ErrorKind};
use pronto_hash::Kind;
use sirocco::Format;
use sirocco::inflate::{Decoder, Error as InflateError};
use std::cmp::Ordering;
use std::io::{ErrorKind as IoKind, Read};

/// How much is read at once at most, and written at once.
pub(super) const WINDOW_BYTES: usize = 1 << 20;
/// What is handed on when so little room is left that reading would go in drops.
const LEAST_ROOM_BYTES: usize = 16 << 10;
/// How much of a large object is claimed before any of it was seen.
const FIRST_CLAIM_BYTES: usize = 4 << 20;

/// The input, from the first byte of the pack on.
pub(super) struct Window<'a> {
    input: &'a mut dyn Read,
    sink: &'a mut dyn Sink,
    decoder: Box<Decoder>,
    buffer: Vec<u8>,
    /// What is parsed ends here.
    at: usize,
    /// What has been read ends here.
    end: usize,
    /// What has not been handed on begins here.
    unsent: usize,
    /// What the checksum of the current entry has not seen begins here.
    unsummed: usize,
    crc: Option<crc32fast::Hasher>,
    /// How many bytes of the stream are parsed.
    offset: u64,
    /// Where the stream of the current entry starts.
    stream_at: u64,
    limit: Option<u64>,
    at_end: bool,
}

impl<'a> Window<'a> {
    pub(super) fn new(input: &'a mut dyn Read, sink: &'a mut dyn Sink, limit: Option<u64>) -> Self {
        Window {
            input,
            sink,
            decoder: Box::new(Decoder::new(Format::Zlib)),
            buffer: vec![0; WINDOW_BYTES],
            at: 0,
            end: 0,
            unsent: 0,
            unsummed: 0,
            crc: None,
            offset: 0,
            stream_at: 0,
            limit,
            at_end: false,
        }
    }

    /// How many bytes of the stream are parsed.
    pub(super) fn offset(&self) -> u64 {
        self.offset
    }

    /// The next `N` bytes, which must be few.
    pub(super) fn take<const N: usize>(&mut self) -> Result<[u8; N], Error> {
        while self.end - self.at < N {
            self.more()?;
        }
        let mut bytes = [0; N];
        bytes.copy_from_slice(&self.buffer[self.at..self.at + N]);
        self.consume(N)?;
        Ok(bytes)
    }

    /// Begins an entry: its header is parsed, its stream comes next.
    pub(super) fn begin_entry(&mut self, kind: Kind) -> Result<Entry, Error> {
        self.crc = None;
        self.unsummed = self.at;
        loop {
            let available = &self.buffer[self.at..self.end];
            match Entry::parse(available, kind) {
                Ok(entry) => {
                    self.consume(entry.header_len)?;
                    self.stream_at = self.offset;
                    return Ok(entry);
                }
                Err(error)
                    if *error.kind() == ErrorKind::Truncated
                        && available.len() < MAX_HEADER_LEN =>
                {
                    self.more()?;
                }
                Err(error) => return Err(error),
            }
        }
    }

    /// Ends the entry; its CRC-32.
    pub(super) fn end_entry(&mut self) -> u32 {
        let rest = &self.buffer[self.unsummed..self.at];
        match self.crc.take() {
            None => crc32fast::hash(rest),
            Some(mut crc) => {
                crc.update(rest);
                crc.finalize()
            }
        }
    }

    /// Inflates the stream of the current entry, which must fill `out` exactly.
    pub(super) fn inflate(&mut self, out: &mut [u8]) -> Result<(), Error> {
        if self.at < self.end {
            let available = &self.buffer[self.at..self.end];
            match self.decoder.decompress(available, out, true) {
                Ok(progress) => {
                    let (done, len) = (progress.done, progress.output.len());
                    let consumed = progress.consumed;
                    if !done || len != out.len() {
                        self.decoder.reset();
                        return Err(wrong_size(!done));
                    }
                    return self.consume(consumed);
                }
                // Cut short, or broken: the decoder of pieces can tell.
                Err(_) => self.decoder.reset(),
            }
        }
        loop {
            let piece = self.piece(out)?;
            if piece.done {
                return self.check_size(out.len() as u64);
            }
        }
    }

    /// Inflates the stream of the current entry, of `size` bytes, into memory that grows as they
    /// come.
    pub(super) fn inflate_large(&mut self, size: usize) -> Result<Vec<u8>, Error> {
        let mut out = vec![0; size.min(FIRST_CLAIM_BYTES)];
        loop {
            let piece = self.piece(&mut out)?;
            if piece.done {
                self.check_size(size as u64)?;
                return Ok(out);
            }
            if piece.full && out.len() < size {
                let len = out.len().saturating_mul(2).min(size);
                out.resize(len, 0);
            }
        }
    }

    /// Inflates the stream of the current entry, of `size` bytes, handing it to `each` in pieces.
    pub(super) fn inflate_in_pieces(
        &mut self,
        size: u64,
        mut each: impl FnMut(&[u8]) -> Result<(), Error>,
    ) -> Result<(), Error> {
        let mut out = vec![0; 256 << 10];
        let mut given = 0;
        loop {
            let piece = self.piece(&mut out)?;
            each(&out[given..given + piece.len])?;
            given += piece.len;
            if piece.done {
                return self.check_size(size);
            }
            if self.decoder.total_out() > size {
                return Err(wrong_size(true));
            }
            if piece.full {
                given -= self.decoder.make_room(&mut out);
            }
        }
    }

    /// What follows the pack and has been read already; with `looks_on`, at least a byte if there
    /// is one. The rest is handed on.
    pub(super) fn finish(self, trailer_len: usize, looks_on: bool) -> Result<Vec<u8>, Error> {
        let mut leftover = self.buffer[self.at..self.end].to_vec();
        if looks_on && leftover.is_empty() {
            let mut next = [0];
            let len = self.input.read(&mut next).unwrap_or(0);
            leftover.extend_from_slice(&next[..len]);
        }
        let pack_end = self.at - trailer_len;
        if self.unsent < pack_end {
            self.sink.take(self.buffer, self.unsent..pack_end)?;
        }
        Ok(leftover)
    }

    /// Everything before this was handed on, or will be; the trailer is not part of it.
    pub(super) fn take_trailer(&mut self, len: usize) -> Result<Vec<u8>, Error> {
        while self.end - self.at < len {
            self.more()?;
        }
        let trailer = self.buffer[self.at..self.at + len].to_vec();
        self.consume(len)?;
        Ok(trailer)
    }

    /// Inflates some of the current stream behind what `out` holds of it.
    fn piece(&mut self, out: &mut [u8]) -> Result<Piece, Error> {
        if self.at == self.end {
            self.more()?;
        }
        let available = &self.buffer[self.at..self.end];
        let progress = match self.decoder.decompress(available, out, false) {
            Ok(progress) => progress,
            Err(InflateError::BufferFull) => return Err(wrong_size(true)),
            Err(error) => {
                let start = (self.offset == self.stream_at).then_some(available);
                return Err(broken(error, start));
            }
        };
        let piece = Piece {
            done: progress.done,
            full: progress.full,
            len: progress.output.len(),
        };
        let consumed = progress.consumed;
        self.consume(consumed)?;
        Ok(piece)
    }

    fn check_size(&self, size: u64) -> Result<(), Error> {
        match self.decoder.total_out().cmp(&size) {
            Ordering::Equal => Ok(()),
            order => Err(wrong_size(order.is_gt())),
        }
    }

    fn consume(&mut self, len: usize) -> Result<(), Error> {
        self.at += len;
        self.offset += len as u64;
        match self.limit {
            Some(limit) if self.offset > limit => Err(Error::new(
                ErrorKind::Limit,
                format!("pack exceeds maximum allowed size ({limit})"),
            )),
            _ => Ok(()),
        }
    }

    /// Reads at least one byte more. What is parsed may be handed on.
    fn more(&mut self) -> Result<(), Error> {
        if self.buffer.len() - self.end < LEAST_ROOM_BYTES {
            self.hand_on()?;
        }
        if self.at_end {
            return Err(early_end());
        }
        loop {
            match self.input.read(&mut self.buffer[self.end..]) {
                Ok(0) => {
                    self.at_end = true;
                    return Err(early_end());
                }
                Ok(len) => {
                    self.end += len;
                    return Ok(());
                }
                Err(error) if error.kind() == IoKind::Interrupted => {}
                Err(error) => {
                    let error = Error::new(ErrorKind::Io, "read error on input").because(error);
                    return Err(error.at_offset(self.offset));
                }
            }
        }
    }

    /// Hands what is parsed on, and goes on in another buffer with the few bytes that are not.
    fn hand_on(&mut self) -> Result<(), Error> {
        let summed = &self.buffer[self.unsummed.min(self.at)..self.at];
        self.crc
            .get_or_insert_with(crc32fast::Hasher::new)
            .update(summed);
        let mut tail = [0; MAX_HEADER_LEN];
        let tail_len = self.end - self.at;
        debug_assert!(tail_len < tail.len(), "only a header or trailer is left");
        tail[..tail_len].copy_from_slice(&self.buffer[self.at..self.end]);
        let full = std::mem::take(&mut self.buffer);
        self.buffer = self.sink.take(full, self.unsent..self.at)?;
        self.buffer[..tail_len].copy_from_slice(&tail[..tail_len]);
        (self.at, self.end, self.unsent, self.unsummed) = (0, tail_len, 0, 0);
        Ok(())
    }
}

/// What a step of inflation did.
struct Piece {
    done: bool,
    /// The buffer is: nothing more will come before there is room.
    full: bool,
    /// How many bytes it added.
    len: usize,
}

#[cold]
fn early_end() -> Error {
    Error::new(ErrorKind::Truncated, "early EOF")
}

/// The stream of an entry is longer than its header claims, or ends before.
#[cold]
fn wrong_size(longer: bool) -> Error {
    // In the words of Git, which says what zlib returned.
    let returned = if longer { -5 } else { 1 };
    let size = "inflated object is not of the size its header claims";
    Error::new(ErrorKind::Corrupt, format!("inflate returned {returned}")).with_hint(size)
}

/// What is wrong with a stream, of which `start` holds the first bytes if it failed there.
#[cold]
fn broken(error: InflateError, start: Option<&[u8]>) -> Error {
    let reason = match (error, start) {
        (InflateError::ChecksumMismatch, _) => "data stream error (incorrect data check)",
        (InflateError::PresetDictionary, _) => "needs dictionary (no message)",
        (_, Some(&[first, second, ..]))
            if !(u16::from(first) << 8 | u16::from(second)).is_multiple_of(31) =>
        {
            "data stream error (incorrect header check)"
        }
        (_, Some(&[first, ..])) if first & 15 != 8 => {
            "data stream error (unknown compression method)"
        }
        (_, Some(&[first, ..])) if first >> 4 > 7 => "data stream error (invalid window size)",
        _ => "data stream error (invalid compressed data)",
    };
    Error::new(ErrorKind::Corrupt, "inflate returned -3").because(format!("inflate: {reason}"))
}
