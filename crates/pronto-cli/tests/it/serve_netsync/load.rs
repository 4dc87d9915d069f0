//! Peers that use up connections and slots, and the shutdown of the server.

use std::io::Read as _;
use std::net::TcpStream;

use super::site::Site;
use crate::netsync_puppet::Attacker;
use crate::serve::wait_until;
use crate::support::stderr;

#[test]
fn a_flood_takes_no_more_than_its_share() {
    let limits = "[limits]\nconnections_per_address = 4\nrequests = 1\nuser_share = 100\nwait_seconds = 5\n\
         stall_seconds = 600\nhead_seconds = 600\n";
    let mut site = Site::new(limits);
    let world = &site.world;
    world.git(".", &["clone", "-q", "work", "alice"]);
    let address = site.address();
    // Connections that send nothing: the fifth is closed at once.
    let mut sockets: Vec<TcpStream> = (0..5)
        .map(|_| TcpStream::connect(&address).expect("it listens"))
        .collect();
    let mut last = sockets.pop().expect("five");
    assert_eq!(last.read(&mut [0]).expect("it is closed"), 0);
    let output = site.sync("alice", "alice", "team/a", &["--pull"]);
    assert!(!output.status.success(), "there is no room");
    drop(sockets);
    let pull = || site.sync("alice", "alice", "team/a", &["--pull"]);
    wait_until(|| pull().status.success());
    // A session that does not continue has the only slot.
    let attacker = Attacker::at(world, &site.url("team/a"), "bob");
    let stalled = attacker.stall(|report| report.received_frames > 0, true);
    let said = stderr(&pull());
    assert!(
        said.contains("the server is busy; try again later"),
        "{said}"
    );
    drop(stalled);
    wait_until(|| pull().status.success());
    let log = site.end();
    assert!(
        log.contains("\"reason\":\"too many connections from this address\""),
        "{log}"
    );
    assert!(log.contains("\"status\":503"), "{log}");
}

#[test]
fn the_end_of_the_server_waits_for_sessions_and_then_ends_them() {
    let limits = "[limits]\nstall_seconds = 600\ndrain_seconds = 1\n";
    let mut site = Site::new(limits);
    let attacker = Attacker::at(&site.world, &site.url("team/a"), "bob");
    let stalled = attacker.stall(|report| report.received_frames > 0, true);
    let log = site.end();
    drop(stalled);
    let draining = "\"connections\":1,\"event\":\"draining\"";
    let is_there = |text: &str| log.lines().any(|line| line.contains(text));
    assert!(
        is_there(draining) || log.contains("\"event\":\"draining\""),
        "{log}"
    );
    // The session was cut off, and is in the log.
    assert!(is_there("\"service\":\"netsync-pull\""), "{log}");
    let drained = log
        .lines()
        .find(|line| line.contains("\"event\":\"drained\""));
    assert!(
        drained.expect("a line").contains("\"connections\":1"),
        "{log}"
    );
}
