//! The list of known peers, with their keys and their permissions. Each line describes a peer:
//!
//! ```text
//! NAME ROLES KEY [at=HOST[:PORT]] [only=GLOB]... [not=GLOB]...
//! ```
//!
//! Roles are `read`, `write`, both separated by a comma, or `revoked`. Lines that begin with `#`
//! and empty lines are preserved.

use std::fs::File;
use std::io::Write as _;
use std::path::Path;
use std::time::Duration;

use pronto_io::error::IoContext as _;
use pronto_io::lock_wait::ReportedWait;
use pronto_netsync::message::{Globs, MAX_GLOBS, TransferRole};
use rustix::fs::{FlockOperation, flock};
use rustix::io::Errno;

use super::keys::PublicKey;
use super::names::is_peer_name;
use pronto::{Error, ErrorKind, Result};

/// The pause between two attempts to lock the list.
const PAUSE: Duration = Duration::from_millis(20);

/// The permissions of a peer. A revoked key has no permissions.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Roles {
    /// Allow the peer to receive from this side (`read`).
    pub may_read: bool,
    /// Allow the peer to send to this side (`write`).
    pub may_write: bool,
}

impl Roles {
    /// Parses `read`, `write`, both separated by a comma, or `revoked`. Returns `None` for any
    /// other text.
    pub fn parse(text: &str) -> Option<Roles> {
        let mut roles = Roles::default();
        if text == "revoked" {
            return Some(roles);
        }
        for role in text.split(',') {
            match role {
                "read" => roles.may_read = true,
                "write" => roles.may_write = true,
                _ => return None,
            }
        }
        Some(roles)
    }

    /// Returns the text that [`parse`](Self::parse) accepts.
    pub fn as_str(self) -> &'static str {
        match (self.may_read, self.may_write) {
            (true, true) => "read,write",
            (true, false) => "read",
            (false, true) => "write",
            (false, false) => "revoked",
        }
    }

    /// Returns whether the peer has no permissions.
    pub fn is_revoked(self) -> bool {
        self == Roles::default()
    }
}

/// An entry of the list of known peers.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct KnownPeer {
    /// The name of the peer, whose remote-tracking branches are `refs/remotes/NAME/*`.
    pub name: String,
    /// The public key of the peer.
    pub key: PublicKey,
    /// The permissions of the peer.
    pub roles: Roles,
    /// The address of the peer: a host, optionally followed by a colon and a port.
    pub address: Option<String>,
    /// The refs that the peer may see and send. By default, all refs that can be shared.
    pub globs: Globs,
}

impl KnownPeer {
    /// Returns whether the key of the peer is revoked.
    pub fn is_revoked(&self) -> bool {
        self.roles.is_revoked()
    }

    /// Returns the role of this side in sessions with the peer, or `None` if the peer is revoked.
    pub fn own_role(&self) -> Option<TransferRole> {
        match (self.roles.may_read, self.roles.may_write) {
            (true, true) => Some(TransferRole::Both),
            (true, false) => Some(TransferRole::Source),
            (false, true) => Some(TransferRole::Sink),
            (false, false) => None,
        }
    }

    fn parse(line: &str) -> Option<KnownPeer> {
        let mut words = line.split_ascii_whitespace();
        let name = words.next().filter(|name| is_peer_name(name))?.to_owned();
        let roles = Roles::parse(words.next()?)?;
        let mut peer = KnownPeer {
            name,
            key: PublicKey::parse(words.next()?)?,
            roles,
            address: None,
            globs: Globs::default(),
        };
        for word in words {
            match word.split_once('=')? {
                ("at", address) => peer.address = Some(address.to_owned()),
                ("only", glob) => peer.globs.include.push(glob.as_bytes().to_vec()),
                ("not", glob) => peer.globs.exclude.push(glob.as_bytes().to_vec()),
                _ => return None,
            }
        }
        let counts = [peer.globs.include.len(), peer.globs.exclude.len()];
        counts
            .iter()
            .all(|count| *count <= MAX_GLOBS)
            .then_some(peer)
    }

    fn line(&self) -> String {
        let mut line = format!("{} {} {}", self.name, self.roles.as_str(), self.key);
        if let Some(address) = &self.address {
            line.push_str(&format!(" at={address}"));
        }
        for (word, globs) in [("only", &self.globs.include), ("not", &self.globs.exclude)] {
            for glob in globs {
                line.push_str(&format!(" {word}={}", String::from_utf8_lossy(glob)));
            }
        }
        line
    }
}

/// The list of known peers.
#[derive(Clone, Debug)]
pub struct KnownPeers {
    lines: Vec<KnownPeersLine>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
enum KnownPeersLine {
    Peer(KnownPeer),
    Other(String),
}

impl KnownPeers {
    /// Reads the list. A missing file is an empty list.
    ///
    /// # Errors
    /// Fails with [`ErrorKind::Io`] if the file cannot be read, and with
    /// [`ErrorKind::InvalidInput`] if a line is invalid.
    pub fn read(path: &Path) -> Result<KnownPeers> {
        let text = match std::fs::read_to_string(path) {
            Ok(text) => text,
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => String::new(),
            Err(error) => return Err(error).context(ErrorKind::Io, "cannot read", path),
        };
        KnownPeers::parse(&text, path)
    }

    fn parse(text: &str, path: &Path) -> Result<KnownPeers> {
        let mut known = KnownPeers { lines: Vec::new() };
        for (at, line) in text.lines().enumerate() {
            let plain = line.trim();
            if plain.is_empty() || plain.starts_with('#') {
                known.lines.push(KnownPeersLine::Other(line.to_owned()));
                continue;
            }
            let peer = KnownPeer::parse(plain).ok_or_else(|| {
                let message = format!("malformed entry at line {}", at + 1);
                let hint = "expected: NAME ROLES KEY [at=HOST[:PORT]] [only=GLOB]... [not=GLOB]...";
                Error::new(ErrorKind::InvalidInput, message)
                    .at_path(path)
                    .with_hint(hint)
            })?;
            known.lines.push(KnownPeersLine::Peer(peer));
        }
        Ok(known)
    }

    /// Returns all peers in file order.
    pub fn iter(&self) -> impl Iterator<Item = &KnownPeer> {
        self.lines.iter().filter_map(|line| match line {
            KnownPeersLine::Peer(peer) => Some(peer),
            KnownPeersLine::Other(_) => None,
        })
    }

    /// Returns the peer with this key. A revoked key stays revoked, whatever other lines contain.
    pub fn by_key(&self, key: &PublicKey) -> Option<&KnownPeer> {
        let of_key = || self.iter().filter(|peer| peer.key == *key);
        of_key()
            .find(|peer| peer.is_revoked())
            .or_else(|| of_key().next())
    }

    /// Returns the trusted peer with this name.
    pub fn by_name(&self, name: &str) -> Option<&KnownPeer> {
        self.iter()
            .find(|peer| peer.name == name && !peer.is_revoked())
    }

    /// Returns the trusted peer with this address.
    pub fn by_address(&self, host: &str, port: u16) -> Option<&KnownPeer> {
        let full = super::address::with_port(host, port);
        self.iter().find(|peer| {
            let at = peer.address.as_deref();
            !peer.is_revoked() && at.is_some_and(|at| at == host || at == full)
        })
    }

    /// Changes the list under a lock. Readers see the old list or the new one. The new text is
    /// parsed before it replaces the list.
    ///
    /// # Errors
    /// Fails with [`ErrorKind::Io`] if the list cannot be read or written, with
    /// [`ErrorKind::InvalidInput`] if the new list would be invalid, and with the errors of
    /// `change`.
    pub fn change(path: &Path, change: impl FnOnce(&mut KnownPeers) -> Result<()>) -> Result<()> {
        if let Some(directory) = path.parent() {
            std::fs::create_dir_all(directory).context(
                ErrorKind::Io,
                "cannot create",
                directory,
            )?;
        }
        let lock_path = path.with_extension("lock");
        let lock = File::create(&lock_path).context(ErrorKind::Io, "cannot create", &lock_path)?;
        wait_for(&lock, &lock_path).context(ErrorKind::Io, "cannot lock", &lock_path)?;
        let mut known = KnownPeers::read(path)?;
        change(&mut known)?;
        let mut text = String::new();
        for line in &known.lines {
            match line {
                KnownPeersLine::Peer(peer) => text.push_str(&peer.line()),
                KnownPeersLine::Other(line) => text.push_str(line),
            }
            text.push('\n');
        }
        if KnownPeers::parse(&text, path)?.lines != known.lines {
            let message = "an address or a glob of a peer contains white space";
            return Err(Error::new(ErrorKind::InvalidInput, message).at_path(path));
        }
        let new = path.with_extension("new");
        let write = || {
            let mut file = File::create(&new)?;
            file.write_all(text.as_bytes())?;
            file.sync_all()?;
            std::fs::rename(&new, path)
        };
        write().context(ErrorKind::Io, "cannot write", &new)
    }

    /// Adds a peer, and replaces an entry with the same name and key.
    ///
    /// # Errors
    /// Fails with [`ErrorKind::InvalidInput`] if another key has the name, another peer has the
    /// key, or the key was revoked.
    pub fn trust(&mut self, peer: KnownPeer) -> Result<()> {
        let refused = |message: String, hint: &str| {
            Err(Error::new(ErrorKind::InvalidInput, message).with_hint(hint))
        };
        match self.by_key(&peer.key) {
            Some(known) if known.is_revoked() => {
                let message = format!("this key of '{}' was revoked", known.name);
                return refused(
                    message,
                    "if that was a mistake, remove its line from the list of peers",
                );
            }
            Some(known) if known.name != peer.name => {
                let message = format!("this key already belongs to '{}'", known.name);
                return refused(message, "use that name: a key can have only one");
            }
            _ => {}
        }
        if let Some(known) = self.by_name(&peer.name)
            && known.key != peer.key
        {
            let message = format!(
                "peer '{}' already has another key: {}",
                peer.name, known.key
            );
            return refused(
                message,
                "to replace it, first run: pronto netsync revoke NAME",
            );
        }
        let same = |line: &KnownPeersLine| matches!(line, KnownPeersLine::Peer(known) if known.key == peer.key);
        match self.lines.iter_mut().find(|line| same(line)) {
            Some(line) => *line = KnownPeersLine::Peer(peer),
            None => self.lines.push(KnownPeersLine::Peer(peer)),
        }
        Ok(())
    }

    /// Revokes the keys of the peers for which `is_meant` returns true. Returns their number.
    pub fn revoke(&mut self, is_meant: impl Fn(&KnownPeer) -> bool) -> usize {
        let mut count = 0;
        for line in &mut self.lines {
            if let KnownPeersLine::Peer(peer) = line
                && is_meant(peer)
            {
                peer.roles = Roles::default();
                count += 1;
            }
        }
        count
    }
}

/// Locks the file of a lock. A long wait is reported as one for `path`.
fn wait_for(lock: &File, path: &Path) -> Result<(), Errno> {
    let mut report = ReportedWait::default();
    loop {
        match flock(lock, FlockOperation::NonBlockingLockExclusive) {
            Err(Errno::WOULDBLOCK | Errno::INTR) => report.look(path),
            locked => return locked,
        }
        std::thread::sleep(PAUSE);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn peer(name: &str, digit: &str) -> KnownPeer {
        KnownPeer {
            name: name.to_owned(),
            key: PublicKey::parse(&format!("ed25519:{}", digit.repeat(64))).expect("a key"),
            roles: Roles {
                may_read: true,
                may_write: true,
            },
            address: None,
            globs: Globs::default(),
        }
    }

    fn at(name: &str, address: &str) -> KnownPeer {
        KnownPeer {
            address: Some(address.to_owned()),
            ..peer(name, "c")
        }
    }

    #[test]
    fn a_list_is_kept_with_its_remarks() {
        let path = std::env::temp_dir().join(format!("pronto-peers-{}", std::process::id()));
        std::fs::write(&path, "# mine\n\n").expect("a file");
        let mut first = peer("laptop", "a");
        first.address = Some("laptop.example:9419".to_owned());
        first.globs.include.push(b"refs/heads/*".to_vec());
        first.globs.exclude.push(b"refs/heads/x".to_vec());
        let change = |change: &dyn Fn(&mut KnownPeers) -> Result<()>| {
            KnownPeers::change(&path, change).map_err(|error| error.to_string())
        };
        change(&|known| known.trust(first.clone())).expect("it is trusted");
        change(&|known| known.trust(peer("desk", "b"))).expect("it is trusted");
        for (wrong, why) in [
            (peer("laptop", "c"), "has another key"),
            (peer("other", "a"), "already belongs to 'laptop'"),
            (peer("a/b", "c"), "malformed entry"),
            (at("x", "host\nevil read"), "malformed entry"),
            (at("x", "host only=refs/heads/x"), "white space"),
        ] {
            let error = change(&|known| known.trust(wrong.clone())).expect_err("it is refused");
            assert!(error.contains(why), "{error}");
        }
        let known = KnownPeers::read(&path).expect("a list");
        assert_eq!(known.by_name("laptop"), Some(&first));
        assert_eq!(known.by_address("laptop.example", 9419), Some(&first));
        assert_eq!(known.by_address("laptop.example", 1), None);
        change(&|known| {
            assert_eq!(known.revoke(|peer| peer.name == "laptop"), 1);
            Ok(())
        })
        .expect("it is revoked");
        let known = KnownPeers::read(&path).expect("a list");
        assert_eq!(known.by_name("laptop"), None);
        assert!(known.by_key(&first.key).is_some_and(KnownPeer::is_revoked));
        let error = change(&|known| known.trust(first.clone())).expect_err("it stays revoked");
        assert!(error.contains("was revoked"), "{error}");
        change(&|known| known.trust(peer("laptop", "d"))).expect("a new key is trusted");
        let text = std::fs::read_to_string(&path).expect("text");
        assert!(
            text.starts_with("# mine\n\nlaptop revoked ed25519:aa"),
            "{text}"
        );
        for broken in [
            "laptop read",
            "a/b read ed25519:00",
            "x all y",
            "x read,write,read k",
        ] {
            std::fs::write(&path, broken).expect("a file");
            assert!(KnownPeers::read(&path).is_err(), "{broken}");
        }
        std::fs::remove_file(path.with_extension("lock")).expect("it goes");
        std::fs::remove_file(&path).expect("it goes");
    }
}
