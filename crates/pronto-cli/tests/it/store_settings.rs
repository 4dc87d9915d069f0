//! `store config` and `store head`: servers use the changed values from the next request on.

use crate::serve_store::{World, address};

/// Runs `pronto store`. Returns whether it succeeded, and what it printed.
fn store(world: &World, words: &[&str]) -> (bool, String) {
    let arguments = [&["store"], words].concat();
    let (success, out, err) = world.pronto(&arguments);
    (success, format!("{out}{err}"))
}

#[test]
fn changes_are_seen_by_servers_that_run() {
    let world = World::new();
    world.git(&world.work, &["branch", "side"]);
    let (success, said) = store(&world, &["import", "work", &world.url, "r"]);
    assert!(success, "{said}");
    let server = world.serve_configured("one", "");
    let url = address(&server, "r");
    let config = |words: &[&str]| store(&world, &[&["config", &world.url, "r"], words].concat());
    let listed = || world.git(&world.work, &["ls-remote", "--symref", &url]);
    assert!(listed().contains("refs/heads/side"));
    let (success, said) = config(&["transfer.hideRefs", "refs/heads/side"]);
    assert!(success && said == "generation 2\n", "{said}");
    assert!(!listed().contains("refs/heads/side"));
    let (success, said) = config(&["--add", "transfer.hideRefs", "refs/tags"]);
    assert!(success, "{said}");
    assert_eq!(
        config(&["transfer.hiderefs"]),
        (true, "refs/heads/side\nrefs/tags\n".to_owned())
    );
    assert_eq!(config(&["http.receivePack", "false"]).1, "generation 4\n");
    let refused = world.fail(&world.work, &["push", &url, "main:x"]);
    assert!(refused.contains("http.receivepack"), "{refused}");
    // What is so already is no change.
    assert_eq!(config(&["http.receivePack", "false"]).1, "generation 4\n");
    assert!(config(&["--unset", "http.receivePack"]).0);
    world.git(&world.work, &["push", "-q", &url, "main:x"]);
    let (_, said) = config(&[]);
    let expected = "transfer.hiderefs=refs/heads/side\ntransfer.hiderefs=refs/tags\n";
    assert_eq!(said, expected);
    // The default branch.
    let head = |words: &[&str]| store(&world, &[&["head", &world.url, "r"], words].concat());
    assert_eq!(head(&[]).1, "refs/heads/main\n");
    let (success, said) = head(&["x"]);
    assert!(success, "{said}");
    assert!(listed().contains("ref: refs/heads/x\tHEAD"));
    assert!(head(&["refs/heads/to-come"]).0);
    assert_eq!(head(&[]).1, "refs/heads/to-come\n");
    // An export has the mark of a repository that everyone may see.
    let exported = |name: &str| {
        let (success, said) = store(&world, &["export", &world.url, "r", name]);
        assert!(success, "{said}");
        world
            .scratch
            .join(name)
            .join("git-daemon-export-ok")
            .exists()
    };
    assert!(!exported("unmarked.git"));
    assert!(config(&["daemon.exportOk", "true"]).0);
    assert!(exported("marked.git"));
    world.verify();
}

#[test]
fn keys_of_programs_and_mistakes_are_refused() {
    let world = World::new();
    let (success, said) = store(&world, &["import", "work", &world.url, "r"]);
    assert!(success, "{said}");
    let refused = |words: &[&str], reason: &str| {
        let (success, said) = store(&world, words);
        assert!(!success && said.contains(reason), "{words:?}: {said}");
    };
    let url = world.url.as_str();
    let not_read = |key: &str| {
        format!(
            "fatal: servers do not read '{key}' from the configuration of a repository in a store\n\
             hint: use keys of receive, transfer, uploadpack, uploadarchive and lsrefs, "
        )
    };
    for key in [
        "core.fsmonitor",
        "core.hooksPath",
        "filter.lfs.clean",
        "alias.x",
        "uploadpack.packObjectsHook",
        "include.path",
        "receive.x",
        "hook.a.command",
        "tar.x.command",
    ] {
        refused(&["config", url, "r", key, "/bin/sh"], &not_read(key));
    }
    refused(
        &["config", url, "r", "core.bare", "false"],
        &not_read("core.bare"),
    );
    refused(&["config", url, "r", "http.uploadpack", "x"], "bad boolean");
    refused(&["config", url, "r", "receive", "x"], "section");
    refused(&["config", url, "r", "--unset", "receive.x"], "is not set");
    refused(&["config", url, "other"], "there is no repository 'other'");
    refused(
        &["config", url, "r", "--add", "receive.x"],
        "'--add' needs a key",
    );
    refused(&["head", url, "r", "a..b"], "invalid branch name");
    refused(&["list", "--add", url], "unknown option '--add'");
    let large = "x".repeat(70_000);
    let bound = format!("hint: the limit is {} bytes\n", 64 << 10);
    refused(&["config", url, "r", "receive.hideRefs", &large], &bound);
    // A key that is not set fails as it does with git.
    assert_eq!(
        store(&world, &["config", url, "r", "receive.keepAlive"]),
        (false, String::new())
    );
    world.verify();
}

#[test]
fn changes_at_the_same_time_are_all_made() {
    let world = World::new();
    let (success, said) = store(&world, &["import", "work", &world.url, "r"]);
    assert!(success, "{said}");
    std::thread::scope(|scope| {
        for number in 0..6 {
            let world = &world;
            scope.spawn(move || {
                let value = format!("refs/{number}");
                let words = [
                    "config",
                    "--add",
                    &world.url,
                    "r",
                    "transfer.hideRefs",
                    &value,
                ];
                let (success, said) = store(world, &words);
                assert!(success, "{said}");
            });
        }
    });
    let (_, said) = store(&world, &["config", &world.url, "r", "transfer.hideRefs"]);
    let mut values: Vec<&str> = said.lines().collect();
    values.sort_unstable();
    let expected: Vec<String> = (0..6).map(|number| format!("refs/{number}")).collect();
    assert_eq!(values, expected);
    world.verify();
}
