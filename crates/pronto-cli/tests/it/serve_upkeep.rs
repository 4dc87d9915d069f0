//! Upkeep of the repositories of a store, by servers and by `store upkeep`.

use crate::serve::wait_until;
use crate::serve_store::{World, address, get};

/// Returns the number of files with an extension that a repository has in the store.
fn count(world: &World, extension: &str) -> usize {
    let directory = world.scratch.join("store/r.git/pack");
    let entries = std::fs::read_dir(directory).expect("a directory");
    let names = entries.map(|entry| entry.expect("readable").path());
    names
        .filter(|path| path.extension().is_some_and(|it| it == extension))
        .count()
}

/// Pushes `count` commits, each on its own.
fn push(world: &World, url: &str, count: usize) {
    for number in 0..count {
        world.commit(&world.work, &format!("pushed{number}"));
        world.git(&world.work, &["push", "-q", url, "HEAD:refs/heads/main"]);
    }
}

/// Clones a repository, and returns the number of its commits.
fn cloned(world: &World, url: &str, name: &str) -> usize {
    let top = world.scratch.path();
    world.git(top, &["clone", "-q", "--bare", url, name]);
    let clone = top.join(name);
    world.git(&clone, &["fsck", "--strict"]);
    let count = world.git(&clone, &["rev-list", "--count", "main"]);
    count.trim().parse().expect("a number")
}

#[test]
fn a_server_keeps_its_repositories_up_while_it_serves() {
    let world = World::new();
    // The last section of the configuration is that of the store.
    let server = world.serve_configured("one", "");
    let url = address(&server, "r");
    push(&world, &url, 14);
    let before = cloned(&world, &url, "before.git");
    drop(server);
    let file = world.scratch.join("one.toml");
    let text = std::fs::read_to_string(&file).expect("text");
    std::fs::write(&file, format!("{text}upkeep_seconds = 1\n")).expect("a file");
    let server =
        crate::serve::Server::start(world.scratch.path(), &["--config", "one.toml"], "git clone");
    wait_until(|| count(&world, "bitmap") == 1);
    let url = address(&server, "r");
    assert_eq!(cloned(&world, &url, "after.git"), before);
    push_one(&world, &url);
    world.verify();
}

fn push_one(world: &World, url: &str) {
    world.commit(&world.work, "last");
    world.git(&world.work, &["push", "-q", url, "HEAD:refs/heads/main"]);
}

#[test]
fn a_server_for_upkeep_alone_serves_no_repository() {
    let world = World::new();
    let server = world.serve_configured("one", "");
    let url = address(&server, "r");
    push(&world, &url, 1);
    let arguments = [
        "--config", "one.toml", "--cache", "other", "--role", "upkeep",
    ];
    let other = crate::serve::Server::start(world.scratch.path(), &arguments, "git clone");
    assert!(get(&other, "/healthz").starts_with("HTTP/1.1 200"));
    let said = world.fail(&world.work, &["ls-remote", &address(&other, "r")]);
    assert!(said.contains("503"), "{said}");
    assert!(
        world
            .git(&world.work, &["ls-remote", &url])
            .contains("main")
    );
    let (success, _, err) = world.pronto(&["serve", "--role", "upkeep", "."]);
    assert!(!success && err.contains("--role needs --store"), "{err}");
}

#[test]
fn store_upkeep_tells_what_it_did() {
    let world = World::new();
    let server = world.serve_configured("one", "");
    let url = address(&server, "r");
    push(&world, &url, 13);
    let (success, out, err) = world.pronto(&["store", "upkeep", &world.url, "r"]);
    assert!(success, "{err}");
    assert!(
        out.starts_with("r: ") && out.contains("repacked from "),
        "{out}"
    );
    let (_, out, err) = world.pronto(&["store", "upkeep", &world.url]);
    assert_eq!((out.as_str(), err.as_str()), ("r: nothing to do\n", ""));
    for (arguments, message) in [
        (&["--prune-after=0"][..], "use a number of days, or 'never'"),
        (&["--every=5", "--prune-after=never"], "--every"),
    ] {
        let mut words = vec!["store", "upkeep"];
        words.extend(arguments);
        words.extend([world.url.as_str(), "r"]);
        let (success, _, err) = world.pronto(&words);
        assert!(!success && err.contains(message), "{arguments:?}: {err}");
    }
    assert_eq!(cloned(&world, &url, "after.git"), 14);
    world.verify();
}
