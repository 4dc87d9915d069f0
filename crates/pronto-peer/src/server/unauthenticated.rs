//! Unauthenticated connections, whose peer has not yet presented a known key and sent a request.
//!
//! Each connection costs a thread, a socket and less than 256 KiB for a few seconds. Their number
//! is limited, in total and for each network. A new connection replaces the oldest connection of
//! the network with the most connections.

use std::collections::BTreeMap;
use std::net::{IpAddr, Ipv6Addr, Shutdown, TcpStream};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// The smallest and the largest capacity.
const LEAST: usize = 64;
const MOST: usize = 256;

/// The network of an address, which is likely to belong to one person: an IPv4 address, or the
/// first 64 bits of an IPv6 address.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct PeerNetwork(IpAddr);

impl PeerNetwork {
    pub(super) fn of(address: IpAddr) -> Self {
        PeerNetwork(match address.to_canonical() {
            IpAddr::V6(address) => {
                let [a, b, c, d, ..] = address.segments();
                IpAddr::V6(Ipv6Addr::new(a, b, c, d, 0, 0, 0, 0))
            }
            address => address,
        })
    }
}

/// All unauthenticated connections, by their number.
pub(super) struct UnauthenticatedConnections {
    most: usize,
    each: Mutex<BTreeMap<u64, UnauthenticatedConnection>>,
}

struct UnauthenticatedConnection {
    network: PeerNetwork,
    /// The socket, by which another thread can end the connection.
    socket: Arc<TcpStream>,
}

impl UnauthenticatedConnections {
    /// Creates a lobby for a server with at most `connections` sessions.
    pub(super) fn new(connections: usize) -> Self {
        UnauthenticatedConnections {
            most: (connections / 4).clamp(LEAST, MOST),
            each: Mutex::default(),
        }
    }

    fn each(&self) -> MutexGuard<'_, BTreeMap<u64, UnauthenticatedConnection>> {
        self.each.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Admits a connection, and ends another one if there are too many.
    pub(super) fn enter(&self, number: u64, network: PeerNetwork, socket: Arc<TcpStream>) {
        let mut each = self.each();
        let of_network = each.values().filter(|each| each.network == network);
        if of_network.count() >= self.most / 2 {
            evict(&mut each, network);
        } else if each.len() >= self.most {
            evict_any(&mut each);
        }
        each.insert(number, UnauthenticatedConnection { network, socket });
    }

    /// Removes a connection that is authenticated or has ended. Returns `false` if the connection
    /// was ended to admit another one.
    pub(super) fn leave(&self, number: u64) -> bool {
        self.each().remove(&number).is_some()
    }

    /// Ends one connection, because the system has no resources for more.
    pub(super) fn make_room(&self) {
        evict_any(&mut self.each());
    }
}

/// Ends the oldest connection of the network with the most connections.
fn evict_any(each: &mut BTreeMap<u64, UnauthenticatedConnection>) {
    let mut counts: BTreeMap<PeerNetwork, usize> = BTreeMap::new();
    for stranger in each.values() {
        *counts.entry(stranger.network).or_default() += 1;
    }
    if let Some((network, _)) = counts.into_iter().max_by_key(|(_, count)| *count) {
        evict(each, network);
    }
}

/// Ends the oldest connection of a network, which has had the most time.
fn evict(each: &mut BTreeMap<u64, UnauthenticatedConnection>, network: PeerNetwork) {
    let oldest = each.iter().find(|(_, each)| each.network == network);
    if let Some(stranger) = oldest
        .map(|(number, _)| *number)
        .and_then(|number| each.remove(&number))
    {
        let _ = stranger.socket.shutdown(Shutdown::Both);
    }
}

#[cfg(test)]
mod tests {
    use std::io::Read as _;
    use std::net::TcpListener;

    use super::*;

    fn network(text: &str) -> PeerNetwork {
        PeerNetwork::of(text.parse().expect("an address"))
    }

    #[test]
    fn a_network_is_what_one_person_has() {
        for (one, other, expected) in [
            ("10.0.0.1", "10.0.0.2", false),
            ("10.0.0.1", "::ffff:10.0.0.1", true),
            ("2001:db8:1:2::3", "2001:db8:1:2:ffff::4", true),
            ("2001:db8:1:2::3", "2001:db8:1:3::3", false),
        ] {
            assert_eq!(network(one) == network(other), expected, "{one} {other}");
        }
    }

    #[test]
    fn a_flood_from_one_network_ends_its_own_connections() {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a place");
        let address = listener.local_addr().expect("an address");
        let lobby = UnauthenticatedConnections::new(1);
        let mut ends = Vec::new();
        let mut enter = |number, from: &str| {
            let client = TcpStream::connect(address).expect("it listens");
            let (server, _) = listener.accept().expect("a client connects");
            lobby.enter(number, network(from), Arc::new(server));
            ends.push(client);
        };
        enter(0, "10.0.0.1");
        for number in 1..=100 {
            enter(number, "10.0.0.2");
        }
        for number in 101..=150 {
            enter(number, "10.0.0.3");
        }
        assert!(lobby.leave(0), "others do not end it");
        assert!(!lobby.leave(1) && lobby.leave(100) && lobby.leave(150));
        assert!(lobby.each().len() < LEAST);
        assert_eq!(ends[1].read(&mut [0]).expect("it was ended"), 0);
    }
}
