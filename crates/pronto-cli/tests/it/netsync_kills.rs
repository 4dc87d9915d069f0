//! Syncs whose processes are killed at random moments. Received segments are kept, no incomplete
//! state is visible, and the next sync completes.

use std::time::Duration;

use test_support::Random;

use crate::netsync_peers::World;
use crate::support::{pronto_path, stderr, stdout};

/// The objects of each side: three segments.
const ALL_BYTES: u64 = 36 << 20;

/// The maximum size of a segment: twelve MiB and the blob that crosses this limit.
const SEGMENT_BYTES: u64 = 14 << 20;

fn fill(world: &World, place: &str, random: &mut Random) {
    // The noise does not compress.
    world.git(place, &["config", "core.compression", "0"]);
    for at in 0..72 {
        let noise = random.bytes(1 << 19);
        std::fs::write(world.path(place).join(format!("{place}{at}")), noise).expect("a file");
    }
    world.commit(place, "small", place.as_bytes());
}

/// Returns the size of the packs kept from the peer.
fn kept_bytes(world: &World, place: &str, peer: &str) -> u64 {
    let path = format!("{place}/.git/objects/netsync/{peer}/objects/pack");
    let files = std::fs::read_dir(world.path(&path))
        .into_iter()
        .flatten()
        .flatten();
    let packs = files.filter(|file| file.path().extension().is_some_and(|end| end == "pack"));
    packs
        .map(|file| file.metadata().map_or(0, |data| data.len()))
        .sum()
}

/// Asserts that all refs are complete and nothing is broken.
fn check(world: &World, place: &str) {
    assert_eq!(
        world.git(place, &["fsck", "--full", "--strict", "--no-dangling"]),
        ""
    );
    world.git(place, &["rev-list", "--objects", "--all", "--quiet"]);
}

fn number(reported: &str, key: &str) -> u64 {
    let (_, after) = reported
        .split_once(&format!("\"{key}\":"))
        .expect("it is told");
    let end = after
        .find(|each: char| !each.is_ascii_digit())
        .expect("it ends");
    after[..end].parse().expect("a number")
}

#[test]
fn a_kill_costs_at_most_one_segment() {
    let kills = std::env::var("PRONTO_TEST_KILLS").ok();
    let kills: u64 = kills.map_or(5, |kills| kills.parse().expect("a number"));
    let mut random = Random::new(kills.wrapping_mul(0x9e37_79b9_7f4a_7c15));
    let mut done = 0;
    while done < kills {
        let world = World::new();
        world.repository("desk");
        world.git(".", &["clone", "-q", "desk", "laptop"]);
        fill(&world, "desk", &mut random);
        fill(&world, "laptop", &mut random);
        let (desk, laptop) = (world.key("desk"), world.key("laptop"));
        world.introduce(("desk", &desk), ("laptop", &laptop));
        let mut last = (0, 0);
        // Most are killed early, some after everything was received.
        for _ in 0..(4 + random.number() % 4) {
            let mut server = world.serve("desk", "desk", &[]);
            let url = server.url("");
            let mut client = world.command(pronto_path(), "laptop", "laptop");
            client.args(["sync", &url, "--name", "desk", "-q"]);
            let mut client = client.spawn().expect("it can be started");
            std::thread::sleep(Duration::from_millis(random.number() % 1200));
            match random.number() % 2 {
                0 => {
                    let _ = client.kill();
                    let _ = client.wait();
                    drop(server);
                }
                _ => {
                    let _ = server.child.kill();
                    let _ = server.child.wait();
                    let _ = client.wait();
                }
            }
            done += 1;
            for place in ["desk", "laptop"] {
                check(&world, place);
            }
            // Kept packs stay until the history has landed.
            let kept = (
                kept_bytes(&world, "desk", "laptop"),
                kept_bytes(&world, "laptop", "desk"),
            );
            let has_landed = |place: &str| {
                !world
                    .git(
                        place,
                        &["for-each-ref", "refs/remotes/desk", "refs/remotes/laptop"],
                    )
                    .is_empty()
            };
            assert!(kept.0 >= last.0 || has_landed("desk"), "{kept:?} {last:?}");
            assert!(
                kept.1 >= last.1 || has_landed("laptop"),
                "{kept:?} {last:?}"
            );
            last = kept;
        }
        let server = world.serve("desk", "desk", &[]);
        let arguments = ["sync", &server.url(""), "--name", "desk", "--json"];
        let output = world.pronto("laptop", "laptop", &arguments);
        assert!(output.status.success(), "{}", stderr(&output));
        let reported = stdout(&output);
        // At most one segment is received twice.
        for (key, kept) in [("received_bytes", last.1), ("sent_bytes", last.0)] {
            let came = number(&reported, key);
            assert!(
                came + kept <= ALL_BYTES + SEGMENT_BYTES,
                "{key}: {came} and {kept}"
            );
        }
        for (here, there) in [("desk", "laptop"), ("laptop", "desk")] {
            check(&world, here);
            let tracked = world.git(here, &["rev-parse", &format!("refs/remotes/{there}/main")]);
            assert_eq!(tracked, world.git(there, &["rev-parse", "main"]));
            assert_eq!(kept_bytes(&world, here, there), 0);
        }
    }
}
