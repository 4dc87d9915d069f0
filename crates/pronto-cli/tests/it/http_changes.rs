//! Servers with inconsistent responses: refs that have changed since they were listed, and shallow
//! boundaries without the objects behind them.

use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};
use std::sync::Mutex;

use crate::http_secrets::{Recorder, pronto};

/// A change of the answers of a server.
type Change = Box<dyn FnMut(Vec<u8>) -> Vec<u8> + Send>;

struct Scene {
    folder: tempfile::TempDir,
}

impl Scene {
    /// A repository with three commits.
    fn new() -> Self {
        let folder = tempfile::tempdir().expect("a folder");
        let scene = Scene { folder };
        scene.git(&["init", "-q", "-b", "main", "origin"]);
        for name in ["one", "two", "three"] {
            std::fs::write(scene.origin().join(name), name).expect("a file");
            scene.git(&["-C", "origin", "add", "."]);
            scene.git(&["-C", "origin", "commit", "-q", "-m", name]);
        }
        scene
    }

    fn path(&self) -> &Path {
        self.folder.path()
    }

    fn origin(&self) -> PathBuf {
        self.path().join("origin")
    }

    fn git(&self, arguments: &[&str]) -> String {
        let output = command(self.path())
            .args(arguments)
            .output()
            .expect("git runs");
        let said = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success(), "git {arguments:?}: {said}");
        String::from_utf8_lossy(&output.stdout).trim().to_owned()
    }

    fn id(&self, name: &str) -> String {
        self.git(&["-C", "origin", "rev-parse", name])
    }

    /// Serves the repository; `change` may change each answer.
    fn serve(&self, change: Change) -> Recorder {
        let (origin, change) = (self.origin(), Mutex::new(change));
        Recorder::start(move |request| {
            let answer = upload_pack(&origin, request);
            let mut change = change.lock().expect("no panics");
            let body = change(answer);
            let kind = match request.starts_with("GET") {
                true => "advertisement",
                false => "result",
            };
            let length = body.len();
            let head = format!(
                "HTTP/1.1 200 OK\r\nContent-Type: application/x-git-upload-pack-{kind}\r\n\
                 Content-Length: {length}\r\nConnection: close\r\n\r\n"
            );
            [head.into_bytes(), body].concat()
        })
    }

    fn fetch(&self, server: &Recorder, arguments: &[&str]) -> Output {
        let url = format!("{}/origin", server.url());
        let start = ["-C", "copy", "fetch", "-q"];
        let arguments = [
            &start[..],
            &arguments[..arguments.len() - 1],
            &[&url],
            &arguments[arguments.len() - 1..],
        ]
        .concat();
        pronto(self.path(), &arguments, &[])
    }
}

fn command(folder: &Path) -> Command {
    let mut command = Command::new("git");
    command
        .current_dir(folder)
        .env("HOME", folder)
        .env("GIT_CONFIG_NOSYSTEM", "1")
        .envs([("GIT_AUTHOR_NAME", "a"), ("GIT_AUTHOR_EMAIL", "a@x")])
        .envs([("GIT_COMMITTER_NAME", "c"), ("GIT_COMMITTER_EMAIL", "c@x")]);
    command
}

/// The answer of git to a request.
fn upload_pack(repository: &Path, request: &str) -> Vec<u8> {
    let mut server = command(repository);
    server.env("GIT_PROTOCOL", "version=2");
    server.args(["upload-pack", "--stateless-rpc"]);
    if request.starts_with("GET") {
        server.arg("--http-backend-info-refs");
    }
    let mut child = server
        .arg(".")
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .expect("git runs");
    let body = request.split_once("\r\n\r\n").map_or("", |(_, body)| body);
    let mut stdin = child.stdin.take().expect("a pipe");
    // It need not read everything.
    let _ = stdin.write_all(body.as_bytes());
    drop(stdin);
    child.wait_with_output().expect("it ends").stdout
}

/// Replaces `from` by `to` in the first answer that has it.
fn once(from: String, to: String) -> Change {
    assert_eq!(from.len(), to.len(), "packets keep their length");
    let mut is_left = true;
    Box::new(move |mut answer| {
        let at = answer
            .windows(from.len())
            .position(|part| part == from.as_bytes());
        if let Some(at) = at.filter(|_| is_left) {
            answer[at..at + from.len()].copy_from_slice(to.as_bytes());
            is_left = false;
        }
        answer
    })
}

#[test]
fn refs_are_wanted_by_name() {
    let scene = Scene::new();
    scene.git(&[
        "-C",
        "origin",
        "config",
        "uploadpack.allowRefInWant",
        "true",
    ]);
    scene.git(&["init", "-q", "copy"]);
    let (old, new) = (scene.id("main~"), scene.id("main"));
    // What was listed is an older commit, or one that the server does not have.
    for listed in [old, "0123".repeat(10)] {
        let server = scene.serve(once(
            format!("{new} refs/heads/main"),
            format!("{listed} refs/heads/main"),
        ));
        let output = scene.fetch(&server, &["refs/heads/main:refs/heads/got"]);
        let said = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success(), "{said}");
        assert_eq!(scene.git(&["-C", "copy", "rev-parse", "got"]), new);
        assert!(
            server.log().contains("want-ref refs/heads/main\n"),
            "{}",
            server.log()
        );
        scene.git(&["-C", "copy", "update-ref", "-d", "refs/heads/got"]);
        scene.git(&["-C", "copy", "fsck"]);
    }
    // A ref that was listed and does not exist.
    std::fs::remove_dir_all(scene.path().join("copy")).expect("it was made");
    scene.git(&["init", "-q", "copy"]);
    let server = scene.serve(once(
        format!("{new} refs/heads/main"),
        format!("{new} refs/heads/rain"),
    ));
    let output = scene.fetch(&server, &["refs/heads/*:refs/heads/got/*"]);
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(said.contains("unknown ref refs/heads/rain"), "{said}");
}

#[test]
fn a_ref_that_was_not_wanted_is_refused() {
    let scene = Scene::new();
    scene.git(&[
        "-C",
        "origin",
        "config",
        "uploadpack.allowRefInWant",
        "true",
    ]);
    scene.git(&["init", "-q", "copy"]);
    let new = scene.id("main");
    // The first line with this text is that of the listing, the second that of the answer.
    let mut count = 0;
    let text = format!("{new} refs/heads/main");
    let server = scene.serve(Box::new(move |mut answer| {
        let at = answer
            .windows(text.len())
            .position(|part| part == text.as_bytes());
        if let Some(at) = at {
            count += 1;
            if count == 2 {
                answer[at + text.len() - 4] = b'r';
            }
        }
        answer
    }));
    let output = scene.fetch(&server, &["refs/heads/main:refs/heads/got"]);
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(said.contains("unexpected wanted-ref"), "{said}");
}

#[test]
fn a_cut_does_not_move_without_the_objects_behind_it() {
    let scene = Scene::new();
    let url = format!("file://{}", scene.origin().display());
    scene.git(&["clone", "-q", "--depth=2", &url, "copy"]);
    let (three, two) = (scene.id("main"), scene.id("main~"));
    // The server says that the parents of the second commit are there, and sends nothing.
    let (from, to) = (
        format!("0034shallow {three}"),
        format!("0036unshallow {two}"),
    );
    let server = scene.serve(Box::new(move |answer| {
        let at = answer
            .windows(from.len())
            .position(|part| part == from.as_bytes());
        match at {
            Some(at) => [&answer[..at], to.as_bytes(), &answer[at + from.len()..]].concat(),
            None => answer,
        }
    }));
    let before = std::fs::read(scene.path().join("copy/.git/shallow")).expect("a cut");
    let output = scene.fetch(&server, &["--depth=1", "main"]);
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(
        said.contains("did not send all necessary objects"),
        "{said}"
    );
    let after = std::fs::read(scene.path().join("copy/.git/shallow")).expect("a cut");
    assert_eq!(after, before);
    scene.git(&["-C", "copy", "fsck"]);
}
