//! The state of the conversation, and the queued frames.

use std::collections::VecDeque;
use std::sync::Arc;

use super::receive::{ReceivedFrame, Receiving};
use super::send::SendState;
use super::{Admit, Options, PeerPermissions, Report};
use crate::error::malformed;
use crate::frame::{FrameType, FrameWriter};
use crate::message::{
    Accept, CompleteTips, Credit, Hello, SessionRefusal, TransferDone, WantMessage,
};
use crate::reconcile::{Fingerprinter, Reconciler, SortedSet};
use crate::repository::{OfferedRef, SyncRepository};
use crate::{Error, ErrorKind};

/// The largest number of queued replies, and the largest number of their bytes, up to which frames
/// of the peer are processed.
const MAX_WAITING: usize = 64;
const MAX_WAITING_BYTES: usize = 1024 * 1024;

/// The size in bytes up to which published refs share a frame, far below the limit of a frame.
const PUBLISH_BYTES: usize = 128 * 1024;

/// The phase of a session.
pub(super) enum SessionPhase {
    /// The peer has not sent its greeting.
    Greeting,
    /// Refs are compared.
    Refs(Reconciler<Arc<SortedSet>>),
    /// This side waits for the peer's cut and wants.
    Cut,
    /// Commits are compared.
    Commits(Reconciler<Arc<SortedSet>>),
    /// Segments are transferred in both directions.
    Transfer,
}

/// A session without its queues.
pub(super) struct SessionCore<R> {
    pub(super) options: Options,
    pub(super) admit: Option<Admit<R>>,
    pub(super) admission: Option<PeerPermissions<R>>,
    pub(super) is_initiator: bool,
    pub(super) peer: Option<Hello>,
    pub(super) was_accepted: bool,
    pub(super) stage: SessionPhase,
    pub(super) key: Option<Fingerprinter>,
    pub(super) waiting: VecDeque<(FrameType, Vec<u8>)>,
    pub(super) credits: Vec<Credit>,
    /// The refs of this side that match, sorted by name.
    pub(super) own: Vec<OfferedRef>,
    /// The memory in bytes for refs and commits, which is held until the end of the session.
    pub(super) set_bytes: u64,
    /// The indexes of the refs that the peer lacks.
    pub(super) lacked_by_peer: Vec<usize>,
    /// The marks of the peer's differing refs that are complete here.
    pub(super) complete: Vec<bool>,
    pub(super) wanted: Vec<bool>,
    /// The peer's cut of this side's refs.
    pub(super) peer_cut: Option<CompleteTips>,
    pub(super) peer_want: Option<WantMessage>,
    /// Whether this side sent the last message about refs.
    pub(super) closed_refs: bool,
    pub(super) sending: SendState,
    pub(super) receiving: Receiving,
    pub(super) has_sent_done: bool,
    pub(super) has_done: bool,
    pub(super) was_refused: bool,
    pub(super) report: Report,
}

/// Returns whether a frame contains results for the peer's refs, or ends the list of results.
fn is_result(kind: FrameType) -> bool {
    matches!(kind, FrameType::Publish | FrameType::Done)
}

impl<R: SyncRepository> SessionCore<R> {
    pub(super) fn respond(respond: Option<(Options, Admit<R>)>) -> Self {
        let (options, admit) = match respond {
            Some((options, admit)) => (options, Some(admit)),
            None => (Options::default(), None),
        };
        SessionCore {
            options,
            admit,
            admission: None,
            is_initiator: false,
            peer: None,
            was_accepted: false,
            stage: SessionPhase::Greeting,
            key: None,
            waiting: VecDeque::new(),
            credits: Vec::new(),
            own: Vec::new(),
            set_bytes: 0,
            lacked_by_peer: Vec::new(),
            complete: Vec::new(),
            wanted: Vec::new(),
            peer_cut: None,
            peer_want: None,
            closed_refs: false,
            sending: SendState::default(),
            receiving: Receiving::default(),
            has_sent_done: false,
            has_done: false,
            was_refused: false,
            report: Report::default(),
        }
    }

    pub(super) fn initiate(options: Options, admission: PeerPermissions<R>) -> Result<Self, Error> {
        let mut talk = SessionCore::respond(None);
        talk.options = options;
        talk.is_initiator = true;
        talk.admission = Some(admission);
        talk.greet()?;
        Ok(talk)
    }

    pub(super) fn repository(&mut self) -> Option<&mut R> {
        self.admission.as_mut().map(|each| &mut each.repository)
    }

    /// Drops the repository and the data about it. The results stay in the report.
    pub(super) fn release(&mut self) {
        (self.admit, self.admission) = (None, None);
        (self.stage, self.key) = (SessionPhase::Greeting, None);
        self.waiting.clear();
        self.own = Vec::new();
        self.sending = SendState::default();
    }

    /// Reports the memory that the session holds for the peer's refs and the compared sets to the
    /// repository.
    pub(super) fn hold(&mut self) -> Result<(), Error> {
        let learned = match &self.stage {
            SessionPhase::Refs(reconciler) => reconciler.learned_bytes(),
            _ => 0,
        };
        let bytes = self.set_bytes + learned as u64;
        match &mut self.admission {
            Some(admission) => admission.repository.hold(bytes),
            None => Ok(()),
        }
    }

    pub(super) fn is_greeted(&self) -> bool {
        self.peer.is_some()
    }

    /// Returns whether the peer has sent everything.
    pub(super) fn is_peer_done(&self) -> bool {
        self.has_done && self.receiving.is_over()
    }

    pub(super) fn is_finished(&self) -> bool {
        self.is_peer_done() && self.has_sent_done && self.waiting.is_empty()
    }

    pub(super) fn was_refused(&self) -> bool {
        self.was_refused
    }

    /// Returns whether there is room for the replies to another frame. The results for refs do not
    /// count: their number is that of the peer's refs, and they need credit, which is received in a
    /// frame.
    pub(super) fn has_room(&self) -> bool {
        let answers = self.waiting.iter().filter(|(kind, _)| !is_result(*kind));
        let (mut count, mut bytes) = (0, 0);
        for (_, body) in answers {
            count += 1;
            bytes += body.len();
        }
        count < MAX_WAITING && bytes < MAX_WAITING_BYTES
    }

    pub(super) fn grant(&mut self, credit: Credit) {
        // A peer that has sent its last message needs no credit.
        if !self.is_peer_done() {
            self.credits.push(credit);
        }
    }

    pub(super) fn check_greeted(&self, kind: FrameType) -> Result<(), Error> {
        if self.peer.is_none() {
            return Err(malformed(format!("message {kind:?} before the greeting")));
        }
        Ok(())
    }

    /// Queues the waiting frames, credits first, and then data.
    pub(super) fn flush(&mut self, writer: &mut FrameWriter) -> Result<(), Error> {
        while let Some(credit) = self.credits.first() {
            let mut body = Vec::new();
            credit.write(&mut body);
            if !writer.send(FrameType::Credit, &body)? {
                return Ok(());
            }
            self.credits.remove(0);
        }
        self.put_waiting(writer)?;
        // Publish frames wait for separate credit, and no other frame of this side waits for them.
        if matches!(self.stage, SessionPhase::Transfer)
            && self.waiting.iter().all(|(kind, _)| is_result(*kind))
            && let Some(admission) = &mut self.admission
        {
            let report = &mut self.report;
            (self.sending).run(&mut admission.repository, writer, report)?;
        }
        Ok(())
    }

    fn put_waiting(&mut self, writer: &mut FrameWriter) -> Result<(), Error> {
        while let Some((kind, body)) = self.waiting.front() {
            if !writer.send(*kind, body)? {
                break;
            }
            self.waiting.pop_front();
        }
        Ok(())
    }

    pub(super) fn put(&mut self, kind: FrameType, write: impl FnOnce(&mut Vec<u8>)) {
        let mut body = Vec::new();
        write(&mut body);
        self.waiting.push_back((kind, body));
    }

    /// Processes one frame. For a greeting, returns the window of the peer beyond one full frame.
    pub(super) fn frame(&mut self, kind: FrameType, body: &[u8]) -> Result<Option<u64>, Error> {
        if kind == FrameType::Error {
            let refusal = SessionRefusal::read(body)?;
            self.was_refused = true;
            let kind = ErrorKind::from_code(refusal.code);
            return Err(Error::new(
                kind,
                format!("the peer reports: {}", refusal.text),
            ));
        }
        if self.is_peer_done() {
            return Err(malformed(format!(
                "message {kind:?} after the end of the session"
            )));
        }
        if kind == FrameType::Hello {
            return self.hello(Hello::read(body)?).map(Some);
        }
        self.check_greeted(kind)?;
        if kind == FrameType::Accept {
            return self.accepted(Accept::read(body)?).map(|()| None);
        }
        if !self.was_accepted {
            return Err(malformed(format!(
                "message {kind:?} before the greeting was accepted"
            )));
        }
        match (kind, &mut self.stage) {
            (FrameType::RefRange, SessionPhase::Refs(_)) => self.ref_range(body)?,
            (FrameType::Cut, SessionPhase::Cut) if self.peer_cut.is_none() => {
                self.peer_cut = Some(CompleteTips::read(body)?);
            }
            (FrameType::Want, SessionPhase::Cut) if self.peer_cut.is_some() => self.want(body)?,
            (FrameType::CommitRange, SessionPhase::Commits(_)) => self.commit_range(body)?,
            (FrameType::Done, SessionPhase::Transfer) => self.done(TransferDone::read(body)?)?,
            (_, SessionPhase::Transfer) => self.transfer(kind, body)?,
            _ => return Err(malformed(format!("message {kind:?} out of turn"))),
        }
        Ok(None)
    }

    fn transfer(&mut self, kind: FrameType, body: &[u8]) -> Result<(), Error> {
        match kind {
            FrameType::SegmentAck => return self.sending.acknowledged(body, &mut self.report),
            FrameType::Publish => {
                let bytes = (self.receiving).published(body, &self.own, &mut self.report)?;
                self.set_bytes += bytes;
                return self.hold();
            }
            _ => {}
        }
        let Some(admission) = &mut self.admission else {
            return Ok(());
        };
        let (repository, format) = (&mut admission.repository, admission.object_format);
        let frame = ReceivedFrame { kind, body };
        let outcome = (self.receiving).frame(frame, repository, format, &mut self.report)?;
        if let Some(ack) = outcome.ack {
            self.put(FrameType::SegmentAck, |out| ack.write(out));
        }
        if outcome.is_complete {
            self.publish()?;
        }
        Ok(())
    }

    /// Publishes the received history, and reports the results for the peer's refs.
    pub(super) fn publish(&mut self) -> Result<(), Error> {
        let receives = self.directions().receives;
        if receives && !self.report.is_dry_run {
            let (offers, arrived) = self.offers();
            if let Some(admission) = &mut self.admission {
                self.report.published = admission.repository.publish(&offers, &arrived)?;
            }
            let terms = super::receive::ResultLimits {
                limit_bytes: PUBLISH_BYTES,
                with_reasons: self.peer_takes_reasons(),
            };
            for body in super::receive::bodies(&self.report.published, terms) {
                self.waiting.push_back((FrameType::Publish, body));
            }
        }
        let is_durable = !self.report.is_dry_run;
        self.put(FrameType::Done, |out| {
            TransferDone { is_durable }.write(out)
        });
        self.has_sent_done = true;
        Ok(())
    }

    /// Records that the peer has received everything that it wanted. The peer may still send.
    fn done(&mut self, done: TransferDone) -> Result<(), Error> {
        if self.sending.is_under_way() || self.has_done {
            return Err(malformed(
                "the session ends before all segments were received",
            ));
        }
        if !done.is_durable && !self.report.is_dry_run {
            return Err(Error::new(
                ErrorKind::Repository,
                "the peer could not store the received objects",
            ));
        }
        self.has_done = true;
        Ok(())
    }
}
