//! Bodies of a given size: arguments of each command, repeated until the size is reached.

use crate::wire::{FETCH, packet};

use super::catalogue::Known;

/// Repeats the result of `unit` until the whole input has `count` bytes. `before` makes the start
/// of the input, from a text that fills the remainder.
fn filled(
    before: &dyn Fn(&str) -> Vec<u8>,
    behind: &[u8],
    count: usize,
    unit: &dyn Fn(usize) -> Vec<u8>,
) -> Vec<u8> {
    let room = count.saturating_sub(before("").len() + behind.len());
    let mut lines = Vec::new();
    for number in 0.. {
        let next = packet(unit(number));
        if lines.len() + next.len() > room {
            break;
        }
        lines.extend(next);
    }
    let pad = "x".repeat(room - lines.len());
    [&before(&pad), &lines[..], behind].concat()
}

/// Returns the start of a command request of version 2.
pub(super) fn start(command: &str) -> Vec<u8> {
    padded_start(command, "")
}

fn padded_start(command: &str, pad: &str) -> Vec<u8> {
    let mut start = packet(format!("command={command}\n"));
    start.extend(packet("object-format=sha1"));
    start.extend(packet(format!("agent={pad}")));
    start.extend_from_slice(b"0001");
    start
}

/// An argument of a command of version 2.
#[derive(Clone, Copy, Debug)]
pub(super) struct Argument {
    pub(super) command: &'static str,
    /// The line of the argument, with the placeholders FIRST, SECOND and NUMBER.
    pub(super) line: &'static str,
}

/// The arguments of all commands of version 2.
pub(super) const ARGUMENTS: &[Argument] = &[
    argument("ls-refs", "peel"),
    argument("ls-refs", "symrefs"),
    argument("ls-refs", "unborn"),
    argument("ls-refs", "ref-prefix refs/heads/NUMBER"),
    argument("fetch", "want SECOND"),
    argument("fetch", "have FIRST"),
    argument("fetch", "have NUMBERID"),
    argument("fetch", "shallow FIRST"),
    argument("fetch", "shallow NUMBERID"),
    argument("fetch", "deepen 1"),
    argument("fetch", "deepen-relative"),
    argument("fetch", "deepen-since 1"),
    argument("fetch", "deepen-not refs/tags/v1"),
    argument("fetch", "filter combine:blob:none+tree:1+blob:limit=1"),
    argument("fetch", "include-tag"),
    argument("fetch", "ofs-delta"),
    argument("fetch", "thin-pack"),
    argument("fetch", "no-progress"),
    argument("fetch", "done"),
    argument("fetch", "wait-for-done"),
    argument("fetch", "sideband-all"),
    argument("fetch", "packfile-uris http,https"),
    argument("fetch", "want-ref refs/heads/main"),
    argument("object-info", "size"),
    argument("object-info", "oid SECOND"),
    argument("bundle-uri", "x"),
];

/// The capabilities that a client may name.
pub(super) const CAPABILITIES: &[&str] = &[
    "agent=NUMBER",
    "server-option=NUMBER",
    "object-format=sha1",
    "session-id=NUMBER",
];

const fn argument(command: &'static str, line: &'static str) -> Argument {
    Argument { command, line }
}

fn text(line: &str, known: &Known, number: usize) -> Vec<u8> {
    let id = format!("{number:040x}");
    line.replace("FIRST", &known.first)
        .replace("SECOND", &known.second)
        .replace("NUMBERID", &id)
        .replace("NUMBER", &number.to_string())
        .into_bytes()
}

/// Returns a command request of version 2 with `count` bytes of one argument.
pub(super) fn repeated(argument: Argument, known: &Known, count: usize) -> Vec<u8> {
    let before = |pad: &str| padded_start(argument.command, pad);
    filled(&before, b"0000", count, &|number| {
        text(argument.line, known, number)
    })
}

/// Returns a request with `count` bytes of one capability.
pub(super) fn capability(line: &str, known: &Known, count: usize) -> Vec<u8> {
    let before = |pad: &str| {
        let command = packet("command=ls-refs\n");
        [command, packet(format!("agent={pad}"))].concat()
    };
    filled(&before, b"00010000", count, &|number| {
        text(line, known, number)
    })
}

/// The request lines of versions 0 and 1.
pub(super) const OLD_LINES: &[&str] = &[
    "want SECOND\n",
    "shallow FIRST\n",
    "deepen 1\n",
    "deepen-since 1\n",
    "deepen-not refs/tags/v1\n",
    "filter blob:none\n",
];

/// Returns a request of versions 0 and 1 with `count` bytes of one line before the haves.
pub(super) fn old(line: &str, known: &Known, count: usize) -> Vec<u8> {
    let features = "side-band-64k no-progress filter deepen-since deepen-not";
    let before = |pad: &str| {
        let line = format!("want {} {features} agent={pad}\n", known.second);
        packet(line)
    };
    let behind = [&b"0000"[..], &packet("done\n")].concat();
    filled(&before, &behind, count, &|number| text(line, known, number))
}

/// Returns a request of versions 0 and 1 with `count` bytes of haves.
pub(super) fn old_haves(known: &Known, count: usize) -> Vec<u8> {
    let before = |pad: &str| {
        let line = format!("want {} side-band-64k agent={pad}\n", known.second);
        [packet(line), b"0000".to_vec()].concat()
    };
    filled(&before, &packet("done\n"), count, &|number| {
        text("have NUMBERID\n", known, number)
    })
}

/// Returns a `git://` request with `count` bytes of parameters.
pub(super) fn greeting(count: usize) -> Vec<u8> {
    let start = format!("{FETCH} /open/p\0host=x\0\0version=2\0");
    let pad = "x".repeat(count.saturating_sub(start.len() + 1));
    // The client has no command.
    [packet(format!("{start}{pad}\0")), b"0000".to_vec()].concat()
}
