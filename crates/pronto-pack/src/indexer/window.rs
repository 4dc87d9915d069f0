//! The received stream: segments that are parsed in place and then passed to the writer. No byte is
//! copied, except for a header that crosses the end of a segment.

use super::segment::StreamSegment;
use super::spool::SegmentSink;
use crate::entry::{Entry, MAX_HEADER_LEN};
use crate::error::{Error, ErrorKind};
use pronto_hash::Kind;
use sirocco::Format;
use sirocco::inflate::{Decoder, Error as InflateError};
use std::cmp::Ordering;
use std::collections::VecDeque;
use std::io::{ErrorKind as IoKind, Read};
use std::sync::Arc;

/// The memory that is allocated for a large object before any of it has been read.
const FIRST_CLAIM_BYTES: usize = 4 << 20;

/// The input from the first byte of the pack on.
pub(super) struct InputWindow<'a> {
    input: &'a mut dyn Read,
    sink: &'a mut dyn SegmentSink,
    decoder: Box<Decoder>,
    /// The segments that were read and not passed on; never empty. The first segment is being
    /// parsed, and all but the last are full.
    segments: VecDeque<Arc<StreamSegment>>,
    /// The number of segments that were passed on.
    number: u64,
    /// The end of the parsed part of the first segment.
    at: usize,
    /// The start of the bytes that the CRC-32 of the current entry does not cover yet.
    unsummed: usize,
    crc: Option<crc32fast::Hasher>,
    /// The number of parsed bytes of the stream.
    offset: u64,
    /// The start of the zlib stream of the current entry.
    stream_at: u64,
    limit: Option<u64>,
    at_end: bool,
    /// The error that ended reading ahead.
    failure: Option<std::io::Error>,
}

/// The end of the pack after the last entry.
pub(super) struct PackTrailer {
    pub(super) trailer: Vec<u8>,
    /// Bytes after the pack that had already been read.
    pub(super) leftover: Vec<u8>,
    /// The length of the pack.
    pub(super) len: u64,
}

impl<'a> InputWindow<'a> {
    pub(super) fn new(
        input: &'a mut dyn Read,
        sink: &'a mut dyn SegmentSink,
        limit: Option<u64>,
    ) -> Self {
        let first = StreamSegment::new(sink.spare());
        InputWindow {
            input,
            sink,
            decoder: Box::new(Decoder::new(Format::Zlib)),
            segments: VecDeque::from([Arc::new(first)]),
            number: 0,
            at: 0,
            unsummed: 0,
            crc: None,
            offset: 0,
            stream_at: 0,
            limit,
            at_end: false,
            failure: None,
        }
    }

    /// Returns the number of parsed bytes of the stream.
    pub(super) fn offset(&self) -> u64 {
        self.offset
    }

    /// Returns the segment that is being parsed, its number, and the offset of the next byte.
    pub(super) fn here(&self) -> (&Arc<StreamSegment>, u64, usize) {
        (&self.segments[0], self.number, self.at)
    }

    /// Parses the next `N` bytes; `N` must be small.
    pub(super) fn take<const N: usize>(&mut self) -> Result<[u8; N], Error> {
        let mut bytes = [0; N];
        while self.gather(&mut bytes) < N {
            self.more()?;
        }
        self.skip(N)?;
        Ok(bytes)
    }

    /// Begins an entry: parses its header; the zlib stream follows.
    pub(super) fn begin_entry(&mut self, kind: Kind) -> Result<Entry, Error> {
        self.refill()?;
        self.crc = None;
        self.unsummed = self.at;
        let available = self.available();
        let entry = match Entry::parse(available, kind) {
            Err(error) if cut_short(&error, available.len()) => self.cut_header(kind)?,
            parsed => parsed?,
        };
        self.skip(entry.header_len)?;
        self.stream_at = self.offset;
        Ok(entry)
    }

    /// Parses a header that crosses the end of a segment or of the bytes read so far.
    #[cold]
    fn cut_header(&mut self, kind: Kind) -> Result<Entry, Error> {
        loop {
            let mut header = [0; MAX_HEADER_LEN];
            let len = self.gather(&mut header);
            match Entry::parse(&header[..len], kind) {
                Err(error) if cut_short(&error, len) => self.more()?,
                parsed => return parsed,
            }
        }
    }

    /// Ends the entry and returns its CRC-32.
    pub(super) fn end_entry(&mut self) -> u32 {
        let rest = &self.segments[0].bytes()[self.unsummed..self.at];
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
        let available = &self.segments[0].bytes()[self.at..];
        if !available.is_empty() {
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
                // The stream is incomplete or malformed; the streaming decoder finds out.
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

    /// Inflates the stream of the current entry, of `size` bytes, into a buffer that grows with the
    /// received bytes.
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

    /// Inflates the stream of the current entry, of `size` bytes, and passes it to `each` in
    /// pieces.
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

    /// Skips an entry of `len` bytes that is completely in the segment.
    pub(super) fn pass_entry(&mut self, len: usize) -> Result<(), Error> {
        debug_assert!(self.at + len <= self.segments[0].bytes().len());
        self.consume(len)
    }

    /// Reads the trailer. All preceding bytes are passed on. With `looks_on`, the leftover contains
    /// at least one byte, if there are bytes after the pack.
    pub(super) fn finish(
        mut self,
        trailer_len: usize,
        looks_on: bool,
    ) -> Result<PackTrailer, Error> {
        let mut trailer = vec![0; trailer_len];
        while self.gather(&mut trailer) < trailer_len {
            self.more()?;
        }
        let at = self.at;
        self.consume(trailer_len)?;
        let read = self.segments.iter().map(|segment| segment.bytes());
        let mut leftover = read.collect::<Vec<_>>().concat().split_off(self.at);
        if looks_on && leftover.is_empty() {
            let mut next = [0];
            let len = self.input.read(&mut next).unwrap_or(0);
            leftover.extend_from_slice(&next[..len]);
        }
        if let Some(first) = self.segments.pop_front().filter(|_| at > 0) {
            self.sink.take(first, at)?;
        }
        Ok(PackTrailer {
            trailer,
            leftover,
            len: self.offset,
        })
    }

    /// Reads ahead until there are `most` segments, or `ready` returns that a read may block.
    /// Complete segments are passed to `full`. An error is reported when its position is reached.
    pub(super) fn read_ahead(
        &mut self,
        most: usize,
        ready: &dyn Fn() -> bool,
        full: &mut dyn FnMut(&Arc<StreamSegment>),
    ) {
        while self.failure.is_none() && !self.at_end && ready() {
            let last = self.last();
            if !last.has_room() {
                if self.segments.len() == most {
                    return;
                }
                self.add_segment();
            }
            match self.read() {
                Ok(_) if self.at_end || !self.last().has_room() => {
                    if let (true, Some(last)) = (self.segments.len() > 1, self.segments.back()) {
                        full(last);
                    }
                }
                Ok(_) => {}
                Err(error) => self.failure = Some(error),
            }
        }
    }

    /// Inflates a piece of the current stream to `out`.
    fn piece(&mut self, out: &mut [u8]) -> Result<InflatedPiece, Error> {
        self.refill()?;
        let available = &self.segments[0].bytes()[self.at..];
        let progress = match self.decoder.decompress(available, out, false) {
            Ok(progress) => progress,
            Err(InflateError::BufferFull) => return Err(wrong_size(true)),
            Err(error) => {
                let start = (self.offset == self.stream_at).then_some(available);
                return Err(broken(error, start));
            }
        };
        let piece = InflatedPiece {
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
                ErrorKind::PackTooLarge,
                format!("pack exceeds maximum allowed size ({limit})"),
            )),
            _ => Ok(()),
        }
    }

    /// Returns the part of the first segment that is not parsed yet.
    fn available(&self) -> &[u8] {
        &self.segments[0].bytes()[self.at..]
    }

    /// Copies the next bytes to `out`, as far as they have been read. Returns their number.
    fn gather(&self, out: &mut [u8]) -> usize {
        let rest = self.segments.iter().skip(1).map(|segment| segment.bytes());
        let mut len = 0;
        for bytes in std::iter::once(self.available()).chain(rest) {
            let part = bytes.len().min(out.len() - len);
            out[len..len + part].copy_from_slice(&bytes[..part]);
            len += part;
        }
        len
    }

    /// Skips bytes that have been read, across segments.
    fn skip(&mut self, mut len: usize) -> Result<(), Error> {
        while len > self.available().len() {
            let part = self.available().len();
            self.consume(part)?;
            self.hand_on()?;
            len -= part;
        }
        self.consume(len)
    }

    /// Ensures that the next byte is in the first segment.
    fn refill(&mut self) -> Result<(), Error> {
        while self.available().is_empty() {
            if self.segments.len() > 1 {
                self.hand_on()?;
            } else {
                self.more()?;
            }
        }
        Ok(())
    }

    /// Reads at least one more byte.
    fn more(&mut self) -> Result<(), Error> {
        if let Some(error) = self.failure.take() {
            return Err(self.unreadable(error));
        }
        if !self.at_end {
            if !self.last().has_room() {
                self.add_segment();
            }
            self.read().map_err(|error| self.unreadable(error))?;
        }
        if self.at_end {
            return Err(early_end());
        }
        Ok(())
    }

    fn last(&self) -> &StreamSegment {
        &self.segments[self.segments.len() - 1]
    }

    fn add_segment(&mut self) {
        let segment = StreamSegment::new(self.sink.spare());
        self.segments.push_back(Arc::new(segment));
    }

    /// Reads once into the last segment, which must have space. No other thread has this segment
    /// yet.
    fn read(&mut self) -> std::io::Result<()> {
        let last = self.segments.back_mut().and_then(Arc::get_mut);
        let last = last.expect("a segment with room is not shared");
        loop {
            match self.input.read(last.room()) {
                Ok(len) => {
                    last.add(len);
                    self.at_end = len == 0;
                    return Ok(());
                }
                Err(error) if error.kind() == IoKind::Interrupted => {}
                Err(error) => return Err(error),
            }
        }
    }

    #[cold]
    fn unreadable(&self, error: std::io::Error) -> Error {
        let error = Error::new(ErrorKind::Io, "read error on input").because(error);
        error.at_offset(self.offset)
    }

    /// Passes the first segment, which is parsed completely, to the writer, and continues in the
    /// next one.
    fn hand_on(&mut self) -> Result<(), Error> {
        let Some(first) = self.segments.pop_front() else {
            return Ok(());
        };
        let summed = &first.bytes()[self.unsummed.min(self.at)..self.at];
        self.crc
            .get_or_insert_with(crc32fast::Hasher::new)
            .update(summed);
        let len = first.bytes().len();
        (self.at, self.unsummed) = (0, 0);
        self.number += 1;
        self.sink.take(first, len)
    }
}

/// The result of one step of inflation.
struct InflatedPiece {
    done: bool,
    /// Whether the buffer is full, so that inflation needs more space.
    full: bool,
    /// The number of inflated bytes.
    len: usize,
}

/// Returns whether `error` can be caused by a header that was cut off at `len` bytes, although more
/// bytes exist.
fn cut_short(error: &Error, len: usize) -> bool {
    error.kind() == ErrorKind::Truncated && len < MAX_HEADER_LEN
}

#[cold]
fn early_end() -> Error {
    Error::new(ErrorKind::Truncated, "early EOF")
}

/// Returns the error for a stream that is longer or shorter than its header declares.
#[cold]
fn wrong_size(longer: bool) -> Error {
    // The message is Git's, which contains the return code of zlib.
    let returned = if longer { -5 } else { 1 };
    let size = "corrupt pack: an inflated object has another size than its header records";
    Error::new(ErrorKind::Inflate, format!("inflate returned {returned}")).with_hint(size)
}

/// Returns the error for a malformed stream; `start` is the beginning of the stream, if inflation
/// failed there.
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
    Error::new(ErrorKind::Inflate, "inflate returned -3").because(format!("inflate: {reason}"))
}
