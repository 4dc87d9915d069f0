//! Switches between trees of a real history, with files that were changed, staged, removed or
//! added. The result and the messages equal those of git.
//!
//! The history is that of this repository, the one that `PRONTO_TEST_HISTORY` names, or a small
//! generated one. `PRONTO_TEST_PAIRS` sets the number of pairs, and `PRONTO_TEST_SEED` selects
//! them.

use std::path::{Path, PathBuf};

use test_support::Random;

use super::faults::git;
use super::matrix::State;
use crate::support::{Scratch, process, pronto_path, stderr, stdout};

const PAIRS: usize = 16;

/// The number of oldest commits from which pairs are taken by default.
const OLDEST: usize = 250;

const CALLS: [&[&str]; 6] = [
    &["checkout", "-q"],
    &["checkout", "-q", "-f"],
    &["switch", "-q", "--detach"],
    &["reset", "-q", "--hard"],
    &["read-tree", "-m", "-u", "HEAD"],
    &["checkout", "-q", "--no-overwrite-ignore"],
];

/// A change of a path before the switch.
#[derive(Clone, Copy, Debug)]
enum Disturbance {
    Changed,
    Staged,
    Removed,
    Unstaged,
    Program,
    Link,
    Directory,
    Ignored,
}

const DISTURBANCES: [Disturbance; 8] = [
    Disturbance::Changed,
    Disturbance::Staged,
    Disturbance::Removed,
    Disturbance::Unstaged,
    Disturbance::Program,
    Disturbance::Link,
    Disturbance::Directory,
    Disturbance::Ignored,
];

/// Makes the change if it is possible.
fn disturb(work: &Path, path: &str, disturbance: Disturbance) {
    let file = work.join(path);
    let remove = || match file.symlink_metadata() {
        Ok(metadata) if metadata.is_dir() => std::fs::remove_dir_all(&file),
        Ok(_) => std::fs::remove_file(&file),
        Err(_) => Ok(()),
    };
    let write = || {
        let parent = file.parent().expect("it has one");
        let _ = std::fs::create_dir_all(parent).and_then(|()| std::fs::write(&file, "disturbed\n"));
    };
    let add_case = |arguments: &[&str]| {
        let _ = git(work, &[arguments, &["--", path]].concat());
    };
    match disturbance {
        Disturbance::Changed => write(),
        Disturbance::Staged => {
            write();
            add_case(&["add", "-f"]);
        }
        Disturbance::Removed => drop(remove()),
        Disturbance::Unstaged => add_case(&["rm", "-q", "--cached"]),
        Disturbance::Program => add_case(&["update-index", "--chmod=+x"]),
        Disturbance::Link => {
            let _ = remove().and_then(|()| std::os::unix::fs::symlink("elsewhere", &file));
        }
        Disturbance::Directory => {
            let _ = remove().and_then(|()| std::fs::create_dir_all(file.join("below")));
            let _ = std::fs::write(file.join("below/new"), "new\n");
        }
        Disturbance::Ignored => {
            let exclude = work.join(".git/info/exclude");
            std::fs::write(exclude, format!("/{path}\n")).expect("a file");
            write();
        }
    }
}

/// Returns the commits of `history`, oldest first. Empty if it is not a repository.
fn commits(history: &Path) -> Vec<String> {
    let words = ["-c", "safe.directory=*", "rev-list", "--reverse"];
    let known = git(history, &[&words[..], &["--topo-order", "HEAD"]].concat());
    stdout(&known).lines().map(str::to_owned).collect()
}

/// Creates a history of random trees with a few paths, some of which are a file in one tree and a
/// directory in another.
fn make_history(at: &Path, random: &mut Random) {
    const PATHS: [&str; 9] = [
        "a", "a/b", "a/b/c", "b", "b/a", "c/a/a", "c/a/b", "d.x", "d/x",
    ];
    std::fs::create_dir(at).expect("a directory");
    let add_case = |arguments: &[&str]| {
        let output = git(at, arguments);
        assert!(output.status.success(), "{}", stderr(&output));
    };
    add_case(&["init", "-q"]);
    for commit in 0..OLDEST / 5 {
        add_case(&["rm", "-rfq", "--ignore-unmatch", "."]);
        for path in PATHS {
            let file = at.join(path);
            let _ = std::fs::create_dir_all(file.parent().expect("it has one"));
            if random.below(2) == 0 {
                // A path that is a directory now stays one.
                let _ = std::fs::write(file, format!("{}\n", random.below(3)));
            }
        }
        add_case(&["add", "-A"]);
        let message = format!("commit {commit}");
        add_case(&["commit", "-q", "--allow-empty", "-m", &message]);
    }
}

fn clone(history: &Path, to: PathBuf) -> PathBuf {
    // The history may belong to another user. The server of the clone reads only files.
    let trusting = to.with_extension("config");
    std::fs::write(&trusting, "[safe]\n\tdirectory = *\n").expect("a file");
    let cloned = process("git")
        .args(["clone", "-q", "-s", "-n"])
        .args([history, &to])
        .env("GIT_CONFIG_GLOBAL", &trusting)
        .output()
        .expect("git starts");
    assert!(cloned.status.success(), "{}", stderr(&cloned));
    to
}

fn names(work: &Path, commit: &str) -> Vec<String> {
    let output = git(work, &["ls-tree", "-r", "--name-only", commit]);
    stdout(&output).lines().map(str::to_owned).collect()
}

/// Checks `commit` out in a worktree and makes the changes.
fn prepare(work: &Path, commit: &str, disturbances: &[(String, Disturbance)]) {
    std::fs::write(work.join(".git/info/exclude"), "").expect("a file");
    let _ = std::fs::remove_file(work.join(".git/index.lock"));
    for arguments in [
        &["checkout", "-q", "-f", "--detach", commit][..],
        &["reset", "-q", "--hard"],
        &["clean", "-q", "-ffdx"],
    ] {
        let output = git(work, arguments);
        assert!(
            output.status.success(),
            "{arguments:?}: {}",
            stderr(&output)
        );
    }
    // No entry is racy: git compares times to the second.
    let age = "git ls-files -z | xargs -0r touch -chd 2020-01-01 && git update-index -q --refresh";
    let aged = process("sh").args(["-c", age]).current_dir(work).status();
    assert!(aged.expect("sh starts").success());
    for (path, disturbance) in disturbances {
        disturb(work, path, *disturbance);
    }
}

fn run(program: &Path, work: &Path, setting: &str, call: &[&str]) -> State {
    let output = process(program)
        .args(["-c", setting, "-c", "checkout.thresholdForParallelism=0"])
        .args(call)
        .env("PRONTO_NO_FALLBACK", "1")
        .current_dir(work)
        .output()
        .expect("it starts");
    State::of(work, &output)
}

fn number(name: &str) -> Option<u64> {
    std::env::var(name).ok()?.parse().ok()
}

#[test]
fn switches_between_trees_of_a_real_history() {
    let own = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let pairs = number("PRONTO_TEST_PAIRS").map_or(PAIRS, |count| count as usize);
    let mut history = std::env::var_os("PRONTO_TEST_HISTORY").map_or(own, PathBuf::from);
    let seed = number("PRONTO_TEST_SEED").unwrap_or(1);
    let mut random = Random::new(seed);
    let scratch = Scratch::new();
    let mut known = commits(&history);
    if known.len() < 2 {
        println!("{} has no history: one is made", history.display());
        history = scratch.path().join("history");
        make_history(&history, &mut random);
        known = commits(&history);
    }
    if pairs <= PAIRS {
        // The pairs do not change when commits are added.
        known.truncate(OLDEST);
    }
    assert!(known.len() > 1, "{}", history.display());
    let theirs = clone(&history, scratch.path().join("theirs"));
    let ours = clone(&history, scratch.path().join("ours"));
    for pair in 0..pairs {
        let (from, to) = (random.one_of(&known), random.one_of(&known));
        let mut paths = names(&theirs, from);
        paths.extend(names(&theirs, to));
        let count = random.index(4);
        let disturbances: Vec<(String, Disturbance)> = match paths.is_empty() {
            true => Vec::new(),
            false => (0..count)
                .map(|_| (random.one_of(&paths).clone(), *random.one_of(&DISTURBANCES)))
                .collect(),
        };
        let call = [*random.one_of(&CALLS), &[to.as_str()]].concat();
        let setting = format!("checkout.workers={}", random.one_of(&["1", "2", "auto"]));
        let context =
            format!("pair {pair} of seed {seed}: {disturbances:?} at {from}, {call:?} {setting}");
        prepare(&theirs, from, &disturbances);
        prepare(&ours, from, &disturbances);
        let expected = run(Path::new("git"), &theirs, "checkout.workers=1", &call);
        run(pronto_path(), &ours, &setting, &call).assert_is(&expected, &context);
    }
}
