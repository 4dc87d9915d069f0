//! Peers that violate the protocol: each gives an error, none a panic.

use std::io::{self, Read};

use pronto_hash::{Kind, ObjectId};
use pronto_io::interrupt::Interrupt;
use pronto_wire::Error;
use pronto_wire::advertisement::{GreetingParser, ProtocolVersion, parse_ref_line};
use pronto_wire::client::FetchClient;
use pronto_wire::fetch::{Nothing, Request};
use pronto_wire::pktline::{self, Packet, Parsed};
use pronto_wire::transport::Connection;

use crate::support::Listener;

/// A connection that sends recorded bytes, a few at a time, and ignores requests.
struct Recording(Vec<u8>, usize);

impl Read for Recording {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let rest = &self.0[self.1..];
        let count = rest.len().min(buffer.len()).min(7);
        buffer[..count].copy_from_slice(&rest[..count]);
        self.1 += count;
        Ok(count)
    }
}

impl Connection for Recording {
    fn send(&mut self, _request: &[u8]) -> Result<(), Error> {
        Ok(())
    }
}

/// Parses packets from text: `|` is a flush, `^` a delimiter, and each line a packet.
fn packets(text: &str) -> Vec<u8> {
    let mut out = Vec::new();
    for line in text.split_inclusive('\n') {
        match line {
            "|\n" => pktline::write_flush(&mut out),
            "^\n" => pktline::write_delimiter(&mut out),
            line => pktline::write(&mut out, line.as_bytes()).expect("short lines"),
        }
    }
    out
}

fn run(said: Vec<u8>) -> Result<Vec<u8>, Error> {
    let interrupt = Interrupt::new();
    let mut client = FetchClient::over(Box::new(Recording(said, 0)), &interrupt)?;
    let request = Request {
        wants: vec![ObjectId::null(Kind::Sha1)],
        ..Request::default()
    };
    let listener = Listener::default();
    let mut response = client.fetch(&request, &mut Nothing, &listener)?;
    let mut pack = Vec::new();
    match response.pack.read_to_end(&mut pack) {
        Ok(_) => Ok(pack),
        Err(_) => Err(response.pack.take_failure().expect("the reason is kept")),
    }
}

const V2: &str = "version 2\nagent=x\nls-refs=unborn\nfetch=shallow\n|\n";
const ID: &str = "1111111111111111111111111111111111111111";

#[test]
fn broken_answers_are_errors() {
    let v0 = format!("{ID} HEAD\0multi_ack_detailed side-band-64k\n|\n");
    let cases: [(Vec<u8>, &str); 17] = [
        (b"".to_vec(), "Could not read from remote repository."),
        (b"00".to_vec(), "the remote end hung up unexpectedly"),
        (
            b"zzzz".to_vec(),
            "protocol error: bad line length character: zzzz",
        ),
        (b"0003".to_vec(), "protocol error: bad line length 3"),
        (b"fff1".to_vec(), "protocol error: bad line length 65521"),
        (b"0010abc".to_vec(), "the remote end hung up unexpectedly"),
        (
            b"0001".to_vec(),
            "protocol error: unexpected packet in the greeting",
        ),
        (
            packets("version 2\n"),
            "the remote end hung up upon initial contact",
        ),
        (
            packets("hello\n|\n"),
            "protocol error: unexpected line 'hello'",
        ),
        (
            packets("zz HEAD\n|\n"),
            "protocol error: expected an object id, got 'zz'",
        ),
        (packets("ERR go \x07away\n"), "remote error: go ^Gaway"),
        (
            packets("version 2\nobject-format=md5\n|\n"),
            "unknown object format 'md5' specified by server",
        ),
        (
            packets(&format!("{V2}|\n")),
            "expected packfile, received flush packet",
        ),
        (
            packets(&format!("{V2}nonsense\n")),
            "protocol error: unexpected line 'nonsense'",
        ),
        (
            packets(&format!("{V2}packfile\n\x09x\n")),
            "protocol error: bad band #9",
        ),
        (
            packets(&format!("{V2}packfile\n\x03no\n")),
            "remote error: no",
        ),
        (
            packets(&format!("{v0}NOPE\n")),
            "protocol error: unexpected line 'NOPE'",
        ),
    ];
    for (said, expected) in cases {
        let shown = said.escape_ascii().to_string();
        let error = run(said)
            .err()
            .unwrap_or_else(|| panic!("{shown} is taken"));
        let error = error.to_string();
        assert_eq!(
            error.lines().next().unwrap_or_default(),
            expected,
            "{shown}"
        );
    }
}

#[test]
fn a_sound_answer_cut_anywhere_is_an_error() {
    let v0 = format!("{ID} HEAD\0multi_ack_detailed side-band-64k\n|\nNAK\n\x01PACK\n\x02hi\n|\n");
    let v2 = format!("{V2}shallow-info\nshallow {ID}\n^\npackfile\n\x02hi\n\x01PACK\n|\n");
    for text in [v0, v2] {
        let whole = packets(&text);
        assert_eq!(run(whole.clone()).expect("it is sound"), b"PACK\n");
        for length in 0..whole.len() {
            run(whole[..length].to_vec()).expect_err("something is missing");
        }
    }
}

#[test]
fn random_bytes_never_panic() {
    let v2 = packets(&format!(
        "{V2}acknowledgments\nACK {ID}\nready\n^\npackfile\n\x01PACK\n|\n"
    ));
    let mut seed = 0x2545_f491_4f6c_dd1d_u64;
    let mut random = move || {
        seed ^= seed << 13;
        seed ^= seed >> 7;
        seed ^= seed << 17;
        seed as usize
    };
    for _ in 0..20_000 {
        let mut said = v2.clone();
        for _ in 0..1 + random() % 4 {
            let at = random() % said.len();
            said[at] = random() as u8;
        }
        // Most are refused. Some changes do not matter.
        let _ = run(said.clone());
        let _ = parse_ref_line(&said, Kind::Sha1);
        let _ = GreetingParser::default().push(Packet::Data(&said));
        if let Ok(Parsed::Complete { length, .. }) = pktline::parse(&said) {
            assert!(length <= said.len());
        }
    }
}

#[test]
fn what_is_said_is_shown_without_control_characters() {
    let interrupt = Interrupt::new();
    let text = format!("{V2}packfile\n\x02one\x1b]0;title\x07\n\x02\x1b[31mred\x1b[m\rmore\n|\n");
    let said = packets(&text);
    let mut client = FetchClient::over(Box::new(Recording(said, 0)), &interrupt).expect("sound");
    assert_eq!(client.version(), ProtocolVersion::V2);
    let request = Request {
        wants: vec![ObjectId::null(Kind::Sha1)],
        ..Request::default()
    };
    let listener = Listener::default();
    let mut response = client
        .fetch(&request, &mut Nothing, &listener)
        .expect("a pack");
    response.pack.finish(&[]).expect("an empty one");
    let surplus = response.pack.finish(b"read beyond its end");
    assert!(surplus.is_err_and(|error| error.to_string().contains("after the end of the pack")));
    let lines = listener.0.lock().expect("no panics").clone();
    let expected = [
        "remote: one^[]0;title^G",
        "remote: \x1b[31mred\x1b[m\r",
        "remote: more",
    ];
    assert_eq!(lines, expected);
}
