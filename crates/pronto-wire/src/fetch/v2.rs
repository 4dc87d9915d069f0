//! The command `fetch` of version 2 (`gitprotocol-v2(5)`).

use std::collections::HashSet;

use bstr::{BStr, ByteSlice as _};
use pronto_hash::{Kind, ObjectId};

use super::{
    Acknowledgment, FIRST_HAVES, FetchInfo, MAX_IN_VAIN, Negotiator, NextStep, Request, WantedRef,
    next_stateless, parse_acknowledgment, unsupported,
};
use crate::advertisement::{ServerGreeting, parse_id, unexpected, write_command};
use crate::capabilities::Capabilities;
use crate::error::{Error, malformed};
use crate::pktline::{self, Packet};

/// A single fetch in version 2. Each request is stateless: the server remembers no earlier request.
pub struct FetchV2<'a> {
    request: &'a Request,
    capabilities: &'a Capabilities,
    object_format: Kind,
    common: Vec<ObjectId>,
    haves_to_send: usize,
    in_vain: usize,
    seen_acknowledgment: bool,
    done_sent: bool,
    section: AnswerSection,
    /// The wanted refs that the response has not contained yet.
    unnamed: HashSet<&'a BStr>,
    fetch_info: FetchInfo,
    session: Option<&'a BStr>,
}

/// The section of a response to which the next packet belongs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum AnswerSection {
    /// Before the header of a section.
    Header,
    Acknowledgments {
        ready: bool,
    },
    ShallowInfo,
    WantedRefs,
}

impl<'a> FetchV2<'a> {
    /// Starts a fetch of `request` from the server that sent `greeting`.
    ///
    /// # Errors
    /// Fails with [`ErrorKind::Unsupported`](crate::ErrorKind::Unsupported) if the server does not
    /// support the request.
    pub fn new(request: &'a Request, greeting: &'a ServerGreeting) -> Result<Self, Error> {
        let capabilities = &greeting.capabilities;
        let shallow_wanted = !request.deepen.is_none() || !request.shallow.is_empty();
        if shallow_wanted && !capabilities.has_feature("fetch", "shallow") {
            return Err(unsupported("Server does not support shallow requests"));
        }
        Ok(FetchV2 {
            request,
            capabilities,
            object_format: greeting.object_format,
            common: Vec::new(),
            haves_to_send: FIRST_HAVES,
            in_vain: 0,
            seen_acknowledgment: false,
            done_sent: false,
            section: AnswerSection::Header,
            unnamed: request
                .wanted_refs
                .iter()
                .map(|name| name.as_bstr())
                .collect(),
            fetch_info: FetchInfo::default(),
            session: None,
        })
    }

    /// Sends the session id of this side, if the remote side sends its own.
    #[must_use]
    pub fn with_session(mut self, id: Option<&'a BStr>) -> Self {
        self.session = id;
        self
    }

    /// Returns whether the server supports [`Request::wanted_refs`] (`ref-in-want`).
    pub fn accepts_refs(greeting: &ServerGreeting) -> bool {
        greeting.capabilities.has_feature("fetch", "ref-in-want")
    }

    /// Returns whether the server supports [`Request::filter`] (`filter`).
    pub fn can_filter(greeting: &ServerGreeting) -> bool {
        greeting.capabilities.has_feature("fetch", "filter")
    }

    /// Appends the next request to `out`.
    ///
    /// # Errors
    /// Fails with [`ErrorKind::Local`](crate::ErrorKind::Local) if the negotiator fails, or
    /// [`ErrorKind::Malformed`](crate::ErrorKind::Malformed) if a value is longer than a packet.
    pub fn write_request(
        &mut self,
        negotiator: &mut dyn Negotiator,
        out: &mut Vec<u8>,
    ) -> Result<(), Error> {
        let request = self.request;
        let (capabilities, options) = (self.capabilities, &request.server_options);
        write_command("fetch", capabilities, options, self.session, out)?;
        let flags: [(&[u8], bool); 4] = [
            (b"thin-pack", request.thin_pack),
            (b"no-progress", request.no_progress),
            (b"include-tag", request.include_tag),
            (b"ofs-delta", true),
        ];
        for (flag, _) in flags.iter().filter(|(_, set)| *set) {
            pktline::write(out, flag)?;
        }
        self.write_cut(out)?;
        for want in &request.wants {
            pktline::write_parts(out, &[b"want ", hex(want).as_bytes(), b"\n"])?;
        }
        for name in &request.wanted_refs {
            pktline::write_parts(out, &[b"want-ref ", name, b"\n"])?;
        }
        for id in request.includes.iter().chain(&self.common) {
            write_have(id, out)?;
        }
        let mut added = 0;
        while added < self.haves_to_send {
            let Some(id) = negotiator.next_have()? else {
                break;
            };
            write_have(&id, out)?;
            added += 1;
        }
        self.haves_to_send = next_stateless(self.haves_to_send);
        self.in_vain += added;
        if added == 0 || (self.seen_acknowledgment && self.in_vain >= MAX_IN_VAIN) {
            pktline::write(out, b"done\n")?;
            self.done_sent = true;
        }
        pktline::write_flush(out);
        self.section = AnswerSection::Header;
        Ok(())
    }

    fn write_cut(&self, out: &mut Vec<u8>) -> Result<(), Error> {
        let deepen = &self.request.deepen;
        for id in &self.request.shallow {
            pktline::write_parts(out, &[b"shallow ", hex(id).as_bytes(), b"\n"])?;
        }
        if let Some(depth) = deepen.depth {
            pktline::write(out, format!("deepen {depth}\n").as_bytes())?;
        }
        if let Some(since) = deepen.since {
            pktline::write(out, format!("deepen-since {since}\n").as_bytes())?;
        }
        for name in &deepen.not {
            pktline::write_parts(out, &[b"deepen-not ", name, b"\n"])?;
        }
        if deepen.relative {
            pktline::write(out, b"deepen-relative\n")?;
        }
        if let Some(filter) = &self.request.filter
            && self.capabilities.has_feature("fetch", "filter")
        {
            pktline::write_parts(out, &[b"filter ", filter, b"\n"])?;
        }
        Ok(())
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
        match packet {
            Packet::Data(_) => self.receive_line(packet.text().unwrap_or_default(), negotiator),
            Packet::Delimiter => self.end_section(),
            Packet::Flush => match self.section {
                AnswerSection::Acknowledgments { ready: false } if !self.done_sent => {
                    Ok(NextStep::Send)
                }
                AnswerSection::Acknowledgments { ready: true } => {
                    Err(malformed("expected packfile to be sent after 'ready'"))
                }
                _ => Err(malformed("expected packfile, received flush packet")),
            },
            Packet::ResponseEnd => Err(malformed("protocol error: unexpected response end")),
        }
    }

    fn receive_line(
        &mut self,
        line: &[u8],
        negotiator: &mut dyn Negotiator,
    ) -> Result<NextStep, Error> {
        match self.section {
            AnswerSection::Header => {
                self.section = match line {
                    b"acknowledgments" => AnswerSection::Acknowledgments { ready: false },
                    b"shallow-info" => AnswerSection::ShallowInfo,
                    b"wanted-refs" => AnswerSection::WantedRefs,
                    b"packfile" => return Ok(NextStep::Pack { sideband: true }),
                    _ => return Err(unexpected(line)),
                };
            }
            AnswerSection::Acknowledgments { .. } => {
                match parse_acknowledgment(line, self.object_format)? {
                    Acknowledgment::Nak => {}
                    Acknowledgment::Ready(_) => {
                        self.section = AnswerSection::Acknowledgments { ready: true };
                    }
                    Acknowledgment::Final(id) | Acknowledgment::Common(id) => {
                        self.seen_acknowledgment = true;
                        self.in_vain = 0;
                        if !negotiator.acknowledge(&id)? {
                            self.common.push(id);
                        }
                    }
                }
            }
            AnswerSection::ShallowInfo => {
                if !self.fetch_info.shallow.push(line, self.object_format)? {
                    return Err(unexpected(line));
                }
            }
            AnswerSection::WantedRefs => self.receive_ref(line)?,
        }
        Ok(NextStep::Receive)
    }

    fn end_section(&mut self) -> Result<NextStep, Error> {
        if self.section == (AnswerSection::Acknowledgments { ready: false }) {
            return Err(malformed(
                "expected no other sections to be sent after no 'ready'",
            ));
        }
        self.section = AnswerSection::Header;
        Ok(NextStep::Receive)
    }

    /// Takes the line `ID NAME` of a ref that was requested by name.
    fn receive_ref(&mut self, line: &[u8]) -> Result<(), Error> {
        let (id, name) = line.split_once_str(" ").ok_or_else(|| unexpected(line))?;
        let id = parse_id(id, self.object_format)?;
        // Each ref is accepted once, so that a server cannot exhaust the memory.
        if !self.unnamed.remove(name.as_bstr()) {
            let message = format!("unexpected wanted-ref: '{}'", line.as_bstr());
            return Err(malformed(&message));
        }
        let name = name.into();
        self.fetch_info.wanted_refs.push(WantedRef { name, id });
        Ok(())
    }

    /// Returns the information before the pack, which is complete when the pack follows.
    pub fn into_fetch_info(self) -> FetchInfo {
        self.fetch_info
    }
}

pub(super) fn hex(id: &ObjectId) -> String {
    id.to_hex().to_string()
}

pub(super) fn write_have(id: &ObjectId, out: &mut Vec<u8>) -> Result<(), Error> {
    pktline::write_parts(out, &[b"have ", hex(id).as_bytes(), b"\n"])
}
