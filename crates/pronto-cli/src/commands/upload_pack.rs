//! `upload-pack`: serve a fetch on the standard streams.

use std::ffi::OsString;
use std::fs::File;
use std::io;
use std::os::fd::AsFd;
use std::path::Path;

use pronto::upload_pack::relay::{Server, go_on};
use pronto::upload_pack::{CORRUPTION, Ended, can_serve, find, requested_version, serve};
use pronto::{ErrorKind, Watch};

use crate::{CliError, Context, ExitCode, fallback};

/// Arguments of `upload-pack`.
#[derive(clap::Args, Debug)]
pub(crate) struct Args {
    /// The repository to serve
    #[arg(value_name = "DIRECTORY")]
    directory: Vec<OsString>,
}

pub(crate) fn run(args: &Args, context: &mut Context) -> Result<ExitCode, CliError> {
    let [directory] = &args.directory[..] else {
        return Err(CliError::unsupported("'upload-pack' without one directory"));
    };
    if directory.as_encoded_bytes().starts_with(b"~") {
        return Err(CliError::unsupported("'upload-pack' of a home directory"));
    }
    let environment = context.environment()?;
    // Git words the error of opening it.
    let elsewhere = |_| CliError::unsupported("a repository that 'upload-pack' cannot open");
    let repository = find(Path::new(directory), &environment).map_err(elsewhere)?;
    context.check_config(repository.config())?;
    if !can_serve(&repository)? {
        return Err(CliError::unsupported("'upload-pack' in this repository"));
    }
    let version = requested_version(environment.bytes("GIT_PROTOCOL"));
    let mut input = stream(&io::stdin())?;
    let mut output = stream(&io::stdout())?;
    let ended = serve(
        &repository,
        &mut input,
        &mut output,
        version,
        &Watch::from(&context.interrupt),
    );
    let ended = ended.map_err(|error| match error.kind() {
        ErrorKind::Object => {
            context.remark(&format!("fatal: {error}"));
            context.report_error("git upload-pack: git-pack-objects died with error.");
            CliError::fatal(format!("git upload-pack: {CORRUPTION}"))
        }
        _ => error.into(),
    });
    match ended? {
        Ended::Served => Ok(ExitCode::SUCCESS),
        Ended::Unanswered(request) => {
            let git = fallback::git(&context.globals)?;
            let server = Server {
                program: git.program.into(),
                arguments: vec!["upload-pack".into(), directory.clone()],
                variables: git.variables,
            };
            let status = go_on(&server, &request, input, &mut output)?;
            match status.success() {
                true => Ok(ExitCode::SUCCESS),
                // The error has been printed.
                false => Err(CliError::silent(ExitCode::FATAL)),
            }
        }
    }
}

/// Returns a standard stream without the shared buffer.
fn stream(stream: &impl AsFd) -> Result<File, CliError> {
    Ok(stream.as_fd().try_clone_to_owned()?.into())
}
