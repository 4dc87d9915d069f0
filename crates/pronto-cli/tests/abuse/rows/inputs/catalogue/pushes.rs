//! The inputs of pushes and archives.

use crate::pack::{BLOB, COMMIT, Pack};
use crate::stage::options;
use crate::wire::{MISSING, changes, changes_with, create, no_pack, packet, packets};

use super::super::doors::{Content, Door, Who};
use super::{ANSWERED, Input, OFFERS, input, ok, reported};

/// Returns the inputs of archives.
pub(super) fn archives() -> Vec<Input> {
    vec![Input {
        past: reported(&[200, 400], "oo many"),
        doors: &[Door::Http, Door::Chunked, Door::Gzip, Door::Http2],
        ..input(
            "archives",
            "archive",
            "arguments of an archive",
            |_, count| {
                let mut lines = vec!["argument --prefix=x/\n"; count - 1];
                lines.push("argument HEAD\n");
                Content::Archive(packets(lines))
            },
        )
    }]
}

/// Returns update commands of `count` bytes, as the server counts them: packets except for the
/// digits of the last one. The commands create refs to a missing object.
fn commands(count: usize, length: usize) -> Vec<u8> {
    let line = |number: usize, length: usize| {
        let start = format!("refs/heads/{number}");
        let pad = "x".repeat(length.saturating_sub(start.len()));
        create(MISSING, &format!("{start}{pad}"))
    };
    // Two ids with spaces, and the digits of a packet.
    let bare = 82 + 4;
    let features = "\0report-status side-band-64k object-format=sha1";
    let mut body = packet(format!("{}{features}", line(0, length)));
    for number in 1.. {
        let left = count + 4 - body.len();
        // The last name takes what is left, and is as long as a name may be.
        let is_last = left < 2 * (bare + length);
        let length = match is_last {
            true => left - bare,
            false => length,
        };
        body.extend(packet(line(number, length)));
        if is_last {
            break;
        }
    }
    body.extend_from_slice(b"0000");
    body
}

/// A limit for commands that a test can reach.
const COMMANDS: &str = "command_bytes = 16777216";
const COMMAND_BYTES: usize = 16 << 20;

/// Returns the inputs of pushes.
pub(super) fn pushes() -> Vec<Input> {
    let long = reported(&[200, 400], "the ref updates of the push have more than");
    vec![
        Input {
            doors: &[Door::Http, Door::Gzip],
            who: &[Who::Stranger, Who::Reader, Who::Writer],
            far: 2,
            past: long,
            limits: COMMANDS,
            size: Some(COMMAND_BYTES),
            ..input(
                "long-commands",
                "long-commands",
                "commands of a push, or its certificate",
                |_, count| {
                    let body = commands(count, 30_000);
                    Content::Push([body, no_pack()].concat())
                },
            )
        },
        Input {
            who: &[Who::Writer],
            far: 2,
            past: long,
            limits: COMMANDS,
            size: Some(COMMAND_BYTES),
            ..input(
                "commands",
                "commands",
                "commands of a push, or its certificate",
                |_, count| {
                    let body = commands(count, 200);
                    Content::Push([body, no_pack()].concat())
                },
            )
        },
        Input {
            settings: OFFERS,
            doors: &[Door::Gzip],
            who: &[Who::Writer],
            far: 2,
            past: long,
            at: reported(&[200, 400], ""),
            limits: COMMANDS,
            size: Some(COMMAND_BYTES),
            ..input(
                "certificate",
                "certificate",
                "commands of a push, or its certificate",
                |_, count| {
                    let first = "push-cert\0report-status side-band-64k";
                    let mut body = packet(first);
                    // As the server counts them: packets, but for the digits of the last one.
                    let end = "push-cert-end\n";
                    let mut left = count - body.len() - end.len();
                    while left > 0 {
                        // The last one needs some bytes, too.
                        let length = match left {
                            0..60_000 => left - 4,
                            _ => 30_000,
                        };
                        body.extend(packet("x".repeat(length)));
                        left -= length + 4;
                    }
                    body.extend(packet(end));
                    body.extend_from_slice(b"0000");
                    Content::Push([body, no_pack()].concat())
                },
            )
        },
        Input {
            settings: OFFERS,
            doors: &[Door::Http, Door::Gzip],
            who: &[Who::Reader, Who::Writer],
            far: 2,
            at: ANSWERED,
            past: reported(&[200, 400, 413], ""),
            ..input(
                "push-options",
                "push-options",
                "push options",
                |_, count| {
                    let features = "report-status side-band-64k push-options object-format=sha1";
                    // Nothing is changed, because the object is missing.
                    let command = create(MISSING, "refs/heads/options");
                    let mut body = changes_with(features, [command]);
                    let (full, rest) = (count / 60_000, count % 60_000);
                    let mut all = vec!["x".repeat(60_000); full];
                    all.push("x".repeat(rest));
                    body.extend(options(all));
                    body.extend(no_pack());
                    Content::Push(body)
                },
            )
        },
        Input {
            who: &[Who::Writer],
            far: 0,
            at: ok("ng refs/heads/x"),
            past: reported(&[200, 400], ""),
            ..input(
                "object",
                "object",
                "commit, tree or tag of a push",
                |_, count| Content::Push(one_commit(count)),
            )
        },
        Input {
            limits: "push_bytes = 4194304",
            size: Some(4 << 20),
            doors: &[Door::Http, Door::Chunked],
            who: &[Who::Stranger, Who::Reader, Who::Writer],
            far: 2,
            at: ok("ng refs/heads/x"),
            past: reported(&[200, 400, 413], ""),
            ..input(
                "push",
                "push",
                "body of a push, as sent and inflated",
                |_, count| {
                    let commands = changes([create(MISSING, "refs/heads/x")]);
                    let mut made = Pack::new().object(BLOB, b"x").finish();
                    // Noise behind a pack is not read; in an object it is.
                    let bare = commands.len() + made.len();
                    let room = count.saturating_sub(bare + 64);
                    let noise = test_support::Random::new(3).bytes(room);
                    made = Pack::new().object(BLOB, &noise).finish();
                    let mut body = [commands, made].concat();
                    body.resize(count, 0);
                    Content::Push(body)
                },
            )
        },
    ]
}

/// Returns a push of a commit of `count` bytes, which compresses well and whose tree is missing.
fn one_commit(count: usize) -> Vec<u8> {
    let who = "a <a@x> 1112911993 -0700";
    let mut text = format!("tree {MISSING}\nauthor {who}\ncommitter {who}\n\n").into_bytes();
    text.resize(count, b'x');
    let made = Pack::new().object(COMMIT, &text).finish();
    // Whether it is the object of the ref is found out last.
    [changes([create(MISSING, "refs/heads/x")]), made].concat()
}
