//! `serve`: let peers take part in this repository.

mod listen;

use std::ffi::OsString;
use std::fs::File;
use std::io;
use std::os::fd::AsFd as _;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use pronto::{Repository, upload_pack};
use pronto_netsync::message::{Globs, Hello, Role};
use pronto_netsync::repository::Matcher;
use pronto_netsync::session::{Admission, Options, Session};
use pronto_netsync::{Error, ErrorKind};
use pronto_peer::{self as netsync, PeerRepository, Pipes, Watch, drive};

use crate::{CliError, Context, ExitCode};

/// How long a peer may say nothing.
pub(super) const PATIENCE: Duration = Duration::from_secs(300);

/// How much is taken in one session.
pub(super) const BUDGET_BYTES: u64 = 1 << 40;

/// How long it may take until a peer has said what it wants.
pub(super) const GREETING_PATIENCE: Duration = Duration::from_secs(60);

/// Arguments of `serve`.
#[derive(clap::Args, Debug)]
pub(crate) struct Args {
    /// The repository, or with --listen a directory of repositories
    directory: Option<OsString>,
    /// Speak netsync: both sides give and take
    #[arg(long)]
    netsync: bool,
    /// Serve one peer on the standard input and output, as 'sync' has it done
    #[arg(long)]
    stdio: bool,
    /// Serve all known peers that connect to HOST:PORT, by TLS; 'netsync' says who is known
    #[arg(long, value_name = "HOST:PORT")]
    listen: Option<String>,
    /// What the peer is called here, with --stdio: its branches are refs/remotes/NAME/*
    #[arg(long, value_name = "NAME")]
    peer: Option<String>,
    /// Move branches forward to those of the peer, unless they are checked out
    #[arg(long)]
    ff: bool,
    /// Take part even if the two histories have nothing in common
    #[arg(long)]
    allow_unrelated: bool,
    /// End after the first connection
    #[arg(long)]
    once: bool,
    /// How many sessions may be under way, and how many may wait
    #[arg(long, value_name = "COUNT", default_value = "1024")]
    max_connections: usize,
    /// How many MiB all sessions together may hold; a session takes 12, and 48 more while it is worked for
    #[arg(long, value_name = "MIB", default_value = "1024")]
    memory: u64,
    /// How many MiB are taken in one session
    #[arg(long, value_name = "MIB")]
    max_received: Option<u64>,
    /// How many seconds the handshake and the greeting may take together
    #[arg(long, value_name = "SECONDS", default_value = "5")]
    handshake_timeout: u64,
    /// How many seconds a peer may take to move 16 KiB, or to take a step of the protocol
    #[arg(long, value_name = "SECONDS", default_value = "300")]
    idle_timeout: u64,
    /// After how many seconds without 40 KiB or a step a session may lose its place to one that waits
    #[arg(long, value_name = "SECONDS", default_value = "10")]
    slow_timeout: u64,
    /// How many seconds a session may wait for a place before it is told to try again later
    #[arg(long, value_name = "SECONDS", default_value = "60")]
    wait_timeout: u64,
    /// How many seconds a session may take in all
    #[arg(long, value_name = "SECONDS", default_value = "43200")]
    session_timeout: u64,
}

pub(crate) fn run(args: &Args, context: &mut Context) -> Result<ExitCode, CliError> {
    match (args.netsync, args.stdio, &args.listen, &args.peer) {
        (true, true, None, Some(peer)) => stdio(args, peer, context),
        (true, false, Some(address), None) => listen::run(args, address, context),
        _ => Err(CliError::usage(
            "serve needs --netsync, and --stdio and --peer NAME or --listen HOST:PORT",
        )),
    }
}

/// One peer, which is a process that has started this one.
fn stdio(args: &Args, peer: &str, context: &mut Context) -> Result<ExitCode, CliError> {
    let repository = find(args.directory.as_ref(), context)?;
    let options = Options {
        nonce: netsync::nonce()?,
        globs: default_globs(),
        allows_unrelated: args.allow_unrelated,
        ..Options::default()
    };
    let ours = netsync::Options {
        peer: peer.to_owned(),
        fast_forward: args.ff,
        budget_bytes: BUDGET_BYTES,
        threads: 1,
    };
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
        // The peer was told why, and says it; what only concerns this side is said here.
        Err(error) if matches!(error.kind(), ErrorKind::Repository) => Err(failure(&error)),
        Err(_) => Err(CliError::silent(ExitCode::FATAL)),
    }
}

/// Branches and tags.
pub(super) fn default_globs() -> Globs {
    Globs {
        include: vec![b"refs/heads/*".to_vec(), b"refs/tags/*".to_vec()],
        exclude: Vec::new(),
    }
}

/// The error of a session, with the way out.
pub(super) fn failure(error: &Error) -> CliError {
    let hint = match error.kind() {
        _ if error.hint().is_some() => error.hint().map(str::to_owned),
        ErrorKind::Unrelated => Some("use --allow-unrelated if they shall become one".to_owned()),
        ErrorKind::Busy => Some("try again later: what has come is kept".to_owned()),
        ErrorKind::Closed => Some("what has come is kept: the next sync goes on there".to_owned()),
        _ => None,
    };
    let shown = CliError::fatal(error.to_string());
    match hint {
        Some(hint) => shown.with_hint(hint),
        None => shown,
    }
}

/// The repository that `directory` is, or that is in it: none around it, and none of somebody else,
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
