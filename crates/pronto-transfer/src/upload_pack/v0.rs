//! Protocol versions 0 and 1: the advertisement, then one negotiation.

use bstr::ByteSlice;
use pronto_hash::ObjectId;
use pronto_storage::pack_objects::ObjectFilter;
use pronto_wire::advertisement::ProtocolVersion;
use pronto_wire::pktline;
use pronto_wire::request::RequestLine;

use super::bands::Band;
use super::common::CommonHaves;
use super::cut::{Deepening, ShallowCut};
use super::send::record;
use super::settings::Settings;
use super::shown::{NamespaceView, VisibleRef};
use super::wants::AllowedTips;
use super::wish::Wish;
use super::writer::UnsentLines;
use super::{
    ClientPacket, ConversationEnd, MOST_IDS, Options, UploadSession, broken, hung_up, too_much,
};
use crate::enter::from_client;
use crate::remote::connection::from_wire;
use crate::{Repository, Result};

/// The capabilities that are always advertised.
const ABILITIES: &str = "multi_ack thin-pack side-band side-band-64k ofs-delta shallow deepen-since \
                         deepen-not deepen-relative no-progress include-tag multi_ack_detailed";

/// The mode of acknowledgements (`multi_ack`, `multi_ack_detailed`).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum Acknowledge {
    /// Acknowledge only the first common object.
    #[default]
    Once,
    Each,
    Detailed,
}

/// The request of a client.
#[derive(Default)]
struct Request {
    wish: Wish,
    acknowledge: Acknowledge,
    /// Whether the client sends no final `done` (`no-done`).
    no_done: bool,
    may_filter: bool,
    deepening: Deepening,
}

/// The result of a negotiation.
enum Agreed {
    /// The negotiation is complete with these common objects, and the pack follows.
    Pack(CommonHaves),
    /// The client continues the negotiation in another request.
    Later,
}

/// Returns the advertisement of refs and capabilities.
pub(super) fn advertisement(
    repository: &Repository,
    options: &Options,
    settings: &Settings,
) -> Result<Vec<u8>> {
    let view = NamespaceView {
        repository,
        hidden: &settings.hidden,
    };
    let mut out = Vec::new();
    if options.version == ProtocolVersion::V1 {
        pktline::write(&mut out, b"version 1\n").map_err(from_wire)?;
    }
    let mut abilities = Some(abilities(&view, options, settings)?);
    for reference in view.shown(&[], true)? {
        write_ref(&mut out, &reference, abilities.as_deref())?;
        if reference.id.is_some() {
            abilities = None;
        }
    }
    if let Some(abilities) = abilities {
        let none = VisibleRef {
            name: "capabilities^{}".into(),
            id: Some(ObjectId::null(repository.object_hash())),
            symbolic: None,
            peeled: None,
        };
        write_ref(&mut out, &none, Some(&abilities))?;
    }
    for id in repository.shallow_commits()? {
        pktline::write(&mut out, format!("shallow {id}\n").as_bytes()).map_err(from_wire)?;
    }
    pktline::write_flush(&mut out);
    Ok(out)
}

fn abilities(view: &NamespaceView<'_>, options: &Options, settings: &Settings) -> Result<Vec<u8>> {
    let mut abilities = ABILITIES.as_bytes().to_vec();
    let mut add = |is_there: bool, word: &str| {
        if is_there {
            abilities.extend_from_slice(word.as_bytes());
        }
    };
    add(settings.allowed.tips, " allow-tip-sha1-in-want");
    add(settings.allowed.reachable, " allow-reachable-sha1-in-want");
    add(options.is_stateless, " no-done");
    if let Some(head) = view.head()?.filter(|head| head.id.is_some())
        && let Some(target) = head.symbolic
    {
        abilities.extend_from_slice(b" symref=HEAD:");
        abilities.extend_from_slice(&target);
    }
    if settings.filter {
        abilities.extend_from_slice(b" filter");
    }
    if let Some(id) = options.session_id.as_ref().filter(|_| settings.session_id) {
        abilities.extend_from_slice(b" session-id=");
        abilities.extend_from_slice(id);
    }
    let format = view.repository.object_hash();
    abilities.extend_from_slice(format!(" object-format={format} agent=").as_bytes());
    abilities.extend_from_slice(&options.agent);
    Ok(abilities)
}

fn write_ref(out: &mut Vec<u8>, reference: &VisibleRef, abilities: Option<&[u8]>) -> Result<()> {
    let Some(id) = reference.id else {
        return Ok(());
    };
    let hex = id.to_string();
    let mut parts: Vec<&[u8]> = vec![hex.as_bytes(), b" ", &reference.name];
    if let Some(abilities) = abilities {
        parts.extend([b"\0".as_slice(), abilities]);
    }
    parts.push(b"\n");
    pktline::write_parts(out, &parts).map_err(from_wire)?;
    if let Some(peeled) = reference.peeled {
        let hex = peeled.to_string();
        let parts: [&[u8]; 4] = [hex.as_bytes(), b" ", &reference.name, b"^{}\n"];
        pktline::write_parts(out, &parts).map_err(from_wire)?;
    }
    Ok(())
}

impl UploadSession<'_> {
    /// Reads the wants, negotiates common commits, and sends the pack.
    pub(super) fn one_fetch(&mut self) -> Result<ConversationEnd> {
        let mut request = Request::default();
        loop {
            let line = match self.input()? {
                ClientPacket::Text(line) => line,
                ClientPacket::End => return Err(hung_up()),
                _ => break,
            };
            self.take(&line, &mut request)?;
        }
        let tips = AllowedTips::read(&self.view(), self.settings.allowed)?;
        let is_stateless = self.options.is_stateless;
        let refused = tips.refused(&request.wish.wants, is_stateless, self.interrupt)?;
        if let Some(id) = refused {
            self.deny_want(id)?;
            return Ok(ConversationEnd::Refused(
                format!("git upload-pack: not our ref {id}").into(),
            ));
        }
        let cut = self.cut(&request)?;
        if request.wish.wants.is_empty() {
            return Ok(ConversationEnd::Served);
        }
        let shallow = self.view_of(&cut)?;
        let view = shallow.as_ref();
        request.wish.wants.extend(&cut.wants);
        let agreed = self.agree(view.unwrap_or(self.repository), &request)?;
        let Agreed::Pack(common) = agreed else {
            return Ok(ConversationEnd::Served);
        };
        request.wish.haves = common.ids;
        record(&request.wish, 0, &request.deepening);
        request.wish.haves.extend(&cut.haves);
        request.wish.is_cut = shallow.is_some();
        self.send(view.unwrap_or(self.stored), &request.wish)
    }

    /// Sends the shallow boundary to the client.
    fn cut(&mut self, request: &Request) -> Result<ShallowCut> {
        if !request.deepening.is_requested() {
            return Ok(ShallowCut::default());
        }
        let wants = &request.wish.wants;
        let cut = (request.deepening).cut(self.repository, wants, false, self.interrupt)?;
        if let Some(lines) = &cut.lines {
            let mut out = UnsentLines::default();
            lines.iter().try_for_each(|line| out.text(line))?;
            out.flush();
            self.send_lines(&mut out)?;
        }
        Ok(cut)
    }

    fn deny_want(&mut self, id: ObjectId) -> Result<()> {
        let mut out = UnsentLines::default();
        out.error(format!("upload-pack: not our ref {id}"))?;
        self.send_lines(&mut out)
    }

    /// Parses one line of the first part of the request.
    fn take(&mut self, line: &[u8], request: &mut Request) -> Result<()> {
        let format = self.repository.object_hash();
        let parsed = RequestLine::of_needs(line, format).map_err(from_client)?;
        if request.deepening.take(&self.view(), &parsed)? {
            return Ok(());
        }
        let (id, features) = match parsed {
            RequestLine::Filter(spec) => {
                if !request.may_filter {
                    let message = "git upload-pack: filtering capability not negotiated";
                    return Err(broken(message));
                }
                return self.filter(spec, &mut request.wish);
            }
            RequestLine::Want { id, rest } => (id, rest),
            _ => {
                let line = line.as_bstr();
                let message = format!(
                    "git upload-pack: protocol error, expected to get object ID, not '{line}'"
                );
                return Err(broken(message));
            }
        };
        for ability in features.fields() {
            match ability.strip_prefix(b"session-id=") {
                Some(id) => self.record_client_session(id),
                None => request.take_ability(ability, self.settings.filter),
            }
        }
        if !self.is_present(&id)? {
            self.deny_want(id)?;
            return Err(broken(format!("git upload-pack: not our ref {id}")));
        }
        request.wish.want(id)
    }

    /// Parses and checks the object filter.
    pub(super) fn filter(&mut self, spec: &bstr::BStr, wish: &mut Wish) -> Result<()> {
        if wish.filter.is_some() {
            return Err(broken("multiple filter-specs cannot be combined"));
        }
        let filter = ObjectFilter::parse(spec)?;
        if let Err(error) = self.settings.check_filter(&filter) {
            let mut out = UnsentLines {
                sideband: wish.sideband_all,
                ..UnsentLines::default()
            };
            out.error(error.message())?;
            self.send_lines(&mut out)?;
            return Err(error);
        }
        wish.filter = Some(filter);
        Ok(())
    }

    /// Reads the haves of the client until the negotiation is complete.
    fn agree(&mut self, view: &Repository, request: &Request) -> Result<Agreed> {
        let mut talk = Talk {
            view,
            request,
            common: CommonHaves::default(),
            last: None,
            got_common: false,
            got_other: false,
            is_ready: false,
        };
        let mut is_first = true;
        loop {
            let line = match self.input()? {
                ClientPacket::Text(line) => Some(line),
                // A stateless client may have requested only the shallow boundary.
                ClientPacket::End if is_first && self.options.is_stateless => {
                    return Ok(Agreed::Later);
                }
                ClientPacket::End => return Err(hung_up()),
                ClientPacket::Flush | ClientPacket::Delimiter | ClientPacket::ResponseEnd => None,
            };
            is_first = false;
            let mut out = UnsentLines::default();
            let Some(line) = line else {
                let is_over = talk.pause(&mut out)?;
                self.send_lines(&mut out)?;
                match (is_over, self.options.is_stateless) {
                    (true, _) => return Ok(Agreed::Pack(talk.common)),
                    (false, true) => return Ok(Agreed::Later),
                    (false, false) => continue,
                }
            };
            match self.negotiation_line(&line)? {
                RequestLine::Have(id) => {
                    talk.have(id, self.is_present(&id)?, &mut out)?;
                    self.send_lines(&mut out)?;
                }
                _ => {
                    talk.end(&mut out)?;
                    self.send_lines(&mut out)?;
                    return Ok(Agreed::Pack(talk.common));
                }
            }
        }
    }

    /// Parses a `have` or `done` line.
    fn negotiation_line(&self, line: &[u8]) -> Result<RequestLine<'static>> {
        match RequestLine::of_negotiation(line, self.repository.object_hash())
            .map_err(from_client)?
        {
            RequestLine::Have(id) => Ok(RequestLine::Have(id)),
            RequestLine::Done => Ok(RequestLine::Done),
            _ => {
                let line = line.as_bstr();
                let message = format!("git upload-pack: expected SHA1 list, got '{line}'");
                Err(broken(message))
            }
        }
    }
}

/// The state of a negotiation.
struct Talk<'a> {
    view: &'a Repository,
    request: &'a Request,
    common: CommonHaves,
    /// The last common object.
    last: Option<ObjectId>,
    /// Whether the client has sent common objects, and others, since the last flush.
    got_common: bool,
    got_other: bool,
    /// Whether `ready` was sent to the client.
    is_ready: bool,
}

impl Talk<'_> {
    /// Handles a have of the client.
    fn have(&mut self, id: ObjectId, is_present: bool, out: &mut UnsentLines) -> Result<()> {
        let how = self.request.acknowledge;
        if !is_present {
            self.got_other = true;
            if how != Acknowledge::Once && self.is_enough()? {
                let word = match how {
                    Acknowledge::Detailed => "ready",
                    _ => "continue",
                };
                self.is_ready |= how == Acknowledge::Detailed;
                out.text(format!("ACK {id} {word}\n"))?;
            }
            return Ok(());
        }
        if self.common.ids.len() >= MOST_IDS {
            return Err(too_much());
        }
        self.common.add(self.view, id)?;
        (self.got_common, self.last) = (true, Some(id));
        match how {
            Acknowledge::Detailed => out.text(format!("ACK {id} common\n")),
            Acknowledge::Each => out.text(format!("ACK {id} continue\n")),
            Acknowledge::Once if self.common.ids.len() == 1 => out.text(format!("ACK {id}\n")),
            Acknowledge::Once => Ok(()),
        }
    }

    fn is_enough(&mut self) -> Result<bool> {
        self.common.is_enough(self.view, &self.request.wish.wants)
    }

    /// Responds to a flush. Returns whether the pack follows without `done`.
    fn pause(&mut self, out: &mut UnsentLines) -> Result<bool> {
        let how = self.request.acknowledge;
        let last = self.last.filter(|_| how == Acknowledge::Detailed);
        let is_all_common = self.got_common && !self.got_other;
        if let Some(last) = last.filter(|_| is_all_common)
            && self.is_enough()?
        {
            self.is_ready = true;
            out.text(format!("ACK {last} ready\n"))?;
        }
        if self.common.ids.is_empty() || how != Acknowledge::Once {
            out.text("NAK\n")?;
        }
        (self.got_common, self.got_other) = (false, false);
        match last.filter(|_| self.request.no_done && self.is_ready) {
            Some(last) => out.text(format!("ACK {last}\n")).map(|()| true),
            None => Ok(false),
        }
    }

    /// Responds to `done`.
    fn end(&self, out: &mut UnsentLines) -> Result<()> {
        match self.last {
            Some(last) if self.request.acknowledge != Acknowledge::Once => {
                out.text(format!("ACK {last}\n"))
            }
            Some(_) => Ok(()),
            None => out.text("NAK\n"),
        }
    }
}

impl Request {
    fn take_ability(&mut self, ability: &[u8], may_filter: bool) {
        match ability {
            b"multi_ack_detailed" => self.acknowledge = Acknowledge::Detailed,
            b"multi_ack" if self.acknowledge == Acknowledge::Once => {
                self.acknowledge = Acknowledge::Each;
            }
            b"deepen-relative" => self.deepening.is_relative = true,
            b"no-done" => self.no_done = true,
            b"thin-pack" => self.wish.thin = true,
            b"ofs-delta" => self.wish.offset_deltas = true,
            b"include-tag" => self.wish.include_tags = true,
            b"no-progress" => self.wish.no_progress = true,
            b"side-band-64k" => self.wish.band = Band::Large,
            b"side-band" if self.wish.band == Band::None => self.wish.band = Band::Small,
            b"filter" => self.may_filter |= may_filter,
            _ => {}
        }
    }
}
