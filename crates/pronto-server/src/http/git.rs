//! Requests of Git over HTTP (`gitprotocol-http(5)`).

use std::io::{Read, Write as _};
use std::sync::{Arc, OnceLock};

use flate2::read::MultiGzDecoder;
use hyper::Request;
use hyper::body::Incoming;
use hyper::header::{CONTENT_ENCODING, CONTENT_TYPE, HeaderMap};

use super::HttpExchange;
use super::reply::HttpResponse;
use crate::admission::RequestSlot;
use crate::bridge::{Bounded, ClientPatience, PieceReader, PieceWriter, Pipe, pipe};
use crate::names::RepositoryName;
use crate::route::{RequestTarget, RequestedService};
use crate::service::{self, RequestStreams};
use crate::state::ServerState;
use crate::watched::{self, RevocableInput};
use crate::work::{AdmittedRequest, LONGEST_PROTOCOL, Requester, UnderWay};
use crate::{Error, ErrorKind, Result};

/// The largest number of bytes of a request that are read and discarded after its response, so that
/// a client that still sends can read the response.
const LINGERING_BYTES: u64 = 64 << 20;

/// A Git request on its blocking thread.
pub(super) struct GitJob {
    pub(super) state: Arc<ServerState>,
    pub(super) work: AdmittedRequest,
    pub(super) patience: ClientPatience,
    /// The slot, which is held until the work ends.
    pub(super) slot: RequestSlot,
}

/// The step of the protocol.
enum ProtocolStep {
    Advertise,
    Answer {
        body: PieceReader<Incoming>,
        is_gzipped: bool,
    },
}

impl HttpExchange {
    /// Answers `GET /NAME/info/refs?service=...`.
    pub(super) async fn advertise(
        &mut self,
        name: RepositoryName,
        service: RequestedService,
        request: Request<Incoming>,
    ) -> Result<HttpResponse> {
        let job = self.prepare(name, service, request.headers()).await?;
        let content_type = format!("application/x-{}-advertisement", service.name());
        self.run(job, ProtocolStep::Advertise, content_type).await
    }

    /// Answers `POST /NAME/git-...-pack`.
    pub(super) async fn serve(
        &mut self,
        name: RepositoryName,
        service: RequestedService,
        request: Request<Incoming>,
    ) -> Result<HttpResponse> {
        let expected = format!("application/x-{}-request", service.name());
        let headers = request.headers();
        let given = headers.get(CONTENT_TYPE).map(|value| value.as_bytes());
        if given != Some(expected.as_bytes()) {
            let message = format!("the content type of the request must be {expected}");
            return Err(Error::new(ErrorKind::Malformed, message));
        }
        let is_gzipped = match headers.get(CONTENT_ENCODING).map(|value| value.as_bytes()) {
            None | Some(b"identity") => false,
            Some(b"gzip" | b"x-gzip") => true,
            Some(_) => {
                let message = "unsupported Content-Encoding: only gzip is supported";
                return Err(Error::new(ErrorKind::Malformed, message));
            }
        };
        let job = self.prepare(name, service, headers).await?;
        let counters = Arc::clone(&self.record.counters);
        let body = PieceReader::new(request.into_body(), job.patience.clone(), counters);
        let content_type = format!("application/x-{}-result", service.name());
        let act = ProtocolStep::Answer { body, is_gzipped };
        self.run(job, act, content_type).await
    }

    /// Checks access, and waits for a slot.
    pub(super) async fn prepare(
        &mut self,
        name: RepositoryName,
        service: RequestedService,
        headers: &HeaderMap,
    ) -> Result<GitJob> {
        self.record.service(service.name());
        self.record.repository(name.as_str());
        let protocol = headers.get("git-protocol").map(|value| {
            let text = value.to_str().ok();
            let text = text.filter(|text| text.len() <= LONGEST_PROTOCOL);
            let message = "the header Git-Protocol is malformed";
            text.map(str::to_owned)
                .ok_or_else(|| Error::new(ErrorKind::Malformed, message))
        });
        let mut work = AdmittedRequest {
            setup: Arc::clone(&self.setup),
            requester: Requester {
                user: self.user.clone(),
                proven: self.proven,
                address: self.client.address.ip(),
                protocol: "http",
                connection: Some(Arc::clone(&self.client.connection)),
            },
            target: RequestTarget { service, name },
            protocol: None,
            tally: Arc::clone(&self.record.tally),
            allowance: OnceLock::new(),
        };
        work.check()?;
        work.protocol = protocol.transpose()?;
        let slot = work.slot().await?;
        let patience = work.patience(&slot);
        Ok(GitJob {
            state: Arc::clone(&self.state),
            work,
            patience,
            slot,
        })
    }

    /// Runs the work on a blocking thread. Returns when the first byte of the response is
    /// available.
    async fn run(
        &mut self,
        job: GitJob,
        act: ProtocolStep,
        content_type: String,
    ) -> Result<HttpResponse> {
        let Pipe {
            writer,
            pieces,
            first,
        } = pipe(job.patience.clone());
        let task = tokio::task::spawn_blocking(move || job.run(act, writer));
        // If there is no first byte, the task has ended.
        if first.await.is_ok() {
            return Ok(HttpResponse::pieces(pieces, content_type));
        }
        match task.await {
            Ok(Ok(())) => Ok(HttpResponse::text(200, "").with_type(&content_type)),
            Ok(Err(error)) => Err(error),
            Err(_) => Err(Error::new(
                ErrorKind::Failed,
                "internal error: the request panicked",
            )),
        }
    }
}

impl GitJob {
    /// Does the work. An error before the first byte is returned. A later error aborts the
    /// response, unless the protocol has reported the error to the client.
    fn run(self, act: ProtocolStep, mut writer: PieceWriter) -> Result<()> {
        let _under_way = UnderWay::new(&self.state);
        self.slot.peer().begin_work();
        let done = self.act(act, &mut writer);
        let flushed = writer.flush().map_err(|error| {
            Error::new(ErrorKind::Failed, "lost the connection to the client").because(error)
        });
        match done.and(flushed) {
            Ok(()) => writer.finish(None),
            Err(error) if writer.is_untouched() => return Err(error),
            // The protocol has reported the error to the client.
            Err(error) if error.kind() == ErrorKind::Malformed => {
                writer.finish(Some(error.to_string()));
            }
            Err(error) => writer.fail(&error.to_string()),
        }
        Ok(())
    }

    fn act(&self, act: ProtocolStep, writer: &mut PieceWriter) -> Result<()> {
        let repository = self.work.open()?;
        let interrupt = self.work.interrupt(&self.state.stop);
        let budget = self.work.budget();
        let request = service::Request {
            repository: &repository,
            protocol: self.work.protocol.as_deref(),
            interrupt: &interrupt,
            budget: &budget,
        };
        match act {
            ProtocolStep::Advertise => self.advertise(&request, writer),
            ProtocolStep::Answer { body, is_gzipped } => {
                let most_bytes = self.work.most_bytes();
                let is_revoked = || self.work.is_revoked();
                let mut body = Bounded::new(RevocableInput::new(body, is_revoked), most_bytes);
                // The bound applies to the bytes as sent, and to the inflated bytes.
                let done = match is_gzipped {
                    true => {
                        let inflated = MultiGzDecoder::new(&mut body);
                        let mut inflated = Bounded::new(inflated, most_bytes);
                        let done = self.answer(&request, &mut inflated, writer);
                        inflated.judged(done)
                    }
                    false => self.answer(&request, &mut body, writer),
                };
                let done = watched::judged(body.judged(done), is_revoked);
                budget.release();
                // The response is sent before the rest of the request, as sent, is discarded.
                let _ = writer.flush();
                let _ = std::io::copy(&mut body.take(LINGERING_BYTES), &mut std::io::sink());
                done
            }
        }
    }

    fn advertise(&self, request: &service::Request<'_>, writer: &mut PieceWriter) -> Result<()> {
        use pronto_wire::advertisement::ProtocolVersion;
        let service = self.work.target.service;
        let is_v2 =
            service == RequestedService::UploadPack && request.version() == ProtocolVersion::V2;
        let mut out = FirstLine {
            line: match is_v2 {
                true => None,
                false => Some(first_line(service)?),
            },
            inner: writer,
        };
        match service {
            RequestedService::UploadPack => self.state.service.advertise_fetch(request, &mut out),
            RequestedService::ReceivePack => self.state.service.advertise_push(request, &mut out),
            RequestedService::UploadArchive => Err(Error::new(
                ErrorKind::Unsupported,
                "archives are not advertised",
            )),
        }
    }

    fn answer(
        &self,
        request: &service::Request<'_>,
        mut input: impl Read + Send,
        writer: &mut PieceWriter,
    ) -> Result<()> {
        let streams = RequestStreams {
            input: &mut input,
            output: writer,
        };
        match self.work.target.service {
            RequestedService::UploadPack => self.state.service.answer_fetch(request, streams),
            RequestedService::UploadArchive => self.state.service.serve_archive(request, streams),
            RequestedService::ReceivePack => {
                self.state.service.answer_push(request, &self.work, streams)
            }
        }
    }
}

/// Returns the packets that precede an advertisement of protocol versions 0 and 1.
fn first_line(service: RequestedService) -> Result<Vec<u8>> {
    let mut line = Vec::new();
    let text = format!("# service={}\n", service.name());
    pronto_wire::pktline::write(&mut line, text.as_bytes())
        .map_err(|error| error.map_kind(|_| ErrorKind::Failed))?;
    pronto_wire::pktline::write_flush(&mut line);
    Ok(line)
}

/// A writer that writes a line before the first byte of the advertisement, so that an error before
/// that byte can be reported as an HTTP status.
struct FirstLine<'a> {
    line: Option<Vec<u8>>,
    inner: &'a mut PieceWriter,
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
