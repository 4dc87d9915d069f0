//! The request at the start of a connection: `SERVICE /PATH NUL host=HOST NUL NUL PARAMETER NUL ...`.

use bstr::ByteSlice as _;

use crate::names::RepositoryName;
use crate::route::RequestedService;
use crate::{Error, ErrorKind, Result};

/// The request of a client of `git://`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DaemonRequest {
    /// The requested service.
    pub service: RequestedService,
    /// The requested repository.
    pub name: RepositoryName,
    /// The host that the client connected to, according to the client.
    pub host: Option<String>,
    /// The other parameters, separated by colons as in `GIT_PROTOCOL`.
    pub protocol: Option<String>,
}

/// Parses the payload of the packet.
///
/// # Errors
/// Fails with [`ErrorKind::Malformed`] or [`ErrorKind::Unsupported`] if the packet is malformed or
/// requests another service, and with [`ErrorKind::InvalidName`] if the name of the repository is
/// not allowed.
pub fn parse(line: &[u8]) -> Result<DaemonRequest> {
    let malformed = |message: &str| Error::new(ErrorKind::Malformed, message);
    let (command, parameters) = match line.split_once_str("\0") {
        Some((command, parameters)) => (command, parameters),
        None => (line.strip_suffix(b"\n").unwrap_or(line), &b""[..]),
    };
    let (service, path) = command
        .split_once_str(" ")
        .ok_or_else(|| malformed("the request does not name a repository"))?;
    let service = service.to_str().ok().and_then(RequestedService::named);
    let service = service.ok_or_else(|| malformed("the request names an unknown service"))?;
    let path = path.to_str().ok().and_then(|path| path.strip_prefix('/'));
    let path = path.ok_or_else(|| malformed("the path of the repository is not absolute"))?;
    let name = RepositoryName::parse(path.strip_suffix('/').unwrap_or(path))?;
    // The host is in the first part. An empty part separates it from the other parameters.
    let mut parts = parameters.split_str("\0");
    let host = parts.next().and_then(|part| part.strip_prefix(b"host="));
    let host = host.and_then(|host| host.to_str().ok()).map(str::to_owned);
    let mut protocol = Vec::new();
    for part in parts.filter(|part| !part.is_empty()) {
        let text = part.to_str().ok();
        let text = text.filter(|text| !text.contains([':', '\n']));
        protocol.push(text.ok_or_else(|| malformed("the request has a malformed parameter"))?);
    }
    Ok(DaemonRequest {
        service,
        name,
        host,
        protocol: (!protocol.is_empty()).then(|| protocol.join(":")),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn host_and_parameters_are_found() {
        let line = b"git-upload-pack /a/b.git\0host=example.org:9418\0\0version=2\0x=y\0";
        let request = parse(line).expect("well formed");
        assert_eq!(request.name.as_str(), "a/b");
        assert_eq!(request.host.as_deref(), Some("example.org:9418"));
        assert_eq!(request.protocol.as_deref(), Some("version=2:x=y"));
        let plain = parse(b"git-upload-pack /a\n").expect("well formed");
        assert_eq!((plain.host, plain.protocol), (None, None));
    }

    #[test]
    fn other_requests_are_refused() {
        for bad in [
            &b""[..],
            b"git-upload-pack",
            b"git-upload-pack a",
            b"git-upload-pack /../a",
            b"git-upload-pack /~user/a/..",
            b"git-nothing /a",
            b"git-upload-pack /\xff",
            b"git-upload-pack /a\0host=x\0\0a:b\0",
        ] {
            assert!(parse(bad).is_err(), "{}", bad.as_bstr());
        }
    }
}
