//! `serve`: serve repositories to clients of Git, or to peers.

mod git;
mod keys;
mod listen;
mod log;
mod manage;

use std::ffi::OsString;
use std::fs::File;
use std::io;
use std::os::fd::AsFd as _;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use pronto::{Repository, upload_pack};
use pronto_netsync::message::{Hello, Role};
use pronto_netsync::repository::Matcher;
use pronto_netsync::session::{Admission, Options, Session};
use pronto_netsync::{Error, ErrorKind};
use pronto_peer::{self as netsync, PeerRepository, Pipes, Watch, drive};

pub(super) use git::{failure as server_failure, native};

use super::peers::{BUDGET_BYTES, PATIENCE, default_globs, failure};
use crate::{CliError, Context, ExitCode};
use pronto_server::config::StoreRole;

/// The time that a peer may take for its greeting.
const GREETING_PATIENCE: Duration = Duration::from_secs(60);

/// Arguments of `serve`.
#[derive(clap::Args, Debug)]
pub(crate) struct Args {
    /// The repository, or a directory of repositories
    directory: Option<OsString>,
    #[command(subcommand)]
    manage: Option<manage::Manage>,
    /// Let the user 'owner' push and create repositories, with a token that is printed
    #[arg(long)]
    write: bool,
    /// Serve git://, for reading, at this address
    #[arg(long, value_name = "ADDRESS")]
    daemon: Option<String>,
    /// Serve SSH at this address. Without --config, for reading as the user 'anonymous'
    #[arg(long, value_name = "ADDRESS")]
    ssh: Option<String>,
    /// Serve HTTPS with this certificate chain (PEM)
    #[arg(long, value_name = "FILE")]
    tls_cert: Option<PathBuf>,
    /// The private key of the certificate (PEM)
    #[arg(long, value_name = "FILE")]
    tls_key: Option<PathBuf>,
    /// Read the configuration from this file
    #[arg(long, value_name = "FILE", global = true)]
    config: Option<PathBuf>,
    /// Serve the repositories of an object store: s3://BUCKET/PREFIX, gs://BUCKET/PREFIX,
    /// az://CONTAINER/PREFIX or file:///DIRECTORY
    #[arg(long, value_name = "URL", global = true)]
    store: Option<String>,
    /// With --store, keep generations in this database: postgres://USER@HOST/DATABASE. Needed for stores
    /// without conditional creation. The password is best kept in ~/.pgpass or PGPASSWORD
    #[arg(long, value_name = "URL", global = true)]
    generations: Option<String>,
    /// With --store, the directory for views and downloaded files; each server needs its own
    #[arg(long, value_name = "DIRECTORY", global = true)]
    cache: Option<PathBuf>,
    /// With --store: 'serve', 'upkeep' (pack repositories again and delete what has expired) or 'both',
    /// which is the default
    #[arg(long, value_name = "ROLE", value_parser = git::store_role)]
    role: Option<StoreRole>,
    /// Check the configuration, and that a store can be reached, and exit
    #[arg(long)]
    check: bool,
    /// Print the default configuration with comments, and exit
    #[arg(long)]
    print_config: bool,
    /// Serve netsync, in which both sides send and receive, at this address too. Without an address,
    /// serve only that: to one peer with --stdio, or to known peers with --listen
    #[arg(
        long,
        value_name = "HOST:PORT",
        num_args = 0..=1,
        require_equals = true,
        default_missing_value = ""
    )]
    netsync: Option<String>,
    /// Serve one peer on standard input and output, as started by 'sync'
    #[arg(long)]
    stdio: bool,
    /// Listen at this address; a free port of this machine without. With --netsync, serve known peers
    /// by TLS; 'netsync' manages the known peers
    #[arg(long, value_name = "HOST:PORT")]
    listen: Option<String>,
    /// With --stdio, the local name of the peer: its branches become refs/remotes/NAME/*
    #[arg(long, value_name = "NAME")]
    peer: Option<String>,
    /// Fast-forward branches to those of the peer, unless they are checked out
    #[arg(long)]
    ff: bool,
    /// Accept histories that have nothing in common
    #[arg(long)]
    allow_unrelated: bool,
    /// Exit after the first connection
    #[arg(long)]
    once: bool,
    /// The maximum number of sessions, and of waiting ones
    #[arg(long, value_name = "COUNT", default_value = "1024")]
    max_connections: usize,
    /// The memory of all sessions in MiB; a session takes 12, and 48 more while the server works
    /// for it
    #[arg(long, value_name = "MIB", default_value = "1024")]
    memory: u64,
    /// The maximum MiB to receive in a session
    #[arg(long, value_name = "MIB")]
    max_received: Option<u64>,
    /// The maximum seconds for handshake and greeting together
    #[arg(long, value_name = "SECONDS", default_value = "5")]
    handshake_timeout: u64,
    /// The maximum seconds for a peer to move 16 KiB, or to take a step of the protocol
    #[arg(long, value_name = "SECONDS", default_value = "300")]
    idle_timeout: u64,
    /// The seconds without 40 KiB or a step after which a waiting session may take the place
    #[arg(long, value_name = "SECONDS", default_value = "10")]
    slow_timeout: u64,
    /// The maximum seconds for a session to wait for a place; then the peer must try again later
    #[arg(long, value_name = "SECONDS", default_value = "60")]
    wait_timeout: u64,
    /// The maximum seconds of a session
    #[arg(long, value_name = "SECONDS", default_value = "43200")]
    session_timeout: u64,
}

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

/// Serves one peer, the process that has started this one.
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
    let admit = move |_: &Hello| -> Result<Admission<PeerRepository>, Error> {
        let repository = PeerRepository::new(repository, ours, interrupt)?;
        Ok(Admission {
            object_format: repository.object_format(),
            repository,
            role: Role::Both,
            limits: Matcher::default(),
        })
    };
    let mut session = Session::respond(options, Box::new(admit));
    let own = |stream: io::Result<std::os::fd::OwnedFd>| {
        let stream = stream.map_err(|error| CliError::fatal(format!("cannot use stream: {error}")));
        stream.map(File::from)
    };
    let mut input = own(io::stdin().as_fd().try_clone_to_owned())?;
    let mut output = own(io::stdout().as_fd().try_clone_to_owned())?;
    let mut watch = Watch {
        report: &mut |_| {},
        interrupt: &context.interrupt,
        keep: &|_| Ok(()),
        patience: PATIENCE,
        greeting_patience: GREETING_PATIENCE,
    };
    let mut pipes = Pipes {
        input: &mut input,
        output: &mut output,
    };
    match drive(&mut session, &mut pipes, &mut watch) {
        Ok(()) => Ok(ExitCode::SUCCESS),
        // The peer shows its error itself. Errors that only concern this side are printed here.
        Err(error) if matches!(error.kind(), ErrorKind::Repository) => Err(failure(&error)),
        Err(_) => Err(CliError::silent(ExitCode::FATAL)),
    }
}

/// Returns the repository at `directory`, or in it: not one above it, and not one of another user,
/// whose hooks would run.
fn find(directory: Option<&OsString>, context: &mut Context) -> Result<Arc<Repository>, CliError> {
    let Some(directory) = directory else {
        return context.repository();
    };
    let environment = context.environment()?;
    let found = upload_pack::find(Path::new(directory), &environment)?;
    context.check_config(found.config())?;
    Ok(Arc::new(found))
}
