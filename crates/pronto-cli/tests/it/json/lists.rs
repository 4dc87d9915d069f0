//! The documents of commands that list, and of `sync`.

use std::fs;

use super::stage::Stage;
use crate::support::{process, pronto_path};

#[test]
fn worktrees_are_listed() {
    let stage = Stage::new();
    stage.git("work", &["worktree", "add", "-q", "../linked"]);
    stage.git(
        "work",
        &["worktree", "lock", "--reason", "why", "../linked"],
    );
    let call = stage.ok("worktree-list", "work", &["worktree", "list", "--json"]);
    assert_eq!(call.at("/worktrees/0/is_main"), true);
    assert_eq!(call.text("/worktrees/1/name"), "linked");
    assert_eq!(call.text("/worktrees/1/branch"), "refs/heads/linked");
    assert_eq!(call.text("/worktrees/1/lock_reason"), "why");
}

#[test]
fn peers_are_listed() {
    let stage = Stage::new();
    let key = format!("ed25519:{}", "1234abcd".repeat(8));
    let arguments = ["--roles=read", "--at=host:1", "--only=a/*", "anna"];
    let trust = [&["netsync", "trust"], &arguments[..], &[key.as_str()]].concat();
    let trusted = process(pronto_path())
        .args(trust)
        .env("HOME", stage.path("home"))
        .current_dir(stage.path("work"))
        .output()
        .expect("it starts");
    assert!(trusted.status.success(), "{trusted:?}");
    let call = stage.ok("netsync-peers", "work", &["netsync", "peers", "--json"]);
    assert_eq!(call.text("/peers/0/name"), "anna");
    assert_eq!(call.text("/peers/0/key"), key);
    assert_eq!(call.text("/peers/0/only/0"), "refs/heads/a/*");
    assert_eq!(call.at("/peers/0/roles"), &serde_json::json!(["read"]));
}

#[test]
fn stores_are_listed_and_verified() {
    let stage = Stage::new();
    fs::create_dir(stage.path("store")).expect("a directory");
    let url = format!("file://{}", stage.path("store").display());
    let imported = process(pronto_path())
        .args(["store", "import", "work", &url, "team/project"])
        .current_dir(stage.path("."))
        .output()
        .expect("it starts");
    assert!(imported.status.success(), "{imported:?}");
    let call = stage.ok("store-list", ".", &["store", "list", "--json", &url]);
    assert_eq!(call.text("/repositories/0/name"), "team/project");
    let list = ["store", "list", "--json", &url, "team/project"];
    let call = stage.ok("store-list", ".", &list);
    assert_eq!(call.text("/repository"), "team/project");
    assert!(call.text("/generations/0/created").ends_with('Z'));
    let verify = ["store", "verify", "--json", &url];
    let call = stage.ok("store-verify", ".", &verify);
    assert_eq!(call.at("/repositories/0/problems"), &serde_json::json!([]));
    assert!(call.at("/repositories/0/objects").as_u64() > Some(0));
    let mut waiting = vec![stage.path("store")];
    let mut pack = None;
    while let Some(directory) = waiting.pop() {
        for entry in fs::read_dir(directory).expect("it can be listed").flatten() {
            let path = entry.path();
            match path.is_dir() {
                true => waiting.push(path),
                false if path.to_string_lossy().contains("pack") => pack = Some(path),
                false => {}
            }
        }
    }
    fs::remove_file(pack.expect("a pack")).expect("it can be removed");
    let call = stage.code(1, "store-verify", ".", &verify);
    assert_eq!(
        call.text("/repositories/0/problems/0/kind"),
        "missing_object"
    );
}

#[test]
fn users_and_repositories_of_a_server_are_listed() {
    let stage = Stage::new();
    fs::create_dir(stage.path("root")).expect("a directory");
    fs::write(stage.path("server.toml"), "root = \"root\"\n").expect("a file");
    let serve = |arguments: &[&str]| {
        let output = process(pronto_path())
            .args(["serve", "--config", "server.toml"])
            .args(arguments)
            .current_dir(stage.path("."))
            .output()
            .expect("it starts");
        assert!(output.status.success(), "{output:?}");
        String::from_utf8_lossy(&output.stdout).trim().to_owned()
    };
    serve(&["user", "add", "alice"]);
    let token = serve(&["token", "alice"]);
    serve(&["repository", "create", "team/project"]);
    let config = ["serve", "--config", "server.toml"];
    let users = [&config[..], &["user", "list", "--json"]].concat();
    let call = stage.ok("serve-user-list", ".", &users);
    assert_eq!(call.text("/users/0/name"), "alice");
    assert_eq!(call.at("/users/0/tokens"), 1);
    assert!(!call.document.to_string().contains(&token));
    let repositories = [&config[..], &["repository", "list", "--json"]].concat();
    let call = stage.ok("serve-repository-list", ".", &repositories);
    assert_eq!(call.text("/repositories/0/name"), "team/project");
}

#[test]
fn a_sync_has_the_fields_of_all_documents() {
    let stage = Stage::new();
    stage.git(".", &["clone", "-q", "work", "peer"]);
    stage.commit("peer", "more", "more\n");
    let call = stage.ok("sync", "work", &["sync", "--json", "--pull", "../peer"]);
    let published = call.at("/published").as_array().expect("a list");
    assert!(!published.is_empty());
}
