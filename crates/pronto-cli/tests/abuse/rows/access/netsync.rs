//! Netsync clients in the matrix: the same requests, made by `pronto sync`.

use std::net::SocketAddr;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use crate::site::{Site, copy, manage, pronto};
use crate::stage::Stage;

/// The users with a key, and a client with an unknown key.
const CLIENTS: [&str; 5] = ["alice", "bob", "mallory", "root", "anonymous"];

/// Enables netsync beside the other protocols, with a key of each user. Does nothing for a store,
/// which netsync does not support.
pub(in crate::rows) fn serve(stage: &mut Stage) {
    if stage.site.is_store() {
        return;
    }
    stage.netsync();
    make_key(&stage.site, "server");
    let private = home(&stage.site, "server").join(".config/pronto/netsync/key");
    let own = stage.site.path("pronto-netsync-key");
    std::fs::copy(private, &own).expect("a key");
    let only_own = std::fs::Permissions::from_mode(0o600);
    std::fs::set_permissions(&own, only_own).expect("it is ours");
    for user in CLIENTS {
        let key = make_key(&stage.site, user);
        if user != "anonymous" {
            let config = stage.site.path("server.toml");
            manage(&config, &["user", "key", "add", user, &key]);
        }
    }
}

pub(in crate::rows) fn home(site: &Site, who: &str) -> PathBuf {
    site.path(format!("peers/{who}"))
}

/// Creates a key, and returns its public half.
fn make_key(site: &Site, who: &str) -> String {
    let at = home(site, who);
    std::fs::create_dir_all(&at).expect("a directory");
    let output = run(site, who, &at, &["netsync", "keygen"]);
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    text.lines().next().expect("a key").to_owned()
}

fn run(site: &Site, who: &str, at: &Path, arguments: &[&str]) -> Output {
    Command::new(pronto())
        .args(arguments)
        .current_dir(at)
        .env_clear()
        .env("PATH", std::env::var_os("PATH").unwrap_or_default())
        .env("HOME", home(site, who))
        .env("GIT_CONFIG_NOSYSTEM", "1")
        .env("PRONTO_NO_FALLBACK", "1")
        .envs([("GIT_AUTHOR_NAME", "a"), ("GIT_AUTHOR_EMAIL", "a@x")])
        .envs([("GIT_COMMITTER_NAME", "c"), ("GIT_COMMITTER_EMAIL", "c@x")])
        .output()
        .expect("it starts")
}

/// The request of a client for a repository.
pub(in crate::rows) struct Wanted<'a> {
    pub(in crate::rows) user: Option<&'a str>,
    pub(in crate::rows) repository: &'a str,
    /// Whether the client requests to push and not only to pull.
    pub(in crate::rows) pushes: bool,
}

/// Pulls all refs of a repository, or asks for the permission to push a branch. Returns the names
/// and ids of the refs that the client has afterwards, or the reason of the refusal.
pub(in crate::rows) fn ask(stage: &mut Stage, wanted: &Wanted<'_>) -> Vec<u8> {
    let address = address(stage);
    let who = wanted.user.unwrap_or("anonymous");
    let site = &stage.site;
    let (peer, at) = (home(site, who), home(site, who).join("clone"));
    let address = address.to_string();
    if !peer.join(".config/pronto/netsync/known_peers").exists() {
        let key = run(site, "server", &home(site, "server"), &["netsync", "key"]);
        let key = String::from_utf8_lossy(&key.stdout).into_owned();
        let key = key.lines().next().expect("a key").to_owned();
        let trust = ["netsync", "trust", "desk", &key, "--at", &address];
        run(site, who, &peer, &trust);
    }
    let _ = std::fs::remove_dir_all(&at);
    copy(&site.path("work"), &at);
    let url = format!("netsync://{address}/{}", wanted.repository);
    let more: &[&str] = match wanted.pushes {
        true => &["--push", "--dry-run"],
        false => &["--pull"],
    };
    let sync = [&["sync", &url, "--name", "desk"], more].concat();
    let output = run(site, who, &at, &sync);
    let mut answer = output.stderr;
    if output.status.success() && !wanted.pushes {
        let format = "--format=%(objectname) %(refname)";
        let refs = site.git(
            &at,
            &["for-each-ref", format, "refs/remotes/desk", "refs/tags"],
        );
        answer.extend(
            refs.replace("refs/remotes/desk/", "refs/heads/")
                .into_bytes(),
        );
    } else if output.status.success() {
        // It is told which branches would move.
        answer.extend_from_slice(b"refs/heads/main");
    }
    answer
}

pub(in crate::rows) fn address(stage: &mut Stage) -> SocketAddr {
    let is_it =
        |event: &serde_json::Value| event["event"] == "listening" && event["protocol"] == "netsync";
    let event = stage.server().logged(is_it).expect("it listens");
    let address = event["address"].as_str().expect("an address");
    address.parse().expect("an address")
}
