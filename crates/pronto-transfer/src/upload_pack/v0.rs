//! Versions 0 and 1: the advertisement, then one negotiation.

use std::collections::HashSet;

use pronto_hash::ObjectId;
use pronto_wire::capabilities::AGENT;
use pronto_wire::pktline;

use super::common::Common;
use super::send::{Band, Wish};
use super::{Ended, Line, Session, Shown, id_in};
use crate::remote::connection::from_wire;
use crate::{Error, ErrorKind, Result};

/// The form of acknowledgements.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum Acknowledge {
    /// Only the first.
    #[default]
    Once,
    Each,
    Detailed,
}

/// The request of the client.
#[derive(Default)]
struct Request {
    wish: Wish,
    acknowledge: Acknowledge,
}

impl Session<'_> {
    /// Shows the references, agrees on what both have, and sends.
    pub(super) fn advertise_and_serve(&mut self, is_v1: bool) -> Result<Ended> {
        let shown = self.shown(&[], true)?;
        self.advertise(&shown, is_v1)?;
        let mut raw = Vec::new();
        let request = match self.request(&shown, &mut raw)? {
            Some(request) => request,
            None if raw.len() <= 4 => return Ok(Ended::Served),
            None => return self.unanswered(raw),
        };
        let Request {
            mut wish,
            acknowledge,
        } = request;
        match self.agree(&wish.wants, acknowledge)? {
            Some(common) => wish.haves = common.ids,
            // The other side went without having what it wanted.
            None => return Ok(Ended::Served),
        }
        self.send(&wish)?;
        Ok(Ended::Served)
    }

    fn advertise(&mut self, shown: &[Shown], is_v1: bool) -> Result<()> {
        let config = self.repository.config();
        let mut abilities = String::from(
            "multi_ack thin-pack side-band side-band-64k ofs-delta shallow deepen-since deepen-not \
             deepen-relative no-progress include-tag multi_ack_detailed",
        );
        let any = config.bool_or("uploadpack.allowanysha1inwant", false)?;
        if any || config.bool_or("uploadpack.allowtipsha1inwant", false)? {
            abilities.push_str(" allow-tip-sha1-in-want");
        }
        if any || config.bool_or("uploadpack.allowreachablesha1inwant", false)? {
            abilities.push_str(" allow-reachable-sha1-in-want");
        }
        let head = shown
            .iter()
            .find(|reference| reference.name == "HEAD" && reference.id.is_some());
        if let Some(target) = head.and_then(|head| head.symbolic.as_ref()) {
            abilities.push_str(&format!(" symref=HEAD:{target}"));
        }
        if config.bool_or("uploadpack.allowfilter", false)? {
            abilities.push_str(" filter");
        }
        let format = self.repository.object_hash();
        abilities.push_str(&format!(" object-format={format} agent={AGENT}"));
        let mut out = Vec::new();
        if is_v1 {
            pktline::write(&mut out, b"version 1\n").map_err(from_wire)?;
        }
        let mut abilities = Some(abilities);
        for reference in shown {
            let Some(id) = reference.id else { continue };
            let hex = id.to_string();
            let mut parts: Vec<&[u8]> = vec![hex.as_bytes(), b" ", &reference.name];
            let first = abilities.take();
            if let Some(abilities) = &first {
                parts.extend([b"\0".as_slice(), abilities.as_bytes()]);
            }
            parts.push(b"\n");
            pktline::write_parts(&mut out, &parts).map_err(from_wire)?;
            if let Some(peeled) = reference.peeled {
                let hex = peeled.to_string();
                let parts: [&[u8]; 4] = [hex.as_bytes(), b" ", &reference.name, b"^{}\n"];
                pktline::write_parts(&mut out, &parts).map_err(from_wire)?;
            }
        }
        if let Some(abilities) = abilities {
            let line = format!(
                "{} capabilities^{{}}\0{abilities}\n",
                ObjectId::null(format)
            );
            pktline::write(&mut out, line.as_bytes()).map_err(from_wire)?;
        }
        pktline::write_flush(&mut out);
        self.write(&out)
    }

    /// Reads the wants of the other side. `None` if there are none, or if another server must
    /// answer the request, which `raw` then holds.
    fn request(&mut self, shown: &[Shown], raw: &mut Vec<u8>) -> Result<Option<Request>> {
        let tips: HashSet<ObjectId> = shown.iter().filter_map(|reference| reference.id).collect();
        let mut request = Request::default();
        loop {
            let line = match self.line(raw)? {
                Line::End | Line::Flush if request.wish.wants.is_empty() => {
                    raw.clear();
                    return Ok(None);
                }
                Line::Flush => return Ok(Some(request)),
                Line::End | Line::Delimiter => {
                    let message = "the remote end hung up unexpectedly";
                    return Err(Error::new(ErrorKind::Transport, message));
                }
                Line::Text(line) => line,
            };
            let Some(rest) = line.strip_prefix(b"want ") else {
                // A cut of history, or a filter.
                return Ok(None);
            };
            let id = id_in(rest)?;
            if request.wish.wants.is_empty() {
                request.take_abilities(rest);
            }
            if !tips.contains(&id) || !self.present(&id)? {
                // Git decides whether that is allowed.
                return Ok(None);
            }
            request.wish.wants.push(id);
        }
    }

    /// Hears what the other side has until that is enough; `None` if it goes.
    fn agree(&mut self, wants: &[ObjectId], how: Acknowledge) -> Result<Option<Common>> {
        let mut common = Common::default();
        let (mut got_common, mut got_other) = (false, false);
        let mut last = None;
        loop {
            let line = match self.line(&mut Vec::new())? {
                Line::Flush => {
                    let mut out = Vec::new();
                    if let Some(last) = last
                        && how == Acknowledge::Detailed
                        && got_common
                        && !got_other
                        && common.is_enough(self.repository, wants)?
                    {
                        tell(&mut out, &format!("ACK {last} ready\n"))?;
                    }
                    if common.ids.is_empty() || how != Acknowledge::Once {
                        tell(&mut out, "NAK\n")?;
                    }
                    self.write(&out)?;
                    (got_common, got_other) = (false, false);
                    continue;
                }
                Line::End | Line::Delimiter => return Ok(None),
                Line::Text(line) => line,
            };
            let mut out = Vec::new();
            if line == b"done" {
                match last {
                    Some(last) if how != Acknowledge::Once => {
                        tell(&mut out, &format!("ACK {last}\n"))?;
                    }
                    Some(_) => {}
                    None => tell(&mut out, "NAK\n")?,
                }
                self.write(&out)?;
                return Ok(Some(common));
            }
            let Some(rest) = line.strip_prefix(b"have ") else {
                let message = "git upload-pack: expected SHA1 list";
                return Err(Error::new(ErrorKind::Transport, message));
            };
            let id = id_in(rest)?;
            if self.present(&id)? {
                common.add(self.repository, id)?;
                (got_common, last) = (true, Some(id));
                match how {
                    Acknowledge::Detailed => tell(&mut out, &format!("ACK {id} common\n"))?,
                    Acknowledge::Each => tell(&mut out, &format!("ACK {id} continue\n"))?,
                    Acknowledge::Once if common.ids.len() == 1 => {
                        tell(&mut out, &format!("ACK {id}\n"))?;
                    }
                    Acknowledge::Once => {}
                }
            } else {
                got_other = true;
                if how != Acknowledge::Once && common.is_enough(self.repository, wants)? {
                    let word = match how {
                        Acknowledge::Detailed => "ready",
                        _ => "continue",
                    };
                    tell(&mut out, &format!("ACK {id} {word}\n"))?;
                }
            }
            if !out.is_empty() {
                self.write(&out)?;
            }
        }
    }
}

impl Request {
    fn take_abilities(&mut self, line: &[u8]) {
        for ability in line.split(|byte| *byte == b' ').skip(1) {
            match ability {
                b"multi_ack_detailed" => self.acknowledge = Acknowledge::Detailed,
                b"multi_ack" if self.acknowledge == Acknowledge::Once => {
                    self.acknowledge = Acknowledge::Each;
                }
                b"thin-pack" => self.wish.thin = true,
                b"ofs-delta" => self.wish.offset_deltas = true,
                b"include-tag" => self.wish.include_tags = true,
                b"no-progress" => self.wish.no_progress = true,
                b"side-band-64k" => self.wish.band = Band::Large,
                b"side-band" if self.wish.band == Band::None => self.wish.band = Band::Small,
                _ => {}
            }
        }
    }
}

fn tell(out: &mut Vec<u8>, line: &str) -> Result<()> {
    pktline::write(out, line.as_bytes()).map_err(from_wire)
}
