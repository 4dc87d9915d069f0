//! Judges the commands of a push before its pack is read (`gitprotocol-pack(5)`, "Pushing Data To a
//! Server").

mod kept;

use std::collections::BTreeMap;
use std::io::Read;

use bstr::{BString, ByteSlice as _};
use pronto_io::budget::Budget;
use pronto_wire::pktline::{self, Packet};
use pronto_wire::reader::PacketReader;

use super::Judge;
use crate::access::RefChange;
use crate::error::without_room;
use crate::{Error, ErrorKind, Result};

use kept::Kept;

/// The digits before a packet.
const LENGTH_BYTES: u64 = 4;

/// The memory that an entry of a map takes beside its strings.
const ENTRY_BYTES: usize = 96;

/// The largest payload of a packet on a side band.
const BAND_BYTES: usize = 65_515;

/// The decision about a push.
pub(super) enum Judged<'a> {
    /// Nothing of the push happens; the report for the client.
    Refused(Vec<u8>),
    /// The push may proceed.
    Allowed(Allowed<'a>),
}

/// A push that may proceed.
pub(super) struct Allowed<'a> {
    /// The bytes that were read.
    read: Kept<'a>,
    /// The refs of it that may only be fast-forwarded, with the reasons.
    pub(super) fast_forward_only: BTreeMap<BString, String>,
    /// The memory that the judgments have taken.
    charged: u64,
    budget: &'a Budget,
    /// The nonce of its certificate.
    pub(super) nonce: Option<BString>,
    changes: Vec<Judgment>,
    features: Vec<u8>,
}

/// A change that was judged.
struct Judgment {
    name: BString,
    deletes: bool,
    /// Why it is refused.
    refusal: Option<String>,
}

impl Judgment {
    /// Returns the reason for the report of a push that is refused.
    fn reason(&self) -> &str {
        let others = "another change of this push is refused";
        self.refusal.as_deref().unwrap_or(others)
    }
}

impl<'a> Allowed<'a> {
    /// Returns the bytes that were read, and gives the memory of the judgments back.
    pub(super) fn into_input(self) -> Kept<'a> {
        drop(self.changes);
        self.budget.give_back(self.charged);
        self.read
    }

    /// Returns the names of the refs that get a value.
    pub(super) fn set_refs(&self) -> impl Iterator<Item = &BString> {
        let set = self.changes.iter().filter(|change| !change.deletes);
        set.map(|change| &change.name)
    }

    /// Refuses the whole push after all. Returns the report for the client.
    ///
    /// # Errors
    /// A name is too long for a packet.
    pub(super) fn refuse(mut self, reason: &str) -> Result<Vec<u8>> {
        for change in &mut self.changes {
            change.refusal = Some(reason.to_owned());
        }
        report(&self.changes, &self.features, self.budget)
    }
}

/// The repository's part in the judgment of a push.
pub(super) struct Receiver<'a> {
    /// Returns the ref that a symbolic ref leads to, which a change of it changes, too.
    pub(super) target_of: &'a dyn Fn(&[u8]) -> Option<BString>,
    /// The memory that the commands may take.
    pub(super) budget: &'a Budget,
    /// The most bytes of the commands, or of the certificate (`command_bytes`).
    pub(super) most_bytes: u64,
    /// Whether a certificate may take the place of the commands.
    pub(super) takes_certificates: bool,
    /// Whether every ref can be protected from changes that are no fast-forwards. git protects branches only
    /// (`receive.denyNonFastForwards`), so other refs that need it may not change there.
    pub(super) protects_all_refs: bool,
}

/// Reads the commands of a push and judges each. If one is refused, the whole push is. All that is kept of them is charged
/// before.
///
/// # Errors
/// The commands are malformed or too many, or a certificate takes their place and may not.
pub(super) fn judge_request<'b>(
    input: &mut dyn Read,
    judge: &dyn Judge,
    receiver: &Receiver<'b>,
) -> Result<Judged<'b>> {
    let mut packets = PacketReader::new(input);
    let mut reading = Reading::new(judge, receiver);
    loop {
        match packets.next_or_end().map_err(malformed_packet)? {
            Some(Packet::Data(payload)) => reading.take(payload)?,
            Some(Packet::Flush) => {
                reading.read.flush()?;
                break;
            }
            None if reading.read.is_empty() => break,
            _ => return Err(malformed("the list of changes has no end")),
        }
    }
    reading.finish()?;
    let changes = &reading.changes;
    if changes.iter().any(|change| change.refusal.is_some()) {
        return report(changes, &reading.features, receiver.budget).map(Judged::Refused);
    }
    let mut read = reading.read;
    if packets.has_buffered() {
        let rest = packets.raw().map_err(malformed_packet)?;
        read.rest(rest)?;
    }
    Ok(Judged::Allowed(Allowed {
        read,
        fast_forward_only: reading.fast_forward_only,
        charged: reading.charged,
        budget: receiver.budget,
        nonce: reading.nonce,
        changes: reading.changes,
        features: reading.features,
    }))
}

/// The commands as they are read, and the decisions about them.
struct Reading<'a, 'b> {
    judge: &'a dyn Judge,
    receiver: &'a Receiver<'b>,
    /// The bytes that were read.
    read: Kept<'b>,
    /// Their number.
    bytes: u64,
    /// The memory that the judgments have taken.
    charged: u64,
    features: Vec<u8>,
    /// The text of the certificate, whose packets are pieces of it.
    certificate: Option<Vec<u8>>,
    is_in_certificate: bool,
    nonce: Option<BString>,
    changes: Vec<Judgment>,
    fast_forward_only: BTreeMap<BString, String>,
}

impl<'a, 'b> Reading<'a, 'b> {
    fn new(judge: &'a dyn Judge, receiver: &'a Receiver<'b>) -> Self {
        Reading {
            judge,
            receiver,
            read: Kept::new(receiver.budget),
            bytes: 0,
            charged: 0,
            features: Vec::new(),
            certificate: None,
            is_in_certificate: false,
            nonce: None,
            changes: Vec::new(),
            fast_forward_only: BTreeMap::new(),
        }
    }

    /// Takes a packet.
    fn take(&mut self, payload: &[u8]) -> Result<()> {
        let most = self.receiver.most_bytes;
        let bytes = self.bytes + payload.len() as u64;
        self.bytes = bytes + LENGTH_BYTES;
        if bytes > most {
            let message = format!(
                "the commands of the push have more than {most} bytes, which limits.command_bytes \
                 of the server allows"
            );
            return Err(malformed(&message).with_hint("push fewer refs at once"));
        }
        self.read.packet(payload)?;
        if self.is_in_certificate && self.certificate.is_some() {
            // The text grows by doubling.
            self.charge(2 * payload.len())?;
        }
        if let Some(text) = self.certificate.as_mut().filter(|_| self.is_in_certificate) {
            match payload {
                b"push-cert-end\n" => self.is_in_certificate = false,
                _ => text.extend_from_slice(payload),
            }
            return Ok(());
        }
        let line = payload.strip_suffix(b"\n").unwrap_or(payload);
        if line.starts_with(b"shallow ") {
            return Ok(());
        }
        let (line, words) = line.split_once_str("\0").unwrap_or((line, b""));
        if self.features.is_empty() {
            self.features = words.to_vec();
        }
        if line == b"push-cert" {
            return self.begin_certificate();
        }
        self.judge(&parse(line)?)
    }

    /// Charges memory of the judgments.
    fn charge(&mut self, bytes: usize) -> Result<()> {
        let bytes = bytes as u64;
        self.receiver.budget.charge(bytes).map_err(without_room)?;
        self.charged += bytes;
        Ok(())
    }

    fn begin_certificate(&mut self) -> Result<()> {
        if !self.receiver.takes_certificates {
            let message = "this repository does not take signed pushes: receive.certNonceSeed";
            return Err(Error::new(ErrorKind::Unsupported, message));
        }
        if self.certificate.is_some() {
            return Err(malformed("the push has two certificates"));
        }
        self.certificate = Some(Vec::new());
        self.is_in_certificate = true;
        Ok(())
    }

    /// Judges the commands of the certificate: the lines behind the empty one. Its signature has none, so
    /// that it does not matter where the signature begins.
    fn finish(&mut self) -> Result<()> {
        let Some(text) = self.certificate.take() else {
            return Ok(());
        };
        if text.contains(&0) || self.is_in_certificate {
            return Err(malformed("the certificate of the push has no proper end"));
        }
        let Some((head, body)) = text.split_once_str("\n\n") else {
            return Err(malformed("the certificate of the push has no changes"));
        };
        let nonce = head.lines().find_map(|line| line.strip_prefix(b"nonce "));
        self.nonce = nonce.map(BString::from);
        let mut is_signature = false;
        for line in body.lines() {
            is_signature |= line.starts_with(b"-----BEGIN ");
            match (parse(line), is_signature) {
                (Ok(change), false) => self.judge(&change)?,
                (Ok(_), true) => {
                    return Err(malformed("the signature of the push looks like a change"));
                }
                (Err(_), true) => {}
                (Err(error), false) => return Err(error),
            }
        }
        Ok(())
    }

    fn judge(&mut self, change: &RefChange<'_>) -> Result<()> {
        // The list grows by doubling.
        self.charge(change.name.len() + 2 * size_of::<Judgment>())?;
        let target = (self.receiver.target_of)(change.name);
        let changed = [
            Some(change.name),
            target.as_ref().map(|name| name.as_slice()),
        ];
        let mut changed = changed.into_iter().flatten();
        let mut names = changed.clone();
        let mut refusal =
            changed.find_map(|name| self.judge.refusal(&RefChange { name, ..*change }));
        if let Some(reason) = names.find_map(|name| self.judge.forbids_force(name)) {
            let is_protected =
                self.receiver.protects_all_refs || change.name.starts_with(b"refs/heads/");
            if !is_protected && !change.creates && !change.deletes {
                refusal = refusal.or_else(|| Some(reason.clone()));
            }
            // It is kept longer than the judgments.
            let entry = change.name.len() + reason.len() + ENTRY_BYTES;
            let charged = self.receiver.budget.charge(entry as u64);
            charged.map_err(without_room)?;
            self.fast_forward_only.insert(change.name.into(), reason);
        }
        self.charge(refusal.as_ref().map_or(0, String::len))?;
        self.changes.push(Judgment {
            name: change.name.into(),
            deletes: change.deletes,
            refusal,
        });
        Ok(())
    }
}

/// Parses `OLD NEW NAME`.
fn parse(line: &[u8]) -> Result<RefChange<'_>> {
    let mut parts = line.splitn_str(3, " ");
    let (old, new, name) = (parts.next(), parts.next(), parts.next());
    let is_id = |id: &&[u8]| matches!(id.len(), 40 | 64) && id.iter().all(u8::is_ascii_hexdigit);
    let (Some(old), Some(new), Some(name)) = (old.filter(is_id), new.filter(is_id), name) else {
        return Err(malformed("a change is not 'OLD NEW REF'"));
    };
    let is_null = |id: &[u8]| id.iter().all(|digit| *digit == b'0');
    Ok(RefChange {
        name,
        creates: is_null(old),
        deletes: is_null(new),
    })
}

/// The report on a push of which nothing happens.
fn report(changes: &[Judgment], features: &[u8], budget: &Budget) -> Result<Vec<u8>> {
    let has = |word: &str| features.fields().any(|feature| feature == word.as_bytes());
    let mut lines = Vec::new();
    if !has("report-status") && !has("report-status-v2") {
        return Ok(lines);
    }
    // The lines, and the same on a side band.
    let sizes = changes
        .iter()
        .map(|change| 16 + change.name.len() + change.reason().len());
    let size: usize = sizes.sum();
    budget.charge(2 * size as u64).map_err(without_room)?;
    lines.reserve(size);
    pktline::write(&mut lines, b"unpack ok\n").map_err(malformed_packet)?;
    for change in changes {
        let (name, reason) = (&change.name, change.reason());
        let parts: [&[u8]; 5] = [b"ng ", name, b" ", reason.as_bytes(), b"\n"];
        pktline::write_parts(&mut lines, &parts).map_err(malformed_packet)?;
    }
    pktline::write_flush(&mut lines);
    if !has("side-band-64k") {
        return Ok(lines);
    }
    let mut banded = Vec::new();
    for piece in lines.chunks(BAND_BYTES) {
        pktline::write_parts(&mut banded, &[&[1], piece]).map_err(malformed_packet)?;
    }
    pktline::write_flush(&mut banded);
    Ok(banded)
}

fn malformed(message: &str) -> Error {
    Error::new(ErrorKind::Malformed, message)
}

fn malformed_packet(error: pronto_wire::Error) -> Error {
    error.map_kind(|_| ErrorKind::Malformed)
}

#[cfg(test)]
mod tests {
    use std::sync::{Arc, LazyLock};

    use pronto_io::budget::Account;

    use super::*;

    struct Only;

    impl Judge for Only {
        fn refusal(&self, change: &RefChange<'_>) -> Option<String> {
            (change.name != b"refs/heads/a").then(|| "not yours".to_owned())
        }

        fn forbids_force(&self, name: &[u8]) -> Option<String> {
            (name == b"refs/heads/a").then(|| "not forced".to_owned())
        }
    }

    const ONE: &str = "1111111111111111111111111111111111111111";
    const NULL: &str = "0000000000000000000000000000000000000000";

    /// `refs/heads/alias` is a symbolic ref.
    fn alias(name: &[u8]) -> Option<BString> {
        (name == b"refs/heads/alias").then(|| "refs/heads/a".into())
    }

    static UNLIMITED: LazyLock<Budget> = LazyLock::new(Budget::default);

    fn receiver() -> Receiver<'static> {
        Receiver {
            target_of: &alias,
            budget: &UNLIMITED,
            most_bytes: 16 << 20,
            takes_certificates: true,
            protects_all_refs: true,
        }
    }

    fn judge(lines: &[String], rest: &[u8]) -> Result<Judged<'static>> {
        let mut bytes = Vec::new();
        for line in lines {
            pktline::write(&mut bytes, line.as_bytes()).expect("it is short");
        }
        pktline::write_flush(&mut bytes);
        bytes.extend_from_slice(rest);
        judge_request(&mut bytes.as_slice(), &Only, &receiver())
    }

    /// Returns what the service reads of the commands.
    fn text_of(allowed: Allowed<'_>) -> String {
        let mut bytes = Vec::new();
        let mut input = allowed.into_input();
        input.read_to_end(&mut bytes).expect("it is memory");
        String::from_utf8_lossy(&bytes).into_owned()
    }

    #[test]
    fn what_was_read_is_passed_on() {
        let line = format!("{NULL} {ONE} refs/heads/a\0 report-status\n");
        let Judged::Allowed(allowed) = judge(&[line], b"PACK").expect("well formed") else {
            panic!("it is allowed");
        };
        assert!(allowed.fast_forward_only.keys().eq(["refs/heads/a"]));
        assert!(allowed.set_refs().eq(["refs/heads/a"]));
        assert!(text_of(allowed).ends_with("0000PACK"));
    }

    #[test]
    fn one_refused_change_refuses_all() {
        let lines = [
            format!("{NULL} {ONE} refs/heads/a\0report-status side-band-64k"),
            format!("{ONE} {NULL} refs/heads/b"),
        ];
        let Judged::Refused(report) = judge(&lines, b"").expect("well formed") else {
            panic!("it is refused");
        };
        let text = report.as_bstr().to_string();
        assert!(text.contains("ng refs/heads/b not yours\n"), "{text}");
        assert!(text.contains("ng refs/heads/a another"), "{text}");
    }

    #[test]
    fn a_symbolic_ref_is_judged_with_its_target() {
        struct Rule;
        impl Judge for Rule {
            fn refusal(&self, change: &RefChange<'_>) -> Option<String> {
                (change.deletes && change.name == b"refs/heads/a").then(|| "kept".to_owned())
            }

            fn forbids_force(&self, name: &[u8]) -> Option<String> {
                (name == b"refs/heads/a").then(|| "not forced".to_owned())
            }
        }
        let judged = |line: String| {
            let mut bytes = Vec::new();
            pktline::write(&mut bytes, line.as_bytes()).expect("it is short");
            pktline::write_flush(&mut bytes);
            judge_request(&mut bytes.as_slice(), &Rule, &receiver()).expect("well formed")
        };
        let deleted = judged(format!("{ONE} {NULL} refs/heads/alias"));
        assert!(matches!(deleted, Judged::Refused(_)));
        match judged(format!("{ONE} {ONE} refs/heads/alias")) {
            Judged::Allowed(allowed) => {
                assert!(allowed.fast_forward_only.keys().eq(["refs/heads/alias"]));
            }
            Judged::Refused(_) => panic!("it is allowed"),
        }
    }

    #[test]
    fn only_branches_are_protected_by_git() {
        struct All;
        impl Judge for All {
            fn refusal(&self, _: &RefChange<'_>) -> Option<String> {
                None
            }

            fn forbids_force(&self, _: &[u8]) -> Option<String> {
                Some("not forced".to_owned())
            }
        }
        let refuses = |line: String, protects_all_refs: bool| {
            let mut bytes = Vec::new();
            pktline::write(&mut bytes, line.as_bytes()).expect("it is short");
            pktline::write_flush(&mut bytes);
            let receiver = Receiver {
                protects_all_refs,
                ..receiver()
            };
            let judged = judge_request(&mut bytes.as_slice(), &All, &receiver);
            matches!(judged.expect("well formed"), Judged::Refused(_))
        };
        for name in ["refs/tags/v1", "refs/notes/x", "refs/x", "HEAD"] {
            assert!(refuses(format!("{ONE} {ONE} {name}"), false), "{name}");
            assert!(!refuses(format!("{ONE} {ONE} {name}"), true), "{name}");
            assert!(!refuses(format!("{NULL} {ONE} {name}"), false), "{name}");
            assert!(!refuses(format!("{ONE} {NULL} {name}"), false), "{name}");
        }
        assert!(!refuses(format!("{ONE} {ONE} refs/heads/a"), false));
    }

    #[test]
    fn commands_are_bounded_before_they_are_kept() {
        let line = format!("{NULL} {ONE} refs/heads/a");
        let mut packet = Vec::new();
        pktline::write(&mut packet, line.as_bytes()).expect("it is short");
        let kind = |receiver: &Receiver<'_>| {
            let mut endless = Endless(&packet, 0);
            match judge_request(&mut endless, &Only, receiver) {
                Ok(_) => panic!("it has no end"),
                Err(error) => *error.kind(),
            }
        };
        assert_eq!(kind(&receiver()), ErrorKind::Malformed);
        let account = Arc::new(Account::new("this user", 1 << 20));
        let small = Receiver {
            budget: &Budget::new(vec![Arc::clone(&account)]),
            ..receiver()
        };
        assert_eq!(kind(&small), ErrorKind::TooMany);
        assert!(account.held() <= 1 << 20);
    }

    #[test]
    fn a_mirror_of_a_million_refs_has_room() {
        struct Any;
        impl Judge for Any {
            fn refusal(&self, _: &RefChange<'_>) -> Option<String> {
                None
            }

            fn forbids_force(&self, _: &[u8]) -> Option<String> {
                None
            }
        }
        // A user may hold half of the memory of a server with the default limits.
        let limits = crate::config::Limits::default();
        let account = Arc::new(Account::new("this user", limits.memory_bytes / 2));
        let budget = Budget::new(vec![Arc::clone(&account)]);
        let receiver = Receiver {
            budget: &budget,
            most_bytes: limits.command_bytes,
            ..receiver()
        };
        let mut bytes = Vec::new();
        for number in 0..1_000_000 {
            let line =
                format!("{NULL} {ONE} refs/heads/a-branch-with-a-name-of-its-own/{number:07}");
            pktline::write(&mut bytes, line.as_bytes()).expect("it is short");
        }
        pktline::write_flush(&mut bytes);
        let judged = judge_request(&mut bytes.as_slice(), &Any, &receiver);
        let Judged::Allowed(allowed) = judged.expect("there is room") else {
            panic!("it is allowed");
        };
        assert_eq!(allowed.set_refs().count(), 1_000_000);
        let judging = account.held();
        let mut input = allowed.into_input();
        assert!(account.held() < judging / 2 + (1 << 20), "{judging}");
        std::io::copy(&mut input, &mut std::io::sink()).expect("it is memory");
        assert_eq!(account.held(), 0);
    }

    /// The same bytes again and again.
    struct Endless<'a>(&'a [u8], usize);

    impl Read for Endless<'_> {
        fn read(&mut self, buffer: &mut [u8]) -> std::io::Result<usize> {
            let rest = &self.0[self.1..];
            let count = rest.len().min(buffer.len());
            buffer[..count].copy_from_slice(&rest[..count]);
            self.1 = (self.1 + count) % self.0.len();
            Ok(count)
        }
    }

    #[test]
    fn malformed_changes_are_errors() {
        for line in [
            "",
            "x",
            ONE,
            &format!("{ONE} x refs/heads/a"),
            "push-cert\0",
            "push-certificate\0",
        ] {
            assert!(judge(&[line.to_owned()], b"").is_err(), "{line}");
        }
        assert!(judge_request(&mut &b"0004"[..], &Only, &receiver()).is_err());
        assert!(judge_request(&mut &b"00"[..], &Only, &receiver()).is_err());
    }

    /// A certificate of these changes, in packets of another size than its lines.
    fn certificate(body: &str) -> Vec<String> {
        let text = format!("certificate version 0.1\npusher a\nnonce 1-ab\n\n{body}");
        let mut lines = vec!["push-cert\0report-status\n".to_owned()];
        let pieces = text.as_bytes().chunks(30);
        lines.extend(pieces.map(|piece| String::from_utf8_lossy(piece).into_owned()));
        lines.push("push-cert-end\n".to_owned());
        lines
    }

    const SIGNATURE: &str = "-----BEGIN PGP SIGNATURE-----\n\nabc=\n-----END PGP SIGNATURE-----\n";

    #[test]
    fn the_changes_of_a_certificate_are_judged() {
        let good = format!("{NULL} {ONE} refs/heads/a\n");
        let bad = format!("{NULL} {ONE} refs/heads/b\n");
        let allowed = judge(&certificate(&format!("{good}{SIGNATURE}")), b"PACK");
        match allowed.expect("well formed") {
            Judged::Allowed(allowed) => {
                assert_eq!(allowed.fast_forward_only.len(), 1);
                assert_eq!(allowed.nonce, Some("1-ab".into()));
                assert!(text_of(allowed).ends_with("0000PACK"));
            }
            Judged::Refused(_) => panic!("it is allowed"),
        }
        let refused = judge(&certificate(&format!("{good}{bad}{SIGNATURE}")), b"");
        assert!(matches!(refused.expect("well formed"), Judged::Refused(_)));
        // Changes cannot hide in a signature, behind a NUL, or in a second certificate.
        for hidden in [
            format!("{good}-----BEGIN X-----\n{bad}{SIGNATURE}"),
            format!("{good}{SIGNATURE}{bad}"),
            format!("{good}\0{bad}"),
            format!("{good}nonsense\n"),
        ] {
            assert!(judge(&certificate(&hidden), b"").is_err(), "{hidden}");
        }
        let twice = [certificate(&good), certificate(&bad)].concat();
        assert!(judge(&twice, b"").is_err());
        let mut open = certificate(&good);
        open.pop();
        assert!(judge(&open, b"").is_err());
        let no_receiver = Receiver {
            takes_certificates: false,
            ..receiver()
        };
        let packet = b"000epush-cert\n";
        assert!(judge_request(&mut &packet[..], &Only, &no_receiver).is_err());
    }
}
