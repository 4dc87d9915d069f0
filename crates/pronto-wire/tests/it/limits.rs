//! Servers that never end: silence, and unlimited responses.

use std::io::{self, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::time::Duration;

use pronto_hash::{Kind, ObjectId};
use pronto_io::interrupt::Interrupt;
use pronto_io::progress::{Meter, Progress, ProgressMessage};
use pronto_wire::advertisement::GreetingParser;
use pronto_wire::client::FetchClient;
use pronto_wire::fetch::{Nothing, Request};
use pronto_wire::pktline::Packet;
use pronto_wire::transport::{Connection, Options, Timeouts};
use pronto_wire::{Error, ErrorKind};

use crate::support::connect;

/// Starts a server that calls `serve` for each connection until the process ends. Returns its
/// address.
fn server(serve: impl Fn(TcpStream) + Send + Sync + 'static) -> String {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a port is free");
    let address = listener.local_addr().expect("it is bound").to_string();
    std::thread::spawn(move || {
        for stream in listener.incoming().map_while(Result::ok) {
            serve(stream);
        }
    });
    address
}

fn impatient() -> Options {
    let mut options = Options::default();
    let mut limits = Timeouts::default();
    limits.connect = Duration::from_millis(200);
    limits.idle = Duration::from_millis(200);
    limits.head = Duration::from_millis(200);
    options.limits = limits;
    options
}

#[test]
fn silence_ends_a_connection() {
    // The streams stay open and silent.
    let kept = std::sync::Mutex::new(Vec::new());
    let address = server(move |stream| kept.lock().expect("no panics").push(stream));
    for scheme in ["git", "http", "https"] {
        let url = format!("{scheme}://{address}/x");
        let error = connect(&url, &impatient()).err().expect("nobody answers");
        assert_eq!(error.kind(), ErrorKind::Connection, "{url}: {error}");
    }
}

#[test]
fn a_proxy_that_says_nothing_ends_a_connection() {
    let kept = std::sync::Mutex::new(Vec::new());
    let address = server(move |stream| kept.lock().expect("no panics").push(stream));
    for scheme in ["http", "socks5"] {
        let mut set = crate::support::Fixed::default();
        set.options.proxy = Some(format!("{scheme}://{address}"));
        let client = crate::support::connect_with("http://a.example/x", &impatient(), set);
        let error = client.err().expect("nobody answers");
        assert_eq!(error.kind(), ErrorKind::Connection, "{scheme}: {error}");
    }
}

/// Responds with `head`, then with `chunk` until the client disconnects.
fn endless(head: &'static str, chunk: &'static [u8]) -> String {
    server(move |mut stream| {
        let mut request = Vec::new();
        let mut byte = [0];
        while !request.ends_with(b"\r\n\r\n") && stream.read(&mut byte).is_ok_and(|n| n > 0) {
            request.push(byte[0]);
        }
        let _ = stream.write_all(head.as_bytes());
        let many = chunk.repeat(4096);
        while stream.write_all(&many).is_ok() {}
    })
}

#[test]
fn answers_without_end_are_given_up() {
    const ADVERTISEMENT: &str = "HTTP/1.1 200 OK\r\nContent-Type: \
        application/x-git-upload-pack-advertisement\r\nConnection: close\r\n\r\n000eversion 2\n";
    const ERROR: &str = "HTTP/1.1 500 No\r\nContent-Type: text/html\r\n\r\n";
    for (head, chunk, kind) in [
        (
            "HTTP/1.1 200 OK\r\n",
            &b"X-Y: z\r\n"[..],
            ErrorKind::Connection,
        ),
        ("HTTP/1.1 200 OK\r\nX: ", b"y", ErrorKind::Connection),
        (
            "HTTP/1.1 100 Continue\r\n\r\n",
            b"HTTP/1.1 100 Continue\r\n\r\n",
            ErrorKind::Connection,
        ),
        (ERROR, b"<html>", ErrorKind::Connection),
        (ADVERTISEMENT, b"0009abcd\n", ErrorKind::Malformed),
        (ADVERTISEMENT, b"0005a", ErrorKind::Malformed),
    ] {
        let url = format!("http://{}/x", endless(head, chunk));
        let error = connect(&url, &Options::default()).err().expect("no end");
        assert_eq!(error.kind(), kind, "{head} {error}");
    }
}

#[test]
fn greetings_hold_each_line_once() {
    for lines in [
        &["version 2", "version 2"][..],
        &["version 2", "version 1"],
        &["version 1", "version 1"],
        &["# service=git-upload-pack", "# service=git-upload-pack"],
        &["# service=git-upload-pack", "", "# service=git-upload-pack"],
    ] {
        let mut parser = GreetingParser::default();
        let failed = lines.iter().any(|line| {
            let packet = match line.is_empty() {
                true => Packet::Flush,
                false => Packet::Data(line.as_bytes()),
            };
            parser.push(packet).is_err()
        });
        assert!(failed, "{lines:?}");
    }
}

/// Sends a greeting, then messages without end.
struct Talkative(u64);

impl Read for Talkative {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let text: &[u8] = match self.0 {
            0 => b"000eversion 2\n0012fetch=shallow\n0000",
            1 => b"000dpackfile\n",
            _ => b"0009\x02 x\n\n",
        };
        self.0 += 1;
        buffer[..text.len()].copy_from_slice(text);
        Ok(text.len())
    }
}

impl Connection for Talkative {
    fn send(&mut self, _: &[u8]) -> Result<(), Error> {
        Ok(())
    }
}

/// Interrupts at the first message.
struct Impatient(Interrupt);

impl Progress for Impatient {
    fn begin(&self, title: &'static str, total: Option<u64>) -> Meter {
        Meter::new(title, total)
    }

    fn message(&self, _: ProgressMessage<'_>) {
        self.0.trigger();
    }
}

#[test]
fn messages_without_end_can_be_interrupted() {
    let interrupt = Interrupt::new();
    let mut client = FetchClient::over(Box::new(Talkative(0)), &interrupt).expect("a greeting");
    let request = Request {
        wants: vec![ObjectId::null(Kind::Sha1)],
        ..Request::default()
    };
    let progress = Impatient(interrupt);
    let response = client.fetch(&request, &mut Nothing, &progress);
    let mut pack = response.expect("the pack begins").pack;
    pack.read_to_end(&mut Vec::new()).expect_err("no end");
    let failure = pack.take_failure().expect("the reason is kept");
    assert_eq!(failure.kind(), ErrorKind::Interrupted);
}
