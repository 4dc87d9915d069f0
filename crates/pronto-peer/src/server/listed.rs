//! Serves the peers in a list of known peers.

use std::net::SocketAddr;
use std::path::{Component, Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};

use bstr::ByteSlice as _;
use pronto_io::interrupt::Interrupt;
use pronto_netsync::message::{Hello, TransferRole};
use pronto_netsync::repository::RefMatcher;
use pronto_netsync::{Error, ErrorKind};

use super::host::{HostedRepository, PeerHost, PeerVisit};
use crate::keys::PublicKey;
use crate::known::{KnownPeer, KnownPeers};
use crate::{Options, PeerRepository, failed};
use pronto::environment::Environment;
use pronto::support::{self, Operation};
use pronto::{Repository, upload_pack};

/// A policy that serves a repository, or a directory of repositories, to known peers. The list is
/// read for each connection, so that a revocation applies from the next connection on.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct ListedPeers {
    /// The path of a repository, or of a directory of repositories.
    pub path: PathBuf,
    /// The file with the list of known peers.
    pub peers: PathBuf,
    /// The environment in which repositories are opened.
    pub environment: Environment,
    /// Fast-forward local branches to those of peers (`--ff`).
    pub fast_forward: bool,
    /// The largest number of bytes that one session may receive.
    pub budget_bytes: u64,
}

impl ListedPeers {
    /// Serves the repositories at `path` to the peers in the file `peers`.
    pub fn new(path: PathBuf, peers: PathBuf, environment: Environment) -> Self {
        ListedPeers {
            path,
            peers,
            environment,
            fast_forward: false,
            budget_bytes: 1 << 40,
        }
    }
}

impl PeerHost for ListedPeers {
    fn connect(&self, _: SocketAddr) -> Option<Arc<dyn PeerVisit>> {
        Some(Arc::new(ListedGuest {
            host: self.clone(),
            peer: Mutex::default(),
        }))
    }
}

/// A connection of a peer.
struct ListedGuest {
    host: ListedPeers,
    peer: Mutex<Option<KnownPeer>>,
}

impl ListedGuest {
    fn peer(&self) -> Result<KnownPeer, Error> {
        let peer = self.peer.lock().unwrap_or_else(PoisonError::into_inner);
        let unknown = || Error::new(ErrorKind::Denied, "the peer is unknown");
        peer.clone().ok_or_else(unknown)
    }
}

impl PeerVisit for ListedGuest {
    fn identify(&self, key: &PublicKey) -> Result<String, Error> {
        let known = KnownPeers::read(&self.host.peers).map_err(failed)?;
        let print = key.fingerprint();
        let denied = |message| Err(Error::new(ErrorKind::Denied, message));
        match known.by_key(key) {
            Some(peer) if peer.is_revoked() => {
                denied(format!("the key with fingerprint {print} was revoked"))
            }
            Some(peer) => {
                *self.peer.lock().unwrap_or_else(PoisonError::into_inner) = Some(peer.clone());
                Ok(peer.name.clone())
            }
            None => denied(format!(
                "the server does not know the key with fingerprint {print}; ask its operator to \
                 run: pronto netsync trust NAME {key}",
            )),
        }
    }

    fn check(&self, hello: &Hello) -> Result<TransferRole, Error> {
        let peer = self.peer()?;
        let denied = |what: &str, way: &str| {
            let message = format!("peer '{}' may not {what} here; use {way}", peer.name);
            Err(Error::new(ErrorKind::Denied, message))
        };
        match peer.own_role() {
            Some(_) if hello.role.receives() && !peer.roles.may_read => denied("read", "--push"),
            Some(_) if hello.role.sends() && !peer.roles.may_write => denied("write", "--pull"),
            Some(role) => Ok(role),
            None => denied("read or write", "another key"),
        }
    }

    fn open(&self, hello: &Hello, interrupt: &Interrupt) -> Result<HostedRepository, Error> {
        let peer = self.peer()?;
        let found = self.host.find(&hello.repository)?;
        support::require(&found, Operation::ServePeer).map_err(failed)?;
        let mut options = Options::new(peer.name, self.host.budget_bytes);
        options.fast_forward = self.host.fast_forward;
        options.threads = 1;
        Ok(HostedRepository {
            repository: PeerRepository::new(Arc::new(found), options, interrupt.clone())?,
            limits: RefMatcher::new(peer.globs),
        })
    }
}

impl ListedPeers {
    /// Returns the repository with this name: the served repository, or a repository in the served
    /// directory.
    fn find(&self, name: &[u8]) -> Result<Repository, Error> {
        let (path, environment) = (&self.path, &self.environment);
        let none = || {
            let message = format!("there is no repository '{}'", name.as_bstr());
            Error::new(ErrorKind::NoRepository, message)
        };
        let open = |path: &Path| match upload_pack::find(path, environment) {
            Err(error) if error.kind() == pronto::ErrorKind::NotARepository => Ok(None),
            other => other.map(Some).map_err(failed),
        };
        let name = name.trim_with(|byte| byte == '/');
        if let Some(only) = open(path)? {
            let own = path
                .file_name()
                .map_or(&b""[..], |own| own.as_encoded_bytes());
            let plain = |name: &'_ [u8]| name.strip_suffix(b".git").unwrap_or(name).to_vec();
            return match name.is_empty() || plain(name) == plain(own) {
                true => Ok(only),
                false => Err(none()),
            };
        }
        let relative = PathBuf::from(name.to_os_str().map_err(|_| none())?);
        let is_below = relative
            .components()
            .all(|part| matches!(part, Component::Normal(_)));
        if name.is_empty() || name.contains(&0) || !is_below {
            return Err(none());
        }
        let found = open(&path.join(relative))?.ok_or_else(none)?;
        // Symbolic links may refer to repositories outside of the served directory.
        let real = std::fs::canonicalize(found.git_dir()).map_err(|_| none())?;
        let root = std::fs::canonicalize(path).map_err(|_| none())?;
        match real.starts_with(root) {
            true => Ok(found),
            false => Err(none()),
        }
    }
}
