//! Netsync with the configuration of `serve`: users are authenticated by their keys, and have the
//! same roles and rules as over the other protocols.

mod load;
mod refusals;
mod site;

use gix_object::Kind as ObjectKind;
use pronto_hash::ObjectId;
use pronto_netsync::message::TransferRole;
use rustix::process::Signal;

use crate::netsync_peers::World;
use crate::netsync_puppet::{Attacker, Puppet, id_of, pack, whole};
use crate::serve::{Server, wait_until};
use crate::support::{stderr, stdout, write_program};
use site::{CONFIG, Site};

#[test]
fn writers_push_and_readers_pull() {
    let http = "listen = [\"127.0.0.1:0\"]";
    let mut site = Site::of(&CONFIG.replace("listen = []", http));
    let world = &site.world;
    for clone in ["alice", "desktop", "bob"] {
        world.git(".", &["clone", "-q", "work", clone]);
    }
    world.commit("alice", "a", b"a\n");
    world.git("alice", &["branch", "topic"]);
    let reported = site.done("alice", "alice", &["--push"]);
    assert!(reported.contains("forward  main -> main"), "{reported}");
    assert!(reported.contains("* new      topic -> topic"), "{reported}");
    let refs = world.git("root/team/a.git", &["for-each-ref", "--format=%(refname)"]);
    assert_eq!(refs, "refs/heads/main\nrefs/heads/topic\n");
    assert_eq!(
        site.rev("root/team/a.git", "main"),
        site.rev("alice", "main")
    );
    assert_eq!(site.rev("root/open.git", "main"), site.rev("work", "main"));
    // A reader pulls, and may not push. Other repositories do not exist for it.
    site.done("bob", "bob", &["--pull"]);
    assert_eq!(site.rev("bob", "desk/main"), site.rev("alice", "main"));
    world.commit("bob", "b", b"b\n");
    for arguments in [&[][..], &["--push"]] {
        let said = stderr(&site.sync("bob", "bob", "team/a", arguments));
        let expected = "you may not push to this repository; use --pull to receive only (request ";
        assert!(said.contains(expected), "{said}");
    }
    let said = stderr(&site.sync("bob", "bob", "private", &["--pull"]));
    assert!(said.contains("there is no repository 'private'"), "{said}");
    // Another clone of the same user syncs in both directions. Only the repository of the server changes.
    world.commit("desktop", "d", b"d\n");
    let output = site.sync("alice", "desktop", "team/a", &[]);
    assert_eq!(output.status.code(), Some(1), "{}", stderr(&output));
    let reported = stdout(&output);
    assert!(
        reported.contains("! refused  main (not a fast-forward"),
        "{reported}"
    );
    assert!(
        reported.contains("* new      main -> desk/main"),
        "{reported}"
    );
    world.git("desktop", &["merge", "-q", "-m", "merge", "desk/main"]);
    site.done("alice", "desktop", &[]);
    assert_eq!(
        site.rev("root/team/a.git", "main"),
        site.rev("desktop", "main")
    );
    // A clone that is behind takes, and changes nothing.
    let reported = site.done("alice", "alice", &[]);
    assert!(
        reported.contains("* new      main -> desk/main"),
        "{reported}"
    );
    assert!(!reported.contains("To desk"), "{reported}");
    // A push to a new name makes the repository.
    let output = site.sync("alice", "work", "team/new", &["--push"]);
    assert!(output.status.success(), "{}", stderr(&output));
    assert_eq!(
        site.rev("root/team/new.git", "HEAD"),
        site.rev("work", "main")
    );
    for place in ["root/team/a.git", "root/team/new.git"] {
        assert_eq!(site.world.git(place, &["fsck", "--full", "--strict"]), "");
    }
    let metrics = site.metrics();
    for line in [
        "pronto_server_requests_total{service=\"netsync-push\",status=\"200\"} 2",
        "pronto_server_requests_total{service=\"netsync-pull\",status=\"404\"} 1",
        "pronto_server_requests_total{service=\"netsync\",status=\"200\"} 3",
    ] {
        assert!(
            metrics.lines().any(|found| found == line),
            "{line}: {metrics}"
        );
    }
    let log = site.end();
    let pushed = |line: &&str| line.contains("\"service\":\"netsync-push\"");
    let line = log.lines().find(pushed).expect("a line of the push");
    for part in [
        "\"event\":\"request\"",
        "\"protocol\":\"netsync\"",
        "\"repository\":\"team/a\"",
        "\"user\":\"alice\"",
        "\"status\":200",
        "\"request\":\"",
    ] {
        assert!(line.contains(part), "{part}: {line}");
    }
    let denied = |line: &&str| line.contains("\"user\":\"bob\"") && line.contains("\"status\":403");
    assert_eq!(log.lines().filter(denied).count(), 2, "{log}");
}

#[test]
fn rules_and_hidden_refs_apply() {
    let site = Site::new("");
    let world = &site.world;
    world.git(".", &["clone", "-q", "work", "alice"]);
    world.git(".", &["clone", "-q", "work", "bob"]);
    // A hidden branch, which nobody gets and nobody moves.
    world.git("work", &["checkout", "-q", "-b", "secret"]);
    world.commit("work", "s", b"secret\n");
    let secret = site.rev("work", "secret");
    world.git(
        "work",
        &[
            "push",
            "-q",
            "../root/team/a.git",
            "secret:refs/heads/secret",
        ],
    );
    let hide = ["config", "transfer.hideRefs", "refs/heads/secret"];
    world.git("root/team/a.git", &hide);
    site.done("bob", "bob", &["--pull"]);
    let refs = world.git(
        "bob",
        &["for-each-ref", "--format=%(refname)", "refs/remotes/desk"],
    );
    assert_eq!(refs, "refs/remotes/desk/main\n");
    let mut command = world.command(std::path::Path::new("git"), "git", "bob");
    let found = command.args(["cat-file", "-e", secret.trim()]).output();
    assert!(!found.expect("git runs").status.success(), "it was sent");
    // Claiming it does not make it visible either.
    let attacker = Attacker::at(world, &site.url("team/a"), "bob");
    let puppet = Puppet {
        wants: true,
        held: vec![ObjectId::from_hex(secret.trim().as_bytes()).expect("an id")],
        ..Puppet::default()
    };
    let (result, report) = attacker.converse(puppet, TransferRole::Sink, &mut |_, _| {});
    result.expect("it is served");
    assert!(
        report
            .theirs
            .iter()
            .all(|offer| offer.name != b"refs/heads/secret")
    );
    assert_eq!(report.incoming_plan.expect("a plan").commits, 1);
    world.commit("alice", "a", b"a\n");
    for name in ["secret", "release", "free"] {
        world.git("alice", &["branch", name]);
    }
    world.git("alice", &["tag", "v1"]);
    let output = site.sync("alice", "alice", "team/a", &["--push"]);
    assert_eq!(output.status.code(), Some(1), "{}", stderr(&output));
    let reported = stdout(&output);
    for part in [
        "* new      free -> free",
        "  forward  main -> main",
        "! refused  release (",
        "! refused  secret (the ref is hidden)",
        "! refused  tags/v1 (",
    ] {
        assert!(reported.contains(part), "{part}: {reported}");
    }
    assert_eq!(site.rev("root/team/a.git", "secret"), secret);
    // Programs learn the reason, too.
    let reported = stdout(&site.sync("alice", "alice", "team/a", &["--push", "--json"]));
    assert!(
        reported.contains("\"fate\":\"refused\",\"reason\":\"the ref is hidden\""),
        "{reported}"
    );
    // A tag that exists stays what it is, and is sent to others.
    world.git("root/team/a.git", &["tag", "v2", "main~1"]);
    world.git("alice", &["tag", "-d", "v1"]);
    world.git("alice", &["tag", "v2", "main"]);
    let reported = stdout(&site.sync("alice", "alice", "team/a", &["--push"]));
    assert!(
        reported.contains("tags/v2 (the server already has another object"),
        "{reported}"
    );
    // What is pushed past a hook would escape its policy.
    let hooks = world.path("root/team/a.git/hooks");
    std::fs::create_dir_all(&hooks).expect("a directory");
    write_program(&hooks.join("pre-receive"), "#!/bin/sh\nexit 1\n");
    let said = stderr(&site.sync("alice", "alice", "team/a", &["--push"]));
    assert!(
        said.contains("has a 'pre-receive' hook, which netsync does not run"),
        "{said}"
    );
    site.done("bob", "bob", &["--pull"]);
}

#[test]
fn repositories_are_named_by_their_paths() {
    let site = Site::new("");
    let world = &site.world;
    world.git(".", &["clone", "-q", "work", "clone"]);
    world.commit("clone", "c", b"c\n");
    // A clone syncs with one repository by the name of a peer.
    world.git(".", &["clone", "-q", "clone", "other"]);
    site.done("alice", "clone", &["--push"]);
    for name in ["private.git", "private/"] {
        let output = site.sync("alice", "other", name, &["--push"]);
        assert!(output.status.success(), "{name}: {}", stderr(&output));
    }
    // A branch in a worktree stays, others move.
    world.git(".", &["clone", "-q", "work", "root/team/tree"]);
    world.git(".", &["clone", "-q", "clone", "third"]);
    let _ = std::fs::remove_dir_all(world.path("third/.git/objects/netsync"));
    world.git("third", &["branch", "topic"]);
    let output = site.sync("alice", "third", "team/tree", &["--push"]);
    let reported = stdout(&output);
    assert!(
        reported.contains("! refused  main (the branch is checked out on the server)"),
        "{reported}"
    );
    assert_eq!(
        site.rev("root/team/tree", "topic"),
        site.rev("clone", "main")
    );
    for name in ["root/team/a.git", "root/private.git"] {
        assert_eq!(site.rev(name, "main"), site.rev("clone", "main"));
    }
    assert_eq!(site.rev("root/open.git", "main"), site.rev("work", "main"));
    let outside = world.path("work").display().to_string();
    for name in [
        "../work",
        "team/../../work",
        "team/../open",
        "./open",
        "open.git/.",
        "team//a",
        "team\\a",
        ".git",
        "open.git/refs",
        &outside,
    ] {
        let output = site.sync("alice", "clone", name, &["--pull"]);
        assert_eq!(output.status.code(), Some(128), "{name}");
        let said = stderr(&output);
        let is_refused =
            said.contains("there is no repository") || said.contains("invalid repository name");
        assert!(is_refused, "{name}: {said}");
    }
    let said = stderr(&site.sync("alice", "clone", "", &["--pull"]));
    assert!(
        said.contains("name a repository: netsync://HOST:PORT/PATH"),
        "{said}"
    );
}

#[test]
fn one_repository_is_served_without_a_configuration() {
    let world = World::new();
    world.repository("work");
    world.git(".", &["clone", "-q", "work", "clone"]);
    world.commit("work", "w", b"w\n");
    world.key("reader");
    let place = world.path("work");
    let server = Server::start(&place, &["--netsync=127.0.0.1:0", "."], "git clone http");
    let line = |start: &str| {
        let mut lines = server.lines.iter();
        let rest = lines.find_map(|line| line.strip_prefix(start));
        rest.expect("it is printed").to_owned()
    };
    let (url, key) = (
        line("serving at netsync://"),
        line("the key of netsync is "),
    );
    let url = format!("netsync://{url}");
    world.done("reader", ".", &["netsync", "trust", "desk", &key]);
    // The only repository needs no name, and has one.
    for name in ["", "work"] {
        let url = format!("{url}{name}");
        world.done(
            "reader",
            "clone",
            &["sync", &url, "--name", "desk", "--pull"],
        );
    }
    let there = world.git("work", &["rev-parse", "main"]);
    assert_eq!(world.git("clone", &["rev-parse", "desk/main"]), there);
    let arguments = ["sync", &url, "--name", "desk", "--push"];
    let said = stderr(&world.pronto("reader", "clone", &arguments));
    assert!(said.contains("does not know the key"), "{said}");
}

#[test]
fn a_removed_key_and_a_reload_end_access() {
    let site = Site::new("");
    let world = &site.world;
    world.git(".", &["clone", "-q", "work", "bob"]);
    let pulls = || {
        site.sync("bob", "bob", "team/a", &["--pull"])
            .status
            .success()
    };
    assert!(pulls());
    let listed = site.manage(&["user", "key", "list", "bob"]);
    assert!(
        listed.starts_with("bob\tSHA256:") && listed.contains("ssh-ed25519"),
        "{listed}"
    );
    site.manage(&["user", "key", "remove", "bob", &site.keys[1]]);
    wait_until(|| !pulls());
    // 'netsync key' prints what 'user key add' takes.
    let shown = world.done("bob", ".", &["netsync", "key"]);
    std::fs::write(world.path("bob.key"), shown).expect("a file");
    site.manage(&["user", "key", "add", "bob", "bob.key"]);
    wait_until(pulls);
    let text = std::fs::read_to_string(world.path("server.toml")).expect("text");
    std::fs::write(
        world.path("server.toml"),
        text.replace("\"bob\"", "\"eve\""),
    )
    .expect("a file");
    site.server().signal(Signal::HUP);
    wait_until(|| !pulls());
    let said = stderr(&site.sync("bob", "bob", "team/a", &["--pull"]));
    assert!(said.contains("there is no repository 'team/a'"), "{said}");
}

#[test]
fn the_key_of_the_server_is_made_once_and_checked() {
    let mut site = Site::new("");
    let key = site.printed("the key of netsync is ");
    let path = site.world.path("pronto-netsync-key");
    site.end();
    site.start();
    assert_eq!(site.printed("the key of netsync is "), key);
    site.end();
    let check = ["serve", "--config", "server.toml", "--check"];
    site.world.done("server", ".", &check);
    std::fs::write(&path, "x").expect("a file");
    let output = site.world.pronto("server", ".", &check);
    assert!(
        stderr(&output).contains("no private key in PEM format"),
        "{}",
        stderr(&output)
    );
    std::fs::remove_file(&path).expect("a file");
    site.world.done("server", ".", &check);
    assert!(!path.exists(), "a check makes nothing");
}

#[test]
fn a_dishonest_writer_changes_nothing_and_learns_nothing() {
    let site = Site::new("");
    let world = &site.world;
    world.git("work", &["checkout", "-q", "-b", "secret"]);
    world.commit("work", "s", b"secret\n");
    let push = [
        "push",
        "-q",
        "../root/team/a.git",
        "secret:refs/heads/secret",
    ];
    world.git("work", &push);
    let hide = ["config", "transfer.hideRefs", "refs/heads/secret"];
    world.git("root/team/a.git", &hide);
    let id = |revision: &str| {
        let hex = site.rev("work", revision);
        ObjectId::from_hex(hex.trim().as_bytes()).expect("an id")
    };
    let refs = || world.git("root/team/a.git", &["for-each-ref"]);
    let before = refs();
    let attacker = Attacker::at(world, &site.url("team/a"), "alice");
    let blob = b"a gift\n";
    let content = || pack(&[whole(ObjectKind::Blob, &blob[..])]);
    // A tip that was not sent: a hidden one gives the same answer as a missing one.
    let said = |tip: ObjectId| {
        let error = attacker.attack(tip, content(), 1);
        (
            error.kind(),
            error.to_string().replace(&tip.to_string(), "TIP"),
        )
    };
    for revision in ["secret", "secret^{tree}", "secret:s"] {
        let (hidden, mut near) = (id(revision), id(revision));
        *near.as_mut_slice().last_mut().expect("bytes") ^= 1;
        assert_eq!(said(hidden), said(near), "{revision}");
    }
    // A commit whose tree is hidden, or missing.
    let commit = |tree: &ObjectId| {
        let text = format!("tree {tree}\nauthor a <a@x> 1 +0000\ncommitter a <a@x> 1 +0000\n\nm\n");
        let tip = id_of(ObjectKind::Commit, text.as_bytes());
        let content = pack(&[whole(ObjectKind::Commit, text.as_bytes())]);
        let error = attacker.attack(tip, content, 1);
        (
            error.kind(),
            error.to_string().replace(&tree.to_string(), "TREE"),
        )
    };
    let (hidden, mut near) = (id("secret^{tree}"), id("secret^{tree}"));
    *near.as_mut_slice().last_mut().expect("bytes") ^= 1;
    assert_eq!(commit(&hidden), commit(&near));
    assert_eq!(refs(), before);
    assert_eq!(
        world.git("root/team/a.git", &["fsck", "--full", "--strict"]),
        ""
    );
}
