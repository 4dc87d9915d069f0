//! Version 2: independent commands.

use bstr::ByteSlice;
use pronto_hash::ObjectId;
use pronto_wire::capabilities::AGENT;
use pronto_wire::pktline;

use super::common::Common;
use super::send::{Band, Wish};
use super::{Ended, Line, Session, id_in};
use crate::remote::connection::from_wire;
use crate::{Error, ErrorKind, Result};

/// From this number of prefixes on all refs are listed, and the client filters them.
const MOST_PREFIXES: usize = 65_536;

/// More wants or haves than these in one request are refused.
const MOST_IDS: usize = 4 << 20;

/// More bytes of one request beside its ids are refused.
const MOST_KEPT_BYTES: usize = 16 << 20;

/// One request.
#[derive(Default)]
struct Command {
    name: Vec<u8>,
    /// Those of `ls-refs` that are known.
    arguments: Vec<Vec<u8>>,
    /// Those of `fetch`.
    wish: Wish,
    haves: Vec<ObjectId>,
    done: bool,
    wait_for_done: bool,
    /// Whether the request has an unknown argument, and was not read further.
    is_foreign: bool,
    /// The bytes of all lines of `fetch` but those with ids.
    raw: Vec<u8>,
}

impl Session<'_> {
    /// Sends the capabilities, and serves commands until the other side disconnects.
    pub(super) fn commands(&mut self) -> Result<Ended> {
        self.say_capabilities()?;
        while let Some(command) = self.command()? {
            match command.name.as_slice() {
                b"ls-refs" => self.list(&command.arguments)?,
                b"fetch" => {
                    if let Some(command) = self.fetch(command)? {
                        return self.unanswered(command.unanswered()?);
                    }
                }
                other => {
                    let message = format!("invalid command '{}'", other.as_bstr());
                    return self.refuse(message);
                }
            }
        }
        Ok(Ended::Served)
    }

    fn say_capabilities(&mut self) -> Result<()> {
        let config = self.repository.config();
        let unborn = match config.string("lsrefs.unborn")? {
            Some(value) if value == "ignore" => "",
            Some(value) if value == "allow" => "",
            _ => "=unborn",
        };
        let filter = match config.bool_or("uploadpack.allowfilter", false)? {
            true => " filter",
            false => "",
        };
        let mut out = Vec::new();
        let lines = [
            "version 2\n".to_owned(),
            format!("agent={AGENT}\n"),
            format!("ls-refs{unborn}\n"),
            format!("fetch=shallow wait-for-done{filter}\n"),
            "server-option\n".to_owned(),
            format!("object-format={}\n", self.repository.object_hash()),
        ];
        for line in lines {
            pktline::write(&mut out, line.as_bytes()).map_err(from_wire)?;
        }
        pktline::write_flush(&mut out);
        self.write(&out)
    }

    /// The next request; `None` when the other side has no more.
    fn command(&mut self) -> Result<Option<Command>> {
        let mut command = Command::default();
        command.wish.band = Band::Large;
        let mut in_arguments = false;
        loop {
            let before = command.raw.len();
            if before > MOST_KEPT_BYTES {
                return Err(too_much());
            }
            match self.line(&mut command.raw)? {
                Line::End if !in_arguments && command.raw.is_empty() => return Ok(None),
                Line::End => {
                    let message = "the remote end hung up unexpectedly";
                    return Err(Error::new(ErrorKind::Transport, message));
                }
                Line::Flush if command.name.is_empty() => return Ok(None),
                Line::Flush => return Ok(Some(command)),
                Line::Delimiter if in_arguments => {
                    let name = command.name.as_bstr();
                    let message = format!("expected flush after {name} arguments");
                    return Err(Error::new(ErrorKind::Transport, message));
                }
                Line::Delimiter => in_arguments = true,
                Line::Text(line) if in_arguments => match command.name.as_slice() {
                    b"fetch" => {
                        command.fetch_argument(&line, before)?;
                        if command.is_foreign {
                            return Ok(Some(command));
                        }
                    }
                    b"ls-refs" => command.list_argument(line, before),
                    _ => {}
                },
                Line::Text(line) => self.capability(&line, &mut command)?,
            }
        }
    }

    fn capability(&mut self, line: &[u8], command: &mut Command) -> Result<()> {
        if let Some(name) = line.strip_prefix(b"command=") {
            command.name = name.to_vec();
        } else if let Some(format) = line.strip_prefix(b"object-format=") {
            let ours = self.repository.object_hash().to_string();
            if format != ours.as_bytes() {
                let theirs = format.as_bstr();
                let message = format!("mismatched object format: server {ours}; client {theirs}");
                return self.refuse(message);
            }
        } else if !line.starts_with(b"agent=")
            && !line.starts_with(b"server-option=")
            && !line.starts_with(b"session-id=")
        {
            let message = format!("unknown capability '{}'", line.as_bstr());
            return self.refuse(message);
        }
        Ok(())
    }

    fn ignores_unborn(&self) -> Result<bool> {
        let value = self.repository.config().string("lsrefs.unborn")?;
        Ok(value.is_some_and(|value| value == "ignore"))
    }

    fn list(&mut self, arguments: &[Vec<u8>]) -> Result<()> {
        let has = |flag: &[u8]| arguments.iter().any(|argument| argument == flag);
        let (peel, symrefs, unborn) = (has(b"peel"), has(b"symrefs"), has(b"unborn"));
        let unborn = unborn && !self.ignores_unborn()?;
        let prefixes = arguments
            .iter()
            .filter_map(|argument| argument.strip_prefix(b"ref-prefix "));
        let mut prefixes: Vec<Vec<u8>> = prefixes.map(<[u8]>::to_vec).collect();
        if prefixes.len() >= MOST_PREFIXES {
            prefixes.clear();
        }
        let mut out = Vec::new();
        for reference in self.shown(&prefixes, peel)? {
            let mut line = match reference.id {
                Some(id) => id.to_string().into_bytes(),
                None if unborn && symrefs && reference.symbolic.is_some() => b"unborn".to_vec(),
                None => continue,
            };
            line.push(b' ');
            line.extend_from_slice(&reference.name);
            if let Some(target) = reference.symbolic.filter(|_| symrefs) {
                line.extend_from_slice(b" symref-target:");
                line.extend_from_slice(&target);
            }
            if let Some(peeled) = reference.peeled.filter(|_| peel) {
                line.extend_from_slice(format!(" peeled:{peeled}").as_bytes());
            }
            line.push(b'\n');
            pktline::write(&mut out, &line).map_err(from_wire)?;
        }
        pktline::write_flush(&mut out);
        self.write(&out)
    }

    /// Serves a request for objects. Returns it if another server must answer.
    fn fetch(&mut self, mut command: Command) -> Result<Option<Command>> {
        if command.is_foreign {
            return Ok(Some(command));
        }
        let (done, wait_for_done) = (command.done, command.wait_for_done);
        let (wish, haves) = (&command.wish, &command.haves);
        for want in &wish.wants {
            if !self.present(want)? {
                return self.refuse(format!("not our ref {want}"));
            }
        }
        if wish.wants.is_empty() {
            match (wait_for_done, done || haves.is_empty()) {
                // It wants nothing.
                (false, _) => return Ok(None),
                // It wants a pack of nothing.
                (true, true) => return Ok(Some(command)),
                // It only asks what both have.
                (true, false) => {}
            }
        }
        let mut common = Common::default();
        for have in haves {
            if self.present(have)? {
                common.add(self.repository, *have)?;
            }
        }
        let named_some = !haves.is_empty();
        if named_some && !done && !self.acknowledge(&mut common, &wish.wants, wait_for_done)? {
            return Ok(None);
        }
        command.wish.haves = common.ids;
        let mut out = Vec::new();
        pktline::write(&mut out, b"packfile\n").map_err(from_wire)?;
        self.write(&out)?;
        self.send(&command.wish)?;
        Ok(None)
    }

    /// Says what both have; whether a pack follows.
    fn acknowledge(
        &mut self,
        common: &mut Common,
        wants: &[ObjectId],
        wait_for_done: bool,
    ) -> Result<bool> {
        let mut out = Vec::new();
        let mut line = |line: &str| pktline::write(&mut out, line.as_bytes()).map_err(from_wire);
        line("acknowledgments\n")?;
        if common.ids.is_empty() {
            line("NAK\n")?;
        }
        for id in &common.ids {
            line(&format!("ACK {id}\n"))?;
        }
        let is_ready = !wait_for_done && common.is_enough(self.repository, wants)?;
        if is_ready {
            line("ready\n")?;
            pktline::write_delimiter(&mut out);
        } else {
            pktline::write_flush(&mut out);
        }
        self.write(&out)?;
        Ok(is_ready)
    }
}

impl Command {
    /// Takes an argument of `ls-refs`, the bytes of which begin at `before`. Of unknown ones, and
    /// of more prefixes than [`MOST_PREFIXES`], nothing is kept.
    fn list_argument(&mut self, line: Vec<u8>, before: usize) {
        let is_flag = [&b"peel"[..], b"symrefs", b"unborn"].contains(&line.as_slice());
        let is_kept = match is_flag {
            true => !self.arguments.contains(&line),
            false => line.starts_with(b"ref-prefix ") && self.arguments.len() < 4 + MOST_PREFIXES,
        };
        if is_kept {
            self.arguments.push(line);
        }
        self.raw.truncate(before);
    }

    /// Takes an argument of `fetch`, the bytes of which begin at `before`.
    fn fetch_argument(&mut self, line: &[u8], before: usize) -> Result<()> {
        let wish = &mut self.wish;
        match line {
            b"thin-pack" => wish.thin = true,
            b"ofs-delta" => wish.offset_deltas = true,
            b"include-tag" => wish.include_tags = true,
            b"no-progress" => wish.no_progress = true,
            b"done" => self.done = true,
            b"wait-for-done" => self.wait_for_done = true,
            other => {
                let ids = match (other.strip_prefix(b"want "), other.strip_prefix(b"have ")) {
                    (Some(id), _) => Some((&mut wish.wants, id)),
                    (_, Some(id)) => Some((&mut self.haves, id)),
                    _ => None,
                };
                let Some((ids, id)) = ids else {
                    self.is_foreign = true;
                    return Ok(());
                };
                if ids.len() >= MOST_IDS {
                    return Err(too_much());
                }
                ids.push(id_in(id)?);
                self.raw.truncate(before);
            }
        }
        Ok(())
    }

    /// All of a `fetch` that was read. If that was all of it, the lines with ids come before the
    /// flush.
    fn unanswered(self) -> Result<Vec<u8>> {
        let mut raw = self.raw;
        let is_whole = !self.is_foreign;
        if is_whole {
            raw.truncate(raw.len().saturating_sub(4));
        }
        let lines = [("want", &self.wish.wants), ("have", &self.haves)];
        for (word, ids) in lines {
            for id in ids {
                pktline::write(&mut raw, format!("{word} {id}\n").as_bytes()).map_err(from_wire)?;
            }
        }
        if is_whole {
            pktline::write_flush(&mut raw);
        }
        Ok(raw)
    }
}

#[cold]
fn too_much() -> Error {
    let message = "the other side asks for too much at once";
    Error::new(ErrorKind::Refused, message)
}
