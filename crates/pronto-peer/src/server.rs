//! A server of many peers over TLS, with one thread for each connection.
//!
//! The resources of a connection grow as its peer authenticates:
//!
//! 1. An unauthenticated connection (`lobby`) has a few seconds for the handshake and the greeting
//!    together, a thread, a socket and less than 256 KiB. No repository is accessed or mentioned.
//! 2. A peer with a known key waits for a slot (`places`), which includes a little memory for the
//!    duration of the session. Each peer has at most a quarter of the slots, and slow sessions lose
//!    theirs to waiting sessions.
//! 3. The memory for work (`gate`) is reserved for each unit of work, and released before the
//!    session waits for the peer again. So a stalled peer holds no such memory.
//!
//! For each connection, a [`PeerHost`] identifies the peer and decides about its permissions.

mod admit;
mod gate;
mod gated;
mod host;
mod listed;
mod session_slots;
mod unauthenticated;

use std::io;
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::os::fd::AsFd as _;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering::Relaxed};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use pronto_io::error::IoContext as _;
use pronto_io::interrupt::Interrupt;
use pronto_netsync::message::StoreResult;
use pronto_netsync::session::{self, Report, SyncSession};
use pronto_netsync::{Error, ErrorKind};
use rustix::event::{PollFd, PollFlags, Timespec, poll};

use super::keys::{KeyPair, PublicKey};
use super::stream::{SessionWatch, drive};
use super::tls::Acceptor;
use admit::PendingConnection;
use gate::Gate;
use gated::Gated;
use pronto::Result;
use session_slots::{SessionSlots, SlotSignal};
use unauthenticated::{PeerNetwork, UnauthenticatedConnections};

pub use super::incoming::{
    MOST_DELTA_BYTES, MOST_OBJECT_BYTES, MOST_PARENTS, MOST_PARENTS_OF_ALL, MOST_SEGMENT_BYTES,
    MOST_SEGMENT_OBJECTS,
};
pub use host::{HostedRepository, PeerHost, PeerVisit};
pub use listed::ListedPeers;

/// The interval at which the server checks whether it must end.
const LOOK: Duration = Duration::from_millis(100);

/// The number of bytes that may be in flight to a session for each channel, and that may be queued for
/// writing.
const WINDOW_BYTES: u64 = 1 << 20;

/// The limits of a server.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct PeerLimits {
    /// The largest number of sessions, at least 4, and of waiting sessions. A quarter as many connections, 64
    /// to 256, may be in the handshake or the greeting, half of them from one network.
    pub connections: usize,
    /// The largest number of sessions of a peer, at most a quarter of all, and of its waiting sessions.
    pub sessions_per_peer: usize,
    /// The memory in bytes of all sessions. One half is for sessions that wait for their peers, at least four
    /// of them. The other half is for sessions for which the server works, at least one.
    pub memory_bytes: u64,
    /// The timeout of the handshake and the greeting together.
    pub handshake: Duration,
    /// The timeout in which a peer must move 16 KiB or take a step of the protocol.
    pub idle: Duration,
    /// The time after which a peer that has not moved 40 KiB or taken a step counts as slow. The session of a
    /// slow peer may lose its slot to a waiting session.
    pub slow: Duration,
    /// The time after which a waiting session gets the slot of a peer or network that has more than its
    /// share.
    pub turn: Duration,
    /// The longest wait of a peer for a slot.
    pub waiting: Duration,
    /// The longest duration of a session.
    pub session: Duration,
}

impl Default for PeerLimits {
    fn default() -> Self {
        PeerLimits {
            connections: 1024,
            sessions_per_peer: 16,
            memory_bytes: 1 << 30,
            handshake: Duration::from_secs(5),
            idle: Duration::from_secs(300),
            slow: Duration::from_secs(10),
            turn: Duration::from_secs(20),
            waiting: Duration::from_secs(60),
            session: Duration::from_secs(12 * 3600),
        }
    }
}

/// The options of a server.
#[non_exhaustive]
pub struct Options {
    /// The key pair of the server.
    pub key: KeyPair,
    /// The policy about peers.
    pub host: Box<dyn PeerHost>,
    /// The limits of the server.
    pub limits: PeerLimits,
    /// The refs that can be synchronised.
    pub globs: pronto_netsync::message::Globs,
    /// Allow unrelated histories, which have no common commit, to be joined (`--allow-unrelated`).
    pub allows_unrelated: bool,
    /// End the server after the first connection (`--once`).
    pub is_once: bool,
}

impl Options {
    /// Returns the options of a server with the key pair `key` and the policy `host`.
    pub fn new(key: KeyPair, host: Box<dyn PeerHost>) -> Self {
        Options {
            key,
            host,
            limits: PeerLimits::default(),
            globs: pronto_netsync::message::Globs::default(),
            allows_unrelated: false,
            is_once: false,
        }
    }
}

/// An event of the server.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub enum Event {
    /// The server accepts connections.
    Listening {
        /// The address of the socket.
        address: SocketAddr,
        /// The public key of the server.
        key: PublicKey,
    },
    /// A connection was closed immediately, because the system has no resources for it.
    Overloaded {
        /// The address of the peer.
        address: SocketAddr,
    },
    /// A connection has ended.
    Ended(ConnectionSummary),
    /// The server drains, and admits no more sessions.
    Draining {
        /// The number of open connections.
        connections: usize,
    },
}

/// The record of a connection.
#[derive(Clone, Debug)]
pub struct ConnectionSummary {
    /// The number of the connection, counted from the start of the server.
    pub number: u64,
    /// The address of the peer.
    pub address: SocketAddr,
    /// The name of the peer, if the peer is known.
    pub peer: Option<String>,
    /// The key that the peer has presented.
    pub key: Option<PublicKey>,
    /// The requested repository, if the peer was admitted.
    pub repository: Option<Vec<u8>>,
    /// The number of received bytes of segments.
    pub received_bytes: u64,
    /// The number of sent bytes of segments.
    pub sent_bytes: u64,
    /// The number of refs of the peer that changed here.
    pub changed_refs: usize,
    /// The duration of the connection.
    pub duration: Duration,
    /// The reason of a failure.
    pub error: Option<String>,
    /// The kind of the error.
    pub error_kind: Option<ErrorKind>,
}

/// A receiver of the server's events. Many threads call it.
pub type OnPeerEvent = dyn Fn(&Event) + Send + Sync;

/// The interrupts that end a server.
#[derive(Clone, Copy)]
pub struct Shutdown<'a> {
    /// Stops accepting connections. The server returns when all sessions have ended.
    pub drain: &'a Interrupt,
    /// Stops accepting connections, and ends all sessions.
    pub stop: &'a Interrupt,
}

/// A server that is ready to serve.
pub struct BoundServer {
    listeners: Vec<TcpListener>,
    addresses: Vec<SocketAddr>,
    options: Options,
    acceptor: Acceptor,
}

impl BoundServer {
    /// Prepares to serve connections to `listeners`.
    ///
    /// # Errors
    /// Fails with `pronto::ErrorKind::Transport` if the key cannot be used, and with `Io` if a socket is
    /// not listening.
    pub fn new(listeners: Vec<TcpListener>, options: Options) -> Result<BoundServer> {
        let failed = |error: Error| error.map_kind(|_| pronto::ErrorKind::Transport);
        let acceptor = Acceptor::new(&options.key).map_err(failed)?;
        let address = |listener: &TcpListener| {
            listener.set_nonblocking(true)?;
            listener.local_addr()
        };
        let addresses: io::Result<Vec<SocketAddr>> = listeners.iter().map(address).collect();
        let unusable = "cannot listen for netsync peers";
        Ok(BoundServer {
            addresses: addresses.context(pronto::ErrorKind::Io, unusable, "")?,
            listeners,
            options,
            acceptor,
        })
    }

    /// Serves until `shutdown` ends it.
    pub fn serve(self, shutdown: Shutdown<'_>, on_event: Box<OnPeerEvent>) {
        let Shutdown { drain, stop } = shutdown;
        let server = Arc::new(PeerServer::new(self.options, self.acceptor, stop, on_event));
        let key = server.key;
        for address in self.addresses {
            (server.on_event)(&Event::Listening { address, key });
        }
        let mut is_over = false;
        while !is_over && !drain.is_triggered() && !stop.is_triggered() {
            for listener in ready(&self.listeners) {
                is_over |= server.accept(listener) && server.options.is_once;
            }
        }
        let connections = server.connected.load(Relaxed);
        if connections > 0 && !server.options.is_once {
            (server.on_event)(&Event::Draining { connections });
        }
        while server.connected.load(Relaxed) > 0 {
            std::thread::sleep(LOOK / 10);
        }
    }
}

/// Waits a moment for connections. Returns the sockets with pending connections.
fn ready(listeners: &[TcpListener]) -> Vec<&TcpListener> {
    let mut fds: Vec<PollFd<'_>> = (listeners.iter())
        .map(|listener| PollFd::from_borrowed_fd(listener.as_fd(), PollFlags::IN))
        .collect();
    let look = Timespec {
        tv_sec: 0,
        tv_nsec: LOOK.subsec_nanos().into(),
    };
    if poll(&mut fds, Some(&look)).is_err() {
        // The call was interrupted, or the system has no memory. Both conditions are temporary.
        std::thread::sleep(LOOK / 10);
        return Vec::new();
    }
    let ready = listeners.iter().zip(&fds);
    let ready = ready.filter(|(_, fd)| !fd.revents().is_empty());
    ready.map(|(listener, _)| listener).collect()
}

/// The two handles of a connection: one for its thread, and one for other threads, which examine or close the
/// connection.
struct Sockets {
    socket: TcpStream,
    other: Arc<TcpStream>,
}

/// The state that all threads share.
struct PeerServer {
    options: Options,
    key: PublicKey,
    acceptor: Acceptor,
    stop: Interrupt,
    on_event: Box<OnPeerEvent>,
    lobby: UnauthenticatedConnections,
    places: Arc<SessionSlots>,
    gate: Arc<Gate>,
    /// The number of open connections.
    connected: AtomicUsize,
    begun: AtomicU64,
}

impl PeerServer {
    fn new(
        options: Options,
        acceptor: Acceptor,
        stop: &Interrupt,
        on_event: Box<OnPeerEvent>,
    ) -> Self {
        let limits = &options.limits;
        let half = limits.memory_bytes / 2;
        PeerServer {
            key: options.key.public(),
            lobby: UnauthenticatedConnections::new(limits.connections),
            places: Arc::new(SessionSlots::new(limits, half)),
            gate: Arc::new(Gate::new(half)),
            options,
            acceptor,
            stop: stop.clone(),
            on_event,
            connected: AtomicUsize::new(0),
            begun: AtomicU64::new(0),
        }
    }

    /// Accepts a connection. Returns whether a connection was pending.
    fn accept(self: &Arc<Self>, listener: &TcpListener) -> bool {
        match listener.accept() {
            Ok((socket, address)) => {
                self.begin(socket, address);
                true
            }
            // The connection was closed again, or the system has no file descriptors. Other connections may
            // still succeed.
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => false,
            Err(_) => {
                self.lobby.make_room();
                std::thread::sleep(LOOK);
                false
            }
        }
    }

    /// Serves a connection in a new thread, if the host admits it.
    fn begin(self: &Arc<Self>, socket: TcpStream, address: SocketAddr) {
        let Some(visit) = self.options.host.connect(address) else {
            return;
        };
        let number = self.begun.fetch_add(1, Relaxed);
        let Ok(other) = socket.try_clone().map(Arc::new) else {
            self.lobby.make_room();
            (self.on_event)(&Event::Overloaded { address });
            return;
        };
        visit.begun(&other);
        let network = PeerNetwork::of(address.ip());
        self.lobby.enter(number, network, Arc::clone(&other));
        self.connected.fetch_add(1, Relaxed);
        let gone = ConnectionRemoval(Arc::clone(self), number);
        let sockets = Sockets { socket, other };
        let work = move || {
            let server = Arc::clone(&gone.0);
            let ended = server.session(&visit, sockets, &gone, address);
            visit.ended(&ended);
            (server.on_event)(&Event::Ended(ended));
            drop(visit);
            drop(gone);
        };
        let thread = std::thread::Builder::new().name("peer".into()).spawn(work);
        if thread.is_err() {
            (self.on_event)(&Event::Overloaded { address });
        }
    }

    /// Serves one connection to its end.
    fn session(
        self: &Arc<Self>,
        visit: &Arc<dyn PeerVisit>,
        sockets: Sockets,
        gone: &ConnectionRemoval,
        address: SocketAddr,
    ) -> ConnectionSummary {
        let begun = Instant::now();
        let mut ended = ConnectionSummary {
            number: gone.1,
            address,
            peer: None,
            key: None,
            repository: None,
            received_bytes: 0,
            sent_bytes: 0,
            changed_refs: 0,
            duration: Duration::ZERO,
            error: None,
            error_kind: None,
        };
        if let Err(error) = self.run(visit, sockets, &mut ended) {
            ended.error = Some(error.to_string());
            ended.error_kind = Some(error.kind());
        }
        ended.duration = begun.elapsed();
        ended
    }

    fn run(
        self: &Arc<Self>,
        visit: &Arc<dyn PeerVisit>,
        sockets: Sockets,
        ended: &mut ConnectionSummary,
    ) -> Result<(), Error> {
        let (limits, begun) = (&self.options.limits, Instant::now());
        let Sockets { socket, other } = sockets;
        let mut link = self.acceptor.accept(socket, limits.handshake)?;
        let key = link.peer_key().ok_or_else(|| {
            Error::new(ErrorKind::Denied, "the peer did not present an Ed25519 key")
        })?;
        ended.key = Some(key);
        let name = visit.identify(&key);
        ended.peer = name.as_ref().ok().cloned();
        let why = name.as_ref().err();
        let why = why.map(|error| Error::new(error.kind(), error.message()));
        let (asked, signal) = (Arc::new(Mutex::new(None)), Arc::new(SlotSignal::default()));
        let mut options = session::Options::default();
        options.nonce = super::nonce().map_err(super::failed)?;
        options.globs = self.options.globs.clone();
        options.allows_unrelated = self.options.allows_unrelated;
        options.window_bytes = WINDOW_BYTES;
        options.queue_bytes = WINDOW_BYTES as usize;
        let connection = PendingConnection {
            server: Arc::clone(self),
            visit: Arc::clone(visit),
            number: ended.number,
            network: PeerNetwork::of(ended.address.ip()),
            socket: other,
            signal: Arc::clone(&signal),
            asked: Arc::clone(&asked),
        };
        let mut session: SyncSession<Gated> =
            SyncSession::respond(options, connection.admission(name));
        let keep = |quiet| {
            if begun.elapsed() > limits.session {
                let message = format!(
                    "timeout: a session may take at most {} s",
                    limits.session.as_secs()
                );
                return Err(Error::new(ErrorKind::Busy, message));
            }
            signal.keep(quiet)
        };
        let mut watch = SessionWatch {
            report: &mut |_| {},
            interrupt: &self.stop,
            keep: &keep,
            patience: limits.idle,
            // The timeout covers the handshake and the greeting together.
            greeting_patience: limits.handshake.saturating_sub(begun.elapsed()),
        };
        let result = drive(&mut session, &mut link, &mut watch);
        note(ended, session.report());
        ended.repository = asked.lock().unwrap_or_else(PoisonError::into_inner).take();
        match (result, why) {
            // The peer was refused. The way in which the connection ended does not matter.
            (Err(_), Some(why)) => Err(why),
            (result, _) => result,
        }
    }
}

fn note(ended: &mut ConnectionSummary, report: &Report) {
    ended.received_bytes = report.received_bytes;
    ended.sent_bytes = report.sent_bytes;
    let refs = report.published.iter();
    ended.changed_refs = refs
        .filter(|each| each.stored != StoreResult::Refused)
        .count();
}

/// A guard that removes a connection from the list when its thread ends.
struct ConnectionRemoval(Arc<PeerServer>, u64);

impl Drop for ConnectionRemoval {
    fn drop(&mut self) {
        self.0.lobby.leave(self.1);
        self.0.connected.fetch_sub(1, Relaxed);
    }
}
