//! URLs of peers over TCP: `netsync://HOST[:PORT][/PATH]`.

use bstr::{BStr, ByteSlice as _};

use pronto::{Error, ErrorKind, Result};

/// The default port of peers.
pub const DEFAULT_PORT: u16 = 9419;

/// The URL of a peer, and the repository to use there.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NetsyncAddress {
    /// The host name or IP address, without brackets.
    pub host: String,
    /// The TCP port.
    pub port: u16,
    /// The name of the repository at the peer, or an empty name if the peer has only one
    /// repository.
    pub path: Vec<u8>,
}

impl NetsyncAddress {
    /// Parses a URL. Returns `None` if the URL has another scheme.
    ///
    /// # Errors
    /// Fails with [`ErrorKind::InvalidInput`] if the URL has the scheme `netsync`, but no host, or
    /// an invalid port.
    pub fn parse(address: &BStr) -> Result<Option<NetsyncAddress>> {
        let Some(rest) = address.strip_prefix(b"netsync://") else {
            return Ok(None);
        };
        let end = rest.find_byte(b'/').unwrap_or(rest.len());
        let path = rest[end..].trim_start_with(|slash| slash == '/');
        let found = rest[..end].to_str().ok().and_then(split_host);
        let HostPort { host, port } = found.ok_or_else(|| {
            let message = format!("invalid peer address '{address}'");
            let hint = "use netsync://HOST[:PORT][/PATH]";
            Error::new(ErrorKind::InvalidInput, message).with_hint(hint)
        })?;
        Ok(Some(NetsyncAddress {
            host,
            port: port.unwrap_or(DEFAULT_PORT),
            path: path.to_vec(),
        }))
    }
}

/// A host and its port.
struct HostPort {
    host: String,
    port: Option<u16>,
}

/// Parses a host, optionally followed by a colon and a port. A host that contains colons is in
/// brackets.
fn split_host(text: &str) -> Option<HostPort> {
    let (host, port) = match text.strip_prefix('[') {
        Some(rest) => {
            let (host, port) = rest.split_once(']')?;
            match port {
                "" => (host, None),
                port => (host, Some(port.strip_prefix(':')?)),
            }
        }
        None => match text.split_once(':') {
            Some((host, port)) => (host, Some(port)),
            None => (text, None),
        },
    };
    let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || b".-_:%".contains(&byte);
    let is_host = !host.is_empty() && host.bytes().all(is_plain);
    let port = port
        .map(|port| port.parse::<u16>().ok())
        .map_or(Some(None), |port| port.map(Some));
    is_host.then_some(HostPort {
        host: host.to_owned(),
        port: port?,
    })
}

/// Returns a host and its port as one string.
pub(super) fn with_port(host: &str, port: u16) -> String {
    match host.contains(':') {
        true => format!("[{host}]:{port}"),
        false => format!("{host}:{port}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_are_taken_apart() {
        for (text, expected) in [
            ("netsync://laptop", Some(("laptop", DEFAULT_PORT, ""))),
            ("netsync://laptop:1/", Some(("laptop", 1, ""))),
            (
                "netsync://a.b:65535/x/y.git",
                Some(("a.b", 65535, "x/y.git")),
            ),
            ("netsync://[::1]:7/x", Some(("::1", 7, "x"))),
            ("netsync://[::1]/x", Some(("::1", DEFAULT_PORT, "x"))),
            ("ssh://laptop/x", None),
        ] {
            let found = NetsyncAddress::parse(text.into()).expect("an address");
            let found = found.as_ref();
            let found = found.map(|at| (&at.host[..], at.port, at.path.to_str_lossy()));
            let expected = expected.map(|(host, port, path)| (host, port, path.into()));
            assert_eq!(found, expected, "{text}");
        }
        for text in [
            "", ":1", "a:", "a:x", "a:65536", "[::1", "[::1]x", "a b", "me@host",
        ] {
            let text = format!("netsync://{text}/x");
            assert!(
                NetsyncAddress::parse(text.as_str().into()).is_err(),
                "{text}"
            );
        }
    }
}
