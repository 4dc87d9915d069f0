//! The HTTP client, configured with the user's settings.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use bstr::ByteSlice;
use rustls::ClientConfig;
use rustls::client::danger::ServerCertVerifier;
use rustls::pki_types::pem::PemObject as _;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use ureq::config::{AutoHeaderValue, IpFamily};
use ureq::http::Uri;
use ureq::{Agent, Proxy, ProxyProtocol};

use super::dial::{self, CurrentConnection, Dialer};
use super::encrypt::Encryption;
use super::relay::WholeUrls;
use super::{HttpSecret, Redirects};
use crate::error::{Error, ErrorKind};
use crate::tls::{AnyServer, ServerTrust, certificates_in, provider};
use crate::transport::{AddressFamily, LowSpeed, Timeouts};
use crate::url::Url;

/// Options for HTTP: the settings for a single URL.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Options {
    /// The proxy (`http.proxy`). `host:port` without a scheme is an HTTP proxy.
    pub proxy: Option<String>,
    /// Hosts for which the proxy is not used, separated by commas (`NO_PROXY`).
    pub no_proxy: Option<String>,
    /// Verify the certificate of the server (`http.sslVerify`).
    pub ssl_verify: bool,
    /// The file with trusted certificates, instead of those of the system (`http.sslCAInfo`).
    pub ssl_ca_info: Option<PathBuf>,
    /// The directory with trusted certificates (`http.sslCAPath`).
    pub ssl_ca_path: Option<PathBuf>,
    /// The client certificate (`http.sslCert`).
    pub ssl_cert: Option<PathBuf>,
    /// The key of the client certificate, if it is in another file (`http.sslKey`).
    pub ssl_key: Option<PathBuf>,
    /// Additional headers (`http.extraHeader`).
    pub extra_headers: Vec<ExtraHeader>,
    /// The `User-Agent` header (`http.userAgent`).
    pub user_agent: Option<String>,
    /// The treatment of redirects (`http.followRedirects`).
    pub follow_redirects: Redirects,
    /// The preferred languages of messages (`Accept-Language` header).
    pub accept_language: Option<String>,
    /// The speed below which a transfer is aborted (`http.lowSpeedLimit`, `http.lowSpeedTime`).
    pub low_speed: Option<LowSpeed>,
    /// The length above which an upload is sent in chunks, in bytes (`http.postBuffer`).
    pub post_buffer_bytes: usize,
}

/// The default length above which an upload is sent in chunks, in bytes.
pub(super) const POST_BUFFER_BYTES: usize = 1 << 20;

/// An additional header for all requests.
#[derive(Clone, Debug)]
pub struct ExtraHeader {
    /// The header as `Name: value`.
    pub line: String,
    /// Whether the setting applies to the URL in use, not to all URLs.
    pub for_url: bool,
}

impl ExtraHeader {
    /// Returns whether the header may be sent to another origin after a redirect: because it is set for
    /// this URL, or does not identify the user.
    fn may_follow(&self) -> bool {
        const SECRET: [&str; 8] = [
            "auth",
            "cookie",
            "token",
            "key",
            "secret",
            "password",
            "credential",
            "session",
        ];
        let name = self.line.split(':').next().unwrap_or_default();
        let name = name.to_ascii_lowercase();
        self.for_url || !SECRET.iter().any(|word| name.contains(word))
    }
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
            low_speed: None,
            post_buffer_bytes: POST_BUFFER_BYTES,
        }
    }
}

/// The default `User-Agent`. Servers recognize Git clients by its start.
const USER_AGENT: &str = concat!("git/pronto-", env!("CARGO_PKG_VERSION"));

/// The size of the input buffer in bytes, so that one system call reads many packets.
const INPUT_BUFFER_BYTES: usize = 256 * 1024;

/// The maximum size of the header of a response. Curl allows more, but no Git server needs it.
const LONGEST_HEAD: usize = 64 * 1024;

/// Creates a client for `url`, and the handle that reports on its connections.
pub(super) fn agent(
    url: &Url,
    options: &Options,
    family: AddressFamily,
    limits: Timeouts,
) -> Result<(Agent, CurrentConnection), Error> {
    let relay = relay(url, options)?;
    let config = Agent::config_builder()
        .http_status_as_error(false)
        .max_redirects(0)
        .max_redirects_will_error(false)
        .max_response_header_size(LONGEST_HEAD)
        .timeout_connect(Some(limits.connect))
        .timeout_recv_response(Some(limits.head))
        .timeout_per_read(Some(limits.idle))
        .timeout_per_write(Some(limits.idle))
        .user_agent(options.user_agent.clone().unwrap_or(USER_AGENT.into()))
        .accept("*/*")
        .accept_encoding(AutoHeaderValue::Default)
        .input_buffer_size(INPUT_BUFFER_BYTES)
        .proxy(match &relay {
            Some(_) => None,
            None => proxy(url, options)?,
        })
        .ip_family(match family {
            AddressFamily::Any => IpFamily::Any,
            AddressFamily::V4 => IpFamily::Ipv4Only,
            AddressFamily::V6 => IpFamily::Ipv6Only,
        });
    let relay = relay.map(|relay| relay.address);
    let encryption = if url.scheme() == "https" {
        Encryption::of_origin(tls(options)?)
    } else if let Some(proxy) = relay.as_ref().filter(|proxy| is_encrypted(proxy)) {
        // As in Git, settings for the certificate of the server do not apply to that of the proxy.
        Encryption::of_proxy(tls(&Options::default())?, proxy.clone())
    } else {
        Encryption::default()
    };
    let current = CurrentConnection::default();
    let dialer = Dialer {
        current: current.clone(),
        limits,
        low_speed: options.low_speed,
    };
    let is_relayed = relay.is_some();
    let whole_urls = WholeUrls {
        origin: is_relayed.then(|| format!("http://{}", url.origin().authority())),
    };
    let connector = dial::connector(dialer, encryption, whole_urls);
    let resolver = dial::Resolving { relay };
    let agent = Agent::with_parts(config.build(), connector, resolver);
    Ok((agent, current))
}

/// Returns the headers for requests to `url`. `redirected` means that a server chose the origin by a
/// redirect.
///
/// # Errors
/// Fails with [`ErrorKind::Address`] if the address of the proxy is malformed.
pub(super) fn headers(
    url: &Url,
    options: &Options,
    redirected: bool,
) -> Result<Vec<(String, String)>, Error> {
    let mut headers = Vec::new();
    if let Some(relay) = relay(url, options)? {
        headers.push(("Proxy-Connection".into(), "Keep-Alive".into()));
        let login = relay.authorization;
        headers.extend(login.map(|login| ("Proxy-Authorization".into(), login)));
    }
    if let Some(language) = &options.accept_language {
        headers.push(("Accept-Language".into(), language.clone()));
    }
    for header in &options.extra_headers {
        if redirected && !header.may_follow() {
            continue;
        }
        if let Some((name, value)) = header.line.split_once(':') {
            headers.push((name.trim().into(), value.trim().into()));
        }
    }
    Ok(headers)
}

/// A proxy that receives complete requests for `http://` URLs, instead of opening a tunnel.
struct Relay {
    /// The address to which the connection is made.
    address: Uri,
    /// The value of `Proxy-Authorization`.
    authorization: Option<String>,
}

/// Returns the proxy that forwards requests for `url`. Requests for `https://` URLs use a tunnel
/// through the proxy instead.
fn relay(url: &Url, options: &Options) -> Result<Option<Relay>, Error> {
    let Some(address) = proxy_address(url, options)? else {
        return Ok(None);
    };
    if url.scheme() != "http" || !["http", "https"].contains(&address.scheme()) {
        return Ok(None);
    }
    let uri = format!("{}://{}", address.scheme(), address.origin().authority());
    let invalid = |_| {
        let message = format!("Invalid proxy URL '{address}'");
        Error::new(ErrorKind::Address, message)
    };
    let login = address.user().map(|user| HttpSecret::Basic {
        user: user.to_owned(),
        password: address
            .password()
            .map(ToOwned::to_owned)
            .unwrap_or_default(),
    });
    Ok(Some(Relay {
        address: uri.parse().map_err(invalid)?,
        authorization: login.map(|login| login.header()),
    }))
}

/// Returns whether connections to `proxy` are encrypted.
fn is_encrypted(proxy: &Uri) -> bool {
    proxy.scheme_str() == Some("https")
}

/// Returns the address of the proxy for `url`, if there is one.
fn proxy_address(url: &Url, options: &Options) -> Result<Option<Url>, Error> {
    let Some(address) = options.proxy.as_deref().filter(|proxy| !proxy.is_empty()) else {
        return Ok(None);
    };
    if is_direct(url, options.no_proxy.as_deref().unwrap_or_default()) {
        return Ok(None);
    }
    match address.contains("://") {
        true => Url::parse(address.into()).map(Some),
        false => Url::parse(format!("http://{address}").as_str().into()).map(Some),
    }
}

fn proxy(url: &Url, options: &Options) -> Result<Option<Proxy>, Error> {
    let Some(address) = proxy_address(url, options)? else {
        return Ok(None);
    };
    let invalid = || {
        let message = format!("Invalid proxy URL '{address}'");
        Error::new(ErrorKind::Address, message)
    };
    let protocol = ProxyProtocol::try_from(address.scheme()).map_err(|_| invalid())?;
    let mut proxy = Proxy::builder(protocol)
        .host(address.host())
        .port(address.port());
    if let Some(user) = address.user() {
        proxy = proxy.username(user.to_str().map_err(|_| invalid())?);
    }
    if let Some(password) = address.password() {
        proxy = proxy.password(password.to_str().map_err(|_| invalid())?);
    }
    proxy.build().map(Some).map_err(|_| invalid())
}

/// Returns whether `no_proxy` contains the host of `url`, or a parent domain.
fn is_direct(url: &Url, no_proxy: &str) -> bool {
    let host = url.bare_host();
    no_proxy
        .split([',', ' '])
        .map(|name| name.trim_start_matches('.').trim_matches(['[', ']']))
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

/// Returns the configuration of TLS for the user's settings.
fn tls(options: &Options) -> Result<Arc<ClientConfig>, Error> {
    let unusable = |error: rustls::Error| {
        Error::new(ErrorKind::Connection, "cannot set up TLS").because(error)
    };
    let verifier: Arc<dyn ServerCertVerifier> = match options.ssl_verify {
        true => Arc::new(trusted(options)?),
        false => Arc::new(AnyServer),
    };
    let builder = ClientConfig::builder_with_provider(provider())
        .with_safe_default_protocol_versions()
        .map_err(unusable)?
        .dangerous()
        .with_custom_certificate_verifier(verifier);
    let config = match &options.ssl_cert {
        None => builder.with_no_client_auth(),
        Some(path) => {
            let (chain, key) = client_certificate(path, options)?;
            let config = builder.with_client_auth_cert(chain, key);
            config.map_err(|error| {
                let message = format!("cannot use the certificate in '{}'", path.display());
                Error::new(ErrorKind::Authentication, message).because(error)
            })?
        }
    };
    Ok(Arc::new(config))
}

/// Reads the trusted certificates: the configured ones, or those of the system.
fn trusted(options: &Options) -> Result<ServerTrust, Error> {
    let mut found = Vec::new();
    if let Some(path) = &options.ssl_ca_info {
        found.extend(certificates_in(path).map_err(|error| unreadable(path, error))?);
    }
    if let Some(directory) = &options.ssl_ca_path {
        let entries = std::fs::read_dir(directory).map_err(|error| unreadable(directory, error))?;
        for entry in entries.flatten() {
            // Files in the directory that are not certificates are skipped.
            found.extend(certificates_in(&entry.path()).unwrap_or_default());
        }
    }
    let own = options.ssl_ca_info.is_some() || options.ssl_ca_path.is_some();
    Ok(match own {
        true => ServerTrust::new(found),
        false => ServerTrust::of_system(),
    })
}

/// Reads the chain and the key of the client.
fn client_certificate(
    path: &Path,
    options: &Options,
) -> Result<(Vec<CertificateDer<'static>>, PrivateKeyDer<'static>), Error> {
    let chain = certificates_in(path).map_err(|error| unreadable(path, error))?;
    let key_path = options.ssl_key.as_deref().unwrap_or(path);
    let pem = std::fs::read(key_path).map_err(|error| unreadable(key_path, error))?;
    let key = PrivateKeyDer::from_pem_slice(&pem).map_err(|error| {
        let message = format!("no private key in '{}'", key_path.display());
        Error::new(ErrorKind::Authentication, message).because(error)
    })?;
    Ok((chain, key))
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
        let is_direct = |url: &str, no_proxy: &str| {
            is_direct(&Url::parse(url.into()).expect("a URL"), no_proxy)
        };
        assert!(is_direct("http://a.example.com/x", "other, .example.com"));
        assert!(is_direct("http://localhost:80/x", "localhost"));
        assert!(is_direct("http://[::1]:80/x", "::1"));
        assert!(is_direct("http://me:x@example.com?y", "example.com"));
        assert!(!is_direct("http://badexample.com/x", "example.com"));
    }

    #[test]
    fn secrets_do_not_follow_a_redirect_unless_they_are_meant_for_its_target() {
        let options = Options {
            extra_headers: [
                ("Authorization: a", false),
                ("X-Api-Key: b", false),
                ("cookie: c", false),
                ("X-Trace: d", false),
                ("Authorization: e", true),
            ]
            .map(|(line, for_url)| ExtraHeader {
                line: line.into(),
                for_url,
            })
            .into(),
            ..Options::default()
        };
        let sent = |redirected| -> String {
            let url = Url::parse("http://example.com/x".into()).expect("a URL");
            let headers = headers(&url, &options, redirected).expect("there is no proxy");
            headers.into_iter().map(|(_, value)| value).collect()
        };
        assert_eq!((sent(false), sent(true)), ("abcde".into(), "de".into()));
    }
}
