//! Hostile netsync clients and servers, and attacks on the socket of the monitor.

use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::{TcpListener, TcpStream};
use std::os::unix::fs::PermissionsExt as _;
use std::process::{Command, Stdio};
use std::sync::mpsc;
use std::time::Duration;

use super::Table;
use crate::attack::{Attack, Scene, command, skip};
use crate::servers::http::respond;
use crate::servers::{flood, has_tls, stall};

/// The reason why there is no control.
const OURS: &str = "git has no peers, and its monitor follows the creation mask";

/// The time limit for a peer to connect or to be refused.
const PATIENCE: Duration = Duration::from_secs(60);

pub(super) fn table() -> Table {
    let mut table = Table::without_control("peers", OURS);
    servers(&mut table);
    clients(&mut table);
    monitor(&mut table);
    table
}

/// A pronto process in `work`, with the home directory of `who`.
fn pronto(scene: &Scene, who: &str) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_pronto"));
    command
        .current_dir(scene.path("work"))
        .env_clear()
        .env("PATH", crate::process::path())
        .env("HOME", scene.path(format!("home-{who}")))
        .env("GIT_CONFIG_NOSYSTEM", "1")
        .env("PRONTO_NO_FALLBACK", "1");
    command
}

fn done(scene: &Scene, who: &str, arguments: &[&str]) -> String {
    let output = pronto(scene, who).args(arguments).output();
    let output = output.expect("it starts");
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(output.status.success(), "{arguments:?}: {said}");
    String::from_utf8_lossy(&output.stdout).into_owned()
}

/// Creates a key for `who`.
fn key(scene: &Scene, who: &str) -> String {
    std::fs::create_dir_all(scene.path(format!("home-{who}"))).expect("a directory");
    let reported = done(scene, who, &["netsync", "keygen"]);
    reported.lines().next().expect("a key").to_owned()
}

/// Starts a server of `work/desk` that knows some peers. Returns its address.
fn serve(scene: &mut Scene, peers: &[Peer]) -> String {
    scene.repository("work/desk");
    let desk = key(scene, "desk");
    for peer in peers {
        let own = key(scene, peer.name);
        let trust = ["netsync", "trust", peer.name, &own, "--roles", peer.roles];
        done(scene, "desk", &trust);
        done(scene, peer.name, &["netsync", "trust", "desk", &desk]);
    }
    let mut command = pronto(scene, "desk");
    command
        .args(["serve", "--netsync", "--listen", "127.0.0.1:0", "desk"])
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::piped());
    let mut child = command.spawn().expect("it starts");
    let mut lines = BufReader::new(child.stderr.take().expect("it is a pipe"));
    scene.beside.push(child);
    let mut first = String::new();
    lines.read_line(&mut first).expect("it says where it is");
    let (_, address) = first.split_once("\"address\":\"").expect("an address");
    let (address, _) = address.split_once('"').expect("it ends");
    // Keep reading, so that the server does not block on its output.
    std::thread::spawn(move || lines.lines().map_while(Result::ok).for_each(drop));
    address.to_owned()
}

/// A peer that a server knows.
struct Peer {
    name: &'static str,
    roles: &'static str,
}

const LAPTOP: Peer = Peer {
    name: "laptop",
    roles: "read,write",
};

/// The sync of another peer, which must succeed.
fn sync(scene: &Scene, address: &str) -> Attack {
    scene.repository("work/laptop");
    let url = format!("netsync://{address}/");
    command(["sync", &url, "--name", "desk"])
        .within("work/laptop")
        .variable("HOME", scene.path("home-laptop"))
        .succeeds()
}

/// The records of a client that are forwarded: its part of the handshake, and its greeting.
const RECORDS: usize = 2;

/// Application data of TLS.
const DATA: u8 = 0x17;

/// Starts that many syncs as `who` through a relay that stops forwarding the client's bytes once
/// the server has received its greeting.
fn stalled(scene: &mut Scene, who: &str, address: &str, times: usize) {
    let (sender, receiver) = mpsc::channel();
    let place = format!("work/{who}");
    scene.repository(&place);
    for _ in 0..times {
        let listener = TcpListener::bind(("127.0.0.1", 0)).expect("a free port");
        let port = listener.local_addr().expect("it is bound").port();
        let (address, sender) = (address.to_owned(), sender.clone());
        std::thread::spawn(move || {
            let client = listener.accept().ok()?.0;
            let server = TcpStream::connect(address).ok()?;
            let (mut back, mut to) = (server.try_clone().ok()?, client.try_clone().ok()?);
            std::thread::spawn(move || std::io::copy(&mut back, &mut to));
            pass_records(client.try_clone().ok()?, server.try_clone().ok()?).ok()?;
            let _ = sender.send(());
            // Both sides stay connected until the test ends.
            std::mem::forget((client, server));
            Some(())
        });
        let url = format!("netsync://127.0.0.1:{port}/");
        let mut command = pronto(scene, who);
        command
            .args(["sync", "--pull", &url, "--name", "desk"])
            .current_dir(scene.path(&place))
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::null());
        scene.beside.push(command.spawn().expect("it starts"));
    }
    drop(sender);
    for _ in 0..times {
        // A server may refuse some of them.
        if receiver.recv_timeout(PATIENCE).is_err() {
            return;
        }
    }
}

/// Passes on whole records until the greeting.
fn pass_records(mut from: TcpStream, mut to: TcpStream) -> std::io::Result<()> {
    let mut count = 0;
    while count < RECORDS {
        let mut head = [0; 5];
        from.read_exact(&mut head)?;
        let mut body = vec![0; usize::from(u16::from_be_bytes([head[3], head[4]]))];
        from.read_exact(&mut body)?;
        to.write_all(&head)?;
        to.write_all(&body)?;
        count += usize::from(head[0] == DATA);
    }
    Ok(())
}

fn servers(table: &mut Table) {
    table.row("honest", |scene| {
        let address = serve(scene, &[LAPTOP]);
        sync(scene, &address)
    });
    for (name, peers) in [
        ("one-read-only-peer-stalls", &["evil"][..]),
        ("two-read-only-peers-stall", &["evil", "worse"]),
    ] {
        table.row(name, move |scene| {
            let mut all: Vec<Peer> = peers
                .iter()
                .map(|name| Peer {
                    name,
                    roles: "read",
                })
                .collect();
            all.push(LAPTOP);
            let address = serve(scene, &all);
            for peer in peers {
                stalled(scene, peer, &address, 16);
            }
            sync(scene, &address)
        });
    }
    table.row("strangers-stall-before-the-handshake", |scene| {
        let address = serve(scene, &[LAPTOP]);
        let strangers: Vec<TcpStream> = (0..100)
            .map_while(|_| TcpStream::connect(&address).ok())
            .collect();
        sync(scene, &address).check(move |_, _| match strangers.is_empty() {
            true => Err("nobody was let in".to_owned()),
            false => Ok(()),
        })
    });
    for (name, bytes) in [
        ("garbage", &b"GET / HTTP/1.1\r\n\r\n"[..]),
        ("zeros", &[0; 4096]),
        ("a-huge-record", b"\x16\x03\x01\xff\xff"),
    ] {
        table.row(format!("strangers-send-{name}"), move |scene| {
            let address = serve(scene, &[LAPTOP]);
            let strangers: Vec<TcpStream> = (0..50)
                .map_while(|_| {
                    let mut stream = TcpStream::connect(&address).ok()?;
                    stream.write_all(bytes).ok()?;
                    Some(stream)
                })
                .collect();
            sync(scene, &address).check(move |_, _| match strangers.is_empty() {
                true => Err("nobody was let in".to_owned()),
                false => Ok(()),
            })
        });
    }
    table.row("stranger-is-told-nothing", |scene| {
        let address = serve(scene, &[LAPTOP]);
        let strange = key(scene, "strange");
        assert!(!strange.is_empty(), "a key");
        let desk = done(scene, "desk", &["netsync", "key"]);
        let desk = desk.lines().next().expect("a key").to_owned();
        done(scene, "strange", &["netsync", "trust", "desk", &desk]);
        let first = scene.ids.first.clone();
        let url = format!("netsync://{address}/");
        scene.repository("work/laptop");
        command(["sync", &url, "--name", "desk"])
            .within("work/laptop")
            .variable("HOME", scene.path("home-strange"))
            .fails()
            .check(move |_, outcome| match outcome.said().contains(&first) {
                true => Err("a stranger learns of a commit".to_owned()),
                false => Ok(()),
            })
    });
}

/// A client that meets a server of another protocol.
fn clients(table: &mut Table) {
    let meets = |scene: &Scene, port: u16| {
        scene.repository("work/repo");
        let own = key(scene, "laptop");
        done(scene, "laptop", &["netsync", "trust", "desk", &own]);
        command([
            "sync",
            &format!("netsync://127.0.0.1:{port}/"),
            "--name",
            "desk",
        ])
        .within("work/repo")
        .variable("HOME", scene.path("home-laptop"))
        .fails()
    };
    table.row("server-of-garbage", move |scene| {
        let port = scene.tcp(|stream| flood(stream, b"garbage \x1b[2J"));
        meets(scene, port)
    });
    table.row("server-of-zeros", move |scene| {
        let port = scene.tcp(|stream| flood(stream, &[0; 512]));
        meets(scene, port)
    });
    table.row("server-that-stalls", move |scene| {
        let port = scene.tcp(|stream| stall(stream));
        meets(scene, port).seconds(100)
    });
    table.row("server-with-another-key", move |scene| {
        if !has_tls() {
            return skip("openssl is not installed");
        }
        let port = scene.https(|_, out| respond(out, "200 OK", &[], b""));
        meets(scene, port).never_contacts(port)
    });
}

/// The monitor's socket with a umask of 0.
fn monitor(table: &mut Table) {
    table.row("monitor-is-ones-own", |scene| {
        scene.repository("work/repo");
        let script = format!(
            "umask 0; exec '{}' fsmonitor--daemon run",
            env!("CARGO_BIN_EXE_pronto")
        );
        let child = Command::new("sh")
            .args(["-c", &script])
            .current_dir(scene.path("work/repo"))
            .env("HOME", scene.path("home"))
            .env("GIT_CONFIG_NOSYSTEM", "1")
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn();
        scene.beside.push(child.expect("sh starts"));
        let socket = scene.path("work/repo/.git/fsmonitor--daemon.ipc");
        let end = std::time::Instant::now() + PATIENCE;
        while !socket.exists() && std::time::Instant::now() < end {
            std::thread::sleep(Duration::from_millis(10));
        }
        command(["fsmonitor--daemon", "status"])
            .within("work/repo")
            .check(move |_, _| {
                let data = socket.metadata().map_err(|error| error.to_string())?;
                let mode = data.permissions().mode() & 0o777;
                match mode & 0o066 {
                    0 => Ok(()),
                    _ => Err(format!("others may use the socket: {mode:o}")),
                }
            })
    });
}
