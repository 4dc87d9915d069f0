//! Peers that are refused, and the reasons that the server reports to them.

use rustix::process::Signal;

use super::site::{CONFIG, Site};
use crate::serve::wait_until;
use crate::support::stderr;

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
            "has a 'pre-receive' hook",
        ),
        ("hook.policy.command", "exit 1", "has a 'pre-receive' hook"),
        ("hook.policy.event", "update", "has a 'update' hook"),
        (
            "hook.policy.event",
            "post-receive",
            "has a 'post-receive' hook",
        ),
        ("hook.policy.enabled", "false", ""),
        ("receive.maxInputSize", "1000", "sets receive.maxInputSize"),
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
    let several = "the address must name a repository";
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
        assert!(said.contains("does not know the key"), "{name}: {said}");
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
    wait_until(|| said().contains(&command) || said().contains("too many invalid"));
    wait_until(|| said().contains("too many invalid tokens; try again in a minute"));
    let log = site.end();
    let refused = |line: &&str| line.contains("\"status\":401") && line.contains("user key add");
    assert!(log.lines().any(|line| refused(&line)), "{log}");
    assert!(
        log.lines().any(|line| line.contains("\"status\":429")),
        "{log}"
    );
}
