//! A server of many peers over TLS, with one thread for each connection.
//!
//! The resources of a connection grow with what is known about its peer:
//!
//! 1. A stranger (`lobby`) has a few seconds for the handshake and the greeting together, a thread,
//!    a socket and less than 256 KiB. No repository is accessed or mentioned.
//! 2. A peer with a known key waits for a place (`places`): a little memory for the duration of the
//!    session. Each peer has at most a quarter of the places, and slow sessions lose theirs to others.
//! 3. The memory for work (`gate`) is taken for each piece of work, and returned before the session
//!    waits for the peer again. So a peer that stalls holds none of it.
//!
//! A [`Host`] decides who the peers are and what they may do, for each connection.

mod admit;
mod gate;
mod gated;
mod host;
mod listed;
mod lobby;
mod places;

use std::io;
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::os::fd::AsFd as _;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering::Relaxed};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use pronto_io::error::IoContext as _;
use pronto_io::interrupt::Interrupt;
use pronto_netsync::message::Stored;
use pronto_netsync::session::{self, Report, Session};
use pronto_netsync::{Error, ErrorKind};
use rustix::event::{PollFd, PollFlags, Timespec, poll};

use super::keys::{KeyPair, PublicKey};
use super::stream::{Watch, drive};
use super::tls::Acceptor;
use admit::Connection;
use gate::Gate;
use gated::Gated;
use lobby::{Lobby, Network};
use places::{Places, Signal};
use pronto::Result;

pub use super::incoming::{
    MOST_DELTA_BYTES, MOST_OBJECT_BYTES, MOST_PARENTS, MOST_PARENTS_OF_ALL, MOST_SEGMENT_BYTES,
    MOST_SEGMENT_OBJECTS,
};
pub use host::{Host, Opened, Visit};
pub use listed::ListedPeers;

/// The interval at which the server checks whether it must end.
const LOOK: Duration = Duration::from_millis(100);

/// The number of bytes that may be under way to a session for each channel, and that may wait to be
/// written.
const WINDOW_BYTES: u64 = 1 << 20;

/// The limits of a server.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Limits {
    /// The largest number of sessions, at least 4, and of those that wait. A quarter as many
    /// connections, 64 to 256, may be in the handshake or the greeting, half of them from one network.
    pub connections: usize,
    /// The largest number of sessions of a peer, at most a quarter of all, and of those that wait.
    pub sessions_per_peer: usize,
    /// The memory of all sessions: one half while they wait for their peers, where there is room for
    /// four at least, and the other while the server works for them, for one at least.
    pub memory_bytes: u64,
    /// The time limit for the handshake and the greeting together.
    pub handshake: Duration,
    /// The time in which a peer must move 16 KiB or take a step of the protocol.
    pub idle: Duration,
    /// After how long a peer that has not moved 40 KiB or taken a step counts as slow: the session
    /// may lose its place to another that waits.
    pub slow: Duration,
    /// After how long one that waits gets the place of a peer or network that has more than its own.
    pub turn: Duration,
    /// The longest time for which a peer waits for a place.
    pub waiting: Duration,
    /// The longest session.
    pub session: Duration,
}

impl Default for Limits {
    fn default() -> Self {
        Limits {
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

/// Options of a server.
#[non_exhaustive]
pub struct Options {
    /// The key pair of this side.
    pub key: KeyPair,
    /// Decides about peers.
    pub host: Box<dyn Host>,
    /// Its limits.
    pub limits: Limits,
    /// Which refs take part.
    pub globs: pronto_netsync::message::Globs,
    /// Whether histories that have nothing in common may become one.
    pub allows_unrelated: bool,
    /// Whether it ends after the first connection.
    pub is_once: bool,
}

impl Options {
    /// Returns the options of a server with the key pair `key`, whose peers `host` decides about.
    pub fn new(key: KeyPair, host: Box<dyn Host>) -> Self {
        Options {
            key,
            host,
            limits: Limits::default(),
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
    /// The server listens.
    Listening {
        /// The address.
        address: SocketAddr,
        /// The public key of the server.
        key: PublicKey,
    },
    /// A connection was ended at once: the system has no room for it.
    Overloaded {
        /// The name of the peer.
        address: SocketAddr,
    },
    /// A connection is over.
    Ended(Ended),
    /// No more sessions are admitted.
    Draining {
        /// The number of open connections.
        connections: usize,
    },
}

/// The course of a connection.
#[derive(Clone, Debug)]
pub struct Ended {
    /// Its number since the server began.
    pub number: u64,
    /// The name of the peer.
    pub address: SocketAddr,
    /// The name of the peer, if it is known.
    pub peer: Option<String>,
    /// The key that it has shown.
    pub key: Option<PublicKey>,
    /// The repository that it asked for, once it was let in.
    pub repository: Option<Vec<u8>>,
    /// Bytes of segments that came and went.
    pub received_bytes: u64,
    /// See [`received_bytes`](Self::received_bytes).
    pub sent_bytes: u64,
    /// The number of its refs that changed here.
    pub changed_refs: usize,
    /// The duration.
    pub duration: Duration,
    /// The reason of a failure.
    pub error: Option<String>,
    /// Its kind.
    pub error_kind: Option<ErrorKind>,
}

/// A receiver of the server's events. Called from many threads.
pub type Tell = dyn Fn(&Event) + Send + Sync;

/// The interrupts that end a server.
#[derive(Clone, Copy)]
pub struct Shutdown<'a> {
    /// Ends listening; the server returns when all sessions are over.
    pub drain: &'a Interrupt,
    /// Ends listening and all sessions.
    pub stop: &'a Interrupt,
}

/// A server that is ready to serve.
pub struct Ready {
    listeners: Vec<TcpListener>,
    addresses: Vec<SocketAddr>,
    options: Options,
    acceptor: Acceptor,
}

impl Ready {
    /// Prepares to serve connections to `listeners`.
    ///
    /// # Errors
    /// The key cannot be used, or a socket is no listening one.
    pub fn new(listeners: Vec<TcpListener>, options: Options) -> Result<Ready> {
        let failed = |error: Error| error.map_kind(|_| pronto::ErrorKind::Transport);
        let acceptor = Acceptor::new(&options.key).map_err(failed)?;
        let address = |listener: &TcpListener| {
            listener.set_nonblocking(true)?;
            listener.local_addr()
        };
        let addresses: io::Result<Vec<SocketAddr>> = listeners.iter().map(address).collect();
        let unusable = "cannot listen for peers";
        Ok(Ready {
            addresses: addresses.context(pronto::ErrorKind::Io, unusable, "")?,
            listeners,
            options,
            acceptor,
        })
    }

    /// Serves until `shutdown` ends it.
    pub fn serve(self, shutdown: Shutdown<'_>, tell: Box<Tell>) {
        let Shutdown { drain, stop } = shutdown;
        let server = Arc::new(Server::new(self.options, self.acceptor, stop, tell));
        let key = server.key;
        for address in self.addresses {
            (server.tell)(&Event::Listening { address, key });
        }
        let mut is_over = false;
        while !is_over && !drain.is_triggered() && !stop.is_triggered() {
            for listener in ready(&self.listeners) {
                is_over |= server.accept(listener) && server.options.is_once;
            }
        }
        let connections = server.connected.load(Relaxed);
        if connections > 0 && !server.options.is_once {
            (server.tell)(&Event::Draining { connections });
        }
        while server.connected.load(Relaxed) > 0 {
            std::thread::sleep(LOOK / 10);
        }
    }
}

/// Waits a moment for connections. Returns the sockets that have some.
fn ready(listeners: &[TcpListener]) -> Vec<&TcpListener> {
    let mut fds: Vec<PollFd<'_>> = (listeners.iter())
        .map(|listener| PollFd::from_borrowed_fd(listener.as_fd(), PollFlags::IN))
        .collect();
    let look = Timespec {
        tv_sec: 0,
        tv_nsec: LOOK.subsec_nanos().into(),
    };
    if poll(&mut fds, Some(&look)).is_err() {
        // Interrupted, or without memory. Both pass.
        std::thread::sleep(LOOK / 10);
        return Vec::new();
    }
    let ready = listeners.iter().zip(&fds);
    let ready = ready.filter(|(_, fd)| !fd.revents().is_empty());
    ready.map(|(listener, _)| listener).collect()
}

/// A connection: the socket of its thread, and one by which others examine or end it.
struct Sockets {
    socket: TcpStream,
    other: Arc<TcpStream>,
}

/// State that all threads share.
struct Server {
    options: Options,
    key: PublicKey,
    acceptor: Acceptor,
    stop: Interrupt,
    tell: Box<Tell>,
    lobby: Lobby,
    places: Arc<Places>,
    gate: Arc<Gate>,
    /// The number of open connections.
    connected: AtomicUsize,
    begun: AtomicU64,
}

impl Server {
    fn new(options: Options, acceptor: Acceptor, stop: &Interrupt, tell: Box<Tell>) -> Self {
        let limits = &options.limits;
        let half = limits.memory_bytes / 2;
        Server {
            key: options.key.public(),
            lobby: Lobby::new(limits.connections),
            places: Arc::new(Places::new(limits, half)),
            gate: Arc::new(Gate::new(half)),
            options,
            acceptor,
            stop: stop.clone(),
            tell,
            connected: AtomicUsize::new(0),
            begun: AtomicU64::new(0),
        }
    }

    /// Accepts a connection. Returns whether there was one.
    fn accept(self: &Arc<Self>, listener: &TcpListener) -> bool {
        match listener.accept() {
            Ok((socket, address)) => {
                self.begin(socket, address);
                true
            }
            // The connection was closed again, or there are no descriptors: others may still connect.
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
            (self.tell)(&Event::Overloaded { address });
            return;
        };
        visit.begun(&other);
        let network = Network::of(address.ip());
        self.lobby.enter(number, network, Arc::clone(&other));
        self.connected.fetch_add(1, Relaxed);
        let gone = Gone(Arc::clone(self), number);
        let sockets = Sockets { socket, other };
        let work = move || {
            let server = Arc::clone(&gone.0);
            let ended = server.session(&visit, sockets, &gone, address);
            visit.ended(&ended);
            (server.tell)(&Event::Ended(ended));
            drop(visit);
            drop(gone);
        };
        let thread = std::thread::Builder::new().name("peer".into()).spawn(work);
        if thread.is_err() {
            (self.tell)(&Event::Overloaded { address });
        }
    }

    /// Serves one connection to its end.
    fn session(
        self: &Arc<Self>,
        visit: &Arc<dyn Visit>,
        sockets: Sockets,
        gone: &Gone,
        address: SocketAddr,
    ) -> Ended {
        let begun = Instant::now();
        let mut ended = Ended {
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
            ended.error_kind = Some(*error.kind());
        }
        ended.duration = begun.elapsed();
        ended
    }

    fn run(
        self: &Arc<Self>,
        visit: &Arc<dyn Visit>,
        sockets: Sockets,
        ended: &mut Ended,
    ) -> Result<(), Error> {
        let (limits, begun) = (&self.options.limits, Instant::now());
        let Sockets { socket, other } = sockets;
        let mut link = self.acceptor.accept(socket, limits.handshake)?;
        let key = link
            .peer_key()
            .ok_or_else(|| Error::new(ErrorKind::Denied, "the peer has shown no key of Ed25519"))?;
        ended.key = Some(key);
        let name = visit.identify(&key);
        ended.peer = name.as_ref().ok().cloned();
        let why = name.as_ref().err();
        let why = why.map(|error| Error::new(*error.kind(), error.message()));
        let (asked, signal) = (Arc::new(Mutex::new(None)), Arc::new(Signal::default()));
        let mut options = session::Options::default();
        options.nonce = super::nonce().map_err(super::failed)?;
        options.globs = self.options.globs.clone();
        options.allows_unrelated = self.options.allows_unrelated;
        options.window_bytes = WINDOW_BYTES;
        options.queue_bytes = WINDOW_BYTES as usize;
        let connection = Connection {
            server: Arc::clone(self),
            visit: Arc::clone(visit),
            number: ended.number,
            network: Network::of(ended.address.ip()),
            socket: other,
            signal: Arc::clone(&signal),
            asked: Arc::clone(&asked),
        };
        let mut session: Session<Gated> = Session::respond(options, connection.admission(name));
        let keep = |quiet| {
            if begun.elapsed() > limits.session {
                let message = format!("a session takes {} s at most", limits.session.as_secs());
                return Err(Error::new(ErrorKind::Busy, message));
            }
            signal.keep(quiet)
        };
        let mut watch = Watch {
            report: &mut |_| {},
            interrupt: &self.stop,
            keep: &keep,
            patience: limits.idle,
            // One time for the handshake and the greeting together.
            greeting_patience: limits.handshake.saturating_sub(begun.elapsed()),
        };
        let result = drive(&mut session, &mut link, &mut watch);
        note(ended, session.report());
        ended.repository = asked.lock().unwrap_or_else(PoisonError::into_inner).take();
        match (result, why) {
            // It was refused; how the connection ended does not matter.
            (Err(_), Some(why)) => Err(why),
            (result, _) => result,
        }
    }
}

fn note(ended: &mut Ended, report: &Report) {
    ended.received_bytes = report.received_bytes;
    ended.sent_bytes = report.sent_bytes;
    let refs = report.published.iter();
    ended.changed_refs = refs.filter(|each| each.stored != Stored::Refused).count();
}

/// Removes a connection from the list when its thread ends.
struct Gone(Arc<Server>, u64);

impl Drop for Gone {
    fn drop(&mut self) {
        self.0.lobby.leave(self.1);
        self.0.connected.fetch_sub(1, Relaxed);
    }
}
