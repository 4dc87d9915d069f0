//! Adapters between asynchronous connections and the blocking streams of services: bodies of HTTP requests,
//! and channels of SSH.
//!
//! A request is read when the service needs more bytes, so a slow service slows down the client. A response
//! is a queue of a few pieces, so a slow client slows down the service (backpressure). Both directions fail
//! if no bytes move before the timeout. Each byte is copied once in each direction.

use std::io::{self, Read, Write};
use std::pin::Pin;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::sync::{Arc, OnceLock};
use std::task::{Context, Poll};
use std::time::{Duration, Instant};

use http_body_util::BodyExt as _;
use hyper::body::{Body, Bytes, Frame, Incoming};
use tokio::runtime::Handle;
use tokio::sync::mpsc;

use crate::admission::{PeerWait, RequestPeer};
use crate::config::ServerLimits;
use crate::{Error, ErrorKind, Result};

/// The size in bytes of the pieces of a response.
const PIECE_BYTES: usize = 64 * 1024;

/// The largest number of pieces that are queued for the client.
const PIECES: usize = 4;

/// The number of bytes that must move within the stall timeout of a client.
const LEAST_BYTES: u64 = 16 * 1024;

/// The timeouts of a client.
#[derive(Clone, Debug)]
pub(crate) struct ClientPatience {
    /// The time in which at least [`LEAST_BYTES`] must move.
    pub(crate) stall: Duration,
    /// The deadline of the whole request.
    pub(crate) end: Instant,
    /// The client as the holder of a slot. The client loses the slot if other requests wait for the slot
    /// while the server waits for the client.
    pub(crate) peer: Arc<RequestPeer>,
}

impl ClientPatience {
    /// Returns the timeouts, from now on, for the client of a request without a slot.
    pub(crate) fn from_now(limits: &ServerLimits) -> Self {
        ClientPatience::of(limits, &Arc::default())
    }

    /// Returns the timeouts, from now on, for the client of a request.
    pub(crate) fn of(limits: &ServerLimits, peer: &Arc<RequestPeer>) -> Self {
        ClientPatience {
            stall: limits.stall,
            end: Instant::now() + limits.request,
            peer: Arc::clone(peer),
        }
    }
}

/// Returns the time in which a client takes a whole piece, if at least [`LEAST_BYTES`] move in each `stall`.
pub(crate) fn patience_per_piece(stall: Duration) -> Duration {
    const STALLS: u32 = PIECE_BYTES as u32 / LEAST_BYTES as u32;
    stall * STALLS
}

/// The progress of one direction, measured by the time for which the server waits for the client.
#[derive(Debug)]
pub(crate) struct ClientPace {
    patience: ClientPatience,
    waited: Duration,
    moved_bytes: u64,
}

impl ClientPace {
    pub(crate) fn new(patience: ClientPatience) -> Self {
        ClientPace {
            patience,
            waited: Duration::ZERO,
            moved_bytes: 0,
        }
    }

    /// Returns the time that is left for the client.
    ///
    /// # Errors
    /// Fails with [`io::ErrorKind::TimedOut`] if no time is left, or another request got the slot.
    pub(crate) fn left(&self) -> io::Result<Duration> {
        if self.patience.peer.is_evicted() {
            return Err(evicted());
        }
        let left = self.patience.end.saturating_duration_since(Instant::now());
        match left.min(self.patience.stall.saturating_sub(self.waited)) {
            Duration::ZERO => Err(too_slow()),
            left => Ok(left),
        }
    }

    /// Records that the server starts to wait for the client in this direction.
    pub(crate) fn begin(&self) -> PeerWait {
        self.patience.peer.wait(self.waited)
    }

    /// Records that a wait for the client has ended.
    pub(crate) fn waited(&mut self, wait: PeerWait) {
        self.waited += wait.end();
    }

    pub(crate) fn moved(&mut self, bytes: usize) {
        self.moved_bytes += bytes as u64;
        if self.moved_bytes >= LEAST_BYTES {
            self.moved_bytes = 0;
            self.waited = Duration::ZERO;
            self.patience.peer.pause();
        }
    }

    /// Waits for `future` until the client has no time left.
    ///
    /// # Errors
    /// Fails with [`io::ErrorKind::TimedOut`] if the client is too slow, or has lost its slot.
    pub(crate) async fn wait<T>(&mut self, future: impl Future<Output = T>) -> io::Result<T> {
        let left = self.left()?;
        let wait = self.begin();
        let result = tokio::select! {
            result = tokio::time::timeout(left, future) => result.map_err(|_| too_slow()),
            () = self.patience.peer.evicted() => Err(evicted()),
        };
        self.waited(wait);
        result
    }
}

/// Returns the error for a client that has lost its slot.
fn evicted() -> io::Error {
    let message = "the client is too slow while others wait";
    io::Error::new(io::ErrorKind::TimedOut, message)
}

/// Returns the error for a client that makes no progress.
pub(crate) fn too_slow() -> io::Error {
    io::Error::new(
        io::ErrorKind::TimedOut,
        "timeout: the client makes no progress",
    )
}

/// The number of bytes of a request and of its response.
#[derive(Debug, Default)]
pub(crate) struct TransferCounters {
    received: AtomicU64,
    sent: AtomicU64,
}

impl TransferCounters {
    pub(crate) fn received(&self) -> u64 {
        self.received.load(Relaxed)
    }

    pub(crate) fn sent(&self) -> u64 {
        self.sent.load(Relaxed)
    }

    pub(crate) fn add_sent(&self, bytes: u64) {
        self.sent.fetch_add(bytes, Relaxed);
    }

    pub(crate) fn add_received(&self, bytes: u64) {
        self.received.fetch_add(bytes, Relaxed);
    }
}

/// A source of the pieces of a request, as they are received.
pub(crate) trait RequestBody: Send {
    /// Returns the next piece, or `None` at the end.
    fn next(&mut self) -> impl Future<Output = Option<io::Result<Bytes>>> + Send;
}

impl RequestBody for Incoming {
    async fn next(&mut self) -> Option<io::Result<Bytes>> {
        loop {
            match self.frame().await? {
                Err(error) => return Some(Err(io::Error::other(error))),
                Ok(frame) => {
                    // Frames without data contain trailers.
                    if let Ok(data) = frame.into_data() {
                        return Some(Ok(data));
                    }
                }
            }
        }
    }
}

/// A blocking reader of a request. Use this type outside of asynchronous code.
pub(crate) struct PieceReader<S> {
    source: S,
    rest: Bytes,
    runtime: Handle,
    pace: ClientPace,
    counters: Arc<TransferCounters>,
}

impl<S: RequestBody> PieceReader<S> {
    pub(crate) fn new(
        source: S,
        patience: ClientPatience,
        counters: Arc<TransferCounters>,
    ) -> Self {
        PieceReader {
            source,
            rest: Bytes::new(),
            runtime: Handle::current(),
            pace: ClientPace::new(patience),
            counters,
        }
    }

    /// Returns the source, with the pieces that were not read.
    pub(crate) fn into_source(self) -> S {
        self.source
    }
}

impl<S: RequestBody> Read for PieceReader<S> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        while self.rest.is_empty() {
            let source = &mut self.source;
            match self.runtime.block_on(self.pace.wait(source.next()))? {
                None => return Ok(0),
                Some(piece) => {
                    self.rest = piece?;
                    self.pace.moved(self.rest.len());
                    self.counters.add_received(self.rest.len() as u64);
                }
            }
        }
        let count = buffer.len().min(self.rest.len());
        let piece = self.rest.split_to(count);
        if let Some(place) = buffer.get_mut(..count) {
            place.copy_from_slice(&piece);
        }
        Ok(count)
    }
}

/// A reader that fails when more than a fixed number of bytes is read.
pub(crate) struct Bounded<R> {
    inner: R,
    left: u64,
    is_exceeded: bool,
}

impl<R> Bounded<R> {
    pub(crate) fn new(inner: R, most_bytes: u64) -> Self {
        Bounded {
            inner,
            left: most_bytes,
            is_exceeded: false,
        }
    }

    /// Returns `done`, the result of a service that has read this request. If the request exceeded the bound,
    /// the result is [`ErrorKind::TooLarge`], whatever error the service returned.
    pub(crate) fn judged(&self, done: Result<()>) -> Result<()> {
        let too_large = || Error::new(ErrorKind::TooLarge, "the request is too large");
        done.map_err(|error| match self.is_exceeded {
            true => too_large(),
            false => error,
        })
    }
}

impl<R: Read> Read for Bounded<R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let count = self.inner.read(buffer)?;
        let left = self.left.checked_sub(count as u64);
        self.is_exceeded |= left.is_none();
        self.left = left.ok_or_else(|| {
            io::Error::new(io::ErrorKind::FileTooLarge, "the request is too large")
        })?;
        Ok(count)
    }
}

/// The writing end of a response.
pub(crate) struct PieceWriter {
    sender: mpsc::Sender<Bytes>,
    gathered: Vec<u8>,
    outcome: Arc<OnceLock<Outcome>>,
    runtime: Handle,
    pace: ClientPace,
    /// The signal that the first byte is sent, which decides the HTTP status.
    first: Option<tokio::sync::oneshot::Sender<()>>,
}

/// The end of a response.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Outcome {
    /// The response is complete. An error in it is one that the protocol has reported to the client.
    Whole(Option<String>),
    /// The response is incomplete, for this reason.
    Broken(String),
}

/// The reading end of the response that a [`PieceWriter`] writes.
#[derive(Debug)]
pub(crate) struct ResponsePieces {
    receiver: mpsc::Receiver<Bytes>,
    outcome: Arc<OnceLock<Outcome>>,
    /// Whether the end of the response was reached.
    is_at_end: bool,
}

impl ResponsePieces {
    /// Returns the error that the protocol has reported to the client, after the end is reached.
    pub(crate) fn client_message(&self) -> Option<&str> {
        match self.outcome.get() {
            Some(Outcome::Whole(client_message)) => client_message.as_deref(),
            _ => None,
        }
    }

    /// Returns the next piece, or `None` at the end. An incomplete response ends with an error.
    pub(crate) async fn next(&mut self) -> Option<io::Result<Bytes>> {
        match self.receiver.recv().await {
            Some(piece) => Some(Ok(piece)),
            None => self.failure().map(Err),
        }
    }

    /// Returns the error of an incomplete response, after all pieces are taken.
    fn failure(&self) -> Option<io::Error> {
        match self.outcome.get() {
            Some(Outcome::Whole(_)) => None,
            Some(Outcome::Broken(message)) => Some(io::Error::other(message.clone())),
            None => Some(io::Error::other("internal error: the request panicked")),
        }
    }
}

/// The two ends of a response between a service and its client.
pub(crate) struct Pipe {
    pub(crate) writer: PieceWriter,
    pub(crate) pieces: ResponsePieces,
    /// Completes when the first byte is written. Fails if the writer is dropped before.
    pub(crate) first: tokio::sync::oneshot::Receiver<()>,
}

/// Creates a pipe for a response.
pub(crate) fn pipe(patience: ClientPatience) -> Pipe {
    let (sender, receiver) = mpsc::channel(PIECES);
    let (notifier, first) = tokio::sync::oneshot::channel();
    let outcome = Arc::new(OnceLock::new());
    Pipe {
        writer: PieceWriter {
            sender,
            gathered: Vec::new(),
            outcome: Arc::clone(&outcome),
            runtime: Handle::current(),
            pace: ClientPace::new(patience),
            first: Some(notifier),
        },
        pieces: ResponsePieces {
            receiver,
            outcome,
            is_at_end: false,
        },
        first,
    }
}

impl PieceWriter {
    /// Returns whether no byte was written yet.
    pub(crate) fn is_untouched(&self) -> bool {
        self.first.is_some()
    }

    /// Ends the response. `client_message` is the error that the protocol has reported to the client.
    pub(crate) fn finish(self, client_message: Option<String>) {
        let _ = self.outcome.set(Outcome::Whole(client_message));
    }

    /// Aborts the response, so that the client does not accept it as complete.
    pub(crate) fn fail(self, message: &str) {
        let _ = self.outcome.set(Outcome::Broken(message.to_owned()));
    }

    fn send(&mut self, piece: Bytes) -> io::Result<()> {
        let gone = || io::Error::new(io::ErrorKind::BrokenPipe, "the client has disconnected");
        let count = piece.len();
        match self.sender.try_send(piece) {
            Ok(()) => {}
            Err(mpsc::error::TrySendError::Full(piece)) => {
                let sent = self.pace.wait(self.sender.send(piece));
                let sent = self.runtime.block_on(sent)?;
                sent.map_err(|_| gone())?;
            }
            Err(mpsc::error::TrySendError::Closed(_)) => return Err(gone()),
        }
        self.pace.moved(count);
        if let Some(first) = self.first.take() {
            // The receiver may have been dropped.
            let _ = first.send(());
        }
        Ok(())
    }

    fn send_gathered(&mut self) -> io::Result<()> {
        if self.gathered.is_empty() {
            return Ok(());
        }
        let piece = Bytes::from(std::mem::take(&mut self.gathered));
        self.send(piece)
    }
}

impl Write for PieceWriter {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let count = bytes.len().min(PIECE_BYTES - self.gathered.len());
        self.gathered
            .extend_from_slice(bytes.get(..count).unwrap_or_default());
        if self.gathered.len() >= PIECE_BYTES {
            self.send_gathered()?;
        }
        Ok(count)
    }

    fn write_vectored(&mut self, slices: &[io::IoSlice<'_>]) -> io::Result<usize> {
        let mut written = 0;
        if self.gathered.capacity() == 0 {
            let all: usize = slices.iter().map(|slice| slice.len()).sum();
            self.gathered.reserve(all.min(PIECE_BYTES));
        }
        for slice in slices {
            let count = self.write(slice)?;
            written += count;
            if count < slice.len() || self.gathered.is_empty() {
                break;
            }
        }
        Ok(written)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.send_gathered()
    }
}

impl Body for ResponsePieces {
    type Data = Bytes;
    type Error = io::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, io::Error>>> {
        if !self.is_at_end {
            match self.receiver.poll_recv(context) {
                Poll::Ready(Some(piece)) => return Poll::Ready(Some(Ok(Frame::data(piece)))),
                Poll::Pending => return Poll::Pending,
                Poll::Ready(None) => self.is_at_end = true,
            }
            if self.failure().is_some() {
                // An error ends the connection at once. The bytes written before the error, such as its
                // description in the protocol, are sent first.
                context.waker().wake_by_ref();
                return Poll::Pending;
            }
        }
        Poll::Ready(self.failure().map(Err))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn patience() -> ClientPatience {
        ClientPatience {
            stall: Duration::from_millis(100),
            end: Instant::now() + Duration::from_secs(10),
            peer: Arc::default(),
        }
    }

    #[tokio::test(flavor = "multi_thread")]
    async fn a_client_that_does_not_read_is_given_up() {
        let Pipe {
            mut writer, pieces, ..
        } = pipe(patience());
        let written = tokio::task::spawn_blocking(move || {
            let piece = vec![0; PIECE_BYTES];
            let mut count = 0;
            loop {
                if let Err(error) = writer.write_all(&piece) {
                    return (count, error.kind());
                }
                count += 1;
            }
        });
        let (count, kind) = written.await.expect("it ends");
        assert_eq!((count, kind), (PIECES, io::ErrorKind::TimedOut));
        drop(pieces);
    }

    #[tokio::test(flavor = "multi_thread")]
    async fn pieces_arrive_in_order() {
        let Pipe {
            mut writer,
            mut pieces,
            first,
        } = pipe(patience());
        let writing = tokio::task::spawn_blocking(move || {
            for number in 0..1000u32 {
                writer.write_all(&number.to_be_bytes()).expect("read");
            }
            writer.flush().expect("read");
            writer.finish(None);
        });
        first.await.expect("something is written");
        let mut bytes = Vec::new();
        while let Some(frame) = pieces.frame().await {
            let frame = frame.expect("no error");
            bytes.extend_from_slice(&frame.into_data().expect("data"));
        }
        writing.await.expect("it ends");
        let expected: Vec<u8> = (0..1000u32).flat_map(u32::to_be_bytes).collect();
        assert_eq!(bytes, expected);
    }

    #[tokio::test(flavor = "multi_thread")]
    async fn an_end_that_is_none_is_an_error() {
        for is_failed in [false, true] {
            let Pipe {
                mut writer,
                mut pieces,
                ..
            } = pipe(patience());
            let writing = tokio::task::spawn_blocking(move || {
                // The queue is full when the writer times out.
                writer
                    .write_all(&vec![0; PIECES * PIECE_BYTES])
                    .expect("room");
                match is_failed {
                    true => writer.fail("too slow"),
                    false => drop(writer),
                }
            });
            writing.await.expect("it ends");
            for _ in 0..PIECES {
                pieces.frame().await.expect("a piece").expect("no error");
            }
            assert!(matches!(pieces.frame().await, Some(Err(_))));
        }
    }

    #[test]
    fn more_than_the_bound_is_an_error() {
        let mut out = Vec::new();
        Bounded::new(&[0; 10][..], 10)
            .read_to_end(&mut out)
            .expect("it fits");
        let mut bounded = Bounded::new(&[0; 11][..], 10);
        bounded.read_to_end(&mut out).expect_err("it does not");
        let judged = bounded.judged(Err(Error::new(ErrorKind::Failed, "it fails")));
        assert_eq!(
            judged.map_err(|error| error.kind()),
            Err(ErrorKind::TooLarge)
        );
    }
}
