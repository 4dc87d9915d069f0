//! Tests that message bodies survive a round trip, and that only complete ones are accepted.

use std::fmt::Debug;

use pronto_netsync::Error;
use pronto_netsync::frame::Channel;
use pronto_netsync::message::{
    Accept, CompleteTips, Credit, Globs, Hello, ObjectFormat, Publish, PublishedRef, Resume,
    SegmentAck, SegmentEnd, SegmentKind, SegmentStart, Sent, SessionRefusal, StoreResult,
    TransferDone, TransferPlan, TransferRole, WantMessage,
};

fn hello() -> Hello {
    Hello {
        identity: b"one of many".to_vec(),
        versions: vec![1, 2, 300],
        object_format: ObjectFormat::Sha256,
        role: TransferRole::Both,
        capabilities: 5,
        repository: b"a/b.git".to_vec(),
        globs: globs(),
        window_bytes: 4 << 20,
        nonce: [9; 32],
    }
}

fn globs() -> Globs {
    Globs {
        include: vec![b"refs/heads/*".to_vec(), b"refs/tags/*".to_vec()],
        exclude: vec![b"refs/heads/secret".to_vec()],
    }
}

/// Asserts that a message survives a round trip, and that a cut or an additional byte is an error.
fn check<T: PartialEq + Debug>(
    value: &T,
    write: impl Fn(&T, &mut Vec<u8>),
    read: impl Fn(&[u8]) -> Result<T, Error>,
) {
    let mut body = Vec::new();
    write(value, &mut body);
    assert_eq!(read(&body).as_ref().ok(), Some(value));
    for end in 0..body.len() {
        assert!(read(&body[..end]).is_err(), "{value:?} cut at {end}");
    }
    body.push(0);
    assert!(read(&body).is_err(), "{value:?} with a byte more");
}

#[test]
fn greetings_come_back() {
    check(&hello(), Hello::write, Hello::read);
    let accept = Accept { version: 1 };
    check(&accept, Accept::write, Accept::read);
    let refusal = SessionRefusal {
        code: 3,
        text: "no such repository".to_owned(),
    };
    check(&refusal, SessionRefusal::write, SessionRefusal::read);
    let credit = Credit {
        channel: Channel::Refs,
        bytes: 1 << 40,
    };
    check(&credit, Credit::write, Credit::read);
}

#[test]
fn transfers_come_back() {
    for format in [ObjectFormat::Sha1, ObjectFormat::Sha256] {
        let id_bytes = format.id_bytes();
        for resume in [
            None,
            Some(Resume {
                objects: 70_000,
                mark: [4; 32],
            }),
        ] {
            let want = WantMessage {
                tips: vec![true, false, true],
                held: [vec![1; id_bytes], vec![2; id_bytes]].concat(),
                budget_bytes: 1 << 33,
                resume,
            };
            check(
                &want,
                |want, out| want.write(format, out),
                |body| WantMessage::read(format, body),
            );
        }
        let end = SegmentEnd {
            id: 130,
            checksum: vec![3; id_bytes],
            resume: Resume {
                objects: 300,
                mark: [5; 32],
            },
        };
        check(&end, SegmentEnd::write, |body| {
            SegmentEnd::read(format, body)
        });
    }
    for count in [0, 1, 7, 8, 9, 64] {
        let marks: Vec<bool> = (0..count).map(|at| at % 3 == 0).collect();
        let cut = CompleteTips { tips: marks };
        check(&cut, CompleteTips::write, CompleteTips::read);
    }
    for kind in [SegmentKind::Pack, SegmentKind::LargeBlob] {
        let segment = SegmentStart {
            id: 1,
            kind,
            objects: 1000,
            bytes: 16 << 20,
        };
        check(&segment, SegmentStart::write, SegmentStart::read);
    }
    let plan = TransferPlan {
        commits: 3,
        objects: 300,
        bytes: 1 << 40,
    };
    check(&plan, TransferPlan::write, TransferPlan::read);
    check(&Sent { segments: 9 }, Sent::write, Sent::read);
    check(&SegmentAck { id: 5 }, SegmentAck::write, SegmentAck::read);
    for is_durable in [false, true] {
        check(
            &TransferDone { is_durable },
            TransferDone::write,
            TransferDone::read,
        );
    }
    let published = |name: &[u8], stored, stored_as: &[u8]| PublishedRef {
        name: name.to_vec(),
        stored,
        stored_as: stored_as.to_vec(),
    };
    let publish = Publish {
        refs: vec![
            published(b"refs/heads/a", StoreResult::New, b"refs/remotes/p/a"),
            published(b"refs/heads/b", StoreResult::FastForward, b"refs/x"),
            published(b"refs/heads/c", StoreResult::Divergent, b"refs/x"),
            published(b"refs/heads/d", StoreResult::Refused, b""),
            published(b"refs/heads/e", StoreResult::Refused, b"a rule forbids it"),
        ],
    };
    check(&publish, Publish::write, Publish::read);
}

#[test]
fn broken_bodies_are_told_apart() {
    let reported = |result: Result<(), Error>| {
        let text = result.expect_err("it is broken").to_string();
        text.replace("netsync protocol error: ", "")
    };
    let hello = |body: &[u8]| reported(Hello::read(body).map(drop));
    assert_eq!(hello(b"\0"), "the versions are not sorted at offset 0");
    assert_eq!(
        hello(b"\x02\x02\x01"),
        "the versions are not sorted at offset 0"
    );
    assert_eq!(hello(b"\x09"), "9 is larger than the limit 8 at offset 0");
    assert_eq!(
        hello(b"\x01\x01\x03"),
        "unknown object format 3 at offset 2"
    );
    assert_eq!(hello(b"\x01\x01\x01\0"), "unknown role 0 at offset 3");
    assert_eq!(
        hello(b"\x01\x01\x01\x01\0\x81\x08"),
        "1025 is larger than the limit 1024 at offset 5"
    );
    assert_eq!(
        hello(b"\x01\x01\x01\x01\0\0\x41"),
        "65 is larger than the limit 64 at offset 6"
    );
    assert_eq!(
        reported(Credit::read(b"\0\x01").map(drop)),
        "unknown channel 0 at offset 0"
    );
    assert_eq!(
        reported(CompleteTips::read(b"\x01\x02\0").map(drop)),
        "marks after the last expected mark at offset 1"
    );
    let held = [&b"\0\x02"[..], &[2; 20], &[1; 20], b"\0\0"].concat();
    let want = |body: &[u8]| reported(WantMessage::read(ObjectFormat::Sha1, body).map(drop));
    assert_eq!(want(&held), "the commits are not sorted at offset 2");
    assert_eq!(
        want(b"\0\x41"),
        "65 is larger than the limit 64 at offset 1"
    );
    assert_eq!(
        want(b"\0\x40\0"),
        "a field has 1280 bytes, but only 1 are left at offset 2"
    );
    assert_eq!(want(b"\0\0\0\x02"), "unknown mark 2 at offset 3");
    assert_eq!(
        reported(SegmentStart::read(b"\0\x03").map(drop)),
        "unknown segment kind 3 at offset 1"
    );
    assert_eq!(
        reported(Publish::read(b"\x01\0\x05").map(drop)),
        "unknown ref result 5 at offset 2"
    );
    for body in [
        &b"\x01\0\x04\0"[..],
        b"\x01\x06refs/a\x03\x01x",
        b"\x01\x06refs/a\x01\0",
        b"\x01\x07refs/\x1ba\x04\0",
        b"\x01\x06refs/a\x01\x06refs/\n",
    ] {
        assert_eq!(
            reported(Publish::read(body).map(drop)),
            "a result for an entry that is not a ref at offset 1"
        );
    }
    assert_eq!(
        reported(Publish::read(b"\x02\x06refs/a\x04\0\x06refs/a\x04\0").map(drop)),
        "the refs are not sorted at offset 10"
    );
    assert_eq!(
        reported(TransferDone::read(b"\x01\0").map(drop)),
        "1 extra bytes at the end at offset 1"
    );
}

#[test]
fn versions_and_roles_are_agreed_on() {
    let ours = hello();
    let with = |versions: &[u64]| Hello {
        versions: versions.to_vec(),
        ..hello()
    };
    assert_eq!(ours.common_version(&with(&[2, 300, 301])), Some(300));
    assert_eq!(ours.common_version(&with(&[3])), None);
    assert!(
        TransferRole::Source.fits(TransferRole::Sink)
            && TransferRole::Both.fits(TransferRole::Both)
    );
    assert!(
        !TransferRole::Source.fits(TransferRole::Source)
            && !TransferRole::Sink.fits(TransferRole::Sink)
    );
}

#[test]
fn texts_of_a_peer_do_not_steer_the_terminal() {
    let mut body = Vec::new();
    SessionRefusal {
        code: 1,
        text: "\u{1b}[2Jü".to_owned() + &"ä".repeat(1000),
    }
    .write(&mut body);
    let read = SessionRefusal::read(&body).expect("it was cut to fit");
    assert!(read.text.starts_with("?[2Jüä") && read.text.len() <= 1024);
}
