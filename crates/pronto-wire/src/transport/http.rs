//! Smart HTTP: each request is a separate POST (`gitprotocol-http(5)`).

use std::io::{self, Read};

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use bstr::BString;
use ureq::http::{HeaderMap, Response};
use ureq::{Body, BodyReader};

use super::{Connection, Options as TransportOptions, Readiness, Service};
use crate::advertisement::{GreetingParser, ProtocolVersion};
use crate::error::{Error, ErrorKind};
use crate::reader::PacketReader;
use crate::url::Url;

mod agent;
mod dial;
mod download;
mod encode;
mod encrypt;
mod relay;
mod site;
mod text;

pub use agent::{ExtraHeader, Options};
pub use download::{Download, download};
use site::{HttpSite, RedirectPolicy};

/// The treatment of redirects (`http.followRedirects`).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Redirects {
    /// Follow no redirect (`false`).
    Never,
    /// Follow redirects of the first request; later requests use its final URL (`initial`).
    #[default]
    Initial,
    /// Follow redirects of all requests (`true`).
    Always,
}

/// Credentials of the user.
#[derive(Clone, PartialEq, Eq)]
pub enum HttpSecret {
    /// A user name and a password, for basic authentication.
    Basic {
        /// The name.
        user: BString,
        /// The password.
        password: BString,
    },
    /// A complete value of the `Authorization` header, for example `Bearer TOKEN`.
    Header(String),
}

impl std::fmt::Debug for HttpSecret {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            HttpSecret::Basic { .. } => "Basic(..)",
            HttpSecret::Header(_) => "Header(..)",
        })
    }
}

impl HttpSecret {
    fn header(&self) -> String {
        match self {
            HttpSecret::Header(value) => value.clone(),
            HttpSecret::Basic { user, password } => {
                let pair = [user.as_slice(), b":", password.as_slice()].concat();
                format!("Basic {}", STANDARD.encode(&pair))
            }
        }
    }
}

/// The user's settings, which are resolved for each URL that receives a request.
///
/// If a server redirects to another URL, everything that depends on the URL, above all secrets, is
/// resolved for the new URL. No secret for one origin is sent to another.
pub trait Settings: Send {
    /// Returns the settings for `url`. Called before the first request to the URL.
    ///
    /// # Errors
    /// Fails if a setting is malformed, or with [`ErrorKind::Unsupported`] if a setting is not
    /// supported.
    fn for_url(&mut self, url: &Url) -> Result<UrlSettings, Error>;
}

/// The settings for one URL.
#[derive(Default)]
#[non_exhaustive]
pub struct UrlSettings {
    /// Options for HTTP.
    pub options: Options,
    /// The source of credentials for the URL.
    pub credentials: Option<Box<dyn CredentialProvider>>,
}

/// An implementation without settings: defaults for every URL, and no credentials.
#[derive(Clone, Copy, Debug, Default)]
pub struct Unset;

impl Settings for Unset {
    fn for_url(&mut self, _: &Url) -> Result<UrlSettings, Error> {
        Ok(UrlSettings::default())
    }
}

/// The source of credentials for one URL (`credential.helper`).
pub trait CredentialProvider: Send {
    /// Returns credentials for `url`, which may contain a user name; `None` if there are none.
    /// `challenges` are the values of the `WWW-Authenticate` headers.
    ///
    /// # Errors
    /// Fails if the credentials cannot be requested.
    fn fill(&mut self, url: &Url, challenges: &[String]) -> Result<Option<HttpSecret>, Error>;

    /// Returns whether further credentials are available if the last ones from [`fill`](Self::fill) are
    /// rejected: they are one stage of a multistage authentication, or the first of several candidates.
    fn continues(&self) -> bool {
        false
    }

    /// Reports that the last credentials from [`fill`](Self::fill) were accepted and may be stored.
    fn approve(&mut self);

    /// Reports that the last credentials from [`fill`](Self::fill) were rejected and must be erased.
    fn reject(&mut self);
}

/// The maximum number of redirects, as in Git.
const MOST_REDIRECTIONS: u32 = 20;

/// The maximum size of the rest of a response that is read so that the connection can be reused.
const LARGEST_REST: usize = 64 * 1024;

pub(super) struct HttpConnection {
    plan: RedirectPolicy,
    /// The server to which requests are sent.
    site: HttpSite,
    /// The connection that reports whether more data of the current response have arrived.
    current: dial::CurrentConnection,
    answer: Option<BodyReader<'static>>,
    /// The URL to which the first request was redirected, until it is reported.
    redirect: Option<String>,
}

pub(super) fn connect(
    url: &Url,
    service: Service,
    options: &TransportOptions,
    settings: Box<dyn Settings>,
) -> Result<HttpConnection, Error> {
    let mut plan = RedirectPolicy::new(url, service, options, settings);
    let site = HttpSite::open(url, &mut plan)?;
    let mut http = HttpConnection {
        current: site.current.clone(),
        plan,
        site,
        answer: None,
        redirect: None,
    };
    http.discover()?;
    if service == Service::UploadArchive {
        http.check_version()?;
    }
    Ok(http)
}

/// Returns the service whose advertisement is requested for `service`. There is none for archives.
fn advertised(service: Service) -> Service {
    match service {
        Service::UploadArchive => Service::UploadPack,
        service => service,
    }
}

impl HttpConnection {
    /// Sends the first request, `GET /info/refs`, and follows redirects.
    fn discover(&mut self) -> Result<(), Error> {
        let service = advertised(self.plan.service);
        // As in Git, a URL may contain a query already.
        let separator = if self.site.base().path().contains('?') {
            '&'
        } else {
            '?'
        };
        let suffix = format!("/info/refs{separator}service={}", service.program());
        let asked = self.site.base().append(&suffix)?;
        let mut url = asked.clone();
        let mut left = MOST_REDIRECTIONS;
        let response = loop {
            let response = self.site.run(&url, service, None)?;
            let Some(target) = self.site.redirection(&response, &url)? else {
                break self.site.checked(response)?;
            };
            if self.site.follow == Redirects::Never || left == 0 {
                return Err(self.too_many());
            }
            left -= 1;
            let mut next = self
                .site
                .redirected(&base_of(&target, &suffix)?, &mut self.plan)?;
            next.take_over(&mut self.site);
            self.site = next;
            url = target;
        };
        if url != asked {
            let base = url.to_string();
            let base = base.strip_suffix(&suffix).ok_or_else(|| {
                let message = format!(
                    "unable to update url base from redirection:\n  asked for: {asked}\n   \
                     redirect: {url}"
                );
                Error::new(ErrorKind::Connection, message)
            })?;
            self.redirect = Some(base.to_owned());
            self.site.move_base(&Url::parse(base.into())?)?;
        }
        let expected = format!("application/x-{}-advertisement", service.program());
        if content_type(response.headers()) != Some(expected.as_str()) {
            let message = format!(
                "'{}/' does not support git's smart HTTP protocol, and the dumb protocol is not \
                 implemented natively",
                self.site.base()
            );
            return Err(Error::new(ErrorKind::Unsupported, message));
        }
        self.current = self.site.current.clone();
        self.answer = Some(reader(response));
        Ok(())
    }

    /// Checks that the server has responded to the first request in version 2. As in Git, servers of
    /// older versions serve no archives over HTTP.
    fn check_version(&mut self) -> Result<(), Error> {
        let mut version = None;
        if let Some(answer) = self.answer.take() {
            let mut packets = PacketReader::new(answer);
            let mut parser = GreetingParser::default();
            while let (None, Some(packet)) = (version, packets.next_or_end()?) {
                version = parser.push(packet)?.map(|greeting| greeting.version);
            }
        }
        match version {
            Some(ProtocolVersion::V2) => Ok(()),
            _ => Err(Error::new(
                ErrorKind::Connection,
                "can't connect to subservice git-upload-archive",
            )),
        }
    }

    fn too_many(&self) -> Error {
        let base = self.site.base();
        let message = format!("unable to access '{base}/': too many redirections");
        Error::new(ErrorKind::Connection, message)
    }

    /// Posts `request`. The server may redirect this request if the user allows it.
    fn post(&mut self, request: &[u8]) -> Result<Response<Body>, Error> {
        let service = self.plan.service;
        let mut url = self
            .site
            .base()
            .append(&format!("/{}", service.program()))?;
        let mut detour: Option<HttpSite> = None;
        for _ in 0..=MOST_REDIRECTIONS {
            let site = detour.as_mut().unwrap_or(&mut self.site);
            let response = site.run(&url, service, Some(request)).map_err(late)?;
            self.current = site.current.clone();
            let target = match site.follow {
                Redirects::Always => site.redirection(&response, &url)?,
                Redirects::Never | Redirects::Initial => None,
            };
            let Some(target) = target else {
                return site.checked(response);
            };
            let next = site.redirected(&target, &mut self.plan);
            detour = Some(next.map_err(late)?);
            url = target;
        }
        Err(self.too_many())
    }
}

/// Converts an error that permits the use of git instead, which is only possible before the first
/// request.
fn late(error: Error) -> Error {
    error.map_kind(|kind| match kind {
        ErrorKind::Unsupported => ErrorKind::Connection,
        kind => kind,
    })
}

/// Returns `url` without `suffix` and login, which is the URL for which settings are resolved.
fn base_of(url: &Url, suffix: &str) -> Result<Url, Error> {
    let text = url.to_string();
    match text.strip_suffix(suffix) {
        Some(base) => Url::parse(base.into()),
        None => Ok(url.clone()),
    }
}

impl Read for HttpConnection {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        match &mut self.answer {
            Some(answer) => answer.read(buffer),
            None => Ok(0),
        }
    }
}

impl HttpConnection {
    /// Reads the rest of the current response, so that its connection can be reused.
    fn finish_answer(&mut self) {
        if let Some(answer) = self.answer.take() {
            // If the rest cannot be read, only a new connection is necessary.
            let _ = io::copy(&mut answer.take(LARGEST_REST as u64), &mut io::sink());
        }
    }

    fn take_answer(&mut self, response: Response<Body>) -> Result<(), Error> {
        let expected = format!("application/x-{}-result", self.plan.service.program());
        if content_type(response.headers()) != Some(expected.as_str()) {
            let message = format!(
                "invalid content-type in the response of '{}/'",
                self.site.base()
            );
            return Err(Error::new(ErrorKind::Malformed, message));
        }
        self.answer = Some(reader(response));
        Ok(())
    }

    /// Sends `request` in chunks, after a request without content that completes the authentication.
    fn post_chunks(&mut self, request: &mut dyn Read) -> Result<(), Error> {
        self.post(b"0000").map(drop)?;
        let service = self.plan.service;
        let url = self
            .site
            .base()
            .append(&format!("/{}", service.program()))?;
        let response = self.site.run_upload(&url, service, request).map_err(late)?;
        self.current = self.site.current.clone();
        let response = self.site.checked(response)?;
        self.take_answer(response)
    }
}

impl Connection for HttpConnection {
    fn send(&mut self, request: &[u8]) -> Result<(), Error> {
        self.finish_answer();
        let response = self.post(request)?;
        self.take_answer(response)
    }

    fn upload(&mut self, request: &mut dyn Read) -> Result<(), Error> {
        self.finish_answer();
        let most = self.site.post_buffer_bytes;
        let mut start = Vec::new();
        let read = (&mut *request).take(most as u64).read_to_end(&mut start);
        read.map_err(|error| {
            Error::new(ErrorKind::Local, "unable to read the data to send").because(error)
        })?;
        if start.len() < most {
            return self.send(&start);
        }
        self.post_chunks(&mut io::Cursor::new(start).chain(request))
    }

    fn is_stateless(&self) -> bool {
        true
    }

    fn take_redirect(&mut self) -> Option<String> {
        self.redirect.take()
    }

    fn readiness(&self) -> Option<Readiness> {
        Some(self.current.readiness())
    }
}

fn reader(response: Response<Body>) -> BodyReader<'static> {
    let body = response.into_body();
    body.into_with_config().limit(u64::MAX).reader()
}

fn content_type(headers: &HeaderMap) -> Option<&str> {
    let value = headers.get("content-type")?.to_str().ok()?;
    value.split(';').next().map(str::trim)
}
