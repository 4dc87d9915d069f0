//! `upload-archive`: serve an archive on the standard streams.

use std::ffi::OsString;
use std::fs::File;
use std::io;
use std::os::fd::AsFd;
use std::path::Path;

use pronto::upload_archive::{ArchiveRequestEnd, ArchiveStreams, Options, serve};
use pronto::{Environment, Error, ErrorKind, Repository, Watch, path, receive_pack};

use crate::terminal::text::write_foreign_to_stderr;
use crate::{CliError, Context, ExitCode};

/// Arguments of `upload-archive`.
#[derive(clap::Args, Debug)]
pub(crate) struct Args {
    /// The repository to serve
    #[arg(value_name = "DIRECTORY")]
    directory: Vec<OsString>,
}

pub(crate) fn run(args: &Args, context: &mut Context) -> Result<ExitCode, CliError> {
    let [directory] = &args.directory[..] else {
        return Err(CliError::unsupported(
            "'upload-archive' without exactly one directory",
        ));
    };
    let environment = context.environment()?;
    let found = find(Path::new(directory), &environment);
    let repository = match found {
        Err(error) if error.kind() == ErrorKind::Unsupported => return Err(CliError::of(error)),
        Err(error) => Err(error),
        Ok(repository) => {
            context.check_found(&repository)?;
            // Paths in settings are relative to the repository.
            std::env::set_current_dir(repository.git_dir()).map_err(|error| {
                CliError::fatal(format!(
                    "cannot change to the directory of the repository: {error}"
                ))
            })?;
            // Malformed settings are reported to the client, like other errors.
            let checked = context.check_values_of("archive", repository.config());
            checked
                .map_err(|error| error.to_report(ErrorKind::ConfigValue))
                .map(|()| repository)
        }
    };
    let streams = ArchiveStreams {
        input: &mut stream(&io::stdin())?,
        output: &mut stream(&io::stdout())?,
    };
    let watch = Watch::from(&context.interrupt);
    let repository = repository.as_ref().map_err(|error| {
        // The original error is returned to the caller.
        let copy = Error::new(error.kind(), error.to_string());
        match error.reported_before() {
            Some(earlier) => copy.reported_after(earlier),
            None => copy,
        }
    });
    match serve(repository, &Options::default(), streams, &watch)? {
        ArchiveRequestEnd::Served => Ok(ExitCode::SUCCESS),
        ArchiveRequestEnd::Failed { line, .. } => {
            write_foreign_to_stderr(&line)?;
            Err(CliError::silent(ExitCode::FATAL))
        }
        _ => Err(CliError::silent(ExitCode::FATAL)),
    }
}

/// Opens the repository at `path`. `~` and `~USER` are expanded to home directories.
fn find(path: &Path, environment: &Environment) -> Result<Repository, Error> {
    let given = path.as_os_str().as_encoded_bytes();
    let expanded = match given.starts_with(b"~") {
        true => path::expand_user(given, environment.home()),
        false => None,
    };
    receive_pack::find(expanded.as_deref().unwrap_or(path), environment)
}

/// Duplicates a standard stream as a file without a buffer.
fn stream(stream: &impl AsFd) -> Result<File, CliError> {
    Ok(stream.as_fd().try_clone_to_owned()?.into())
}
