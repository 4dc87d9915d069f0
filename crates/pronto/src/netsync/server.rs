//! Serving many peers at once over TLS, one thread for each.
//!
//! Who connects has a short while for the handshake and the greeting; until its key is found among
//! the known peers it costs a thread, a socket and less than 256 KiB, and nothing of any
//! repository is said or looked at. Then it waits for its part of one budget of memory for all.
//! When there are too many connections, those that have not shown a known key end first.
//!
//! The list of peers is read for each connection: what was revoked counts from the next one on.

mod admit;
mod budget;

use std::collections::BTreeMap;
use std::io;
use std::net::{Shutdown, SocketAddr, TcpListener, TcpStream};
use std::os::fd::AsFd as _;
use std::path::PathBuf;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use pronto_io::error::IoContext as _;
use pronto_io::interrupt::Interrupt;
use pronto_netsync::session::{self, Report, Session};
use pronto_netsync::{Error, ErrorKind};

use super::PeerRepository;
use super::keys::{KeyPair, PublicKey};
use super::stream::{Interest, Watch, drive, wait};
use super::tls::Acceptor;
use crate::Result;
use crate::environment::Environment;
use budget::Budget;

/// How often the server looks whether it shall end.
const LOOK: Duration = Duration::from_millis(100);

/// What a session with a known peer may hold: both directions, each with the largest object that
/// is held, what it is made of, and what is kept besides.
pub const SESSION_BYTES: u64 = 96 << 20;

/// What may be under way to a session, for each channel; and what may wait to be written.
const WINDOW_BYTES: u64 = 1 << 20;

/// What a server holds to.
#[derive(Clone, Debug)]
pub struct Limits {
    /// How many may be connected.
    pub connections: usize,
    /// How many sessions a peer may have at once.
    pub sessions_per_peer: usize,
    /// What all sessions may hold: as many run at once as [`SESSION_BYTES`] fits into it, one at
    /// least.
    pub memory_bytes: u64,
    /// How long the handshake may take, and then the greeting.
    pub handshake: Duration,
    /// How long a peer may be silent.
    pub idle: Duration,
    /// How long a peer may have to wait for memory.
    pub waiting: Duration,
    /// How much is taken in one session.
    pub budget_bytes: u64,
}

impl Default for Limits {
    fn default() -> Self {
        Limits {
            connections: 1024,
            sessions_per_peer: 16,
            memory_bytes: 1 << 30,
            handshake: Duration::from_secs(10),
            idle: Duration::from_secs(300),
            waiting: Duration::from_secs(120),
            budget_bytes: 1 << 40,
        }
    }
}

/// What is served, and how.
#[derive(Debug)]
pub struct Options {
    /// A repository, or a directory of repositories.
    pub place: PathBuf,
    /// What this side is known by.
    pub key: KeyPair,
    /// The list of known peers.
    pub peers: PathBuf,
    /// What repositories are opened with.
    pub environment: Environment,
    /// What it holds to.
    pub limits: Limits,
    /// Which refs take part.
    pub globs: pronto_netsync::message::Globs,
    /// Whether own branches move forward to those of peers.
    pub fast_forward: bool,
    /// Whether histories that have nothing in common may become one.
    pub allows_unrelated: bool,
    /// Whether it ends after the first connection.
    pub is_once: bool,
}

/// What a server has to tell.
#[derive(Clone, Debug)]
pub enum Event {
    /// It can be reached.
    Listening {
        /// Where.
        address: SocketAddr,
        /// What it is known by.
        key: PublicKey,
    },
    /// A connection was ended at once: there are too many.
    Overloaded {
        /// Whose.
        address: SocketAddr,
    },
    /// A connection is over.
    Ended(Ended),
    /// Nobody is let in any more.
    Draining {
        /// How many are still connected.
        connections: usize,
    },
}

/// How a connection went.
#[derive(Clone, Debug)]
pub struct Ended {
    /// Its number since the server began.
    pub number: u64,
    /// Who it was.
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
    /// How many of its refs changed here.
    pub changed_refs: usize,
    /// How long it was.
    pub duration: Duration,
    /// Why it failed.
    pub error: Option<String>,
}

/// Who listens to what a server tells. Called from many threads.
pub type Tell = dyn Fn(&Event) + Send + Sync;

/// Serves until `drain` is triggered and all sessions are over, or `stop` is, which ends those.
///
/// # Errors
/// The key cannot be used, or nobody can connect.
pub fn serve(
    listener: &TcpListener,
    options: Options,
    (drain, stop): (&Interrupt, &Interrupt),
    tell: Box<Tell>,
) -> Result<()> {
    let failed = |error: Error| error.map_kind(|_| crate::ErrorKind::Transport);
    let acceptor = Acceptor::new(&options.key).map_err(failed)?;
    let unusable = "cannot listen for peers";
    listener
        .set_nonblocking(true)
        .context(crate::ErrorKind::Io, unusable, "")?;
    let address = listener
        .local_addr()
        .context(crate::ErrorKind::Io, unusable, "")?;
    let server = Arc::new(Server {
        budget: Budget::new(options.limits.memory_bytes),
        key: options.key.public(),
        options,
        acceptor,
        stop: stop.clone(),
        tell,
        present: Mutex::default(),
        begun: AtomicU64::new(0),
    });
    let key = server.key;
    (server.tell)(&Event::Listening { address, key });
    while !drain.is_triggered() && !stop.is_triggered() {
        let interest = Interest {
            input: Some(listener.as_fd()),
            output: None,
        };
        let (can_accept, _) = wait(&interest, LOOK).map_err(failed)?;
        if !can_accept {
            continue;
        }
        match listener.accept() {
            Ok((socket, address)) => {
                server.begin(socket, address);
                if server.options.is_once {
                    break;
                }
            }
            // Who connected has gone again, or there is no room: in both cases others may come.
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
            Err(_) => std::thread::sleep(LOOK),
        }
    }
    let connections = server.present().len();
    if connections > 0 && !server.options.is_once {
        (server.tell)(&Event::Draining { connections });
    }
    while !server.present().is_empty() {
        std::thread::sleep(LOOK / 10);
    }
    Ok(())
}

/// What all threads share.
struct Server {
    options: Options,
    key: PublicKey,
    acceptor: Acceptor,
    stop: Interrupt,
    tell: Box<Tell>,
    budget: Budget,
    /// Who is connected, by number.
    present: Mutex<BTreeMap<u64, Present>>,
    begun: AtomicU64,
}

/// Somebody who is connected.
struct Present {
    /// To end it from another thread.
    socket: Option<TcpStream>,
    /// Once it has shown a known key.
    peer: Option<String>,
}

impl Server {
    fn present(&self) -> MutexGuard<'_, BTreeMap<u64, Present>> {
        self.present.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Takes up a connection in a thread of its own.
    fn begin(self: &Arc<Self>, socket: TcpStream, address: SocketAddr) {
        let number = self.begun.fetch_add(1, Relaxed);
        let mut present = self.present();
        if present.len() >= self.options.limits.connections {
            // The oldest that has not shown a known key has had the longest time to.
            let oldest = present
                .values_mut()
                .find(|each| each.peer.is_none() && each.socket.is_some());
            let Some(socket) = oldest.and_then(|each| each.socket.take()) else {
                drop(present);
                (self.tell)(&Event::Overloaded { address });
                return;
            };
            let _ = socket.shutdown(Shutdown::Both);
        }
        let other = socket.try_clone().ok();
        present.insert(
            number,
            Present {
                socket: other,
                peer: None,
            },
        );
        drop(present);
        let server = Arc::clone(self);
        let work = move || {
            let _gone = Gone(&server, number);
            let ended = server.session(number, socket, address);
            (server.tell)(&Event::Ended(ended));
        };
        let thread = std::thread::Builder::new().name("peer".into()).spawn(work);
        if thread.is_err() {
            self.present().remove(&number);
            (self.tell)(&Event::Overloaded { address });
        }
    }

    /// One connection from its beginning to its end.
    fn session(self: &Arc<Self>, number: u64, socket: TcpStream, address: SocketAddr) -> Ended {
        let begun = Instant::now();
        let mut ended = Ended {
            number,
            address,
            peer: None,
            key: None,
            repository: None,
            received_bytes: 0,
            sent_bytes: 0,
            changed_refs: 0,
            duration: Duration::ZERO,
            error: None,
        };
        if let Err(error) = self.run(socket, &mut ended) {
            ended.error = Some(error.to_string());
        }
        ended.duration = begun.elapsed();
        ended
    }

    fn run(self: &Arc<Self>, socket: TcpStream, ended: &mut Ended) -> Result<(), Error> {
        let limits = &self.options.limits;
        let mut link = self.acceptor.accept(socket, limits.handshake)?;
        let key = link
            .peer_key()
            .ok_or_else(|| Error::new(ErrorKind::Denied, "the peer has shown no key of Ed25519"))?;
        ended.key = Some(key);
        let known = self.known_peer(&key);
        ended.peer = known.as_ref().ok().map(|known| known.name.clone());
        let known = known.and_then(|known| {
            self.enter(ended.number, &known.name)?;
            Ok(known)
        });
        // Whoever is known has room for a session; others get none, and hear why.
        let (known, _room) = match known {
            Ok(known) => match self.budget.take(SESSION_BYTES, limits.waiting, &self.stop) {
                Some(room) => (Ok(known), Some(room)),
                None => {
                    let message = "too many sessions are under way";
                    (Err(Error::new(ErrorKind::Busy, message)), None)
                }
            },
            Err(error) => (Err(error), None),
        };
        let why = known.as_ref().err().map(|error| error.message().to_owned());
        let asked = Arc::new(Mutex::new(None));
        let options = session::Options {
            nonce: super::nonce().map_err(super::failed)?,
            globs: self.options.globs.clone(),
            allows_unrelated: self.options.allows_unrelated,
            window_bytes: WINDOW_BYTES,
            queue_bytes: WINDOW_BYTES as usize,
            ..session::Options::default()
        };
        let admit = admit::admission(Arc::clone(self), known, Arc::clone(&asked));
        let mut session: Session<PeerRepository> = Session::respond(options, admit);
        let mut watch = Watch {
            report: &mut |_| {},
            interrupt: &self.stop,
            patience: limits.idle,
            greeting_patience: limits.handshake,
        };
        let result = drive(&mut session, &mut link, &mut watch);
        note(ended, session.report());
        ended.repository = asked.lock().unwrap_or_else(PoisonError::into_inner).take();
        match (result, why) {
            // That it was refused is all there is to say, however it ended.
            (Err(_), Some(why)) => Err(Error::new(ErrorKind::Denied, why)),
            (result, _) => result,
        }
    }

    /// Takes note of who it is. Known peers are not ended for others.
    fn enter(&self, number: u64, name: &str) -> Result<(), Error> {
        let mut present = self.present();
        let of_peer = present
            .values()
            .filter(|each| each.peer.as_deref() == Some(name));
        if of_peer.count() >= self.options.limits.sessions_per_peer {
            let message = format!("'{name}' has too many sessions already");
            return Err(Error::new(ErrorKind::Busy, message));
        }
        if let Some(each) = present.get_mut(&number) {
            each.peer = Some(name.to_owned());
            each.socket = None;
        }
        Ok(())
    }
}

fn note(ended: &mut Ended, report: &Report) {
    ended.received_bytes = report.received_bytes;
    ended.sent_bytes = report.sent_bytes;
    ended.changed_refs = report.published.len();
}

/// Takes a connection off the list, however its thread ends.
struct Gone<'a>(&'a Server, u64);

impl Drop for Gone<'_> {
    fn drop(&mut self) {
        self.0.present().remove(&self.1);
    }
}
