//! Commands that write, on a full disk.

use test_support::{Need, need};

use super::world::World;
use super::{Table, serve};

#[test]
fn full_disk() {
    need!(Need::Root);
    let world = World::new();
    let mut table = Table::new("full_disk");
    table.condition("serve");
    for line in serve::WRITING {
        table.record(&world.on_full_disk("").run(line));
    }
    table.condition("store");
    for (place, line) in [
        ("store", "pronto store import work file://$DIR/store new"),
        (
            "cache",
            "pronto store import --scratch=cache work file://$DIR/store new",
        ),
        (
            "home",
            "pronto store export file://$DIR/store r home/out.git",
        ),
        (
            "store",
            "pronto store copy file://$DIR/store r file://$DIR/store new",
        ),
        ("store", "pronto store config file://$DIR/store r core.x y"),
        (
            "store",
            "pronto store head file://$DIR/store r refs/heads/other",
        ),
        ("store", "pronto store upkeep file://$DIR/store r"),
    ] {
        table.record(&without_extensions(&world.on_full_disk(place).run(line)));
    }
    table.condition("netsync, sync, bugreport");
    for (place, line) in [
        ("home", "pronto netsync keygen"),
        ("home", "cd home && pronto bugreport"),
        ("", "cd work && pronto worktree add --carry=file ../new"),
    ] {
        table.record(&world.on_full_disk(place).run(line));
    }
    table.compare();
}

/// Replaces the extensions of files of packs: which of them fails first depends on the uploads.
fn without_extensions(text: &str) -> String {
    let extensions = ["bitmap", "idx", "pack", "rev", "sum"];
    extensions.iter().fold(text.to_owned(), |text, extension| {
        text.replace(&format!("/pack/ID.{extension}'"), "/pack/ID.EXTENSION'")
    })
}
