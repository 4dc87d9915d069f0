//! Netsync: peers that authenticate as users with Ed25519 keys.
//!
//! `pronto_peer` provides the sockets, TLS and the session, on separate threads. This module
//! provides the policy: it finds the user of a key, counts connections and sessions together with
//! those of the other protocols, and applies the same roles and rules.

mod guest;

use std::net::{SocketAddr, TcpListener};
use std::path::Path;
use std::sync::Arc;

use pronto_io::interrupt::Interrupt;
use pronto_netsync::message::Globs;
use pronto_peer::KeyPair;
use pronto_peer::server::{BoundServer, Event, Options, PeerHost, PeerLimits, PeerVisit, Shutdown};
use tokio::runtime::Handle;
use tokio::sync::watch;

use crate::config;
use crate::connection::ServerPhase;
use crate::secret::{self, MissingKey, NewKey};
use crate::state::ServerState;
use crate::{Error, ErrorKind, Result};
use guest::NetsyncGuest;

/// The reason that the log shows when the system has no resources for a connection.
const NO_ROOM: &str = "out of memory or file descriptors";

/// Returns the key by which peers recognise the server. `missing` decides about a missing key file.
///
/// # Errors
/// Fails with [`ErrorKind::Config`] or [`ErrorKind::Io`] if the file cannot be read or written, is
/// not a private key, or is readable by other users.
pub(crate) fn key(config: &config::NetsyncConfig, missing: MissingKey) -> Result<KeyPair> {
    let Some(path) = &config.key else {
        return generate();
    };
    if let Some(key) = read(path)? {
        return Ok(key);
    }
    match missing {
        MissingKey::Make => secret::make(path, read, || {
            let key = generate()?;
            let text = key.to_pem();
            Ok(NewKey { key, text })
        }),
        MissingKey::Allow => generate(),
        MissingKey::Refuse => Err(Error::new(
            ErrorKind::Config,
            format!("netsync key file '{}' does not exist", path.display()),
        )),
    }
}

fn generate() -> Result<KeyPair> {
    KeyPair::generate().map_err(|error| error.map_kind(|_| ErrorKind::Io))
}

/// Reads a key. Returns `None` if the file does not exist.
fn read(path: &Path) -> Result<Option<KeyPair>> {
    match std::fs::symlink_metadata(path) {
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(None),
        _ => match KeyPair::read(path) {
            Ok(key) => Ok(Some(key)),
            Err(error) => Err(error.map_kind(|_| ErrorKind::Config)),
        },
    }
}

/// The threads of netsync.
pub(crate) struct NetsyncThreads {
    drain: Interrupt,
}

impl NetsyncThreads {
    /// Stops accepting connections. Sessions under way continue.
    pub(crate) fn drain(&self) {
        self.drain.trigger();
    }
}

/// Serves connections to `sockets` on a thread. The sessions subscribe to `phases`, so that the end
/// of the server waits for them.
///
/// # Errors
/// Fails with [`ErrorKind::Config`] or [`ErrorKind::Io`] if the key cannot be used, or the system
/// cannot create a thread.
pub(crate) fn start(
    state: &Arc<ServerState>,
    sockets: Vec<TcpListener>,
    key: KeyPair,
    phases: &Arc<watch::Sender<ServerPhase>>,
) -> Result<NetsyncThreads> {
    let host = Peers {
        state: Arc::clone(state),
        runtime: Handle::current(),
        phases: Arc::clone(phases),
    };
    let mut options = Options::new(key, Box::new(host));
    options.limits = limits(&state.setup().config);
    options.globs = Globs {
        include: vec![b"refs/heads/*".to_vec(), b"refs/tags/*".to_vec()],
        exclude: Vec::new(),
    };
    // The client has to allow unrelated histories, too, so no histories are joined without the
    // consent of the user.
    options.allows_unrelated = true;
    let ready =
        BoundServer::new(sockets, options).map_err(|error| error.map_kind(|_| ErrorKind::Io))?;
    let drain = Interrupt::new();
    let (ends, state) = (drain.clone(), Arc::clone(state));
    let serve = move || {
        let shutdown = Shutdown {
            drain: &ends,
            stop: &state.stop,
        };
        let shared_state = Arc::clone(&state);
        let on_event = move |event: &Event| {
            if let Event::Overloaded { address } = event {
                shared_state.refused(*address, NO_ROOM);
            }
        };
        ready.serve(shutdown, Box::new(on_event));
    };
    std::thread::Builder::new()
        .name("netsync".to_owned())
        .spawn(serve)
        .map_err(|error| Error::new(ErrorKind::Io, "cannot serve netsync").because(error))?;
    Ok(NetsyncThreads { drain })
}

/// Returns the limits of sessions, which follow from the limits of the server. A reload does not
/// change them.
fn limits(config: &config::ServerConfig) -> PeerLimits {
    let own = &config.limits;
    let mut limits = PeerLimits::default();
    // Each connection uses a thread. Connections beyond the slots and the queue would be refused in
    // any case.
    limits.connections = own.connections.min(own.requests.saturating_add(own.queue));
    limits.sessions_per_peer = own.requests_per_user;
    limits.memory_bytes = config.netsync.memory_bytes;
    limits.handshake = own.head;
    limits.idle = own.stall;
    limits.waiting = own.wait;
    limits.session = own.request;
    limits
}

/// The policy for connections of peers.
struct Peers {
    state: Arc<ServerState>,
    /// The runtime of the server, in which slots are counted.
    runtime: Handle,
    phases: Arc<watch::Sender<ServerPhase>>,
}

impl PeerHost for Peers {
    fn connect(&self, address: SocketAddr) -> Option<Arc<dyn PeerVisit>> {
        match self.state.setup().admission.connect(address.ip()) {
            Ok(connected) => Some(Arc::new(NetsyncGuest::new(self, address, connected))),
            Err(full) => {
                self.state.refused(address, full.reason());
                None
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_key_is_made_once() {
        let folder = tempfile::tempdir().expect("a directory");
        let config = config::NetsyncConfig {
            key: Some(folder.path().join("key")),
            ..config::NetsyncConfig::default()
        };
        key(&config, MissingKey::Refuse).expect_err("there is none");
        key(&config, MissingKey::Allow).expect("a key");
        assert!(!folder.path().join("key").exists());
        let made = key(&config, MissingKey::Make).expect("a key").public();
        assert_eq!(
            key(&config, MissingKey::Make).expect("a key").public(),
            made
        );
        std::fs::write(folder.path().join("key"), "x").expect("a file");
        key(&config, MissingKey::Make).expect_err("no key");
    }
}
