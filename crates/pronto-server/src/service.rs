//! The services of Git behind the sockets: requests as streams of bytes, answered on a blocking thread.

pub(crate) mod native;
mod process;
pub(crate) mod push;
mod pushed;

use std::io::{Read, Write};
use std::sync::Arc;

use prometheus_client::registry::Registry;
use pronto::receive_pack::{Bounds, PackLimit};
use pronto_io::budget::Budget;
use pronto_io::interrupt::Interrupt;
use pronto_wire::advertisement::Version;

use crate::access::RefChange;
use crate::bundles::OpenedBundle;
use crate::opened::Opened;
use crate::{Error, ErrorKind, Result};

pub use native::Native;
pub use process::Git;

/// A request to a service.
#[derive(Clone, Copy, Debug)]
pub struct Request<'a> {
    /// The repository.
    pub repository: &'a Opened,
    /// The value of `Git-Protocol`, or its counterpart.
    pub protocol: Option<&'a str>,
    /// Set when the server ends.
    pub interrupt: &'a Interrupt,
    /// The memory that the request may hold.
    pub budget: &'a Arc<Budget>,
}

impl Request<'_> {
    /// Returns the version that the client asked for.
    pub fn version(&self) -> Version {
        pronto::upload_pack::requested_version(self.protocol.map(str::as_bytes))
    }
}

/// The streams of a request. Reading and writing waits for the client, and fails if it makes no
/// progress.
pub struct Streams<'a> {
    /// The bytes of the client.
    pub input: &'a mut (dyn Read + Send),
    /// The bytes for the client.
    pub output: &'a mut (dyn Write + Send),
}

/// Judges the changes of a push before its objects are read.
pub trait Judge: Sync {
    /// Looks at what the repository has, and returns the size that the pack may have. It is called once, first.
    ///
    /// # Errors
    /// The repository cannot be read.
    fn pack_limit(&self, _repository: &Opened) -> Result<Option<PackLimit>> {
        Ok(None)
    }

    /// Returns the most that the repository may hold after the push. It is called after
    /// [`pack_limit`](Self::pack_limit).
    fn bounds(&self) -> Bounds {
        Bounds::default()
    }

    /// Returns the most bytes of the commands of a push, or of its certificate.
    fn command_bytes(&self) -> u64 {
        u64::MAX
    }

    /// Returns why the change is refused; `None` if it is allowed.
    fn refusal(&self, change: &RefChange<'_>) -> Option<String>;

    /// Returns why the ref may only be fast-forwarded; `None` if it may be forced.
    fn forbids_force(&self, name: &[u8]) -> Option<String>;
}

/// The services of Git. Methods block until the client has its answer.
///
/// Errors have been reported to the client if the protocol allows that. An error before the first byte
/// of output can be reported by the caller.
pub trait GitService: Send + Sync {
    /// Adds the counters of the service to those of a server.
    fn register(&self, _registry: &mut Registry) {}

    /// Sends the advertisement of `git-upload-pack`.
    ///
    /// # Errors
    /// The repository cannot be read, or the connection breaks.
    fn advertise_fetch(&self, request: &Request<'_>, output: &mut (dyn Write + Send))
    -> Result<()>;

    /// Answers one request of a fetch, without an advertisement.
    ///
    /// # Errors
    /// The client violates the protocol, the repository cannot be read, or the connection breaks.
    fn answer_fetch(&self, request: &Request<'_>, streams: Streams<'_>) -> Result<()>;

    /// Opens the bundle of the repository that has this file name; `None` if there is none.
    ///
    /// # Errors
    /// The repository cannot be read.
    fn open_bundle(&self, _request: &Request<'_>, _name: &str) -> Result<Option<OpenedBundle>> {
        Ok(None)
    }

    /// Serves a fetch from the advertisement to its end, on a connection of its own.
    ///
    /// # Errors
    /// As for [`answer_fetch`](Self::answer_fetch).
    fn serve_fetch(&self, request: &Request<'_>, streams: Streams<'_>) -> Result<()>;

    /// Sends the advertisement of `git-receive-pack`.
    ///
    /// # Errors
    /// As for [`advertise_fetch`](Self::advertise_fetch).
    fn advertise_push(&self, request: &Request<'_>, output: &mut (dyn Write + Send)) -> Result<()>;

    /// Answers a push. The changes that `judge` refuses do not happen, and no byte of the pack is read
    /// before it is asked.
    ///
    /// # Errors
    /// As for [`answer_fetch`](Self::answer_fetch). Refused changes are no error.
    fn answer_push(
        &self,
        request: &Request<'_>,
        judge: &dyn Judge,
        streams: Streams<'_>,
    ) -> Result<()>;

    /// Serves a request for an archive of a tree (`git-upload-archive`).
    ///
    /// # Errors
    /// As for [`answer_fetch`](Self::answer_fetch).
    fn serve_archive(&self, request: &Request<'_>, streams: Streams<'_>) -> Result<()>;

    /// Refs of the repository were changed by a push that the service has not served.
    fn pushed(&self, _repository: &pronto::Repository) {}

    /// Serves a push from the advertisement to its end, on a connection of its own.
    ///
    /// # Errors
    /// As for [`answer_push`](Self::answer_push).
    fn serve_push(
        &self,
        request: &Request<'_>,
        judge: &dyn Judge,
        streams: Streams<'_>,
    ) -> Result<()> {
        let Streams { input, output } = streams;
        self.advertise_push(request, output)?;
        output.flush().map_err(broken)?;
        self.answer_push(request, judge, Streams { input, output })
    }
}

/// An error of the streams of a client.
fn broken(error: std::io::Error) -> Error {
    Error::new(ErrorKind::Failed, "the connection to the client is lost").because(error)
}
