//! Large packs in a store, which a server reads by ranges.

use crate::serve_store::{World, address, get};
use crate::support::write_program;

/// Returns the value of a metric.
fn metric(answer: &str, name: &str) -> u64 {
    let line = answer.lines().find(|line| line.starts_with(name));
    let value = line.and_then(|line| line.rsplit(' ').next());
    value.and_then(|value| value.parse().ok()).unwrap_or(0)
}

/// Content that does not compress.
fn noise(seed: u64, len: usize) -> Vec<u8> {
    test_support::Random::new(seed).bytes(len)
}

#[test]
fn a_cold_server_fetches_only_the_blocks_that_it_needs() {
    let world = World::new();
    let config = "[uploadpack]\n\tallowFilter = true\n";
    std::fs::write(world.scratch.join(".gitconfig"), config).expect("a file");
    let server = world.serve_configured("one", "");
    let url = address(&server, "r");
    std::fs::write(world.work.join("large"), noise(1, 48 << 20)).expect("a file");
    world.commit(&world.work, "small");
    world.git(&world.work, &["add", "large"]);
    world.git(&world.work, &["commit", "-q", "-m", "large"]);
    world.git(&world.work, &["push", "-q", &url, "HEAD:refs/heads/main"]);
    let other = world.serve_configured("two", "");
    let cold = address(&other, "r");
    let top = world.scratch.path().to_owned();
    // Without blobs, a part of the pack is enough.
    world.git(
        &top,
        &[
            "clone",
            "-q",
            "--bare",
            "--filter=blob:none",
            &cold,
            "partial.git",
        ],
    );
    let bytes = || metric(&get(&other, "/metrics"), "pronto_server_store_block_bytes");
    let partial = bytes();
    assert!((1..16 << 20).contains(&partial), "{partial}");
    world.git(&top, &["clone", "-q", "--bare", &cold, "whole.git"]);
    world.git(&top.join("whole.git"), &["fsck", "--strict"]);
    let whole = bytes();
    assert!((48 << 20..51 << 20).contains(&whole), "{whole}");
    world.git(&top, &["clone", "-q", "--bare", &cold, "again.git"]);
    assert_eq!(bytes(), whole, "blocks are fetched once");
    world.verify();
}

#[test]
fn hooks_read_packs_that_are_fetched_by_range() {
    let world = World::new();
    let server = world.serve_configured("one", "");
    let url = address(&server, "r");
    std::fs::write(world.work.join("large"), noise(2, 6 << 20)).expect("a file");
    world.git(&world.work, &["add", "large"]);
    world.git(&world.work, &["commit", "-q", "-m", "large"]);
    world.git(&world.work, &["push", "-q", &url, "HEAD:refs/heads/main"]);
    drop(server);
    let hooks = world.scratch.join("hooks");
    std::fs::create_dir(&hooks).expect("a directory");
    // Its own directory: an older git does not read reftables.
    let hook = "#!/bin/sh\nread old new name\n\
        GIT_DIR=.git-for-objects; export GIT_DIR GIT_OBJECT_DIRECTORY GIT_ALTERNATE_OBJECT_DIRECTORIES\n\
        mkdir -p $GIT_DIR/refs $GIT_DIR/objects && echo ref: refs/heads/x >$GIT_DIR/HEAD\n\
        git cat-file blob $old:large | wc -c\n";
    write_program(&hooks.join("pre-receive"), hook);
    let config = format!("[core]\n\thooksPath = {}\n", hooks.display());
    std::fs::write(world.scratch.join(".gitconfig"), config).expect("a file");
    let server = world.serve_configured("two", "");
    let url = address(&server, "r");
    world.commit(&world.work, "next");
    let output = crate::serve::git(
        &world.scratch,
        &world.work,
        &["push", &url, "HEAD:refs/heads/main"],
    );
    let said = crate::support::stderr(&output);
    assert!(output.status.success(), "{said}");
    assert!(said.contains(&(6 << 20).to_string()), "{said}");
    world.verify();
}

#[test]
fn archives_read_the_blocks_that_they_need() {
    let world = World::new();
    let config = "[http]\n\tuploadArchive = true\n";
    std::fs::write(world.scratch.join(".gitconfig"), config).expect("a file");
    let server = world.serve_configured("one", "");
    let url = address(&server, "r");
    std::fs::write(world.work.join("large"), noise(3, 24 << 20)).expect("a file");
    std::fs::create_dir(world.work.join("part")).expect("a directory");
    std::fs::write(world.work.join("part/small"), "small").expect("a file");
    world.git(&world.work, &["add", "."]);
    world.git(&world.work, &["commit", "-q", "-m", "large"]);
    world.git(&world.work, &["push", "-q", &url, "HEAD:refs/heads/main"]);
    drop(server);
    let other = world.serve_configured("two", "");
    let remote = format!("--remote={}", address(&other, "r"));
    let bytes = || metric(&get(&other, "/metrics"), "pronto_server_store_block_bytes");
    let archive = |name: &str, paths: &[&str]| {
        let mut command = crate::support::pronto();
        command.args(["archive", &remote, "-o", name, "main"]);
        command.args(paths).current_dir(world.scratch.path());
        let output = command.output().expect("it starts");
        assert!(
            output.status.success(),
            "{}",
            crate::support::stderr(&output)
        );
        let own = ["archive", "-o", "../own.tar", "HEAD"];
        world.git(&world.work, &[&own[..], paths].concat());
        let read = |name: &str| std::fs::read(world.scratch.join(name)).expect("an archive");
        assert!(read(name) == read("own.tar"), "{paths:?}");
    };
    archive("part.tar", &["part"]);
    let part = bytes();
    assert!((1..16 << 20).contains(&part), "{part}");
    archive("whole.tar", &[]);
    let whole = bytes();
    assert!((24 << 20..26 << 20).contains(&whole), "{whole}");
    world.verify();
}
