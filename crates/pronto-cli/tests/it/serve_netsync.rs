//! Netsync on the configuration of `serve`: users are known by their keys, and have the roles and
//! rules that they have over the other protocols.

mod site;

use std::io::Read as _;
use std::net::TcpStream;

use gix_object::Kind as ObjectKind;
use pronto_hash::ObjectId;
use pronto_netsync::message::Role;
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
    let told = site.done("alice", "alice", &["--push"]);
    assert!(told.contains("forward  main -> main"), "{told}");
    assert!(told.contains("* new      topic -> topic"), "{told}");
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
    let told = stdout(&output);
    assert!(
        told.contains("! refused  main (not a fast-forward"),
        "{told}"
    );
    assert!(told.contains("* new      main -> desk/main"), "{told}");
    world.git("desktop", &["merge", "-q", "-m", "merge", "desk/main"]);
    site.done("alice", "desktop", &[]);
    assert_eq!(
        site.rev("root/team/a.git", "main"),
        site.rev("desktop", "main")
    );
    // A clone that is behind takes, and changes nothing.
    let told = site.done("alice", "alice", &[]);
    assert!(told.contains("* new      main -> desk/main"), "{told}");
    assert!(!told.contains("To desk"), "{told}");
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
    let (result, report) = attacker.converse(puppet, Role::Sink, &mut |_, _| {});
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
    let told = stdout(&output);
    for part in [
        "* new      free -> free",
        "  forward  main -> main",
        "! refused  release (",
        "! refused  secret (the ref is hidden)",
        "! refused  tags/v1 (",
    ] {
        assert!(told.contains(part), "{part}: {told}");
    }
    assert_eq!(site.rev("root/team/a.git", "secret"), secret);
    // Programs learn the reason, too.
    let told = stdout(&site.sync("alice", "alice", "team/a", &["--push", "--json"]));
    assert!(
        told.contains("\"fate\":\"refused\",\"reason\":\"the ref is hidden\""),
        "{told}"
    );
    // A tag that exists stays what it is, and is sent to others.
    world.git("root/team/a.git", &["tag", "v2", "main~1"]);
    world.git("alice", &["tag", "-d", "v1"]);
    world.git("alice", &["tag", "v2", "main"]);
    let told = stdout(&site.sync("alice", "alice", "team/a", &["--push"]));
    assert!(
        told.contains("tags/v2 (the server has another object"),
        "{told}"
    );
    // What is pushed past a hook would escape its policy.
    let hooks = world.path("root/team/a.git/hooks");
    std::fs::create_dir_all(&hooks).expect("a directory");
    write_program(&hooks.join("pre-receive"), "#!/bin/sh\nexit 1\n");
    let said = stderr(&site.sync("alice", "alice", "team/a", &["--push"]));
    assert!(
        said.contains("has the hook 'pre-receive', which netsync does not run"),
        "{said}"
    );
    site.done("bob", "bob", &["--pull"]);
}

#[test]
fn settings_that_only_a_push_obeys_take_no_pushes() {
    let site = Site::new("");
    let world = &site.world;
    world.git(".", &["clone", "-q", "work", "alice"]);
    world.commit("alice", "a", b"a\n");
    let set = |arguments: &[&str]| {
        let arguments = [&["config"], arguments].concat();
        world.git("root/team/a.git", &arguments);
    };
    let before = site.rev("root/team/a.git", "main");
    for (key, value, expected) in [
        (
            "hook.policy.event",
            "pre-receive",
            "has the hook 'pre-receive'",
        ),
        (
            "hook.policy.command",
            "exit 1",
            "has the hook 'pre-receive'",
        ),
        ("hook.policy.event", "update", "has the hook 'update'"),
        (
            "hook.policy.event",
            "post-receive",
            "has the hook 'post-receive'",
        ),
        ("hook.policy.enabled", "false", ""),
        ("receive.maxInputSize", "1000", "has receive.maxInputSize"),
        (
            "core.sharedRepository",
            "group",
            "grafted, partial or shared",
        ),
    ] {
        set(&[key, value]);
        let output = site.sync("alice", "alice", "team/a", &["--push", "--dry-run"]);
        let said = stderr(&output);
        assert!(said.contains(expected), "{key}={value}: {said}");
        assert_eq!(output.status.success(), expected.is_empty(), "{said}");
        assert_eq!(site.rev("root/team/a.git", "main"), before);
        if !key.starts_with("hook") {
            set(&["--unset", key]);
        }
    }
    // Readers are not concerned.
    set(&["hook.policy.enabled", "true"]);
    world.git(".", &["clone", "-q", "work", "bob"]);
    site.done("bob", "bob", &["--pull"]);
    set(&["--remove-section", "hook.policy"]);
    site.done("alice", "alice", &["--push"]);
    assert_eq!(
        site.rev("root/team/a.git", "main"),
        site.rev("alice", "main")
    );
}

#[test]
fn the_name_of_the_only_repository_is_for_those_who_may_read_it() {
    let site = Site::of(&format!("require_export_ok = true\n{CONFIG}"));
    let world = &site.world;
    world.git(".", &["clone", "-q", "work", "clone"]);
    let keep = |name: &str| {
        let kept = world.path("kept.git");
        std::fs::rename(world.path(&format!("root/{name}.git")), &kept).expect("renamed");
        for old in ["root/team", "root/open.git", "root/private.git"] {
            let _ = std::fs::remove_dir_all(world.path(old));
        }
        std::fs::rename(&kept, world.path(&format!("root/{name}.git"))).expect("renamed");
    };
    let unnamed = |who: &str, arguments: &[&str]| stderr(&site.sync(who, "clone", "", arguments));
    // There are several.
    let several = "there is not one repository only: name it";
    assert!(unnamed("alice", &["--pull"]).contains(several));
    // One that everyone may read, but is not marked for everyone.
    world.git(".", &["clone", "-q", "--bare", "work", "spare.git"]);
    keep("open");
    for arguments in [&["--pull"][..], &["--push"], &[]] {
        let said = unnamed("mallory", arguments);
        assert!(
            !said.contains("'open'") && !said.contains("open.git"),
            "{said}"
        );
    }
    // One that only Alice may read.
    std::fs::rename(world.path("spare.git"), world.path("root/private.git")).expect("renamed");
    keep("private");
    for who in ["mallory", "bob"] {
        for arguments in [&["--pull"][..], &["--push"], &[]] {
            let said = unnamed(who, arguments);
            assert!(!said.contains("private"), "{who}: {said}");
            assert!(!said.is_empty(), "{who} is served");
        }
        let said = unnamed(who, &["--pull"]);
        assert!(said.contains(several), "{who}: {said}");
    }
    let output = site.sync("alice", "clone", "", &["--pull"]);
    assert!(output.status.success(), "{}", stderr(&output));
}

#[test]
fn unknown_peers_learn_how_to_be_added() {
    let mut site = Site::new("");
    let world = &site.world;
    world.git(".", &["clone", "-q", "work", "clone"]);
    let command = format!(
        "pronto serve --config FILE user key add NAME {}",
        site.keys[2]
    );
    // Everyone reads what is open.
    let output = site.sync("mallory", "clone", "open", &["--pull"]);
    assert!(output.status.success(), "{}", stderr(&output));
    for (name, arguments) in [
        ("open", &["--push"][..]),
        ("open", &[]),
        ("team/a", &["--pull"]),
        ("nowhere", &["--pull"]),
    ] {
        let said = stderr(&site.sync("mallory", "clone", name, arguments));
        assert!(said.contains("is not known there"), "{name}: {said}");
        assert!(said.contains(&command), "{name}: {said}");
    }
    assert!(!world.path("root/open.git/objects/netsync/peer").exists());
    // Without that grant, a key of nobody is refused at once, and only so often.
    let text = std::fs::read_to_string(world.path("server.toml")).expect("text");
    let text = text.replace("\"anonymous\"", "\"bob\"");
    let text = format!("{text}\n[limits]\nfailures_per_minute = 2\n");
    std::fs::write(world.path("server.toml"), text).expect("a file");
    site.server().signal(Signal::HUP);
    let said = || stderr(&site.sync("mallory", "clone", "open", &["--pull"]));
    wait_until(|| said().contains(&command) || said().contains("too many wrong"));
    wait_until(|| said().contains("too many wrong tokens; try again in a minute"));
    let log = site.end();
    let refused = |line: &&str| line.contains("\"status\":401") && line.contains("user key add");
    assert!(log.lines().any(|line| refused(&line)), "{log}");
    assert!(
        log.lines().any(|line| line.contains("\"status\":429")),
        "{log}"
    );
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
    let told = stdout(&output);
    assert!(
        told.contains("! refused  main (the branch is checked out on the server)"),
        "{told}"
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
        let is_refused = said.contains("there is no repository")
            || said.contains("invalid name of a repository");
        assert!(is_refused, "{name}: {said}");
    }
    let said = stderr(&site.sync("alice", "clone", "", &["--pull"]));
    assert!(said.contains("name it, netsync://HOST:PORT/PATH"), "{said}");
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
    assert!(said.contains("is not known there"), "{said}");
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
fn a_flood_takes_no_more_than_its_share() {
    let limits = "[limits]\nconnections_per_address = 4\nrequests = 1\nuser_share = 100\nwait_seconds = 5\n\
         stall_seconds = 600\nhead_seconds = 600\n";
    let mut site = Site::new(limits);
    let world = &site.world;
    world.git(".", &["clone", "-q", "work", "alice"]);
    let address = site.address();
    // Connections that send nothing: the fifth is closed at once.
    let mut sockets: Vec<TcpStream> = (0..5)
        .map(|_| TcpStream::connect(&address).expect("it listens"))
        .collect();
    let mut last = sockets.pop().expect("five");
    assert_eq!(last.read(&mut [0]).expect("it is closed"), 0);
    let output = site.sync("alice", "alice", "team/a", &["--pull"]);
    assert!(!output.status.success(), "there is no room");
    drop(sockets);
    let pull = || site.sync("alice", "alice", "team/a", &["--pull"]);
    wait_until(|| pull().status.success());
    // A session that does not continue has the only slot.
    let attacker = Attacker::at(world, &site.url("team/a"), "bob");
    let stalled = attacker.stall(|report| report.received_frames > 0, true);
    let said = stderr(&pull());
    assert!(
        said.contains("the server is busy; try again later"),
        "{said}"
    );
    drop(stalled);
    wait_until(|| pull().status.success());
    let log = site.end();
    assert!(
        log.contains("\"reason\":\"too many connections of this address\""),
        "{log}"
    );
    assert!(log.contains("\"status\":503"), "{log}");
}

#[test]
fn the_end_of_the_server_waits_for_sessions_and_then_ends_them() {
    let limits = "[limits]\nstall_seconds = 600\ndrain_seconds = 1\n";
    let mut site = Site::new(limits);
    let attacker = Attacker::at(&site.world, &site.url("team/a"), "bob");
    let stalled = attacker.stall(|report| report.received_frames > 0, true);
    let log = site.end();
    drop(stalled);
    let draining = "\"connections\":1,\"event\":\"draining\"";
    let is_there = |text: &str| log.lines().any(|line| line.contains(text));
    assert!(
        is_there(draining) || log.contains("\"event\":\"draining\""),
        "{log}"
    );
    // The session was cut off, and is in the log.
    assert!(is_there("\"service\":\"netsync-pull\""), "{log}");
    let drained = log
        .lines()
        .find(|line| line.contains("\"event\":\"drained\""));
    assert!(
        drained.expect("a line").contains("\"connections\":1"),
        "{log}"
    );
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
        stderr(&output).contains("no private key as PEM"),
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
            *error.kind(),
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
            *error.kind(),
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
