//! Many processes in one repository, each in its own worktree: no command fails and nothing that
//! was committed is lost.

use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use crate::support::{Scratch, process, pronto, stderr, stdout};

/// Processes at a time, and rounds of each, unless `PRONTO_TEST_HANDS=PROCESSES,ROUNDS` is set.
const HANDS: usize = 6;
const ROUNDS: usize = 3;

fn sizes() -> (usize, usize) {
    let Ok(text) = std::env::var("PRONTO_TEST_HANDS") else {
        return (HANDS, ROUNDS);
    };
    let mut numbers = text
        .split(',')
        .map(|number| number.parse().expect("a number"));
    let mut next = || numbers.next().expect("two numbers");
    (next(), next())
}

/// One repository with a server of its own.
struct Scene {
    scratch: Scratch,
    /// Settings of the repository (`key=value`).
    settings: Vec<String>,
}

impl Scene {
    fn new(settings: &[&str]) -> Scene {
        let scene = Scene {
            scratch: Scratch::new(),
            settings: settings.iter().map(|&setting| setting.to_owned()).collect(),
        };
        let server = scene.path("server.git");
        let seed = scene.path("seed");
        run(process("git")
            .args(["init", "-q", "--bare", "-b", "main"])
            .arg(&server));
        run(process("git").args(["init", "-q", "-b", "main"]).arg(&seed));
        for at in 0..20 {
            let directory = seed.join(format!("d{}", at % 4));
            std::fs::create_dir_all(&directory).expect("a directory");
            std::fs::write(directory.join(format!("f{at}")), format!("{at}\n")).expect("a file");
        }
        run(identified(process("git"))
            .current_dir(&seed)
            .args(["add", "."]));
        run(identified(process("git"))
            .current_dir(&seed)
            .args(["commit", "-qm", "seed"]));
        run(process("git")
            .current_dir(&seed)
            .arg("push")
            .arg("-q")
            .arg(&server)
            .arg("main"));
        let top = scene.path("work");
        run(pronto().arg("clone").arg("-q").arg(&server).arg(&top));
        for setting in &scene.settings {
            let (key, value) = setting.split_once('=').expect("a key and a value");
            run(process("git")
                .current_dir(&top)
                .args(["config", key, value]));
        }
        scene
    }

    fn path(&self, name: &str) -> PathBuf {
        self.scratch.path().join(name)
    }
}

fn identified(mut command: Command) -> Command {
    for role in ["AUTHOR", "COMMITTER"] {
        command.env(format!("GIT_{role}_NAME"), "a");
        command.env(format!("GIT_{role}_EMAIL"), "a@example.com");
    }
    command
}

fn run(command: &mut Command) -> String {
    let output = command.output().expect("it starts");
    assert!(output.status.success(), "{command:?}: {}", stderr(&output));
    stdout(&output)
}

/// The life of one worktree: made, changed, committed, pushed, removed. Returns what failed.
fn round(scene: &Scene, hand: usize, round: usize) -> Vec<String> {
    let top = scene.path("work");
    let branch = format!("hand-{hand}-{round}");
    let worktree = scene.path(&branch);
    let mut failures = Vec::new();
    let mut step = |directory: &Path, mut command: Command| {
        let output: Output = command.current_dir(directory).output().expect("it starts");
        if !output.status.success() {
            let arguments: Vec<_> = command.get_args().collect();
            failures.push(format!("{arguments:?}: {}", stderr(&output)));
        }
        output.status.success()
    };
    let with = |mut command: Command, arguments: &[&str]| {
        command.args(arguments);
        identified(command)
    };
    let place = worktree.to_str().expect("text");
    let added = [
        "worktree",
        "add",
        "-q",
        "-b",
        &branch,
        "--track",
        place,
        "origin/main",
    ];
    if !step(&top, with(pronto(), &added)) {
        return failures;
    }
    std::fs::write(worktree.join("d0/f0"), format!("{branch}\n")).expect("a file");
    step(&worktree, with(pronto(), &["add", "d0/f0"]));
    step(&worktree, with(pronto(), &["commit", "-qm", &branch]));
    step(&worktree, with(pronto(), &["fetch", "-q"]));
    step(&worktree, with(pronto(), &["status", "--porcelain"]));
    step(
        &worktree,
        with(process("git"), &["push", "-q", "origin", "HEAD"]),
    );
    step(&top, with(pronto(), &["worktree", "remove", place]));
    failures
}

fn locks_below(directory: &Path, found: &mut Vec<PathBuf>) {
    for entry in std::fs::read_dir(directory).expect("a directory").flatten() {
        let path = entry.path();
        if path.is_dir() {
            locks_below(&path, found);
        } else if path
            .extension()
            .is_some_and(|extension| extension == "lock")
        {
            found.push(path);
        }
    }
}

fn check(scene: &Scene, hands: usize, rounds: usize) {
    let failures: Vec<String> = std::thread::scope(|scope| {
        let hands: Vec<_> = (0..hands)
            .map(|hand| {
                scope.spawn(move || {
                    (0..rounds)
                        .flat_map(|at| round(scene, hand, at))
                        .collect::<Vec<_>>()
                })
            })
            .collect();
        let ended = hands.into_iter().map(|hand| hand.join().expect("no panic"));
        ended.flatten().collect()
    });
    assert!(
        failures.is_empty(),
        "{} failures:\n{}",
        failures.len(),
        failures.join("\n")
    );
    let top = scene.path("work");
    let server = scene.path("server.git");
    for directory in [&top, &server] {
        run(process("git")
            .current_dir(directory)
            .args(["fsck", "--full", "--strict"]));
    }
    for hand in 0..hands {
        for at in 0..rounds {
            let branch = format!("refs/heads/hand-{hand}-{at}");
            let here = run(process("git")
                .current_dir(&top)
                .args(["rev-parse", &branch]));
            let there = run(process("git")
                .current_dir(&server)
                .args(["rev-parse", &branch]));
            assert_eq!(here, there, "{branch}");
            let base = run(process("git")
                .current_dir(&top)
                .args(["rev-parse", &format!("{branch}^")]));
            assert_eq!(
                base,
                run(process("git").current_dir(&top).args(["rev-parse", "main"]))
            );
        }
    }
    let mut locks = Vec::new();
    locks_below(&top.join(".git"), &mut locks);
    assert!(locks.is_empty(), "{locks:?}");
}

#[test]
fn worktrees_beside_one_another_do_not_fail() {
    let (hands, rounds) = sizes();
    check(&Scene::new(&["gc.auto=0"]), hands, rounds);
}
