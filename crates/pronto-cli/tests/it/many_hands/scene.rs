//! The repository in which many processes work, and the conditions that must hold at the end.

use std::path::{Path, PathBuf};
use std::process::Command;

use crate::support::{Scratch, process, pronto, stderr, stdout};

/// The ref storage format of the repository.
#[derive(Clone, Copy, Default, PartialEq, Eq)]
pub(super) enum Refs {
    #[default]
    Files,
    Reftable,
}

/// The parameters of a scene.
#[derive(Clone, Copy, Default)]
pub(super) struct Setting {
    /// Configuration of the repository.
    pub(super) config: &'static [(&'static str, &'static str)],
    pub(super) refs: Refs,
    /// Whether one of ten commands is killed.
    pub(super) kills: bool,
    /// Whether maintenance runs continuously at the same time.
    pub(super) maintains: bool,
}

/// A repository with its remote.
pub(super) struct Scene {
    pub(super) scratch: Scratch,
    pub(super) setting: Setting,
}

impl Scene {
    pub(super) fn new(setting: Setting) -> Scene {
        let scene = Scene {
            scratch: Scratch::new(),
            setting,
        };
        let (server, seed, top) = (
            scene.path("server.git"),
            scene.path("seed"),
            scene.path("work"),
        );
        run(git()
            .args(["init", "-q", "--bare", "-b", "main"])
            .arg(&server));
        // Maintenance of the remote is disabled, because it is not tested.
        run(git_in(&server).args(["config", "receive.autogc", "false"]));
        run(git().args(["init", "-q", "-b", "main"]).arg(&seed));
        for at in 0..20 {
            let directory = seed.join(format!("d{}", at % 4));
            std::fs::create_dir_all(&directory).expect("a directory");
            std::fs::write(directory.join(format!("f{at}")), format!("{at}\n")).expect("a file");
        }
        run(git_in(&seed).args(["add", "."]));
        run(identified(git_in(&seed)).args(["commit", "-qm", "seed"]));
        run(git_in(&seed).args(["push", "-q"]).arg(&server).arg("main"));
        match setting.refs {
            Refs::Files => run(program().args(["clone", "-q"]).arg(&server).arg(&top)),
            Refs::Reftable => run(git()
                .args(["clone", "-q", "--ref-format=reftable"])
                .arg(&server)
                .arg(&top)),
        };
        for (key, value) in [("gc.auto", "0")].iter().chain(setting.config) {
            run(git_in(&top).args(["config", key, value]));
        }
        scene
    }

    pub(super) fn path(&self, name: &str) -> PathBuf {
        self.scratch.path().join(name)
    }
}

/// The progress of one branch.
pub(super) struct Outcome<'a> {
    pub(super) branch: &'a str,
    pub(super) is_committed: bool,
    pub(super) is_pushed: bool,
}

/// Returns the program that the processes run.
pub(super) fn program() -> Command {
    behind_reference(match std::env::var_os("PRONTO_TEST_HANDS_GIT") {
        Some(git) => process(git),
        None => pronto(),
    })
}

pub(super) fn git() -> Command {
    let program = test_support::git::reference().unwrap_or(Path::new("git"));
    behind_reference(process(program))
}

/// Puts the directory of git 2.55 at the front of `PATH`, if that git is installed.
fn behind_reference(mut command: Command) -> Command {
    if let Some(directory) = test_support::git::reference().and_then(Path::parent) {
        let path = std::env::var_os("PATH").unwrap_or_default();
        let all = std::iter::once(directory.to_owned()).chain(std::env::split_paths(&path));
        command.env("PATH", std::env::join_paths(all).expect("no colons in it"));
    }
    command
}

fn git_in(directory: &Path) -> Command {
    let mut command = git();
    command.current_dir(directory);
    command
}

pub(super) fn identified(mut command: Command) -> Command {
    for role in ["AUTHOR", "COMMITTER"] {
        command.env(format!("GIT_{role}_NAME"), "a");
        command.env(format!("GIT_{role}_EMAIL"), "a@example.com");
    }
    command
}

pub(super) fn run(command: &mut Command) -> String {
    let output = command.output().expect("it starts");
    assert!(output.status.success(), "{command:?}: {}", stderr(&output));
    stdout(&output)
}

/// Returns the defects of the repository and its remote: missing objects, and commits that are not
/// on their branch although their command succeeded.
pub(super) fn damages<'a>(
    scene: &Scene,
    outcomes: impl Iterator<Item = Outcome<'a>>,
) -> Vec<String> {
    let (top, server) = (scene.path("work"), scene.path("server.git"));
    let mut damages = Vec::new();
    for directory in [&top, &server] {
        let output = git_in(directory)
            .args(["fsck", "--full", "--strict", "--no-dangling"])
            .output()
            .expect("it starts");
        if !output.status.success() {
            let text = stderr(&output);
            damages.extend(text.lines().take(5).map(|line| format!("fsck: {line}")));
        }
    }
    let (here, there) = (tips(&top), tips(&server));
    for outcome in outcomes.filter(|outcome| outcome.is_committed) {
        let branch = outcome.branch;
        let line = |tips: &str| {
            let prefix = format!("{branch} ");
            tips.lines()
                .find(|line| line.starts_with(&prefix))
                .map(str::to_owned)
        };
        let local = line(&here);
        if !local
            .as_ref()
            .is_some_and(|line| line.ends_with(&format!(" {branch}")))
        {
            damages.push(format!("{branch}: lost: {local:?}"));
        }
        if outcome.is_pushed && line(&there) != local {
            damages.push(format!("{branch}: {:?} on the server", line(&there)));
        }
    }
    damages
}

/// Returns the name, tip, parent of the tip and subject of every branch.
fn tips(directory: &Path) -> String {
    run(git_in(directory).args([
        "for-each-ref",
        "--format=%(refname:short) %(objectname) %(parent) %(subject)",
        "refs/heads",
    ]))
}

/// Returns the lock files in the repository.
pub(super) fn locks(scene: &Scene) -> Vec<PathBuf> {
    let mut found = Vec::new();
    locks_below(&scene.path("work/.git"), &mut found);
    found
}

fn locks_below(directory: &Path, found: &mut Vec<PathBuf>) {
    for entry in std::fs::read_dir(directory).into_iter().flatten().flatten() {
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
