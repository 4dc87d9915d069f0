//! One connection of HTTP or HTTPS, from its admission to its end.

use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering::Relaxed};
use std::time::{Duration, Instant};

use hyper::body::Incoming;
use hyper::service::service_fn;
use hyper::{Request, Response};
use hyper_util::rt::{TokioExecutor, TokioIo, TokioTimer};
use hyper_util::server::conn::auto::Builder;
use tokio::io::{AsyncRead, AsyncWrite, AsyncWriteExt as _};
use tokio::net::TcpStream;
use tokio::sync::watch;

use crate::admission::Full;
use crate::certificate::{common_name, fingerprint};
use crate::config::Config;
use crate::http::{ReplyBody, answer};
use crate::log::Event;
use crate::state::{Client, State};

/// The memory that a connection may use to write ahead.
const BUFFER_BYTES: usize = 64 * 1024;

/// The most headers of a request.
const MOST_HEADERS: usize = 64;

/// The most requests at once on one connection of HTTP/2.
const MOST_STREAMS: u32 = 32;

/// The windows of HTTP/2 for one request and for all of a connection.
const STREAM_WINDOW_BYTES: u32 = 256 * 1024;
const CONNECTION_WINDOW_BYTES: u32 = 1024 * 1024;

/// What connections shall do.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Phase {
    /// Serve requests.
    Serving,
    /// Finish requests under way, and take no others.
    Draining,
    /// End.
    Cut,
}

/// Serves a connection until it ends, or the server drains and its requests are finished.
pub(crate) async fn serve(
    state: Arc<State>,
    socket: TcpStream,
    address: SocketAddr,
    drain: watch::Receiver<Phase>,
) {
    let setup = state.setup();
    // Small answers must not wait for more.
    let _ = socket.set_nodelay(true);
    let limits = &setup.config.limits;
    // Until its first byte arrives, a connection costs a socket and a task.
    let first = tokio::time::timeout(limits.idle, socket.readable());
    if !matches!(until(first, &drain).await, Some(Ok(Ok(())))) {
        return;
    }
    let (head, idle, head_bytes) = (limits.head, limits.idle, limits.head_bytes);
    let tls = setup.tls.clone();
    let config = Arc::clone(&setup);
    drop(setup);
    let times = Times { head, idle };
    match tls {
        None => {
            let client = Client {
                address,
                certificate_user: None,
            };
            drop(config);
            Exchange::new(state, client, times)
                .run(socket, head_bytes, drain)
                .await;
        }
        Some(acceptor) => {
            let handshake = tokio::time::timeout(head, acceptor.accept(socket));
            let Some(Ok(Ok(stream))) = until(handshake, &drain).await else {
                state.metrics.refused("handshake");
                return;
            };
            let certificates = stream.get_ref().1.peer_certificates();
            let certificate = certificates.and_then(<[_]>::first);
            let client = Client {
                address,
                certificate_user: certificate
                    .and_then(|certificate| certificate_user(&config.config, certificate)),
            };
            drop(config);
            Exchange::new(state, client, times)
                .run(stream, head_bytes, drain)
                .await;
        }
    }
}

/// Waits for the future, unless the server drains first.
async fn until<T>(future: impl Future<Output = T>, drain: &watch::Receiver<Phase>) -> Option<T> {
    let mut drain = drain.clone();
    tokio::select! {
        result = future => Some(result),
        _ = drain.wait_for(|phase| *phase != Phase::Serving) => None,
    }
}

/// The user of a client certificate: by its fingerprint, or else by the common name of its subject.
fn certificate_user(config: &Config, certificate: &[u8]) -> Option<Arc<str>> {
    let (print, subject) = (fingerprint(certificate), common_name(certificate));
    let found = config.certificates.iter().find(|known| {
        let fits = |wanted: &Option<String>, found: Option<&str>| {
            wanted.as_deref().is_none_or(|wanted| Some(wanted) == found)
        };
        fits(&known.fingerprint, Some(&print)) && fits(&known.subject, subject.as_deref())
    });
    found.map(|known| known.user.as_str().into())
}

/// Tells a client that there is no room for its connection. A client of TLS would not understand it.
pub(crate) async fn refuse(
    state: Arc<State>,
    mut socket: TcpStream,
    address: SocketAddr,
    full: Full,
) {
    let (status, reason, retry) = match full {
        Full::Server => ("503 Service Unavailable", "too many connections", 5),
        Full::Address => (
            "429 Too Many Requests",
            "too many connections of this address",
            5,
        ),
    };
    state.metrics.refused(reason);
    state.tell(&Event::Refused { address, reason });
    if state.setup().tls.is_some() {
        return;
    }
    let text = format!(
        "HTTP/1.1 {status}\r\ncontent-type: text/plain\r\nretry-after: {retry}\r\n\
         content-length: {}\r\nconnection: close\r\n\r\n{reason}\n",
        reason.len() + 1
    );
    // The socket's buffer takes that much at once; a client that resets needs no answer.
    let _ = tokio::time::timeout(Duration::from_secs(1), async {
        socket.write_all(text.as_bytes()).await?;
        socket.shutdown().await
    })
    .await;
}

/// How long a connection may wait.
#[derive(Clone, Copy, Debug)]
struct Times {
    head: Duration,
    idle: Duration,
}

/// The requests of one connection.
struct Exchange {
    state: Arc<State>,
    client: Client,
    times: Times,
    activity: Arc<Activity>,
}

/// What a connection is doing.
#[derive(Debug)]
struct Activity {
    begun: Instant,
    /// Requests whose response is not finished.
    under_way: AtomicUsize,
    /// When the last request began or ended, in milliseconds since the connection began; 0 before the
    /// first one.
    last: AtomicU64,
}

impl Activity {
    fn note(&self) {
        let now = self.begun.elapsed().as_millis() as u64;
        self.last.store(now.max(1), Relaxed);
    }
}

/// Counts a request of a connection until its response is finished.
#[derive(Debug)]
struct Active(Arc<Activity>);

impl Active {
    fn new(activity: &Arc<Activity>) -> Self {
        activity.under_way.fetch_add(1, Relaxed);
        activity.note();
        Active(Arc::clone(activity))
    }
}

impl Drop for Active {
    fn drop(&mut self) {
        self.0.note();
        self.0.under_way.fetch_sub(1, Relaxed);
    }
}

/// A body that keeps its connection active.
struct ActiveBody {
    body: ReplyBody,
    _active: Active,
}

impl hyper::body::Body for ActiveBody {
    type Data = hyper::body::Bytes;
    type Error = std::io::Error;

    fn poll_frame(
        mut self: std::pin::Pin<&mut Self>,
        context: &mut std::task::Context<'_>,
    ) -> std::task::Poll<Option<Result<hyper::body::Frame<Self::Data>, Self::Error>>> {
        std::pin::Pin::new(&mut self.body).poll_frame(context)
    }

    fn is_end_stream(&self) -> bool {
        self.body.is_end_stream()
    }

    fn size_hint(&self) -> hyper::body::SizeHint {
        self.body.size_hint()
    }
}

impl Exchange {
    fn new(state: Arc<State>, client: Client, times: Times) -> Self {
        Exchange {
            state,
            client,
            times,
            activity: Arc::new(Activity {
                begun: Instant::now(),
                under_way: AtomicUsize::new(0),
                last: AtomicU64::new(0),
            }),
        }
    }

    async fn run<S>(self, stream: S, head_bytes: usize, mut drain: watch::Receiver<Phase>)
    where
        S: AsyncRead + AsyncWrite + Unpin + Send + 'static,
    {
        let Exchange {
            state,
            client,
            times,
            activity,
        } = self;
        let counted = Arc::clone(&activity);
        let service = service_fn(move |request: Request<Incoming>| {
            let active = Active::new(&counted);
            let answered = answer(Arc::clone(&state), client.clone(), request);
            async move {
                let response: Response<ReplyBody> = answered.await;
                Ok::<_, std::convert::Infallible>(response.map(|body| ActiveBody {
                    body,
                    _active: active,
                }))
            }
        });
        let builder = builder(times, head_bytes);
        let connection = builder.serve_connection(TokioIo::new(stream), service);
        let mut connection = std::pin::pin!(connection);
        let mut is_ending = false;
        loop {
            let wait = wait_before_look(&activity, times);
            tokio::select! {
                // An error of the connection concerns its client alone.
                _ = connection.as_mut() => return,
                changed = drain.changed() => {
                    if changed.is_err() || *drain.borrow_and_update() == Phase::Cut {
                        return;
                    }
                    is_ending = true;
                    connection.as_mut().graceful_shutdown();
                }
                () = tokio::time::sleep(wait) => {
                    match look(&activity, times) {
                        Look::Fine => {}
                        Look::Idle if !is_ending => {
                            is_ending = true;
                            connection.as_mut().graceful_shutdown();
                        }
                        Look::Idle | Look::NeverAsked => return,
                    }
                }
            }
        }
    }
}

/// What a look at a connection finds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Look {
    Fine,
    Idle,
    /// There was no complete head of a first request in the time for one.
    NeverAsked,
}

fn look(activity: &Activity, times: Times) -> Look {
    if activity.under_way.load(Relaxed) > 0 {
        return Look::Fine;
    }
    let now = activity.begun.elapsed();
    match activity.last.load(Relaxed) {
        0 if now >= times.head => Look::NeverAsked,
        0 => Look::Fine,
        last if now >= Duration::from_millis(last) + times.idle => Look::Idle,
        _ => Look::Fine,
    }
}

fn wait_before_look(activity: &Activity, times: Times) -> Duration {
    match activity.last.load(Relaxed) {
        0 => times.head,
        _ => times.idle,
    }
}

fn builder(times: Times, head_bytes: usize) -> Builder<TokioExecutor> {
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
