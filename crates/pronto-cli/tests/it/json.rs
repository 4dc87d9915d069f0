//! The documents of `--json`: real outputs are validated with the published schemas.

mod schema;

use std::fs;
use std::path::PathBuf;

use serde_json::Value;

use crate::support::{git, process, pronto_path};
use schema::Schema;

/// A directory with a repository `work` and a bare repository `origin`, and a home.
struct Stage(tempfile::TempDir);

/// The result of a call with `--json`.
struct Call {
    code: Option<i32>,
    document: Value,
    stderr: String,
}

impl Call {
    fn at(&self, pointer: &str) -> &Value {
        let found = self.document.pointer(pointer);
        found.unwrap_or_else(|| panic!("no {pointer}: {}", self.document))
    }

    fn text(&self, pointer: &str) -> &str {
        let value = self.at(pointer);
        value
            .as_str()
            .unwrap_or_else(|| panic!("{pointer}: {value}"))
    }
}

impl Stage {
    fn new() -> Self {
        let stage = Stage(tempfile::tempdir().expect("a directory"));
        fs::create_dir(stage.path("home")).expect("a directory");
        fs::create_dir(stage.path("work")).expect("a directory");
        stage.git("work", &["init", "-q", "-b", "main"]);
        stage.commit("work", "file", "one\n");
        stage.git("work", &["clone", "-q", "--bare", ".", "../origin"]);
        stage.git("work", &["remote", "add", "origin", "../origin"]);
        stage.git("work", &["fetch", "-q", "origin"]);
        stage.git("work", &["branch", "-q", "-u", "origin/main"]);
        stage
    }

    fn path(&self, name: &str) -> PathBuf {
        self.0.path().join(name)
    }

    fn git(&self, place: &str, arguments: &[&str]) -> String {
        git(&self.path(place), arguments)
    }

    fn commit(&self, place: &str, name: &str, content: &str) {
        fs::write(self.path(place).join(name), content).expect("a file");
        self.git(place, &["add", "-A"]);
        self.git(place, &["commit", "-q", "-m", name]);
    }

    /// Runs pronto in `place`, with git for the calls that it hands over.
    fn run(&self, place: &str, arguments: &[&str]) -> Call {
        let output = process(pronto_path())
            .args(arguments)
            .current_dir(self.path(place))
            .env("HOME", self.path("home"))
            .env("GIT_COMMITTER_NAME", "a")
            .env("GIT_COMMITTER_EMAIL", "a@x")
            .output()
            .expect("it starts");
        let stderr = String::from_utf8_lossy(&output.stderr).into_owned();
        let stdout = String::from_utf8(output.stdout).expect("a document is UTF-8");
        let lines = stdout.lines().count();
        assert_eq!(lines, 1, "{arguments:?}: {stdout}{stderr}");
        assert!(stdout.ends_with("}\n"), "{stdout}");
        let document = serde_json::from_str(&stdout).expect("it is well formed");
        Call {
            code: output.status.code(),
            document,
            stderr,
        }
    }

    /// Runs a call that succeeds with a document of `schema`.
    fn ok(&self, schema: &str, place: &str, arguments: &[&str]) -> Call {
        self.code(0, schema, place, arguments)
    }

    /// Runs a call that exits with `code` and a document of `schema`.
    fn code(&self, code: i32, schema: &str, place: &str, arguments: &[&str]) -> Call {
        let call = self.run(place, arguments);
        assert_eq!(call.code, Some(code), "{arguments:?}: {}", call.stderr);
        Schema::read(schema).validate(&call.document);
        call
    }
}

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
