//! Tests of broken frames and ranges, and their error messages.

use pronto_netsync::Error;
use pronto_netsync::frame::{FrameHeader, FrameReader};
use pronto_netsync::reconcile::{Fingerprinter, Options, Reconciler, SetBuilder};
use pronto_netsync::varint::Cursor;

use test_support::Random;

fn message(error: &Error) -> String {
    let text = error.to_string();
    text.replace("netsync protocol error: ", "")
}

#[test]
fn broken_frames() {
    let cases: [(&[u8], &str); 9] = [
        (
            b"\0\0\0\0",
            "a frame has 0 bytes, but 2 to 262144 are allowed at offset 0",
        ),
        (
            b"\x01\0\0\0",
            "a frame has 1 bytes, but 2 to 262144 are allowed at offset 0",
        ),
        (
            b"\x01\0\x04\0",
            "a frame has 262145 bytes, but 2 to 262144 are allowed at offset 0",
        ),
        (
            b"\xff\xff\xff\xff",
            "a frame has 4294967295 bytes, but 2 to 262144 are allowed at offset 0",
        ),
        (b"\x02\0\0\0\0\0", "unknown frame type 0 at offset 0"),
        (b"\x02\0\0\0\x7f\0", "unknown frame type 127 at offset 0"),
        (
            b"\x02\0\0\0\x01\x04",
            "a frame on the unknown channel 4 at offset 0",
        ),
        (
            b"\x02\0\0\0\x0c\0",
            "a frame of type 12 on the wrong channel 0 at offset 0",
        ),
        (
            b"\x02\0\0\0\x01\x03",
            "a frame of type 1 on the wrong channel 3 at offset 0",
        ),
    ];
    for (bytes, expected) in cases {
        let mut reader = FrameReader::default();
        assert_eq!(reader.accept(bytes), bytes.len());
        let error = reader.peek().expect_err("the frame is broken");
        assert_eq!(message(&error), expected);
        // If it is cut anywhere before the fault, it is only incomplete.
        assert!(
            FrameHeader::parse(&bytes[..3])
                .expect("too short to be wrong")
                .is_none()
        );
    }
    let mut reader = FrameReader::default();
    reader.accept(b"\x03\0\0\0\x90\0?\x02\0\0\0\0\0");
    let error = reader
        .peek()
        .expect_err("the frame behind the ignored one is broken");
    assert_eq!(message(&error), "unknown frame type 0 at offset 7");
}

#[test]
fn broken_numbers() {
    let cases: [(&[u8], &str); 4] = [
        (
            b"\x80",
            "a field has 1 bytes, but only 0 are left at offset 1",
        ),
        (
            b"\x80\0",
            "a number is not encoded in the shortest form at offset 0",
        ),
        (
            b"\xff\xff\xff\xff\xff\xff\xff\xff\xff\x02",
            "a number has more than 64 bits at offset 0",
        ),
        (
            b"\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01",
            "a number has more than 64 bits at offset 0",
        ),
    ];
    for (bytes, expected) in cases {
        assert_eq!(
            message(&Cursor::new(bytes).varint().expect_err("broken")),
            expected
        );
    }
    assert_eq!(
        Cursor::new(b"\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01")
            .varint()
            .expect("the most"),
        u64::MAX
    );
}

#[test]
fn broken_ranges() {
    let cases: [(&[u8], &str); 13] = [
        (b"\x08", "a range has the unknown mode 8 at offset 0"),
        (
            b"\x04\x04",
            "a range follows the unbounded last range at offset 1",
        ),
        (
            b"\x01\0\x01b\0",
            "a field has 16 bytes, but only 1 are left at offset 4",
        ),
        (b"\0\0\0", "a range ends before it begins at offset 0"),
        (
            b"\0\0\x01b\0\0\x01b",
            "a range ends before it begins at offset 4",
        ),
        (
            b"\0\0\x01b\0\0\x01a",
            "a range ends before it begins at offset 4",
        ),
        (b"\0\x01\x01a", "1 is larger than the limit 0 at offset 1"),
        (
            b"\0\0\x81\x08",
            "1025 is larger than the limit 1024 at offset 2",
        ),
        (
            b"\x06\x02\0\x01b\0\0\x01a\0",
            "the entries are not sorted at offset 0",
        ),
        (
            b"\x02\0\x01b\x01\0\x01b\0",
            "an entry is outside of its range at offset 0",
        ),
        (
            b"\x06\xff\xff\xff\xff\x0f\0\x01a\0",
            "a field has 1 bytes, but only 0 are left at offset 10",
        ),
        (
            b"\x07\x01\x02\0",
            "marks for entries that were not listed at offset 0",
        ),
        (
            b"\x07\x09\0\0\0",
            "the response has 9 entries, but the list had 1",
        ),
    ];
    let key = Fingerprinter::new([0; 32]);
    let mut builder = SetBuilder::default();
    builder.push(b"a", b"");
    let set = builder.finish(&key).expect("one entry");
    for (bytes, expected) in cases {
        let mut side = Reconciler::new(&set, &key, Options::default());
        let error = side.receive(bytes).expect_err("the range is broken");
        assert_eq!(message(&error), expected, "{}", bytes.escape_ascii());
    }
}

#[test]
fn limits_of_a_reconciliation() {
    let key = Fingerprinter::new([0; 32]);
    let set = SetBuilder::default().finish(&key).expect("nothing in it");
    let mut few = Options::default();
    few.turns = 1;
    let mut side = Reconciler::new(&set, &key, few);
    side.receive(b"\x05AAAAAAAAAAAAAAAA").expect("the first");
    let error = side
        .receive(b"\x05AAAAAAAAAAAAAAAA")
        .expect_err("the second");
    assert_eq!(
        message(&error),
        "the reconciliation takes more than 1 messages"
    );
    let mut little = Options::default();
    little.learned_bytes = 10;
    let mut side = Reconciler::new(&set, &key, little);
    let error = side.receive(b"\x06\x01\0\x01a\0").expect_err("too much");
    assert_eq!(message(&error), "the differences take more than 10 bytes");
    let mut builder = SetBuilder::default();
    builder.push(b"a", b"1");
    builder.push(b"a", b"2");
    assert_eq!(
        message(&builder.finish(&key).expect_err("twice")),
        "the entry 'a' appears twice"
    );
}

/// Changes, removes or repeats some of `bytes`.
fn mutated(random: &mut Random, bytes: &[u8]) -> Vec<u8> {
    let mut out = bytes.to_vec();
    for _ in 0..=random.below(4) {
        if out.is_empty() {
            break;
        }
        let at = random.below(out.len() as u64) as usize;
        match random.below(4) {
            0 => out[at] = random.number() as u8,
            1 => out[at] ^= 1 << random.below(8),
            2 => drop(out.drain(at..(at + random.below(9) as usize).min(out.len()))),
            _ => out
                .splice(at..at, bytes[..bytes.len().min(8)].iter().copied())
                .for_each(drop),
        }
    }
    out
}

#[test]
fn no_message_of_a_peer_breaks_the_limits() {
    let key = Fingerprinter::new([0; 32]);
    let (mut left, mut right) = (SetBuilder::default(), SetBuilder::default());
    for at in 0..400u32 {
        let name = format!("refs/heads/{}", at * 7919 % 1000);
        if at % 11 != 0 {
            left.push(name.as_bytes(), &at.to_be_bytes());
        }
        if at % 13 != 0 {
            right.push(name.as_bytes(), &at.to_be_bytes());
        }
    }
    let (left, right) = (
        left.finish(&key).expect("sound"),
        right.finish(&key).expect("sound"),
    );
    let mut options = Options::default();
    options.message_bytes = 8192;
    options.list_below = 0;
    let mut here = Reconciler::new(&left, &key, options);
    let mut there = Reconciler::new(&right, &key, options);
    let mut sound = vec![here.start()];
    for turn in 0.. {
        let side = if turn % 2 == 0 { &mut there } else { &mut here };
        let Some(next) = side.receive(&sound[turn]).expect("sound") else {
            break;
        };
        sound.push(next);
    }
    assert!(sound.len() >= 3);
    let mut random = Random::new(1);
    let (mut refused, mut answered) = (0, 0);
    for _ in 0..5_000 {
        let mut side = Reconciler::new(&left, &key, options);
        let message = &sound[random.below(sound.len() as u64) as usize];
        match side.receive(&mutated(&mut random, message)) {
            Ok(Some(answer)) => {
                assert!(answer.len() <= 8192);
                answered += 1;
            }
            Ok(None) => {}
            Err(_) => refused += 1,
        }
        assert!(side.lacking().iter().all(|&at| at < left.len()));
    }
    assert!(refused > 1000 && answered > 100, "{refused} {answered}");
}
