//! The server of a push (`git receive-pack`), see `gitprotocol-pack(5)`, "Pushing Data To a
//! Server".
//!
//! Received objects stay in a quarantine until they are complete, the hook `pre-receive` has
//! accepted them, and everything they link to exists. Refs change last, in one transaction.
//!
//! A push of one commit costs one listing of refs for the advertisement, one pack or a few loose
//! objects, and reading the commits of the pack. After the advertisement, the cost does not depend
//! on the numbers of packs and refs.

mod advertise;
mod bands;
mod bounds;
mod certificate;
mod changes;
mod checks;
mod connected;
mod deploy;
mod execute;
mod hook;
mod messages;
mod proc_receive;
mod push_destination;
mod report;
mod settings;
mod shallow;
mod unpack;

use std::collections::BTreeMap;
use std::io::{Read, Write};
use std::path::{Path, PathBuf};
use std::sync::mpsc::channel;
use std::sync::{Arc, OnceLock};
use std::time::{Duration, SystemTime};

use bstr::{BStr, BString, ByteSlice};
use pronto_hash::ObjectId;
use pronto_io::budget::RequestBudget;
use pronto_io::interrupt::Interrupt;
use pronto_io::watch::Watch;
use pronto_odb::Quarantine;
use pronto_wire::advertisement::ProtocolVersion;
use pronto_wire::pktline::Packet;
use pronto_wire::reader::PacketReader;
use pronto_wire::receive::{
    Features, OptionsParser, Request, RequestParser, ServerFeatures, left_early,
};

use super::enter::{enter, from_client};
use crate::shared::{self, SharedPermissions};
use crate::support::{self, Operation};
use crate::{Environment, Error, ErrorKind, Repository, Result};

use bands::{Mode, ReceiveBands};
use certificate::{OfferedNonce, ReceivedCertificate};
use settings::Settings;

pub use bounds::{Bound, Growth, GrowthTurn, PushBounds, object_bytes};
pub use push_destination::{CheckedPush, PushDestination, RefVerdict};

/// The options for serving one connection.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Options {
    /// The protocol version that the client requested. Version 2 has no push, and counts as 0.
    pub version: ProtocolVersion,
    /// Send the advertisement. False for the second request over HTTP.
    pub advertises: bool,
    /// Receive a request. False for the first request over HTTP (`--http-backend-info-refs`).
    pub receives: bool,
    /// Send no progress, even if the client requests it (`--quiet`).
    pub quiet: bool,
    /// Do not check the connectivity of received objects (`--skip-connectivity-check`).
    pub trusts_links: bool,
    /// Reject thin packs (`--reject-thin-pack-for-testing`).
    pub refuses_thin: bool,
    /// The program, pronto or git, that is called with subcommands to update worktrees.
    pub program: PathBuf,
    /// The refs that only accept fast-forwards, regardless of the repository's settings, with the
    /// reason for the client.
    pub fast_forward_only: BTreeMap<BString, String>,
    /// The size limit for commits, trees and tags; larger blobs are written to files instead of
    /// memory. Unset, all sizes are accepted, as by Git.
    pub most_object_bytes: Option<u64>,
    /// The size limit for the pack, if `receive.maxInputSize` of the repository is not smaller.
    pub pack_limit: Option<PackLimit>,
    /// The quotas of the repository. They are checked again after the objects are received, while
    /// no other push with bounds can change the repository.
    pub bounds: PushBounds,
    /// The time of the advertisement, if it was sent before on the same connection. In that case,
    /// and if [`advertises`](Self::advertises) is set, a push certificate must have the nonce of
    /// that time: `receive.certNonceSlop` is for clients that connect twice.
    pub advertised: Option<SystemTime>,
    /// The memory budget for commands, the certificate and push options, charged before they are
    /// kept.
    pub budget: Option<Arc<RequestBudget>>,
    /// The name of the repository in nonces (`receive.certNonceSeed`), the same at the
    /// advertisement and at the request. Unset, the path of the repository is used.
    pub service: Option<BString>,
    /// The timeout for the program that checks the signature of a push.
    pub signature_limit: Option<Duration>,
    /// The id of this session, advertised with `transfer.advertiseSID`.
    pub session_id: Option<BString>,
    /// The receiver that records the push, if the repository is only a view of another one. In that
    /// case received objects stay a pack, and operations whose result would be lost with the view
    /// are refused.
    pub landing: Option<Arc<dyn PushDestination>>,
}

impl Options {
    /// Returns options for a whole connection of protocol version 0, which advertises and receives.
    /// `program` updates worktrees.
    pub fn new(program: impl Into<PathBuf>) -> Self {
        Options {
            version: ProtocolVersion::V0,
            advertises: true,
            receives: true,
            quiet: false,
            trusts_links: false,
            refuses_thin: false,
            program: program.into(),
            fast_forward_only: BTreeMap::new(),
            most_object_bytes: None,
            pack_limit: None,
            bounds: PushBounds::default(),
            advertised: None,
            budget: None,
            service: None,
            signature_limit: None,
            session_id: None,
            landing: None,
        }
    }
}

impl Options {
    /// Charges the memory of a packet whose content is kept.
    fn charge(&self, packet: &Packet<'_>) -> Result<()> {
        let (Some(budget), Packet::Data(payload)) = (&self.budget, packet) else {
            return Ok(());
        };
        let charged = budget.charge((payload.len() + size_of::<RefCommand>()) as u64);
        charged.map_err(crate::exhausted)
    }
}

/// A size limit for a pack.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct PackLimit {
    /// The limit in bytes.
    pub bytes: u64,
    /// The error message for the client whose pack is larger.
    pub reason: String,
}

impl PackLimit {
    /// Returns a limit of `bytes`. `reason` is the error message for a client whose pack is larger.
    pub fn new(bytes: u64, reason: impl Into<String>) -> Self {
        PackLimit {
            bytes,
            reason: reason.into(),
        }
    }
}

/// The streams of one connection. The example at [`UploadStreams`](crate::upload_pack::UploadStreams) makes
/// them of standard input and output.
pub struct ReceiveStreams<'a> {
    /// The input from the client, which is read in large pieces.
    pub input: &'a mut dyn Read,
    /// The output to the client, which is written in large pieces.
    pub output: &'a mut (dyn Write + Send),
}

/// The result of serving one connection.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[must_use]
pub struct ReceiveOutcome {
    /// Whether a request was served and automatic maintenance should run (`receive.autogc`).
    pub maintains: bool,
}

/// Opens the repository that `path` names, like `git receive-pack`: at the path, or with one of the
/// usual suffixes, but never in a parent directory.
///
/// # Errors
/// Fails with [`ErrorKind::NotARepository`] if there is no repository, and with
/// [`ErrorKind::Unsafe`] if it belongs to another user (`safe.directory`).
pub fn find(path: &Path, environment: &Environment) -> Result<Repository> {
    enter(path, environment)
}

/// Returns whether pronto can serve pushes to `repository`. It cannot if the history is grafted,
/// the repository is a partial clone, or its files are shared with other users
/// (`core.sharedRepository`).
///
/// # Errors
/// Fails if a setting has an invalid value, or a file cannot be read.
pub fn can_serve(repository: &Repository) -> Result<bool> {
    Ok(can_serve_view(repository)?
        && shared::configured(repository.config())? == SharedPermissions::Umask)
}

/// Does the same as [`can_serve`] for a repository that is only a view of the one that is pushed to
/// ([`Options::landing`]), and in which no file is kept.
///
/// # Errors
/// The same as for [`can_serve`].
pub fn can_serve_view(repository: &Repository) -> Result<bool> {
    let grafts = std::fs::metadata(repository.git_path("info/grafts"));
    Ok(!grafts.is_ok_and(|file| file.len() > 0)
        && repository.environment().get("GIT_GRAFT_FILE").is_none()
        && !repository.has_promisor()?)
}

/// Fails if [`serve`] does not support the repository, so that callers need not check that.
fn check_support(repository: &Repository, options: &Options) -> Result<()> {
    let (operation, is_supported) = match options.landing {
        Some(_) => (Operation::ReceivePackIntoView, can_serve_view(repository)?),
        None => (Operation::ReceivePack, can_serve(repository)?),
    };
    support::require(repository, operation)?;
    match is_supported {
        true => Ok(()),
        false => {
            let message = "receiving a push into a grafted repository, a partial clone or a \
                           shared repository is not implemented natively";
            Err(Error::new(ErrorKind::Unsupported, message))
        }
    }
}

/// Serves one connection: advertises refs, receives commands and a pack, and updates refs.
///
/// # Errors
/// Fails with [`ErrorKind::Unsupported`] if [`can_serve`] returns false, with
/// [`ErrorKind::Refused`] if the client violates the protocol or disconnects early, with
/// [`ErrorKind::Transport`] if the output fails, and with [`ErrorKind::Interrupted`] if the
/// operation is interrupted. Refused commands are reported to the client and are no error.
pub fn serve(
    repository: &Repository,
    options: &Options,
    streams: ReceiveStreams<'_>,
    watch: &Watch<'_>,
) -> Result<ReceiveOutcome> {
    let interrupt = watch.interrupt();
    check_support(repository, options)?;
    let mut settings = Settings::of(repository.config())?;
    if options.landing.is_some() {
        settings.limit_to_view();
    }
    let ReceiveStreams { input, output } = streams;
    let issued = OfferedNonce::new(repository, options, &settings);
    if options.advertises {
        let nonce = issued.as_ref().map(OfferedNonce::nonce);
        let mut words = advertise::features(repository, &settings, nonce);
        if let Some(id) = options.session_id.as_ref().filter(|_| settings.session_id) {
            words.push_str(&format!(" session-id={id}"));
        }
        advertise::advertise(repository, options, &settings, words, output)?;
    }
    if !options.receives {
        return Ok(ReceiveOutcome::default());
    }
    let mut packets = PacketReader::new(input);
    let offer = advertise::offer(repository, &settings);
    let request = read_request(offer, options, &mut packets)?;
    if let Some(id) = &request.session_id {
        pronto_io::data!("transfer", "client-sid", id);
    }
    if request.commands.is_empty() {
        return Ok(ReceiveOutcome::default());
    }
    let push_options = match request.features.push_options {
        true => read_options(options, &mut packets)?,
        false => Vec::new(),
    };
    let mode = Mode {
        is_banded: request.features.sideband,
        is_quiet: options.quiet || request.features.quiet,
        keep_alive: settings.keep_alive,
    };
    let bands = ReceiveBands::new(repository, output, &mode);
    let certificate = request.certificate.clone();
    let mut push = ReceivedPush {
        repository,
        options,
        settings: &settings,
        bands: &bands,
        interrupt,
        features: request.features,
        has_pack: request.has_pack(),
        commands: request.commands.into_iter().map(RefCommand::of).collect(),
        shallow: request.shallow,
        push_options,
        certificate: certificate.map(|certificate| ReceivedCertificate::new(certificate, issued)),
        quarantine: None,
        keep: None,
        pack: None,
        occupied: OnceLock::new(),
        head: None,
    };
    push.run(&mut packets)?;
    Ok(ReceiveOutcome {
        maintains: settings.auto_gc,
    })
}

fn read_request(
    offer: ServerFeatures,
    options: &Options,
    packets: &mut PacketReader<&mut dyn Read>,
) -> Result<Request> {
    let mut parser = match &options.budget {
        // The budget is charged for each packet.
        Some(_) => RequestParser::with_room(offer, usize::MAX),
        None => RequestParser::new(offer),
    };
    loop {
        let Some(packet) = packets.next_or_end().map_err(from_client)? else {
            return Err(from_client(left_early()));
        };
        options.charge(&packet)?;
        if let Some(request) = parser.push(packet).map_err(from_client)? {
            return Ok(request);
        }
    }
}

fn read_options(
    options: &Options,
    packets: &mut PacketReader<&mut dyn Read>,
) -> Result<Vec<BString>> {
    let mut parser = OptionsParser::default();
    loop {
        let packet = packets.next_packet().map_err(from_client)?;
        options.charge(&packet)?;
        if let Some(options) = parser.push(packet).map_err(from_client)? {
            return Ok(options);
        }
    }
}

/// One command of the client, a ref update, with its result.
#[derive(Clone, Debug)]
struct RefCommand {
    old: ObjectId,
    new: ObjectId,
    name: BString,
    /// The reason why the command failed.
    error: Option<BString>,
    /// Whether another command makes the change.
    is_skipped: bool,
    /// Whether the ref to delete did not exist.
    did_not_exist: bool,
    proc_receive: ProcReceiveState,
    /// The changes that the hook `proc-receive` reported.
    rewrites: Vec<ProcReceiveRewrite>,
    /// The shallow commits of the client that the new history needs.
    cuts: Vec<ObjectId>,
}

/// Whether the hook `proc-receive` executes a command.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum ProcReceiveState {
    No,
    Scheduled,
    Reported,
}

/// A change that the hook `proc-receive` made instead of the requested one.
#[derive(Clone, Debug, Default)]
struct ProcReceiveRewrite {
    name: Option<BString>,
    old: Option<ObjectId>,
    new: Option<ObjectId>,
    forced: bool,
}

impl RefCommand {
    fn of(command: pronto_wire::receive::ReceiveCommand) -> Self {
        RefCommand {
            old: command.old,
            new: command.new,
            name: command.name,
            error: None,
            is_skipped: false,
            did_not_exist: false,
            proc_receive: ProcReceiveState::No,
            rewrites: Vec::new(),
            cuts: Vec::new(),
        }
    }

    fn deletes(&self) -> bool {
        self.new.is_null()
    }

    fn creates(&self) -> bool {
        self.old.is_null()
    }

    /// Whether the command is still to be executed.
    fn is_open(&self) -> bool {
        self.error.is_none() && !self.is_skipped
    }

    fn fail(&mut self, reason: impl AsRef<[u8]>) {
        if self.error.is_none() {
            self.error = Some(reason.as_ref().into());
        }
    }
}

/// One push, after its commands were received.
struct ReceivedPush<'a> {
    repository: &'a Repository,
    options: &'a Options,
    settings: &'a Settings,
    bands: &'a ReceiveBands<'a>,
    interrupt: &'a Interrupt,
    features: Features,
    has_pack: bool,
    commands: Vec<RefCommand>,
    /// The shallow commits of the client.
    shallow: Vec<ObjectId>,
    push_options: Vec<BString>,
    certificate: Option<ReceivedCertificate>,
    quarantine: Option<Quarantine>,
    /// The `.keep` file, which protects the received pack from a repack until refs point to its
    /// objects.
    keep: Option<pronto_io::cleanup::Guard>,
    /// The path of the received pack after it is published.
    pack: Option<PathBuf>,
    /// The ref to which `HEAD` points, set when objects are published.
    head: Option<BString>,
    /// The worktrees, read when they are first needed.
    occupied: OnceLock<Vec<checks::Occupied>>,
}

impl ReceivedPush<'_> {
    fn run(&mut self, packets: &mut PacketReader<&mut dyn Read>) -> Result<()> {
        let (stop, stopped) = channel::<()>();
        let bands = self.bands;
        std::thread::scope(|scope| {
            // Without the thread, no progress and keep-alive packets are sent, which is not an
            // error.
            let ticking = bands.is_banded().then(|| {
                std::thread::Builder::new().spawn_scoped(scope, move || bands.tick_until(&stopped))
            });
            let done = self.receive_and_execute(packets);
            drop(stop);
            drop(ticking);
            self.bands.flush();
            done
        })
    }

    fn receive_and_execute(&mut self, packets: &mut PacketReader<&mut dyn Read>) -> Result<()> {
        let certificate = self.certificate.as_ref();
        if certificate.is_some_and(|it| !it.has_options(&self.push_options)) {
            self.fail_all(certificate::OTHER_OPTIONS);
        }
        let unpack_error = match self.has_pack {
            true => self.unpack(packets)?,
            false => None,
        };
        self.bands.begin_waiting();
        match &unpack_error {
            Some(_) => {
                for command in &mut self.commands {
                    command.fail("unpacker error");
                }
            }
            None => self.execute()?,
        }
        // Objects that were not published are removed before the client is notified of the end.
        self.quarantine = None;
        self.keep = None;
        self.report(unpack_error.as_deref())?;
        self.run_receive_hook("post-receive")?;
        self.run_post_update_hook()?;
        if self.settings.update_server_info {
            pronto_storage::repack::update_server_info(self.repository)?;
        }
        self.bands.end()
    }

    /// Returns the full name of a ref of the namespace.
    fn full_name(&self, name: &BStr) -> BString {
        [self.repository.refs().namespace().as_bytes(), name]
            .concat()
            .into()
    }
}
