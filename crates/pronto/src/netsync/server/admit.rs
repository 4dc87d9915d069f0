//! Who is let in to what.

use std::path::{Component, Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};

use bstr::ByteSlice as _;
use pronto_netsync::message::Hello;
use pronto_netsync::repository::Matcher;
use pronto_netsync::session::{Admission, Admit};
use pronto_netsync::{Error, ErrorKind};

use super::Server;
use crate::netsync::keys::PublicKey;
use crate::netsync::known::{KnownPeer, KnownPeers};
use crate::netsync::{Options, PeerRepository, failed};
use crate::{Repository, upload_pack};

/// What decides when the peer has said what it wants. `asked` is told the repository.
pub(super) fn admission(
    server: Arc<Server>,
    known: Result<KnownPeer, Error>,
    asked: Arc<Mutex<Option<Vec<u8>>>>,
) -> Admit<PeerRepository> {
    Box::new(move |hello| {
        let peer = known?;
        let role = server.role(&peer, hello)?;
        let found = server.find(&hello.repository)?;
        *asked.lock().unwrap_or_else(PoisonError::into_inner) = Some(hello.repository.clone());
        let options = Options {
            peer: peer.name,
            fast_forward: server.options.fast_forward,
            budget_bytes: server.options.limits.budget_bytes,
            threads: 1,
        };
        let repository = PeerRepository::new(Arc::new(found), options, server.stop.clone())?;
        Ok(Admission {
            object_format: repository.object_format(),
            repository,
            role,
            limits: Matcher::new(peer.globs),
        })
    })
}

impl Server {
    /// The peer that has this key, if it is trusted. What is said to others is the way to be let in.
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

    /// What this side may do, if the peer may do what it wants to.
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
            Some(_) if hello.role.takes() && !peer.may_read => denied("read", "--push"),
            Some(_) if hello.role.gives() && !peer.may_write => denied("write", "--pull"),
            Some(role) => Ok(role),
            None => denied("read or write", "another key"),
        }
    }

    /// The repository of this name: the one that is served, or one in the directory that is.
    fn find(&self, name: &[u8]) -> Result<Repository, Error> {
        let (place, environment) = (&self.options.place, &self.options.environment);
        let none = || {
            let message = format!("there is no repository '{}'", name.as_bstr());
            Error::new(ErrorKind::NoRepository, message)
        };
        let open = |path: &Path| match upload_pack::find(path, environment) {
            Err(error) if *error.kind() == crate::ErrorKind::NotARepository => Ok(None),
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
