//! A server with the state of its origin: connections, headers and credentials.

use std::io::{self, Read};

use bstr::{BStr, ByteSlice};
use ureq::http::{HeaderMap, Response, Uri};
use ureq::{Agent, Body};

use super::dial::CurrentConnection;
use super::encode::compressed;
use super::{CredentialProvider, HttpSecret, Redirects, Settings, agent, text};
use crate::error::{Error, ErrorKind};
use crate::policy::TransportPolicy;
use crate::transport::{
    AddressFamily, Options as TransportOptions, Service, Timeouts, version_parameter,
};
use crate::url::{Url, UrlOrigin};

/// The settings that apply to all redirects.
pub(super) struct RedirectPolicy {
    pub(super) settings: Box<dyn Settings>,
    pub(super) service: Service,
    policy: TransportPolicy,
    family: AddressFamily,
    limits: Timeouts,
    version: Option<&'static str>,
    /// The origin of the URL that the user gave. `None` if that URL is not HTTP; then no server
    /// receives headers that identify the user.
    first: Option<UrlOrigin>,
}

impl RedirectPolicy {
    pub(super) fn new(
        url: &Url,
        service: Service,
        options: &TransportOptions,
        settings: Box<dyn Settings>,
    ) -> Self {
        RedirectPolicy {
            settings,
            service,
            policy: options.policy.clone(),
            family: options.family,
            limits: options.limits,
            version: version_parameter(options.version),
            first: Some(url.origin().clone()),
        }
    }

    /// Prepares the download of a file. `first` is the origin of the URL that the user gave, if it is
    /// HTTP.
    pub(super) fn for_download(self, first: Option<&UrlOrigin>) -> Self {
        RedirectPolicy {
            version: None,
            first: first.cloned(),
            ..self
        }
    }

    /// Checks that a server may redirect to `target`.
    pub(super) fn check_redirect(&self, target: &Url) -> Result<(), Error> {
        self.policy.check_redirect(target.scheme())
    }
}

/// A server for which the settings of its URL were resolved.
pub(super) struct HttpSite {
    /// The base URL without a slash at its end, with the user if known.
    base: Url,
    pub(super) current: CurrentConnection,
    pub(super) follow: Redirects,
    pub(super) post_buffer_bytes: usize,
    agent: Agent,
    headers: Vec<(String, String)>,
    authorization: Option<String>,
    credentials: Option<Box<dyn CredentialProvider>>,
    /// Whether `authorization` came from `credentials` and was not accepted yet.
    filled: bool,
    /// The number of times that further credentials have replaced `authorization`.
    stages: u32,
}

/// The maximum number of stages of an authentication, as in Git.
const MOST_STAGES: u32 = 3;

impl HttpSite {
    /// Resolves the settings for `url`, without sending a request.
    pub(super) fn open(url: &Url, plan: &mut RedirectPolicy) -> Result<Self, Error> {
        let set = plan.settings.for_url(url)?;
        let (agent, current) = agent::agent(url, &set.options, plan.family, plan.limits)?;
        let redirected = plan.first.as_ref() != Some(url.origin());
        let mut headers = agent::headers(url, &set.options, redirected)?;
        if let Some(version) = plan.version {
            headers.push(("Git-Protocol".into(), version.into()));
        }
        let secret = url.user().zip(url.password());
        let authorization = secret.map(|(user, password)| {
            let (user, password) = (user.to_owned(), password.to_owned());
            HttpSecret::Basic { user, password }.header()
        });
        Ok(HttpSite {
            base: url.base()?.with_user(url.user())?,
            current,
            follow: set.options.follow_redirects,
            post_buffer_bytes: set.options.post_buffer_bytes,
            agent,
            headers,
            authorization,
            credentials: set.credentials,
            filled: false,
            stages: 0,
        })
    }

    /// Creates the site to which this one redirects with `target`. Credentials are kept only within the
    /// same origin.
    pub(super) fn redirected(
        &self,
        target: &Url,
        plan: &mut RedirectPolicy,
    ) -> Result<Self, Error> {
        plan.check_redirect(target)?;
        let same = self.base.origin() == target.origin();
        let target = match same {
            true => &target.with_user(self.base.user())?,
            false => target,
        };
        let mut next = HttpSite::open(target, plan)?;
        if same {
            next.authorization.clone_from(&self.authorization);
        }
        Ok(next)
    }

    /// Takes over credentials of `before`, a site of the same origin, that were not accepted or
    /// rejected yet.
    pub(super) fn take_over(&mut self, before: &mut HttpSite) {
        if before.filled && self.base.origin() == before.base.origin() {
            self.filled = true;
            self.credentials = before.credentials.take();
        }
    }

    pub(super) fn base(&self) -> &Url {
        &self.base
    }

    pub(super) fn move_base(&mut self, base: &Url) -> Result<(), Error> {
        self.base = base.with_user(self.base.user())?;
        Ok(())
    }

    /// Sends one request, and repeats it with credentials if the server requires them.
    pub(super) fn run(
        &mut self,
        url: &Url,
        service: Service,
        body: Option<&[u8]>,
    ) -> Result<Response<Body>, Error> {
        loop {
            let response = self.attempt(&self.request_uri(url)?, service, body);
            let response = response.map_err(|error| self.broken(error))?;
            let status = response.status().as_u16();
            if status != 401 {
                if self.filled && status < 400 {
                    self.filled = false;
                    if let Some(credentials) = &mut self.credentials {
                        credentials.approve();
                    }
                }
                return Ok(response);
            }
            if let Err(error) = self.authenticate(response.headers()) {
                return Err(explained(error, response));
            }
        }
    }

    /// Sends one request with a body of unknown length in chunks. It cannot be repeated, so that an
    /// earlier request without content must have completed the authentication.
    pub(super) fn run_upload(
        &mut self,
        url: &Url,
        service: Service,
        body: &mut dyn Read,
    ) -> Result<Response<Body>, Error> {
        let program = service.program();
        let request = self.agent.post(&self.request_uri(url)?);
        let mut request = request
            .header("Content-Type", format!("application/x-{program}-request"))
            .header("Accept", format!("application/x-{program}-result"));
        for (name, value) in self.all_headers() {
            request = request.header(name, value);
        }
        let mut body = body;
        let response = request.send(ureq::SendBody::from_reader(&mut body));
        response.map_err(|error| self.broken(error))
    }

    /// Converts `url` for the client library, and checks that both parse it in the same way, so that
    /// headers for one origin are sent to no other.
    fn request_uri(&self, url: &Url) -> Result<Uri, Error> {
        let differs = || {
            let message = format!("unable to access '{url}': the host is ambiguous");
            Error::new(ErrorKind::Address, message)
        };
        let uri: Uri = url.to_string().parse().map_err(|_| differs())?;
        let default = match uri.scheme_str() {
            Some("https") => 443,
            _ => 80,
        };
        let same = uri.scheme_str() == Some(url.scheme())
            && uri.host() == Some(url.host())
            && uri.port_u16().unwrap_or(default) == url.port()
            && url.origin() == self.base.origin();
        match same {
            true => Ok(uri),
            false => Err(differs()),
        }
    }

    fn authenticate(&mut self, headers: &HeaderMap) -> Result<(), Error> {
        let failed = |base: &Url| {
            let message = format!("Authentication failed for '{base}/'");
            Error::new(ErrorKind::Authentication, message)
        };
        let Some(credentials) = &mut self.credentials else {
            return Err(failed(&self.base));
        };
        let continues = self.filled && credentials.continues() && self.stages < MOST_STAGES;
        if continues {
            self.stages += 1;
        } else if self.authorization.is_some() {
            if self.filled {
                credentials.reject();
            }
            return Err(failed(&self.base));
        }
        let challenges: Vec<String> = headers
            .get_all("www-authenticate")
            .iter()
            .map(|value| String::from_utf8_lossy(value.as_bytes()).into_owned())
            .collect();
        let secret = credentials
            .fill(&self.base, &challenges)?
            .ok_or_else(|| failed(&self.base))?;
        self.authorization = Some(secret.header());
        self.filled = true;
        Ok(())
    }

    fn attempt(
        &self,
        uri: &Uri,
        service: Service,
        body: Option<&[u8]>,
    ) -> Result<Response<Body>, ureq::Error> {
        let common = |name: &str| {
            self.headers
                .iter()
                .all(|(set, _)| !set.eq_ignore_ascii_case(name))
        };
        let program = service.program();
        match body {
            None => {
                let mut request = self.agent.get(uri);
                if common("pragma") {
                    request = request.header("Pragma", "no-cache");
                }
                for (name, value) in self.all_headers() {
                    request = request.header(name, value);
                }
                request.call()
            }
            Some(body) => {
                let request = self.agent.post(uri);
                let mut request = request
                    .header("Content-Type", format!("application/x-{program}-request"))
                    .header("Accept", format!("application/x-{program}-result"));
                for (name, value) in self.all_headers() {
                    request = request.header(name, value);
                }
                let compressed = match service {
                    Service::UploadPack | Service::UploadArchive => compressed(body),
                    // Packs are compressed already.
                    Service::ReceivePack => None,
                };
                match compressed {
                    Some(body) => request.header("Content-Encoding", "gzip").send(&body[..]),
                    None => request.send(body),
                }
            }
        }
    }

    fn all_headers(&self) -> impl Iterator<Item = (&str, &str)> {
        let authorization = self
            .authorization
            .iter()
            .map(|value| ("Authorization", value.as_str()));
        self.headers
            .iter()
            .map(|(name, value)| (name.as_str(), value.as_str()))
            .chain(authorization)
    }

    /// Returns a successful response. Other responses become an error with Git's message and the text
    /// of the server.
    pub(super) fn checked(&self, response: Response<Body>) -> Result<Response<Body>, Error> {
        let base = &self.base;
        let (kind, message) = match response.status().as_u16() {
            200..=299 => return Ok(response),
            404 | 410 => (
                ErrorKind::NotFound,
                format!("repository '{base}/' not found"),
            ),
            407 => (
                ErrorKind::Authentication,
                format!("unable to access '{base}/': the proxy requires authentication"),
            ),
            status => (
                ErrorKind::Connection,
                format!("unable to access '{base}/': The requested URL returned error: {status}"),
            ),
        };
        Err(explained(Error::new(kind, message), response))
    }

    fn broken(&self, error: ureq::Error) -> Error {
        let host = self.base.origin().authority();
        if let Some((what, hint)) = mismatch(&error, self.base.scheme()) {
            let message = format!("unable to access '{}/': {what}", self.base);
            return Error::new(ErrorKind::Connection, message).with_hint(hint);
        }
        let reason = match error {
            ureq::Error::HostNotFound => format!("Could not resolve host: {host}"),
            ureq::Error::Io(error) if error.kind() == io::ErrorKind::ConnectionRefused => {
                format!("Failed to connect to {host}: Connection refused")
            }
            ureq::Error::Io(error) => error.to_string(),
            ureq::Error::Timeout(_) => "connection timed out".to_owned(),
            error => error.to_string(),
        };
        let message = format!("unable to access '{}/': {reason}", self.base);
        Error::new(ErrorKind::Connection, message)
    }

    /// Returns the URL to which `response` redirects a request for `url`.
    pub(super) fn redirection(
        &self,
        response: &Response<Body>,
        url: &Url,
    ) -> Result<Option<Url>, Error> {
        if !matches!(response.status().as_u16(), 301 | 302 | 303 | 307 | 308) {
            return Ok(None);
        }
        let Some(location) = response.headers().get("location") else {
            return Ok(None);
        };
        let location: &BStr = location.as_bytes().as_bstr();
        if let Some((scheme, _)) = location.split_once_str("://") {
            // Other schemes than HTTP have different URL syntax.
            let scheme = scheme.to_ascii_lowercase();
            if !matches!(scheme.as_slice(), b"http" | b"https") && scheme.is_ascii() {
                let scheme = scheme.escape_ascii();
                let message = format!("transport '{scheme}' not allowed");
                return Err(Error::new(ErrorKind::Forbidden, message));
            }
        }
        url.join(location).map(Some)
    }
}

/// Returns the message and the advice for an error of a server that speaks another protocol than that of
/// the URL.
fn mismatch(error: &ureq::Error, scheme: &str) -> Option<(&'static str, &'static str)> {
    let tls = match error {
        ureq::Error::Rustls(error) => Some(error),
        ureq::Error::Io(error) => error.get_ref().and_then(|inner| inner.downcast_ref()),
        _ => None,
    };
    match (error, tls) {
        (_, Some(rustls::Error::InvalidMessage(_))) => Some((
            "the server does not speak TLS",
            "if the port speaks plain HTTP, use a URL that begins with http://",
        )),
        (ureq::Error::Protocol(_), _) if scheme == "http" => Some((
            "the response of the server is not HTTP",
            "if the port speaks TLS, use a URL that begins with https://",
        )),
        _ => None,
    }
}

/// Adds the body of a response to an error, if the body is plain text.
fn explained(error: Error, response: Response<Body>) -> Error {
    let kind = response.headers().get("content-type");
    let kind = kind.and_then(|kind| kind.to_str().ok()).unwrap_or_default();
    let Some(encoding) = text::encoding(kind) else {
        return error;
    };
    let mut bytes = Vec::new();
    let body = response.into_body().into_with_config().reader();
    match body.take(text::MOST_BYTES).read_to_end(&mut bytes) {
        Ok(_) => error.with_remote_text(text::shown(&bytes, encoding)),
        Err(_) => error,
    }
}
