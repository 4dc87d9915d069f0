//! `receive-pack`: serve a push on the standard streams.

use std::ffi::OsString;
use std::fs::File;
use std::io;
use std::os::fd::AsFd;
use std::path::Path;

use pronto::Watch;
use pronto::receive_pack::{Options, ReceiveStreams, can_serve, find, serve};
use pronto::upload_pack::requested_version;

use crate::maintenance::maintain_elsewhere;
use crate::{CliError, Context, ExitCode};

/// Arguments of `receive-pack`.
#[derive(clap::Args, Debug)]
pub(crate) struct Args {
    /// Send no progress
    #[arg(short, long)]
    quiet: bool,
    /// Serve one request of a connection over HTTP
    #[arg(long)]
    stateless_rpc: bool,
    /// Only advertise refs, for the first request over HTTP
    #[arg(long, alias = "advertise-refs")]
    http_backend_info_refs: bool,
    /// Trust that received objects are complete
    #[arg(long)]
    skip_connectivity_check: bool,
    /// Refuse thin packs
    #[arg(long, hide = true)]
    reject_thin_pack_for_testing: bool,
    /// The repository to push to
    #[arg(value_name = "DIRECTORY")]
    directory: Vec<OsString>,
}

pub(crate) fn run(args: &Args, context: &mut Context) -> Result<ExitCode, CliError> {
    let [directory] = &args.directory[..] else {
        return Err(CliError::unsupported(
            "'receive-pack' without exactly one directory",
        ));
    };
    if directory.as_encoded_bytes().starts_with(b"~") {
        return Err(CliError::unsupported(
            "'receive-pack' with a directory that begins with '~'",
        ));
    }
    let environment = context.environment()?;
    // git reports in its own words that the repository cannot be opened.
    let elsewhere =
        |_| CliError::unsupported("'receive-pack' in a repository that cannot be opened");
    let found = find(Path::new(directory), &environment).map_err(elsewhere)?;
    let mut repository = context.receive_notices(found);
    context.check_opened(&mut repository)?;
    if !can_serve(&repository)? {
        return Err(CliError::unsupported(
            "'receive-pack' into a grafted repository, a partial clone, or with \
             core.sharedRepository",
        ));
    }
    let program = crate::programs::own()?;
    let mut options = Options::new(program);
    options.version = requested_version(environment.bytes("GIT_PROTOCOL"));
    options.advertises = args.http_backend_info_refs || !args.stateless_rpc;
    options.receives = !args.http_backend_info_refs;
    options.quiet = args.quiet;
    options.service = Some(directory.as_encoded_bytes().into());
    options.session_id = environment.session_id().map(Into::into);
    options.trusts_links = args.skip_connectivity_check;
    options.refuses_thin = args.reject_thin_pack_for_testing;
    // Paths in settings are relative to the repository.
    std::env::set_current_dir(repository.git_dir()).map_err(|error| {
        CliError::fatal(format!(
            "cannot change to the directory of the repository: {error}"
        ))
    })?;
    let mut input = stream(&io::stdin())?;
    let mut output = stream(&io::stdout())?;
    let streams = ReceiveStreams {
        input: &mut input,
        output: &mut output,
    };
    let repository = context.take(repository);
    let served = serve(
        &repository,
        &options,
        streams,
        &Watch::from(&context.interrupt),
    )?;
    if served.maintains {
        context.report();
        maintain_elsewhere(&repository, context)?;
    }
    Ok(ExitCode::SUCCESS)
}

/// Duplicates a standard stream as a file without a buffer.
fn stream(stream: &impl AsFd) -> Result<File, CliError> {
    Ok(stream.as_fd().try_clone_to_owned()?.into())
}
