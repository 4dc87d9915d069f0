//! Tests of reloads, and of the shutdown.

use std::io::{Read as _, Write as _};
use std::net::TcpStream;

use pronto_server::{Event, LogFormat};

use crate::stored::{Place, in_both_places};
use crate::support::{Server, Site, status};

in_both_places!(
    a_reload_takes_valid_files_only,
    requests_under_way_are_finished,
    the_wait_for_requests_is_bounded,
);

const PATH: &str = "/team/a/info/refs?service=git-upload-pack";

fn a_reload_takes_valid_files_only(place: Place) {
    let site = Site::new(place);
    let server = Server::start(&site, site.config(""));
    let refs = || status(&server.request("GET", PATH, "", ""));
    assert_eq!(refs(), 200);
    let file = site.path("pronto-server.toml");
    std::fs::write(&file, site.file("nonsense = 1")).expect("a file");
    server.reload.trigger();
    let event = server.wait_for(|event| matches!(event, Event::Reloaded { .. }));
    let line = event.record().line(LogFormat::Json);
    assert!(
        line.contains("pronto-server.toml:2: unknown setting 'nonsense'"),
        "{line}"
    );
    assert_eq!(refs(), 200);
    let grant = "[[grant]]\nrepository = \"**\"\nusers = [\"*\"]\nrole = \"read\"\n";
    std::fs::write(&file, site.file(grant)).expect("a file");
    server.reload.trigger();
    server.wait_for(|event| matches!(event, Event::Reloaded { error: None }));
    assert_eq!(refs(), 401);
}

fn requests_under_way_are_finished(place: Place) {
    let site = Site::new(place);
    let mut server = Server::start(&site, site.config(""));
    let body = "0014command=ls-refs\n0016object-format=sha100010000";
    let head = format!(
        "POST /team/a/git-upload-pack HTTP/1.1\r\nhost: x\r\n\
         git-protocol: version=2\r\ncontent-type: application/x-git-upload-pack-request\r\n\
         content-length: {}\r\n\r\n",
        body.len()
    );
    let connect = || TcpStream::connect(server.address()).expect("it listens");
    let (mut idle, mut busy) = (connect(), connect());
    busy.write_all(head.as_bytes()).expect("it reads");
    let (first, rest) = body.split_at(20);
    busy.write_all(first.as_bytes()).expect("it reads");
    server.wait_for_slots(1);
    server.drain.trigger();
    server.wait_for(|event| matches!(event, Event::Draining { .. }));
    assert_eq!(idle.read(&mut [0; 1]).expect("it is closed"), 0);
    busy.write_all(rest.as_bytes()).expect("it still reads");
    let mut answer = String::new();
    busy.read_to_string(&mut answer).expect("text");
    assert!(answer.contains("refs/heads/main"), "{answer}");
    server.join();
    assert!(TcpStream::connect(server.address()).is_err());
}

fn the_wait_for_requests_is_bounded(place: Place) {
    let site = Site::new(place);
    let mut server = Server::start(&site, site.config("[limits]\ndrain_seconds = 1"));
    let head = "POST /team/a/git-upload-pack HTTP/1.1\r\nhost: x\r\n\
        git-protocol: version=2\r\ncontent-type: application/x-git-upload-pack-request\r\n\
        content-length: 1000\r\n\r\n";
    let mut held = TcpStream::connect(server.address()).expect("it listens");
    held.write_all(head.as_bytes()).expect("it reads");
    server.wait_for_slots(1);
    server.drain.trigger();
    server.join();
    server.wait_for(|event| matches!(event, Event::Drained { connections: 1 }));
}
