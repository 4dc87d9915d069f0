//! A negotiation in version 2 that ends without a pack (`wait-for-done` of `gitprotocol-v2(5)`).

use std::collections::HashSet;

use bstr::{BStr, BString};
use pronto_hash::{Kind, ObjectId};

use super::v2::write_have;
use super::{
    Acknowledgment, FIRST_HAVES, MAX_IN_VAIN, Negotiator, next_stateless, parse_acknowledgment,
};
use crate::advertisement::{ProtocolVersion, ServerGreeting, unexpected, write_command};
use crate::error::{Error, malformed};
use crate::pktline::{self, Packet};

/// Finds the commits that both sides have. Each request is stateless.
pub struct CommonSearch<'a> {
    greeting: &'a ServerGreeting,
    server_options: &'a [BString],
    format: Kind,
    haves_to_send: usize,
    in_vain: usize,
    /// The haves that were offered and not acknowledged.
    offered: HashSet<ObjectId>,
    common: Vec<ObjectId>,
    is_last: bool,
    is_in_section: bool,
    session: Option<&'a BStr>,
    includes: &'a [ObjectId],
}

impl<'a> CommonSearch<'a> {
    /// Starts a negotiation with the server that sent `greeting`, which must
    /// [support](Self::is_possible) it.
    pub fn new(greeting: &'a ServerGreeting, server_options: &'a [BString]) -> Self {
        CommonSearch {
            greeting,
            server_options,
            format: greeting.object_format,
            haves_to_send: FIRST_HAVES,
            in_vain: 0,
            offered: HashSet::new(),
            common: Vec::new(),
            is_last: false,
            is_in_section: false,
            session: None,
            includes: &[],
        }
    }

    /// Sends the local commits `ids` as haves in each request.
    #[must_use]
    pub fn with_includes(mut self, ids: &'a [ObjectId]) -> Self {
        self.includes = ids;
        self
    }

    /// Sends the session id of this side, if the remote side sends its own.
    #[must_use]
    pub fn with_session(mut self, id: Option<&'a BStr>) -> Self {
        self.session = id;
        self
    }

    /// Returns whether the server that sent `greeting` supports a negotiation without a pack.
    pub fn is_possible(greeting: &ServerGreeting) -> bool {
        let capabilities = &greeting.capabilities;
        greeting.version == ProtocolVersion::V2
            && capabilities.has_feature("fetch", "wait-for-done")
    }

    /// Appends the next request to `out`. Returns `false` without a request if there is no new have:
    /// git's server responds to a request without haves with a pack.
    ///
    /// # Errors
    /// Fails with [`ErrorKind::Local`](crate::ErrorKind::Local) if the negotiator fails, or
    /// [`ErrorKind::Malformed`](crate::ErrorKind::Malformed) if a value is longer than a packet.
    pub fn write_request(
        &mut self,
        negotiator: &mut dyn Negotiator,
        out: &mut Vec<u8>,
    ) -> Result<bool, Error> {
        let begin = out.len();
        let capabilities = &self.greeting.capabilities;
        let options = self.server_options;
        write_command("fetch", capabilities, options, self.session, out)?;
        pktline::write(out, b"wait-for-done")?;
        let is_first = self.offered.is_empty() && self.common.is_empty();
        for id in self.includes {
            write_have(id, out)?;
            if is_first {
                self.offered.insert(*id);
            }
        }
        let mut added = 0;
        while added < self.haves_to_send {
            let Some(id) = negotiator.next_have()? else {
                break;
            };
            write_have(&id, out)?;
            self.offered.insert(id);
            added += 1;
        }
        self.haves_to_send = next_stateless(self.haves_to_send);
        self.in_vain += added;
        self.is_last = added == 0 || !self.common.is_empty() && self.in_vain >= MAX_IN_VAIN;
        pktline::write_flush(out);
        self.is_in_section = false;
        let is_request = added > 0 || is_first && !self.includes.is_empty();
        if !is_request {
            out.truncate(begin);
        }
        Ok(is_request)
    }

    /// Takes one packet of the response. Returns whether it is the last packet of this round.
    ///
    /// # Errors
    /// Fails with [`ErrorKind::Malformed`](crate::ErrorKind::Malformed) if the packet is not valid at
    /// its position, or [`ErrorKind::Local`](crate::ErrorKind::Local) if the negotiator fails.
    pub fn receive(
        &mut self,
        packet: Packet<'_>,
        negotiator: &mut dyn Negotiator,
    ) -> Result<bool, Error> {
        let line = match packet {
            Packet::Data(_) => packet.text().unwrap_or_default(),
            Packet::Flush if self.is_in_section => return Ok(true),
            _ => return Err(malformed("expected 'acknowledgments' and a flush packet")),
        };
        if !self.is_in_section {
            self.is_in_section = line == b"acknowledgments";
            return match self.is_in_section {
                true => Ok(false),
                false => Err(unexpected(line)),
            };
        }
        match parse_acknowledgment(line, self.format)? {
            Acknowledgment::Nak => {}
            Acknowledgment::Ready(_) => return Err(malformed("unexpected 'ready' from remote")),
            Acknowledgment::Final(id) | Acknowledgment::Common(id) => {
                // Each have is accepted once, so that a server cannot exhaust the memory.
                if !self.offered.remove(&id) {
                    return Ok(false);
                }
                self.in_vain = 0;
                negotiator.acknowledge(&id)?;
                self.common.push(id);
            }
        }
        Ok(false)
    }

    /// Returns whether no further request is useful.
    pub fn is_over(&self) -> bool {
        self.is_last
    }

    /// Returns the common commits found so far.
    pub fn common(&self) -> &[ObjectId] {
        &self.common
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::advertisement::GreetingParser;

    /// Offers one commit.
    struct One(Option<ObjectId>);

    impl Negotiator for One {
        fn next_have(&mut self) -> Result<Option<ObjectId>, Error> {
            Ok(self.0.take())
        }

        fn acknowledge(&mut self, _id: &pronto_hash::oid) -> Result<bool, Error> {
            Ok(false)
        }
    }

    fn greeting(fetch: &str) -> ServerGreeting {
        let mut parser = GreetingParser::default();
        for line in ["version 2\n", fetch] {
            let more = parser.push(Packet::Data(line.as_bytes()));
            assert!(more.expect("well formed").is_none());
        }
        let greeting = parser.push(Packet::Flush).expect("well formed");
        greeting.expect("a flush packet ends it")
    }

    #[test]
    fn only_what_was_offered_is_common() {
        let greeting = greeting("fetch=shallow wait-for-done\n");
        assert!(CommonSearch::is_possible(&greeting));
        let (one, other) = ("1".repeat(40), "2".repeat(40));
        let id = pronto_hash::parse_hex(one.as_bytes()).expect("an id");
        let mut negotiator = One(Some(id));
        let mut conversation = CommonSearch::new(&greeting, &[]);
        let mut out = Vec::new();
        let written = conversation.write_request(&mut negotiator, &mut out);
        assert!(written.expect("it is short"));
        assert!(!conversation.is_over());
        for line in [
            "acknowledgments\n",
            &format!("ACK {other}\n"),
            &format!("ACK {one}\n"),
            &format!("ACK {one}\n"),
        ] {
            let packet = Packet::Data(line.as_bytes());
            let ended = conversation.receive(packet, &mut negotiator);
            assert!(!ended.expect("well formed"));
        }
        let ended = conversation.receive(Packet::Flush, &mut negotiator);
        assert!(ended.expect("well formed"));
        assert_eq!(conversation.common(), [id]);
        let len = out.len();
        let written = conversation.write_request(&mut negotiator, &mut out);
        assert!(!written.expect("it is short"), "nothing is left to ask");
        assert_eq!(out.len(), len);
        assert!(conversation.is_over());
    }

    #[test]
    fn broken_answers_are_errors() {
        let greeting = greeting("fetch=wait-for-done\n");
        for lines in [
            &["packfile\n"][..],
            &["ACK 1\n"],
            &["acknowledgments\n", "ready\n"],
            &["acknowledgments\n", "ACK 1\n"],
            &["acknowledgments\n", "\n"],
            &["acknowledgments\n", "acknowledgments\n"],
        ] {
            let mut conversation = CommonSearch::new(&greeting, &[]);
            let results = lines.iter().map(|line| {
                let packet = Packet::Data(line.as_bytes());
                conversation.receive(packet, &mut One(None)).is_err()
            });
            assert_eq!(results.last(), Some(true), "{lines:?}");
        }
        let mut conversation = CommonSearch::new(&greeting, &[]);
        for packet in [Packet::Flush, Packet::Delimiter, Packet::ResponseEnd] {
            let ended = conversation.receive(packet, &mut One(None));
            ended.expect_err("no section has begun");
        }
    }
}
