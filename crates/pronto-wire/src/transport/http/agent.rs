//! The HTTP client with the user's settings in it.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use ureq::config::{AutoHeaderValue, IpFamily};
use ureq::tls::{Certificate, ClientCert, PemItem, PrivateKey, RootCerts, TlsConfig};
use ureq::unversioned::resolver::DefaultResolver;
use ureq::{Agent, Proxy};

use super::Redirects;
use super::dial::{self, Current};
use crate::error::{Error, ErrorKind};
use crate::transport::{Family, Options as TransportOptions};

/// How to speak HTTP: the settings that hold for the one URL that is used.
#[derive(Clone, Debug)]
pub struct Options {
    /// The proxy; a bare `host:port` means HTTP.
    pub proxy: Option<String>,
    /// Hosts that are reached without the proxy, divided by commas (`NO_PROXY`).
    pub no_proxy: Option<String>,
    /// Whether to verify certificates (`http.sslVerify`).
    pub ssl_verify: bool,
    /// Certificates to trust in place of the system's (`http.sslCAInfo`).
    pub ssl_ca_info: Option<PathBuf>,
    /// A directory of such certificates (`http.sslCAPath`).
    pub ssl_ca_path: Option<PathBuf>,
    /// Our own certificate (`http.sslCert`).
    pub ssl_cert: Option<PathBuf>,
    /// The key of our certificate, if it is in another file (`http.sslKey`).
    pub ssl_key: Option<PathBuf>,
    /// More headers, `Name: value` (`http.extraHeader`).
    pub extra_headers: Vec<String>,
    /// What to call ourselves (`http.userAgent`).
    pub user_agent: Option<String>,
    /// When to follow redirections (`http.followRedirects`).
    pub follow_redirects: Redirects,
    /// The languages in which messages are welcome (`Accept-Language`).
    pub accept_language: Option<String>,
}

impl Default for Options {
    fn default() -> Self {
        Options {
            proxy: None,
            no_proxy: None,
            ssl_verify: true,
            ssl_ca_info: None,
            ssl_ca_path: None,
            ssl_cert: None,
            ssl_key: None,
            extra_headers: Vec::new(),
            user_agent: None,
            follow_redirects: Redirects::default(),
            accept_language: None,
        }
    }
}

/// Servers tell Git's clients from browsers by this beginning.
const USER_AGENT: &str = concat!("git/pronto-", env!("CARGO_PKG_VERSION"));

/// Large enough for the bytes of many packets: one read of the socket, one system call.
const INPUT_BUFFER_BYTES: usize = 256 * 1024;

/// A client for `base`, and what tells of its connections.
pub(super) fn agent(base: &str, options: &TransportOptions) -> Result<(Agent, Current), Error> {
    let http = &options.http;
    let mut config = Agent::config_builder()
        .http_status_as_error(false)
        .max_redirects(0)
        .max_redirects_will_error(false)
        .user_agent(http.user_agent.clone().unwrap_or(USER_AGENT.into()))
        .accept("*/*")
        .accept_encoding(AutoHeaderValue::Default)
        .input_buffer_size(INPUT_BUFFER_BYTES)
        .proxy(proxy(base, http)?)
        .ip_family(match options.family {
            Family::Any => IpFamily::Any,
            Family::V4 => IpFamily::Ipv4Only,
            Family::V6 => IpFamily::Ipv6Only,
        });
    if base.starts_with("https:") {
        config = config.tls_config(tls(http)?);
    }
    let current = Current::default();
    let connector = dial::connector(current.clone());
    let agent = Agent::with_parts(config.build(), connector, DefaultResolver::default());
    Ok((agent, current))
}

/// The headers of every request.
pub(super) fn headers(options: &Options) -> Vec<(String, String)> {
    let mut headers = Vec::new();
    if let Some(language) = &options.accept_language {
        headers.push(("Accept-Language".into(), language.clone()));
    }
    for line in &options.extra_headers {
        if let Some((name, value)) = line.split_once(':') {
            headers.push((name.trim().into(), value.trim().into()));
        }
    }
    headers
}

fn proxy(base: &str, options: &Options) -> Result<Option<Proxy>, Error> {
    let Some(address) = options.proxy.as_deref().filter(|proxy| !proxy.is_empty()) else {
        return Ok(None);
    };
    if is_direct(base, options.no_proxy.as_deref().unwrap_or_default()) {
        return Ok(None);
    }
    let address = match address.contains("://") {
        true => address.to_owned(),
        false => format!("http://{address}"),
    };
    Proxy::new(&address).map(Some).map_err(|_| {
        let message = format!("Invalid proxy URL '{address}'");
        Error::new(ErrorKind::Address, message)
    })
}

/// Whether `no_proxy` names the host of `base`, or a domain that it is in.
fn is_direct(base: &str, no_proxy: &str) -> bool {
    let authority = base.split_once("://").map_or(base, |(_, rest)| rest);
    let authority = authority.split('/').next().unwrap_or_default();
    let host = match authority.strip_prefix('[') {
        Some(rest) => rest.split(']').next().unwrap_or_default(),
        None => authority.split(':').next().unwrap_or_default(),
    };
    no_proxy
        .split([',', ' '])
        .map(|name| name.trim_start_matches('.'))
        .filter(|name| !name.is_empty())
        .any(|name| {
            name == "*"
                || host.eq_ignore_ascii_case(name)
                || host
                    .len()
                    .checked_sub(name.len() + 1)
                    .is_some_and(|at| host[at..].eq_ignore_ascii_case(&format!(".{name}")))
        })
}

fn tls(options: &Options) -> Result<TlsConfig, Error> {
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let mut config = TlsConfig::builder()
        .unversioned_rustls_crypto_provider(provider)
        .disable_verification(!options.ssl_verify);
    if options.ssl_verify {
        let certificates = trusted(options)?;
        config = config.root_certs(RootCerts::Specific(Arc::new(certificates)));
    }
    if let Some(path) = &options.ssl_cert {
        config = config.client_cert(Some(client_certificate(path, options)?));
    }
    Ok(config.build())
}

/// The certificates to trust: the user's, or the system's.
fn trusted(options: &Options) -> Result<Vec<Certificate<'static>>, Error> {
    let mut found = Vec::new();
    if let Some(path) = &options.ssl_ca_info {
        found.extend(certificates_in(path)?);
    }
    if let Some(directory) = &options.ssl_ca_path {
        let entries = std::fs::read_dir(directory).map_err(|error| unreadable(directory, error))?;
        for entry in entries.flatten() {
            // Other files may lie there; what is not a certificate is passed over.
            found.extend(certificates_in(&entry.path()).unwrap_or_default());
        }
    }
    let own = options.ssl_ca_info.is_some() || options.ssl_ca_path.is_some();
    if !own {
        let native = rustls_native_certs::load_native_certs();
        found.extend(
            native
                .certs
                .iter()
                .map(|certificate| Certificate::from_der(certificate).to_owned()),
        );
    }
    Ok(found)
}

fn certificates_in(path: &Path) -> Result<Vec<Certificate<'static>>, Error> {
    let pem = std::fs::read(path).map_err(|error| unreadable(path, error))?;
    let certificates = ureq::tls::parse_pem(&pem).filter_map(|item| match item {
        Ok(PemItem::Certificate(certificate)) => Some(certificate),
        _ => None,
    });
    Ok(certificates.collect())
}

fn client_certificate(path: &Path, options: &Options) -> Result<ClientCert, Error> {
    let chain = certificates_in(path)?;
    let key_path = options.ssl_key.as_deref().unwrap_or(path);
    let pem = std::fs::read(key_path).map_err(|error| unreadable(key_path, error))?;
    let key = PrivateKey::from_pem(&pem).map_err(|error| {
        let message = format!("no private key in '{}'", key_path.display());
        Error::new(ErrorKind::Authentication, message).because(error)
    })?;
    Ok(ClientCert::new_with_certs(&chain, key))
}

fn unreadable(path: &Path, error: std::io::Error) -> Error {
    let message = format!("error reading certificates from '{}'", path.display());
    Error::new(ErrorKind::Connection, message).because(error)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hosts_and_their_domains_go_past_the_proxy() {
        assert!(is_direct("http://a.example.com/x", "other, .example.com"));
        assert!(is_direct("http://localhost:80/x", "localhost"));
        assert!(is_direct("http://[::1]:80/x", "::1"));
        assert!(!is_direct("http://badexample.com/x", "example.com"));
    }
}
