//! SSH: connections whose users authenticate with public keys, and whose channels are Git requests
//! (RFC 4252 to 4254). Crate `russh` implements the protocol.

mod exec;
mod host_key;
pub(crate) mod link;
mod session;
mod socket;

use std::borrow::Cow;
use std::sync::Arc;
use std::time::{Duration, Instant};

use russh::keys::{Algorithm, EcdsaCurve, HashAlg, PrivateKey};
use russh::server::{Config, RunningSession, run_stream};
use russh::{Disconnect, MethodKind, MethodSet, Preferred, SshId, cipher, compression, kex, mac};
use tokio::net::TcpStream;
use tokio::sync::watch;

use crate::Result;
use crate::activity::{Awake, ConnectionHealth, NOT_ASKED, NOT_READ, WaitLimits};
use crate::bridge::patience_per_piece;
use crate::config;
use crate::connection::{Accepted, ServerPhase, end_with, until};
use crate::keys::fingerprint;
use crate::secret::MissingKey;
use crate::state::{ServerState, SshServer};
use link::SshConnection;
use session::SshSession;
use socket::SshSocket;

/// The time in which a client can notice that its connection ends.
const GRACE: Duration = Duration::from_secs(1);

/// The timeout for authentication if there are many connections.
const LOGIN_IN_CROWD: Duration = Duration::from_secs(5);

/// The number of bytes that a client may send ahead on a channel, and in one packet.
const WINDOW_BYTES: u32 = 1024 * 1024;
const PACKET_BYTES: u32 = 32 * 1024;

/// The largest number of queued packets of a channel. If the queue is full, the connection is not
/// read.
const PACKETS_AHEAD: usize = 8;

/// The largest number of queued messages for a client.
const MESSAGES_AHEAD: usize = 4;

/// The number of refused keys after which a connection ends.
pub(crate) const MOST_ATTEMPTS: usize = 20;

/// The keepalive interval of an idle client, and the largest number of unanswered keepalives.
const SIGN_OF_LIFE: Duration = Duration::from_secs(30);
const MOST_UNANSWERED: usize = 4;

/// The key exchange algorithms with low cost, starting with the one that is safe against quantum
/// computers. Algorithms with large numbers are excluded, because clients could use them to consume
/// processor time.
const EXCHANGES: &[kex::Name] = &[
    kex::MLKEM768X25519_SHA256,
    kex::CURVE25519,
    kex::CURVE25519_PRE_RFC_8731,
    kex::EXTENSION_SUPPORT_AS_SERVER,
    kex::EXTENSION_OPENSSH_STRICT_KEX_AS_SERVER,
];

const CIPHERS: &[cipher::Name] = &[
    cipher::AES_256_GCM,
    cipher::AES_128_GCM,
    cipher::CHACHA20_POLY1305,
    cipher::AES_256_CTR,
    cipher::AES_128_CTR,
];

const MACS: &[mac::Name] = &[
    mac::HMAC_SHA256_ETM,
    mac::HMAC_SHA512_ETM,
    mac::HMAC_SHA256,
    mac::HMAC_SHA512,
];

/// The algorithms of host keys, and of the keys of users.
const KEYS: &[Algorithm] = &[
    Algorithm::Ed25519,
    Algorithm::Ecdsa {
        curve: EcdsaCurve::NistP256,
    },
    Algorithm::Ecdsa {
        curve: EcdsaCurve::NistP384,
    },
    Algorithm::Ecdsa {
        curve: EcdsaCurve::NistP521,
    },
    Algorithm::Rsa {
        hash: Some(HashAlg::Sha512),
    },
    Algorithm::Rsa {
        hash: Some(HashAlg::Sha256),
    },
];

/// Reads the host key and prepares handshakes.
///
/// # Errors
/// Fails if the key cannot be read, generated or used.
pub(crate) fn setup(config: &config::SshConfig, missing: MissingKey) -> Result<SshServer> {
    let key = match &config.host_key {
        Some(path) => host_key::obtain(path, missing)?,
        None => host_key::generate()?,
    };
    Ok(SshServer {
        fingerprint: fingerprint(key.public_key()),
        config: Arc::new(server_config(key)),
    })
}

fn server_config(key: PrivateKey) -> Config {
    Config {
        server_id: SshId::Standard(Cow::Borrowed("SSH-2.0-pronto")),
        methods: MethodSet::from(&[MethodKind::PublicKey][..]),
        // The set of known keys is not secret, because the protocol reveals it before a client
        // signs.
        auth_rejection_time: Duration::ZERO,
        auth_rejection_time_initial: None,
        keys: vec![key],
        window_size: WINDOW_BYTES,
        maximum_packet_size: PACKET_BYTES,
        channel_buffer_size: PACKETS_AHEAD,
        event_buffer_size: MESSAGES_AHEAD,
        preferred: Preferred {
            kex: Cow::Borrowed(EXCHANGES),
            key: Cow::Borrowed(KEYS),
            cipher: Cow::Borrowed(CIPHERS),
            mac: Cow::Borrowed(MACS),
            compression: Cow::Borrowed(&[compression::NONE]),
            ..Preferred::DEFAULT
        },
        max_auth_attempts: MOST_ATTEMPTS,
        // The supervisor ends idle connections, because a client may be silent while it waits for
        // its response.
        inactivity_timeout: None,
        keepalive_interval: Some(SIGN_OF_LIFE),
        keepalive_max: MOST_UNANSWERED,
        ..Config::default()
    }
}

/// Refuses a connection for which the server has no room. Lines are allowed before the version of
/// the protocol (RFC 4253, 4.2).
pub(crate) async fn refuse_connection(socket: TcpStream, reason: &str) {
    end_with(socket, format!("{reason}; try again later\r\n").as_bytes()).await;
}

/// Serves a connection until it ends, or until its requests are finished when the server drains.
pub(crate) async fn serve(
    state: Arc<ServerState>,
    socket: TcpStream,
    client: Accepted,
    mut drain: watch::Receiver<ServerPhase>,
) {
    let setup = state.setup();
    let Some(ssh) = setup.ssh.clone() else { return };
    let (limits, begun) = (&setup.config.limits, Instant::now());
    let times = WaitLimits {
        head: limits.login,
        head_in_crowd: LOGIN_IN_CROWD,
        idle: limits.idle,
        stall: patience_per_piece(limits.stall),
    };
    let handshake = limits.head.min(limits.login);
    drop(setup);
    // Small responses must not be delayed (`TCP_NODELAY`).
    let _ = socket.set_nodelay(true);
    let socket = SshSocket::new(socket);
    let address = client.address;
    let link = Arc::new(SshConnection::new(&state, client));
    let session = SshSession::new(&link);
    // The future is boxed, so that a connection that has sent nothing does not use memory for it.
    let greeting = Box::pin(run_stream(ssh.config, socket.clone(), session));
    let greeting = tokio::time::timeout(handshake, greeting);
    let Some(Ok(Ok(running))) = until(greeting, &drain).await else {
        state.refused(address, "handshake");
        return;
    };
    let mut closing = Closing {
        socket,
        link: Arc::clone(&link),
        reason: None,
    };
    let mut supervisor = Supervisor {
        awake: Awake::new(&state),
        link: &link,
        times,
        handshake_end: begun + handshake,
        running,
    };
    let ConnectionEnd { is_polite, reason } = supervisor.wait(&mut drain).await;
    closing.reason = reason;
    if is_polite {
        let handle = supervisor.running.handle();
        let farewell = async {
            let reason = "the server is shutting down".to_owned();
            let sent = handle.disconnect(Disconnect::ByApplication, reason, String::new());
            // A lost connection needs no disconnect message.
            let _ = sent.await;
            let _ = (&mut supervisor.running).await;
        };
        let _ = tokio::time::timeout(GRACE, farewell).await;
    }
}

/// A guard that ends a connection when it is dropped. The library serves the connection on a
/// separate task, which would continue.
struct Closing {
    socket: SshSocket,
    link: Arc<SshConnection>,
    /// The reason for the log, if the client has caused the end.
    reason: Option<&'static str>,
}

impl Drop for Closing {
    fn drop(&mut self) {
        self.socket.close();
        self.link.end(self.reason);
    }
}

/// The supervisor of a connection, which ends it after a timeout, and when the server ends.
struct Supervisor<'a> {
    link: &'a SshConnection,
    awake: Awake,
    times: WaitLimits,
    handshake_end: Instant,
    running: RunningSession<SshSession>,
}

/// The end of a connection.
#[derive(Clone, Copy, Debug)]
struct ConnectionEnd {
    /// Whether there is time for a disconnect message.
    is_polite: bool,
    /// The reason for the log, if the client has caused the end.
    reason: Option<&'static str>,
}

impl ConnectionEnd {
    const ABRUPT: Self = ConnectionEnd {
        is_polite: false,
        reason: None,
    };

    const POLITE: Self = ConnectionEnd {
        is_polite: true,
        reason: None,
    };

    fn with(self, reason: Option<&'static str>) -> Self {
        ConnectionEnd { reason, ..self }
    }
}

/// Returns the reason for the log if a connection ended because of the bytes that its client sent.
fn reason_of(error: &russh::Error) -> Option<&'static str> {
    use russh::Error;
    match error {
        Error::RequestDenied => Some("too many SSH channels in one connection"),
        Error::KeepaliveTimeout => Some("timeout: no response to a keep-alive"),
        // A lost connection is not an attack.
        Error::Disconnect | Error::HUP | Error::IO(_) | Error::SendError | Error::RecvError => None,
        _ => Some("SSH protocol error"),
    }
}

impl Supervisor<'_> {
    /// Waits until the connection has ended, or has to end.
    async fn wait(&mut self, drain: &mut watch::Receiver<ServerPhase>) -> ConnectionEnd {
        let activity = &self.link.activity;
        loop {
            let allowed = self.times.among(self.awake.count());
            let mut wait = activity.wait(allowed);
            if !self.link.is_encrypted() {
                let left = self.handshake_end.saturating_duration_since(Instant::now());
                wait = wait.min(left);
            }
            tokio::select! {
                ended = &mut self.running => {
                    return ConnectionEnd::ABRUPT.with(ended.err().and_then(|error| reason_of(&error)));
                }
                changed = drain.changed() => {
                    if changed.is_err() || *drain.borrow_and_update() == ServerPhase::Cut {
                        return ConnectionEnd::ABRUPT;
                    }
                    self.link.drain();
                }
                // The end of a request determines the idle timeout of the connection.
                () = activity.ended() => {}
                () = tokio::time::sleep(wait) => {
                    let is_late = Instant::now() >= self.handshake_end;
                    if is_late && !self.link.is_encrypted() {
                        return ConnectionEnd::ABRUPT;
                    }
                    match activity.look(allowed) {
                        ConnectionHealth::Fine => {}
                        ConnectionHealth::Idle => return ConnectionEnd::POLITE,
                        ConnectionHealth::NeverAsked => return ConnectionEnd::POLITE.with(Some(NOT_ASKED)),
                        ConnectionHealth::Stalled => return ConnectionEnd::ABRUPT.with(Some(NOT_READ)),
                    }
                }
            }
            if self.link.is_draining() && !activity.is_busy() {
                // A client whose request has just ended closes the connection itself, and would
                // interpret a disconnect message as a failure of the request.
                let left = tokio::time::timeout(GRACE, &mut self.running).await;
                return match left {
                    Ok(_) => ConnectionEnd::ABRUPT,
                    Err(_) => ConnectionEnd::POLITE,
                };
            }
        }
    }
}
