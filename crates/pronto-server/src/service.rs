//! The Git services, which answer requests as streams of bytes on a blocking thread, independent of
//! the sockets.

pub(crate) mod native;
mod process;
pub(crate) mod push;
mod pushed;

use std::io::{Read, Write};
use std::sync::Arc;

use prometheus_client::registry::Registry;
use pronto::receive_pack::{PackLimit, PushBounds};
use pronto_io::budget::RequestBudget;
use pronto_io::interrupt::Interrupt;
use pronto_wire::advertisement::ProtocolVersion;

use crate::access::RequestedRefChange;
use crate::bundles::OpenedBundle;
use crate::open_repository::OpenRepository;
use crate::{Error, ErrorKind, Result};

pub use native::Native;
pub use process::GitProgram;

/// A request to a service.
#[derive(Clone, Copy, Debug)]
pub struct Request<'a> {
    /// The repository.
    pub repository: &'a OpenRepository,
    /// The value of the header `GitProgram-Protocol`, or its equivalent.
    pub protocol: Option<&'a str>,
    /// The flag that is triggered when the server ends.
    pub interrupt: &'a Interrupt,
    /// The memory budget of the request.
    pub budget: &'a Arc<RequestBudget>,
}

impl Request<'_> {
    /// Returns the protocol version that the client requested.
    pub fn version(&self) -> ProtocolVersion {
        pronto::upload_pack::requested_version(self.protocol.map(str::as_bytes))
    }
}

/// The streams of a request. Reads and writes wait for the client, and fail if the client makes no
/// progress.
pub struct RequestStreams<'a> {
    /// The bytes from the client.
    pub input: &'a mut (dyn Read + Send),
    /// The bytes for the client.
    pub output: &'a mut (dyn Write + Send),
}

/// The policy that decides about the ref updates of a push before its objects are read.
pub trait PushPolicy: Sync {
    /// Measures the repository, and returns the limit on the size of the pack. This is the first
    /// call for a push.
    ///
    /// # Errors
    /// Fails if the repository cannot be read.
    fn pack_limit(&self, _repository: &OpenRepository) -> Result<Option<PackLimit>> {
        Ok(None)
    }

    /// Returns the bounds that the repository must satisfy after the push. This call follows
    /// [`pack_limit`](Self::pack_limit).
    fn bounds(&self) -> PushBounds {
        PushBounds::default()
    }

    /// Returns the largest size in bytes of the commands of a push, or of its push certificate.
    fn command_bytes(&self) -> u64 {
        u64::MAX
    }

    /// Returns the reason for which a ref update is refused, or `None` if the update is allowed.
    fn refusal(&self, change: &RequestedRefChange<'_>) -> Option<String>;

    /// Returns the reason for which a ref accepts only fast-forwards, or `None` if other updates
    /// are allowed.
    fn forbids_force(&self, name: &[u8]) -> Option<String>;
}

/// The Git services. Methods block until the client has received its response.
///
/// If the protocol allows it, errors have been reported to the client when a method returns. The
/// caller can report an error that occurs before the first byte of output.
pub trait GitService: Send + Sync {
    /// Registers the metrics of the service.
    fn register(&self, _registry: &mut Registry) {}

    /// Sends the advertisement of `git-upload-pack`.
    ///
    /// # Errors
    /// Fails if the repository cannot be read, or the connection is lost.
    fn advertise_fetch(&self, request: &Request<'_>, output: &mut (dyn Write + Send))
    -> Result<()>;

    /// Answers a fetch request, without an advertisement.
    ///
    /// # Errors
    /// Fails if the client violates the protocol, the repository cannot be read, or the connection
    /// is lost.
    fn answer_fetch(&self, request: &Request<'_>, streams: RequestStreams<'_>) -> Result<()>;

    /// Opens the bundle of the repository with this file name. Returns `None` if there is no such
    /// bundle.
    ///
    /// # Errors
    /// Fails if the repository cannot be read.
    fn open_bundle(&self, _request: &Request<'_>, _name: &str) -> Result<Option<OpenedBundle>> {
        Ok(None)
    }

    /// Serves a fetch from the advertisement to its end, on its own connection.
    ///
    /// # Errors
    /// Fails for the same reasons as [`answer_fetch`](Self::answer_fetch).
    fn serve_fetch(&self, request: &Request<'_>, streams: RequestStreams<'_>) -> Result<()>;

    /// Sends the advertisement of `git-receive-pack`.
    ///
    /// # Errors
    /// Fails for the same reasons as [`advertise_fetch`](Self::advertise_fetch).
    fn advertise_push(&self, request: &Request<'_>, output: &mut (dyn Write + Send)) -> Result<()>;

    /// Answers a push. Ref updates that `judge` refuses do not happen, and `judge` decides before
    /// any byte of the pack is read.
    ///
    /// # Errors
    /// Fails for the same reasons as [`answer_fetch`](Self::answer_fetch). Refused updates are not
    /// errors.
    fn answer_push(
        &self,
        request: &Request<'_>,
        judge: &dyn PushPolicy,
        streams: RequestStreams<'_>,
    ) -> Result<()>;

    /// Serves a request for an archive of a tree (`git-upload-archive`).
    ///
    /// # Errors
    /// Fails for the same reasons as [`answer_fetch`](Self::answer_fetch).
    fn serve_archive(&self, request: &Request<'_>, streams: RequestStreams<'_>) -> Result<()>;

    /// Notifies the service that a push through another path has changed refs of the repository.
    fn pushed(&self, _repository: &pronto::Repository) {}

    /// Serves a push from the advertisement to its end, on its own connection.
    ///
    /// # Errors
    /// Fails for the same reasons as [`answer_push`](Self::answer_push).
    fn serve_push(
        &self,
        request: &Request<'_>,
        judge: &dyn PushPolicy,
        streams: RequestStreams<'_>,
    ) -> Result<()> {
        let RequestStreams { input, output } = streams;
        self.advertise_push(request, output)?;
        output.flush().map_err(broken)?;
        self.answer_push(request, judge, RequestStreams { input, output })
    }
}

/// Returns the error of a lost connection.
fn broken(error: std::io::Error) -> Error {
    Error::new(ErrorKind::Failed, "lost the connection to the client").because(error)
}
