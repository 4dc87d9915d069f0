//! A connection of a peer: its user, its request, and its record.

use std::net::{SocketAddr, TcpStream};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};
use std::time::Duration;

use bstr::ByteSlice as _;
use pronto::receive_pack::{self, Growth, GrowthTurn};
use pronto::{Repository, hooks};
use pronto_io::interrupt::Interrupt;
use pronto_netsync::message::{Hello, TransferRole as PeerRole};
use pronto_netsync::repository::RefMatcher;
use pronto_peer::server::{ConnectionSummary, HostedRepository as Serving, PeerVisit};
use pronto_peer::{Options, PeerRepository, PublicKey, RefRules};
use tokio::runtime::Handle;
use tokio::sync::watch;

use super::Peers;
use crate::access::RequestedRefChange;
use crate::admission::{ConnectionGuard, MADE_ROOM, Network, RequestSlot};
use crate::connection::ServerPhase;
use crate::keys::hash_of_ed25519;
use crate::names::RepositoryName;
use crate::open_repository::OpenRepository;
use crate::permission::{IdentityProof, Proven, Question, RepositoryAction, needs_token};
use crate::record::{self, RequestRecord, text};
use crate::route::{RequestTarget, RequestedService};
use crate::service::PushPolicy as _;
use crate::state::{ServerState, Setup};
use crate::watched::REVOKED;
use crate::work::{AdmittedRequest, Requester, UnderWay};
use crate::{Error, ErrorKind, Result};

type PeerError = pronto_netsync::Error;
type PeerErrorKind = pronto_netsync::ErrorKind;

/// The hooks of a push, which netsync does not run.
const HOOKS: [&str; 5] = [
    "pre-receive",
    "update",
    "proc-receive",
    "post-receive",
    "post-update",
];

/// The name of the protocol for permission checks and in the log.
const PROTOCOL: &str = "netsync";

/// The interval at which a session that waits for a slot checks whether the server ends.
const LOOK: Duration = Duration::from_millis(50);

/// A connection of a peer.
pub(super) struct NetsyncGuest {
    state: Arc<ServerState>,
    runtime: Handle,
    address: SocketAddr,
    progress: Mutex<GuestProgress>,
    connected: ConnectionGuard,
    /// A subscription that keeps the server from ending before the connection ends.
    _phase: watch::Receiver<ServerPhase>,
}

/// The progress of a connection.
#[derive(Default)]
struct GuestProgress {
    record: Option<RequestRecord>,
    key: Option<PublicKey>,
    user: Option<Arc<str>>,
    work: Option<Arc<AdmittedRequest>>,
    /// Whether the peer has not named a repository.
    is_unnamed: bool,
    /// The repository, if the peer may push to it.
    repository: Option<Arc<Repository>>,
    slot: Option<(RequestSlot, UnderWay)>,
}

impl NetsyncGuest {
    pub(super) fn new(peers: &Peers, address: SocketAddr, connected: ConnectionGuard) -> Self {
        NetsyncGuest {
            state: Arc::clone(&peers.state),
            runtime: peers.runtime.clone(),
            address,
            progress: Mutex::default(),
            connected,
            _phase: peers.phases.subscribe(),
        }
    }

    fn progress(&self) -> MutexGuard<'_, GuestProgress> {
        self.progress.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Returns the user of a key, or `None` for an unknown key if a grant names `anonymous`.
    fn user_of(&self, setup: &Setup, key: &PublicKey) -> Result<Option<Arc<str>>> {
        let address = self.address.ip();
        setup.admission.may_authenticate(address)?;
        let hash = hash_of_ed25519(key.as_bytes());
        match setup.user_of(IdentityProof::Key(&hash)) {
            Some(user) => Ok(Some(user)),
            None if setup.config.access.knows_anonymous() => Ok(None),
            None => {
                setup.admission.wrong_token(address);
                Err(unknown(key))
            }
        }
    }

    /// Returns the request of the peer, if it is permitted.
    fn work(&self, progress: &mut GuestProgress, hello: &Hello) -> Result<AdmittedRequest> {
        let setup = self.state.setup();
        let service = match hello.role.sends() {
            true => RequestedService::ReceivePack,
            false => RequestedService::UploadPack,
        };
        let name = match repository_name(&hello.repository)? {
            Some(name) => name,
            None => {
                progress.is_unnamed = true;
                only_repository(&setup, progress.user.as_deref())?
            }
        };
        if let Some(record) = &mut progress.record {
            record.repository(name.as_str());
            record.service(match (hello.role.sends(), hello.role.receives()) {
                (true, true) => "netsync",
                (true, false) => "netsync-push",
                (false, _) => "netsync-pull",
            });
        }
        let work = AdmittedRequest {
            setup,
            requester: Requester {
                user: progress.user.clone(),
                proven: match &progress.key {
                    Some(key) => Proven::Key(hash_of_ed25519(key.as_bytes())),
                    None => Proven::Name,
                },
                address: self.address.ip(),
                protocol: PROTOCOL,
                connection: Some(Arc::clone(self.connected.connection())),
            },
            target: RequestTarget { name, service },
            protocol: None,
            tally: Arc::default(),
            allowance: OnceLock::new(),
        };
        let is_push = service == RequestedService::ReceivePack;
        if is_push && work.requester.user.is_none() {
            return Err(needs_token());
        }
        work.check()
            .map_err(|error| match error.kind() == ErrorKind::Denied && is_push {
                true => Error::new(
                    ErrorKind::Denied,
                    format!("{}; use --pull to receive only", error.message()),
                ),
                false => error,
            })?;
        Ok(work)
    }

    /// Waits for a slot, and opens the repository.
    fn open_for(&self, work: &AdmittedRequest, interrupt: &Interrupt) -> Result<Repository> {
        let slot = self.runtime.block_on(async {
            tokio::select! {
                slot = work.slot() => slot,
                () = triggered(interrupt) => {
                    Err(Error::new(ErrorKind::Overloaded, "the server is shutting down"))
                }
            }
        })?;
        self.progress().slot = Some((slot, UnderWay::new(&self.state)));
        let repository = work.open()?;
        let is_push = work.target.service == RequestedService::ReceivePack;
        if is_push {
            check_support(&repository)?;
            // The rules are checked for each ref. The size limits of a session bound the received bytes.
            work.pack_limit(&repository)?;
        }
        Ok(repository.into_repository())
    }

    /// Records an error, and converts it for the peer.
    fn failed(&self, error: Error) -> PeerError {
        let mut progress = self.progress();
        let error = match (error.kind(), &progress.key) {
            (ErrorKind::Unauthenticated, Some(key)) => unknown(key),
            // The message would contain the name of the repository, which the peer did not name.
            (ErrorKind::NotFound, _) if progress.is_unnamed => not_one(),
            _ => error,
        };
        let Some(record) = &mut progress.record else {
            return PeerError::new(PeerErrorKind::Denied, error.message());
        };
        record.failed(&error);
        let kind = kind_of(&error);
        PeerError::new(kind, text(&error, record.id()))
    }
}

impl PeerVisit for NetsyncGuest {
    fn begun(&self, socket: &Arc<TcpStream>) {
        let connection = self.connected.connection();
        connection.served_by_thread(Arc::clone(socket));
    }

    fn identify(&self, key: &PublicKey) -> std::result::Result<String, PeerError> {
        let mut record = RequestRecord::new(&self.state, self.address, "netsync");
        record.service("netsync");
        {
            let mut progress = self.progress();
            progress.record = Some(record);
            progress.key = Some(*key);
        }
        let setup = self.state.setup();
        let user = self
            .user_of(&setup, key)
            .map_err(|error| self.failed(error))?;
        let mut progress = self.progress();
        if let Some(record) = &mut progress.record {
            record.user(user.as_deref());
        }
        progress.user.clone_from(&user);
        let owner = setup.owner(user.as_ref(), self.address.ip());
        self.connected.connection().belongs_to(&owner);
        Ok(match user {
            Some(user) => user.to_string(),
            // The name of a user contains no space, so this text cannot be one.
            None => format!("anonymous of {}", Network::of(self.address.ip())),
        })
    }

    fn check(&self, hello: &Hello) -> std::result::Result<PeerRole, PeerError> {
        let mut progress = self.progress();
        let work = self.work(&mut progress, hello);
        match work {
            Ok(work) => {
                let role = match work.target.service {
                    RequestedService::ReceivePack => PeerRole::Both,
                    _ => PeerRole::Source,
                };
                progress.work = Some(Arc::new(work));
                Ok(role)
            }
            Err(error) => {
                drop(progress);
                Err(self.failed(error))
            }
        }
    }

    fn open(&self, _: &Hello, interrupt: &Interrupt) -> std::result::Result<Serving, PeerError> {
        let (work, key) = {
            let progress = self.progress();
            (progress.work.clone(), progress.key)
        };
        let (Some(work), Some(key)) = (work, key) else {
            return Err(PeerError::new(
                PeerErrorKind::Denied,
                "no request was checked",
            ));
        };
        let repository = self
            .open_for(&work, interrupt)
            .map_err(|error| self.failed(error))?;
        let repository = Arc::new(repository);
        if work.target.service == RequestedService::ReceivePack {
            self.progress().repository = Some(Arc::clone(&repository));
        }
        // Several clones of a user may have the same key. An interrupted session resumes if its data fits.
        let mut options = Options::new(format!("key-{}", key.fingerprint()), work.most_bytes());
        options.threads = 1;
        let rules = Box::new(ServerRules(work));
        let interrupt = interrupt.clone();
        Ok(Serving {
            repository: PeerRepository::hosted(repository, options, interrupt, rules)?,
            limits: RefMatcher::default(),
        })
    }

    fn ended(&self, ended: &ConnectionSummary) {
        let mut progress = self.progress();
        let repository = progress.repository.take();
        let is_evicted = self.connected.connection().is_evicted();
        match &mut progress.record {
            None if is_evicted => self.state.refused(self.address, MADE_ROOM),
            None => self.state.refused(self.address, "handshake"),
            Some(record) => {
                record.counters.add_received(ended.received_bytes);
                record.counters.add_sent(ended.sent_bytes);
                match &ended.error {
                    None => record.status(200),
                    Some(_) if is_evicted => record.ended(503, MADE_ROOM.to_owned()),
                    Some(error) => record.ended(status(ended.error_kind), error.clone()),
                }
            }
        }
        drop(progress);
        if let Some(repository) = repository.filter(|_| ended.changed_refs > 0) {
            self.state.service.pushed(&repository);
        }
    }
}

/// The rules of the server for the refs that a peer pushes.
struct ServerRules(Arc<AdmittedRequest>);

impl RefRules for ServerRules {
    fn refusal(&self, name: &[u8], creates: bool) -> Option<String> {
        let change = RequestedRefChange {
            name,
            creates,
            deletes: false,
        };
        match self.0.is_revoked() {
            true => Some(REVOKED.to_owned()),
            false => self.0.refusal(&change),
        }
    }

    fn admit(
        &self,
        repository: &Repository,
        growth: Growth,
    ) -> std::result::Result<Option<GrowthTurn>, String> {
        if self.0.is_revoked() {
            return Err(REVOKED.to_owned());
        }
        let bounds = self.0.bounds();
        if bounds.is_empty() {
            return Ok(None);
        }
        let turn = bounds.turn(repository);
        let turn = turn.map_err(|error| error.message().to_owned())?;
        match bounds.refusal(repository, growth) {
            Ok(None) => Ok(Some(turn)),
            Ok(Some(reason)) => Err(reason),
            Err(error) => Err(error.message().to_owned()),
        }
    }
}

async fn triggered(interrupt: &Interrupt) {
    while !interrupt.is_triggered() {
        tokio::time::sleep(LOOK).await;
    }
}

/// Returns the name of the requested repository, or `None` if the peer names no repository.
fn repository_name(name: &[u8]) -> Result<Option<RepositoryName>> {
    let name = name.trim_with(|byte| byte == '/');
    if name.is_empty() {
        return Ok(None);
    }
    let malformed = |_| {
        Error::new(
            ErrorKind::InvalidName,
            "the name of the repository is not UTF-8",
        )
    };
    RepositoryName::parse(name.to_str().map_err(malformed)?).map(Some)
}

/// Returns the only repository, for a peer that names no repository. A peer without access to that repository
/// gets the same error as with several repositories.
fn only_repository(setup: &Setup, user: Option<&str>) -> Result<RepositoryName> {
    let single = setup.repositories.single()?;
    let known = single.filter(|repository| {
        let question = Question {
            user,
            protocol: PROTOCOL,
            repository,
            action: RepositoryAction::Fetch,
        };
        setup.may(&question).is_ok()
    });
    known.ok_or_else(not_one)
}

fn not_one() -> Error {
    let message = "the address must name a repository: netsync://HOST:PORT/PATH";
    Error::new(ErrorKind::InvalidName, message)
}

/// Checks that netsync supports everything that a push to the repository needs.
///
/// # Errors
/// Fails with [`ErrorKind::Denied`] if the repository has a hook, or a setting, that only a push with git
/// obeys.
fn check_support(repository: &OpenRepository) -> Result<()> {
    let failed = |error: pronto::Error| error.map_kind(|_| ErrorKind::Failed);
    let denied = |what: &str| {
        let message = format!("{what}: push with git, or use --pull to receive only");
        Err(Error::new(ErrorKind::Denied, message))
    };
    if let Some(hook) = HOOKS.iter().find(|name| hooks::exists(repository, name)) {
        let what = format!("the server repository has a '{hook}' hook, which netsync does not run");
        return denied(&what);
    }
    let limit = repository.config().u64("receive.maxinputsize");
    if limit.map_err(failed)?.is_some_and(|bytes| bytes > 0) {
        return denied(
            "the server repository sets receive.maxInputSize, which netsync does not implement",
        );
    }
    match receive_pack::can_serve(repository).map_err(failed)? {
        true => Ok(()),
        false => denied(
            "the server repository is grafted, partial or shared, which netsync does not support",
        ),
    }
}

/// Returns the error for an unknown key.
fn unknown(key: &PublicKey) -> Error {
    let message = format!(
        "the server does not know the key with fingerprint {}; ask its operator to run: pronto \
         serve --config FILE user key add NAME {key}",
        key.fingerprint()
    );
    Error::new(ErrorKind::Unauthenticated, message)
}

/// Returns the kind of an error for peers, which follows from the HTTP status of the error.
fn kind_of(error: &Error) -> PeerErrorKind {
    match (record::status(error), error.kind()) {
        (404, _) | (_, ErrorKind::InvalidName) => PeerErrorKind::NoRepository,
        (429 | 503, _) => PeerErrorKind::Busy,
        (500, _) => PeerErrorKind::Repository,
        _ => PeerErrorKind::Denied,
    }
}

/// Returns the HTTP status for the end of a session.
fn status(kind: Option<PeerErrorKind>) -> u16 {
    match kind {
        Some(PeerErrorKind::Denied) => 403,
        Some(PeerErrorKind::NoRepository) => 404,
        Some(PeerErrorKind::Busy) => 503,
        Some(PeerErrorKind::Repository) => 500,
        _ => 400,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_passes_is_busy_for_peers() {
        let kind = |kind| kind_of(&Error::new(kind, "x"));
        for passing in [
            ErrorKind::TooMany,
            ErrorKind::Overloaded,
            ErrorKind::QueueFull,
            ErrorKind::Unavailable,
        ] {
            assert_eq!(kind(passing), PeerErrorKind::Busy, "{passing:?}");
            assert_eq!(status(Some(kind(passing))), 503);
        }
        let exhausted = crate::error::without_room("x");
        assert_eq!(kind_of(&exhausted), PeerErrorKind::Busy);
        assert_eq!(kind(ErrorKind::InvalidName), PeerErrorKind::NoRepository);
        assert_eq!(kind(ErrorKind::NotFound), PeerErrorKind::NoRepository);
        assert_eq!(kind(ErrorKind::Io), PeerErrorKind::Repository);
        assert_eq!(kind(ErrorKind::Denied), PeerErrorKind::Denied);
        assert_eq!(kind(ErrorKind::Unauthenticated), PeerErrorKind::Denied);
    }
}
