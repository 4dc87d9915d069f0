//! `git://`: requests of `gitprotocol-pack(5)`, "Git Transport", with the rights of anonymous
//! clients.

mod request;

use std::io::{self, Read, Write};
use std::net::TcpStream as BlockingStream;
use std::sync::{Arc, OnceLock};
use std::time::{Duration, Instant};

use tokio::io::AsyncReadExt as _;
use tokio::net::TcpStream;

use crate::admission::{AdmittedConnection, RequestSlot};
use crate::bridge::{ClientPace, ClientPatience, TransferCounters};
use crate::config::DaemonPush;
use crate::connection::{Accepted, end_with};
use crate::permission::Proven;
use crate::record::{self, RequestRecord};
use crate::route::{RequestTarget, RequestedService};
use crate::service::RequestStreams;
use crate::state::{ServerState, Setup};
use crate::work::{AdmittedRequest, Requester, Services, UnderWay};
use crate::{Error, ErrorKind, Result};

pub use request::{DaemonRequest, parse};

/// The largest length of a request in bytes.
pub(crate) const LONGEST_BYTES: usize = 8192;

/// The largest number of bytes that are read and discarded after a response.
const LINGERING_BYTES: u64 = 64 << 20;

/// Serves a connection.
pub(crate) async fn serve(state: Arc<ServerState>, mut socket: TcpStream, client: Accepted) {
    let setup = state.setup();
    let _ = socket.set_nodelay(true);
    let mut record = RequestRecord::new(&state, client.address, "git");
    record.status(200);
    let done = match prepare(&setup, &client.connection, &mut socket, &mut record).await {
        Ok((work, slot)) => {
            let job = DaemonJob {
                patience: work.patience(&slot),
                work,
                id: record.id().to_owned(),
                state: Arc::clone(&state),
                counters: Arc::clone(&record.counters),
                slot,
            };
            run(job, socket).await
        }
        Err(error) => {
            refuse(socket, &error, &record).await;
            Err(error)
        }
    };
    if let Err(error) = done {
        record.failed(&error);
    }
}

/// The interval at which a wait for a client checks whether the request has lost its slot.
const LOOK: Duration = Duration::from_millis(500);

/// A request on its blocking thread.
struct DaemonJob {
    state: Arc<ServerState>,
    work: AdmittedRequest,
    id: String,
    counters: Arc<TransferCounters>,
    patience: ClientPatience,
    slot: RequestSlot,
}

/// Reads the request, checks access, and waits for a slot.
async fn prepare(
    setup: &Arc<Setup>,
    connection: &Arc<AdmittedConnection>,
    socket: &mut TcpStream,
    record: &mut RequestRecord,
) -> Result<(AdmittedRequest, RequestSlot)> {
    let late = |_| Error::new(ErrorKind::Malformed, "timeout: the request is incomplete");
    let head = setup.config.limits.head;
    let line = tokio::time::timeout(head, read_request(socket));
    let line = line.await.map_err(late)??;
    let request = parse(&line)?;
    record.service(request.service.name());
    record.repository(request.name.as_str());
    let takes_pushes = setup.config.daemon_push != DaemonPush::Never;
    if request.service == RequestedService::ReceivePack && !takes_pushes {
        let message = "this server does not accept pushes over git://; use http:// or ssh://";
        return Err(Error::new(ErrorKind::Unsupported, message));
    }
    let work = AdmittedRequest {
        setup: Arc::clone(setup),
        requester: Requester {
            user: None,
            proven: Proven::Name,
            address: record.address().ip(),
            protocol: "git",
            connection: Some(Arc::clone(connection)),
        },
        target: RequestTarget {
            service: request.service,
            name: request.name,
        },
        protocol: request.protocol,
        tally: Arc::clone(&record.tally),
        allowance: OnceLock::new(),
    };
    work.check().map_err(|_| {
        // A client of `git://` cannot authenticate, so both errors have the same message.
        let message = format!("there is no repository '{}'", work.target.name);
        Error::new(ErrorKind::NotFound, message)
    })?;
    let slot = work.slot().await?;
    Ok((work, slot))
}

/// Reads the packet that contains the request.
async fn read_request(socket: &mut TcpStream) -> Result<Vec<u8>> {
    let malformed = || Error::new(ErrorKind::Malformed, "the request is not a pkt-line");
    let lost = |error: io::Error| {
        Error::new(ErrorKind::Failed, "lost the connection to the client").because(error)
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

/// Refuses a connection for which the server has no room.
pub(crate) async fn refuse_connection(socket: TcpStream, reason: &str) {
    end_with(socket, &packet(&format!("{reason}; try again later"))).await;
}

/// Sends the reason of a refusal to the client.
async fn refuse(socket: TcpStream, error: &Error, record: &RequestRecord) {
    let packet = packet(&record::text(error, record.id()));
    if end_with(socket, &packet).await {
        record.counters.add_sent(packet.len() as u64);
    }
}

/// Returns the `ERR` packet with an error message.
fn packet(text: &str) -> Vec<u8> {
    let mut packet = Vec::new();
    // Messages are short. A message that does not fit would be omitted.
    let _ = pronto_wire::pktline::write(&mut packet, format!("ERR {text}\n").as_bytes());
    packet
}

/// Serves the request on a blocking thread, without a copy between the service and the socket.
async fn run(job: DaemonJob, socket: TcpStream) -> Result<()> {
    let lost = |error: io::Error| {
        Error::new(ErrorKind::Failed, "lost the connection to the client").because(error)
    };
    let socket = socket.into_std().map_err(lost)?;
    let task = tokio::task::spawn_blocking(move || {
        socket.set_nonblocking(false).map_err(lost)?;
        let counted = || CountedSocket {
            socket: &socket,
            counters: &job.counters,
            pace: ClientPace::new(job.patience.clone()),
        };
        let (mut input, mut output) = (counted(), counted());
        let _under_way = UnderWay::new(&job.state);
        job.slot.peer().begin_work();
        match job.work.open() {
            Ok(repository) => {
                let streams = RequestStreams {
                    input: &mut input,
                    output: &mut output,
                };
                let done = (job.work).converse(&repository, &Services::of(&job.state), streams);
                match job.work.target.service {
                    RequestedService::ReceivePack => discard(&socket, &mut input),
                    RequestedService::UploadArchive | RequestedService::UploadPack => {
                        if let Err(error) = &done
                            && is_unreported(error)
                        {
                            let packet = packet(&record::text(error, &job.id));
                            // A lost client needs no response.
                            let _ = output.write_all(&packet);
                        }
                        if is_refusal(&done) {
                            discard(&socket, &mut job.lingering(&socket));
                        }
                    }
                }
                done
            }
            Err(error) => {
                let packet = packet(&record::text(&error, &job.id));
                // A lost client needs no response.
                let _ = output.write_all(&packet);
                discard(&socket, &mut job.lingering(&socket));
                Err(error)
            }
        }
    });
    let crashed = |_| Error::new(ErrorKind::Failed, "internal error: the request panicked");
    task.await.map_err(crashed)?
}

impl DaemonJob {
    /// Returns the input of a client that was refused. The timeout is that for the head of a
    /// request, because the client only has to read the reason.
    fn lingering<'a>(&'a self, socket: &'a BlockingStream) -> CountedSocket<'a> {
        let time = self.work.setup.config.limits.head;
        let patience = ClientPatience {
            stall: self.patience.stall.min(time),
            end: self.patience.end.min(Instant::now() + time),
            peer: Arc::clone(&self.patience.peer),
        };
        CountedSocket {
            socket,
            counters: &self.counters,
            pace: ClientPace::new(patience),
        }
    }
}

/// Returns whether the client has no response that reports this error, because the error occurred
/// while the request was read, before the response began.
fn is_unreported(error: &Error) -> bool {
    matches!(error.kind(), ErrorKind::TooLarge | ErrorKind::TooMany)
}

/// Returns whether the request was refused. Some bytes of a refused request may be unread.
fn is_refusal(done: &Result<()>) -> bool {
    let kinds = [
        ErrorKind::Malformed,
        ErrorKind::TooLarge,
        ErrorKind::TooMany,
    ];
    matches!(done, Err(error) if kinds.contains(&error.kind()))
}

/// Ends the response, then reads and discards the remaining bytes of the client. Unread bytes at
/// the end of a connection would give the client an error instead of the response.
fn discard(socket: &BlockingStream, input: &mut impl Read) {
    let _ = socket.shutdown(std::net::Shutdown::Write);
    let _ = io::copy(&mut input.take(LINGERING_BYTES), &mut io::sink());
}

/// One direction of a socket, with a count of its bytes. Reads and writes fail if the client is too
/// slow, or after the timeout of the request.
struct CountedSocket<'a> {
    socket: &'a BlockingStream,
    counters: &'a TransferCounters,
    pace: ClientPace,
}

impl CountedSocket<'_> {
    /// Reads or writes some bytes within the time that is left.
    fn moved(
        &mut self,
        mut act: impl FnMut(&BlockingStream) -> io::Result<usize>,
    ) -> io::Result<usize> {
        loop {
            let left = self.pace.left()?.min(LOOK);
            // One thread at a time uses both directions of this socket.
            self.socket.set_read_timeout(Some(left))?;
            self.socket.set_write_timeout(Some(left))?;
            let wait = self.pace.begin();
            let result = act(self.socket);
            self.pace.waited(wait);
            match result {
                Ok(count) => {
                    self.pace.moved(count);
                    return Ok(count);
                }
                Err(error) => match error.kind() {
                    // The pace limits the time of these retries.
                    io::ErrorKind::WouldBlock | io::ErrorKind::TimedOut => {}
                    _ => return Err(error),
                },
            }
        }
    }
}

impl Read for CountedSocket<'_> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let count = self.moved(|mut socket| socket.read(buffer))?;
        self.counters.add_received(count as u64);
        Ok(count)
    }
}

impl Write for CountedSocket<'_> {
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
