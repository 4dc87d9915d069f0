//! Reads a possibly damaged pack, and inflates its streams like zlib does.

use std::io::Read;

use pronto_hash::{Kind, TrailerDigester};
use zlib_rs::{Inflate, InflateError, InflateFlush, Status};

use super::Damage;
use crate::error::{Error, ErrorKind};

/// The number of bytes that are read at once, as in Git. Bytes after the end of the pack are
/// returned to the caller.
const BUFFER_BYTES: usize = 4096;

/// The window size of the zlib streams, in bits.
const WINDOW_BITS: u8 = 15;

/// The return code of zlib at the end of a stream.
pub(super) const STREAM_END: i32 = 1;
/// The return code of zlib if there is no output space or no input.
pub(super) const BUFFER_ERROR: i32 = -5;

/// The input with the bytes of the pack.
pub(super) struct Reader<'a> {
    input: &'a mut dyn Read,
    buffer: Box<[u8; BUFFER_BYTES]>,
    start: usize,
    end: usize,
    pub(super) consumed: u64,
    limit_bytes: Option<u64>,
    digester: TrailerDigester,
}

impl<'a> Reader<'a> {
    /// Returns a reader of at most `limit_bytes` of a pack with a checksum of `kind` from `input`.
    pub(super) fn new(input: &'a mut dyn Read, kind: Kind, limit_bytes: Option<u64>) -> Reader<'a> {
        Reader {
            input,
            buffer: Box::new([0; BUFFER_BYTES]),
            start: 0,
            end: 0,
            consumed: 0,
            limit_bytes,
            digester: TrailerDigester::new(kind),
        }
    }

    /// Returns the bytes that were read and not consumed, at least `least` bytes.
    pub(super) fn fill(&mut self, least: usize) -> Result<&[u8], Error> {
        if self.end - self.start < least {
            self.digester.update(&self.buffer[..self.start]);
            self.buffer.copy_within(self.start..self.end, 0);
            (self.start, self.end) = (0, self.end - self.start);
        }
        while self.end - self.start < least {
            match self.input.read(&mut self.buffer[self.end..]) {
                Ok(0) => return Err(Error::new(ErrorKind::Truncated, "early EOF")),
                Ok(len) => self.end += len,
                Err(error) if error.kind() == std::io::ErrorKind::Interrupted => {}
                Err(error) => {
                    return Err(Error::new(ErrorKind::Io, "read error on input").because(error));
                }
            }
        }
        Ok(&self.buffer[self.start..self.end])
    }

    pub(super) fn take(&mut self, len: usize) -> Result<(), Error> {
        self.start += len;
        self.consumed += len as u64;
        if self.limit_bytes.is_some_and(|limit| self.consumed > limit) {
            let message = "pack exceeds maximum allowed size";
            return Err(Error::new(ErrorKind::Limit, message));
        }
        Ok(())
    }

    pub(super) fn byte(&mut self) -> Result<u8, Error> {
        let byte = self.fill(1)?[0];
        self.take(1)?;
        Ok(byte)
    }

    /// Checks the trailing checksum. Returns the bytes that were read after it.
    pub(super) fn finish(mut self, kind: Kind) -> Result<Vec<u8>, Error> {
        self.digester.update(&self.buffer[..self.start]);
        let digest = std::mem::replace(&mut self.digester, TrailerDigester::new(kind)).finish();
        let len = kind.len_in_bytes();
        // From here on, bytes are not hashed any more.
        let found = self.fill(len)?[..len] == *digest.as_slice();
        if !found {
            return Err(Error::new(ErrorKind::Corrupt, "final sha1 did not match"));
        }
        self.take(len)?;
        Ok(self.buffer[self.start..self.end].to_vec())
    }
}

/// A zlib stream within the pack.
pub(super) struct ZlibStream<'a, 'b> {
    reader: &'a mut Reader<'b>,
    inflate: Inflate,
    /// The return code of zlib, if the stream has ended.
    pub(super) code: Option<i32>,
    /// The error because of which zlib rejects the stream.
    error: Option<InflateError>,
    /// The error of the [`Read`] of the pack.
    pub(super) failure: Option<Error>,
}

/// The result of inflating some bytes.
pub(super) struct InflateStep {
    pub(super) produced: usize,
    pub(super) code: Option<i32>,
}

impl<'a, 'b> ZlibStream<'a, 'b> {
    pub(super) fn new(reader: &'a mut Reader<'b>) -> ZlibStream<'a, 'b> {
        ZlibStream {
            reader,
            inflate: Inflate::new(true, WINDOW_BITS),
            code: None,
            error: None,
            failure: None,
        }
    }

    /// Inflates the available bytes, as far as `out` has space.
    pub(super) fn step(&mut self, out: &mut [u8]) -> Result<InflateStep, Error> {
        let input = self.reader.fill(1)?;
        let (taken, produced) = (self.inflate.total_in(), self.inflate.total_out());
        let result = self.inflate.decompress(input, out, InflateFlush::NoFlush);
        let taken = (self.inflate.total_in() - taken) as usize;
        let produced = (self.inflate.total_out() - produced) as usize;
        self.reader.take(taken)?;
        let code = match result {
            Ok(Status::Ok) => None,
            Ok(Status::StreamEnd) => Some(STREAM_END),
            Ok(Status::BufError) => Some(BUFFER_ERROR),
            Err(error) => {
                self.error = Some(error);
                Some(named(error).1)
            }
        };
        self.code = code.filter(|code| *code != BUFFER_ERROR);
        Ok(InflateStep { produced, code })
    }

    /// Returns the reason why zlib rejects the stream, if it does.
    pub(super) fn damage(&self) -> Option<Damage> {
        let error = named(self.error?).0;
        let reason = match self.inflate.error_message() {
            // The message of the port differs from zlib's for a distance beyond the window.
            Some("repeated call with bad state") => "invalid distance too far back",
            reason => reason.unwrap_or("no message"),
        };
        Some(Damage::Stream { error, reason })
    }
}

impl Read for ZlibStream<'_, '_> {
    fn read(&mut self, out: &mut [u8]) -> std::io::Result<usize> {
        let ended = || std::io::Error::from(std::io::ErrorKind::InvalidData);
        while !out.is_empty() {
            match self.code {
                None => {}
                Some(STREAM_END) => return Ok(0),
                Some(_) => return Err(ended()),
            }
            match self.step(out) {
                Ok(InflateStep { produced: 0, .. }) => {}
                Ok(step) => return Ok(step.produced),
                Err(error) => {
                    self.failure = Some(error);
                    return Err(ended());
                }
            }
        }
        Ok(0)
    }
}

/// Returns Git's name of the error, and its code.
fn named(error: InflateError) -> (&'static str, i32) {
    match error {
        InflateError::NeedDict { .. } => ("needs dictionary", 2),
        InflateError::StreamError => ("stream consistency error", -2),
        InflateError::DataError => ("data stream error", -3),
        InflateError::MemError => ("out of memory", -4),
    }
}
