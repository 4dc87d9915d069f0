//! Judges the commands of a push before its pack is read (`gitprotocol-pack(5)`, "Pushing Data To a
//! Server").

use std::collections::BTreeSet;
use std::io::Read;

use bstr::{BString, ByteSlice as _};
use pronto_wire::pktline::{self, Packet};
use pronto_wire::reader::PacketReader;

use super::Judge;
use crate::access::RefChange;
use crate::{Error, ErrorKind, Result};

/// The memory that the commands of one push may take.
const MOST_BYTES: usize = 64 << 20;

/// The largest payload of a packet on a side band.
const BAND_BYTES: usize = 65_515;

/// The decision about a push.
pub(super) enum Judged {
    /// Nothing of the push happens; the report for the client.
    Refused(Vec<u8>),
    /// The push may proceed.
    Allowed {
        /// The bytes that were read.
        read: Vec<u8>,
        /// The refs of it that may only be fast-forwarded.
        fast_forward_only: BTreeSet<BString>,
    },
}

/// Reads the commands of a push and judges each. If one is refused, the whole push is. `target_of`
/// returns the ref that a symbolic ref leads to, which a change of it changes, too.
///
/// # Errors
/// The commands are malformed or too many, or a certificate takes their place.
pub(super) fn judge_request(
    input: &mut dyn Read,
    judge: &dyn Judge,
    target_of: &dyn Fn(&[u8]) -> Option<BString>,
) -> Result<Judged> {
    let mut packets = PacketReader::new(input);
    let mut read = Vec::new();
    let mut names: Vec<Vec<u8>> = Vec::new();
    let mut refusals: Vec<Option<String>> = Vec::new();
    let (mut features, mut fast_forward_only) = (Vec::new(), BTreeSet::new());
    loop {
        let packet = packets.next_or_end().map_err(malformed_packet)?;
        let line = match packet {
            Some(Packet::Data(payload)) => {
                pktline::write(&mut read, payload).map_err(malformed_packet)?;
                payload.strip_suffix(b"\n").unwrap_or(payload)
            }
            Some(Packet::Flush) => {
                pktline::write_flush(&mut read);
                break;
            }
            None if read.is_empty() => break,
            _ => return Err(malformed("the list of changes has no end")),
        };
        if read.len() > MOST_BYTES {
            return Err(malformed("the push changes too many refs"));
        }
        if line.starts_with(b"shallow ") {
            continue;
        }
        let (line, words) = line.split_once_str("\0").unwrap_or((line, b""));
        if features.is_empty() {
            features = words.to_vec();
        }
        if line.starts_with(b"push-cert") {
            let message = "this server does not take signed pushes";
            return Err(Error::new(ErrorKind::Unsupported, message));
        }
        let change = parse(line)?;
        let target = target_of(change.name);
        let changed = [
            Some(change.name),
            target.as_ref().map(|name| name.as_slice()),
        ];
        let changed = changed.into_iter().flatten();
        refusals.push(
            changed
                .clone()
                .find_map(|name| judge.refusal(&RefChange { name, ..change })),
        );
        if changed.into_iter().any(|name| judge.forbids_force(name)) {
            fast_forward_only.insert(change.name.into());
        }
        names.push(change.name.to_vec());
    }
    if refusals.iter().any(Option::is_some) {
        return Ok(Judged::Refused(report(&names, &refusals, &features)?));
    }
    if packets.has_buffered() {
        let rest = packets.raw().map_err(malformed_packet)?;
        read.extend_from_slice(rest);
    }
    Ok(Judged::Allowed {
        read,
        fast_forward_only,
    })
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
fn report(names: &[Vec<u8>], refusals: &[Option<String>], features: &[u8]) -> Result<Vec<u8>> {
    let has = |word: &str| features.fields().any(|feature| feature == word.as_bytes());
    let mut lines = Vec::new();
    if !has("report-status") && !has("report-status-v2") {
        return Ok(lines);
    }
    pktline::write(&mut lines, b"unpack ok\n").map_err(malformed_packet)?;
    for (name, refusal) in names.iter().zip(refusals) {
        let reason = match refusal {
            Some(reason) => reason,
            None => "another change of this push is refused",
        };
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
    use super::*;

    struct Only;

    impl Judge for Only {
        fn refusal(&self, change: &RefChange<'_>) -> Option<String> {
            (change.name != b"refs/heads/a").then(|| "not yours".to_owned())
        }

        fn forbids_force(&self, name: &[u8]) -> bool {
            name == b"refs/heads/a"
        }
    }

    const ONE: &str = "1111111111111111111111111111111111111111";
    const NULL: &str = "0000000000000000000000000000000000000000";

    /// `refs/heads/alias` is a symbolic ref.
    fn alias(name: &[u8]) -> Option<BString> {
        (name == b"refs/heads/alias").then(|| "refs/heads/a".into())
    }

    fn judge(lines: &[String], rest: &[u8]) -> Result<Judged> {
        let mut bytes = Vec::new();
        for line in lines {
            pktline::write(&mut bytes, line.as_bytes()).expect("it is short");
        }
        pktline::write_flush(&mut bytes);
        bytes.extend_from_slice(rest);
        judge_request(&mut bytes.as_slice(), &Only, &alias)
    }

    #[test]
    fn what_was_read_is_passed_on() {
        let line = format!("{NULL} {ONE} refs/heads/a\0 report-status\n");
        let Judged::Allowed {
            read,
            fast_forward_only,
        } = judge(&[line], b"PACK").expect("well formed")
        else {
            panic!("it is allowed");
        };
        assert!(read.ends_with(b"0000PACK"));
        assert!(fast_forward_only.iter().eq(["refs/heads/a"]));
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

            fn forbids_force(&self, name: &[u8]) -> bool {
                name == b"refs/heads/a"
            }
        }
        let judged = |line: String| {
            let mut bytes = Vec::new();
            pktline::write(&mut bytes, line.as_bytes()).expect("it is short");
            pktline::write_flush(&mut bytes);
            judge_request(&mut bytes.as_slice(), &Rule, &alias).expect("well formed")
        };
        let deleted = judged(format!("{ONE} {NULL} refs/heads/alias"));
        assert!(matches!(deleted, Judged::Refused(_)));
        match judged(format!("{ONE} {ONE} refs/heads/alias")) {
            Judged::Allowed {
                fast_forward_only, ..
            } => assert!(fast_forward_only.iter().eq(["refs/heads/alias"])),
            Judged::Refused(_) => panic!("it is allowed"),
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
        ] {
            assert!(judge(&[line.to_owned()], b"").is_err(), "{line}");
        }
        assert!(judge_request(&mut &b"0004"[..], &Only, &alias).is_err());
        assert!(judge_request(&mut &b"00"[..], &Only, &alias).is_err());
    }
}
