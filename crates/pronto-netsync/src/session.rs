//! The session: the order of messages from the greeting to the end.
//!
//! Bytes of the peer go in ([`Session::read_from`], [`Session::accept`]), [`Session::advance`]
//! processes them, and bytes for the peer come out ([`Session::write_to`]). There is no socket,
//! clock or thread here: the caller waits, and ends a session that takes too long.
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
//! The directions of the transfer are independent. No statement of the peer is trusted before it is
//! checked: the session checks the order, the counts and the budget, and the [`Repository`] checks
//! everything about objects.
//!
//! Costs: received bytes are used in place, and sent segments in memory are not copied. A session
//! holds two queues, the refs that differ, the commits above the common ones (if both sides have
//! news), and one segment.

mod agree;
mod conversation;
mod greet;
mod receive;
mod send;

use std::io::{self, Read, Write};

use crate::frame::{Channel, DEFAULT_WINDOW_BYTES, FrameReader, FrameType, FrameWriter};
use crate::message::{Credit, Globs, Hello, ObjectFormat, Plan, PublishedRef, Refusal, Role};
use crate::repository::{Matcher, Offer, Repository};
use crate::{Error, ErrorKind};

use conversation::Conversation;

/// The version of the protocol.
pub const VERSION: u64 = 1;

/// The maximum bytes that are read from a peer before its greeting is complete.
pub const GREETING_BYTES: usize = 16 * 1024;

const LONG_GREETING: &str = "a greeting of more than 16384 bytes";

/// Options of one side of a session.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Options {
    /// The refs that take part, as stated to the peer.
    pub globs: Globs,
    /// The repository that is meant, as the peer names it; empty if it has only one.
    pub repository: Vec<u8>,
    /// Thirty-two unpredictable bytes, new for each session.
    pub nonce: [u8; 32],
    /// The number of bytes that may be under way to this side, for each channel.
    pub window_bytes: u64,
    /// The number of bytes that may wait to be written.
    pub queue_bytes: usize,
    /// Whether to find out only what would be done. One side is enough.
    pub is_dry_run: bool,
    /// Whether histories that have nothing in common may become one. Both sides have to agree.
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

/// The permissions of a peer in a session.
#[derive(Debug)]
pub struct Admission<R> {
    /// The repository, as that peer may see it.
    pub repository: R,
    /// The format of its object ids.
    pub object_format: ObjectFormat,
    /// The role of this side.
    pub role: Role,
    /// Which refs the peer may see and give at all. It is not told.
    pub limits: Matcher,
}

/// The progress of a session, and its result.
#[derive(Clone, Debug, Default)]
#[non_exhaustive]
pub struct Report {
    /// Refs of the peer that are not the same here, by name.
    pub theirs: Vec<Offer>,
    /// For each of them whether its history had to come.
    pub incoming: Vec<bool>,
    /// Refs of this side that are not the same at the peer's, by name.
    pub ours: Vec<Offer>,
    /// For each of them whether its history had to go.
    pub outgoing: Vec<bool>,
    /// The plan of the peer, when it is known.
    pub incoming_plan: Option<Plan>,
    /// The plan of this side, when it is known.
    pub outgoing_plan: Option<Plan>,
    /// Frames that came.
    pub received_frames: u64,
    /// Frames that moved the session on: all but credits and pieces of segments. The protocol and the
    /// content that is exchanged bound their number.
    pub received_steps: u64,
    /// Bytes of segments that came.
    pub received_bytes: u64,
    /// Segments that came and are durable.
    pub received_segments: u64,
    /// Bytes of segments that were queued.
    pub sent_bytes: u64,
    /// Segments that the peer said are durable.
    pub confirmed_segments: u64,
    /// The results for the peer's refs on this side.
    pub published: Vec<PublishedRef>,
    /// The results for this side's refs at the peer.
    pub published_there: Vec<PublishedRef>,
    /// Whether one of the two sides only wanted to know.
    pub is_dry_run: bool,
}

/// One side of a session.
pub struct Session<R> {
    reader: FrameReader,
    writer: FrameWriter,
    talk: Conversation<R>,
    /// Whether it ended with an error.
    has_failed: bool,
}

/// Decides by its greeting whether a peer is admitted.
pub type Admit<R> = Box<dyn FnOnce(&Hello) -> Result<Admission<R>, Error> + Send>;

impl<R: Repository> Session<R> {
    /// The side that speaks first. Its greeting is queued.
    ///
    /// # Errors
    /// If a name or the globs are too long for the protocol.
    pub fn initiate(options: Options, admission: Admission<R>) -> Result<Self, Error> {
        let mut session = Session::new(&options, None);
        session.talk = Conversation::initiate(options, admission)?;
        session.flush()?;
        Ok(session)
    }

    /// Creates the responding side. `admit` sees the greeting before anything is sent about this
    /// side.
    pub fn respond(options: Options, admit: Admit<R>) -> Self {
        Session::new(&options.clone(), Some((options, admit)))
    }

    fn new(options: &Options, respond: Option<(Options, Admit<R>)>) -> Self {
        Session {
            reader: FrameReader::new(options.window_bytes),
            writer: FrameWriter::new(options.queue_bytes, 0),
            talk: Conversation::respond(respond),
            has_failed: false,
        }
    }

    /// Reads once from `source`. Returns the number of bytes; 0 means the end. Call it only if
    /// [`wants_input`](Self::wants_input) returns true.
    ///
    /// # Errors
    /// Those of the source.
    pub fn read_from(&mut self, source: &mut (impl Read + ?Sized)) -> io::Result<usize> {
        self.reader.read_from(source)
    }

    /// Copies as many of `bytes` as there is room for, and returns their number.
    pub fn accept(&mut self, bytes: &[u8]) -> usize {
        self.reader.accept(bytes)
    }

    /// Writes queued bytes once to `sink`. Returns the number of bytes that it accepted.
    ///
    /// # Errors
    /// Those of the sink.
    pub fn write_to(&mut self, sink: &mut (impl Write + ?Sized)) -> io::Result<usize> {
        self.writer.write_to(sink)
    }

    /// Whether something waits to be written.
    pub fn wants_output(&self) -> bool {
        !self.writer.queue().is_empty()
    }

    /// Returns whether more input can be accepted now. If not, the peer does not read fast enough.
    pub fn wants_input(&self) -> bool {
        !self.has_failed && !self.talk.is_peer_done() && self.reader.queue().free_bytes() > 0
    }

    /// Processes all received frames, as long as there is room for the replies. Call it after each
    /// read and after each write.
    ///
    /// # Errors
    /// The session is over: the peer violated the protocol or refused, or a repository failed. The
    /// message for the peer is queued and should be written.
    pub fn advance(&mut self) -> Result<(), Error> {
        if self.has_failed {
            return Ok(());
        }
        self.run().inspect_err(|error| self.fail(error))
    }

    /// Whether all was said on both sides. What is queued still has to be written.
    pub fn is_finished(&self) -> bool {
        self.talk.is_finished()
    }

    /// Returns whether the peer has sent its greeting and was admitted.
    pub fn is_greeted(&self) -> bool {
        self.talk.is_greeted()
    }

    /// Whether the peer has ended it, and said why.
    pub fn was_refused(&self) -> bool {
        self.talk.was_refused()
    }

    /// The error of a stream that ended too early.
    ///
    /// # Errors
    /// Always, unless the session was over.
    pub fn end_of_input(&mut self) -> Result<(), Error> {
        if self.has_failed || self.talk.is_peer_done() {
            return Ok(());
        }
        self.has_failed = true;
        Err(Error::new(
            ErrorKind::Closed,
            "the peer ended the connection before the session was over",
        ))
    }

    /// Ends the session for a reason of the caller, sends it to the peer, and closes the
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

    /// Returns the progress.
    pub fn report(&self) -> &Report {
        &self.talk.report
    }

    /// The repository, once there is one.
    pub fn repository(&mut self) -> Option<&mut R> {
        self.talk.repository()
    }

    /// The queues, for their counters: received, sent.
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
            // The replies to a frame must find room before the next frame is processed.
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
        let kind = *error.kind();
        // Errors of a repository are reported only to its owner.
        let text = match kind {
            ErrorKind::Repository => "the repository of the peer failed".to_owned(),
            _ => error.message().to_owned(),
        };
        let mut body = Vec::new();
        let refusal = Refusal {
            code: kind.code(),
            text,
        };
        refusal.write(&mut body);
        // If there is no room the peer does not read anyway.
        let _ = self.writer.send(FrameType::Error, &body);
    }
}
