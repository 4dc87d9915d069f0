//! The status report of a push (`report-status`).

use std::io::Read;

use bstr::{BStr, BString, ByteSlice};
use pronto_hash::{Kind, ObjectId};

use crate::bounds::ByteAllowance;
use crate::error::Error;
use crate::pktline::Packet;
use crate::reader::PacketReader;
use crate::sanitize::sanitized;

/// The memory limit for one report.
const MOST_REPORT_BYTES: usize = 256 << 20;

/// The status report of a push.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Report {
    /// The status of each command, in order.
    pub replies: Vec<Reported>,
    /// The errors that concern the whole push or the report itself, with Git's messages.
    pub errors: Vec<String>,
}

/// The status of one command.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Reported {
    /// The name of the ref.
    pub name: BString,
    /// The reason for which the command failed.
    pub failure: Option<String>,
    /// The text after the ref name of a successful command.
    pub remark: Option<String>,
    /// The updates that the remote side made instead of the command (`report-status-v2`).
    pub rewrites: Vec<RewrittenRef>,
}

/// An update that the remote side made instead of the requested one.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct RewrittenRef {
    /// The updated ref, if it differs from the requested one.
    pub name: Option<BString>,
    /// The old value of the ref.
    pub old: Option<ObjectId>,
    /// The new value of the ref.
    pub new: Option<ObjectId>,
    /// Whether the change was not a fast-forward.
    pub forced: bool,
}

/// Parses a report packet by packet.
#[derive(Debug)]
pub struct ReportParser {
    hash: Kind,
    room: ByteAllowance,
    report: Report,
    started: bool,
    /// Whether option lines may follow the last line.
    expects_options: bool,
    /// Whether the next option line starts another rewritten update.
    is_new: bool,
    has_said_so: bool,
}

impl ReportParser {
    /// Creates a parser for a repository with the hash function `hash`.
    pub fn new(hash: Kind) -> Self {
        ReportParser {
            hash,
            room: ByteAllowance::new(MOST_REPORT_BYTES, "reports"),
            report: Report::default(),
            started: false,
            expects_options: false,
            is_new: false,
            has_said_so: false,
        }
    }

    /// Takes one packet. Returns the report after its last packet.
    ///
    /// # Errors
    /// Fails with [`ErrorKind::Malformed`](crate::ErrorKind::Malformed) if the report is too large.
    pub fn push(&mut self, packet: Packet<'_>) -> Result<Option<Report>, Error> {
        let Some(line) = packet.text() else {
            if !self.started {
                let message = "unexpected flush packet while reading remote unpack status";
                self.report.errors.push(message.to_owned());
            }
            return Ok(Some(std::mem::take(&mut self.report)));
        };
        self.room
            .take(line.len() + size_of::<Reported>() + size_of::<RewrittenRef>())?;
        if !std::mem::replace(&mut self.started, true) {
            self.take_unpack_status(line);
            return Ok(None);
        }
        let (head, rest) = match line.split_once_str(" ") {
            Some((head, rest)) => (head, rest),
            None => {
                let line = sanitized(line);
                let message = format!("invalid status line from remote: {line}");
                return Ok(Some(self.broken_off(message)));
            }
        };
        match head {
            b"option" => self.take_option(rest),
            b"ok" | b"ng" => self.take_status(head == b"ok", rest),
            _ => {
                let head = sanitized(head);
                let message = format!("invalid ref status from remote: {head}");
                return Ok(Some(self.broken_off(message)));
            }
        }
        Ok(None)
    }

    fn broken_off(&mut self, message: String) -> Report {
        self.report.errors.push(message);
        std::mem::take(&mut self.report)
    }

    fn take_unpack_status(&mut self, line: &[u8]) {
        match line.strip_prefix(b"unpack ") {
            Some(b"ok") => {}
            Some(reason) => {
                let reason = sanitized(reason);
                let message = format!("remote unpack failed: {reason}");
                self.report.errors.push(message);
            }
            None => {
                let line = sanitized(line);
                let message = format!("unable to parse remote unpack status: {line}");
                self.report.errors.push(message);
            }
        }
    }

    fn take_status(&mut self, is_ok: bool, rest: &[u8]) {
        let (name, remark) = match rest.split_once_str(" ") {
            Some((name, remark)) => (name, Some(sanitized(remark))),
            None => (rest, None),
        };
        let name = BStr::new(name);
        self.expects_options = is_ok;
        self.is_new = is_ok;
        // Several reports about the same command follow each other.
        let is_further = |last: &&mut Reported| last.name == name && last.failure.is_none();
        if is_ok && self.report.replies.last_mut().filter(is_further).is_some() {
            return;
        }
        let (failure, remark) = match is_ok {
            true => (None, remark),
            false => (Some(remark.unwrap_or_else(|| "failed".to_owned())), None),
        };
        self.report.replies.push(Reported {
            name: name.to_owned(),
            failure,
            remark,
            rewrites: Vec::new(),
        });
    }

    fn take_option(&mut self, text: &[u8]) {
        let last = self.report.replies.last_mut();
        let Some(reply) = last.filter(|_| self.expects_options) else {
            if !std::mem::replace(&mut self.has_said_so, true) {
                let message = "'option' without a matching 'ok/ng' directive";
                self.report.errors.push(message.to_owned());
            }
            return;
        };
        if std::mem::take(&mut self.is_new) {
            reply.rewrites.push(RewrittenRef::default());
        }
        let Some(rewritten) = reply.rewrites.last_mut() else {
            return;
        };
        let (key, value) = match text.split_once_str(" ") {
            Some((key, value)) => (key, Some(value)),
            None => (text, None),
        };
        let hash = self.hash;
        let id = || {
            let id = value.and_then(|value| pronto_hash::parse_hex(value).ok());
            id.filter(|id| id.kind() == hash)
        };
        match key {
            b"refname" => rewritten.name = value.map(BString::from),
            b"old-oid" => rewritten.old = id(),
            b"new-oid" => rewritten.new = id(),
            b"forced-update" => rewritten.forced = true,
            _ => {}
        }
    }
}

/// Reads a whole report.
pub(super) fn read<R: Read>(packets: &mut PacketReader<R>, hash: Kind) -> Result<Report, Error> {
    let mut parser = ReportParser::new(hash);
    loop {
        if let Some(report) = parser.push(packets.next_packet()?)? {
            return Ok(report);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(lines: &[&str]) -> Report {
        let mut parser = ReportParser::new(Kind::Sha1);
        for line in lines {
            let parsed = parser.push(Packet::Data(line.as_bytes()));
            if let Some(report) = parsed.expect("small") {
                return report;
            }
        }
        let parsed = parser.push(Packet::Flush).expect("small");
        parsed.expect("a flush ends a report")
    }

    #[test]
    fn replies_are_taken_with_their_options() {
        let report = parse(&[
            "unpack ok\n",
            "ok refs/for/a\n",
            "option refname refs/heads/b\n",
            "option forced-update\n",
            "ok refs/for/a\n",
            "option refname refs/heads/c\n",
            "ng refs/heads/d no way\n",
        ]);
        assert_eq!(report.replies.len(), 2);
        assert_eq!(report.replies[0].rewrites.len(), 2);
        assert!(report.replies[0].rewrites[0].forced);
        assert_eq!(report.replies[1].failure.as_deref(), Some("no way"));
        assert!(report.errors.is_empty());
    }

    #[test]
    fn broken_reports_say_what_is_wrong() {
        assert_eq!(parse(&[]).errors.len(), 1);
        assert_eq!(
            parse(&["unpack index-pack abnormal exit"]).errors,
            ["remote unpack failed: index-pack abnormal exit"]
        );
        assert_eq!(
            parse(&["unpack ok", "option forced-update"]).errors.len(),
            1
        );
        assert_eq!(parse(&["unpack ok", "maybe refs/heads/a"]).errors.len(), 1);
    }
}
