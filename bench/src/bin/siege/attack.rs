//! Hostile clients: a fixed number of simultaneous connections, which are reopened when the server
//! closes them.

use std::io::{Read as _, Write as _};
use std::net::{Ipv4Addr, SocketAddr, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering::Relaxed};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use bench::load::client::connect_from;

use crate::site::{SiegeServer, SiegeSite};

/// The number of attacker addresses: 127.0.1.1 and so on.
const ADDRESSES: usize = 4;

/// The pause before a connection is reopened.
const PAUSE: Duration = Duration::from_millis(100);

/// The time between two bytes of a client that sends slowly.
const SLOW: Duration = Duration::from_millis(500);

/// A kind of attack.
pub(crate) struct Kind {
    pub(crate) name: &'static str,
    protocol: AttackProtocol,
    act: AttackBehaviour,
}

#[derive(Clone, Copy)]
enum AttackProtocol {
    Http,
    Git,
    Ssh,
    Netsync,
}

/// The behaviour of one connection. The bytes are generated once.
#[derive(Clone, Copy)]
enum AttackBehaviour {
    /// Sends these bytes and then nothing.
    Stall(fn(&SiegeSite) -> Vec<u8>),
    /// Sends these bytes one by one.
    Slowly(fn(&SiegeSite) -> Vec<u8>),
    /// Sends these requests, each after the response to the previous one.
    Flood(fn(&SiegeSite) -> Vec<u8>),
}

/// All kinds of attacks.
pub(crate) const KINDS: &[Kind] = &[
    kind(
        "idle bodies",
        AttackProtocol::Http,
        AttackBehaviour::Stall(idle_body),
    ),
    kind(
        "slow headers",
        AttackProtocol::Http,
        AttackBehaviour::Slowly(slow_head),
    ),
    kind(
        "stalled negotiations",
        AttackProtocol::Http,
        AttackBehaviour::Stall(negotiation),
    ),
    kind(
        "stalled negotiations over git",
        AttackProtocol::Git,
        AttackBehaviour::Stall(git_negotiation),
    ),
    kind(
        "stalled packs",
        AttackProtocol::Http,
        AttackBehaviour::Stall(half_pack),
    ),
    kind(
        "netsync handshakes",
        AttackProtocol::Netsync,
        AttackBehaviour::Stall(|_| vec![0, 16, 1]),
    ),
    kind(
        "SSH without a login",
        AttackProtocol::Ssh,
        AttackBehaviour::Stall(|_| b"SSH-2.0-x\r\n".to_vec()),
    ),
    kind(
        "git greetings",
        AttackProtocol::Git,
        AttackBehaviour::Stall(|_| b"0040git-upload".to_vec()),
    ),
    kind(
        "open streams of HTTP/2",
        AttackProtocol::Http,
        AttackBehaviour::Stall(streams),
    ),
    kind(
        "compressed prefixes",
        AttackProtocol::Http,
        AttackBehaviour::Flood(prefixes),
    ),
    kind(
        "refused commands",
        AttackProtocol::Http,
        AttackBehaviour::Flood(commands),
    ),
    kind(
        "commands without a user",
        AttackProtocol::Http,
        AttackBehaviour::Flood(commands_of_nobody),
    ),
    kind(
        "clones without a user",
        AttackProtocol::Http,
        AttackBehaviour::Flood(clone),
    ),
];

const fn kind(name: &'static str, protocol: AttackProtocol, act: AttackBehaviour) -> Kind {
    Kind {
        name,
        protocol,
        act,
    }
}

const V2: &str = "git-protocol: version=2\r\n";
const FETCH: &str = "git-upload-pack";
const PUSH: &str = "git-receive-pack";
const ID: &str = "1111111111111111111111111111111111111111";
const NULL: &str = "0000000000000000000000000000000000000000";

fn packet(text: impl AsRef<[u8]>) -> Vec<u8> {
    let text = text.as_ref();
    let mut bytes = format!("{:04x}", text.len() + 4).into_bytes();
    bytes.extend_from_slice(text);
    bytes
}

fn head(service: &str, headers: &str, length: usize) -> Vec<u8> {
    format!(
        "POST /small/{service} HTTP/1.1\r\nhost: localhost\r\n\
         content-type: application/x-{service}-request\r\n{headers}content-length: {length}\r\n\r\n"
    )
    .into_bytes()
}

fn start(command: &str) -> Vec<u8> {
    [
        packet(format!("command={command}\n")),
        packet("object-format=sha1"),
        b"0001".to_vec(),
    ]
    .concat()
}

fn idle_body(_: &SiegeSite) -> Vec<u8> {
    head(FETCH, V2, 1000)
}

fn slow_head(_: &SiegeSite) -> Vec<u8> {
    b"GET /small/info/refs?service=git-upload-pack HTTP/1.1\r\nhost: localhost\r\nx: yyyyyyyyyyyy\r\n".to_vec()
}

fn haves() -> Vec<u8> {
    [start("fetch"), packet(format!("have {ID}\n")).repeat(100)].concat()
}

fn negotiation(_: &SiegeSite) -> Vec<u8> {
    [head(FETCH, V2, 1 << 20), haves()].concat()
}

fn git_negotiation(_: &SiegeSite) -> Vec<u8> {
    let greeting = packet("git-upload-pack /small\0host=localhost\0\0version=2\0");
    [greeting, haves()].concat()
}

fn token(site: &SiegeSite) -> String {
    format!("authorization: Bearer {}\r\n", site.mallory)
}

fn half_pack(site: &SiegeSite) -> Vec<u8> {
    let command = format!("{NULL} {ID} refs/heads/x\0 report-status side-band-64k");
    let body = [packet(command), b"0000PACK\0\0\0\x02\0\0\0\x09".to_vec()].concat();
    [head(PUSH, &token(site), 1 << 20), body].concat()
}

fn gzip(content: &[u8]) -> Vec<u8> {
    let mut compressor = libdeflater::Compressor::new(libdeflater::CompressionLvl::default());
    let mut bytes = vec![0; compressor.gzip_compress_bound(content.len())];
    let length = compressor.gzip_compress(content, &mut bytes);
    bytes.truncate(length.expect("there is room"));
    bytes
}

fn prefixes(_: &SiegeSite) -> Vec<u8> {
    let prefix = packet(format!("ref-prefix {}", "x".repeat(65_000)));
    let body = [start("ls-refs"), prefix.repeat(64), b"0000".to_vec()].concat();
    let body = gzip(&body);
    [
        head(
            FETCH,
            &format!("{V2}content-encoding: gzip\r\n"),
            body.len(),
        ),
        body,
    ]
    .concat()
}

fn refused() -> Vec<u8> {
    let name = format!("refs/kept/{}", "x".repeat(100));
    let first = packet(format!("{NULL} {ID} {name}\0 report-status side-band-64k"));
    let next = packet(format!("{NULL} {ID} {name}"));
    [first, next.repeat(5000), b"0000".to_vec()].concat()
}

fn commands(site: &SiegeSite) -> Vec<u8> {
    let body = refused();
    [head(PUSH, &token(site), body.len()), body].concat()
}

fn commands_of_nobody(_: &SiegeSite) -> Vec<u8> {
    let body = refused();
    [head(PUSH, "", body.len()), body].concat()
}

fn clone(_: &SiegeSite) -> Vec<u8> {
    let body = [
        start("ls-refs"),
        packet("ref-prefix refs/tags/"),
        b"0000".to_vec(),
    ]
    .concat();
    [head(FETCH, V2, body.len()), body].concat()
}

/// Returns an HTTP/2 connection with 32 requests whose bodies are missing.
fn streams(_: &SiegeSite) -> Vec<u8> {
    let mut bytes = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n".to_vec();
    let frame = |kind: u8, flags: u8, stream: u32, payload: &[u8]| {
        let length = payload.len() as u32;
        let mut bytes = length.to_be_bytes()[1..].to_vec();
        bytes.extend([kind, flags]);
        bytes.extend(stream.to_be_bytes());
        bytes.extend_from_slice(payload);
        bytes
    };
    bytes.extend(frame(4, 0, 0, b""));
    let mut block = Vec::new();
    for (name, value) in [
        (":method", "POST"),
        (":scheme", "http"),
        (":path", "/small/git-upload-pack"),
        (":authority", "localhost"),
        ("content-type", "application/x-git-upload-pack-request"),
        ("git-protocol", "version=2"),
    ] {
        block.push(0);
        for text in [name, value] {
            block.push(text.len() as u8);
            block.extend_from_slice(text.as_bytes());
        }
    }
    for stream in 0..32 {
        bytes.extend(frame(1, 4, 2 * stream + 1, &block));
    }
    bytes
}

/// A running attack.
pub(crate) struct Attack {
    stop: Arc<AtomicBool>,
    threads: Vec<JoinHandle<()>>,
}

impl Attack {
    /// Opens all connections, and returns after each was tried once.
    pub(crate) fn start(
        kind: &'static Kind,
        site: &SiegeSite,
        server: &SiegeServer,
        connections: usize,
    ) -> Self {
        let stop = Arc::new(AtomicBool::new(false));
        let tried = Arc::new(AtomicUsize::new(0));
        let to = match kind.protocol {
            AttackProtocol::Http => server.http,
            AttackProtocol::Git => server.git,
            AttackProtocol::Ssh => server.ssh,
            AttackProtocol::Netsync => server.netsync,
        };
        let bytes = match kind.act {
            AttackBehaviour::Stall(make)
            | AttackBehaviour::Slowly(make)
            | AttackBehaviour::Flood(make) => Arc::new(make(site)),
        };
        let threads = (0..connections).map(|number| {
            let last = u8::try_from(number % ADDRESSES).unwrap_or(0);
            let client = Hostile {
                act: kind.act,
                source: Ipv4Addr::new(127, 0, 1, 1 + last),
                to,
                bytes: Arc::clone(&bytes),
                stop: Arc::clone(&stop),
            };
            let tried = Arc::clone(&tried);
            thread::spawn(move || client.attack(&tried))
        });
        let threads = threads.collect();
        while tried.load(Relaxed) < connections {
            thread::sleep(PAUSE);
        }
        Attack { stop, threads }
    }

    pub(crate) fn stop(self) {
        self.stop.store(true, Relaxed);
        for one in self.threads {
            // A client that has panicked no longer attacks.
            let _ = one.join();
        }
    }
}

/// A hostile client with one connection.
struct Hostile {
    act: AttackBehaviour,
    source: Ipv4Addr,
    to: SocketAddr,
    bytes: Arc<Vec<u8>>,
    stop: Arc<AtomicBool>,
}

impl Hostile {
    /// Opens its connection again and again. Increments `tried` after the first attempt.
    fn attack(&self, tried: &AtomicUsize) {
        // Real attackers use machines of their own, so their work must not use the processor time
        // of the server.
        let _ = rustix::process::setpriority_process(None, 19);
        let mut is_first = true;
        while !self.is_over() {
            let opened = connect_from(self.source, self.to);
            if std::mem::take(&mut is_first) {
                tried.fetch_add(1, Relaxed);
            }
            // Errors of the connection are ignored. The honest clients measure the effect.
            let _ = opened.and_then(|stream| self.hold(stream));
            thread::sleep(PAUSE);
        }
    }

    fn is_over(&self) -> bool {
        self.stop.load(Relaxed)
    }

    /// Uses a connection until the server closes it.
    fn hold(&self, mut stream: TcpStream) -> std::io::Result<()> {
        stream.set_read_timeout(Some(SLOW))?;
        stream.set_write_timeout(Some(Duration::from_secs(5)))?;
        let is_slow = matches!(self.act, AttackBehaviour::Slowly(_));
        if !is_slow {
            stream.write_all(&self.bytes)?;
        }
        let mut rest = self
            .bytes
            .iter()
            .cycle()
            .take(if is_slow { usize::MAX } else { 0 });
        let mut buffer = vec![0; 1 << 16];
        while !self.is_over() {
            if let Some(byte) = rest.next() {
                stream.write_all(&[*byte])?;
            }
            match stream.read(&mut buffer) {
                Ok(0) => return Ok(()),
                // After the first bytes of a response, the client sends the next request on another
                // connection.
                Ok(_) if matches!(self.act, AttackBehaviour::Flood(_)) => return Ok(()),
                Ok(_) => {}
                Err(error) if is_timeout(&error) => {}
                Err(error) => return Err(error),
            }
        }
        Ok(())
    }
}

fn is_timeout(error: &std::io::Error) -> bool {
    use std::io::ErrorKind::{Interrupted, TimedOut, WouldBlock};
    matches!(error.kind(), Interrupted | TimedOut | WouldBlock)
}
