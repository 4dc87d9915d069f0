//! Requests of Git over HTTP (`gitprotocol-http(5)`).

use std::io::{Read, Write as _};
use std::net::IpAddr;
use std::sync::Arc;
use std::time::Instant;

use flate2::read::MultiGzDecoder;
use hyper::Request;
use hyper::body::Incoming;
use hyper::header::{CONTENT_ENCODING, CONTENT_TYPE, HeaderMap};
use pronto::Repository;

use super::Call;
use super::reply::Reply;
use crate::access::{RefChange, Role};
use crate::admission::{Network, Owner, Slot};
use crate::bridge::{BodyReader, BodyWriter, Bounded, Patience, Pipe, pipe};
use crate::names::RepositoryName;
use crate::repositories::Client;
use crate::route::Service;
use crate::service::{self, Judge, Streams};
use crate::state::{Setup, State};
use crate::{Error, ErrorKind, Result};

/// The most bytes of a request that are read and discarded after its answer, so that a client that is
/// still sending can read the answer.
const LINGERING_BYTES: u64 = 64 << 20;

/// The parts of a request of Git that its blocking thread needs.
struct Work {
    state: Arc<State>,
    setup: Arc<Setup>,
    user: Option<Arc<str>>,
    address: IpAddr,
    name: RepositoryName,
    service: Service,
    protocol: Option<String>,
    patience: Patience,
    /// Held until the work ends.
    _slot: Slot,
}

/// The step of the protocol.
enum Act {
    Advertise,
    Answer { body: BodyReader, is_gzipped: bool },
}

impl Call {
    /// Answers `GET /NAME/info/refs?service=...`.
    pub(super) async fn advertise(
        &mut self,
        name: RepositoryName,
        service: Service,
        request: Request<Incoming>,
    ) -> Result<Reply> {
        let work = self.prepare(name, service, request.headers()).await?;
        let content_type = format!("application/x-{}-advertisement", service.name());
        self.run(work, Act::Advertise, content_type).await
    }

    /// Answers `POST /NAME/git-...-pack`.
    pub(super) async fn serve(
        &mut self,
        name: RepositoryName,
        service: Service,
        request: Request<Incoming>,
    ) -> Result<Reply> {
        let expected = format!("application/x-{}-request", service.name());
        let headers = request.headers();
        let given = headers.get(CONTENT_TYPE).map(|value| value.as_bytes());
        if given != Some(expected.as_bytes()) {
            let message = format!("the content must be of type {expected}");
            return Err(Error::new(ErrorKind::Malformed, message));
        }
        let is_gzipped = match headers.get(CONTENT_ENCODING).map(|value| value.as_bytes()) {
            None | Some(b"identity") => false,
            Some(b"gzip" | b"x-gzip") => true,
            Some(_) => {
                let message = "the content may be encoded with gzip only";
                return Err(Error::new(ErrorKind::Malformed, message));
            }
        };
        let work = self.prepare(name, service, headers).await?;
        let counters = Arc::clone(&self.finish.counters);
        let body = BodyReader::new(request.into_body(), work.patience, counters);
        let content_type = format!("application/x-{}-result", service.name());
        let act = Act::Answer { body, is_gzipped };
        self.run(work, act, content_type).await
    }

    /// Checks access, and waits for a slot.
    async fn prepare(
        &mut self,
        name: RepositoryName,
        service: Service,
        headers: &HeaderMap,
    ) -> Result<Work> {
        self.finish.service(service.name());
        self.finish.repository(name.as_str());
        let needed = match service {
            Service::UploadPack => Role::Read,
            Service::ReceivePack => Role::Write,
        };
        self.setup.check_role(self.user.as_deref(), &name, needed)?;
        let protocol = headers.get("git-protocol").map(|value| {
            let text = value.to_str().ok().filter(|text| text.len() <= 1024);
            let message = "the header Git-Protocol is malformed";
            text.map(str::to_owned)
                .ok_or_else(|| Error::new(ErrorKind::Malformed, message))
        });
        let owner = match &self.user {
            Some(user) => Owner::User(Arc::clone(user)),
            None => Owner::Network(Network::of(self.client.address.ip())),
        };
        let limits = &self.setup.config.limits;
        let patience = Patience {
            stall: limits.stall,
            end: Instant::now() + limits.request,
        };
        Ok(Work {
            state: Arc::clone(&self.state),
            setup: Arc::clone(&self.setup),
            user: self.user.clone(),
            address: self.client.address.ip(),
            name,
            service,
            protocol: protocol.transpose()?,
            patience,
            _slot: self.setup.admission.slot(&owner).await?,
        })
    }

    /// Runs the work on a blocking thread. Returns when the first byte of the answer is there.
    async fn run(&mut self, work: Work, act: Act, content_type: String) -> Result<Reply> {
        let Pipe {
            writer,
            pieces,
            first,
        } = pipe(work.patience);
        let task = tokio::task::spawn_blocking(move || work.run(act, writer));
        // Without a first byte the task has ended.
        if first.await.is_ok() {
            return Ok(Reply::pieces(pieces, content_type));
        }
        match task.await {
            Ok(Ok(())) => Ok(Reply::text(200, "").with_type(&content_type)),
            Ok(Err(error)) => Err(error),
            Err(_) => Err(Error::new(ErrorKind::Failed, "the request has crashed")),
        }
    }
}

/// Counts a request that has a slot.
struct UnderWay<'a>(&'a State);

impl Drop for UnderWay<'_> {
    fn drop(&mut self) {
        self.0.metrics.under_way.dec();
    }
}

impl Work {
    /// Does the work. An error before the first byte is returned, a later one breaks the answer off
    /// unless the client has been told.
    fn run(self, act: Act, mut writer: BodyWriter) -> Result<()> {
        self.state.metrics.under_way.inc();
        let _under_way = UnderWay(&self.state);
        let done = self.act(act, &mut writer);
        let flushed = writer.flush().map_err(|error| {
            Error::new(ErrorKind::Failed, "the connection to the client is lost").because(error)
        });
        match done.and(flushed) {
            Ok(()) => writer.finish(None),
            Err(error) if writer.is_untouched() => return Err(error),
            // The protocol has told the client.
            Err(error) if *error.kind() == ErrorKind::Malformed => {
                writer.finish(Some(error.to_string()));
            }
            Err(error) => writer.fail(&error.to_string()),
        }
        Ok(())
    }

    fn act(&self, act: Act, writer: &mut BodyWriter) -> Result<()> {
        let repository = self.open()?;
        let request = service::Request {
            repository: &repository,
            protocol: self.protocol.as_deref(),
            interrupt: &self.state.stop,
        };
        match act {
            Act::Advertise => self.advertise(&request, writer),
            Act::Answer { body, is_gzipped } => {
                let limits = &self.setup.config.limits;
                let most_bytes = match self.service {
                    Service::UploadPack => limits.fetch_bytes,
                    Service::ReceivePack => limits.push_bytes,
                };
                match is_gzipped {
                    // The bound holds for what is sent and for what it inflates to.
                    true => {
                        let inflated = MultiGzDecoder::new(Bounded::new(body, most_bytes));
                        self.answer(&request, Bounded::new(inflated, most_bytes), writer)
                    }
                    false => self.answer(&request, Bounded::new(body, most_bytes), writer),
                }
            }
        }
    }

    /// Opens the repository, or creates it for a push where that is allowed.
    fn open(&self) -> Result<Repository> {
        let found = self.find();
        let config = &self.setup.config;
        match found {
            Err(error)
                if *error.kind() == ErrorKind::NotFound
                    && self.service == Service::ReceivePack
                    && config.create_on_push =>
            {
                let user = self.user.as_deref();
                self.setup.check_role(user, &self.name, Role::Admin)?;
                match self.setup.repositories.create(&self.name) {
                    // Another push was faster.
                    Err(error) if *error.kind() != ErrorKind::Exists => Err(error),
                    _ => self.find(),
                }
            }
            found => found,
        }
    }

    fn find(&self) -> Result<Repository> {
        let repositories = &self.setup.repositories;
        match self.service {
            Service::UploadPack => repositories.find(&self.name),
            Service::ReceivePack => {
                let client = Client {
                    user: self.user.as_deref(),
                    address: self.address,
                };
                repositories.find_for_push(&self.name, &client)
            }
        }
    }

    fn advertise(&self, request: &service::Request<'_>, writer: &mut BodyWriter) -> Result<()> {
        use pronto_wire::advertisement::Version;
        let is_v2 = self.service == Service::UploadPack && request.version() == Version::V2;
        let mut out = FirstLine {
            line: match is_v2 {
                true => None,
                false => Some(first_line(self.service)?),
            },
            inner: writer,
        };
        match self.service {
            Service::UploadPack => self.state.service.advertise_fetch(request, &mut out),
            Service::ReceivePack => self.state.service.advertise_push(request, &mut out),
        }
    }

    fn answer(
        &self,
        request: &service::Request<'_>,
        mut input: impl Read + Send,
        writer: &mut BodyWriter,
    ) -> Result<()> {
        let streams = Streams {
            input: &mut input,
            output: writer,
        };
        let done = match self.service {
            Service::UploadPack => self.state.service.answer_fetch(request, streams),
            Service::ReceivePack => self.state.service.answer_push(request, self, streams),
        };
        // The answer goes out before the rest of the request is discarded.
        let _ = writer.flush();
        let _ = std::io::copy(&mut input.take(LINGERING_BYTES), &mut std::io::sink());
        done
    }
}

impl Judge for Work {
    fn refusal(&self, change: &RefChange<'_>) -> Option<String> {
        let access = &self.setup.config.access;
        let refusal = access.refusal(self.user.as_deref(), self.name.as_str(), change);
        refusal.map(str::to_owned)
    }

    fn forbids_force(&self, name: &[u8]) -> bool {
        (self.setup.config.access).forbids_force(self.name.as_str(), name)
    }
}

/// The packets before an advertisement of versions 0 and 1.
fn first_line(service: Service) -> Result<Vec<u8>> {
    let mut line = Vec::new();
    let text = format!("# service={}\n", service.name());
    pronto_wire::pktline::write(&mut line, text.as_bytes())
        .map_err(|error| error.map_kind(|_| ErrorKind::Failed))?;
    pronto_wire::pktline::write_flush(&mut line);
    Ok(line)
}

/// Writes a line before the first byte of something else, so that an error comes first.
struct FirstLine<'a> {
    line: Option<Vec<u8>>,
    inner: &'a mut BodyWriter,
}

impl std::io::Write for FirstLine<'_> {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        if let Some(line) = self.line.take() {
            self.inner.write_all(&line)?;
        }
        self.inner.write(bytes)
    }

    fn flush(&mut self) -> std::io::Result<()> {
        self.inner.flush()
    }
}
