//! `upload-pack`: serve a fetch on the standard streams.

use std::ffi::OsString;
use std::fs::File;
use std::io;
use std::os::fd::AsFd;
use std::path::Path;
use std::time::Duration;

use pronto::upload_pack::{
    ConversationEnd, Options, UploadStreams, advertise, answer, find_to_send, requested_version,
};
use pronto::{ErrorKind, Watch};

use rustix::process::Signal;

use super::patience::{ClientTimeouts, WatchedStream, watch};
use crate::terminal::text::write_foreign_to_stderr;
use crate::{CliError, Context, ExitCode};

/// Arguments of `upload-pack`.
#[derive(clap::Args, Debug)]
pub(crate) struct Args {
    /// Quit after a single request and response
    #[arg(long, overrides_with = "no_stateless_rpc")]
    stateless_rpc: bool,
    #[arg(long, hide = true, overrides_with = "stateless_rpc")]
    no_stateless_rpc: bool,
    /// Write the refs or capabilities only, for an HTTP server
    #[arg(long, overrides_with = "no_advertise_refs")]
    advertise_refs: bool,
    #[arg(long, hide = true, overrides_with = "advertise_refs")]
    no_advertise_refs: bool,
    /// The same under the name by which git calls it
    #[arg(long, hide = true)]
    http_backend_info_refs: bool,
    /// Do not look for a repository inside the directory
    #[arg(long, overrides_with = "no_strict")]
    strict: bool,
    #[arg(long, hide = true, overrides_with = "strict")]
    no_strict: bool,
    /// End after this number of seconds in which the client does nothing
    #[arg(long, value_name = "SECONDS")]
    timeout: Option<OsString>,
    /// The repository to serve
    #[arg(value_name = "DIRECTORY")]
    directory: Vec<OsString>,
}

pub(crate) fn run(args: &Args, context: &mut Context) -> Result<ExitCode, CliError> {
    let [directory] = &args.directory[..] else {
        return Err(CliError::unsupported(
            "'upload-pack' without exactly one directory",
        ));
    };
    let seconds = seconds(args)?;
    let environment = context.environment()?;
    let path = Path::new(directory);
    let found = find_to_send(path, args.strict, &environment);
    let mut repository = found.map_err(|error| match error.kind() {
        ErrorKind::Unsupported => {
            CliError::unsupported("'upload-pack' in a repository with these extensions")
        }
        _ => error.into(),
    })?;
    context.check_opened(&mut repository)?;
    let mut options = Options::default();
    options.version = requested_version(environment.bytes("GIT_PROTOCOL"));
    let only_advertises = args.advertise_refs || args.http_backend_info_refs;
    options.is_stateless = args.stateless_rpc || only_advertises;
    options.is_daemon = seconds > 0;
    if let Some(agent) = environment.bytes("GIT_USER_AGENT") {
        options.agent = printable(agent).into();
    }
    options.session_id = environment.session_id().map(Into::into);
    let mut output = stream(&io::stdout())?;
    if only_advertises {
        advertise(&repository, &options, &mut output)?;
        return Ok(ExitCode::SUCCESS);
    }
    let mut input = stream(&io::stdin())?;
    let watching = Watch::from(&context.interrupt);
    // As in Git, a timeout ends the process with SIGALRM.
    let patience = (seconds > 0).then(|| {
        watch(ClientTimeouts {
            silence: Duration::from_secs(u64::from(seconds)),
            whole: None,
            signal: Signal::ALARM,
        })
    });
    let ended = match &patience {
        None => {
            let streams = UploadStreams {
                input: &mut input,
                output: &mut output,
            };
            answer(&repository, &options, streams, &watching)
        }
        Some(patience) => {
            let streams = UploadStreams {
                input: &mut WatchedStream::new(input, patience),
                output: &mut WatchedStream::new(output, patience),
            };
            answer(&repository, &options, streams, &watching)
        }
    };
    match ended? {
        ConversationEnd::Served => Ok(ExitCode::SUCCESS),
        ConversationEnd::Refused(message) => {
            Err(CliError::error(message.to_string()).with_code(ExitCode::FATAL))
        }
        ConversationEnd::Aborted(text) => {
            write_foreign_to_stderr(&text)?;
            Err(CliError::silent(ExitCode::FATAL))
        }
    }
}

/// Returns the idle timeout of the client in seconds (`--timeout`); 0 is no limit.
fn seconds(args: &Args) -> Result<u32, CliError> {
    match &args.timeout {
        None => Ok(0),
        Some(text) => {
            let number = text.to_str().and_then(|text| text.parse::<u32>().ok());
            number.ok_or_else(|| CliError::unsupported("this value of '--timeout'"))
        }
    }
}

/// Replaces the bytes of an agent name that are not printable.
fn printable(agent: &[u8]) -> Vec<u8> {
    let safe = |byte: &u8| if byte.is_ascii_graphic() { *byte } else { b'.' };
    agent.trim_ascii().iter().map(safe).collect()
}

/// Duplicates a standard stream as a file without a buffer.
fn stream(stream: &impl AsFd) -> Result<File, CliError> {
    Ok(stream.as_fd().try_clone_to_owned()?.into())
}
