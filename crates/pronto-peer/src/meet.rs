//! Connects to a peer over TCP and authenticates it.

use std::net::TcpStream;
use std::time::Duration;

use pronto_io::error::OsReason;
use pronto_io::hosts;
use pronto_netsync::ErrorKind as PeerErrorKind;

use super::address::{NetsyncAddress, with_port};
use super::keys::{KeyPair, PublicKey};
use super::known::{KnownPeer, KnownPeers};
use super::names::peer_name_of;
use super::tls::{self, TlsLink};
use pronto::{Error, ErrorKind, Result};

/// The timeout of the connection to one address, and of the handshake.
const PATIENCE: Duration = Duration::from_secs(15);

/// The largest number of addresses of a host that are tried.
const MOST_ADDRESSES: usize = 8;

/// An authenticated connection to the expected peer.
pub struct TlsPeer {
    /// The encrypted connection.
    pub link: TlsLink,
    /// The entry of the peer in the list of known peers.
    pub peer: KnownPeer,
}

/// Connects to the peer `name`. Without a name, connects to the peer with this address, or with the
/// name of the host.
///
/// # Errors
/// Fails with [`ErrorKind::Transport`] if the connection fails, or the peer is unknown, and with
/// [`ErrorKind::Refused`] if the peer has another key than expected. The hint contains advice. This
/// side has not sent its key in these cases.
pub fn connect_tls(
    address: &NetsyncAddress,
    key: &KeyPair,
    known: &KnownPeers,
    name: Option<&str>,
) -> Result<TlsPeer> {
    let (host, port) = (&address.host, address.port);
    let by_host = || {
        let name = peer_name_of(host.as_str().into())?;
        known.by_name(&name)
    };
    let expected = match name {
        Some(name) => known.by_name(name),
        None => known.by_address(host, port).or_else(by_host),
    };
    let socket = connect(host, port)?;
    let link = tls::connect(socket, key, expected.map(|peer| peer.key), PATIENCE);
    match (link, expected) {
        (Ok(link), Some(peer)) => Ok(TlsPeer {
            link,
            peer: peer.clone(),
        }),
        (Ok(_), None) => Err(Error::new(ErrorKind::Transport, "the peer is unknown")),
        (Err((_, Some(key))), expected) => {
            let wanted = ExpectedPeer { name, expected };
            Err(stranger(address, key, known, &wanted))
        }
        (Err((error, None)), _) => Err(error.map_kind(|kind| match kind {
            PeerErrorKind::Denied => ErrorKind::Refused,
            _ => ErrorKind::Transport,
        })),
    }
}

/// The requested peer.
struct ExpectedPeer<'a> {
    /// The name in the request, if it has one.
    name: Option<&'a str>,
    /// The known peer with the name or address.
    expected: Option<&'a KnownPeer>,
}

/// Returns the error for an unexpected key.
fn stranger(
    address: &NetsyncAddress,
    key: PublicKey,
    known: &KnownPeers,
    wanted: &ExpectedPeer<'_>,
) -> Error {
    let ExpectedPeer { name, expected } = *wanted;
    let at = with_port(&address.host, address.port);
    let print = key.fingerprint();
    let refused = |message: String| Error::new(ErrorKind::Refused, message);
    if let Some(expected) = expected {
        let message = format!(
            "{at} does not have the key of '{}': its fingerprint is {print}, not {}",
            expected.name,
            expected.key.fingerprint()
        );
        let hint = format!(
            "another host may intercept the connection; if the key was changed, run: pronto \
             netsync revoke {0}, then pronto netsync trust {0} {key}",
            expected.name
        );
        return refused(message).with_hint(hint);
    }
    match known.by_key(&key) {
        Some(peer) if peer.is_revoked() => refused(format!(
            "{at} has the key of '{}', which was revoked",
            peer.name
        )),
        Some(peer) => {
            let message = format!("{at} is the peer '{}'", peer.name);
            refused(message).with_hint(format!(
                "if that is the intended peer, use --name {}",
                peer.name
            ))
        }
        None => {
            let own = peer_name_of(address.host.as_str().into());
            let name = name
                .map(str::to_owned)
                .or(own)
                .unwrap_or_else(|| "NAME".to_owned());
            let message = format!("the key of {at} is not trusted: its fingerprint is {print}");
            let hint = format!(
                "if its owner confirms this fingerprint, run: pronto netsync trust {name} {key} \
                 --at {at}"
            );
            refused(message).with_hint(hint)
        }
    }
}

fn connect(host: &str, port: u16) -> Result<TcpStream> {
    let at = with_port(host, port);
    let failed = |error| {
        let message = format!("cannot connect to {at}");
        let hint = "check that 'pronto serve --netsync --listen' is running there";
        Error::new(ErrorKind::Transport, message)
            .because(OsReason(error))
            .with_hint(hint)
    };
    let mut last = std::io::Error::from(std::io::ErrorKind::NotFound);
    let addresses = hosts::resolve(host, port, PATIENCE).map_err(failed)?;
    for address in addresses.into_iter().take(MOST_ADDRESSES) {
        match TcpStream::connect_timeout(&address, PATIENCE) {
            Ok(socket) => return Ok(socket),
            Err(error) => last = error,
        }
    }
    Err(failed(last))
}
