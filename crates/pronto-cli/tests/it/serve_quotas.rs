//! Quotas of `serve`, over HTTP and SSH, for directories and stores.

use std::path::Path;

use test_support::Random;

use crate::serve::{Server, git};
use crate::serve_ssh::site::Site;
use crate::serve_store::{World, address};
use crate::stored::{Place, in_both_places};
use crate::support::{stderr, stdout};

in_both_places!(
    quotas_hold_over_http,
    a_smaller_limit_of_the_repository_holds,
    quotas_hold_over_ssh,
);

const QUOTAS: &str = "[[quota]]\nrepository = \"team/**\"\nbytes = 200000\nrefs = 3\n\
    [[quota]]\nrepository = \"*/**\"\nrepositories = 2\nper_namespace = true\n";

/// Runs git, and returns whether it succeeded, and what it said.
type Run<'a> = &'a dyn Fn(&[&str]) -> (bool, String);

/// Adds a commit with a file of `len` bytes that cannot be compressed.
fn commit(run: Run<'_>, work: &Path, len: usize) {
    std::fs::write(work.join("noise"), Random::new(len as u64).bytes(len)).expect("a file");
    for arguments in [&["add", "noise"][..], &["commit", "-q", "-m", "noise"]] {
        let (success, said) = run(arguments);
        assert!(success, "{said}");
    }
}

/// Pushes with `run` from `work`, up to the quotas and beyond.
fn push_beyond(run: Run<'_>, work: &Path, url: &dyn Fn(&str) -> String) {
    let team = url("team/b");
    let push = |refs: &[&str]| run(&[&["push", &team], refs].concat());
    let refused = |refs: &[&str], reason: &str| {
        let (success, said) = push(refs);
        // The client breaks lines of messages.
        let said = said.replace("\nremote: ", "");
        assert!(!success && said.contains(reason), "{refs:?}: {said}");
    };
    let accepted = |refs: &[&str]| {
        let (success, said) = push(refs);
        assert!(success, "{refs:?}: {said}");
    };
    accepted(&["main"]);
    commit(run, work, 300_000);
    refused(&["main"], "the push is too large: the repository has ");
    refused(&["main"], " of 200000 bytes: quota for 'team/**'");
    assert!(run(&["reset", "-q", "--hard", "HEAD~1"]).0);
    commit(run, work, 190_000);
    accepted(&["main"]);
    commit(run, work, 30_000);
    refused(&["main"], "the push is too large: the repository has 19");
    assert!(run(&["reset", "-q", "--hard", "HEAD~1"]).0);

    accepted(&["main:one", "main:two"]);
    let reason = "the repository has 3 of 3 refs: quota for 'team/**'";
    refused(&["main:three"], reason);
    accepted(&[":two"]);
    refused(&["main:three", "main:four"], reason);
    accepted(&["main:three"]);

    let (success, said) = run(&["push", &url("team/c"), "main"]);
    let reason = "too many repositories: 2 of 2 exist: quota for '*/**'";
    assert!(!success && said.contains(reason), "{said}");
    let (success, said) = run(&["push", &url("other/a"), "main"]);
    assert!(success, "{said}");
}

/// Starts a server with the quotas, to which anonymous may push.
fn serve(world: &World, place: Place) -> Server {
    if place == Place::Store {
        return world.serve_configured("one", QUOTAS);
    }
    let text = format!(
        "root = \"root\"\ncreate_on_push = true\n[http]\nlisten = [\"127.0.0.1:0\"]\n[[grant]]\n\
         repository = \"**\"\nusers = [\"anonymous\"]\nrole = \"admin\"\n{QUOTAS}"
    );
    std::fs::create_dir(world.scratch.join("root")).expect("a directory");
    std::fs::write(world.scratch.join("server.toml"), text).expect("a file");
    let arguments = ["--config", "server.toml"];
    let last = "no repositories yet";
    Server::start(world.scratch.path(), &arguments, last)
}

/// Runs git in the repository of clients.
fn run(world: &World, arguments: &[&str]) -> (bool, String) {
    let output = git(&world.scratch, &world.work, arguments);
    (output.status.success(), stderr(&output) + &stdout(&output))
}

fn quotas_hold_over_http(place: Place) {
    let world = World::new();
    let server = serve(&world, place);
    let run = |arguments: &[&str]| run(&world, arguments);
    let url = |name: &str| address(&server, name);
    assert!(run(&["push", &url("team/a"), "main"]).0);
    push_beyond(&run, &world.work, &url);
    if place == Place::Store {
        world.verify();
    }
}

fn a_smaller_limit_of_the_repository_holds(place: Place) {
    let world = World::new();
    let server = serve(&world, place);
    let run = |arguments: &[&str]| run(&world, arguments);
    let url = address(&server, "team/a");
    assert!(run(&["push", &url, "main"]).0);
    let set = |key: &str, value: &str| match place {
        Place::Store => {
            let arguments = ["store", "config", &world.url, "team/a", key, value];
            let (success, _, said) = world.pronto(&arguments);
            assert!(success, "{said}");
        }
        Place::Directory => {
            let repository = world.scratch.join("root/team/a.git");
            let repository = repository.to_str().expect("text");
            assert!(run(&["-C", repository, "config", key, value]).0);
        }
    };
    let refused = || {
        let (success, said) = run(&["push", &url, "main"]);
        let reason = "exceeds maximum allowed size";
        assert!(!success && said.contains(reason), "{said}");
        assert!(!said.contains("quota for"), "{said}");
    };
    commit(&run, &world.work, 40_000);
    set("receive.maxInputSize", "20000");
    refused();
    if place == Place::Directory {
        // With grafts, git serves the push.
        let grafts = world.scratch.join("root/team/a.git/info/grafts");
        std::fs::create_dir_all(grafts.parent().expect("a directory")).expect("created");
        std::fs::write(&grafts, "# none\n").expect("written");
        refused();
    }
    set("receive.maxInputSize", "0");
    commit(&run, &world.work, 300_000);
    let (success, said) = run(&["push", &url, "main"]);
    assert!(!success, "the quota holds without a limit: {said}");
    assert!(run(&["reset", "-q", "--hard", "HEAD~1"]).0);
    let (success, said) = run(&["push", &url, "main"]);
    assert!(success, "{said}");
}

fn quotas_hold_over_ssh(place: Place) {
    let Some(site) = Site::new(place, QUOTAS) else {
        return;
    };
    let work = site.path("work");
    let at = work.to_str().expect("text").to_owned();
    let run = |arguments: &[&str]| {
        let arguments = [&["-C", &at][..], arguments].concat();
        let output = site.client(Path::new("git"), "alice", &arguments);
        (output.status.success(), stderr(&output) + &stdout(&output))
    };
    push_beyond(&run, &work, &|name| site.url(name));
}
