//! Tests of damage of the store and of the cache, and of disks that cannot be written, with views
//! that are read by range.

use std::fs::{self, File};
use std::os::unix::fs::FileExt as _;
use std::path::Path;

use pronto::upload_pack::ConversationEnd;
use pronto_store::ErrorKind;

use super::blocks::{BLOCK, Node, World};
use super::served::Served;

fn flip(path: &Path, at: u64) {
    let mut byte = [0];
    let file = File::options().read(true).write(true).open(path);
    let file = file.expect("a file");
    file.read_exact_at(&mut byte, at).expect("inside");
    file.write_all_at(&[byte[0] ^ 8], at).expect("writable");
}

/// Clones a view of `node`, which must fail, and returns the messages of the server.
fn fail(world: &World, node: &Node, name: &str) -> String {
    let view = node.view(world, name).expect("written");
    let served = Served::new(view.directory());
    let target = format!("{name}.git");
    let output = served.git(world.scratch.path(), &["clone", "-q", "--bare"], &[&target]);
    assert!(!output.status.success(), "{output:?}");
    assert!(!world.scratch.join(&target).exists());
    let ended = served.ended();
    assert!(!matches!(ended, Ok(ConversationEnd::Served)), "{ended:?}");
    assert!(node.cache.counts().failed > 0);
    node.reports().join("\n")
}

fn succeed(world: &World, node: &Node, name: &str) {
    let view = node.view(world, name).expect("written");
    let served = Served::new(view.directory());
    let target = format!("{name}.git");
    let output = served.git(world.scratch.path(), &["clone", "-q", "--bare"], &[&target]);
    assert!(output.status.success(), "{output:?}");
    world.git(&target, &["fsck", "--strict"]);
}

#[test]
fn a_damaged_pack_of_the_store_is_named_and_never_served() {
    let world = World::new();
    let object = world.object(".pack");
    let name = object
        .file_name()
        .expect("a name")
        .to_string_lossy()
        .into_owned();
    let whole = fs::read(&object).expect("a file");
    flip(&object, 4 * BLOCK + 99);
    let node = world.node();
    let reported = fail(&world, &node, "flipped");
    assert!(
        reported.contains(&name) && reported.contains("block 4 "),
        "{reported}"
    );
    // The other blocks are correct and stay. A cache with the wrong block is not possible.
    fs::write(&object, &whole[..whole.len() - 10]).expect("writable");
    let _ = fs::remove_dir_all(world.files());
    let node = world.node();
    let reported = fail(&world, &node, "cut");
    assert!(reported.contains(&name), "{reported}");
    fs::remove_file(&object).expect("a file");
    let _ = fs::remove_dir_all(world.files());
    let node = world.node();
    let reported = fail(&world, &node, "missing");
    assert!(
        reported.contains(&name) && reported.contains("the store lacks an object"),
        "{reported}"
    );
    fs::write(&object, &whole).expect("writable");
    succeed(&world, &node, "restored");
}

#[test]
fn damaged_digests_of_blocks_are_found_before_a_view_is_written() {
    let world = World::new();
    let sums = world.object(".sum");
    flip(&sums, 40);
    let node = world.node();
    let error = node.view(&world, "view").expect_err("the digest is wrong");
    assert_eq!(error.kind(), ErrorKind::Corrupt);
    assert!(error.to_string().contains(".sum"), "{error}");
    assert!(!world.scratch.join("view").exists());
    flip(&sums, 40);
    succeed(&world, &node, "restored");
}

#[test]
fn damage_of_the_cache_is_reported_and_fetched_again() {
    let world = World::new();
    succeed(&world, &world.node(), "first");
    for (ending, at) in [
        (".pack", 5 * BLOCK),
        (".idx", 2000),
        (".sum", 5),
        (".bitmap", 60),
    ] {
        let path = world.file(&world.files(), ending);
        flip(&path, at);
        let node = world.node();
        succeed(&world, &node, &format!("flipped{ending}"));
        let reports = node.reports();
        assert_eq!(reports.len(), 1, "{reports:?}");
        let name = path.file_name().expect("a name").to_string_lossy();
        assert!(reports[0].contains(&*name), "{reports:?}");
        assert_eq!(node.cache.counts().damaged, 1);
        assert_eq!(node.cache.counts().requests, u64::from(ending == ".pack"));
    }
    for ending in [".pack", ".idx", ".pack.stub"] {
        let path = world.file(&world.files(), ending);
        let file = File::options().write(true).open(&path).expect("a file");
        file.set_len(50).expect("writable");
        succeed(&world, &world.node(), &format!("cut{ending}"));
    }
}

#[test]
fn a_cache_that_is_cut_short_while_it_is_used_is_read_again() {
    let world = World::new();
    let node = world.node();
    let view = node.view(&world, "view").expect("written");
    let served = Served::new(view.directory());
    for round in 0..3 {
        let path = world.file(&world.files(), ".pack");
        let file = File::options().write(true).open(&path).expect("a file");
        file.set_len(3 * BLOCK).expect("writable");
        // A request that has read holes fails. The next request opens the pack again.
        let name = format!("{round}.git");
        let mut is_served = false;
        for _ in 0..2 {
            let output = served.git(world.scratch.path(), &["clone", "-q", "--bare"], &[&name]);
            is_served = output.status.success();
            if is_served {
                break;
            }
        }
        assert!(is_served);
        world.git(&name, &["fsck", "--strict"]);
    }
}

#[test]
fn without_room_in_the_cache_packs_are_read_from_the_store() {
    let world = World::new();
    let node = world.node();
    let view = node.view(&world, "view").expect("written");
    // Writes fail from this point on.
    let path = world.file(&world.files(), ".pack");
    fs::remove_file(&path).expect("a file");
    let served = Served::new(view.directory());
    for name in ["one.git", "two.git"] {
        let output = served.git(world.scratch.path(), &["clone", "-q", "--bare"], &[name]);
        assert!(output.status.success(), "{output:?}");
        world.git(name, &["fsck", "--strict"]);
    }
    assert!(node.cache.counts().unwritable > 0);
    assert!(!node.reports().is_empty());
    // The file cannot be created.
    let node = world.node();
    fs::create_dir(&path).expect("writable");
    succeed(&world, &node, "nothing");
    let view = node.view(&world, "filled").expect("written");
    let error = view.fill(&pronto::Watch::none()).expect_err("no room");
    assert_eq!(error.kind(), ErrorKind::Io);
}
