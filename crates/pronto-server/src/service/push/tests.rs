//! Tests of the checks of pushes.

use std::sync::{Arc, LazyLock};

use pronto_io::budget::MemoryAccount;
use pronto_wire::pktline;

use super::*;
use crate::access::RequestedRefChange;

struct Only;

impl PushPolicy for Only {
    fn refusal(&self, change: &RequestedRefChange<'_>) -> Option<String> {
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

static UNLIMITED: LazyLock<RequestBudget> = LazyLock::new(RequestBudget::default);

fn receiver() -> PushReceiver<'static> {
    PushReceiver {
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

/// Returns the bytes of the commands that the service reads.
fn text_of(allowed: AllowedPush<'_>) -> String {
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
    impl PushPolicy for Rule {
        fn refusal(&self, change: &RequestedRefChange<'_>) -> Option<String> {
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
    impl PushPolicy for All {
        fn refusal(&self, _: &RequestedRefChange<'_>) -> Option<String> {
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
        let receiver = PushReceiver {
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
    let kind = |receiver: &PushReceiver<'_>| {
        let mut endless = Endless(&packet, 0);
        match judge_request(&mut endless, &Only, receiver) {
            Ok(_) => panic!("it has no end"),
            Err(error) => error.kind(),
        }
    };
    assert_eq!(kind(&receiver()), ErrorKind::Malformed);
    let account = Arc::new(MemoryAccount::new("this user", 1 << 20));
    let small = PushReceiver {
        budget: &RequestBudget::new(vec![Arc::clone(&account)]),
        ..receiver()
    };
    assert_eq!(kind(&small), ErrorKind::TooMany);
    assert!(account.held() <= 1 << 20);
}

#[test]
fn a_mirror_of_a_million_refs_has_room() {
    struct Any;
    impl PushPolicy for Any {
        fn refusal(&self, _: &RequestedRefChange<'_>) -> Option<String> {
            None
        }

        fn forbids_force(&self, _: &[u8]) -> Option<String> {
            None
        }
    }
    // A user may hold half of the memory of a server with the default limits.
    let limits = crate::config::ServerLimits::default();
    let account = Arc::new(MemoryAccount::new("this user", limits.memory_bytes / 2));
    let budget = RequestBudget::new(vec![Arc::clone(&account)]);
    let receiver = PushReceiver {
        budget: &budget,
        most_bytes: limits.command_bytes,
        ..receiver()
    };
    let mut bytes = Vec::new();
    for number in 0..1_000_000 {
        let line = format!("{NULL} {ONE} refs/heads/a-branch-with-a-name-of-its-own/{number:07}");
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

/// A reader that repeats the same bytes.
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

/// Returns a push certificate of these changes, in packets whose size differs from that of its
/// lines.
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
    let no_receiver = PushReceiver {
        takes_certificates: false,
        ..receiver()
    };
    let packet = b"000epush-cert\n";
    assert!(judge_request(&mut &packet[..], &Only, &no_receiver).is_err());
}
