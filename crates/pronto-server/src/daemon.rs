//! `git://`: requests of `gitprotocol-pack(5)`, "Git Transport", for what anonymous may read.

mod request;

use std::io::{self, Read, Write};
use std::net::{SocketAddr, TcpStream as BlockingStream};
use std::sync::Arc;
use std::time::{Duration, Instant};

use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;

use crate::access::Role;
use crate::admission::{Network, Owner, Slot};
use crate::bridge::{Counters, Progress, too_slow};
use crate::log;
use crate::names::RepositoryName;
use crate::route::Service;
use crate::service::{self, Streams};
use crate::state::{Setup, State};
use crate::{Error, ErrorKind, Result};

pub use request::{DaemonRequest, parse};

/// The longest request.
const LONGEST_BYTES: usize = 8192;

/// Serves a connection.
pub(crate) async fn serve(state: Arc<State>, mut socket: TcpStream, address: SocketAddr) {
    let setup = state.setup();
    let begun = Instant::now();
    let _ = socket.set_nodelay(true);
    let mut record = log::Request {
        id: state.next_id(),
        address,
        protocol: "git",
        user: None,
        repository: None,
        service: "other",
        status: 200,
        received_bytes: 0,
        sent_bytes: 0,
        duration: Duration::ZERO,
        error: None,
    };
    let counters = Arc::new(Counters::default());
    let done = exchange(&state, &setup, &mut socket, &mut record);
    let done = match done.await {
        Ok(work) => {
            let work = Work {
                state: Arc::clone(&state),
                setup: Arc::clone(&setup),
                counters: Arc::clone(&counters),
                ..work
            };
            run(work, socket).await
        }
        Err(error) => {
            let sent = refuse(socket, &error, &record.id).await;
            counters.add_sent(sent);
            Err(error)
        }
    };
    if let Err(error) = done {
        record.status = match error.kind() {
            ErrorKind::NotFound | ErrorKind::Unauthenticated => 404,
            ErrorKind::TooMany => 429,
            ErrorKind::Overloaded => 503,
            ErrorKind::Failed | ErrorKind::Io => 500,
            _ => 400,
        };
        record.error = Some(error.to_string());
    }
    record.received_bytes = counters.received();
    record.sent_bytes = counters.sent();
    record.duration = begun.elapsed();
    state.finished(record);
}

/// The parts of a request that its blocking thread needs.
struct Work {
    state: Arc<State>,
    setup: Arc<Setup>,
    name: RepositoryName,
    protocol: Option<String>,
    counters: Arc<Counters>,
    _slot: Slot,
}

/// Reads the request, checks access, and waits for a slot.
async fn exchange(
    state: &Arc<State>,
    setup: &Arc<Setup>,
    socket: &mut TcpStream,
    record: &mut log::Request,
) -> Result<Work> {
    let late = |_| Error::new(ErrorKind::Malformed, "the request takes too long");
    let head = setup.config.limits.head;
    let line = tokio::time::timeout(head, read_request(socket));
    let line = line.await.map_err(late)??;
    let request = parse(&line)?;
    record.service = request.service.name();
    record.repository = Some(request.name.as_str().to_owned());
    if request.service == Service::ReceivePack {
        let message = "this server takes pushes over HTTP only";
        return Err(Error::new(ErrorKind::Unsupported, message));
    }
    setup
        .check_role(None, &request.name, Role::Read)
        .map_err(|_| {
            // Without tokens there is no difference between the two.
            let message = format!("there is no repository '{}'", request.name);
            Error::new(ErrorKind::NotFound, message)
        })?;
    let owner = Owner::Network(Network::of(record.address.ip()));
    Ok(Work {
        state: Arc::clone(state),
        setup: Arc::clone(setup),
        name: request.name,
        protocol: request.protocol,
        counters: Arc::default(),
        _slot: setup.admission.slot(&owner).await?,
    })
}

/// Reads the packet with the request.
async fn read_request(socket: &mut TcpStream) -> Result<Vec<u8>> {
    let malformed = || Error::new(ErrorKind::Malformed, "the request is not a packet");
    let lost = |error: io::Error| {
        Error::new(ErrorKind::Failed, "the connection to the client is lost").because(error)
    };
    let mut digits = [0; 4];
    socket.read_exact(&mut digits).await.map_err(lost)?;
    let length = std::str::from_utf8(&digits).ok();
    let length = length.and_then(|digits| usize::from_str_radix(digits, 16).ok());
    let length = length.and_then(|length| length.checked_sub(4));
    let length = length.ok_or_else(malformed)?;
    if length == 0 || length > LONGEST_BYTES {
        return Err(malformed());
    }
    let mut line = vec![0; length];
    socket.read_exact(&mut line).await.map_err(lost)?;
    Ok(line)
}

/// Tells a client that there is no room for its connection.
pub(crate) async fn refuse_connection(mut socket: TcpStream, reason: &str) {
    let mut packet = Vec::new();
    let line = format!("ERR {reason}; try again later\n");
    if pronto_wire::pktline::write(&mut packet, line.as_bytes()).is_err() {
        return;
    }
    // A client that is gone needs no answer.
    let _ = tokio::time::timeout(Duration::from_secs(1), async {
        socket.write_all(&packet).await?;
        socket.shutdown().await
    })
    .await;
}

/// Tells the client why it is refused. Returns how many bytes that took.
async fn refuse(mut socket: TcpStream, error: &Error, id: &str) -> u64 {
    let reason = match error.kind() {
        ErrorKind::Failed | ErrorKind::Io => "the server failed",
        _ => error.message(),
    };
    let mut packet = Vec::new();
    let line = format!("ERR {reason} (request {id})\n");
    if pronto_wire::pktline::write(&mut packet, line.as_bytes()).is_err() {
        return 0;
    }
    // A client that is gone needs no answer.
    let written = tokio::time::timeout(Duration::from_secs(5), async {
        socket.write_all(&packet).await?;
        socket.shutdown().await
    });
    match written.await {
        Ok(Ok(())) => packet.len() as u64,
        _ => 0,
    }
}

/// Serves the fetch on a blocking thread, without a copy between the service and the socket.
async fn run(work: Work, socket: TcpStream) -> Result<()> {
    let lost = |error: io::Error| {
        Error::new(ErrorKind::Failed, "the connection to the client is lost").because(error)
    };
    let socket = socket.into_std().map_err(lost)?;
    let task = tokio::task::spawn_blocking(move || {
        let limits = &work.setup.config.limits;
        socket.set_nonblocking(false).map_err(lost)?;
        let end = Instant::now() + limits.request;
        let (stall, counters) = (limits.stall, &*work.counters);
        let mut output = Counted::new(&socket, counters, Deadline { stall, end });
        let repository = match work.setup.repositories.find(&work.name) {
            Ok(repository) => repository,
            Err(error) => {
                let message = match error.kind() {
                    ErrorKind::NotFound => error.message(),
                    _ => "the server failed",
                };
                let mut packet = Vec::new();
                let line = format!("ERR {message}\n");
                let _ = pronto_wire::pktline::write(&mut packet, line.as_bytes());
                let _ = output.write_all(&packet);
                return Err(error);
            }
        };
        let request = service::Request {
            repository: &repository,
            protocol: work.protocol.as_deref(),
            interrupt: &work.state.stop,
        };
        work.state.metrics.under_way.inc();
        let mut input = Counted::new(&socket, counters, Deadline { stall, end });
        let streams = Streams {
            input: &mut input,
            output: &mut output,
        };
        let done = work.state.service.serve_fetch(&request, streams);
        work.state.metrics.under_way.dec();
        done
    });
    let crashed = |_| Error::new(ErrorKind::Failed, "the request has crashed");
    task.await.map_err(crashed)?
}

/// The time that a client may take.
#[derive(Clone, Copy, Debug)]
struct Deadline {
    /// Without progress.
    stall: Duration,
    /// In all.
    end: Instant,
}

/// One direction of a socket, whose bytes are counted. It fails if the client is too slow, or after the
/// time for a request.
struct Counted<'a> {
    socket: &'a BlockingStream,
    counters: &'a Counters,
    deadline: Deadline,
    pace: Progress,
}

impl<'a> Counted<'a> {
    fn new(socket: &'a BlockingStream, counters: &'a Counters, deadline: Deadline) -> Self {
        Counted {
            socket,
            counters,
            deadline,
            pace: Progress::new(deadline.stall),
        }
    }

    /// Reads or writes some bytes, within the time that is left.
    fn moved(
        &mut self,
        mut act: impl FnMut(&BlockingStream) -> io::Result<usize>,
    ) -> io::Result<usize> {
        let begun = Instant::now();
        let left = self.deadline.end.saturating_duration_since(begun);
        let left = left.min(self.pace.left());
        if left.is_zero() {
            return Err(too_slow());
        }
        // Both directions of this socket are used by one thread at a time.
        self.socket.set_read_timeout(Some(left))?;
        self.socket.set_write_timeout(Some(left))?;
        let result = act(self.socket);
        self.pace.waited(begun.elapsed());
        let count = result.map_err(|error| match error.kind() {
            io::ErrorKind::WouldBlock | io::ErrorKind::TimedOut => too_slow(),
            _ => error,
        })?;
        self.pace.moved(count);
        Ok(count)
    }
}

impl Read for Counted<'_> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let count = self.moved(|mut socket| socket.read(buffer))?;
        self.counters.add_received(count as u64);
        Ok(count)
    }
}

impl Write for Counted<'_> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let count = self.moved(|mut socket| socket.write(bytes))?;
        self.counters.add_sent(count as u64);
        Ok(count)
    }

    fn write_vectored(&mut self, slices: &[io::IoSlice<'_>]) -> io::Result<usize> {
        let count = self.moved(|mut socket| socket.write_vectored(slices))?;
        self.counters.add_sent(count as u64);
        Ok(count)
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}
