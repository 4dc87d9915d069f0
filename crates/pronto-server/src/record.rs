//! The record of a request, which is logged and counted when it ends.

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::{Duration, Instant};

use crate::bridge::TransferCounters;
use crate::error::public_message;
use crate::log;
use crate::state::ServerState;
use crate::store::Tally;
use crate::{Error, ErrorKind};

/// The error of a request whose client did not receive the whole response.
pub(crate) const UNFINISHED: &str = "the connection was closed before the end of the response";

/// The record of a request, which is logged when it is dropped.
pub(crate) struct RequestRecord {
    state: Arc<ServerState>,
    request: log::Request,
    pub(crate) counters: Arc<TransferCounters>,
    /// The use of the store by the request.
    pub(crate) tally: Arc<Tally>,
    begun: Instant,
}

impl RequestRecord {
    /// Starts the record of a request that has just been received.
    pub(crate) fn new(
        state: &Arc<ServerState>,
        address: SocketAddr,
        protocol: &'static str,
    ) -> Self {
        RequestRecord {
            request: log::Request {
                id: state.next_id(),
                address,
                protocol,
                user: None,
                repository: None,
                service: "other",
                status: 0,
                received_bytes: 0,
                sent_bytes: 0,
                duration: Duration::ZERO,
                error: None,
                store: None,
            },
            state: Arc::clone(state),
            counters: Arc::default(),
            tally: Arc::default(),
            begun: Instant::now(),
        }
    }

    pub(crate) fn id(&self) -> &str {
        &self.request.id
    }

    pub(crate) fn address(&self) -> SocketAddr {
        self.request.address
    }

    pub(crate) fn user(&mut self, user: Option<&str>) {
        self.request.user = user.map(str::to_owned);
    }

    pub(crate) fn repository(&mut self, name: &str) {
        self.request.repository = Some(name.to_owned());
    }

    pub(crate) fn service(&mut self, service: &'static str) {
        self.request.service = service;
    }

    pub(crate) fn status(&mut self, status: u16) {
        self.request.status = status;
    }

    /// Records the first error.
    pub(crate) fn error(&mut self, error: String) {
        self.request.error.get_or_insert(error);
    }

    /// Records the status and the error that ended the request, unless an error was recorded
    /// before.
    pub(crate) fn ended(&mut self, status: u16, error: String) {
        if self.request.error.is_none() {
            self.status(status);
            self.error(error);
        }
    }

    /// Records the error that ended the request, and its status.
    pub(crate) fn failed(&mut self, error: &Error) {
        self.status(status(error));
        self.error(error.to_string());
    }
}

impl Drop for RequestRecord {
    fn drop(&mut self) {
        let mut request = self.request.clone();
        request.received_bytes = self.counters.received();
        request.sent_bytes = self.counters.sent();
        request.duration = self.begun.elapsed();
        request.store = self.tally.usage();
        if let Some(error) = self.tally.error() {
            request.error.get_or_insert(error);
        }
        self.state.finished(request);
    }
}

/// Returns the HTTP status for an error. The status 500 is an internal error of the server.
pub(crate) fn status(error: &Error) -> u16 {
    match error.kind() {
        ErrorKind::Unauthenticated => 401,
        ErrorKind::Denied => 403,
        ErrorKind::NotFound => 404,
        ErrorKind::InvalidName | ErrorKind::Malformed => 400,
        ErrorKind::Unsupported => 400,
        ErrorKind::Exists => 409,
        ErrorKind::TooLarge => 413,
        ErrorKind::Misdirected => 421,
        ErrorKind::TooMany => 429,
        ErrorKind::Overloaded | ErrorKind::QueueFull | ErrorKind::Unavailable => 503,
        _ => 500,
    }
}

/// Returns the error message for the client of the request `id`.
pub(crate) fn text(error: &Error, id: &str) -> String {
    format!("{} (request {id})", public_message(error))
}
