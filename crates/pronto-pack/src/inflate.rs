//! Inflates the zlib streams of a pack, whose inflated size is known and whose deflated size is
//! unknown.

use crate::error::{Error, ErrorKind};
use sirocco::Format;
use sirocco::inflate::Decoder;

/// The largest ratio of inflated to deflated bytes in DEFLATE.
const MAX_RATIO: u64 = 1032;

/// Inflates one stream after another, and reuses its tables (14 KiB, allocated once).
pub struct Inflater {
    decoder: Box<Decoder>,
}

impl Default for Inflater {
    fn default() -> Self {
        Self::new()
    }
}

impl Inflater {
    /// Returns an inflater. Costs one allocation; each thread should create one inflater and reuse
    /// it.
    pub fn new() -> Self {
        Inflater {
            decoder: Box::new(Decoder::new(Format::Zlib)),
        }
    }

    /// Inflates the zlib stream at the start of `input`, whose inflated size is exactly `size`
    /// bytes, to `out`, replacing its content. Returns the number of consumed bytes of `input`. A
    /// `size` that is impossible for so little input is refused before memory is allocated.
    ///
    /// # Errors
    /// Fails with `ErrorKind::Truncated` if `input` ends before the stream, and with
    /// `ErrorKind::Corrupt` if the stream is malformed or has another size; `out` is then
    /// unspecified.
    pub fn inflate(&mut self, input: &[u8], size: u64, out: &mut Vec<u8>) -> Result<usize, Error> {
        check_claim(input.len(), size)?;
        let size = usize::try_from(size).map_err(|_| too_large())?;
        crate::delta::make_room(out, size);
        self.inflate_into(input, out)
    }

    /// Inflates the zlib stream at the start of `input`, which must fill `out` exactly. Returns the
    /// number of consumed bytes of `input`.
    ///
    /// # Errors
    /// Fails as [`inflate`](Self::inflate) does.
    #[inline]
    pub fn inflate_into(&mut self, input: &[u8], out: &mut [u8]) -> Result<usize, Error> {
        let size = out.len();
        match self.decoder.decompress(input, out, true) {
            Ok(progress) if progress.done && progress.output.len() == size => Ok(progress.consumed),
            Ok(_) => {
                self.decoder.reset();
                Err(wrong_size())
            }
            Err(error) => {
                self.decoder.reset();
                Err(failed(error))
            }
        }
    }

    /// Inflates the zlib stream at the start of `input` until `out` is full or the stream ends.
    /// Returns the number of bytes in `out`. Damage in the rest of the stream is not detected.
    ///
    /// # Errors
    /// Fails as [`inflate`](Self::inflate) does.
    pub fn inflate_start(&mut self, input: &[u8], out: &mut [u8]) -> Result<usize, Error> {
        self.decoder.reset();
        let result = match self.decoder.decompress(input, out, true) {
            Ok(progress) => Ok(progress.output.len()),
            Err(error) => Err(failed(error)),
        };
        self.decoder.reset();
        result
    }
}

/// Fails if `input_len` bytes cannot inflate to `size` bytes.
pub(crate) fn check_claim(input_len: usize, size: u64) -> Result<(), Error> {
    if size / MAX_RATIO > input_len as u64 {
        return Err(Error::new(
            ErrorKind::Truncated,
            "truncated pack: incomplete deflated object",
        ));
    }
    Ok(())
}

#[cold]
fn wrong_size() -> Error {
    Error::new(
        ErrorKind::Corrupt,
        "corrupt pack: an inflated object has another size than its header records",
    )
}

#[cold]
fn too_large() -> Error {
    Error::new(
        ErrorKind::Limit,
        "object is too large for the memory of this machine",
    )
}

#[cold]
fn failed(error: sirocco::inflate::Error) -> Error {
    use sirocco::inflate::Error as Inflate;
    match error {
        Inflate::Truncated => Error::new(
            ErrorKind::Truncated,
            "truncated pack: incomplete deflated object",
        ),
        Inflate::BufferFull | Inflate::InsufficientSpace => wrong_size(),
        other => Error::new(ErrorKind::Corrupt, "inflate returned an error").because(other),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use sirocco::deflate::Level;

    fn deflate(content: &[u8]) -> Vec<u8> {
        sirocco::compress(Format::Zlib, Level::DEFAULT, content)
    }

    #[test]
    fn sizes_and_ends_are_found() {
        let mut inflater = Inflater::new();
        let mut out = Vec::new();
        for len in [0usize, 1, 2, 17, 300, 5000, 100_000] {
            let content: Vec<u8> = (0..len).map(|at| ((at * at) >> 3) as u8).collect();
            let mut stream = deflate(&content);
            let stream_len = stream.len();
            stream.extend_from_slice(b"what follows");
            let used = inflater
                .inflate(&stream, len as u64, &mut out)
                .expect("it is whole");
            assert_eq!((used, &out), (stream_len, &content));
            for size in [len.wrapping_sub(1), len + 1, len + 1000] {
                let error = inflater
                    .inflate(&stream, size as u64, &mut out)
                    .expect_err("not of that size");
                assert!(
                    matches!(error.kind(), ErrorKind::Corrupt | ErrorKind::Truncated),
                    "{error}"
                );
            }
            for end in 0..stream_len.min(200) {
                inflater
                    .inflate(&stream[..end], len as u64, &mut out)
                    .expect_err("it is cut");
            }
            let mut start = [0; 16];
            let got = inflater
                .inflate_start(&stream, &mut start)
                .expect("it starts well");
            assert_eq!(start[..got], content[..len.min(16)]);
        }
    }

    #[test]
    fn an_absurd_size_allocates_nothing() {
        let mut out = Vec::new();
        let error = Inflater::new()
            .inflate(&deflate(b"small"), u64::MAX, &mut out)
            .expect_err("it is not that large");
        assert_eq!(error.kind(), ErrorKind::Truncated);
        assert_eq!(out.capacity(), 0);
    }
}
