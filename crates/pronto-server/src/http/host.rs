//! Checks the host of a request at a loopback address of this machine.
//!
//! A page in a browser of this machine can resolve a host name of its own to a loopback address
//! (DNS rebinding). The browser then treats the server as a part of that page, so that the page may
//! read all responses. The host name in the request distinguishes such a page from other clients.

use std::net::IpAddr;

use hyper::Request;
use hyper::body::Incoming;
use hyper::header::HOST;

use crate::config::ServerConfig;
use crate::{Error, ErrorKind, Result};

/// Checks that the host of the request is a name of this machine, or a name of the configuration
/// (`hosts`, `public_url`). Requests without a host are accepted, because they do not come from
/// browsers.
///
/// # Errors
/// Fails with [`ErrorKind::Misdirected`] for any other host.
pub(super) fn check(request: &Request<Incoming>, config: &ServerConfig) -> Result<()> {
    // The host is in the URI for HTTP/2 and for proxies.
    let authority = request
        .uri()
        .authority()
        .map(|authority| authority.as_str());
    let header = request.headers().get(HOST);
    let header = header.map(|value| value.to_str().unwrap_or_default());
    match authority
        .into_iter()
        .chain(header)
        .find(|host| !is_served(host, config))
    {
        None => Ok(()),
        Some(_) => {
            let message = "this server does not serve the host name of the request; add it to \
                           'hosts' in [http]";
            Err(Error::new(ErrorKind::Misdirected, message))
        }
    }
}

fn is_served(host: &str, config: &ServerConfig) -> bool {
    let name = name_of(host).to_ascii_lowercase();
    let url = config.public_url.split_once("://");
    let public = url.map(|(_, rest)| rest.split('/').next().unwrap_or_default());
    let configured = config.hosts.iter().map(String::as_str).chain(public);
    is_local(&name)
        || configured
            .into_iter()
            .any(|known| name_of(known).eq_ignore_ascii_case(&name))
}

/// Returns whether a host in lower case is a name of this machine. No web page has a host without a
/// dot.
fn is_local(name: &str) -> bool {
    let address = name
        .strip_prefix('[')
        .and_then(|name| name.strip_suffix(']'));
    match address.unwrap_or(name).parse::<IpAddr>() {
        Ok(address) => address.to_canonical().is_loopback(),
        Err(_) if name.is_empty() || name.contains(':') => false,
        Err(_) => !name.contains('.') || name.ends_with(".localhost"),
    }
}

/// Returns a host without its port, and without a dot at its end.
fn name_of(host: &str) -> &str {
    let host = host.rsplit_once('@').map_or(host, |(_, host)| host);
    let end = match host.rfind(']') {
        Some(end) => end + 1,
        None => host.find(':').unwrap_or(host.len()),
    };
    let name = host.get(..end).unwrap_or(host);
    name.strip_suffix('.').unwrap_or(name)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_of_this_machine_and_of_the_configuration_are_served() {
        let mut config = ServerConfig::without_file("/".into());
        config.hosts = vec!["git.example.org".to_owned()];
        config.public_url = "https://public.example.org:8443/git".to_owned();
        for host in [
            "localhost",
            "LOCALHOST:8418",
            "localhost.:80",
            "a.localhost",
            "127.0.0.1:8418",
            "127.9.9.9",
            "[::1]:8418",
            "[::ffff:127.0.0.1]",
            "build-3",
            "git.example.org",
            "Git.Example.Org:80",
            "public.example.org",
        ] {
            assert!(is_served(host, &config), "{host}");
        }
        for host in [
            "",
            ":80",
            "evil.example",
            "evil.example:8418",
            "localhost.evil.example",
            "127.0.0.1.evil.example",
            "git.example.org.evil.example",
            "localhost@evil.example",
            "0.0.0.0:8418",
            "10.0.0.1",
            "[::]",
            "[2001:db8::1]:80",
            "notlocalhost.example",
        ] {
            assert!(!is_served(host, &config), "{host}");
        }
    }
}
