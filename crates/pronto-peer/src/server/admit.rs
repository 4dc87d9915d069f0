//! Admits sessions: consults the host, and waits for a slot.

use std::net::TcpStream;
use std::sync::{Arc, Mutex, PoisonError};

use pronto_netsync::session::{Admit, PeerPermissions};
use pronto_netsync::{Error, ErrorKind};
use rustix::event::{PollFd, PollFlags, Timespec, poll};

use super::PeerServer;
use super::gated::Gated;
use super::host::{HostedRepository, PeerVisit};
use super::session_slots::{SessionSlot, SlotSignal, Who};
use super::unauthenticated::PeerNetwork;
use crate::failed;

/// The size in bytes of the delta bases that a session keeps in memory.
const BASE_CACHE_BYTES: usize = 8 << 20;

/// A connection whose peer has not sent its request yet.
pub(super) struct PendingConnection {
    pub(super) server: Arc<PeerServer>,
    pub(super) visit: Arc<dyn PeerVisit>,
    pub(super) number: u64,
    pub(super) network: PeerNetwork,
    /// The socket, for checking whether the peer is still connected.
    pub(super) socket: Arc<TcpStream>,
    pub(super) signal: Arc<SlotSignal>,
    /// The name of the requested repository, after the peer has sent it.
    pub(super) asked: Arc<Mutex<Option<Vec<u8>>>>,
}

impl PendingConnection {
    /// Returns the check that decides about the request of the peer with this `name`.
    pub(super) fn admission(self, name: Result<String, Error>) -> Admit<Gated> {
        Box::new(move |hello| {
            let name = name?;
            let server = Arc::clone(&self.server);
            let role = self.visit.check(hello)?;
            let place = self.place(&name)?;
            let opened = self.visit.open(hello, &server.stop)?;
            let HostedRepository { repository, limits } = opened;
            let store = repository.repository.objects().map_err(failed)?;
            store.lower_base_cache(BASE_CACHE_BYTES);
            *self.asked.lock().unwrap_or_else(PoisonError::into_inner) =
                Some(hello.repository.clone());
            let object_format = repository.object_format();
            let gate = Arc::clone(&server.gate);
            Ok(PeerPermissions {
                object_format,
                repository: Gated::new(repository, name, place, gate, server.stop.clone()),
                role,
                limits,
            })
        })
    }

    /// Waits for a slot.
    fn place(&self, name: &str) -> Result<SessionSlot, Error> {
        let server = &self.server;
        if !server.lobby.leave(self.number) {
            let message = "too many connections";
            return Err(Error::new(ErrorKind::Busy, message));
        }
        let who = Who {
            name: name.to_owned(),
            network: self.network,
        };
        let is_over = || server.stop.is_triggered() || has_gone(&self.socket);
        server
            .places
            .take(self.number, &who, &self.signal, &is_over)
    }
}

/// Returns whether the remote end of a socket was closed. A peer that has sent its greeting waits
/// for the response.
fn has_gone(socket: &TcpStream) -> bool {
    let mut fds = [PollFd::new(socket, PollFlags::RDHUP)];
    let now = Timespec {
        tv_sec: 0,
        tv_nsec: 0,
    };
    matches!(poll(&mut fds, Some(&now)), Ok(1..))
}
