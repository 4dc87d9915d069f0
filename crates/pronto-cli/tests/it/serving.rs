//! Stock git fetches from `pronto upload-pack`, and receives the same as from git's server.

use std::path::{Path, PathBuf};
use std::process::{Command, Output};

/// A folder with a repository to serve.
struct Scene {
    folder: tempfile::TempDir,
}

impl Scene {
    fn new() -> Self {
        let folder = tempfile::tempdir().expect("a folder");
        let scene = Scene { folder };
        scene.git(&["init", "-q", "-b", "main", "origin"]);
        for number in 0..12 {
            scene.commit(number);
        }
        scene.git(&["-C", "origin", "tag", "-m", "tagged", "v1", "HEAD~4"]);
        scene.git(&["-C", "origin", "branch", "side", "HEAD~2"]);
        scene
    }

    fn path(&self) -> &Path {
        self.folder.path()
    }

    fn url(&self) -> String {
        format!("file://{}", self.path().join("origin").display())
    }

    fn commit(&self, number: usize) {
        let directory: PathBuf = self.path().join(format!("origin/d{}", number % 3));
        std::fs::create_dir_all(&directory).expect("a folder");
        let lines = (0..200).map(|line| format!("{} {line}\n", line * 31 % (90 + number)));
        let text: String = lines.collect();
        std::fs::write(directory.join("file"), text).expect("a file");
        self.git(&["-C", "origin", "add", "."]);
        self.git(&["-C", "origin", "commit", "-q", "-m", &number.to_string()]);
    }

    fn run(&self, arguments: &[&str]) -> Output {
        Command::new("git")
            .args(arguments)
            .current_dir(self.path())
            .env("HOME", self.path())
            .env("GIT_CONFIG_NOSYSTEM", "1")
            .envs([("GIT_AUTHOR_NAME", "a"), ("GIT_AUTHOR_EMAIL", "a@x")])
            .envs([("GIT_COMMITTER_NAME", "c"), ("GIT_COMMITTER_EMAIL", "c@x")])
            .output()
            .expect("it can be started")
    }

    fn git(&self, arguments: &[&str]) -> String {
        let output = self.run(arguments);
        let said = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success(), "git {arguments:?}: {said}");
        String::from_utf8_lossy(&output.stdout).into_owned()
    }

    /// Returns all objects and references of a repository.
    fn state(&self, name: &str) -> (String, Vec<String>) {
        self.git(&["-C", name, "fsck", "--full", "--strict"]);
        let all = ["cat-file", "--batch-all-objects", "--batch-check"];
        let objects = self.git(&[&["-C", name], &all[..]].concat());
        let references = self.git(&["-C", name, "for-each-ref"]);
        (references, objects.lines().map(str::to_owned).collect())
    }
}

fn server() -> String {
    format!("'{}' upload-pack", env!("CARGO_BIN_EXE_pronto"))
}

/// Clones and fetches with each version from the server of pronto and from that of git.
fn compare(scene: &Scene, clone: &[&str], fetch: &[&str]) {
    for version in ["0", "1", "2"] {
        let setting = format!("protocol.version={version}");
        let (ours, url) = (server(), scene.url());
        let mut states = Vec::new();
        for (name, server) in [("ours", ours.as_str()), ("theirs", "git-upload-pack")] {
            let _ = std::fs::remove_dir_all(scene.path().join(name));
            let common = ["-c", &setting, "clone", "-q", "--bare", "-u", server];
            scene.git(&[&common[..], clone, &[&url, name]].concat());
            states.push(scene.state(name));
        }
        assert_eq!(states[0], states[1], "version {version}, {clone:?}");
        let count = scene.git(&["-C", "origin", "rev-list", "--count", "main"]);
        let count: usize = count.trim().parse().expect("a number");
        scene.commit(count);
        scene.commit(count + 1);
        scene.git(&["-C", "origin", "tag", "-m", "new", &format!("t{count}")]);
        let mut states = Vec::new();
        for (name, server) in [("ours", ours.as_str()), ("theirs", "git-upload-pack")] {
            let common = [
                "-C",
                name,
                "-c",
                &setting,
                "fetch",
                "-q",
                "--upload-pack",
                server,
            ];
            let what = ["origin", "+refs/heads/*:refs/heads/*"];
            scene.git(&[&common[..], fetch, &what].concat());
            states.push(scene.state(name));
        }
        assert_eq!(states[0], states[1], "version {version}, fetch {fetch:?}");
    }
}

#[test]
fn loose_packed_and_mixed_objects_are_served() {
    let scene = Scene::new();
    compare(&scene, &[], &[]);
    scene.git(&["-C", "origin", "repack", "-q", "-a", "-d"]);
    compare(&scene, &[], &[]);
    scene.git(&["-C", "origin", "repack", "-q", "-a", "-d", "-b"]);
    compare(&scene, &["--single-branch"], &["--no-tags"]);
}

#[test]
fn shallow_and_partial_clones_are_served() {
    let scene = Scene::new();
    compare(&scene, &["--depth=3"], &["--depth=4"]);
    scene.git(&["-C", "origin", "config", "uploadpack.allowFilter", "true"]);
    compare(&scene, &["--filter=blob:none"], &[]);
}

#[test]
fn hidden_references_stay_hidden() {
    let scene = Scene::new();
    let origin = ["-C", "origin", "config", "--add"];
    for (key, value) in [
        ("transfer.hideRefs", "refs/heads"),
        ("uploadpack.hideRefs", "!refs/heads/main"),
    ] {
        scene.git(&[&origin[..], &[key, value]].concat());
    }
    for version in ["0", "2"] {
        let setting = format!("protocol.version={version}");
        let [ours, theirs] = [server(), "git-upload-pack".to_owned()].map(|server| {
            let list = ["-c", &setting, "ls-remote", "--symref"];
            let server = format!("--upload-pack={server}");
            scene.git(&[&list[..], &[&server, &scene.url()]].concat())
        });
        assert!(!ours.contains("side") && ours.contains("refs/tags/v1^{}"));
        assert_eq!(ours, theirs);
    }
}

#[test]
fn missing_repositories_are_refused() {
    let scene = Scene::new();
    scene.git(&["init", "-q", "empty"]);
    let nothing = "1234567890123456789012345678901234567890";
    for version in ["0", "2"] {
        let setting = format!("protocol.version={version}");
        let [ours, theirs] = [server(), "git-upload-pack".to_owned()].map(|server| {
            let fetch = [
                "-C",
                "empty",
                "-c",
                &setting,
                "fetch",
                "-q",
                "--upload-pack",
                &server,
            ];
            let output = scene.run(&[&fetch[..], &[&scene.url(), nothing]].concat());
            (
                output.status.code(),
                String::from_utf8_lossy(&output.stderr).into_owned(),
            )
        });
        assert_eq!(ours.0, theirs.0, "{ours:?} {theirs:?}");
        assert!(ours.1.contains("not our ref") == theirs.1.contains("not our ref"));
    }
}

#[test]
fn only_the_named_repository_is_served() {
    let scene = Scene::new();
    std::fs::create_dir_all(scene.path().join("origin/b3/objects")).expect("a folder");
    std::fs::write(
        scene.path().join("origin/b3/HEAD"),
        "ref: refs/heads/main\n",
    )
    .expect("a file");
    scene.git(&["-C", "origin", "worktree", "add", "-q", "../linked"]);
    std::fs::write(scene.path().join("flush"), "0000").expect("a file");
    std::os::unix::fs::symlink("origin", scene.path().join("link")).expect("a link");
    for name in [
        "origin",
        "origin/",
        "origin/.git",
        "origin/.git/.git",
        "origin/.git/objects",
        "origin/b3",
        "origin/d1",
        "origin/d1/file",
        "linked",
        "linked/.git",
        "linked/d1",
        "link",
        "~",
        "gone",
    ] {
        let [ours, theirs] = [env!("CARGO_BIN_EXE_pronto"), "git"].map(|program| {
            let mut command = Command::new(program);
            command.args(["upload-pack", name]);
            command
                .current_dir(scene.path())
                .env("HOME", scene.path())
                .env("GIT_CONFIG_NOSYSTEM", "1")
                .stdin(std::fs::File::open(scene.path().join("flush")).expect("a file"));
            let output = command.output().expect("it can be started");
            let said = String::from_utf8_lossy(&output.stderr).into_owned();
            let shown = String::from_utf8_lossy(&output.stdout).into_owned();
            let lines = shown.lines().map(|line| match line.split_once('\0') {
                // Capabilities may differ.
                Some((line, _)) => line.get(4..).unwrap_or(line).to_owned(),
                None => line.to_owned(),
            });
            (output.status.code(), lines.collect::<Vec<_>>(), said)
        });
        assert_eq!(ours, theirs, "{name}");
    }
}

#[test]
fn a_client_can_ask_only_for_shared_commits() {
    let scene = Scene::new();
    scene.git(&["clone", "-q", &scene.url(), "clone"]);
    scene.git(&["-C", "origin", "reset", "-q", "--hard", "HEAD~3"]);
    scene.git(&["-C", "clone", "commit", "-q", "--allow-empty", "-m", "own"]);
    let [ours, theirs] = [server(), "git-upload-pack".to_owned()].map(|server| {
        let setting = format!("remote.origin.uploadpack={server}");
        let ask = ["-C", "clone", "-c", "protocol.version=2", "-c", &setting];
        let what = ["fetch", "--negotiate-only", "--negotiation-tip=HEAD"];
        scene.git(&[&ask[..], &what, &["origin"]].concat())
    });
    // Before 2.55, git also names the ancestors of the newest common commit.
    assert!(theirs.lines().any(|line| line == ours.trim_end()), "{ours}");
}

#[test]
fn incomplete_history_of_the_client_is_no_error() {
    for pack in [
        &["repack", "-q", "-d"][..],
        &["repack", "-q", "-a", "-d", "-b"],
    ] {
        let scene = Scene::new();
        // Both have a commit whose parent and tree are missing on this side.
        scene.git(&["-C", "origin", "checkout", "-q", "-b", "lost", "HEAD~3"]);
        scene.commit(20);
        scene.commit(21);
        scene.git(&[
            "clone",
            "-q",
            "--no-local",
            "--single-branch",
            &scene.url(),
            "clone",
        ]);
        let gone = scene.git(&["-C", "origin", "rev-parse", "HEAD~1", "HEAD^{tree}"]);
        scene.git(&["-C", "origin", "checkout", "-q", "main"]);
        scene.git(&["-C", "origin", "branch", "-q", "-D", "lost"]);
        for id in gone.lines() {
            let path = format!("origin/.git/objects/{}/{}", &id[..2], &id[2..]);
            std::fs::remove_file(scene.path().join(path)).expect("it is loose");
        }
        scene.git(&["-C", "origin", "reflog", "expire", "--all", "--expire=now"]);
        scene.git(&[&["-C", "origin"], pack].concat());
        for version in ["0", "2"] {
            let name = format!("clone{version}");
            scene.git(&["clone", "-q", "--bare", "--single-branch", "clone", &name]);
            let setting = format!("protocol.version={version}");
            let start = ["-C", &name, "-c", &setting, "fetch", "-q", "--upload-pack"];
            let (server, url) = (server(), scene.url());
            let what = [server.as_str(), &url, "main:refs/heads/main"];
            scene.git(&[&start[..], &what].concat());
            scene.git(&["-C", &name, "fsck", "--full", "--strict"]);
        }
    }
}

#[test]
fn an_unborn_branch_is_not_named_if_that_is_disabled() {
    let scene = Scene::new();
    scene.git(&["-C", "origin", "symbolic-ref", "HEAD", "refs/heads/to-come"]);
    for value in ["advertise", "allow", "ignore"] {
        scene.git(&["-C", "origin", "config", "lsrefs.unborn", value]);
        let request = "0014command=ls-refs\n0001000csymrefs\n000bunborn\n0000";
        std::fs::write(scene.path().join("request"), request).expect("a file");
        let [ours, theirs] = [env!("CARGO_BIN_EXE_pronto"), "git"].map(|program| {
            let output = Command::new(program)
                .args(["upload-pack", "origin"])
                .current_dir(scene.path())
                .env("GIT_PROTOCOL", "version=2")
                .env("HOME", scene.path())
                .stdin(std::fs::File::open(scene.path().join("request")).expect("a file"))
                .output();
            let output = output.expect("it can be started").stdout;
            let shown = String::from_utf8_lossy(&output).into_owned();
            let (_, answer) = shown.split_once("0000").expect("it greets");
            answer.to_owned()
        });
        assert_eq!(ours, theirs, "{value}");
        assert_eq!(ours.contains("unborn"), value != "ignore");
    }
}

#[test]
fn requests_without_wants_are_answered() {
    let scene = Scene::new();
    let id = scene.git(&["-C", "origin", "rev-parse", "HEAD~2"]);
    let have = format!("0032have {}\n", id.trim());
    let start = "0012command=fetch\n0001000fno-progress";
    for arguments in [
        // A client that wants nothing.
        "0011wait-for-done0000".to_owned(),
        "0011wait-for-done0008done0000".to_owned(),
        format!("{have}0011wait-for-done0000"),
        format!("{have}0011wait-for-done0008done0000"),
        format!("{have}0011wait-for-done000bunknown0000"),
    ] {
        std::fs::write(scene.path().join("request"), format!("{start}{arguments}"))
            .expect("a file");
        let [ours, theirs] = [env!("CARGO_BIN_EXE_pronto"), "git"].map(|program| {
            let output = Command::new(program)
                .args(["upload-pack", "origin"])
                .current_dir(scene.path())
                .env("GIT_PROTOCOL", "version=2")
                .env("HOME", scene.path())
                .stdin(std::fs::File::open(scene.path().join("request")).expect("a file"))
                .output();
            let output = output.expect("it can be started");
            (output.status.code(), without_framing(&output.stdout))
        });
        assert_eq!(ours, theirs, "{arguments}");
    }
}

/// Returns the packets of a conversation, with the data of the pack as one piece. How a server
/// splits it depends on the scheduling of its processes.
fn without_framing(mut conversation: &[u8]) -> Vec<(u8, Vec<u8>)> {
    let mut said: Vec<(u8, Vec<u8>)> = Vec::new();
    while let Some((length, rest)) = conversation.split_first_chunk::<4>() {
        let length = std::str::from_utf8(length).expect("a length");
        let length = usize::from_str_radix(length, 16).expect("a length").max(4) - 4;
        let (line, rest) = rest.split_at(length);
        conversation = rest;
        match (line, said.last_mut()) {
            ([1, data @ ..], Some((1, before))) => before.extend_from_slice(data),
            ([1, data @ ..], _) => said.push((1, data.to_vec())),
            (line, _) => said.push((0, line.to_vec())),
        }
    }
    assert!(conversation.is_empty(), "half a length");
    let greeted = said
        .iter()
        .position(|(_, line)| line.is_empty())
        .expect("it greets");
    said.split_off(greeted)
}
