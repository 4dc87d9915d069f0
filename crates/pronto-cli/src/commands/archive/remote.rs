//! Fetches archives from another machine: `archive --remote`.

use std::fs::OpenOptions;
use std::io::{self, Write};

use bstr::{BStr, BString, ByteSlice};
use pronto::archive::Formats;
use pronto::remote::connection::{self, Settings};
use pronto::remote_archive::{self, RemoteArchiveEnd};
use pronto::{Watch, path};

use super::super::ls_remote::CallContext;
use super::{ArchiveCall, StandardOutput, not_opened};
use crate::{CliError, Context, ExitCode};

/// The exit code for an archive that the server could not make.
const FAILED: ExitCode = ExitCode::FAILURE;

/// The program that serves archives, unless `--exec` names another one.
const PROGRAM: &str = "git-upload-archive";

/// Fetches the archive of a call with `--remote`.
pub(super) fn run(outer: &ArchiveCall, context: &mut Context) -> Result<ExitCode, CliError> {
    // The connection obeys the same settings as that of `ls-remote`.
    context.obey_as("ls-remote")?;
    let place = CallContext::find(context)?;
    let environment = &place.environment;
    let remote = place.remote(outer.remote.as_ref().map(|name| name.as_bstr()))?;
    let url = remote.url().map_err(CliError::of)?.to_owned();
    let settings = Settings::default().for_remote(&remote, &place.config)?;
    connection::check(url.as_bstr(), &settings, &place.config, environment)
        .map_err(CliError::of)?;
    let arguments = arguments(outer, &place)?;
    let mut output =
        ArchiveDestination::open(outer.output.as_ref().map(|name| name.as_bstr()), &place)?;
    let is_web = url.starts_with(b"http://") || url.starts_with(b"https://");
    if is_web && outer.program.as_ref().is_some_and(|given| given != PROGRAM) {
        context.warn("setting remote service path not supported by protocol");
    }
    let progress = context.progress(Some(false), false);
    let watch = Watch::from(&context.interrupt).with_progress(&*progress);
    let mut call = remote_archive::ArchiveRequest::new(&arguments, &place.config, environment);
    call.program = outer.program.as_ref();
    let ended = remote_archive::fetch_archive(&remote, &call, &mut output, &watch);
    match ended.map_err(CliError::of)? {
        RemoteArchiveEnd::Complete => {
            output.finish()?;
            Ok(ExitCode::SUCCESS)
        }
        RemoteArchiveEnd::Failed(text) if !text.is_empty() => {
            context.remark(&text);
            Ok(FAILED)
        }
        _ => Ok(FAILED),
    }
}

/// Returns the arguments for the server. The format that follows from the suffix of the file is the
/// first of them, so that `--format` overrides it.
fn arguments(outer: &ArchiveCall, place: &CallContext) -> Result<Vec<BString>, CliError> {
    let formats = Formats::configured(&place.config).map_err(CliError::of)?;
    let output = outer.output.as_ref().map(|name| name.as_bstr());
    let format = output.and_then(|output| formats.of_file(output));
    let format = format.map(|format| BString::from(format!("--format={}", format.name())));
    Ok(format.into_iter().chain(outer.rest.clone()).collect())
}

/// The output of the archive. An existing file is truncated only when the first content arrives, so
/// a failed request keeps the old file.
struct ArchiveDestination {
    output: StandardOutput,
    /// Whether the file still has its old content.
    is_old: bool,
}

impl ArchiveDestination {
    fn open(output: Option<&BStr>, place: &CallContext) -> Result<Self, CliError> {
        let Some(name) = output else {
            return Ok(ArchiveDestination {
                output: StandardOutput::new()?,
                is_old: false,
            });
        };
        let target = place.environment.absolute(path::borrow(name));
        let mut options = OpenOptions::new();
        let opened = options
            .write(true)
            .create(true)
            .truncate(false)
            .open(target);
        let file = opened.map_err(|error| not_opened(name, &error))?;
        let is_file = file.metadata().is_ok_and(|metadata| metadata.is_file());
        Ok(ArchiveDestination {
            output: StandardOutput::over(file),
            is_old: is_file,
        })
    }

    fn empty(&mut self) -> io::Result<()> {
        match std::mem::take(&mut self.is_old) {
            true => self.output.file().set_len(0),
            false => Ok(()),
        }
    }

    fn finish(mut self) -> io::Result<()> {
        self.empty()
    }
}

impl Write for ArchiveDestination {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.empty()?;
        self.output.write(bytes)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.output.flush()
    }
}
