//! Serves the command `fetch`.

use std::collections::BTreeSet;

use bstr::{BStr, BString, ByteSlice};
use pronto_hash::ObjectId;
use pronto_wire::request::RequestLine;

use super::super::bands::Band;
use super::super::common::CommonHaves;
use super::super::cut::{Deepening, ShallowCut};
use super::super::send::record;
use super::super::wish::Wish;
use super::super::writer::UnsentLines;
use super::super::{ConversationEnd, MOST_IDS, UploadSession, broken, too_much};
use super::Request;
use crate::Result;
use crate::enter::from_client;

/// The arguments of the command.
#[derive(Default)]
struct FetchArguments {
    wish: Wish,
    /// The refs that were wanted by name.
    refs: Vec<WantedRefName>,
    names: BTreeSet<BString>,
    common: CommonHaves,
    /// Whether the client has sent haves, which may not exist on the server.
    named_haves: bool,
    done: bool,
    wait_for_done: bool,
    deepening: Deepening,
    has_uris: bool,
}

struct WantedRefName {
    name: BString,
    id: ObjectId,
}

impl UploadSession<'_> {
    /// Serves a request for objects.
    pub(super) fn fetch(&mut self, request: &Request) -> Result<ConversationEnd> {
        let mut arguments = FetchArguments::default();
        arguments.wish.band = Band::Large;
        let what = "expected flush after fetch arguments";
        while let Some(line) = self.argument(request, what)? {
            let parsed =
                RequestLine::of_fetch(&line, self.repository.object_hash()).map_err(from_client)?;
            self.take_argument(&line, &parsed, &mut arguments)?;
        }
        let mut wish = std::mem::take(&mut arguments.wish);
        if !wish.sideband_all {
            wish.uri_protocols.clear();
        }
        wish.promisors.clone_from(&self.promisors);
        // A client without wants may still request the common commits (`wait-for-done`).
        if wish.wants.is_empty() && !arguments.wait_for_done {
            return Ok(ConversationEnd::Served);
        }
        let mut out = UnsentLines {
            sideband: wish.sideband_all,
            ..UnsentLines::default()
        };
        if arguments.named_haves && !arguments.done {
            let is_ready = self.acknowledge(&mut arguments, &wish.wants, &mut out)?;
            if !is_ready {
                self.send_lines(&mut out)?;
                return Ok(ConversationEnd::Served);
            }
        }
        self.send_refs(&arguments.refs, &mut out)?;
        let cut = self.send_cut(&arguments.deepening, &wish.wants, &mut out)?;
        let shallow = self.view_of(&cut)?;
        wish.haves = arguments.common.ids;
        record(&wish, arguments.refs.len(), &arguments.deepening);
        wish.wants.extend(&cut.wants);
        wish.haves.extend(&cut.haves);
        wish.is_cut = shallow.is_some();
        if wish.uri_protocols.is_empty() {
            out.text("packfile\n")?;
        }
        self.send_lines(&mut out)?;
        self.send(shallow.as_ref().unwrap_or(self.stored), &wish)
    }

    fn take_argument(
        &mut self,
        line: &[u8],
        parsed: &RequestLine<'_>,
        arguments: &mut FetchArguments,
    ) -> Result<()> {
        let settings = &self.settings;
        let wish = &mut arguments.wish;
        match *parsed {
            RequestLine::Want { id, .. } => {
                if !self.is_present(&id)? {
                    let message = format!("git upload-pack: not our ref {id}");
                    return self.deny(wish, format!("upload-pack: not our ref {id}"), message);
                }
                wish.want(id)?;
            }
            RequestLine::WantRef(name) if settings.ref_in_want => self.want_ref(name, arguments)?,
            RequestLine::Have(id) => {
                arguments.named_haves = true;
                if self.is_present(&id)? {
                    if arguments.common.ids.len() >= MOST_IDS {
                        return Err(too_much());
                    }
                    arguments.common.add(self.repository, id)?;
                }
            }
            RequestLine::ThinPack => wish.thin = true,
            RequestLine::OffsetDeltas => wish.offset_deltas = true,
            RequestLine::NoProgress => wish.no_progress = true,
            RequestLine::IncludeTag => wish.include_tags = true,
            RequestLine::Done => arguments.done = true,
            RequestLine::WaitForDone => arguments.wait_for_done = true,
            RequestLine::DeepenRelative => arguments.deepening.is_relative = true,
            RequestLine::Filter(spec) if settings.filter => self.filter(spec, wish)?,
            RequestLine::SidebandAll if settings.sideband_all => wish.sideband_all = true,
            RequestLine::PackfileUris(protocols) if settings.packfile_uris => {
                if arguments.has_uris {
                    let message = "multiple packfile-uris lines forbidden";
                    return self.deny(wish, message.into(), message.into());
                }
                arguments.has_uris = true;
                let protocols = protocols.split_str(",").map(BString::from);
                wish.uri_protocols = protocols.collect();
            }
            _ => {
                if !arguments.deepening.take(&self.view(), parsed)? {
                    return Err(broken(format!("unexpected line: '{}'", line.as_bstr())));
                }
            }
        }
        Ok(())
    }

    fn want_ref(&mut self, name: &BStr, arguments: &mut FetchArguments) -> Result<()> {
        let wish = &mut arguments.wish;
        let Some(id) = self.view().id_of(name)? else {
            let message = format!("unknown ref {name}");
            return self.deny(wish, message.clone(), message);
        };
        if !arguments.names.insert(name.to_owned()) {
            let message = format!("duplicate want-ref {name}");
            return self.deny(wish, message.clone(), message);
        }
        if !self.is_present(&id)? {
            return Err(broken(format!("unable to parse object: {name}")));
        }
        arguments.refs.push(WantedRefName {
            name: name.to_owned(),
            id,
        });
        wish.want(id)
    }

    /// Sends an error to the client, and returns another one for the server's log.
    fn deny(&mut self, wish: &Wish, to_client: String, here: String) -> Result<()> {
        let mut out = UnsentLines {
            sideband: wish.sideband_all,
            ..UnsentLines::default()
        };
        out.error(to_client)?;
        self.send_lines(&mut out)?;
        Err(broken(here))
    }

    /// Sends the acknowledgements of common objects. Returns whether the pack follows.
    fn acknowledge(
        &mut self,
        arguments: &mut FetchArguments,
        wants: &[ObjectId],
        out: &mut UnsentLines,
    ) -> Result<bool> {
        let common = &mut arguments.common;
        out.text("acknowledgments\n")?;
        if common.ids.is_empty() {
            out.text("NAK\n")?;
        }
        for id in &common.ids {
            out.text(format!("ACK {id}\n"))?;
        }
        let is_ready = !arguments.wait_for_done && common.is_enough(self.repository, wants)?;
        if is_ready {
            out.text("ready\n")?;
            out.delimiter();
        } else {
            out.flush();
        }
        Ok(is_ready)
    }

    fn send_refs(&mut self, refs: &[WantedRefName], out: &mut UnsentLines) -> Result<()> {
        if refs.is_empty() {
            return Ok(());
        }
        out.text("wanted-refs\n")?;
        for WantedRefName { name, id } in refs {
            out.text(format!("{id} {name}\n"))?;
        }
        out.delimiter();
        Ok(())
    }

    /// Sends the shallow boundary to the client.
    fn send_cut(
        &mut self,
        deepening: &Deepening,
        wants: &[ObjectId],
        out: &mut UnsentLines,
    ) -> Result<ShallowCut> {
        let is_shallow = !self.repository.shallow_commits()?.is_empty();
        if !deepening.is_requested() && !is_shallow {
            return Ok(ShallowCut::default());
        }
        out.text("shallow-info\n")?;
        let cut = deepening.cut(self.repository, wants, true, self.interrupt);
        if cut.is_err() {
            self.send_lines(out)?;
        }
        let cut = cut?;
        for line in cut.lines.iter().flatten() {
            out.text(line)?;
        }
        out.delimiter();
        Ok(cut)
    }
}
