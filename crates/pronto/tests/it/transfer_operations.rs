//! Tests clone, fetch and the server of a fetch through the public API. Stock git checks each
//! result.

use std::collections::BTreeSet;
use std::path::Path;

use bstr::{BStr, BString};
use pronto::Watch;
use pronto::clone;
use pronto::fetch::{self, Flag};
use pronto::remote::{Cuts, FetchedTips, Remote, incomplete};
use pronto::upload_pack::{self, ConversationEnd};
use pronto::{Environment, ErrorKind, ObjectId, Repository};
use pronto_io::interrupt::Interrupt;
use pronto_wire::advertisement::ProtocolVersion;

use crate::support::Sandbox;

/// Returns an environment that finds git, which serves local repositories.
fn environment(sandbox: &Sandbox, directory: &str) -> Environment {
    let mut environment = sandbox.environment(directory);
    environment.set("PATH", std::env::var_os("PATH").unwrap_or_default());
    environment
}

/// Opens the repository `copy`.
fn open_copy(sandbox: &Sandbox) -> Repository {
    let environment = environment(sandbox, "copy");
    Repository::discover(Path::new("."), &environment).expect("a repository")
}

/// Returns the address of the repository `r` for a transport through a server.
fn url(sandbox: &Sandbox) -> BString {
    format!("file://{}/r", sandbox.root.display()).into()
}

fn clone_to(sandbox: &Sandbox, directory: &str) -> pronto::Result<clone::Outcome> {
    clone::clone(
        url(sandbox).as_ref(),
        &sandbox.root.join(directory),
        &clone::Options::default(),
        &environment(sandbox, ""),
        &Watch::none(),
    )
}

fn fetch_all(repository: &Repository, options: &fetch::Options) -> fetch::Outcome {
    let remote = Remote::find(repository, BStr::new("origin")).expect("it is configured");
    let outcome = fetch::fetch(repository, &remote, options, &Watch::none());
    outcome.expect("the remote can be reached")
}

#[test]
fn the_search_for_a_missing_object_can_be_interrupted() {
    let sandbox = Sandbox::with_files();
    let repository = Repository::discover(Path::new("."), &environment(&sandbox, "r"));
    let repository = repository.expect("a repository");
    let tip = sandbox.git("r", &["rev-parse", "HEAD^{tree}"]);
    let tip = ObjectId::from_hex(tip.trim().as_bytes()).expect("an id");
    let cut = BTreeSet::new();
    let fetched = FetchedTips {
        source: "origin",
        store: repository.objects().expect("it has objects"),
        tips: &[tip],
        known: &[],
        cuts: Cuts::unchanged(&cut),
    };
    let error = incomplete(&fetched, &Watch::none()).expect("it can be read");
    assert_eq!(error.kind(), ErrorKind::Incomplete);
    let interrupt = Interrupt::new();
    interrupt.trigger();
    let stopped = incomplete(&fetched, &Watch::from(&interrupt)).expect_err("it is interrupted");
    assert_eq!(stopped.kind(), ErrorKind::Interrupted);
}

#[test]
fn a_clone_has_history_files_and_configuration() {
    let sandbox = Sandbox::with_files();
    sandbox.git("r", &["tag", "v1"]);
    let outcome = clone_to(&sandbox, "copy").expect("it can be cloned");
    assert!(!outcome.checkout_failed && outcome.detached.is_none());
    assert_eq!(sandbox.git("copy", &["status", "--porcelain"]), "");
    let head = sandbox.git("r", &["rev-parse", "HEAD"]);
    for name in ["HEAD", "origin/main", "v1"] {
        assert_eq!(sandbox.git("copy", &["rev-parse", name]), head);
    }
    let upstream = ["rev-parse", "--symbolic-full-name", "@{upstream}"];
    assert_eq!(sandbox.git("copy", &upstream), "refs/remotes/origin/main");
    sandbox.git("copy", &["fsck", "--strict"]);
}

#[test]
fn a_clone_that_fails_leaves_nothing() {
    let sandbox = Sandbox::with_files();
    std::fs::create_dir(sandbox.root.join("copy")).expect("a directory");
    std::fs::write(sandbox.root.join("copy/file"), "in the way").expect("a file");
    clone_to(&sandbox, "copy").expect_err("the directory is not empty");
    assert!(!sandbox.root.join("copy/.git").exists());
    std::fs::remove_dir_all(sandbox.root.join("r")).expect("it is ours");
    clone_to(&sandbox, "other").expect_err("there is no repository");
    assert!(!sandbox.root.join("other").exists());
}

#[test]
fn a_fetch_updates_tracking_refs_and_prunes_them() {
    let sandbox = Sandbox::with_files();
    sandbox.git("r", &["branch", "old"]);
    sandbox.git("", &["clone", "-q", "r", "copy"]);
    sandbox.git(
        "copy",
        &["remote", "set-url", "origin", &url(&sandbox).to_string()],
    );
    sandbox.git("r", &["branch", "-q", "-D", "old"]);
    sandbox.git("r", &["branch", "new"]);
    sandbox.write("a", "changed");
    sandbox.git("r", &["commit", "-q", "-a", "-m", "two"]);
    let repository = open_copy(&sandbox);
    let mut options = fetch::Options::default();
    options.prune = Some(true);
    let outcome = fetch_all(&repository, &options);
    assert!(!outcome.failed && outcome.errors.is_empty());
    let mut updates: Vec<(Flag, String)> = outcome
        .updates
        .iter()
        .map(|update| (update.flag, update.local.to_string()))
        .collect();
    updates.sort_by(|one, other| one.1.cmp(&other.1));
    let flags: Vec<Flag> = updates.iter().map(|(flag, _)| *flag).collect();
    assert_eq!(
        flags,
        [Flag::FastForward, Flag::New, Flag::Pruned],
        "{updates:?}"
    );
    for branch in ["main", "new"] {
        assert_eq!(
            sandbox.git("copy", &["rev-parse", &format!("origin/{branch}")]),
            sandbox.git("r", &["rev-parse", branch])
        );
    }
    let listed = sandbox.git("copy", &["for-each-ref", "refs/remotes/origin/old"]);
    assert_eq!(listed, "");
    sandbox.git("copy", &["fsck", "--strict"]);
}

#[test]
fn a_dry_run_of_a_fetch_changes_nothing() {
    let sandbox = Sandbox::with_files();
    sandbox.git("", &["clone", "-q", "r", "copy"]);
    let before = sandbox.git("copy", &["show-ref"]);
    sandbox.git("r", &["branch", "new"]);
    let mut options = fetch::Options::default();
    options.dry_run = true;
    let outcome = fetch_all(&open_copy(&sandbox), &options);
    assert_eq!(outcome.updates.len(), 1);
    assert_eq!(sandbox.git("copy", &["show-ref"]), before);
}

fn serve(
    sandbox: &Sandbox,
    request: &[u8],
    version: ProtocolVersion,
) -> (pronto::Result<ConversationEnd>, Vec<u8>) {
    let mut sent = Vec::new();
    let mut options = upload_pack::Options::default();
    options.version = version;
    let streams = upload_pack::UploadStreams {
        input: &mut &request[..],
        output: &mut sent,
    };
    let ended = upload_pack::answer(&sandbox.open("r"), &options, streams, &Watch::none());
    (ended, sent)
}

#[test]
fn a_server_lists_references_and_ends_with_the_client() {
    let sandbox = Sandbox::with_files();
    let head = sandbox.git("r", &["rev-parse", "HEAD"]);
    let (ended, sent) = serve(&sandbox, b"0000", ProtocolVersion::V0);
    assert_eq!(
        ended.expect("the client asks nothing"),
        ConversationEnd::Served
    );
    let text = String::from_utf8_lossy(&sent);
    assert!(text.contains(&format!("{head} HEAD\0")), "{text}");
    assert!(
        text.contains(&format!("{head} refs/heads/main\n")),
        "{text}"
    );
    assert!(text.ends_with("0000"), "{text}");
}

#[test]
fn a_server_leaves_requests_for_unknown_objects_unanswered() {
    let sandbox = Sandbox::with_files();
    let request = format!("0032want {}\n00000009done\n", "1".repeat(40));
    let (ended, sent) = serve(&sandbox, request.as_bytes(), ProtocolVersion::V0);
    let error = ended.expect_err("the server has no such object");
    assert!(error.message().contains("not our ref"), "{error}");
    assert!(String::from_utf8_lossy(&sent).contains("ERR upload-pack: not our ref"));
}
