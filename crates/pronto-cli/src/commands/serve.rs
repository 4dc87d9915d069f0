//! `serve`: let peers take part in this repository.

use std::ffi::OsString;
use std::fs::File;
use std::io;
use std::os::fd::AsFd as _;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use pronto::netsync::{self, PeerRepository, Watch, drive};
use pronto::{Repository, upload_pack};
use pronto_netsync::message::{Globs, Hello, Role};
use pronto_netsync::repository::Matcher;
use pronto_netsync::session::{Admission, Options, Session};
use pronto_netsync::{Error, ErrorKind};

use crate::{CliError, Context, ExitCode};

/// How long a peer may say nothing.
pub(super) const PATIENCE: Duration = Duration::from_secs(300);

/// How much is taken in one session.
pub(super) const BUDGET_BYTES: u64 = 1 << 40;

/// Arguments of `serve`.
#[derive(clap::Args, Debug)]
pub(crate) struct Args {
    /// The repository
    directory: Option<OsString>,
    /// Speak netsync: both sides give and take
    #[arg(long)]
    netsync: bool,
    /// Serve one peer on the standard input and output, as 'sync' has it done
    #[arg(long)]
    stdio: bool,
    /// What the peer is called here: its branches are refs/remotes/NAME/*
    #[arg(long, value_name = "NAME")]
    peer: Option<String>,
    /// Move branches forward to those of the peer, unless they are checked out
    #[arg(long)]
    ff: bool,
    /// Take part even if the two histories have nothing in common
    #[arg(long)]
    allow_unrelated: bool,
}

pub(crate) fn run(args: &Args, context: &mut Context) -> Result<ExitCode, CliError> {
    let (true, true, Some(peer)) = (args.netsync, args.stdio, &args.peer) else {
        return Err(CliError::usage(
            "serve needs --netsync, --stdio and --peer NAME",
        ));
    };
    let repository = find(args.directory.as_ref(), context)?;
    let options = Options {
        nonce: netsync::nonce()?,
        globs: default_globs(),
        allows_unrelated: args.allow_unrelated,
        ..Options::default()
    };
    let ours = netsync::Options {
        peer: peer.clone(),
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
        patience: PATIENCE,
    };
    match drive(&mut session, &mut input, &mut output, &mut watch) {
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
        ErrorKind::Busy => Some("try again when it has ended".to_owned()),
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
    Ok(Arc::new(found))
}
