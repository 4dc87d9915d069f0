//! Finds ports for servers of tests.

use std::hash::{BuildHasher as _, RandomState};
use std::net::{Ipv4Addr, TcpListener};

/// The first port of the default range from which the system assigns ports to clients.
const FIRST_OF_CLIENTS: u16 = 32_768;

const FIRST: u16 = 12_000;

/// Returns a port of the loopback interface on which no server is listening. The port is below the
/// range for clients, so that a server can be started on it later, and restarted.
///
/// # Panics
/// Panics if no port is free.
#[must_use]
pub fn free_port() -> u16 {
    let count = FIRST_OF_CLIENTS - FIRST;
    let start = RandomState::new().hash_one(std::process::id()) % u64::from(count);
    let start = u16::try_from(start).expect("it is smaller than the count");
    let mut ports = (0..count).map(|step| FIRST + (start + step) % count);
    let is_free = |port: &u16| TcpListener::bind((Ipv4Addr::LOCALHOST, *port)).is_ok();
    ports.find(is_free).expect("loopback has free ports")
}
