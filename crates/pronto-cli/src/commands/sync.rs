//! `sync`: synchronise with a peer in both directions.

mod summary;

use std::ffi::OsString;
use std::sync::Arc;

use bstr::{BStr, ByteSlice as _};
use pronto::Repository;
use pronto_io::interrupt::Interrupt;
use pronto_io::progress::Meter;
use pronto_netsync::ErrorKind;
use pronto_netsync::message::{Globs, PublishedRef, StoreResult, TransferRole};
use pronto_netsync::repository::RefMatcher;
use pronto_netsync::session::{Options, PeerPermissions, Report, SyncSession};
use pronto_peer::{
    self as netsync, DuplexStream, KeyPair, KeyPaths, KnownPeer, KnownPeers, NetsyncAddress,
    PeerRepository, PipePair, ProcessAddress, ProcessPeer, SessionWatch, TlsPeer, connect_process,
    drive,
};

use super::peers::{BUDGET_BYTES, PATIENCE, default_globs, failure};
use crate::{CliError, Context, ExitCode};

/// The text at the end of the command's help, about the use of the command.
const WHEN: &str = "Sync exchanges the commits of two repositories in both directions, in one conversation, without a \
configured remote or a server. An interrupted sync resumes where it stopped. The branches of the peer \
become refs/remotes/NAME/*; own branches move only with --ff, and only forward. Use fetch and push with \
servers, for one direction only, or if the other side has no pronto. A peer at netsync:// runs \
'serve --netsync --listen'; 'netsync' manages trusted peers.";

/// Arguments of `sync`.
#[derive(clap::Args, Debug)]
#[command(after_help = WHEN)]
pub(crate) struct Args {
    /// The peer: netsync://HOST[:PORT]/PATH, ssh://HOST/PATH, HOST:PATH, or a path
    pub(super) peer: OsString,
    /// Show what would be transferred
    #[arg(long, short = 'n')]
    pub(super) dry_run: bool,
    /// Only receive
    #[arg(long, conflicts_with = "push")]
    pub(super) pull: bool,
    /// Only send
    #[arg(long)]
    pub(super) push: bool,
    /// Include only these branches; refs if the glob begins with 'refs/'
    #[arg(long, value_name = "GLOB")]
    pub(super) include: Vec<OsString>,
    /// Exclude these branches or refs
    #[arg(long, value_name = "GLOB")]
    pub(super) exclude: Vec<OsString>,
    /// Fast-forward branches to those of the peer, unless they are checked out
    #[arg(long)]
    pub(super) ff: bool,
    /// Accept histories that have nothing in common
    #[arg(long)]
    pub(super) allow_unrelated: bool,
    /// The local name of the peer: its branches become refs/remotes/NAME/*
    #[arg(long, value_name = "NAME")]
    pub(super) name: Option<String>,
    /// The name of this repository at the peer; a server of netsync:// uses the name of its key
    #[arg(long = "as", value_name = "NAME")]
    pub(super) own_name: Option<String>,
    /// The program on the other side of ssh
    #[arg(long, value_name = "PROGRAM", default_value = "pronto")]
    pub(super) remote_program: OsString,
    /// Print the result as JSON
    #[arg(long)]
    pub(super) json: bool,
    /// Show progress even if standard error is not a terminal
    #[arg(long)]
    pub(super) progress: Option<bool>,
    /// Print only errors
    #[arg(long, short)]
    pub(super) quiet: bool,
}

pub(crate) fn run(args: &Args, context: &mut Context) -> Result<ExitCode, CliError> {
    take(args, context)?;
    Ok(ExitCode::SUCCESS)
}

/// Syncs, prints the result, and returns the local name of the peer.
pub(super) fn take(args: &Args, context: &mut Context) -> Result<String, CliError> {
    let repository = context.repository()?;
    let environment = context.environment()?;
    let address: &BStr = args.peer.as_encoded_bytes().as_bstr();
    if let Some(address) = NetsyncAddress::parse(address)? {
        return by_tls(args, &address, context);
    }
    let peer = match &args.name {
        Some(name) => name.clone(),
        None => name_of(address, &environment)?,
    };
    let own_name = match &args.own_name {
        Some(name) => name.clone(),
        None => own_name(address, &repository)?,
    };
    for name in [&peer, &own_name] {
        if !netsync::is_peer_name(name) {
            let message = format!("invalid peer name '{name}'");
            let hint =
                "choose another name for the peer with --name, or for this repository with --as";
            return Err(CliError::fatal(message).with_hint(hint));
        }
    }
    let part = SyncSide {
        peer: &peer,
        role: wanted_role(args),
        limits: RefMatcher::default(),
        path: Vec::new(),
    };
    let mut session = begin(args, part, &repository, &context.interrupt)?;
    let whom = ProcessAddress {
        address,
        program: crate::programs::own()?,
        remote_program: args.remote_program.as_encoded_bytes().into(),
        own_name: &own_name,
        allows_unrelated: args.allow_unrelated,
    };
    let child = connect_process(&whom, repository.config(), &environment)?;
    converse(args, &mut session, child, context)?;
    report(args, &peer, &own_name, &mut session, context)?;
    Ok(peer)
}

/// Prints the result of a sync.
fn report(
    args: &Args,
    peer: &str,
    own_name: &str,
    session: &mut SyncSession<PeerRepository>,
    context: &mut Context,
) -> Result<(), CliError> {
    let moved = session.repository().map(|beneath| beneath.moved().to_vec());
    let summary = summary::SyncSummary {
        peer,
        own_name,
        report: session.report(),
        moved: &moved.unwrap_or_default(),
    };
    match (args.json, args.quiet) {
        (true, _) => {
            summary.as_json(&mut context.out)?;
            context.json = None;
        }
        (false, true) => {}
        (false, false) => summary.as_text(&mut context.out)?,
    }
    Ok(())
}

/// Returns the role of the peer that the options require (`--push`, `--pull`).
fn wanted_role(args: &Args) -> TransferRole {
    match (args.pull, args.push) {
        (true, _) => TransferRole::Sink,
        (_, true) => TransferRole::Source,
        _ => TransferRole::Both,
    }
}

/// Connects over TCP to a peer that is authenticated by its key.
fn by_tls(
    args: &Args,
    address: &NetsyncAddress,
    context: &mut Context,
) -> Result<String, CliError> {
    let repository = context.repository()?;
    let environment = context.environment()?;
    netsync::check_protocol(netsync::TLS_PROTOCOL, repository.config(), &environment)?;
    let KeyPaths { key, peers } = super::netsync::paths(context)?;
    let (key, known) = (KeyPair::read(&key)?, KnownPeers::read(&peers)?);
    let TlsPeer { mut link, peer } =
        netsync::connect_tls(address, &key, &known, args.name.as_deref())?;
    let part = SyncSide {
        peer: &peer.name,
        role: role_with(args, &peer)?,
        limits: RefMatcher::new(peer.globs.clone()),
        path: address.path.clone(),
    };
    let mut session = begin(args, part, &repository, &context.interrupt)?;
    let result = run_session(args, &mut session, &mut link, context);
    result.map_err(|error| failure(&error))?;
    report(args, &peer.name, "", &mut session, context)?;
    match session.report().published_there.iter().any(is_forbidden) {
        true => Err(CliError::silent(ExitCode::FAILURE)),
        false => Ok(peer.name),
    }
}

/// Returns whether a server has refused a ref and given a reason.
fn is_forbidden(published: &PublishedRef) -> bool {
    published.stored == StoreResult::Refused && !published.stored_as.is_empty()
}

/// Returns the role of this side, which is limited by the trust in the peer.
fn role_with(args: &Args, peer: &KnownPeer) -> Result<TransferRole, CliError> {
    let (wanted, name) = (wanted_role(args), &peer.name);
    let refused = |what: &str| {
        let message = format!("peer '{name}' is not allowed to {what}");
        let hint = format!(
            "to allow it, run: pronto netsync trust {name} {} --roles ROLES",
            peer.key
        );
        Err(CliError::fatal(message).with_hint(hint))
    };
    match (wanted, peer.own_role()) {
        (TransferRole::Both, Some(role)) => Ok(role),
        (TransferRole::Sink, _) if !peer.roles.may_write => refused("send"),
        (TransferRole::Source, _) if !peer.roles.may_read => refused("receive"),
        _ => Ok(wanted),
    }
}

/// The parameters of this side of a session.
struct SyncSide<'a> {
    peer: &'a str,
    role: TransferRole,
    limits: RefMatcher,
    /// The path by which the peer names the repository.
    path: Vec<u8>,
}

/// Creates the state of this side of the session.
fn begin(
    args: &Args,
    part: SyncSide<'_>,
    repository: &Arc<Repository>,
    interrupt: &Interrupt,
) -> Result<SyncSession<PeerRepository>, CliError> {
    let mut ours = netsync::Options::new(part.peer.to_owned(), BUDGET_BYTES);
    ours.fast_forward = args.ff;
    ours.threads = 0;
    let beneath = PeerRepository::new(Arc::clone(repository), ours, interrupt.clone());
    let beneath = beneath.map_err(|error| failure(&error))?;
    let admission = PeerPermissions {
        object_format: beneath.object_format(),
        repository: beneath,
        role: part.role,
        limits: part.limits,
    };
    let mut options = Options::default();
    options.globs = globs(args);
    options.repository = part.path;
    options.nonce = netsync::nonce()?;
    options.is_dry_run = args.dry_run;
    options.allows_unrelated = args.allow_unrelated;
    SyncSession::initiate(options, admission).map_err(|error| failure(&error))
}

/// Runs the session to its end.
fn converse(
    args: &Args,
    session: &mut SyncSession<PeerRepository>,
    mut child: ProcessPeer,
    context: &mut Context,
) -> Result<(), CliError> {
    let mut pipes = PipePair {
        input: &mut child.output,
        output: &mut child.input,
    };
    let result = run_session(args, session, &mut pipes, context);
    let closed = child.close();
    let Err(error) = result else {
        return Ok(closed?);
    };
    let has_begun = !session.report().theirs.is_empty() || context.interrupt.is_triggered();
    if error.kind() == ErrorKind::Closed && !has_begun {
        // The remote program has printed its own message.
        let hint = "check that 'pronto' is on PATH there, and that the repository exists";
        return Err(CliError::fatal(error.to_string()).with_hint(hint));
    }
    Err(failure(&error))
}

fn run_session(
    args: &Args,
    session: &mut SyncSession<PeerRepository>,
    link: &mut impl DuplexStream,
    context: &mut Context,
) -> Result<(), pronto_netsync::Error> {
    let progress = context.progress(args.progress, args.quiet);
    let mut meters = SyncMeters::default();
    let mut watch = SessionWatch {
        report: &mut |report| meters.show(report, &*progress),
        interrupt: &context.interrupt,
        keep: &|_| Ok(()),
        patience: PATIENCE,
        greeting_patience: PATIENCE,
    };
    let result = drive(session, link, &mut watch);
    meters.finish();
    result
}

fn name_of(address: &BStr, environment: &pronto::Environment) -> Result<String, CliError> {
    let name = match netsync::host_of(address) {
        Some(host) => netsync::peer_name_of(host.as_str().into()),
        None => {
            let full = environment.absolute(std::path::Path::new(&*address.to_os_str_lossy()));
            let full = std::fs::canonicalize(&full).unwrap_or(full);
            netsync::peer_name_of(full.as_os_str().as_encoded_bytes().as_bstr())
        }
    };
    name.ok_or_else(|| {
        let message = format!("cannot derive a peer name from the address '{address}'");
        CliError::fatal(message).with_hint("choose one with --name")
    })
}

/// Returns the name of this side: the name of the machine for a remote peer, or of the repository
/// for a local peer.
fn own_name(address: &BStr, repository: &Repository) -> Result<String, CliError> {
    if let Some(configured) = repository.config().string("netsync.name")? {
        return Ok(configured.to_string());
    }
    let name = if netsync::host_of(address).is_some() {
        let system = rustix::system::uname();
        netsync::peer_name_of(system.nodename().to_bytes().as_bstr())
    } else {
        let place = repository.work_tree().unwrap_or(repository.git_dir());
        netsync::peer_name_of(place.as_os_str().as_encoded_bytes().as_bstr())
    };
    name.ok_or_else(|| {
        CliError::fatal("cannot derive a name for this repository")
            .with_hint("choose one with --as")
    })
}

/// Converts the options that select branches and refs into globs of full ref names.
fn globs(args: &Args) -> Globs {
    let full = |globs: &[OsString]| -> Vec<Vec<u8>> {
        let globs = globs.iter().map(|glob| glob.as_encoded_bytes());
        let full = globs.map(|glob| match glob.starts_with(b"refs/") {
            true => glob.to_vec(),
            false => [b"refs/heads/", glob].concat(),
        });
        full.collect()
    };
    Globs {
        include: match args.include.is_empty() {
            true => default_globs().include,
            false => full(&args.include),
        },
        exclude: full(&args.exclude),
    }
}

/// The progress meters of a session. Progress is counted in bytes, because the protocol does not
/// count commits.
#[derive(Default)]
struct SyncMeters {
    receiving: Option<(Meter, u64)>,
    sending: Option<(Meter, u64)>,
}

impl SyncMeters {
    fn show(&mut self, report: &Report, progress: &dyn pronto_io::progress::Progress) {
        let both = [
            (
                &mut self.receiving,
                report.received_bytes,
                "Receiving segments",
                report.received_segments,
            ),
            (
                &mut self.sending,
                report.sent_bytes,
                "Sending segments",
                report.confirmed_segments,
            ),
        ];
        for (meter, bytes, title, segments) in both {
            if bytes == 0 {
                continue;
            }
            let (meter, shown) = meter.get_or_insert_with(|| (progress.begin(title, None), 0));
            meter.add_bytes(bytes - *shown);
            *shown = bytes;
            meter.add(segments.saturating_sub(meter.done()));
        }
    }

    fn finish(&mut self) {
        for (meter, _) in [&mut self.receiving, &mut self.sending]
            .into_iter()
            .flatten()
        {
            meter.finish();
        }
    }
}
