//! `sync` and `pull --netsync` with peers that do not answer, are unknown, or speak another protocol.

use rustix::process::Signal;

use super::Table;
use super::world::{World, answering_server, silent_server};

/// The response of a web server.
const WEB: &[u8] = b"HTTP/1.1 404 Not Found\r\nContent-Length: 0\r\nConnection: close\r\n\r\n";

#[test]
fn sync() {
    let mut world = World::new();
    let mut table = Table::new("sync");
    table.condition("wrong operands");
    for line in [
        "pronto sync work",
        "cd work && pronto sync ../nowhere",
        "cd work && pronto sync ../home",
        "cd work && pronto sync ../work",
        "cd work && pronto sync nobody",
        "cd work && pronto sync ftp://host/x",
        "cd work && pronto sync netsync://",
        "cd work && pronto sync ../other",
        "cd work && pronto pull --netsync ../other nothing",
        "cd work && pronto pull --netsync ../nowhere main",
    ] {
        table.call(&world, line);
    }
    table.condition("a peer whose key is not known");
    world.prepare("pronto netsync keygen");
    let closed = test_support::free_port();
    let silent = silent_server();
    table.call(
        &world,
        &format!("cd work && pronto sync netsync://127.0.0.1:{closed}/x"),
    );
    let key = world.prepare("pronto netsync key");
    let key = key.lines().next().expect("a key");
    table.condition("a closed port, and a name that does not exist");
    for (name, address) in [
        ("closed", format!("netsync://127.0.0.1:{closed}/x")),
        ("nowhere", "netsync://nowhere.invalid:9419/x".to_owned()),
    ] {
        trust(&world, name, key, &address);
        table.call(&world, &format!("cd work && pronto sync {address}"));
    }
    table.condition("the wrong protocol");
    let web = format!("netsync://127.0.0.1:{}/x", answering_server(WEB));
    trust(&world, "web", key, &web);
    table.call(&world, &format!("cd work && pronto sync {web}"));
    table.condition("a signal");
    let address = format!("netsync://127.0.0.1:{}/x", silent.0);
    trust(&world, "silent", key, &address);
    let call = format!("cd work && pronto sync {address}");
    let view = world.with(&[]);
    for signal in [Signal::INT, Signal::TERM] {
        while silent.1.try_recv().is_ok() {}
        table.record(&view.interrupt(&call, &silent.1, signal));
    }
    world.without_privileges();
    table.condition("no permission");
    world.permit("other/.git", 0);
    table.call(&world, "cd work && pronto sync ../other");
    world.permit("other/.git", 0o755);
    table.compare();
}

/// Trusts the peer `name`, in place of the peer that had the key before.
fn trust(world: &World, name: &str, key: &str, address: &str) {
    let peers = world.path("home/.config/pronto/netsync/known_peers");
    let _ = std::fs::remove_file(peers);
    world.prepare(&format!("pronto netsync trust {name} {key} --at={address}"));
}
