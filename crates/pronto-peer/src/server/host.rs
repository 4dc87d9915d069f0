//! The policy of a server about its peers: their identity, their permissions, and their
//! repositories.

use std::net::{SocketAddr, TcpStream};
use std::sync::Arc;

use pronto_io::interrupt::Interrupt;
use pronto_netsync::Error;
use pronto_netsync::message::{Hello, TransferRole};
use pronto_netsync::repository::RefMatcher;

use super::ConnectionSummary;
use crate::PeerRepository;
use crate::keys::PublicKey;

/// The policy about the connections of a server. Many threads call it.
pub trait PeerHost: Send + Sync {
    /// Admits a connection from `address`, from which nothing has been read. Returns `None` to
    /// close it.
    fn connect(&self, address: SocketAddr) -> Option<Arc<dyn PeerVisit>>;
}

/// The policy about one connection, step by step. The value is dropped when the connection ends.
pub trait PeerVisit: Send + Sync {
    /// Receives the socket of the connection. The host can end the connection by shutting the
    /// socket down.
    fn begun(&self, socket: &Arc<TcpStream>) {
        let _ = socket;
    }

    /// Returns the name of the owner of a key. The server shares its slots among owners.
    ///
    /// # Errors
    /// Fails if the key is unknown. The peer gets the reason after its greeting.
    fn identify(&self, key: &PublicKey) -> Result<String, Error>;

    /// Returns the role of this side, if the request of the peer is permitted. This call must be
    /// cheap, because it precedes the wait for a slot.
    ///
    /// # Errors
    /// Fails if the request is not permitted.
    fn check(&self, hello: &Hello) -> Result<TransferRole, Error>;

    /// Opens the requested repository for a session that has a slot. `interrupt` ends the session.
    ///
    /// # Errors
    /// Fails if the repository does not exist, or the server has no capacity for the session.
    fn open(&self, hello: &Hello, interrupt: &Interrupt) -> Result<HostedRepository, Error>;

    /// Receives the record of the connection when the connection has ended.
    fn ended(&self, ended: &ConnectionSummary) {
        let _ = ended;
    }
}

/// A repository that was opened for a peer.
pub struct HostedRepository {
    /// The repository.
    pub repository: PeerRepository,
    /// The refs that the peer may see and send. The peer does not get this list.
    pub limits: RefMatcher,
}
