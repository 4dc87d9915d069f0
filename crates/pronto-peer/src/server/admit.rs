//! Decides which peers may access which repositories.

use std::net::TcpStream;
use std::path::{Component, Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};

use bstr::ByteSlice as _;
use pronto_netsync::message::Hello;
use pronto_netsync::repository::Matcher;
use pronto_netsync::session::{Admission, Admit};
use pronto_netsync::{Error, ErrorKind};
use rustix::event::{PollFd, PollFlags, Timespec, poll};

use super::Server;
use super::gated::Gated;
use super::lobby::Network;
use super::places::{Place, Signal, Who};
use crate::keys::PublicKey;
use crate::known::{KnownPeer, KnownPeers};
use crate::{Options, PeerRepository, failed};
use pronto::{Repository, upload_pack};

/// The delta bases that a session keeps in memory.
const BASE_CACHE_BYTES: usize = 8 << 20;

/// A connection whose peer has not sent its request yet.
pub(super) struct Connection {
    pub(super) server: Arc<Server>,
    pub(super) number: u64,
    pub(super) network: Network,
    /// The socket, to see whether the peer is still there.
    pub(super) socket: Arc<TcpStream>,
    pub(super) signal: Arc<Signal>,
    /// Receives the name of the requested repository.
    pub(super) asked: Arc<Mutex<Option<Vec<u8>>>>,
}

impl Connection {
    /// Returns the check that decides about the request of the peer.
    pub(super) fn admission(self, known: Result<KnownPeer, Error>) -> Admit<Gated> {
        Box::new(move |hello| {
            let peer = known?;
            let server = Arc::clone(&self.server);
            let role = server.role(&peer, hello)?;
            let place = self.place(&peer.name)?;
            let found = server.find(&hello.repository)?;
            let store = found.objects().map_err(failed)?;
            store.lower_base_cache(BASE_CACHE_BYTES);
            *self.asked.lock().unwrap_or_else(PoisonError::into_inner) =
                Some(hello.repository.clone());
            let options = Options {
                peer: peer.name.clone(),
                fast_forward: server.options.fast_forward,
                budget_bytes: server.options.limits.budget_bytes,
                threads: 1,
            };
            let repository = PeerRepository::new(Arc::new(found), options, server.stop.clone())?;
            let object_format = repository.object_format();
            Ok(Admission {
                object_format,
                repository: Gated::new(
                    repository,
                    peer.name,
                    place,
                    Arc::clone(&server.gate),
                    server.stop.clone(),
                ),
                role,
                limits: Matcher::new(peer.globs),
            })
        })
    }

    /// Waits for a place.
    fn place(&self, name: &str) -> Result<Place, Error> {
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

/// Whether the other end of a socket was closed. A peer that has said hello waits for the answer.
fn has_gone(socket: &TcpStream) -> bool {
    let mut fds = [PollFd::new(socket, PollFlags::RDHUP)];
    let now = Timespec {
        tv_sec: 0,
        tv_nsec: 0,
    };
    matches!(poll(&mut fds, Some(&now)), Ok(1..))
}

impl Server {
    /// Returns the peer with this key, if it is trusted. Others get an error that says how to be
    /// admitted.
    pub(super) fn known_peer(&self, key: &PublicKey) -> Result<KnownPeer, Error> {
        let known = KnownPeers::read(&self.options.peers).map_err(failed)?;
        let denied = |message| Err(Error::new(ErrorKind::Denied, message));
        match known.by_key(key) {
            Some(peer) if peer.is_revoked() => denied(format!(
                "the key with fingerprint {} was revoked",
                key.fingerprint()
            )),
            Some(peer) => Ok(peer.clone()),
            None => denied(format!(
                "the key with fingerprint {} is not known there; to be let in, have it trusted there: \
                 pronto netsync trust NAME {key}",
                key.fingerprint()
            )),
        }
    }

    /// The role of this side, if the peer may do what it requests.
    fn role(
        &self,
        peer: &KnownPeer,
        hello: &Hello,
    ) -> Result<pronto_netsync::message::Role, Error> {
        let denied = |what: &str, way: &str| {
            let message = format!("'{}' may not {what} here; use {way}", peer.name);
            Err(Error::new(ErrorKind::Denied, message))
        };
        match peer.own_role() {
            Some(_) if hello.role.takes() && !peer.roles.may_read => denied("read", "--push"),
            Some(_) if hello.role.gives() && !peer.roles.may_write => denied("write", "--pull"),
            Some(role) => Ok(role),
            None => denied("read or write", "another key"),
        }
    }

    /// Finds the repository with this name: the served one, or one in the served directory.
    fn find(&self, name: &[u8]) -> Result<Repository, Error> {
        let (place, environment) = (&self.options.place, &self.options.environment);
        let none = || {
            let message = format!("there is no repository '{}'", name.as_bstr());
            Error::new(ErrorKind::NoRepository, message)
        };
        let open = |path: &Path| match upload_pack::find(path, environment) {
            Err(error) if *error.kind() == pronto::ErrorKind::NotARepository => Ok(None),
            other => other.map(Some).map_err(failed),
        };
        let name = name.trim_with(|byte| byte == '/');
        if let Some(only) = open(place)? {
            let own = place
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
        let found = open(&place.join(relative))?.ok_or_else(none)?;
        // Links may lead out of what is served.
        let real = std::fs::canonicalize(found.git_dir()).map_err(|_| none())?;
        let root = std::fs::canonicalize(place).map_err(|_| none())?;
        match real.starts_with(root) {
            true => Ok(found),
            false => Err(none()),
        }
    }
}
