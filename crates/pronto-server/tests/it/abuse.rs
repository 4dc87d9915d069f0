//! Tests of clients that are slow, large, or numerous.

use std::io::{Read as _, Write as _};
use std::net::TcpStream;
use std::time::{Duration, Instant};

use flate2::Compression;
use flate2::write::GzEncoder;

use crate::stored::{Place, in_both_places};
use crate::support::{Server, Site, status};

in_both_places!(
    slow_heads_are_given_up,
    a_body_that_does_not_come_is_given_up,
    large_heads_and_many_headers_are_refused,
    compressed_bodies_are_bounded_by_what_they_inflate_to,
    too_many_connections_are_told_to_come_back,
    many_clients_at_once_are_served_in_turn,
    clients_that_do_not_read_leave_slots_to_others,
);

fn slow_heads_are_given_up(place: Place) {
    let site = Site::new(place);
    let server = Server::start(
        &site,
        site.config("[limits]\nhead_seconds = 1\nidle_seconds = 1"),
    );
    for start in ["", "G", "GET / HTTP/1.1\r\nhost: ", "PRI * HTTP/2.0\r\n"] {
        let begun = Instant::now();
        server.raw(start.as_bytes());
        assert!(begun.elapsed() < Duration::from_secs(8), "{start:?}");
    }
    assert_eq!(status(&server.request("GET", "/healthz", "", "")), 200);
}

fn a_body_that_does_not_come_is_given_up(place: Place) {
    let site = Site::new(place);
    let server = Server::start(&site, site.config("[limits]\nstall_seconds = 1"));
    let head = "POST /team/a/git-upload-pack HTTP/1.1\r\nhost: x\r\n\
        git-protocol: version=2\r\ncontent-type: application/x-git-upload-pack-request\r\n\
        content-length: 1000\r\n\r\n0014command";
    let begun = Instant::now();
    let answer = server.raw(head.as_bytes());
    assert!(begun.elapsed() < Duration::from_secs(10), "{answer}");
}

fn large_heads_and_many_headers_are_refused(place: Place) {
    let site = Site::new(place);
    let server = Server::start(&site, site.config(""));
    let large = format!("x: {}\r\n", "a".repeat(100_000));
    assert_eq!(status(&server.request("GET", "/healthz", &large, "")), 431);
    let many = "x: y\r\n".repeat(1000);
    assert_eq!(status(&server.request("GET", "/healthz", &many, "")), 431);
    let path = format!("/{}", "a".repeat(100_000));
    assert!(matches!(
        status(&server.request("GET", &path, "", "")),
        414 | 431
    ));
}

fn compressed_bodies_are_bounded_by_what_they_inflate_to(place: Place) {
    let site = Site::new(place);
    let server = Server::start(&site, site.config("[limits]\nfetch_bytes = 65536"));
    let mut bomb = GzEncoder::new(Vec::new(), Compression::best());
    bomb.write_all(b"0014command=ls-refs\n0016object-format=sha10001")
        .expect("memory");
    let line = format!("{:04x}ref-prefix {}", 65_000 + 15, "a".repeat(65_000));
    for _ in 0..500 {
        bomb.write_all(line.as_bytes()).expect("memory");
    }
    let bomb = bomb.finish().expect("memory");
    assert!(bomb.len() < 65_536, "it is small while compressed");
    let mut bytes = format!(
        "POST /team/a/git-upload-pack HTTP/1.1\r\nhost: x\r\nconnection: close\r\n\
         git-protocol: version=2\r\ncontent-encoding: gzip\r\n\
         content-type: application/x-git-upload-pack-request\r\ncontent-length: {}\r\n\r\n",
        bomb.len()
    )
    .into_bytes();
    bytes.extend_from_slice(&bomb);
    let answer = server.raw(&bytes);
    assert!(!answer.contains("refs/heads/main"), "{answer}");
    assert_ne!(status(&answer), 200, "{answer}");
}

fn too_many_connections_are_told_to_come_back(place: Place) {
    let site = Site::new(place);
    let text = "[limits]\nconnections = 3\nconnections_per_address = 2";
    let server = Server::start(&site, site.config(text));
    let connect = || TcpStream::connect(server.address()).expect("it listens");
    let held = [connect(), connect()];
    let mut answer = String::new();
    connect().read_to_string(&mut answer).expect("text");
    assert_eq!(status(&answer), 429, "{answer}");
    assert!(answer.contains("retry-after: "), "{answer}");
    drop(held);
    let end = Instant::now() + Duration::from_secs(10);
    while status(&server.request("GET", "/healthz", "", "")) != 200 {
        assert!(Instant::now() < end, "the connections are counted forever");
    }
}

fn many_clients_at_once_are_served_in_turn(place: Place) {
    let site = Site::new(place);
    let server = Server::start(&site, site.config("[limits]\nrequests = 8"));
    let get = "GET /team/a/info/refs?service=git-upload-pack HTTP/1.1\r\nhost: x\r\n\
        connection: close\r\ngit-protocol: version=2\r\n\r\n";
    let sockets: Vec<TcpStream> = (0..200)
        .map(|_| {
            let mut socket = TcpStream::connect(server.address()).expect("it listens");
            socket.write_all(get.as_bytes()).expect("it reads");
            socket
        })
        .collect();
    for mut socket in sockets {
        let mut answer = String::new();
        socket.read_to_string(&mut answer).expect("text");
        assert_eq!(status(&answer), 200, "{answer}");
    }
}

fn clients_that_do_not_read_leave_slots_to_others(place: Place) {
    let site = Site::new(place);
    let alice = site.user("alice");
    let text = "[limits]\nrequests = 2\nuser_share = 50\nwait_seconds = 1\nstall_seconds = 60";
    let server = Server::start(&site, site.config(text));
    // The client sends no body, so that its request holds the slot.
    let head = "POST /team/a/git-upload-pack HTTP/1.1\r\nhost: x\r\n\
        git-protocol: version=2\r\ncontent-type: application/x-git-upload-pack-request\r\n\
        content-length: 1000\r\n\r\n";
    let mut held = TcpStream::connect(server.address()).expect("it listens");
    held.write_all(head.as_bytes()).expect("it reads");
    server.wait_for_slots(1);
    let path = "/team/a/info/refs?service=git-upload-pack";
    let answer = server.request("GET", path, "", "");
    assert_eq!(status(&answer), 429, "{answer}");
    assert!(answer.contains("retry-after: "), "{answer}");
    let header = format!("authorization: Bearer {alice}\r\n");
    assert_eq!(status(&server.request("GET", path, &header, "")), 200);
}
