//! Looks up the IP addresses of hosts.
//!
//! glibc looks up hosts as `/etc/nsswitch.conf` configures, with libraries that must match its own
//! version. A static program contains the glibc of the machine on which the program was built. Such
//! a program runs `getent` instead, which belongs to the glibc of this machine. On systems without
//! `getent` the static glibc is used, which supports `/etc/hosts` and DNS.

use std::io;
use std::net::{IpAddr, SocketAddr, ToSocketAddrs as _};
use std::sync::mpsc;
use std::thread;
use std::time::Duration;

use crate::getent;

/// Looks up `host`, a name or an IP address, and returns its addresses with `port`, in the order in
/// which the caller should try them.
///
/// Waits for at most `within`, also if the name servers do not answer. Never returns an empty list.
/// Starts a thread, and in a static program a process; neither is needed for an IP address. May be
/// called from many threads at once.
///
/// # Errors
/// - Fails with `NotFound` if the host has no address or is unknown to the name servers.
/// - Fails with `TimedOut` if there is no answer within the timeout.
/// - Fails with other errors of the system.
pub fn resolve(host: &str, port: u16, within: Duration) -> io::Result<Vec<SocketAddr>> {
    if let Ok(address) = host.parse::<IpAddr>() {
        return Ok(vec![(address, port).into()]);
    }
    let (answer, answered) = mpsc::sync_channel(1);
    let name = host.to_owned();
    thread::Builder::new().spawn(move || {
        // After the timeout, no thread receives the answer.
        let _ = answer.send(look_up(&name, port));
    })?;
    let found = answered.recv_timeout(within).map_err(|_| {
        let message = "the name servers do not respond";
        io::Error::new(io::ErrorKind::TimedOut, message)
    })??;
    match found.is_empty() {
        true => Err(unknown()),
        false => Ok(found),
    }
}

/// Looks up an address of the form `HOST:PORT`, at which a server listens. A host without a port has
/// `default_port`. Waits and starts processes as [`resolve`] does.
///
/// # Errors
/// - Fails with `InvalidInput` if `text` has no port and there is no default.
/// - Fails as [`resolve`] does.
pub fn resolve_address(
    text: &str,
    default_port: Option<u16>,
    within: Duration,
) -> io::Result<Vec<SocketAddr>> {
    if let Ok(address) = text.parse::<SocketAddr>() {
        return Ok(vec![address]);
    }
    // An IPv6 address without brackets has no port.
    let split = match text.parse::<IpAddr>() {
        Ok(_) => None,
        Err(_) => text.rsplit_once(':'),
    };
    let named = split.and_then(|(host, port)| Some((host, port.parse().ok()?)));
    match (named, default_port) {
        (Some((host, port)), _) => resolve(host, port, within),
        (None, Some(port)) => resolve(text, port, within),
        (None, None) => Err(io::Error::new(
            io::ErrorKind::InvalidInput,
            "invalid socket address",
        )),
    }
}

fn look_up(host: &str, port: u16) -> io::Result<Vec<SocketAddr>> {
    // An IPv6 address with a zone is not a name.
    if !host.contains('%')
        && is_static()
        && let Some(found) = getent::lines("ahosts", host)?
    {
        let found = addresses(&found).into_iter();
        return Ok(found.map(|ip| (ip, port).into()).collect());
    }
    match (host, port).to_socket_addrs() {
        Ok(found) => Ok(found.collect()),
        // The standard library reports errors of `getaddrinfo` without an error code.
        Err(error) if error.raw_os_error().is_none() => Err(unknown()),
        Err(error) => Err(error),
    }
}

fn unknown() -> io::Error {
    let message = "Name or service not known";
    io::Error::new(io::ErrorKind::NotFound, message)
}

/// Returns the addresses in the output of `getent ahosts`, which has a line `ADDRESS STREAM NAME` for
/// each type of socket.
fn addresses(output: &[u8]) -> Vec<IpAddr> {
    let mut found = Vec::new();
    for line in String::from_utf8_lossy(output).lines() {
        let mut words = line.split_ascii_whitespace();
        let address = words.next().and_then(|word| word.parse().ok());
        if let (Some(address), Some("STREAM")) = (address, words.next()) {
            found.push(address);
        }
    }
    found
}

/// Returns whether this program contains its C library: the kernel started the program without a
/// dynamic loader.
fn is_static() -> bool {
    #[cfg(all(target_os = "linux", target_env = "gnu"))]
    {
        // SAFETY: it takes a number and reads a table that the kernel filled at the start.
        unsafe { libc::getauxval(libc::AT_BASE) == 0 }
    }
    #[cfg(not(all(target_os = "linux", target_env = "gnu")))]
    {
        false
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const LONG: Duration = Duration::from_secs(60);

    #[test]
    fn an_address_is_not_looked_up() {
        let found = resolve("127.0.0.1", 9418, LONG).expect("an address");
        assert_eq!(found, [SocketAddr::from(([127, 0, 0, 1], 9418))]);
        let found = resolve("::1", 80, LONG).expect("an address");
        assert_eq!(found[0].to_string(), "[::1]:80");
    }

    #[test]
    fn addresses_have_a_port_or_get_the_default() {
        let found = |text, port| {
            let found = resolve_address(text, port, LONG).map_err(|error| error.kind());
            found.map(|found| found[0].to_string())
        };
        let invalid = Err(io::ErrorKind::InvalidInput);
        assert_eq!(found("127.0.0.1:80", None), Ok("127.0.0.1:80".to_owned()));
        assert_eq!(found("[::1]:80", Some(9)), Ok("[::1]:80".to_owned()));
        assert_eq!(found("::1", Some(9)), Ok("[::1]:9".to_owned()));
        assert_eq!(found("127.0.0.1", Some(9)), Ok("127.0.0.1:9".to_owned()));
        assert_eq!(found("127.0.0.1", None), invalid);
        assert_eq!(found("localhost:x", None), invalid);
        let found = found("localhost:80", None).expect("a host");
        assert!(found.ends_with(":80"), "{found}");
    }

    #[test]
    fn a_name_is_looked_up() {
        let found = resolve("localhost", 80, LONG).expect("a host");
        assert!(!found.is_empty() && found.iter().all(|address| address.ip().is_loopback()));
    }

    #[test]
    fn a_name_without_addresses_is_not_found() {
        for name in [
            "no-such-host.invalid",
            "-A",
            "",
            "a\0b",
            "fe80::1%no-such-link",
        ] {
            let error = resolve(name, 80, LONG).expect_err("no host");
            assert!(
                matches!(
                    error.kind(),
                    io::ErrorKind::NotFound | io::ErrorKind::InvalidInput
                ),
                "{name:?}: {error:?}"
            );
        }
    }

    #[test]
    fn lines_of_getent_are_addresses_of_streams() {
        let output = b"2001:db8::1     STREAM example.org\n2001:db8::1     DGRAM  \n192.0.2.1       STREAM \nx STREAM\n";
        let found = addresses(output);
        assert_eq!(found.len(), 2);
        assert_eq!(found[1].to_string(), "192.0.2.1");
    }
}
