//! The fetch in versions 0 and 1 (`gitprotocol-pack(5)`), over a persistent connection or over separate
//! requests.

use bstr::{BStr, ByteSlice};
use pronto_hash::{Kind, ObjectId};

use super::v2::{hex, write_have};
use super::{
    Acknowledgment, FIRST_HAVES, FetchInfo, MAX_IN_VAIN, Negotiator, NextStep, Request,
    ShallowUpdate, next_stateful, next_stateless, parse_acknowledgment, unsupported,
};
use crate::advertisement::{ServerGreeting, unexpected};
use crate::capabilities::{AGENT, Capabilities};
use crate::error::{Error, malformed};
use crate::pktline::{self, Packet};

/// A single fetch in version 0 or 1.
pub struct FetchV0<'a> {
    request: &'a Request,
    capabilities: &'a Capabilities,
    object_format: Kind,
    stateless: bool,
    mode: Mode,
    no_done: bool,
    sideband: bool,
    wants_sent: bool,
    includes_sent: bool,
    done_sent: bool,
    state: ResponseStage,
    /// The common commits, which every request of a stateless connection repeats.
    common: Vec<ObjectId>,
    haves_to_send: usize,
    in_vain: usize,
    got_common: bool,
    got_ready: bool,
    shallow: ShallowUpdate,
    /// The negotiation steps since the last call of `take_steps`, in Git's words.
    steps: Vec<String>,
    session: Option<&'a BStr>,
}

/// The mode of acknowledgements (`multi_ack`).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Mode {
    /// A single acknowledgement.
    Single,
    /// One for each common commit (`multi_ack`).
    Multi,
    /// One for each common commit, and a final `ready` (`multi_ack_detailed`).
    Detailed,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum ResponseStage {
    /// Receiving lines about the shallow boundary, up to a flush packet.
    Shallow,
    /// Receiving acknowledgements.
    Acknowledgments,
    /// Receiving the last acknowledgement after `ready`, if no `done` is required (`no-done`).
    LastAcknowledgment,
}

impl<'a> FetchV0<'a> {
    /// Starts a fetch of `request` from the server that sent `greeting`. `stateless` means that each
    /// request reaches a new process (HTTP).
    ///
    /// # Errors
    /// Fails with [`ErrorKind::Unsupported`](crate::ErrorKind::Unsupported) if the server does not
    /// support the request.
    pub fn new(
        request: &'a Request,
        greeting: &'a ServerGreeting,
        stateless: bool,
    ) -> Result<Self, Error> {
        let capabilities = &greeting.capabilities;
        check_shallow_support(request, capabilities)?;
        let mode = if capabilities.has("multi_ack_detailed") {
            Mode::Detailed
        } else if capabilities.has("multi_ack") {
            Mode::Multi
        } else {
            Mode::Single
        };
        let no_done = stateless && mode == Mode::Detailed && capabilities.has("no-done");
        Ok(FetchV0 {
            request,
            capabilities,
            object_format: greeting.object_format,
            stateless,
            mode,
            no_done,
            sideband: capabilities.has("side-band-64k") || capabilities.has("side-band"),
            wants_sent: false,
            includes_sent: false,
            done_sent: false,
            state: ResponseStage::Acknowledgments,
            common: Vec::new(),
            haves_to_send: FIRST_HAVES,
            in_vain: 0,
            got_common: false,
            got_ready: false,
            shallow: ShallowUpdate::default(),
            steps: Vec::new(),
            session: None,
        })
    }

    /// Sends the session id of this side, if the remote side sends its own.
    #[must_use]
    pub fn with_session(mut self, id: Option<&'a BStr>) -> Self {
        self.session = id;
        self
    }

    /// Removes and returns the negotiation steps since the last call.
    pub fn take_steps(&mut self) -> Vec<String> {
        std::mem::take(&mut self.steps)
    }

    fn record_step(&mut self, step: impl FnOnce() -> String) {
        if self.request.reports_steps {
            self.steps.push(step());
        }
    }

    /// Appends the next request to `out`. Returns the next step: [`NextStep::Receive`], or [`NextStep::Pack`]
    /// if the server acknowledges only once and has done so.
    ///
    /// # Errors
    /// Fails with [`ErrorKind::Local`](crate::ErrorKind::Local) if the negotiator fails, or
    /// [`ErrorKind::Malformed`](crate::ErrorKind::Malformed) if a value is longer than a packet.
    pub fn write_request(
        &mut self,
        negotiator: &mut dyn Negotiator,
        out: &mut Vec<u8>,
    ) -> Result<NextStep, Error> {
        let deepens = !self.request.deepen.is_none();
        let first = !std::mem::replace(&mut self.wants_sent, true);
        if first || self.stateless {
            self.write_wants(out)?;
            if deepens {
                self.state = ResponseStage::Shallow;
                // Over HTTP each response to a deepening repeats the shallow boundary.
                self.shallow = ShallowUpdate::default();
                if !self.stateless {
                    return Ok(NextStep::Receive);
                }
            }
            if self.stateless {
                for id in &self.common {
                    write_have(id, out)?;
                }
            }
        }
        let gave_up = self.got_ready || (self.got_common && self.in_vain >= MAX_IN_VAIN);
        if gave_up && !self.got_ready {
            self.record_step(|| "giving up".to_owned());
        }
        let single_found = self.mode == Mode::Single && self.got_common;
        let (mut added, mut is_exhausted) = (self.write_includes(out)?, false);
        while !gave_up && !single_found && added < self.haves_to_send {
            let Some(id) = negotiator.next_have()? else {
                is_exhausted = true;
                break;
            };
            write_have(&id, out)?;
            self.record_step(|| format!("have {id}"));
            added += 1;
        }
        self.in_vain += added;
        self.haves_to_send = if self.stateless {
            next_stateless(self.haves_to_send)
        } else {
            next_stateful(self.haves_to_send)
        };
        // As in Git, the last haves are sent together with `done`, which saves a round.
        if added > 0 && !is_exhausted {
            pktline::write_flush(out);
            return Ok(NextStep::Receive);
        }
        pktline::write(out, b"done\n")?;
        self.record_step(|| "done".to_owned());
        self.done_sent = true;
        if single_found && !self.stateless {
            return Ok(self.pack());
        }
        Ok(NextStep::Receive)
    }

    /// Appends the haves of [`Request::includes`]. Returns the number of new ones.
    fn write_includes(&mut self, out: &mut Vec<u8>) -> Result<usize, Error> {
        let includes = &self.request.includes;
        let is_first = !std::mem::replace(&mut self.includes_sent, true);
        if is_first || self.stateless {
            for id in includes {
                write_have(id, out)?;
                self.record_step(|| format!("have {id}"));
            }
        }
        Ok(if is_first { includes.len() } else { 0 })
    }

    fn write_wants(&self, out: &mut Vec<u8>) -> Result<(), Error> {
        let mut words = self.words();
        for want in &self.request.wants {
            let id = hex(want);
            pktline::write_parts(out, &[b"want ", id.as_bytes(), words.as_bytes(), b"\n"])?;
            words.clear();
        }
        let deepen = &self.request.deepen;
        for id in &self.request.shallow {
            pktline::write_parts(out, &[b"shallow ", hex(id).as_bytes()])?;
        }
        if let Some(depth) = deepen.depth {
            pktline::write(out, format!("deepen {depth}").as_bytes())?;
        }
        if let Some(since) = deepen.since {
            pktline::write(out, format!("deepen-since {since}").as_bytes())?;
        }
        for name in &deepen.not {
            pktline::write_parts(out, &[b"deepen-not ", name])?;
        }
        if let Some(filter) = &self.request.filter
            && self.capabilities.has("filter")
        {
            pktline::write_parts(out, &[b"filter ", filter])?;
        }
        pktline::write_flush(out);
        Ok(())
    }

    /// Returns the capabilities that follow the first want, each with a space before it.
    fn words(&self) -> String {
        let request = self.request;
        let sideband = if self.capabilities.has("side-band-64k") {
            "side-band-64k"
        } else {
            "side-band"
        };
        let multi = match self.mode {
            Mode::Detailed => "multi_ack_detailed",
            _ => "multi_ack",
        };
        let wished = [
            (multi, self.mode != Mode::Single),
            ("no-done", self.no_done),
            (sideband, self.sideband),
            ("deepen-relative", request.deepen.relative),
            ("thin-pack", request.thin_pack),
            ("no-progress", request.no_progress),
            ("include-tag", request.include_tag),
            ("ofs-delta", true),
            ("deepen-since", request.deepen.since.is_some()),
            ("deepen-not", !request.deepen.not.is_empty()),
            ("filter", request.filter.is_some()),
        ];
        let mut words = String::new();
        for (word, _) in wished
            .iter()
            .filter(|(word, wished)| *wished && self.capabilities.has(word))
        {
            words.push(' ');
            words.push_str(word);
        }
        if self.capabilities.has("agent") {
            words.push_str(" agent=");
            words.push_str(AGENT);
        }
        if let Some(id) = self.session.filter(|_| self.capabilities.has("session-id")) {
            words.push_str(&format!(" session-id={id}"));
        }
        words
    }

    /// Takes one packet of the response.
    ///
    /// # Errors
    /// Fails with [`ErrorKind::Malformed`](crate::ErrorKind::Malformed) if the packet is not valid at
    /// its position, or [`ErrorKind::Local`](crate::ErrorKind::Local) if the negotiator fails.
    pub fn receive(
        &mut self,
        packet: Packet<'_>,
        negotiator: &mut dyn Negotiator,
    ) -> Result<NextStep, Error> {
        match (self.state, packet) {
            (ResponseStage::Shallow, Packet::Flush) => {
                self.state = ResponseStage::Acknowledgments;
                Ok(if self.stateless {
                    NextStep::Receive
                } else {
                    NextStep::Send
                })
            }
            (ResponseStage::Shallow, Packet::Data(_)) => {
                let line = packet.text().unwrap_or_default();
                if self.shallow.push(line, self.object_format)? {
                    Ok(NextStep::Receive)
                } else {
                    Err(unexpected(line))
                }
            }
            (_, Packet::Data(_)) => {
                self.receive_acknowledgment(packet.text().unwrap_or_default(), negotiator)
            }
            _ => Err(malformed("expected ACK/NAK, got a flush packet")),
        }
    }

    fn receive_acknowledgment(
        &mut self,
        line: &[u8],
        negotiator: &mut dyn Negotiator,
    ) -> Result<NextStep, Error> {
        let acknowledgment = parse_acknowledgment(line, self.object_format)?;
        self.record_acknowledgment(line);
        match acknowledgment {
            Acknowledgment::Nak if self.done_sent => Ok(self.pack()),
            Acknowledgment::Nak if self.got_ready && self.no_done => {
                self.state = ResponseStage::LastAcknowledgment;
                Ok(NextStep::Receive)
            }
            Acknowledgment::Nak => Ok(NextStep::Send),
            Acknowledgment::Final(_) if self.done_sent => Ok(self.pack()),
            Acknowledgment::Final(_) if self.state == ResponseStage::LastAcknowledgment => {
                Ok(self.pack())
            }
            Acknowledgment::Final(id) => {
                self.note(id, negotiator)?;
                Ok(NextStep::Send)
            }
            Acknowledgment::Common(id) => {
                self.note(id, negotiator)?;
                Ok(NextStep::Receive)
            }
            Acknowledgment::Ready(id) => {
                self.got_ready = true;
                if let Some(id) = id {
                    self.note(id, negotiator)?;
                }
                Ok(NextStep::Receive)
            }
        }
    }

    /// Records an acknowledgement as a step, with Git's number of its kind.
    fn record_acknowledgment(&mut self, line: &[u8]) {
        let Some(rest) = line.strip_prefix(b"ACK ") else {
            return;
        };
        let (id, kind) = rest.split_once_str(" ").unwrap_or((rest, b""));
        let number = match kind {
            b"" => 1,
            b"continue" => 2,
            b"common" => 3,
            _ => 4,
        };
        self.record_step(|| format!("got ack ({number}) {}", id.as_bstr()));
    }

    fn note(&mut self, id: ObjectId, negotiator: &mut dyn Negotiator) -> Result<(), Error> {
        self.got_common = true;
        self.in_vain = 0;
        if !negotiator.acknowledge(&id)? && self.stateless {
            self.common.push(id);
        }
        Ok(())
    }

    fn pack(&self) -> NextStep {
        NextStep::Pack {
            sideband: self.sideband,
        }
    }

    /// Returns whether a response over HTTP may end here and another request may follow: a server that
    /// acknowledges only once sends nothing for haves that it does not have.
    pub fn may_end(&self) -> bool {
        self.stateless && !self.done_sent && self.state == ResponseStage::Acknowledgments
    }

    /// Returns the changes of the shallow boundary, which are complete when the pack follows.
    pub fn into_fetch_info(self) -> FetchInfo {
        FetchInfo {
            shallow: self.shallow,
            ..FetchInfo::default()
        }
    }
}

fn check_shallow_support(request: &Request, capabilities: &Capabilities) -> Result<(), Error> {
    let deepen = &request.deepen;
    let needed = [
        (
            "shallow",
            deepen.depth.is_some() || !request.shallow.is_empty(),
            "Server does not support shallow clients",
        ),
        (
            "deepen-since",
            deepen.since.is_some(),
            "Server does not support --shallow-since",
        ),
        (
            "deepen-not",
            !deepen.not.is_empty(),
            "Server does not support --shallow-exclude",
        ),
        (
            "deepen-relative",
            deepen.relative,
            "Server does not support --deepen",
        ),
    ];
    match needed
        .iter()
        .find(|(name, needed, _)| *needed && !capabilities.has(name))
    {
        Some((_, _, message)) => Err(unsupported(message)),
        None => Ok(()),
    }
}
