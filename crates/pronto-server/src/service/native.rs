//! The services of crate `pronto`, with git for what they lack.

use std::io::{self, Read, Write};

use pronto::Watch;
use pronto::upload_pack::{self, Ended};
use pronto_wire::advertisement::Version;

use super::process::Git;
use super::push::{Judged, judge_request};
use super::{GitService, Judge, Request, Streams, broken};
use crate::{Error, ErrorKind, Result};

/// The services of crate `pronto`. A request that needs a feature which they lack goes to the program
/// `git`.
#[derive(Clone, Debug, Default)]
pub struct Native {
    git: Git,
}

impl GitService for Native {
    fn advertise_fetch(
        &self,
        request: &Request<'_>,
        output: &mut (dyn Write + Send),
    ) -> Result<()> {
        if !can_serve(request)? {
            return self.git.advertise(request, "upload-pack", output);
        }
        // A client that says nothing gets the advertisement alone.
        let mut input = io::empty();
        serve(request, &mut input, output).map(|_| ())
    }

    fn answer_fetch(&self, request: &Request<'_>, streams: Streams<'_>) -> Result<()> {
        // Versions 0 and 1 answer differently where a connection ends after each request.
        if request.version() != Version::V2 || !can_serve(request)? {
            return self.git.answer(request, "upload-pack", streams);
        }
        let Streams { input, output } = streams;
        let mut output = WithoutGreeting::new(output);
        match serve(request, &mut *input, &mut output)? {
            Ended::Served => Ok(()),
            Ended::Unanswered(bytes) => {
                let mut input = bytes.as_slice().chain(input);
                let streams = Streams {
                    input: &mut input,
                    output: output.inner,
                };
                self.git.answer(request, "upload-pack", streams)
            }
        }
    }

    fn serve_fetch(&self, request: &Request<'_>, streams: Streams<'_>) -> Result<()> {
        if !can_serve(request)? {
            return self.git.serve(request, streams);
        }
        let Streams { input, output } = streams;
        match serve(request, &mut *input, output)? {
            Ended::Served => Ok(()),
            Ended::Unanswered(bytes) => {
                let mut input = bytes.as_slice().chain(input);
                let mut output = WithoutGreeting::new(output);
                let streams = Streams {
                    input: &mut input,
                    output: &mut output,
                };
                self.git.serve(request, streams)
            }
        }
    }

    fn advertise_push(&self, request: &Request<'_>, output: &mut (dyn Write + Send)) -> Result<()> {
        self.git.advertise(request, "receive-pack", output)
    }

    fn answer_push(
        &self,
        request: &Request<'_>,
        judge: &dyn Judge,
        streams: Streams<'_>,
    ) -> Result<()> {
        let Streams { input, output } = streams;
        match judge_request(input, judge)? {
            Judged::Refused(report) => {
                output.write_all(&report).map_err(broken)?;
                output.flush().map_err(broken)
            }
            Judged::Allowed {
                read,
                forbids_force,
            } => {
                let mut input = read.as_slice().chain(input);
                let streams = Streams {
                    input: &mut input,
                    output,
                };
                self.git.receive(request, forbids_force, streams)
            }
        }
    }
}

fn can_serve(request: &Request<'_>) -> Result<bool> {
    upload_pack::can_serve(request.repository).map_err(failed)
}

fn serve(
    request: &Request<'_>,
    input: &mut dyn Read,
    output: &mut (dyn Write + Send),
) -> Result<Ended> {
    let version = request.version();
    let watch = Watch::from(request.interrupt);
    upload_pack::serve(request.repository, input, output, version, &watch).map_err(failed)
}

fn failed(error: pronto::Error) -> Error {
    let kind = match error.kind() {
        pronto::ErrorKind::Refused => ErrorKind::Malformed,
        _ => ErrorKind::Failed,
    };
    error.map_kind(|_| kind)
}

/// Discards what is written up to the first flush packet: an advertisement that the client has got
/// already.
struct WithoutGreeting<'a> {
    inner: &'a mut (dyn Write + Send),
    /// Bytes of the current packet that are still to be discarded, and the digits of its length.
    left: usize,
    length: Vec<u8>,
    is_over: bool,
}

impl<'a> WithoutGreeting<'a> {
    fn new(inner: &'a mut (dyn Write + Send)) -> Self {
        WithoutGreeting {
            inner,
            left: 0,
            length: Vec::new(),
            is_over: false,
        }
    }
}

impl Write for WithoutGreeting<'_> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        if self.is_over {
            return self.inner.write(bytes);
        }
        if self.left > 0 {
            let count = self.left.min(bytes.len());
            self.left -= count;
            return Ok(count);
        }
        let Some(digit) = bytes.first() else {
            return Ok(0);
        };
        self.length.push(*digit);
        if self.length.len() == 4 {
            let length = std::str::from_utf8(&self.length).ok();
            let length = length.and_then(|digits| usize::from_str_radix(digits, 16).ok());
            match length {
                Some(0) => self.is_over = true,
                Some(length) => self.left = length.saturating_sub(4),
                None => return Err(io::ErrorKind::InvalidData.into()),
            }
            self.length.clear();
        }
        Ok(1)
    }

    fn flush(&mut self) -> io::Result<()> {
        match self.is_over {
            true => self.inner.flush(),
            false => Ok(()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_greeting_is_left_out() {
        let mut out = Vec::new();
        let mut writer = WithoutGreeting::new(&mut out);
        for piece in ["00", "06a", "b0005c000", "0rest", " of it"] {
            writer.write_all(piece.as_bytes()).expect("it is taken");
        }
        assert_eq!(out, b"rest of it");
    }
}
