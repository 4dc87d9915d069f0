//! Smart HTTP: each request is a POST of its own (`gitprotocol-http(5)`).

use std::io::{self, Read};

use bstr::{BStr, BString, ByteSlice};
use ureq::http::{HeaderMap, Response};
use ureq::{Agent, Body, BodyReader};

use super::{Connection, Options as TransportOptions, Readiness, Service, version_parameter};
use crate::address::{decoded, without_credentials};
use crate::error::{Error, ErrorKind};

mod agent;
mod dial;

pub use agent::Options;

/// When to follow redirections.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Redirects {
    /// Not at all.
    Never,
    /// In the first request; the others go where that one ended.
    #[default]
    Initial,
}

/// What proves who we are.
#[derive(Clone, PartialEq, Eq)]
pub enum Secret {
    /// A name and a password, for the basic scheme.
    Basic {
        /// The name.
        user: BString,
        /// The password.
        password: BString,
    },
    /// A whole value for the `Authorization` header: `Bearer TOKEN`.
    Header(String),
}

impl std::fmt::Debug for Secret {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            Secret::Basic { .. } => "Basic(..)",
            Secret::Header(_) => "Header(..)",
        })
    }
}

impl Secret {
    fn header(&self) -> String {
        match self {
            Secret::Header(value) => value.clone(),
            Secret::Basic { user, password } => {
                let pair = [user.as_slice(), b":", password.as_slice()].concat();
                format!("Basic {}", base64(&pair))
            }
        }
    }
}

/// Whoever knows the user's passwords.
pub trait Credentials: Send {
    /// Credentials for `url` (which may hold a user name); `challenges` are the values of the
    /// `WWW-Authenticate` headers. `None` if there are none.
    ///
    /// # Errors
    /// If they cannot be asked for.
    fn fill(&mut self, url: &str, challenges: &[String]) -> Result<Option<Secret>, Error>;

    /// What [`fill`](Self::fill) gave last was right: it may be kept.
    fn approve(&mut self);

    /// What [`fill`](Self::fill) gave last was wrong: it shall be forgotten.
    fn reject(&mut self);
}

/// Requests longer than this are compressed.
const LARGEST_PLAIN_REQUEST: usize = 1024;

/// As many redirections as Git follows.
const MOST_REDIRECTIONS: u32 = 20;

/// What is left of an answer is read away, up to this, so that its connection can be used again.
const LARGEST_REST: usize = 64 * 1024;

pub(super) struct Http {
    agent: Agent,
    current: dial::Current,
    /// Without a final slash, user and password.
    base: String,
    /// As `base`, with the user's name if one was given: what credentials are asked for.
    login: String,
    service: Service,
    headers: Vec<(String, String)>,
    authorization: Option<String>,
    credentials: Option<Box<dyn Credentials>>,
    /// Whether `authorization` came from `credentials`.
    filled: bool,
    answer: Option<BodyReader<'static>>,
    notice: Option<String>,
}

pub(super) fn connect(
    url: &str,
    service: Service,
    options: &TransportOptions,
    credentials: Option<Box<dyn Credentials>>,
) -> Result<Http, Error> {
    let (base, login, secret) = split_login(url);
    let mut headers = agent::headers(&options.http);
    if let Some(version) = version_parameter(options.version) {
        headers.push(("Git-Protocol".into(), version.into()));
    }
    let (agent, current) = agent::agent(&base, options)?;
    let mut http = Http {
        agent,
        current,
        base,
        login,
        service,
        headers,
        authorization: secret.as_ref().map(Secret::header),
        credentials,
        filled: false,
        answer: None,
        notice: None,
    };
    http.discover(options)?;
    Ok(http)
}

impl Http {
    /// The first request: `GET /info/refs`, wherever it is redirected to.
    fn discover(&mut self, options: &TransportOptions) -> Result<(), Error> {
        let suffix = format!("/info/refs?service={}", self.service.program());
        let asked = format!("{}{suffix}", self.base);
        let mut url = asked.clone();
        let mut left = MOST_REDIRECTIONS;
        let response = loop {
            let response = self.run(&url, None)?;
            let Some(target) = redirection(&response, &url) else {
                break self.checked(response)?;
            };
            if options.http.follow_redirects == Redirects::Never || left == 0 {
                let message = format!("unable to access '{}/': too many redirections", self.base);
                return Err(Error::new(ErrorKind::Connection, message));
            }
            left -= 1;
            self.move_to(&target, options)?;
            url = target;
        };
        if url != asked {
            let base = url.strip_suffix(&suffix).ok_or_else(|| {
                let message = format!(
                    "unable to update url base from redirection:\n  asked for: {asked}\n   \
                     redirect: {url}"
                );
                Error::new(ErrorKind::Connection, message)
            })?;
            self.notice = Some(format!("warning: redirecting to {base}/"));
            self.base = base.to_owned();
            self.login = base.to_owned();
        }
        let expected = format!("application/x-{}-advertisement", self.service.program());
        if content_type(response.headers()) != Some(expected.as_str()) {
            let message = format!(
                "'{}/' is not served by git's smart protocol, and the dumb one is not supported",
                self.base
            );
            return Err(Error::new(ErrorKind::Unsupported, message));
        }
        self.answer = Some(reader(response));
        Ok(())
    }

    /// Gets ready to follow a redirection to `target`. What was meant for one server is not told
    /// to another.
    fn move_to(&mut self, target: &str, options: &TransportOptions) -> Result<(), Error> {
        let scheme = target.split("://").next().unwrap_or_default();
        if !matches!(scheme, "http" | "https") {
            let message = format!("transport '{scheme}' not allowed");
            return Err(Error::new(ErrorKind::Forbidden, message));
        }
        options.policy.check(scheme)?;
        if origin(target) != origin(&self.base) {
            self.authorization = None;
            self.filled = false;
            (self.agent, self.current) = agent::agent(target, options)?;
            self.base = origin(target).to_owned();
            self.login = self.base.clone();
        }
        Ok(())
    }

    /// One request, repeated with credentials if the other side asks for them.
    fn run(&mut self, url: &str, body: Option<&[u8]>) -> Result<Response<Body>, Error> {
        loop {
            let response = self
                .attempt(url, body)
                .map_err(|error| self.broken(error))?;
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
            self.authenticate(response.headers())?;
        }
    }

    fn authenticate(&mut self, headers: &HeaderMap) -> Result<(), Error> {
        let failed = |base: &str| {
            let message = format!("Authentication failed for '{base}/'");
            Error::new(ErrorKind::Authentication, message)
        };
        let Some(credentials) = &mut self.credentials else {
            return Err(failed(&self.base));
        };
        if self.authorization.is_some() {
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
            .fill(&self.login, &challenges)?
            .ok_or_else(|| failed(&self.base))?;
        self.authorization = Some(secret.header());
        self.filled = true;
        Ok(())
    }

    fn attempt(&self, url: &str, body: Option<&[u8]>) -> Result<Response<Body>, ureq::Error> {
        let common = |name: &str| {
            self.headers
                .iter()
                .all(|(set, _)| !set.eq_ignore_ascii_case(name))
        };
        let program = self.service.program();
        match body {
            None => {
                let mut request = self.agent.get(url);
                if common("pragma") {
                    request = request.header("Pragma", "no-cache");
                }
                for (name, value) in self.all_headers() {
                    request = request.header(name, value);
                }
                request.call()
            }
            Some(body) => {
                let request = self.agent.post(url);
                let mut request = request
                    .header("Content-Type", format!("application/x-{program}-request"))
                    .header("Accept", format!("application/x-{program}-result"));
                for (name, value) in self.all_headers() {
                    request = request.header(name, value);
                }
                match compressed(body) {
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

    /// The response if it is a success, else what Git says in its place.
    fn checked(&self, response: Response<Body>) -> Result<Response<Body>, Error> {
        let base = &self.base;
        let (kind, message) = match response.status().as_u16() {
            200..=299 => return Ok(response),
            404 | 410 => (
                ErrorKind::NotFound,
                format!("repository '{base}/' not found"),
            ),
            407 => (
                ErrorKind::Authentication,
                format!("unable to access '{base}/': the proxy wants credentials"),
            ),
            status => (
                ErrorKind::Connection,
                format!("unable to access '{base}/': The requested URL returned error: {status}"),
            ),
        };
        Err(Error::new(kind, message))
    }

    fn broken(&self, error: ureq::Error) -> Error {
        let reason = match error {
            ureq::Error::HostNotFound => format!("Could not resolve host: {}", self.host()),
            ureq::Error::Io(error) if error.kind() == io::ErrorKind::ConnectionRefused => {
                format!("Failed to connect to {}: Connection refused", self.host())
            }
            ureq::Error::Io(error) => error.to_string(),
            error => error.to_string(),
        };
        let message = format!("unable to access '{}/': {reason}", self.base);
        Error::new(ErrorKind::Connection, message)
    }

    fn host(&self) -> &str {
        let origin = origin(&self.base);
        origin.split_once("://").map_or(origin, |(_, host)| host)
    }
}

impl Read for Http {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        match &mut self.answer {
            Some(answer) => answer.read(buffer),
            None => Ok(0),
        }
    }
}

impl Connection for Http {
    fn send(&mut self, request: &[u8]) -> Result<(), Error> {
        if let Some(answer) = self.answer.take() {
            // A rest that cannot be read costs a new connection, no more.
            let _ = io::copy(&mut answer.take(LARGEST_REST as u64), &mut io::sink());
        }
        let url = format!("{}/{}", self.base, self.service.program());
        let response = self.run(&url, Some(request))?;
        let response = self.checked(response)?;
        let expected = format!("application/x-{}-result", self.service.program());
        if content_type(response.headers()) != Some(expected.as_str()) {
            let message = format!("invalid content-type in the answer of '{}/'", self.base);
            return Err(Error::new(ErrorKind::Malformed, message));
        }
        self.answer = Some(reader(response));
        Ok(())
    }

    fn is_stateless(&self) -> bool {
        true
    }

    fn take_notice(&mut self) -> Option<String> {
        self.notice.take()
    }

    fn readiness(&self) -> Option<Readiness> {
        Some(self.current.readiness())
    }
}

fn reader(response: Response<Body>) -> BodyReader<'static> {
    let body = response.into_body();
    body.into_with_config().limit(u64::MAX).reader()
}

/// Scheme, host and port of a URL.
fn origin(url: &str) -> &str {
    let start = url.find("://").map_or(0, |at| at + 3);
    let end = url[start..].find('/').map_or(url.len(), |at| start + at);
    &url[..end]
}

/// Where `response` to a request for `url` says to look instead.
fn redirection(response: &Response<Body>, url: &str) -> Option<String> {
    if !matches!(response.status().as_u16(), 301 | 302 | 303 | 307 | 308) {
        return None;
    }
    let target = response.headers().get("location")?.to_str().ok()?;
    let without_query = url.split('?').next().unwrap_or_default();
    let directory = &without_query[..=without_query.rfind('/')?];
    Some(if target.contains("://") {
        target.to_owned()
    } else if let Some(rest) = target.strip_prefix("//") {
        let scheme = url.split("://").next().unwrap_or_default();
        format!("{scheme}://{rest}")
    } else if target.starts_with('/') {
        format!("{}{target}", origin(url))
    } else {
        format!("{directory}{target}")
    })
}

fn content_type(headers: &HeaderMap) -> Option<&str> {
    let value = headers.get("content-type")?.to_str().ok()?;
    value.split(';').next().map(str::trim)
}

/// The URL without login and final slashes; the same with the user's name; and the login if it
/// is whole.
fn split_login(url: &str) -> (String, String, Option<Secret>) {
    let url = url.trim_end_matches('/');
    let base = escaped(without_credentials(url.into()).as_ref());
    let (scheme, rest) = url.split_once("://").unwrap_or(("", url));
    let authority = rest.split('/').next().unwrap_or_default();
    let Some((login, _)) = authority.rsplit_once('@') else {
        return (base.clone(), base, None);
    };
    let (user, password) = match login.split_once(':') {
        Some((user, password)) => (user, Some(password)),
        None => (login, None),
    };
    let rest = base.split_once("://").map_or("", |(_, rest)| rest);
    let secret = password.map(|password| Secret::Basic {
        user: decoded(user.as_bytes()),
        password: decoded(password.as_bytes()),
    });
    let login = format!("{scheme}://{user}@{rest}");
    (base, login, secret)
}

/// `url` with what may not stand in a request written as `%XX`.
fn escaped(url: &BStr) -> String {
    let mut out = String::with_capacity(url.len());
    for &byte in url.as_bytes() {
        match byte {
            b'"' | b'<' | b'>' | b'\\' | b'^' | b'`' | b'{' | b'|' | b'}' => {
                out.push_str(&format!("%{byte:02X}"));
            }
            0x21..=0x7e => out.push(char::from(byte)),
            _ => out.push_str(&format!("%{byte:02X}")),
        }
    }
    out
}

fn compressed(body: &[u8]) -> Option<Vec<u8>> {
    if body.len() <= LARGEST_PLAIN_REQUEST {
        return None;
    }
    let level = libdeflater::CompressionLvl::fastest();
    let mut compressor = libdeflater::Compressor::new(level);
    let mut out = vec![0; compressor.gzip_compress_bound(body.len())];
    let length = compressor.gzip_compress(body, &mut out).ok()?;
    out.truncate(length);
    Some(out)
}

fn base64(bytes: &[u8]) -> String {
    const DIGITS: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    let mut out = String::with_capacity(bytes.len().div_ceil(3) * 4);
    for chunk in bytes.chunks(3) {
        let at = |index: usize| u32::from(chunk.get(index).copied().unwrap_or(0));
        let value = at(0) << 16 | at(1) << 8 | at(2);
        for index in 0..4 {
            if index <= chunk.len() {
                let digit = value >> (18 - 6 * index) & 63;
                out.push(char::from(DIGITS[digit as usize]));
            } else {
                out.push('=');
            }
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn logins_are_taken_out_of_urls() {
        let (base, login, secret) = split_login("https://me:p%40ss@host:1/a b/");
        assert_eq!(base, "https://host:1/a%20b");
        assert_eq!(login, "https://me@host:1/a%20b");
        let header = secret.expect("user and password").header();
        assert_eq!(header, "Basic bWU6cEBzcw==");
    }

    #[test]
    fn base64_pads() {
        assert_eq!(base64(b"a"), "YQ==");
        assert_eq!(base64(b"abcd"), "YWJjZA==");
        assert_eq!(base64(b"abc"), "YWJj");
    }
}
