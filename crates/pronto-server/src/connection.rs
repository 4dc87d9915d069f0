//! A connection of HTTP or HTTPS, from its admission to its end.

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use hyper::body::Incoming;
use hyper::service::service_fn;
use hyper::{Request, Response};
use hyper_util::rt::{TokioExecutor, TokioIo, TokioTimer};
use hyper_util::server::conn::auto::Builder;
use tokio::io::{AsyncRead, AsyncWrite, AsyncWriteExt as _};
use tokio::net::TcpStream;
use tokio::sync::watch;

use crate::activity::{
    Active, Activity, Awake, ConnectionHealth, ExpectedRead, NOT_ASKED, NOT_READ, WaitLimits,
};
use crate::admission::{AdmittedConnection, ConnectionRefusal};
use crate::bridge::patience_per_piece;
use crate::certificate::CertificateNames;
use crate::http::{ReplyBody, STREAM_WINDOW_BYTES, answer};
use crate::state::{RequestClient, ServerState};

/// The time in which a client can notice that its idle connection ends.
const GRACE: Duration = Duration::from_secs(1);

/// The timeout for the first request head if there are many connections.
const HEAD_IN_CROWD: Duration = Duration::from_secs(2);

/// The size in bytes of the write buffer of a connection.
const BUFFER_BYTES: usize = 64 * 1024;

/// The largest number of headers of a request.
pub(crate) const MOST_HEADERS: usize = 64;

/// The largest number of concurrent requests on a connection of HTTP/2.
pub(crate) const MOST_STREAMS: u32 = 32;

/// The flow-control window of HTTP/2 for all requests of a connection.
const CONNECTION_WINDOW_BYTES: u32 = 1024 * 1024;

/// The phase of the server, which decides about the requests of connections.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ServerPhase {
    /// The server accepts requests.
    Serving,
    /// Requests in flight finish, and no other requests are accepted.
    Draining,
    /// All connections end.
    Cut,
}

/// A connection that was admitted.
#[derive(Clone)]
pub(crate) struct Accepted {
    pub(crate) address: SocketAddr,
    /// Whether the socket serves only metrics and health.
    pub(crate) only_metrics: bool,
    pub(crate) connection: Arc<AdmittedConnection>,
}

/// Serves a connection until it ends, or until its requests are finished when the server drains.
pub(crate) async fn serve(
    state: Arc<ServerState>,
    socket: TcpStream,
    client: Accepted,
    drain: watch::Receiver<ServerPhase>,
) {
    let Accepted {
        address,
        only_metrics,
        connection,
    } = client;
    let setup = state.setup();
    // Small responses must not be delayed (`TCP_NODELAY`).
    let _ = socket.set_nodelay(true);
    let limits = &setup.config.limits;
    // Until its first byte arrives, a connection costs a socket and a task.
    let first = tokio::time::timeout(limits.idle, socket.readable());
    if !matches!(until(first, &drain).await, Some(Ok(Ok(())))) {
        return;
    }
    let (head, idle, head_bytes) = (limits.head, limits.idle, limits.head_bytes);
    let tls = setup.tls.clone().filter(|_| !only_metrics);
    let times = WaitLimits {
        head,
        head_in_crowd: HEAD_IN_CROWD,
        idle,
        stall: patience_per_piece(limits.stall),
    };
    match tls {
        None => {
            let to = socket.local_addr().ok();
            let client = RequestClient {
                address,
                certificate: None,
                is_local: to.is_some_and(|to| to.ip().to_canonical().is_loopback()),
                only_metrics,
                connection,
            };
            drop(setup);
            let exchange = ConnectionExchange::new(state, client, times);
            // The future is boxed, so that a connection that has sent nothing does not use memory
            // for it.
            Box::pin(exchange.run(socket, head_bytes, drain)).await;
        }
        Some(acceptor) => {
            let handshake = Box::pin(tokio::time::timeout(head, acceptor.accept(socket)));
            let Some(Ok(Ok(stream))) = until(handshake, &drain).await else {
                state.refused(address, "handshake");
                return;
            };
            let certificates = stream.get_ref().1.peer_certificates();
            let certificate = certificates.and_then(<[_]>::first);
            let client = RequestClient {
                address,
                certificate: certificate
                    .map(|certificate| Arc::new(CertificateNames::of(certificate))),
                is_local: false,
                only_metrics,
                connection,
            };
            drop(setup);
            let exchange = ConnectionExchange::new(state, client, times);
            Box::pin(exchange.run(stream, head_bytes, drain)).await;
        }
    }
}

/// Waits for the future. Returns early if the server drains.
pub(crate) async fn until<T>(
    future: impl Future<Output = T>,
    drain: &watch::Receiver<ServerPhase>,
) -> Option<T> {
    let mut drain = drain.clone();
    tokio::select! {
        result = future => Some(result),
        _ = drain.wait_for(|phase| *phase != ServerPhase::Serving) => None,
    }
}

/// Refuses a connection for which the server has no room. A client of TLS would not understand the
/// response.
pub(crate) async fn refuse(
    state: Arc<ServerState>,
    socket: TcpStream,
    address: SocketAddr,
    full: ConnectionRefusal,
) {
    let (reason, retry) = (full.reason(), 5);
    let status = match full {
        ConnectionRefusal::Server => "503 Service Unavailable",
        ConnectionRefusal::Address => "429 Too Many Requests",
    };
    state.refused(address, reason);
    if state.setup().tls.is_some() {
        return;
    }
    let text = format!(
        "HTTP/1.1 {status}\r\ncontent-type: text/plain\r\nretry-after: {retry}\r\n\
         content-length: {}\r\nconnection: close\r\n\r\n{reason}\n",
        reason.len() + 1
    );
    end_with(socket, text.as_bytes()).await;
}

/// Ends a connection with a few bytes. Returns whether the client may have received them.
pub(crate) async fn end_with(mut socket: TcpStream, bytes: &[u8]) -> bool {
    // The buffer of the socket has room for these bytes. A client that resets the connection needs
    // no response.
    let written = tokio::time::timeout(Duration::from_secs(1), async {
        socket.write_all(bytes).await?;
        socket.shutdown().await
    });
    matches!(written.await, Ok(Ok(())))
}

/// The requests of a connection.
struct ConnectionExchange {
    state: Arc<ServerState>,
    client: RequestClient,
    times: WaitLimits,
    activity: Arc<Activity>,
}

/// A response body that keeps its connection active while the client takes the body.
struct ActiveBody {
    body: ReplyBody,
    taking: ExpectedRead,
    _active: Active,
}

impl hyper::body::Body for ActiveBody {
    type Data = hyper::body::Bytes;
    type Error = std::io::Error;

    fn poll_frame(
        mut self: std::pin::Pin<&mut Self>,
        context: &mut std::task::Context<'_>,
    ) -> std::task::Poll<Option<Result<hyper::body::Frame<Self::Data>, Self::Error>>> {
        let frame = std::pin::Pin::new(&mut self.body).poll_frame(context);
        // The HTTP library polls for the next piece when it has room for the piece.
        match frame.is_ready() {
            true => self.taking.given(),
            false => self.taking.taken(),
        }
        frame
    }

    fn is_end_stream(&self) -> bool {
        self.body.is_end_stream()
    }

    fn size_hint(&self) -> hyper::body::SizeHint {
        self.body.size_hint()
    }
}

impl ConnectionExchange {
    fn new(state: Arc<ServerState>, client: RequestClient, times: WaitLimits) -> Self {
        ConnectionExchange {
            state,
            client,
            times,
            activity: Arc::new(Activity::new()),
        }
    }

    async fn run<S>(self, stream: S, head_bytes: usize, mut drain: watch::Receiver<ServerPhase>)
    where
        S: AsyncRead + AsyncWrite + Unpin + Send + 'static,
    {
        let ConnectionExchange {
            state,
            client,
            times,
            activity,
        } = self;
        let awake = Awake::new(&state);
        let (shared_state, address) = (Arc::clone(&state), client.address);
        let refuse = |reason| shared_state.refused(address, reason);
        let counted = Arc::clone(&activity);
        let service = service_fn(move |request: Request<Incoming>| {
            let active = Active::new(&counted);
            let answered = answer(Arc::clone(&state), client.clone(), request);
            async move {
                let response: Response<ReplyBody> = answered.await;
                Ok::<_, std::convert::Infallible>(response.map(|body| ActiveBody {
                    body,
                    taking: ExpectedRead::new(active.activity()),
                    _active: active,
                }))
            }
        });
        let builder = builder(times, head_bytes);
        let connection = builder.serve_connection(TokioIo::new(stream), service);
        let mut connection = std::pin::pin!(connection);
        let mut is_ending = false;
        loop {
            let allowed = times.among(awake.count());
            let wait = match is_ending {
                true => activity.wait(allowed).max(GRACE),
                false => activity.wait(allowed),
            };
            tokio::select! {
                ended = connection.as_mut() => {
                    if let Some(reason) = ended.err().and_then(|error| reason_of(&*error)) {
                        refuse(reason);
                    }
                    return;
                }
                changed = drain.changed() => {
                    if changed.is_err() || *drain.borrow_and_update() == ServerPhase::Cut {
                        return;
                    }
                    is_ending = true;
                    connection.as_mut().graceful_shutdown();
                }
                // The end of a request determines the idle timeout of the connection.
                () = activity.ended() => {}
                () = tokio::time::sleep(wait) => {
                    match activity.look(allowed) {
                        ConnectionHealth::Fine => {}
                        ConnectionHealth::Idle if !is_ending => {
                            is_ending = true;
                            connection.as_mut().graceful_shutdown();
                        }
                        ConnectionHealth::Idle => return,
                        ConnectionHealth::NeverAsked => return refuse(NOT_ASKED),
                        ConnectionHealth::Stalled => return refuse(NOT_READ),
                    }
                }
            }
        }
    }
}

/// Returns the reason for the log if a connection ended because of the bytes that its client sent.
fn reason_of(error: &(dyn std::error::Error + 'static)) -> Option<&'static str> {
    let error = error.downcast_ref::<hyper::Error>()?;
    if error.is_parse_too_large() {
        return Some("request head too large");
    }
    if error.is_parse() {
        return Some("malformed request");
    }
    if error.is_timeout() {
        return Some("timeout: no response to a keep-alive");
    }
    // A lost connection is not an attack.
    if error.is_incomplete_message() || error.is_canceled() || error.is_closed() || error.is_user()
    {
        return None;
    }
    // The remaining errors are errors of sockets, and of HTTP/2.
    let source = std::error::Error::source(error)?;
    (!source.is::<std::io::Error>()).then_some("HTTP/2 protocol error")
}

fn builder(times: WaitLimits, head_bytes: usize) -> Builder<TokioExecutor> {
    let mut builder = Builder::new(TokioExecutor::new());
    builder
        .http1()
        .timer(TokioTimer::new())
        .header_read_timeout(times.head.max(times.idle))
        .max_buf_size(head_bytes)
        .max_headers(MOST_HEADERS)
        .keep_alive(true);
    builder
        .http2()
        .timer(TokioTimer::new())
        .max_concurrent_streams(MOST_STREAMS)
        .max_header_list_size(u32::try_from(head_bytes).unwrap_or(u32::MAX))
        .initial_stream_window_size(STREAM_WINDOW_BYTES)
        .initial_connection_window_size(CONNECTION_WINDOW_BYTES)
        .max_send_buf_size(BUFFER_BYTES)
        .keep_alive_interval(Some(times.idle))
        .keep_alive_timeout(times.head);
    builder
}
