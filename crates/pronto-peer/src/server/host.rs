//! The questions of a server about its peers: who they are, what they may do, and which repository they
//! mean.

use std::net::{SocketAddr, TcpStream};
use std::sync::Arc;

use pronto_io::interrupt::Interrupt;
use pronto_netsync::Error;
use pronto_netsync::message::{Hello, Role};
use pronto_netsync::repository::Matcher;

use super::Ended;
use crate::PeerRepository;
use crate::keys::PublicKey;

/// Decides about the connections of a server. Called from many threads.
pub trait Host: Send + Sync {
    /// Admits a connection from `address`, of which nothing has been read. `None` closes it.
    fn connect(&self, address: SocketAddr) -> Option<Arc<dyn Visit>>;
}

/// Decides about one connection, step by step. It is dropped when the connection is over.
pub trait Visit: Send + Sync {
    /// Takes the socket of the connection. The host can end the connection by shutting it down.
    fn begun(&self, socket: &Arc<TcpStream>) {
        let _ = socket;
    }

    /// Returns the name of the owner of a key, among whose sessions the server shares its places.
    ///
    /// # Errors
    /// The key is not known. The peer is told the reason when it has greeted.
    fn identify(&self, key: &PublicKey) -> Result<String, Error>;

    /// Returns the role of this side, if the peer may do what it requests. Called before the session
    /// waits for a place: it must be cheap.
    ///
    /// # Errors
    /// The peer may not do that.
    fn check(&self, hello: &Hello) -> Result<Role, Error>;

    /// Opens the requested repository for a session that has a place. `interrupt` ends it.
    ///
    /// # Errors
    /// There is none, or the server has no time for it.
    fn open(&self, hello: &Hello, interrupt: &Interrupt) -> Result<Opened, Error>;

    /// The connection is over.
    fn ended(&self, ended: &Ended) {
        let _ = ended;
    }
}

/// A repository that was opened for a peer.
pub struct Opened {
    /// The repository.
    pub repository: PeerRepository,
    /// Which refs the peer may see and give at all. It is not told.
    pub limits: Matcher,
}
