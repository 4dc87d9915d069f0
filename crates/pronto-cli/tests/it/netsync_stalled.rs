//! Peers that stall in different ways. Other peers are served without delay.

use std::io::{Read as _, Write as _};
use std::net::TcpStream;
use std::sync::mpsc::{Sender, channel};
use std::thread::JoinHandle;
use std::time::Duration;

use pronto_hash::{Kind, ObjectId};
use pronto_netsync::frame::{Channel, FrameReader, FrameType, FrameWriter};
use pronto_netsync::message::{Accept, Credit, Globs, Hello, ObjectFormat, TransferRole};
use pronto_netsync::repository::SegmentContent;
use pronto_peer::DuplexStream as _;
use rustix::event::{PollFd, PollFlags, poll};

use crate::netsync_peers::{Server, World};
use crate::netsync_puppet::{Attacker, Stalled, Stalling, gifts, segment};
use crate::support::stderr;

/// A time limit that only a hang reaches.
const LONG: Duration = Duration::from_secs(300);

/// The repository of a server, and one honest peer.
struct Scene {
    world: World,
    desk: String,
}

impl Scene {
    fn new() -> Self {
        let world = World::new();
        world.repository("desk");
        world.git(".", &["clone", "-q", "desk", "friend"]);
        world.commit("friend", "f", b"friend\n");
        let (desk, friend) = (world.key("desk"), world.key("friend"));
        world.introduce(("desk", &desk), ("friend", &friend));
        Scene { world, desk }
    }

    /// Creates trusted peers with this role.
    fn know(&self, count: usize, roles: &str) -> Vec<String> {
        let names: Vec<String> = (0..count).map(|at| format!("{roles}er{at}")).collect();
        for name in &names {
            let key = self.world.key(name);
            let trust = ["netsync", "trust", name, &key, "--roles", roles];
            self.world.done("desk", ".", &trust);
            self.world
                .done(name, ".", &["netsync", "trust", "desk", &self.desk]);
        }
        names
    }

    fn attackers(&self, server: &Server, names: &[String]) -> Vec<Attacker> {
        let new = |name: &String| Attacker::new(&self.world, server, name);
        names.iter().map(new).collect()
    }

    fn serve(&self, arguments: &[&str]) -> Server {
        self.world.serve("desk", "desk", arguments)
    }

    /// Syncs new commits of the honest peer.
    fn friend_syncs(&self, server: &Server) {
        let url = server.url("");
        let output = self
            .world
            .pronto("friend", "friend", &["sync", &url, "--name", "desk"]);
        assert!(output.status.success(), "{}", stderr(&output));
        let tracked = self
            .world
            .git("desk", &["rev-parse", "refs/remotes/friend/main"]);
        assert_eq!(tracked, self.world.git("friend", &["rev-parse", "main"]));
        server.wait_for(|line| line.contains("\"synced\"") && line.contains("\"friend\""));
    }
}

/// Asserts that no session of these peers has ended.
fn assert_all_stall(server: &Server, names: &[String]) {
    for line in server.lines() {
        let is_theirs = |name: &String| line.contains(&format!("\"peer\":\"{name}\""));
        assert!(!names.iter().any(is_theirs), "{line}");
    }
}

#[test]
fn two_stalled_readers_do_not_block_a_server() {
    let scene = Scene::new();
    let names = scene.know(2, "read");
    for memory in ["1", "96", "1024", "65536"] {
        let server = scene.serve(&["--memory", memory]);
        let mut stalled: Vec<Stalled> = Vec::new();
        for attacker in scene.attackers(&server, &names) {
            let is_greeted = |report: &pronto_netsync::session::Report| report.received_steps > 0;
            stalled.push(attacker.stall(is_greeted, true));
            stalled.extend((0..15).map(|_| attacker.stall(is_greeted, false)));
        }
        scene.friend_syncs(&server);
        assert_all_stall(&server, &names);
        assert!(server.peak_kib() < 200 << 10, "{} KiB", server.peak_kib());
        drop(stalled);
    }
}

#[test]
fn a_stalled_reader_reserves_no_memory() {
    let scene = Scene::new();
    let mut noise = vec![0; 24 << 20];
    let mut number = 1_u64;
    for eight in noise.chunks_exact_mut(8) {
        number = number
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1_442_695_040_888_963_407);
        eight.copy_from_slice(&number.to_be_bytes());
    }
    scene.world.commit("desk", "noise", &noise);
    let names = scene.know(2, "read");
    // Memory for one piece of work at a time.
    let server = scene.serve(&["--memory", "96"]);
    let attackers = scene.attackers(&server, &names);
    let stalled: Vec<Stalled> = (attackers.iter())
        .map(|attacker| attacker.stall(|report| report.received_bytes > 0, true))
        .collect();
    scene.friend_syncs(&server);
    assert_all_stall(&server, &names);
    drop(stalled);
}

#[test]
fn a_stalled_writer_reserves_no_memory() {
    let scene = Scene::new();
    let names = scene.know(2, "write");
    let server = scene.serve(&["--memory", "96", "--allow-unrelated"]);
    let (reached, has_reached) = channel();
    let mut releases: Vec<(Sender<()>, JoinHandle<()>)> = Vec::new();
    for attacker in scene.attackers(&server, &names) {
        let (release, released) = channel();
        let reached = reached.clone();
        let thread = std::thread::spawn(move || {
            let content = SegmentContent::Stream(Box::new(Stalling {
                first: std::io::Cursor::new(b"PACK\0\0\0\x02\0\0\0\x09".repeat(10_000)),
                reached,
                released,
            }));
            let tip = ObjectId::from_hex(&[b'a'; 40]).expect("an id");
            let segment = segment(content, (9, 4 << 20), ObjectId::null(Kind::Sha1));
            let _ = attacker.converse(gifts(&[tip], segment), TransferRole::Source, &mut |_, _| {});
        });
        releases.push((release, thread));
    }
    for _ in &names {
        has_reached.recv().expect("it gets so far");
    }
    scene.friend_syncs(&server);
    assert_all_stall(&server, &names);
    for (release, thread) in releases {
        drop(release);
        thread.join().expect("it ends");
    }
}

/// A session that sends small frames after its greeting until it is dropped.
struct Dripping {
    stop: Option<Sender<()>>,
    thread: Option<JoinHandle<()>>,
}

impl Drop for Dripping {
    fn drop(&mut self) {
        drop(self.stop.take());
        let _ = self.thread.take().map(JoinHandle::join);
    }
}

fn hello() -> Vec<u8> {
    let mut body = Vec::new();
    let hello = Hello {
        versions: vec![1],
        object_format: ObjectFormat::Sha1,
        role: TransferRole::Sink,
        capabilities: 2,
        repository: Vec::new(),
        identity: Vec::new(),
        globs: Globs::default(),
        window_bytes: 1 << 20,
        nonce: [3; 32],
    };
    hello.write(&mut body);
    body
}

fn frame(kind: FrameType, body: &[u8]) -> Vec<u8> {
    let (mut writer, mut wire) = (FrameWriter::default(), Vec::new());
    assert!(writer.send(kind, body).expect("it is short"));
    while writer.write_to(&mut wire).expect("a vector takes") > 0 {}
    wire
}

/// Starts sending small frames after the peer was accepted.
fn drip(attacker: &Attacker) -> Dripping {
    let mut link = attacker.meet().link;
    let (stop, stopped) = channel::<()>();
    link.write_all(&frame(FrameType::Hello, &hello()))
        .expect("it is taken");
    link.flush().expect("it is taken");
    let mut reader = FrameReader::default();
    while reader.peek().expect("frames").is_none() {
        let ends = link.ends().input;
        poll(&mut [PollFd::new(&ends, PollFlags::IN)], None).expect("it is waited for");
        match reader.read_from(&mut link) {
            Ok(count) => assert_ne!(count, 0, "it was not let in"),
            Err(error) => assert_eq!(error.kind(), std::io::ErrorKind::WouldBlock),
        }
    }
    let mut body = Vec::new();
    Accept { version: 1 }.write(&mut body);
    let accept = frame(FrameType::Accept, &body);
    let thread = std::thread::spawn(move || {
        let mut body = Vec::new();
        let (channel, bytes) = (Channel::Transfer, 1);
        Credit { channel, bytes }.write(&mut body);
        let credit = frame(FrameType::Credit, &body);
        let mut is_open = link.write_all(&accept).is_ok();
        while let Err(std::sync::mpsc::RecvTimeoutError::Timeout) =
            stopped.recv_timeout(Duration::from_millis(100))
        {
            is_open = is_open && link.write_all(&credit).is_ok() && link.flush().is_ok();
        }
    });
    Dripping {
        stop: Some(stop),
        thread: Some(thread),
    }
}

/// Many peers occupy all places, and each sends small frames.
#[test]
fn small_frames_keep_no_place() {
    let scene = Scene::new();
    let names = scene.know(4, "read");
    // Four places.
    let server = scene.serve(&["--memory", "1", "--slow-timeout", "1"]);
    let dripping: Vec<Dripping> = (scene.attackers(&server, &names).iter())
        .map(drip)
        .collect();
    scene.friend_syncs(&server);
    let line = server.wait_for(|line| line.contains("\"peer\":\"reader"));
    assert!(
        line.contains("closed for a waiting session, because this session was slow"),
        "{line}"
    );
    drop(dripping);
}

/// If no session is slow, a waiting peer is refused after a timeout.
#[test]
fn a_session_without_a_place_is_told_to_try_again() {
    let scene = Scene::new();
    let names = scene.know(4, "read");
    let timeouts = ["--slow-timeout", "3600", "--wait-timeout", "1"];
    let server = scene.serve(&[&["--memory", "1"][..], &timeouts].concat());
    let dripping: Vec<Dripping> = (scene.attackers(&server, &names).iter())
        .map(drip)
        .collect();
    let arguments = ["sync", &server.url(""), "--name", "desk"];
    let output = scene.world.pronto("friend", "friend", &arguments);
    assert_eq!(output.status.code(), Some(128));
    let said = stderr(&output);
    assert!(said.contains("too many sessions are running"), "{said}");
    assert!(said.contains("hint: try again later"), "{said}");
    drop(dripping);
    // Then a place is free.
    for name in &names {
        server.wait_for(|line| line.contains(&format!("\"peer\":\"{name}\"")));
    }
    scene.friend_syncs(&server);
}

#[test]
fn small_frames_are_no_progress() {
    let scene = Scene::new();
    let names = scene.know(1, "read");
    let server = scene.serve(&["--idle-timeout", "2"]);
    let dripping = drip(&scene.attackers(&server, &names)[0]);
    server.wait_for(|line| line.contains("the peer sent too little within 2 s"));
    drop(dripping);
}

#[test]
fn a_session_ends_after_its_time() {
    let scene = Scene::new();
    let names = scene.know(1, "read");
    let server = scene.serve(&["--session-timeout", "1"]);
    let dripping = drip(&scene.attackers(&server, &names)[0]);
    server.wait_for(|line| line.contains("timeout: a session may take at most 1 s"));
    drop(dripping);
}

/// An incomplete greeting takes no memory that others need, and one that arrives byte by byte times
/// out.
#[test]
fn incomplete_greetings_reserve_nothing_and_time_out() {
    let scene = Scene::new();
    let names = scene.know(2, "read");
    let partial = |server: &Server| {
        let attackers = scene.attackers(server, &names);
        let links = attackers.iter().map(|attacker| {
            let mut link = attacker.meet().link;
            // The frame is too long to arrive byte by byte within the time limit.
            let wire = frame(FrameType::Hello, &vec![0; 10_000]);
            link.write_all(&wire[..20]).expect("it is taken");
            link.flush().expect("it is taken");
            link
        });
        links.collect::<Vec<_>>()
    };
    let server = scene.serve(&["--memory", "96", "--handshake-timeout", "300"]);
    let links = partial(&server);
    scene.friend_syncs(&server);
    assert_all_stall(&server, &names);
    drop(links);
    let server = scene.serve(&["--handshake-timeout", "2"]);
    let mut links = partial(&server);
    let (stop, stopped) = channel::<()>();
    let thread = std::thread::spawn(move || {
        while stopped
            .recv_timeout(Duration::from_millis(50))
            .is_err_and(|error| error == std::sync::mpsc::RecvTimeoutError::Timeout)
        {
            for link in &mut links {
                let _ = link.write_all(&[0]).and_then(|()| link.flush());
            }
        }
    });
    for name in &names {
        server.wait_for(|line| {
            line.contains(name) && line.contains("the peer sent too little within")
        });
    }
    drop(stop);
    thread.join().expect("it ends");
}

/// Connections that do not finish their handshake replace one another, and do not affect other
/// peers.
#[test]
fn half_open_handshakes_replace_one_another() {
    let scene = Scene::new();
    let server = scene.serve(&["--handshake-timeout", "300"]);
    let connect = |_| {
        let mut socket = TcpStream::connect(&server.address).expect("it listens");
        // The beginning of a handshake.
        let _ = socket.write_all(&[0x16, 3, 1, 2, 0, 1]);
        socket
    };
    let mut silent: Vec<TcpStream> = (0..300).map(connect).collect();
    scene.friend_syncs(&server);
    let first = &mut silent[0];
    first.set_read_timeout(Some(LONG)).expect("a socket");
    let read = first.read(&mut [0; 64]);
    let was_ended = match &read {
        Ok(count) => *count == 0,
        Err(error) => error.kind() == std::io::ErrorKind::ConnectionReset,
    };
    assert!(was_ended, "{read:?}");
    let last = silent.last().expect("many");
    let mut fds = [PollFd::new(last, PollFlags::RDHUP)];
    let now = rustix::event::Timespec {
        tv_sec: 0,
        tv_nsec: 0,
    };
    assert_eq!(poll(&mut fds, Some(&now)), Ok(0), "the newest are there");
    assert!(server.peak_kib() < 200 << 10, "{} KiB", server.peak_kib());
}
