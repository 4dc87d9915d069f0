//! The documents of `--json`: real outputs are validated with the published schemas.

mod lists;
mod schema;
mod stage;

use std::fs;

use serde_json::Value;

use crate::support::{process, pronto_path};
use stage::Stage;

#[test]
fn status_describes_changes_conflicts_and_names_of_any_bytes() {
    use std::os::unix::ffi::OsStrExt as _;
    let stage = Stage::new();
    let clean = stage.ok("status", "work", &["status", "--json"]);
    assert_eq!(clean.text("/head/branch"), "refs/heads/main");
    assert_eq!(clean.text("/upstream/ref"), "refs/remotes/origin/main");
    assert_eq!(clean.at("/upstream/ahead"), 0);
    assert_eq!(clean.at("/changes"), &serde_json::json!([]));

    stage.commit("work", "second", "two\nthree\nfour\n");
    stage.git("work", &["mv", "second", "renamed"]);
    fs::write(stage.path("work/file"), "changed\n").expect("a file");
    let odd = std::ffi::OsStr::from_bytes(b"caf\xe9");
    fs::write(stage.path("work").join(odd), "").expect("a file");
    let call = stage.ok("status", "work", &["status", "--json", "--show-stash"]);
    assert_eq!(call.at("/upstream/ahead"), 1);
    assert_eq!(call.at("/stash_entries"), 0);
    let changes = call.at("/changes").as_array().expect("a list");
    let of = |path: &str| changes.iter().find(|change| change["path"] == path);
    let file = of("file").expect("it has changed");
    assert_eq!(file["worktree"], "modified");
    assert_eq!(file["index"], Value::Null);
    let renamed = of("renamed").expect("it is new");
    assert_eq!(renamed["index"], "renamed");
    assert_eq!(renamed["origin"]["path"], "second");
    assert_eq!(renamed["origin"]["similarity_percent"], 100);
    assert_eq!(call.text("/untracked/0/base64"), "Y2Fm6Q==");

    stage.git("work", &["reset", "-q", "--hard"]);
    stage.git("work", &["checkout", "-q", "-b", "side", "HEAD~1"]);
    stage.commit("work", "file", "side\n");
    stage.git("work", &["checkout", "-q", "main"]);
    stage.commit("work", "file", "ours\n");
    let merged = process("git")
        .args(["merge", "side"])
        .current_dir(stage.path("work"))
        .envs([("GIT_COMMITTER_NAME", "a"), ("GIT_COMMITTER_EMAIL", "a@x")])
        .output()
        .expect("git starts");
    assert!(!merged.status.success(), "it conflicts");
    let call = stage.ok("status", "work", &["status", "--json"]);
    assert_eq!(call.text("/operations/0"), "merge");
    assert_eq!(call.text("/conflicts/0/letters"), "UU");
    assert_eq!(call.text("/conflicts/0/theirs/mode"), "100644");
}

#[test]
fn status_of_other_heads() {
    let stage = Stage::new();
    stage.git("work", &["checkout", "-q", "--detach"]);
    let call = stage.ok("status", "work", &["status", "--json"]);
    assert_eq!(call.text("/head/state"), "detached");
    fs::create_dir(stage.path("new")).expect("a directory");
    stage.git("new", &["init", "-q", "-b", "trunk"]);
    let call = stage.ok("status", "new", &["status", "--json"]);
    assert_eq!(call.text("/head/state"), "unborn");
    assert_eq!(call.text("/head/branch"), "refs/heads/trunk");
}

#[test]
fn a_clone_reports_its_refs_and_what_it_received() {
    let stage = Stage::new();
    let id = stage.git("work", &["rev-parse", "HEAD"]);
    let url = format!("file://{}", stage.path("origin").display());
    let call = stage.ok("clone", ".", &["clone", "--json", &url, "copy"]);
    assert_eq!(call.text("/head/branch"), "refs/heads/main");
    assert_eq!(call.text("/head/id"), id);
    assert_eq!(call.text("/checkout/id"), id);
    assert_eq!(call.at("/received/objects"), 3);
    assert!(call.at("/received/bytes").as_u64() > Some(0));
    let refs = call.at("/refs").as_array().expect("a list");
    let main = refs.iter().find(|it| it["local"] == "refs/heads/main");
    assert_eq!(main.expect("it exists")["new"], id.as_str());
    let head = refs
        .iter()
        .find(|it| it["local"] == "refs/remotes/origin/HEAD");
    let head = head.expect("it exists");
    assert_eq!(head["target"], "refs/remotes/origin/main");
    assert!(
        call.stderr.contains("Cloning into 'copy'"),
        "{}",
        call.stderr
    );

    let call = stage.ok(
        "clone",
        ".",
        &["clone", "--json", "--bare", "origin", "linked"],
    );
    assert_eq!(call.at("/linked"), true);
    assert_eq!(call.at("/worktree"), &Value::Null);
    assert_eq!(call.at("/received/objects"), 0);
}

#[test]
fn a_failed_checkout_is_a_result_of_a_clone() {
    let stage = Stage::new();
    let tree = format!(
        "100644 blob {}\t.git/config\n",
        stage.git("work", &["rev-parse", "HEAD:file"])
    );
    fs::write(stage.path("tree"), tree.replace(".git/config", ".GIT")).expect("a file");
    let script = "git mktree <../tree | xargs -I@ git commit-tree -m evil @ | xargs git update-ref refs/heads/main";
    let made = process("sh")
        .args(["-ec", script])
        .current_dir(stage.path("work"))
        .envs([
            ("GIT_COMMITTER_NAME", "a"),
            ("GIT_COMMITTER_EMAIL", "a@x"),
            ("GIT_AUTHOR_NAME", "a"),
            ("GIT_AUTHOR_EMAIL", "a@x"),
        ])
        .output()
        .expect("a shell");
    assert!(made.status.success(), "{made:?}");
    let call = stage.code(128, "clone", ".", &["clone", "--json", "work", "copy"]);
    assert_eq!(call.at("/checkout/failed"), true);
    assert!(!call.text("/checkout/error").is_empty());
}

#[test]
fn a_fetch_reports_each_ref() {
    let stage = Stage::new();
    stage.git("work", &["tag", "v1"]);
    stage.git(
        "work",
        &["push", "-q", "origin", "main:gone", "main:forced"],
    );
    stage.git(".", &["clone", "-q", "origin", "other"]);
    let old = stage.git("other", &["rev-parse", "HEAD"]);
    stage.commit("work", "more", "more\n");
    let new = stage.git("work", &["rev-parse", "HEAD"]);
    stage.git("work", &["checkout", "-q", "--orphan", "unrelated"]);
    stage.commit("work", "x", "x\n");
    let specs = ["main", ":gone", "+unrelated:forced", "unrelated:new", "v1"];
    stage.git("work", &[&["push", "-q", "origin"], &specs[..]].concat());
    let call = stage.ok("fetch", "other", &["fetch", "--json", "--prune"]);
    assert_eq!(call.text("/remotes/0/remote"), "origin");
    let refs = call.at("/remotes/0/refs").as_array().expect("a list");
    let of = |name: &str| {
        let found = refs.iter().find(|it| it["local"] == name);
        found.unwrap_or_else(|| panic!("no {name}: {refs:?}"))
    };
    let main = of("refs/remotes/origin/main");
    assert_eq!(main["status"], "updated");
    assert_eq!(main["old"], old.as_str());
    assert_eq!(main["new"], new.as_str());
    assert_eq!(of("refs/remotes/origin/gone")["status"], "pruned");
    assert_eq!(of("refs/remotes/origin/gone")["new"], Value::Null);
    assert_eq!(of("refs/remotes/origin/forced")["status"], "forced");
    assert_eq!(of("refs/remotes/origin/new")["status"], "created");
    assert_eq!(of("refs/tags/v1")["status"], "created");
    assert!(call.at("/remotes/0/received/objects").as_u64() >= Some(6));
    assert!(call.at("/remotes/0/received/bytes").as_u64() > Some(0));

    // A refused update is a result.
    let spec = "unrelated:refs/heads/main";
    stage.git("other", &["checkout", "-q", "--detach"]);
    let spec = [
        "fetch",
        "--json",
        "origin",
        &spec.replace("unrelated", "new"),
    ];
    let call = stage.code(1, "fetch", "other", &spec);
    let update = call.at("/remotes/0/refs/0");
    assert_eq!(update["status"], "rejected");
    assert_eq!(update["reason"], "not_fast_forward");
    assert_eq!(call.at("/remotes/0/failed"), true);
}

#[test]
fn a_fetch_from_several_remotes_reports_those_that_fail() {
    let stage = Stage::new();
    stage.git("work", &["remote", "add", "lost", "../nowhere"]);
    let call = stage.code(1, "fetch", "work", &["fetch", "--json", "--all"]);
    let remotes = call.at("/remotes").as_array().expect("a list");
    assert_eq!(remotes.len(), 2);
    let lost = remotes.iter().find(|it| it["remote"] == "lost");
    let lost = lost.expect("it is listed");
    assert_eq!(lost["failed"], true);
    assert!(lost["error"]["message"].is_string(), "{lost}");
}

#[test]
fn a_push_reports_each_ref() {
    let stage = Stage::new();
    stage.git(
        "work",
        &["push", "-q", "origin", "main:gone", "main:behind"],
    );
    let old = stage.git("work", &["rev-parse", "HEAD"]);
    stage.commit("work", "more", "more\n");
    let new = stage.git("work", &["rev-parse", "HEAD"]);
    let call = stage.ok(
        "push",
        "work",
        &[
            "push",
            "--json",
            "-u",
            "origin",
            "main",
            "HEAD~1:refs/heads/new",
            ":gone",
        ],
    );
    let refs = call.at("/destinations/0/refs").as_array().expect("a list");
    let of = |name: &str| {
        let found = refs.iter().find(|it| it["remote"] == name);
        found.unwrap_or_else(|| panic!("no {name}: {refs:?}"))
    };
    let main = of("refs/heads/main");
    assert_eq!(main["status"], "updated");
    assert_eq!(main["local"], "refs/heads/main");
    assert_eq!(main["old"], old.as_str());
    assert_eq!(main["new"], new.as_str());
    assert_eq!(of("refs/heads/new")["status"], "created");
    assert_eq!(of("refs/heads/gone")["status"], "deleted");
    assert_eq!(of("refs/heads/gone")["local"], Value::Null);
    assert_eq!(call.at("/destinations/0/sent/objects"), 3);
    assert_eq!(
        call.text("/destinations/0/upstreams/0/upstream"),
        "refs/heads/main"
    );

    let call = stage.ok("push", "work", &["push", "--json", "origin", "main"]);
    assert_eq!(call.text("/destinations/0/refs/0/status"), "up_to_date");

    // A rejected update is a result.
    stage.git("work", &["checkout", "-q", "-b", "side", "HEAD~1"]);
    stage.commit("work", "other", "other\n");
    let call = stage.code(
        1,
        "push",
        "work",
        &["push", "--json", "origin", "side:main", "side:fine"],
    );
    let refs = call.at("/destinations/0/refs").as_array().expect("a list");
    let main = refs.iter().find(|it| it["remote"] == "refs/heads/main");
    let main = main.expect("it is listed");
    assert_eq!(main["status"], "rejected");
    assert_eq!(main["reason"], "not_fast_forward");
    assert_eq!(call.at("/destinations/0/failed"), true);
    assert!(call.stderr.contains("failed to push"), "{}", call.stderr);

    // So is a ref that the other side refuses.
    let hook = "#!/bin/sh\necho no entry >&2\nexit 1\n";
    test_support::write_program(&stage.path("origin/hooks/update"), hook);
    let call = stage.code(1, "push", "work", &["push", "--json", "origin", "side:x"]);
    assert_eq!(
        call.text("/destinations/0/refs/0/status"),
        "remote_rejected"
    );
    assert_eq!(call.text("/destinations/0/refs/0/message"), "hook declined");
    assert!(call.stderr.contains("remote: no entry"), "{}", call.stderr);
}

#[test]
fn failures_are_documents_with_the_usual_exit_code() {
    let stage = Stage::new();
    let cases: &[(&str, &[&str], i32, &str, &str)] = &[
        (
            ".",
            &["status", "--json"],
            128,
            "no_repository",
            "not a git repository",
        ),
        (
            ".",
            &["fetch", "--json"],
            128,
            "no_repository",
            "not a git repository",
        ),
        (
            ".",
            &["clone", "--json", "origin", "work"],
            128,
            "already_exists",
            "already exists",
        ),
        (
            ".",
            &["clone", "--json", "file:///nonexistent/x"],
            128,
            "",
            "",
        ),
        (
            "work",
            &["push", "--json", "../nowhere", "main"],
            128,
            "",
            "",
        ),
        ("work", &["fetch", "--json", "../nowhere"], 128, "", ""),
        (".", &["clone", "--json"], 129, "", "You must specify"),
        (
            "work",
            &["status", "--json", "--porcelain"],
            128,
            "fatal",
            "cannot be used together",
        ),
        (
            "work",
            &["fetch", "--json", "--porcelain"],
            128,
            "fatal",
            "cannot be used together",
        ),
        (
            "work",
            &["push", "--json", "--porcelain"],
            128,
            "fatal",
            "cannot be used together",
        ),
        // Calls that git would run.
        (
            "work",
            &["fetch", "--json", "--no-such-option"],
            129,
            "unsupported",
            "'--no-such-option'",
        ),
        (
            "work",
            &["-c", "status.submoduleSummary=true", "status", "--json"],
            128,
            "unsupported",
            "status.submoduleSummary",
        ),
        (
            "work",
            &["worktree", "list", "--json", "--no-such"],
            129,
            "unsupported",
            "'--no-such'",
        ),
        // Commands that git does not have.
        (".", &["store", "list", "--json", "ftp://x/y"], 128, "", ""),
        (
            ".",
            &["netsync", "peers", "--json", "--no-such"],
            129,
            "usage",
            "'--no-such'",
        ),
    ];
    for (place, arguments, code, kind, message) in cases {
        let call = stage.code(*code, "error", place, arguments);
        let found = call.text("/error/message");
        assert!(found.contains(message), "{arguments:?}: {found}");
        if !kind.is_empty() {
            assert_eq!(call.text("/error/kind"), *kind, "{arguments:?}");
        }
        // The message is on standard error, too.
        let first = found.lines().last().expect("a message");
        assert!(
            call.stderr.contains(first),
            "{arguments:?}: {}",
            call.stderr
        );
        if *kind == "unsupported" {
            assert!(call.text("/error/hint").contains("--json"), "{arguments:?}");
        }
    }
}

#[test]
fn a_call_without_json_is_still_handed_to_git() {
    let stage = Stage::new();
    let run = |arguments: &[&str], forbidden: &str| {
        let mut command = process(pronto_path());
        command
            .args(arguments)
            .current_dir(stage.path("work"))
            .env("PRONTO_NO_FALLBACK", forbidden);
        let output = command.output().expect("it starts");
        assert!(output.status.success(), "{arguments:?}: {output:?}");
    };
    let status = ["-c", "status.submoduleSummary=true", "status", "--short"];
    run(&status, "0");
    // Abbreviations mean what they mean in git.
    run(&["fetch", "--j", "1", "origin"], "1");
    run(&["status", "--no-json"], "1");
}

#[test]
fn no_credentials_are_in_a_document() {
    let stage = Stage::new();
    let url = "http://user:hunter2@localhost:1/x";
    stage.git("work", &["remote", "add", "secret", url]);
    for arguments in [
        &["fetch", "--json", "--multiple", "origin", "secret"][..],
        &["fetch", "--json", url],
        &["push", "--json", "secret", "main"],
        &["clone", "--json", url, "copy"],
    ] {
        let call = stage.run("work", arguments);
        let text = call.document.to_string();
        assert!(!text.contains("hunter2"), "{arguments:?}: {text}");
    }
}
