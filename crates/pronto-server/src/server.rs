//! The server: its sockets, its reloads, and its shutdown.

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::{Duration, Instant};

use pronto::Environment;
use pronto_io::interrupt::Interrupt;
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::watch;
use tokio::task::JoinSet;

use crate::admission::MADE_ROOM;
use crate::config::{ReadConfig, ServerConfig};
use crate::connection::{Accepted, ServerPhase};
use crate::log::{Event, OnEvent};
use crate::reload::reload;
use crate::secret::MissingKey;
use crate::service::GitService;
use crate::setup::{ImplicitUser, SetupPurpose, setup};
use crate::state::ServerState;
use crate::upkeep::{self, Keeping};
use crate::{Error, ErrorKind, Result, connection, daemon, netsync, ssh};

/// The interval at which the flags of [`Control`] are checked.
const LOOK: Duration = Duration::from_millis(50);

/// The pause in accepting connections when the system has no resources for a connection.
const PAUSE: Duration = Duration::from_millis(100);

/// The time in which services can notice that their clients have disconnected.
const CUT: Duration = Duration::from_secs(2);

/// The largest number of connections that the system queues before they are accepted.
const BACKLOG: u32 = 1024;

/// The number of threads besides those for requests. Calls of the JSON API use slots, too.
const SPARE_THREADS: usize = 16;

/// The configuration of a server, and the interfaces that it calls.
#[non_exhaustive]
pub struct Options {
    /// The configuration.
    pub config: ServerConfig,
    /// Reads the configuration again when [`Control::reload`] asks for it. Without it, a reload is
    /// reported as an error ([`Event::Reloaded`]) and changes nothing.
    pub read: Option<Box<ReadConfig>>,
    /// The only user and the token, for a server without a file of users.
    pub owner: Option<ImplicitUser>,
    /// The environment with which repositories are opened.
    pub environment: Environment,
    /// The implementation of the Git services.
    pub service: Box<dyn GitService>,
    /// The receiver of events.
    pub on_event: Box<OnEvent>,
}

impl Options {
    /// Returns the options of a server whose `config` was not read from a file.
    pub fn new(
        config: ServerConfig,
        environment: Environment,
        service: Box<dyn GitService>,
        on_event: Box<OnEvent>,
    ) -> Self {
        Options {
            config,
            read: None,
            owner: None,
            environment,
            service,
            on_event,
        }
    }
}

/// The signals by which other threads control a server.
pub struct Control<'a> {
    /// Stops accepting connections, and ends the server when the requests in flight are finished.
    pub drain: &'a Interrupt,
    /// Ends the server at once.
    pub stop: &'a Interrupt,
    /// Returns whether a reload was requested since the last call.
    pub reload: &'a dyn Fn() -> bool,
    /// The callback that is called once, when the server accepts connections.
    pub started: &'a dyn Fn(&Started),
}

/// The addresses of a running server.
#[derive(Clone, Debug)]
pub struct Started {
    /// The addresses of HTTP or HTTPS.
    pub http: Vec<SocketAddr>,
    /// The addresses that serve only metrics and health.
    pub metrics: Vec<SocketAddr>,
    /// The addresses of `git://`.
    pub daemon: Vec<SocketAddr>,
    /// The addresses of SSH.
    pub ssh: Vec<SocketAddr>,
    /// The fingerprint of the host key of SSH.
    pub host_key: Option<String>,
    /// The addresses of netsync.
    pub netsync: Vec<SocketAddr>,
    /// The public key of netsync.
    pub netsync_key: Option<String>,
    /// The names of repositories, if they could be listed.
    pub repositories: Vec<String>,
}

/// Serves until `control` ends the server.
///
/// # Errors
/// Fails if an address of the configuration is not available, or a file cannot be read.
pub fn serve(options: Options, control: &Control<'_>) -> Result<()> {
    let threads = options.config.limits.requests + SPARE_THREADS;
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .max_blocking_threads(threads)
        .thread_name("serve")
        .enable_all()
        .build()
        .map_err(|error| Error::new(ErrorKind::Io, "cannot start the server").because(error))?;
    let served = runtime.block_on(run(options, control));
    // Threads that still work for clients cannot be stopped. They end with the process.
    runtime.shutdown_background();
    served
}

/// The protocol of a socket.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum SocketProtocol {
    Http,
    /// HTTP for metrics and health alone.
    Metrics,
    Git,
    Ssh,
}

async fn run(options: Options, control: &Control<'_>) -> Result<()> {
    let Options {
        config,
        read,
        owner,
        environment,
        service,
        on_event,
    } = options;
    // The store blocks on a runtime of its own.
    let setup = tokio::task::block_in_place(|| {
        setup(config, &environment, &SetupPurpose::Start(owner.as_ref()))
    })?;
    let (http, daemon) = (listen(&setup.config.http)?, listen(&setup.config.daemon)?);
    let ssh = listen(&setup.config.ssh.listen)?;
    let metrics = listen(&setup.config.metrics_listen)?;
    let peers = listen(&setup.config.netsync.listen)?;
    let make = || netsync::key(&setup.config.netsync, MissingKey::Make);
    let peers_key = (!peers.is_empty()).then(make).transpose()?;
    let has_tls = setup.tls.is_some();
    let started = Started {
        http: addresses(&http),
        metrics: addresses(&metrics),
        daemon: addresses(&daemon),
        ssh: addresses(&ssh),
        host_key: setup.ssh.as_ref().map(|ssh| ssh.fingerprint.clone()),
        netsync: addresses(&peers),
        netsync_key: peers_key.as_ref().map(|key| key.public().to_string()),
        repositories: tokio::task::block_in_place(|| {
            setup.repositories.list_at_start().unwrap_or_default()
        }),
    };
    let state = Arc::new(ServerState::new(setup, service, Interrupt::new(), on_event));
    announce(&state, &started, has_tls);
    upkeep::report_faults(&state);
    let keeping = Keeping::start(&state)?;
    let (drain, drains) = watch::channel(ServerPhase::Serving);
    let drain = Arc::new(drain);
    let peers = match peers_key {
        Some(key) => Some(netsync::start(&state, blocking(peers)?, key, &drain)?),
        None => None,
    };
    let mut accepting = JoinSet::new();
    for (protocol, sockets) in [
        (SocketProtocol::Http, http),
        (SocketProtocol::Metrics, metrics),
        (SocketProtocol::Git, daemon),
        (SocketProtocol::Ssh, ssh),
    ] {
        for socket in sockets {
            let state = Arc::clone(&state);
            accepting.spawn(accept(state, protocol, socket, drains.clone()));
        }
    }
    drop(drains);
    (control.started)(&started);
    wait(&state, control, read.as_deref(), &environment).await;
    accepting.shutdown().await;
    if let Some(keeping) = &keeping {
        keeping.interrupt();
    }
    if let Some(peers) = peers {
        peers.drain();
    }
    end(&state, &drain, control).await;
    if let Some(keeping) = keeping {
        tokio::task::block_in_place(|| keeping.join());
    }
    Ok(())
}

/// Waits until the server has to end.
async fn wait(
    state: &ServerState,
    control: &Control<'_>,
    read: Option<&ReadConfig>,
    environment: &Environment,
) {
    while !control.drain.is_triggered() && !control.stop.is_triggered() {
        tokio::time::sleep(LOOK).await;
        if (control.reload)() {
            tokio::task::block_in_place(|| reload(state, read, environment));
        }
    }
}

/// Reports all addresses as events.
fn announce(state: &ServerState, started: &Started, has_tls: bool) {
    let name = if has_tls { "https" } else { "http" };
    for (protocol, addresses) in [
        (name, &started.http),
        ("metrics", &started.metrics),
        ("git", &started.daemon),
        ("ssh", &started.ssh),
        ("netsync", &started.netsync),
    ] {
        for address in addresses {
            let address = *address;
            state.on_event(&Event::Listening { protocol, address });
        }
    }
}

/// Waits for the open connections.
async fn end(state: &ServerState, drain: &watch::Sender<ServerPhase>, control: &Control<'_>) {
    let connections = drain.receiver_count();
    state.on_event(&Event::Draining { connections });
    // Without connections, the channel has no receivers.
    let _ = drain.send(ServerPhase::Draining);
    let end = Instant::now() + state.setup().config.limits.drain;
    while drain.receiver_count() > 0 && Instant::now() < end && !control.stop.is_triggered() {
        tokio::time::sleep(LOOK / 5).await;
    }
    let connections = drain.receiver_count();
    state.on_event(&Event::Drained { connections });
    // Services that still run lose their clients, and end.
    state.stop.trigger();
    if let Some(store) = state.setup().repositories.store() {
        store.stop();
    }
    let _ = drain.send(ServerPhase::Cut);
    let end = Instant::now() + CUT;
    let is_idle = || state.metrics.under_way.get() == 0 && drain.receiver_count() == 0;
    while !is_idle() && Instant::now() < end {
        tokio::time::sleep(LOOK / 5).await;
    }
}

fn listen(addresses: &[SocketAddr]) -> Result<Vec<TcpListener>> {
    let listen = |address: &SocketAddr| -> std::io::Result<TcpListener> {
        let socket = match address {
            SocketAddr::V4(_) => tokio::net::TcpSocket::new_v4()?,
            SocketAddr::V6(_) => tokio::net::TcpSocket::new_v6()?,
        };
        // Connections in `TIME_WAIT` of a server that has ended must not prevent the bind.
        socket.set_reuseaddr(true)?;
        socket.bind(*address)?;
        socket.listen(BACKLOG)
    };
    let sockets = addresses.iter().map(|address| {
        listen(address).map_err(|error| {
            let reason = pronto_io::error::reason(&error);
            let message = format!("cannot listen on {address}: {reason}");
            Error::new(ErrorKind::Io, message)
        })
    });
    sockets.collect()
}

/// Returns the sockets in blocking mode, for threads.
fn blocking(sockets: Vec<TcpListener>) -> Result<Vec<std::net::TcpListener>> {
    let sockets = sockets.into_iter().map(TcpListener::into_std);
    sockets.collect::<std::io::Result<_>>().map_err(|error| {
        Error::new(ErrorKind::Io, "cannot listen for netsync peers").because(error)
    })
}

fn addresses(sockets: &[TcpListener]) -> Vec<SocketAddr> {
    let addresses = sockets.iter().filter_map(|socket| socket.local_addr().ok());
    addresses.collect()
}

/// Accepts connections until the task is aborted.
async fn accept(
    state: Arc<ServerState>,
    protocol: SocketProtocol,
    socket: TcpListener,
    drain: watch::Receiver<ServerPhase>,
) {
    loop {
        match socket.accept().await {
            Ok((stream, address)) => begin(&state, protocol, stream, address, drain.clone()),
            // The client has disconnected, or the system lacks resources temporarily.
            Err(_) => tokio::time::sleep(PAUSE).await,
        }
    }
}

fn begin(
    state: &Arc<ServerState>,
    protocol: SocketProtocol,
    stream: TcpStream,
    address: SocketAddr,
    drain: watch::Receiver<ServerPhase>,
) {
    let state = Arc::clone(state);
    // Connections are counted here, so that they are admitted in the order of their arrival.
    let connected = match state.setup().admission.connect(address.ip()) {
        Ok(connected) => connected,
        Err(full) if matches!(protocol, SocketProtocol::Http | SocketProtocol::Metrics) => {
            tokio::spawn(connection::refuse(state, stream, address, full));
            return;
        }
        Err(full) => {
            let reason = full.reason();
            state.refused(address, reason);
            tokio::spawn(async move {
                match protocol {
                    SocketProtocol::Ssh => ssh::refuse_connection(stream, reason).await,
                    _ => daemon::refuse_connection(stream, reason).await,
                }
            });
            return;
        }
    };
    tokio::spawn(async move {
        let client = Accepted {
            address,
            only_metrics: protocol == SocketProtocol::Metrics,
            connection: Arc::clone(connected.connection()),
        };
        let log = Arc::clone(&state);
        let serving = async {
            match protocol {
                SocketProtocol::Http | SocketProtocol::Metrics => {
                    connection::serve(state, stream, client, drain).await;
                }
                SocketProtocol::Ssh => ssh::serve(state, stream, client, drain).await,
                SocketProtocol::Git => {
                    daemon::serve(state, stream, client).await;
                    // The guard keeps the server from ending until this point.
                    drop(drain);
                }
            }
        };
        tokio::select! {
            () = serving => {}
            () = connected.connection().evicted() => log.refused(address, MADE_ROOM),
        }
        drop(connected);
    });
}
