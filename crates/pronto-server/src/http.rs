//! Requests over HTTP: authentication, routing and the response.

pub(crate) mod api;
mod bundle;
mod git;
mod host;
mod reply;

use std::sync::Arc;

use hyper::body::{Body as _, Incoming};
use hyper::header::{AUTHORIZATION, HOST, HeaderMap};
use hyper::{Method, Request, Response, Version};
use pronto_io::budget::RequestBudget;

use crate::authorization;
use crate::config::MetricsReaders;
use crate::error::without_room;
use crate::permission::{IdentityProof, Proven};
use crate::record::RequestRecord;
use crate::route::{self, Route};
use crate::state::{RequestClient, ServerState, Setup};
use crate::store::Health;
use crate::token::TokenHash;
use crate::{Error, ErrorKind, Result};
use reply::{HttpResponse, failure};

pub(crate) use reply::ReplyBody;

/// The flow-control window of HTTP/2 for one request.
pub(crate) const STREAM_WINDOW_BYTES: u32 = 256 * 1024;

/// A request that the server is processing.
struct HttpExchange {
    state: Arc<ServerState>,
    setup: Arc<Setup>,
    client: RequestClient,
    user: Option<Arc<str>>,
    /// The proof of the identity of the user.
    proven: Proven,
    record: RequestRecord,
}

/// Answers a request. All errors become responses.
pub(crate) async fn answer(
    state: Arc<ServerState>,
    client: RequestClient,
    request: Request<Incoming>,
) -> Response<ReplyBody> {
    let record = RequestRecord::new(&state, client.address, "http");
    let setup = state.setup();
    let mut call = HttpExchange {
        state,
        setup,
        client,
        user: None,
        proven: Proven::Name,
        record,
    };
    let reply = match call.dispatch(request).await {
        Ok(reply) => reply,
        Err(error) => failure(&error, &mut call.record),
    };
    reply.into_response(call.record)
}

/// Refuses requests that a proxy could interpret differently: requests without a host (RFC 9112,
/// 3.2), with several hosts, or with two tokens.
fn check_single(request: &Request<Incoming>) -> Result<()> {
    let count = |name| request.headers().get_all(name).iter().count();
    let malformed = |message| Err(Error::new(ErrorKind::Malformed, message));
    let is_bare = request.version() == Version::HTTP_11 && count(HOST) == 0;
    if is_bare || count(HOST) > 1 {
        return malformed("the request must have exactly one Host header");
    }
    match count(AUTHORIZATION) > 1 {
        true => malformed("the request has more than one Authorization header"),
        false => Ok(()),
    }
}

impl HttpExchange {
    async fn dispatch(&mut self, request: Request<Incoming>) -> Result<HttpResponse> {
        check_single(&request)?;
        if self.client.is_local {
            host::check(&request, &self.setup.config)?;
        }
        let uri = request.uri();
        let route = route::parse(uri.path(), uri.query())?;
        if self.client.only_metrics && !matches!(route, Route::Health | Route::Metrics) {
            let message = "this address serves only /metrics and /healthz";
            return Err(Error::new(ErrorKind::NotFound, message));
        }
        let needed = match &route {
            Route::Health | Route::Metrics | Route::Advertise(..) | Route::Bundle(..) => {
                Method::GET
            }
            Route::Call(..) => Method::POST,
            // The API checks the methods itself.
            Route::Api(_) => request.method().clone(),
        };
        let is_head = request.method() == Method::HEAD && needed == Method::GET;
        if *request.method() != needed && !is_head {
            return Ok(
                HttpResponse::text(405, "this method is not allowed for this URL\n")
                    .with_header("allow", needed.as_str()),
            );
        }
        if route == Route::Health {
            self.record.service("health");
            return self.health().await;
        }
        self.authenticate(request.headers())?;
        let _held = self.charge_body(&request)?;
        match route {
            Route::Health => self.health().await,
            Route::Metrics => self.metrics(),
            Route::Api(path) => {
                self.record.service("api");
                self.api(&path, request).await
            }
            Route::Advertise(name, service) => self.advertise(name, service, request).await,
            Route::Bundle(name, file) => self.bundle(name, file, request).await,
            Route::Call(name, service) => self.serve(name, service, request).await,
        }
    }

    /// Charges the bytes of a body that are held before a service reads them. Over HTTP/2, clients
    /// may send a window of these bytes while their request waits for a slot.
    fn charge_body(&self, request: &Request<Incoming>) -> Result<RequestBudget> {
        let owner = self
            .setup
            .owner(self.user.as_ref(), self.client.address.ip());
        let budget = self.setup.admission.budget(&owner);
        let body = request.body();
        if request.version() == Version::HTTP_2 && !body.is_end_stream() {
            let window = u64::from(STREAM_WINDOW_BYTES);
            let bytes = body.size_hint().upper().unwrap_or(window).min(window);
            budget.charge(bytes).map_err(without_room)?;
        }
        Ok(budget)
    }

    /// Authenticates the user by the token, or else by the client certificate. A certificate that
    /// is configured for a user who does not exist is refused. A certificate that is configured for
    /// no user is ignored.
    fn authenticate(&mut self, headers: &HeaderMap) -> Result<()> {
        self.user = match (headers.get(AUTHORIZATION), &self.client.certificate) {
            (Some(value), _) => {
                let (user, proven) = self.user_of(value.as_bytes())?;
                self.proven = proven;
                Some(user)
            }
            (None, Some(names)) if self.setup.config.certificate_user(names).is_some() => {
                let found = self.setup.user_of(IdentityProof::Certificate(names));
                Some(found.ok_or_else(|| {
                    let message = "no user has the name in this client certificate";
                    Error::new(ErrorKind::Unauthenticated, message)
                })?)
            }
            (None, _) => None,
        };
        self.record.user(self.user.as_deref());
        if let Some(user) = &self.user {
            let owner = self.setup.owner(Some(user), self.client.address.ip());
            self.client.connection.belongs_to(&owner);
        }
        Ok(())
    }

    fn user_of(&self, header: &[u8]) -> Result<(Arc<str>, Proven)> {
        let (admission, address) = (&self.setup.admission, self.client.address.ip());
        admission.may_authenticate(address)?;
        let wrong = || {
            admission.wrong_token(address);
            Error::new(ErrorKind::Unauthenticated, "invalid token")
        };
        let credentials = authorization::parse(header).ok_or_else(wrong)?;
        let user = self.setup.user_of(IdentityProof::Token(&credentials.token));
        let user = user.ok_or_else(wrong)?;
        // If the client sent a name, it must be the name of the user, so that no client acts as
        // another user by mistake.
        match credentials.user.is_none_or(|name| *name == *user) {
            true => Ok((user, Proven::Token(TokenHash::of(&credentials.token)))),
            false => Err(wrong()),
        }
    }

    /// Reports that the server runs, and, with a store, whether the store responds.
    async fn health(&self) -> Result<HttpResponse> {
        let Some(store) = self.setup.repositories.store().cloned() else {
            return Ok(HttpResponse::text(200, "ok\n"));
        };
        let asked = tokio::task::spawn_blocking(move || store.health());
        let crashed = |_| {
            Error::new(
                ErrorKind::Failed,
                "internal error: the health check of the store panicked",
            )
        };
        match asked.await.map_err(crashed)? {
            Health::Reachable => Ok(HttpResponse::text(200, "ok\n")),
            Health::Unreachable(since) => {
                let seconds = since.as_secs();
                let message = format!("the store has not answered for {seconds} seconds");
                Err(Error::new(ErrorKind::Unavailable, message))
            }
        }
    }

    fn metrics(&mut self) -> Result<HttpResponse> {
        self.record.service("metrics");
        let is_admin = || {
            let user = self.user.as_deref();
            user.is_some_and(|user| self.setup.config.access.is_server_admin(user))
        };
        let may_read = match self.setup.config.metrics {
            MetricsReaders::Everyone => true,
            MetricsReaders::Loopback => {
                self.client.address.ip().to_canonical().is_loopback() || is_admin()
            }
            MetricsReaders::Admin => is_admin(),
        };
        if !may_read && !self.client.only_metrics {
            let message = "this client may not read the metrics";
            return Err(Error::new(ErrorKind::Denied, message));
        }
        let Setup {
            admission,
            certificate_end,
            ..
        } = &*self.setup;
        let text = self.state.metrics.text(admission, *certificate_end);
        let reply = HttpResponse::text(200, text);
        Ok(reply.with_type("application/openmetrics-text; version=1.0.0; charset=utf-8"))
    }
}
