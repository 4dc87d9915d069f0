//! Pushes between stock git and pronto in both roles, and pushes that are killed.

use std::os::unix::process::CommandExt as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process_group};
use test_support::Random;

use crate::support::{pronto_path, stderr};

/// A folder with a bare repository, and one that pushes to it.
struct Scene {
    folder: tempfile::TempDir,
}

impl Scene {
    fn new() -> Self {
        let folder = tempfile::tempdir().expect("a folder");
        let scene = Scene { folder };
        scene.git(".", &["init", "-q", "--bare", "-b", "main", "target.git"]);
        scene.git(".", &["init", "-q", "-b", "main", "source"]);
        scene.commit("first");
        scene.git("source", &["remote", "add", "origin", "../target.git"]);
        scene
    }

    fn path(&self) -> &Path {
        self.folder.path()
    }

    fn command(&self, program: impl AsRef<Path>, directory: &str) -> Command {
        let mut command = Command::new(program.as_ref());
        command
            .current_dir(self.path().join(directory))
            .env("HOME", self.path())
            .env("GIT_CONFIG_NOSYSTEM", "1")
            .env("PRONTO_NO_FALLBACK", "1")
            .envs([("GIT_AUTHOR_NAME", "a"), ("GIT_AUTHOR_EMAIL", "a@x")])
            .envs([("GIT_COMMITTER_NAME", "c"), ("GIT_COMMITTER_EMAIL", "c@x")]);
        command
    }

    fn run(&self, program: impl AsRef<Path>, directory: &str, arguments: &[&str]) -> Output {
        let mut command = self.command(program, directory);
        command.args(arguments).output().expect("it starts")
    }

    fn git(&self, directory: &str, arguments: &[&str]) -> String {
        let output = self.run("git", directory, arguments);
        assert!(output.status.success(), "git {arguments:?}: {output:?}");
        String::from_utf8_lossy(&output.stdout).into_owned()
    }

    fn commit(&self, name: &str) {
        let file: PathBuf = self.path().join("source").join(name);
        let lines = (0..400).map(|line| format!("{name} {line}\n"));
        std::fs::write(file, lines.collect::<String>()).expect("a file");
        self.git("source", &["add", "."]);
        self.git("source", &["commit", "-q", "-m", name]);
    }

    /// All refs lead to what is there, and nothing is broken.
    fn check(&self) -> String {
        let fsck = ["fsck", "--full", "--strict", "--no-dangling"];
        assert_eq!(self.git("target.git", &fsck), "");
        self.git("target.git", &["rev-list", "--objects", "--all", "--quiet"]);
        self.git("target.git", &["for-each-ref"])
    }
}

/// The programs of both sides.
const PAIRS: [(&str, &str); 3] = [("git", "pronto"), ("pronto", "git"), ("pronto", "pronto")];

fn program(name: &str) -> PathBuf {
    match name {
        "git" => "git".into(),
        _ => pronto_path().to_owned(),
    }
}

fn server(name: &str) -> String {
    format!("'{}' receive-pack", program(name).display())
}

#[test]
fn both_sides_can_be_either_program() {
    for (client, there) in PAIRS {
        let scene = Scene::new();
        let push = |arguments: &[&str]| {
            let receive = format!("--receive-pack={}", server(there));
            let all = [&["push", "-q", &receive, "origin"], arguments].concat();
            let output = scene.run(program(client), "source", &all);
            let said = stderr(&output);
            assert!(
                output.status.success(),
                "{client} {there} {arguments:?}: {said}"
            );
        };
        push(&["main"]);
        for number in 0..3 {
            scene.commit(&format!("small{number}"));
            push(&["main", "main:side"]);
        }
        // So many objects stay a pack.
        for number in 0..40 {
            scene.commit(&format!("many{number}"));
        }
        scene.git("source", &["tag", "-m", "v1", "v1"]);
        push(&["--atomic", "main", "v1"]);
        push(&[":side"]);
        scene.git("source", &["commit", "-q", "--amend", "-m", "other"]);
        push(&["+main"]);
        let there = scene.check();
        let here = scene.git("source", &["for-each-ref", "refs/heads", "refs/tags"]);
        assert_eq!(there, here, "{client}");
        let keeps = std::fs::read_dir(scene.path().join("target.git/objects/pack"));
        for file in keeps.expect("a directory").flatten() {
            assert!(file.path().extension().is_none_or(|end| end != "keep"));
        }
    }
}

#[test]
fn a_killed_push_leaves_a_whole_repository() {
    let kills = std::env::var("PRONTO_TEST_KILLS").ok();
    let kills: u64 = kills.map_or(20, |kills| kills.parse().expect("a number"));
    let mut random = Random::new(kills.wrapping_mul(0x9e37_79b9_7f4a_7c15));
    let scene = Scene::new();
    for number in 0..30 {
        scene.commit(&format!("many{number}"));
    }
    let receive = format!("--receive-pack={}", server("pronto"));
    for number in 0..kills {
        scene.commit(&format!("next{number}"));
        let name = format!("main:branch{}", number % 5);
        let mut push = scene.command(pronto_path(), "source");
        push.args(["push", "-q", "--force", &receive, "origin", "main", &name]);
        let mut push = push
            .stdin(Stdio::null())
            .stderr(Stdio::null())
            .process_group(0)
            .spawn()
            .expect("it starts");
        std::thread::sleep(Duration::from_millis(random.number() % 60));
        // Both sides, in either order.
        let children = children_of(push.id());
        if random.number().is_multiple_of(2) {
            children.iter().for_each(|child| kill(*child));
        }
        let _ = push.kill();
        end_group(push.id());
        let _ = push.wait();
        scene.check();
    }
    let output = scene.run(
        pronto_path(),
        "source",
        &["push", "-q", "--force", &receive, "origin", "main"],
    );
    assert!(output.status.success(), "{}", stderr(&output));
    let head = scene.git("source", &["rev-parse", "main"]);
    assert_eq!(scene.git("target.git", &["rev-parse", "main"]), head);
    scene.check();
}

/// The processes that `parent` has started.
fn children_of(parent: u32) -> Vec<u32> {
    let path = format!("/proc/{parent}/task/{parent}/children");
    let text = std::fs::read_to_string(path).unwrap_or_default();
    text.split_whitespace()
        .filter_map(|id| id.parse().ok())
        .collect()
}

/// Kills all processes of a group, also those that were started meanwhile, and waits until they are gone:
/// a receiver that continues would add objects and refs while they are checked.
fn end_group(leader: u32) {
    let group = i32::try_from(leader).ok().and_then(Pid::from_raw);
    let group = group.expect("a process id");
    let begun = Instant::now();
    // The leader is a zombie, and keeps the id of the group from being used again.
    while kill_process_group(group, Signal::KILL).is_ok() && members_of(group).next().is_some() {
        assert!(
            begun.elapsed() < Duration::from_secs(60),
            "it can be killed"
        );
        std::thread::sleep(Duration::from_millis(1));
    }
}

/// The processes of a group that are not zombies.
fn members_of(group: Pid) -> impl Iterator<Item = u32> {
    let entries = std::fs::read_dir("/proc").expect("processes");
    entries.filter_map(move |entry| {
        let process: u32 = entry.ok()?.file_name().to_str()?.parse().ok()?;
        let stat = std::fs::read_to_string(format!("/proc/{process}/stat")).ok()?;
        let mut fields = stat.rsplit_once(") ")?.1.split(' ');
        let (state, _parent, own) = (fields.next()?, fields.next()?, fields.next()?);
        let is_alive = !matches!(state, "Z" | "X");
        (is_alive && own == group.as_raw_nonzero().to_string()).then_some(process)
    })
}

fn kill(process: u32) {
    let process = i32::try_from(process).ok().and_then(Pid::from_raw);
    if let Some(process) = process {
        // It may have ended.
        let _ = rustix::process::kill_process(process, Signal::KILL);
    }
}

/// More refs than one transaction of `receive-pack` changes.
const MANY: usize = 33_000;

#[test]
fn a_push_of_many_refs_makes_all_but_those_that_are_refused() {
    let scene = Scene::new();
    let lines = (0..MANY).map(|at| format!("create refs/tags/{at:05} HEAD\n"));
    let list = scene.path().join("list");
    std::fs::write(&list, lines.collect::<String>()).expect("a file");
    let mut make = scene.command("git", "source");
    make.args(["update-ref", "--stdin"]);
    make.stdin(std::fs::File::open(&list).expect("a file"));
    assert!(make.status().expect("it starts").success());
    scene.git("target.git", &["config", "core.logAllRefUpdates", "false"]);
    // One name is taken by a directory, in the second transaction.
    let blocked = format!("refs/tags/{:05}/below", MANY - 10);
    scene.git("source", &["push", "-q", "origin", "HEAD:refs/heads/main"]);
    scene.git("target.git", &["update-ref", &blocked, "main"]);

    let receive = format!("--receive-pack={} receive-pack", pronto_path().display());
    let push = scene.run("git", "source", &["push", &receive, "--tags", "origin"]);
    assert_eq!(push.status.code(), Some(1), "{}", stderr(&push));
    let refused = stderr(&push).matches("[remote rejected]").count();
    assert_eq!(refused, 1, "{}", stderr(&push));
    let tags = scene.git(
        "target.git",
        &["for-each-ref", "--count=40000", "refs/tags"],
    );
    assert_eq!(tags.lines().count(), MANY);
    assert!(
        !scene
            .path()
            .join("target.git/refs/tags/00000.lock")
            .exists()
    );
}
