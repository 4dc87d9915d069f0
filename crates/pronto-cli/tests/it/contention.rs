//! Several processes with one index, and files that change without a visible change of their times.

use std::collections::BTreeSet;
use std::io::Read;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::Duration;

use rustix::event::{PollFd, PollFlags, Timespec, poll};

use crate::support::{Scratch, process, pronto, stderr, stdout};

/// The number of commits during status, unless `PRONTO_TEST_COMMITS` is set. With the variable no
/// command may find the index locked. Otherwise a locked index is tried again, because that depends
/// on timing.
const COMMITS: usize = 8;
/// The number of status loops: by default, and with `PRONTO_TEST_COMMITS`.
const LOOPS: (usize, usize) = (4, 20);
/// The number of rounds of racy edits, unless `PRONTO_TEST_RACY` is set.
const ROUNDS: usize = 4;
/// The number of files in a round.
const FILES: usize = 100;

fn number(variable: &str) -> Option<usize> {
    std::env::var(variable).ok()?.parse().ok()
}

fn repository(scratch: &Scratch, name: &str) -> PathBuf {
    let top = scratch.path().join(name);
    run(process("git").args(["init", "-q", "-b", "main"]).arg(&top));
    for (key, value) in [("user.name", "a"), ("user.email", "a@x"), ("gc.auto", "0")] {
        run(in_(&top, process("git")).args(["config", key, value]));
    }
    top
}

fn in_(top: &Path, mut command: Command) -> Command {
    command.current_dir(top);
    command
}

fn run(command: &mut Command) -> String {
    let output = command.output().expect("it starts");
    assert!(output.status.success(), "{command:?}: {}", stderr(&output));
    stdout(&output)
}

fn is_locked(output: &Output) -> bool {
    !output.status.success() && stderr(output).contains("index.lock")
}

#[test]
fn status_during_commits_loses_nothing() {
    let scratch = Scratch::new();
    for skip_hash in ["false", "true"] {
        let top = repository(&scratch, skip_hash);
        run(in_(&top, process("git")).args(["config", "index.skipHash", skip_hash]));
        for at in 0..50 {
            std::fs::write(top.join(format!("file{at}")), "first\n").expect("a file");
        }
        run(in_(&top, process("git")).args(["add", "."]));
        run(in_(&top, process("git")).args(["commit", "-qm", "first"]));
        beside_status(&top);
    }
}

fn beside_status(top: &Path) {
    let long = number("PRONTO_TEST_COMMITS");
    let commits = long.unwrap_or(COMMITS);
    let loops = if long.is_some() { LOOPS.1 } else { LOOPS.0 };
    let (is_over, looks) = (AtomicBool::new(false), AtomicUsize::new(0));
    let look = || {
        while !is_over.load(Ordering::Relaxed) {
            run(in_(top, pronto()).args(["status", "--porcelain"]));
            looks.fetch_add(1, Ordering::Relaxed);
        }
    };
    let mut locked = 0;
    std::thread::scope(|scope| {
        let loops: Vec<_> = (0..loops).map(|_| scope.spawn(look)).collect();
        let _end = Ended(&is_over);
        for at in 0..commits {
            let file = format!("file{}", at % 50);
            std::fs::write(top.join(&file), format!("{at}\n")).expect("a file");
            std::fs::write(top.join(format!("new{at}")), format!("{at}\n")).expect("a file");
            let adds = if at % 2 == 0 {
                pronto()
            } else {
                process("git")
            };
            locked += patiently(in_(top, adds).args(["add", "."]));
            let message = format!("commit {at}");
            locked += patiently(in_(top, process("git")).args(["commit", "-qm", &message]));
            if at % 10 == 9 {
                // Long enough for status to write the index.
                std::thread::sleep(Duration::from_millis(1050));
            }
        }
        is_over.store(true, Ordering::Relaxed);
        loops
            .into_iter()
            .for_each(|one| one.join().expect("no status fails"));
    });
    println!(
        "{commits} commits beside {loops} loops, {} times status, {locked} times locked",
        looks.load(Ordering::Relaxed)
    );
    // In a short run a refusal depends on the moment. A long run shows that they are rare beyond that.
    if long.is_some() {
        assert_eq!(locked, 0, "commands were refused");
    }
    let log = run(in_(top, process("git")).args(["rev-list", "--count", "HEAD"]));
    assert_eq!(log.trim(), (commits + 1).to_string());
    let names = run(in_(top, process("git")).args(["ls-tree", "--name-only", "HEAD"]));
    assert_eq!(names.lines().count(), 50 + commits);
    let last = run(in_(top, process("git")).args(["show", &format!("HEAD:new{}", commits - 1)]));
    assert_eq!(last, format!("{}\n", commits - 1));
    assert_eq!(
        run(in_(top, process("git")).args(["status", "--porcelain"])),
        ""
    );
    // git reads an index without a digest (`index.skipHash`), but its fsck calls it corrupt.
    run(in_(top, process("git")).args(["update-index", "--force-write-index"]));
    run(in_(top, process("git")).args(["fsck", "--strict"]));
}

/// Ends the loops even if something fails.
struct Ended<'a>(&'a AtomicBool);

impl Drop for Ended<'_> {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
    }
}

/// Runs a command again while the index is locked. Returns how many times it was locked.
fn patiently(command: &mut Command) -> usize {
    for times in 0..200 {
        let output = command.output().expect("it starts");
        if !is_locked(&output) {
            assert!(output.status.success(), "{command:?}: {}", stderr(&output));
            return times;
        }
        std::thread::sleep(Duration::from_millis(20));
    }
    panic!("{command:?}: the index stays locked");
}

#[test]
fn an_edit_in_the_same_second_is_detected() {
    let scratch = Scratch::new();
    let top = repository(&scratch, "racy");
    let rounds = number("PRONTO_TEST_RACY").unwrap_or(ROUNDS);
    let mut state = 1u64;
    let mut next = || {
        state = state
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1_442_695_040_888_963_407);
        (state >> 33) as usize
    };
    let path = |at: usize| top.join(format!("f{at}"));
    let mut edits = 0;
    for round in 0..rounds {
        for at in 0..FILES {
            std::fs::write(path(at), format!("{round:08}")).expect("a file");
        }
        run(in_(&top, pronto()).args(["add", "."]));
        let expected: BTreeSet<String> = (0..FILES)
            .filter(|_| next() % 2 == 0)
            .map(|at| format!("f{at}"))
            .collect();
        for name in &expected {
            std::fs::write(top.join(name), format!("{:08}", round + 50_000_000)).expect("a file");
        }
        edits += expected.len();
        let modified = |name: &str, command: Command| {
            let text = run(in_(&top, command).args(["status", "--porcelain", "-uno"]));
            let lines = text.lines().filter(|line| line.as_bytes()[1] == b'M');
            let found: BTreeSet<String> = lines.map(|line| line[3..].to_owned()).collect();
            assert_eq!(found, expected, "{name} in round {round}");
        };
        // The first status may write the index.
        let order = match round % 2 {
            0 => ["pronto", "git"],
            _ => ["git", "pronto"],
        };
        let look = || {
            for name in order {
                let command = if name == "git" {
                    process("git")
                } else {
                    pronto()
                };
                modified(name, command);
            }
        };
        look();
        // Writing the index without refreshing it must not make the files look clean.
        let version = if next() % 2 == 0 { "4" } else { "2" };
        run(in_(&top, pronto()).args(["update-index", "--index-version", version]));
        look();
    }
    println!("{edits} edits were seen");
}

/// Creates a FIFO called `name`.
fn fifo(scratch: &Scratch, name: &str) -> PathBuf {
    let path = scratch.path().join(name);
    run(process("mkfifo").arg(&path));
    path
}

/// Returns the first text that a process writes into the FIFO `path`, within a minute.
fn first_line(path: &Path) -> String {
    // Also opened for writing, so that it neither waits for a writer nor ends without one.
    let fifo = std::fs::File::options().read(true).write(true).open(path);
    let mut fifo = fifo.expect("a FIFO");
    let mut waiting = [PollFd::new(&fifo, PollFlags::IN)];
    let limit = Timespec {
        tv_sec: 60,
        tv_nsec: 0,
    };
    let ready = poll(&mut waiting, Some(&limit)).expect("it can be waited for");
    assert_eq!(ready, 1, "nobody writes into {}", path.display());
    let mut line = [0; 100];
    let length = fifo.read(&mut line).expect("it is ready");
    String::from_utf8_lossy(&line[..length]).into_owned()
}

#[test]
fn the_lock_of_a_killed_process_is_taken_over() {
    let scratch = Scratch::new();
    let top = repository(&scratch, "killed");
    let (begun, resume) = (fifo(&scratch, "begun"), fifo(&scratch, "go-on"));
    let script = format!(
        "#!/bin/sh\necho begun >'{}'\nread line <'{}'\ncat\n",
        begun.display(),
        resume.display()
    );
    let filter = scratch.script("filter", "wait", &script);
    let clean = format!("'{}'", filter.display());
    run(in_(&top, process("git")).args(["config", "filter.wait.clean", &clean]));
    std::fs::write(top.join(".gitattributes"), "slow filter=wait\n").expect("attributes");
    for name in ["slow", "quick"] {
        std::fs::write(top.join(name), "content\n").expect("a file");
    }
    let mut add = in_(&top, pronto())
        .args(["add", "slow"])
        .spawn()
        .expect("it starts");
    // The filter runs, and waits.
    assert_eq!(first_line(&begun), "begun\n");
    let lock = top.join(".git/index.lock");
    assert!(lock.exists(), "add holds the lock");
    add.kill().expect("it runs");
    add.wait().expect("it ends");
    std::fs::write(&resume, "go\n").expect("the filter reads");
    assert!(
        lock.exists(),
        "nothing removes the lock of a killed process"
    );
    run(in_(&top, pronto()).args(["add", "quick"]));
    assert!(!lock.exists());
    assert_eq!(run(in_(&top, process("git")).args(["ls-files"])), "quick\n");
}
