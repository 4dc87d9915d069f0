//! A Git request on a channel, from its command to its exit status.

use std::io;
use std::sync::{Arc, OnceLock};

use hyper::body::Bytes;
use russh::server::Handle;
use russh::{ChannelId, ChannelMsg, ChannelReadHalf};
use tokio::sync::oneshot;

use super::link::{IdleChannel, REFUSED, SshConnection};
use super::{PACKET_BYTES, PACKETS_AHEAD};
use crate::activity::{Active, Activity, ExpectedRead};
use crate::admission::RequestSlot;
use crate::bridge::{
    ClientPace, ClientPatience, PieceReader, PieceWriter, Pipe, RequestBody, ResponsePieces,
    TransferCounters, pipe,
};
use crate::error::without_room;
use crate::permission::Proven;
use crate::record::{self, RequestRecord, UNFINISHED};
use crate::route::RequestedService;
use crate::service::RequestStreams;
use crate::state::ServerState;
use crate::work::{AdmittedRequest, Requester, Services, UnderWay};
use crate::{Error, ErrorKind, Result, command};

/// The largest number of bytes of a push that are read and discarded after its response, so that a
/// client that still sends can read the response.
const LINGERING_BYTES: usize = 64 << 20;

/// The largest number of bytes that a client may send before its request is served.
const AHEAD_BYTES: u64 = PACKETS_AHEAD as u64 * PACKET_BYTES as u64;

/// A request that starts.
pub(super) struct Exec {
    /// The user, or an error if the user has lost access since the login.
    pub(super) user: Result<Option<Arc<str>>>,
    pub(super) proven: Proven,
    pub(super) command: Vec<u8>,
    pub(super) waiting: IdleChannel,
    pub(super) handle: Handle,
}

/// The input of a channel.
struct ChannelInput {
    channel: ChannelReadHalf,
    has_ended: bool,
}

impl RequestBody for ChannelInput {
    async fn next(&mut self) -> Option<io::Result<Bytes>> {
        while !self.has_ended {
            match self.channel.wait().await {
                Some(ChannelMsg::Data { data }) => return Some(Ok(data)),
                Some(ChannelMsg::Eof | ChannelMsg::Close) | None => self.has_ended = true,
                // Requests have separate callbacks.
                Some(_) => {}
            }
        }
        None
    }
}

impl ChannelInput {
    /// Reads and discards the remaining bytes of a client.
    async fn discard(&mut self, patience: ClientPatience) {
        let (mut pace, mut count) = (ClientPace::new(patience), 0);
        while count < LINGERING_BYTES {
            match pace.wait(self.next()).await {
                Ok(Some(Ok(data))) => {
                    count += data.len();
                    pace.moved(data.len());
                }
                _ => break,
            }
        }
    }
}

impl Exec {
    /// Serves the request.
    pub(super) async fn run(self, link: Arc<SshConnection>) {
        let active = Active::new(&link.activity);
        let _open = self.waiting.open;
        let output = ChannelOutput {
            handle: self.handle,
            id: self.waiting.channel.id(),
            activity: Arc::clone(active.activity()),
        };
        let (channel, _) = self.waiting.channel.split();
        let input = ChannelInput {
            channel,
            has_ended: false,
        };
        let asked = self.user.map(|user| ExecRequest {
            user,
            proven: self.proven,
            command: self.command,
            protocol: self.waiting.protocol,
        });
        let (leave, left) = oneshot::channel();
        let request = Request {
            link: &link,
            output: &output,
            leave,
        };
        let patience = ClientPatience::from_now(&link.state.setup().config.limits);
        // A client that still sends reads the response only if the server receives the bytes at the
        // same time.
        let discarded = async {
            if let Ok(mut input) = left.await {
                input.discard(patience).await;
            }
        };
        tokio::join!(request.answer(asked, input), discarded);
        output.close().await;
    }
}

/// The received command and environment of a request, before they are parsed.
struct ExecRequest {
    user: Option<Arc<str>>,
    proven: Proven,
    command: Vec<u8>,
    protocol: Option<String>,
}

/// A request in flight.
struct Request<'a> {
    link: &'a SshConnection,
    output: &'a ChannelOutput,
    /// The channel for the input of a push whose service has ended before the client.
    leave: oneshot::Sender<ChannelInput>,
}

impl Request<'_> {
    /// Serves the request, and sends its end and its exit status.
    async fn answer(self, asked: Result<ExecRequest>, input: ChannelInput) {
        let (link, output) = (self.link, self.output);
        let mut record = RequestRecord::new(&link.state, link.address, "ssh");
        let done = match asked {
            Ok(asked) => {
                record.user(asked.user.as_deref());
                self.serve(asked, input, &mut record).await
            }
            Err(error) => Err(error),
        };
        record.status(200);
        let mut text = None;
        if let Err(error) = &done {
            record.failed(error);
            text = Some(format!("pronto: {}\n", record::text(error, record.id())));
        }
        if let Err(error) = output.end(text).await {
            record.error(error.to_string());
        }
    }

    async fn serve(
        self,
        asked: ExecRequest,
        input: ChannelInput,
        record: &mut RequestRecord,
    ) -> Result<()> {
        let target = command::parse(&asked.command)?;
        record.service(target.service.name());
        record.repository(target.name.as_str());
        let state = &self.link.state;
        let work = AdmittedRequest {
            setup: state.setup(),
            requester: Requester {
                user: asked.user,
                proven: asked.proven,
                address: self.link.address.ip(),
                protocol: "ssh",
                connection: Some(Arc::clone(&self.link.connection)),
            },
            target,
            protocol: asked.protocol,
            tally: Arc::clone(&record.tally),
            allowance: OnceLock::new(),
        };
        work.check().map_err(|error| match error.kind() {
            ErrorKind::Unauthenticated => {
                Error::new(ErrorKind::Denied, "permission denied: no user has this key")
            }
            _ => error,
        })?;
        // The client may send ahead during this wait.
        let ahead = work.budget();
        ahead.charge(AHEAD_BYTES).map_err(without_room)?;
        let slot = work.slot().await?;
        drop(ahead);
        let patience = work.patience(&slot);
        let counters = Arc::clone(&record.counters);
        let reader = PieceReader::new(input, patience.clone(), counters);
        let Pipe { writer, pieces, .. } = pipe(patience);
        let job = ExecJob {
            state: Arc::clone(state),
            work,
            counters: Arc::clone(&record.counters),
            leave: self.leave,
            slot,
        };
        let task = tokio::task::spawn_blocking(move || job.run(reader, writer));
        let sent = self.output.send(pieces, record).await;
        let crashed = |_| Error::new(ErrorKind::Failed, "internal error: the request panicked");
        task.await.map_err(crashed)?.and(sent)
    }
}

/// The output of a channel.
struct ChannelOutput {
    handle: Handle,
    id: ChannelId,
    activity: Arc<Activity>,
}

impl ChannelOutput {
    /// Sends the output of a service.
    ///
    /// # Errors
    /// Fails with [`ErrorKind::Failed`] if the output is incomplete, or the connection has ended.
    async fn send(&self, mut pieces: ResponsePieces, record: &RequestRecord) -> Result<()> {
        while let Some(piece) = pieces.next().await {
            let piece = piece.map_err(|error| Error::new(ErrorKind::Failed, error.to_string()))?;
            let count = piece.len() as u64;
            self.give(self.handle.data(self.id, piece)).await?;
            record.counters.add_sent(count);
        }
        Ok(())
    }

    /// Sends the error message, the end of the output, and the exit status.
    ///
    /// # Errors
    /// Fails with [`ErrorKind::Failed`] if the connection has ended.
    async fn end(&self, error: Option<String>) -> Result<()> {
        let mut status = 0;
        if let Some(error) = error {
            status = REFUSED;
            let text = self.handle.extended_data(self.id, 1, error);
            self.give(text).await?;
        }
        let sent = self.handle.exit_status_request(self.id, status);
        self.give(sent).await?;
        self.give(self.handle.eof(self.id)).await
    }

    async fn close(&self) {
        // The channel of an ended connection needs no close message.
        let _ = self.give(self.handle.close(self.id)).await;
    }

    /// Waits until the connection has room for a message. If the client receives nothing before the
    /// timeout, the connection ends.
    ///
    /// # Errors
    /// Fails with [`ErrorKind::Failed`] if the connection has ended.
    async fn give<E>(&self, message: impl Future<Output = Result<(), E>>) -> Result<()> {
        let _taking = ExpectedRead::new(&self.activity);
        let given = message.await;
        given.map_err(|_| Error::new(ErrorKind::Failed, UNFINISHED))
    }
}

/// A request on its blocking thread.
struct ExecJob {
    state: Arc<ServerState>,
    work: AdmittedRequest,
    counters: Arc<TransferCounters>,
    leave: oneshot::Sender<ChannelInput>,
    slot: RequestSlot,
}

impl ExecJob {
    fn run(self, mut reader: PieceReader<ChannelInput>, mut writer: PieceWriter) -> Result<()> {
        let _under_way = UnderWay::new(&self.state);
        self.slot.peer().begin_work();
        let streams = RequestStreams {
            input: &mut reader,
            output: &mut writer,
        };
        let done = self.work.open().and_then(|repository| {
            let services = Services::of(&self.state);
            self.work.converse(&repository, &services, streams)
        });
        match &done {
            Ok(()) => writer.finish(None),
            Err(error) => writer.fail(&error.to_string()),
        }
        // A client that has received nothing waits for the advertisement, and sends no pack.
        if self.work.target.service == RequestedService::ReceivePack && self.counters.sent() > 0 {
            // The connection may have ended.
            let _ = self.leave.send(reader.into_source());
        }
        done
    }
}
