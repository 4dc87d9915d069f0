//! The state that all connections of a server share.

use std::net::{IpAddr, SocketAddr};
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering::Relaxed};
use std::sync::{Arc, OnceLock, PoisonError, RwLock};

use pronto_io::interrupt::Interrupt;
use tokio_rustls::TlsAcceptor;

use crate::admission::{Admission, AdmittedConnection, Network, SlotOwner};
use crate::certificate::CertificateNames;
use crate::config::ServerConfig;
use crate::directory::UserDirectory;
use crate::log::{Event, OnEvent, Request};
use crate::metrics::Metrics;
use crate::repositories::Repositories;
use crate::service::GitService;

/// The part of the shared state that a reload replaces.
pub(crate) struct Setup {
    pub(crate) config: ServerConfig,
    pub(crate) repositories: Repositories,
    pub(crate) users: UserDirectory,
    pub(crate) tls: Option<TlsAcceptor>,
    pub(crate) ssh: Option<SshServer>,
    pub(crate) admission: Arc<Admission>,
    /// The second at which the first certificate of the chain expires, since 1970.
    pub(crate) certificate_end: Option<i64>,
    /// The setup of the next reload. Requests that began before the reload use it to check whether
    /// they are still allowed.
    pub(crate) successor: OnceLock<Arc<Setup>>,
}

/// The SSH configuration, with the host key by which clients recognise the server.
#[derive(Clone)]
pub(crate) struct SshServer {
    pub(crate) config: Arc<russh::server::Config>,
    /// The fingerprint of the host key.
    pub(crate) fingerprint: String,
}

/// The state that all connections share.
pub(crate) struct ServerState {
    setup: RwLock<Arc<Setup>>,
    pub(crate) service: Box<dyn GitService>,
    pub(crate) metrics: Metrics,
    pub(crate) stop: Interrupt,
    /// The configuration with which the server was started.
    pub(crate) started: ServerConfig,
    /// The number of connections that have received data, and therefore have buffers.
    pub(crate) awake: AtomicUsize,
    on_event: Box<OnEvent>,
    /// A random part of request ids, so that ids of two servers differ.
    first_id: u32,
    requests: AtomicU64,
}

/// The client of a request.
#[derive(Clone, Debug)]
pub(crate) struct RequestClient {
    pub(crate) address: SocketAddr,
    /// The client certificate, if the client has sent one.
    pub(crate) certificate: Option<Arc<CertificateNames>>,
    /// Whether the connection is from this machine, without TLS.
    pub(crate) is_local: bool,
    /// Whether the client may ask only for metrics and health, and may read both (`[metrics]`).
    pub(crate) only_metrics: bool,
    pub(crate) connection: Arc<AdmittedConnection>,
}

impl ServerState {
    pub(crate) fn new(
        setup: Setup,
        service: Box<dyn GitService>,
        stop: Interrupt,
        on_event: Box<OnEvent>,
    ) -> Self {
        // The value is not secret, so a failure of the system's random source does not matter.
        let mut random = [0; 4];
        let _ = ring::rand::SecureRandom::fill(&ring::rand::SystemRandom::new(), &mut random);
        ServerState {
            metrics: Metrics::new(service.as_ref(), &setup.repositories, &setup.admission),
            started: setup.config.clone(),
            setup: RwLock::new(Arc::new(setup)),
            service,
            stop,
            awake: AtomicUsize::new(0),
            on_event,
            first_id: u32::from_be_bytes(random),
            requests: AtomicU64::new(0),
        }
    }

    /// Returns the current setup. A request uses the setup that was current when it began.
    pub(crate) fn setup(&self) -> Arc<Setup> {
        Arc::clone(&self.setup.read().unwrap_or_else(PoisonError::into_inner))
    }

    pub(crate) fn replace(&self, setup: Setup) {
        let setup = Arc::new(setup);
        let mut current = self.setup.write().unwrap_or_else(PoisonError::into_inner);
        // Each setup is replaced once.
        let _ = current.successor.set(Arc::clone(&setup));
        *current = setup;
    }

    pub(crate) fn on_event(&self, event: &Event) {
        (self.on_event)(event);
    }

    /// Logs and counts a connection that was refused, or ended because of its client.
    pub(crate) fn refused(&self, address: SocketAddr, reason: &'static str) {
        self.metrics.refused(reason);
        self.on_event(&Event::Refused { address, reason });
    }

    /// Logs and counts a finished request.
    pub(crate) fn finished(&self, request: Request) {
        self.metrics.finished(&request);
        self.on_event(&Event::Request(Box::new(request)));
    }

    /// Returns the id of a new request.
    pub(crate) fn next_id(&self) -> String {
        let number = self.requests.fetch_add(1, Relaxed);
        format!("{:08x}-{number:06x}", self.first_id)
    }
}

impl Setup {
    /// Returns the newest setup that has replaced this one, or `None` if this one is current.
    pub(crate) fn newest(&self) -> Option<&Setup> {
        let mut newest = self.successor.get()?;
        while let Some(next) = newest.successor.get() {
            newest = next;
        }
        Some(newest)
    }

    /// Returns the owner of the slots of a client.
    pub(crate) fn owner(&self, user: Option<&Arc<str>>, address: IpAddr) -> SlotOwner {
        match user {
            Some(user) if self.config.access.is_server_admin(user) => {
                SlotOwner::Administrator(Arc::clone(user))
            }
            Some(user) => SlotOwner::User(Arc::clone(user)),
            None => SlotOwner::Network(Network::of(address)),
        }
    }
}
