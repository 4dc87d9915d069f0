//! The session: the order of messages from the greeting to the end.
//!
//! The caller passes in the bytes of the peer ([`SyncSession::read_from`], [`SyncSession::accept`]),
//! processes them ([`SyncSession::advance`]), and writes the bytes for the peer
//! ([`SyncSession::write_to`]). The session uses no socket, clock or thread: the caller waits for
//! input, and ends a session after a timeout.
//!
//! ```text
//! initiator                              responder
//! HELLO                          ->
//!                                <-      HELLO ACCEPT REFRANGE
//! ACCEPT REFRANGE CUT WANT       ->
//!                                <-      CUT WANT (COMRANGE, if both have news)
//! (COMRANGE) PLAN SEGMENT...     ->
//!                                <-      (COMRANGE) PLAN SEGMENT... SENT
//! SENT PUBLISH DONE              ->
//!                                <-      PUBLISH DONE
//! ```
//!
//! The directions of the transfer are independent. Data of the peer is untrusted until it is
//! checked: the session checks the order, the counts and the budget, and the [`SyncRepository`] checks
//! the objects.
//!
//! Cost: received bytes are used in place, and sent segments in memory are not copied. A session
//! holds two queues, the differing refs, the commits that are not reachable from common ones (if
//! both sides have new commits), and one segment.

mod agree;
mod conversation;
mod greet;
mod receive;
mod send;

use std::io::{self, Read, Write};

use crate::frame::{Channel, DEFAULT_WINDOW_BYTES, FrameReader, FrameType, FrameWriter};
use crate::message::{
    Credit, Globs, Hello, ObjectFormat, PublishedRef, SessionRefusal, TransferPlan, TransferRole,
};
use crate::repository::{OfferedRef, RefMatcher, SyncRepository};
use crate::{Error, ErrorKind};

use conversation::SessionCore;

/// The version of the protocol.
pub const VERSION: u64 = 1;

/// The largest number of bytes that are read from a peer before its greeting is complete.
pub const GREETING_BYTES: usize = 16 * 1024;

const LONG_GREETING: &str = "the greeting has more than 16384 bytes";

/// The options of one side of a session.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Options {
    /// The refs to synchronise, as sent to the peer.
    pub globs: Globs,
    /// The name of the requested repository at the peer, or an empty name if the peer has only one.
    pub repository: Vec<u8>,
    /// Thirty-two unpredictable bytes, different for each session.
    pub nonce: [u8; 32],
    /// The number of bytes that may be in flight to this side, for each channel.
    pub window_bytes: u64,
    /// The number of bytes that may be queued for writing.
    pub queue_bytes: usize,
    /// Determine the transfers without doing them (`--dry-run`). One side is sufficient.
    pub is_dry_run: bool,
    /// Allow unrelated histories, which have no common commit, to be joined (`--allow-unrelated`).
    /// Both sides have to allow this.
    pub allows_unrelated: bool,
}

impl Default for Options {
    fn default() -> Self {
        Options {
            globs: Globs::default(),
            repository: Vec::new(),
            nonce: [0; 32],
            window_bytes: DEFAULT_WINDOW_BYTES,
            queue_bytes: DEFAULT_WINDOW_BYTES as usize,
            is_dry_run: false,
            allows_unrelated: false,
        }
    }
}

/// The repository and the permissions for a peer in a session.
#[derive(Debug)]
pub struct PeerPermissions<R> {
    /// The repository, restricted to the refs and objects that the peer may see.
    pub repository: R,
    /// The object format of the repository.
    pub object_format: ObjectFormat,
    /// The role of this side.
    pub role: TransferRole,
    /// The refs that the peer may see and send. The peer does not get this list.
    pub limits: RefMatcher,
}

/// The progress of a session, and its result.
#[derive(Clone, Debug, Default)]
#[non_exhaustive]
pub struct Report {
    /// The refs of the peer that are not identical here, sorted by name.
    pub theirs: Vec<OfferedRef>,
    /// A mark for each of these refs, set if its history has to be received.
    pub incoming: Vec<bool>,
    /// The refs of this side that are not identical at the peer, sorted by name.
    pub ours: Vec<OfferedRef>,
    /// A mark for each of these refs, set if its history has to be sent.
    pub outgoing: Vec<bool>,
    /// The plan of the peer, after it was received.
    pub incoming_plan: Option<TransferPlan>,
    /// The plan of this side, after it was made.
    pub outgoing_plan: Option<TransferPlan>,
    /// The number of received frames.
    pub received_frames: u64,
    /// The number of received frames that advance the session: all except credits and pieces of
    /// segments. The protocol and the exchanged content limit this number.
    pub received_steps: u64,
    /// The number of received bytes of segments.
    pub received_bytes: u64,
    /// The number of received segments that are durable.
    pub received_segments: u64,
    /// The number of bytes of segments that were queued for sending.
    pub sent_bytes: u64,
    /// The number of segments that the peer has acknowledged as durable.
    pub confirmed_segments: u64,
    /// The results of the updates of the peer's refs on this side.
    pub published: Vec<PublishedRef>,
    /// The results of the updates of this side's refs at the peer.
    pub published_there: Vec<PublishedRef>,
    /// Whether one of the two sides requested a dry run.
    pub is_dry_run: bool,
}

/// A session, from the view of one side.
pub struct SyncSession<R> {
    reader: FrameReader,
    writer: FrameWriter,
    talk: SessionCore<R>,
    /// Whether the session ended with an error.
    has_failed: bool,
}

/// The function that decides, given the greeting of a peer, whether the peer is admitted.
pub type Admit<R> = Box<dyn FnOnce(&Hello) -> Result<PeerPermissions<R>, Error> + Send>;

impl<R: SyncRepository> SyncSession<R> {
    /// Creates the initiating side, and queues its greeting.
    ///
    /// # Errors
    /// Fails with [`ErrorKind::Unsupported`] if a name or the globs are too long for the protocol.
    pub fn initiate(options: Options, admission: PeerPermissions<R>) -> Result<Self, Error> {
        let mut session = SyncSession::new(&options, None);
        session.talk = SessionCore::initiate(options, admission)?;
        session.flush()?;
        Ok(session)
    }

    /// Creates the responding side. `admit` gets the greeting before any data about this side is
    /// sent.
    pub fn respond(options: Options, admit: Admit<R>) -> Self {
        SyncSession::new(&options.clone(), Some((options, admit)))
    }

    fn new(options: &Options, respond: Option<(Options, Admit<R>)>) -> Self {
        SyncSession {
            reader: FrameReader::new(options.window_bytes),
            writer: FrameWriter::new(options.queue_bytes, 0),
            talk: SessionCore::respond(respond),
            has_failed: false,
        }
    }

    /// Reads once from `source`. Returns the number of bytes, or 0 at the end of `source`. Call
    /// this method only if [`wants_input`](Self::wants_input) returns true.
    ///
    /// # Errors
    /// Fails with the errors of `source`.
    pub fn read_from(&mut self, source: &mut (impl Read + ?Sized)) -> io::Result<usize> {
        self.reader.read_from(source)
    }

    /// Copies as many of `bytes` as there is room for. Returns their number.
    pub fn accept(&mut self, bytes: &[u8]) -> usize {
        self.reader.accept(bytes)
    }

    /// Writes queued bytes once to `sink`. Returns the number of bytes that it accepted.
    ///
    /// # Errors
    /// Fails with the errors of `sink`.
    pub fn write_to(&mut self, sink: &mut (impl Write + ?Sized)) -> io::Result<usize> {
        self.writer.write_to(sink)
    }

    /// Returns whether bytes are queued for writing.
    pub fn wants_output(&self) -> bool {
        !self.writer.queue().is_empty()
    }

    /// Returns whether more input can be accepted now. If not, the peer does not read fast enough.
    pub fn wants_input(&self) -> bool {
        !self.has_failed && !self.talk.is_peer_done() && self.reader.queue().free_bytes() > 0
    }

    /// Processes all received frames, as long as there is room for the replies. Call this method
    /// after each read and after each write.
    ///
    /// # Errors
    /// Fails if the peer violated the protocol or refused the session, or a repository operation
    /// failed. The session is over, and the error message for the peer is queued and should be
    /// written.
    pub fn advance(&mut self) -> Result<(), Error> {
        if self.has_failed {
            return Ok(());
        }
        self.run().inspect_err(|error| self.fail(error))
    }

    /// Returns whether both sides have completed the session. Queued bytes still have to be
    /// written.
    pub fn is_finished(&self) -> bool {
        self.talk.is_finished()
    }

    /// Returns whether the peer has sent its greeting and was admitted.
    pub fn is_greeted(&self) -> bool {
        self.talk.is_greeted()
    }

    /// Returns whether the peer has ended the session with an error message.
    pub fn was_refused(&self) -> bool {
        self.talk.was_refused()
    }

    /// Reports that the stream ended.
    ///
    /// # Errors
    /// Fails with [`ErrorKind::Closed`] unless the session was over.
    pub fn end_of_input(&mut self) -> Result<(), Error> {
        if self.has_failed || self.talk.is_peer_done() {
            return Ok(());
        }
        self.has_failed = true;
        Err(Error::new(
            ErrorKind::Closed,
            "the peer closed the connection before the end of the session",
        ))
    }

    /// Ends the session with an error of the caller, sends the error to the peer, and drops the
    /// repository.
    pub fn refuse(&mut self, error: &Error) {
        if !self.has_failed {
            self.fail(error);
        }
        self.release();
    }

    /// Drops the repository and its resources. The session is over.
    pub fn release(&mut self) {
        self.has_failed = true;
        self.talk.release();
    }

    /// Returns the progress of the session.
    pub fn report(&self) -> &Report {
        &self.talk.report
    }

    /// Returns the repository, after it was opened.
    pub fn repository(&mut self) -> Option<&mut R> {
        self.talk.repository()
    }

    /// Returns the queues, for their counters: the receive queue and the send queue.
    pub fn queues(
        &self,
    ) -> (
        &pronto_io::queue::ReceiveQueue,
        &pronto_io::queue::SendQueue,
    ) {
        (self.reader.queue(), self.writer.queue())
    }

    fn run(&mut self) -> Result<(), Error> {
        loop {
            self.flush()?;
            // There must be room for the replies to a frame before the next frame is processed.
            if !self.talk.has_room() {
                return Ok(());
            }
            let is_greeting = !self.talk.is_greeted();
            let waiting = self.reader.waiting_bytes();
            let Some(frame) = self.reader.peek()? else {
                if is_greeting && waiting > GREETING_BYTES {
                    return Err(crate::error::exceeded(LONG_GREETING));
                }
                return Ok(());
            };
            if is_greeting && frame.body.len() > GREETING_BYTES {
                return Err(crate::error::exceeded(LONG_GREETING));
            }
            if !matches!(frame.kind, FrameType::Credit | FrameType::Data) {
                self.talk.report.received_steps += 1;
            }
            if frame.kind == FrameType::Credit {
                let credit = Credit::read(frame.body)?;
                self.talk.check_greeted(frame.kind)?;
                self.writer.grant(credit.channel, credit.bytes)?;
            } else if let Some(window) = self.talk.frame(frame.kind, frame.body)? {
                for channel in [Channel::Refs, Channel::Commits, Channel::Transfer] {
                    self.writer.grant(channel, window)?;
                }
            }
            self.reader.consume();
            self.talk.report.received_frames += 1;
            for channel in [Channel::Refs, Channel::Commits, Channel::Transfer] {
                if let Some(bytes) = self.reader.take_grant(channel) {
                    self.talk.grant(Credit { channel, bytes });
                }
            }
        }
    }

    /// Queues frames as far as there is room and credit.
    fn flush(&mut self) -> Result<(), Error> {
        self.talk.flush(&mut self.writer)
    }

    fn fail(&mut self, error: &Error) {
        self.has_failed = true;
        if self.talk.was_refused() {
            return;
        }
        let kind = error.kind();
        // The details of a repository error are reported only to the owner of the repository.
        let text = match kind {
            ErrorKind::Repository => "an operation on the repository failed".to_owned(),
            _ => error.message().to_owned(),
        };
        let mut body = Vec::new();
        let refusal = SessionRefusal {
            code: kind.code(),
            text,
        };
        refusal.write(&mut body);
        // If there is no room, the peer does not read its input.
        let _ = self.writer.send(FrameType::Error, &body);
    }
}
