//! `serve` in the program `pronto-server`: chooses the service by the options, and serves netsync
//! with a single peer.

use std::ffi::OsString;
use std::fs::File;
use std::io;
use std::os::fd::AsFd as _;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use pronto::{Repository, upload_pack};
use pronto_netsync::message::{Hello, TransferRole};
use pronto_netsync::repository::RefMatcher;
use pronto_netsync::session::{Options, PeerPermissions, SyncSession};
use pronto_netsync::{Error, ErrorKind};
use pronto_peer::{self as netsync, PeerRepository, PipePair, SessionWatch, drive};

use super::{Args, git, listen};
use crate::commands::peers::{BUDGET_BYTES, PATIENCE, default_globs, failure};
use crate::{CliError, Context, ExitCode};

/// The timeout for the greeting of a peer.
const GREETING_PATIENCE: Duration = Duration::from_secs(60);

pub(crate) fn run(args: &Args, context: &mut Context) -> Result<ExitCode, CliError> {
    if let Some(manage) = &args.manage {
        return manage.run(args, context);
    }
    let is_alone = args.netsync.as_deref() == Some("");
    match (is_alone, args.stdio, &args.listen, &args.peer) {
        (true, true, None, Some(peer)) => stdio(args, peer, context),
        (true, false, Some(address), None) => listen::run(args, address, context),
        (false, false, _, None) => git::run(args, context),
        _ => Err(CliError::usage(
            "serve --netsync needs an address (--netsync=HOST:PORT), --stdio and --peer NAME, or --listen \
             HOST:PORT",
        )),
    }
}

/// Serves one peer on the standard streams: the process that has started this process.
fn stdio(args: &Args, peer: &str, context: &mut Context) -> Result<ExitCode, CliError> {
    let repository = find(args.directory.as_ref(), context)?;
    let mut options = Options::default();
    options.nonce = netsync::nonce()?;
    options.globs = default_globs();
    options.allows_unrelated = args.allow_unrelated;
    let mut ours = netsync::Options::new(peer.to_owned(), BUDGET_BYTES);
    ours.fast_forward = args.ff;
    ours.threads = 1;
    let interrupt = context.interrupt.clone();
    let admit = move |_: &Hello| -> Result<PeerPermissions<PeerRepository>, Error> {
        let repository = PeerRepository::new(repository, ours, interrupt)?;
        Ok(PeerPermissions {
            object_format: repository.object_format(),
            repository,
            role: TransferRole::Both,
            limits: RefMatcher::default(),
        })
    };
    let mut session = SyncSession::respond(options, Box::new(admit));
    let own = |stream: io::Result<std::os::fd::OwnedFd>| {
        let stream = stream
            .map_err(|error| CliError::of_system("cannot use standard input or output", &error));
        stream.map(File::from)
    };
    let mut input = own(io::stdin().as_fd().try_clone_to_owned())?;
    let mut output = own(io::stdout().as_fd().try_clone_to_owned())?;
    let mut watch = SessionWatch {
        report: &mut |_| {},
        interrupt: &context.interrupt,
        keep: &|_| Ok(()),
        patience: PATIENCE,
        greeting_patience: GREETING_PATIENCE,
    };
    let mut pipes = PipePair {
        input: &mut input,
        output: &mut output,
    };
    match drive(&mut session, &mut pipes, &mut watch) {
        Ok(()) => Ok(ExitCode::SUCCESS),
        // The peer prints its error itself. Only errors of this side are printed.
        Err(error) if matches!(error.kind(), ErrorKind::Repository) => Err(failure(&error)),
        Err(_) => Err(CliError::silent(ExitCode::FATAL)),
    }
}

/// Returns the repository in `directory`. Does not search parent directories, and refuses
/// repositories of other users, whose hooks would run.
pub(super) fn find(
    directory: Option<&OsString>,
    context: &mut Context,
) -> Result<Arc<Repository>, CliError> {
    let Some(directory) = directory else {
        return context.repository();
    };
    let environment = context.environment()?;
    let found = upload_pack::find(Path::new(directory), &environment)?;
    context.check_found(&found)?;
    Ok(Arc::new(found))
}
