//! Pushes from partial clones fetch missing objects only if the server lacks them, and then in one
//! batch.

use std::path::PathBuf;
use std::process::{Command, Output};

use test_support::{Scratch, write_program};

use crate::support::{process, pronto_path, stderr, stdout};

/// A repository with some history, and a partial clone of it that counts its fetches.
struct Scene {
    scratch: Scratch,
}

impl Scene {
    fn new(filter: &str) -> Self {
        let scene = Scene {
            scratch: Scratch::new(),
        };
        scene.git(".", &["init", "-q", "-b", "main", "source"]);
        for number in 0..4 {
            let file = scene.scratch.join(format!("source/{number}/deep/list"));
            std::fs::create_dir_all(file.parent().expect("a directory")).expect("it is made");
            std::fs::write(file, format!("{number}\n").repeat(200)).expect("a file");
            scene.git("source", &["add", "."]);
            scene.git("source", &["commit", "-q", "-m", "more"]);
        }
        scene.git(".", &["clone", "-q", "--bare", "source", "server.git"]);
        for key in ["uploadpack.allowFilter", "uploadpack.allowAnySHA1InWant"] {
            scene.git("server.git", &["config", key, "true"]);
        }
        scene.git(".", &["init", "-q", "--bare", "other.git"]);
        let url = format!("file://{}", scene.scratch.join("server.git").display());
        let filter = format!("--filter={filter}");
        scene.git(".", &["clone", "-q", "-n", &filter, &url, "here"]);
        let program = scene.scratch.join("counted");
        let count = scene.scratch.join("count");
        let script = format!(
            "#!/bin/sh\necho fetch >>'{}'\nexec git upload-pack \"$@\"\n",
            count.display()
        );
        write_program(&program, &script);
        let program = program.to_str().expect("a name in ASCII").to_owned();
        scene.git("here", &["config", "remote.origin.uploadpack", &program]);
        scene
    }

    fn command(&self, program: PathBuf, directory: &str) -> Command {
        let mut command = process(program);
        command
            .current_dir(self.scratch.join(directory))
            .env("HOME", self.scratch.path())
            .env("PRONTO_NO_FALLBACK", "1")
            .envs([("GIT_AUTHOR_NAME", "a"), ("GIT_AUTHOR_EMAIL", "a@x")])
            .envs([("GIT_COMMITTER_NAME", "c"), ("GIT_COMMITTER_EMAIL", "c@x")]);
        command
    }

    fn git(&self, directory: &str, arguments: &[&str]) -> String {
        let mut command = self.command("git".into(), directory);
        let output = command.args(arguments).output().expect("it starts");
        assert!(output.status.success(), "git {arguments:?}: {output:?}");
        stdout(&output).trim().to_owned()
    }

    /// Pushes, and returns the number of fetches.
    fn push(&self, arguments: &[&str]) -> usize {
        let output = self.try_push(arguments);
        assert!(
            output.status.success(),
            "{arguments:?}: {}",
            stderr(&output)
        );
        self.fetches()
    }

    fn try_push(&self, arguments: &[&str]) -> Output {
        let _ = std::fs::remove_file(self.scratch.join("count"));
        let mut command = self.command(pronto_path().into(), "here");
        let pushing = command.arg("push").args(arguments);
        pushing.output().expect("it starts")
    }

    fn fetches(&self) -> usize {
        let count = std::fs::read_to_string(self.scratch.join("count"));
        count.unwrap_or_default().lines().count()
    }

    /// Makes a commit on `main` that changes the file of the directory `0`, without its old content.
    fn commit(&self) -> String {
        let file = self.scratch.join("new");
        std::fs::write(&file, "new\n".repeat(200)).expect("a file");
        let file = file.to_str().expect("a name in ASCII");
        let blob = self.git("here", &["hash-object", "-w", file]);
        self.git("here", &["read-tree", "HEAD"]);
        let entry = format!("100644,{blob},0/deep/list");
        self.git("here", &["update-index", "--cacheinfo", &entry]);
        let tree = self.git("here", &["write-tree", "--missing-ok"]);
        self.git("here", &["commit-tree", "-p", "HEAD", "-m", "new", &tree])
    }

    fn check(&self, directory: &str) {
        self.git(directory, &["fsck", "--full", "--strict"]);
    }
}

#[test]
fn a_push_to_the_promisor_fetches_nothing() {
    let scene = Scene::new("blob:none");
    let new = scene.commit();
    let fetches = scene.push(&["origin", &format!("{new}:refs/heads/main")]);
    assert_eq!(fetches, 0);
    let fetches = scene.push(&["origin", "HEAD~2:refs/heads/old", "HEAD~1:refs/heads/older"]);
    assert_eq!(fetches, 0);
    let fetches = scene.push(&["-f", "origin", "HEAD~1:refs/heads/main"]);
    assert_eq!(fetches, 0);
    let rejected = scene.try_push(&["origin", "HEAD~2:refs/heads/main"]);
    assert_eq!((rejected.status.code(), scene.fetches()), (Some(1), 0));
    scene.check("server.git");
}

#[test]
fn what_another_repository_lacks_is_fetched_at_once() {
    let scene = Scene::new("blob:none");
    let new = scene.commit();
    let fetches = scene.push(&["../other.git", "HEAD~1:refs/heads/main"]);
    assert_eq!(fetches, 1);
    let fetches = scene.push(&["../other.git", &format!("{new}:refs/heads/main")]);
    assert_eq!(fetches, 1);
    scene.check("other.git");
}

#[test]
fn missing_trees_are_fetched_before_files() {
    let scene = Scene::new("tree:0");
    let fetches = scene.push(&["origin", "HEAD~1:refs/heads/old"]);
    assert_eq!(fetches, 0);
    // The roots, with which the server sends the trees below them, and then the files.
    let fetches = scene.push(&["../other.git", "HEAD:refs/heads/main"]);
    assert_eq!(fetches, 2);
    scene.check("other.git");
}

#[test]
fn what_the_receiver_has_is_not_fetched_for_a_tree_whose_parent_is_missing() {
    let scene = Scene::new("tree:0");
    let root = scene.git("source", &["rev-parse", "HEAD^{tree}"]);
    let listed = scene.git("source", &["ls-tree", &root]);
    let one = listed.lines().next().expect("an entry");
    let entries = scene.scratch.join("entries");
    std::fs::write(&entries, format!("{one}\n")).expect("a file");
    let mut command = scene.command("git".into(), "here");
    let input = std::fs::File::open(&entries).expect("it is there");
    let made = command.args(["mktree", "--missing"]).stdin(input).output();
    let tree = stdout(&made.expect("it starts"));
    let new = ["commit-tree", "-p", "HEAD", "-m", "less", tree.trim()];
    let new = scene.git("here", &new);
    let fetches = scene.push(&["origin", &format!("{new}:refs/heads/main")]);
    assert_eq!(fetches, 1);
    let missing = ["rev-list", "--objects", "--missing=print", &new];
    let missing = scene.git("here", &missing);
    assert!(
        missing.lines().any(|line| line.starts_with('?')),
        "{missing}"
    );
    scene.check("server.git");
}

#[test]
fn a_push_fails_if_nobody_has_what_is_missing() {
    let scene = Scene::new("blob:none");
    let gone = scene.scratch.join("server.git");
    std::fs::rename(&gone, scene.scratch.join("gone.git")).expect("it moves");
    let failed = scene.try_push(&["../other.git", "HEAD:refs/heads/main"]);
    assert!(!failed.status.success(), "{}", stderr(&failed));
    let refs = scene.git("other.git", &["for-each-ref"]);
    assert_eq!(refs, "");
}
