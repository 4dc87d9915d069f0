//! The services of crate `pronto`, with git for what they lack.

use std::io::{Read, Write};

use pronto::Watch;
use pronto::upload_pack::{self, Ended, Options};

use super::process::Git;
use super::push::{Judged, judge_request};
use super::{GitService, Judge, Request, Streams, broken};
use crate::{Error, ErrorKind, Result};

/// The services of crate `pronto`. Pushes go to the program `git`.
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
        let options = options(request, true);
        upload_pack::advertise(request.repository, &options, output).map_err(failed)
    }

    fn answer_fetch(&self, request: &Request<'_>, streams: Streams<'_>) -> Result<()> {
        answer(request, &options(request, true), streams)
    }

    fn serve_fetch(&self, request: &Request<'_>, streams: Streams<'_>) -> Result<()> {
        answer(request, &options(request, false), streams)
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

/// The form of the conversation that `request` starts.
fn options(request: &Request<'_>, is_stateless: bool) -> Options {
    let mut options = Options::default();
    options.version = request.version();
    options.is_stateless = is_stateless;
    options.is_daemon = true;
    options
}

fn answer(request: &Request<'_>, options: &Options, streams: Streams<'_>) -> Result<()> {
    let streams = upload_pack::Streams {
        input: streams.input,
        output: streams.output,
    };
    let watch = Watch::from(request.interrupt);
    let answered = upload_pack::answer(request.repository, options, streams, &watch);
    match answered.map_err(failed)? {
        Ended::Served => Ok(()),
        // The client was told.
        Ended::Refused(message) => Err(Error::new(ErrorKind::Malformed, message.to_string())),
        Ended::Aborted(message) => Err(Error::new(ErrorKind::Malformed, message.to_string())),
    }
}

fn failed(error: pronto::Error) -> Error {
    let kind = match error.kind() {
        pronto::ErrorKind::Refused => ErrorKind::Malformed,
        _ => ErrorKind::Failed,
    };
    error.map_kind(|_| kind)
}
