//! `netsync`: the key of the user, and the trusted peers.

use super::Table;
use super::world::World;

const KEY: &str = "ed25519:aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa11";
const OTHER_KEY: &str = "ed25519:bbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbb22";

/// The directory of the files, below the home directory.
const FILES: &str = "home/.config/pronto/netsync";

#[test]
fn netsync() {
    let mut world = World::new();
    let mut table = Table::new("netsync");
    table.condition("nothing is there yet");
    for line in [
        "pronto netsync key",
        "pronto netsync peers",
        "pronto netsync revoke ann",
        "cd work && pronto netsync forget ann",
        "pronto netsync keygen",
        "pronto netsync keygen",
        "pronto netsync key",
    ] {
        table.call(&world, line);
    }
    table.condition("wrong operands");
    for line in [
        format!("pronto netsync trust a/b {KEY}"),
        "pronto netsync trust ann KEY".to_owned(),
        format!("pronto netsync trust ann {KEY} --roles all"),
        format!("pronto netsync trust ann {KEY} --at="),
        format!("pronto netsync trust ann {KEY}"),
        format!("pronto netsync trust ann {OTHER_KEY}"),
        format!("pronto netsync trust bea {KEY}"),
        "pronto netsync peers".to_owned(),
        "pronto netsync revoke ann".to_owned(),
        format!("pronto netsync trust ann {KEY}"),
    ] {
        table.call(&world, &line);
    }
    table.condition("damaged files");
    let peers = format!("{FILES}/known_peers");
    let key = format!("{FILES}/key");
    let before = std::fs::read_to_string(world.path(&peers)).expect("a list");
    world.write(&peers, "ann read\n");
    for line in ["pronto netsync peers", "pronto netsync revoke ann"] {
        table.call(&world, line);
    }
    world.write(&peers, &before);
    let secret = std::fs::read_to_string(world.path(&key)).expect("a key");
    world.write(&key, "no key\n");
    table.call(&world, "pronto netsync key");
    world.write(&key, &secret);
    world.permit(&key, 0o644);
    table.call(&world, "pronto netsync key");
    world.permit(&key, 0o600);
    world.without_privileges();
    table.condition("no permission");
    world.permit(&key, 0);
    world.permit(&peers, 0);
    for line in [
        "pronto netsync key".to_owned(),
        "pronto netsync keygen".to_owned(),
        "pronto netsync peers".to_owned(),
        format!("pronto netsync trust bea {OTHER_KEY}"),
        "pronto netsync revoke ann".to_owned(),
    ] {
        table.call(&world, &line);
    }
    world.permit(&peers, 0o600);
    world.permit(&key, 0o600);
    world.permit(FILES, 0o555);
    table.call(&world, &format!("pronto netsync trust bea {OTHER_KEY}"));
    table.call(&world, "pronto netsync revoke ann");
    world.permit(FILES, 0o755);
    table.call(&world, "pronto netsync peers");
    table.compare();
}
