//! Writers beside processes that repack and prune continuously and are killed at any moment. No
//! writer fails, and no commit is lost.

use pronto::{Watch, prune};
use std::path::{Path, PathBuf};
use std::process::{Command, Output};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use crate::support::{Scratch, process, pronto, stderr, stdout};

/// The number of writers, and the rounds of each, unless `PRONTO_TEST_PRUNERS=WRITERS,ROUNDS` is
/// set.
const WRITERS: usize = 3;
const ROUNDS: usize = 5;

fn sizes() -> (usize, usize) {
    let Ok(text) = std::env::var("PRONTO_TEST_PRUNERS") else {
        return (WRITERS, ROUNDS);
    };
    let numbers = text.split_once(',').expect("two numbers");
    let number = |text: &str| text.parse().expect("a number");
    (number(numbers.0), number(numbers.1))
}

fn call(directory: &Path, mut command: Command, arguments: &[&str]) -> Output {
    command.current_dir(directory).args(arguments);
    for role in ["AUTHOR", "COMMITTER"] {
        command.env(format!("GIT_{role}_NAME"), "a");
        command.env(format!("GIT_{role}_EMAIL"), "a@example.com");
    }
    command.output().expect("it starts")
}

fn git(directory: &Path, arguments: &[&str]) -> String {
    let output = call(directory, process("git"), arguments);
    assert!(
        output.status.success(),
        "{arguments:?}: {}",
        stderr(&output)
    );
    stdout(&output)
}

/// Creates a repository with a worktree for each writer. Without reflogs, abandoned commits can be
/// pruned immediately.
fn scene(scratch: &Scratch, writers: usize) -> PathBuf {
    let top = scratch.path().join("top");
    std::fs::create_dir(&top).expect("a directory");
    git(&top, &["init", "-q", "-b", "main", "."]);
    for (key, value) in [("core.logAllRefUpdates", "false"), ("gc.auto", "0")] {
        git(&top, &["config", key, value]);
    }
    for at in 0..30 {
        let directory = top.join(format!("d{}", at % 5));
        std::fs::create_dir_all(&directory).expect("a directory");
        std::fs::write(directory.join(format!("f{at}")), format!("{at}\n")).expect("a file");
    }
    git(&top, &["add", "."]);
    git(&top, &["commit", "-qm", "first"]);
    for writer in 0..writers {
        let (branch, place) = (format!("w{writer}"), format!("../w{writer}"));
        git(&top, &["worktree", "add", "-q", "-b", &branch, &place]);
    }
    top
}

/// Commits the same files as other writers, resets, so that the commit can be pruned, and commits
/// again. Returns the commits that must be kept, and the failures.
fn write(place: &Path, rounds: usize) -> (Vec<String>, Vec<String>) {
    let (mut kept, mut failures) = (Vec::new(), Vec::new());
    for round in 0..rounds {
        let file = place.join("d1/f1");
        let mut step = |arguments: &[&str]| {
            let output = call(place, pronto(), arguments);
            if !output.status.success() {
                failures.push(format!("{arguments:?}: {}", stderr(&output)));
            }
            stdout(&output).trim().to_owned()
        };
        for attempt in 0..2 {
            std::fs::write(&file, format!("round {round}\n")).expect("a file");
            step(&["add", "d1/f1"]);
            step(&["commit", "-q", "-m", &format!("{round}")]);
            step(&["ls-tree", "-r", "HEAD"]);
            step(&["cat-file", "-p", "HEAD:d1/f1"]);
            if attempt == 0 {
                step(&["reset", "-q", "--hard", "HEAD^"]);
            }
        }
        kept.push(step(&["rev-parse", "HEAD"]));
    }
    (kept, failures)
}

/// Repacks, prunes and packs references until `ended`. Every other process is killed. Returns the
/// failures of the others, and how many succeeded.
fn prune(top: &Path, ended: &AtomicBool, well: &AtomicUsize) -> Vec<String> {
    const CALLS: [&[&str]; 4] = [
        &["repack", "-a", "-d", "-q"],
        &["prune", "--expire=now"],
        &["repack", "-d", "-q", "--cruft", "--cruft-expiration=now"],
        &["prune-packed", "-q"],
    ];
    let mut failures = Vec::new();
    let mut number = 0u64;
    while !ended.load(Ordering::Relaxed) {
        for arguments in CALLS {
            number += 1;
            if number.is_multiple_of(2) {
                let mut command = pronto();
                command.current_dir(top).args(arguments);
                let mut child = command.spawn().expect("it starts");
                std::thread::sleep(Duration::from_millis(number * 7919 % 60));
                child.kill().expect("it is ours");
                child.wait().expect("it ends");
                continue;
            }
            let output = call(top, pronto(), arguments);
            match output.status.success() {
                true => _ = well.fetch_add(1, Ordering::Relaxed),
                false => failures.push(format!("{arguments:?}: {}", stderr(&output))),
            }
        }
        // An odd number of calls, so that each kind is killed every other time.
        number += 1;
        git(top, &["pack-refs", "--all"]);
    }
    failures
}

#[test]
fn writers_lose_nothing_during_pruning() {
    let (writers, rounds) = sizes();
    let scratch = Scratch::new();
    let top = scene(&scratch, writers);
    let (ended, well) = (AtomicBool::new(false), AtomicUsize::new(0));
    let began = Instant::now();
    let (mut kept, mut failures) = (Vec::new(), Vec::new());
    std::thread::scope(|scope| {
        let pruner = scope.spawn(|| prune(&top, &ended, &well));
        let places = (0..writers).map(|writer| scratch.path().join(format!("w{writer}")));
        let hands: Vec<_> = places
            .map(|place| scope.spawn(move || write(&place, rounds)))
            .collect();
        for hand in hands {
            let (done, failed) = hand.join().expect("no panic");
            kept.extend(done);
            failures.extend(failed);
        }
        ended.store(true, Ordering::Relaxed);
        failures.extend(pruner.join().expect("no panic"));
    });
    println!(
        "{writers} writers, {rounds} rounds, {} prunings in {:?}",
        well.load(Ordering::Relaxed),
        began.elapsed()
    );
    assert!(failures.is_empty(), "{}", failures.join("\n"));
    assert_eq!(kept.len(), writers * rounds);
    git(&top, &["fsck", "--full", "--strict"]);
    for id in kept {
        git(&top, &["rev-list", "--objects", "--quiet", &id]);
    }
    assert_eq!(leftovers(&top.join(".git/objects")), Vec::<PathBuf>::new());
}

/// Removes the remains of killed processes, and returns the files that are left.
fn leftovers(objects: &Path) -> Vec<PathBuf> {
    let output = call(objects, pronto(), &["prune", "--expire=now"]);
    assert!(output.status.success(), "{}", stderr(&output));
    let directories = [objects.to_owned(), objects.join("pack")];
    let files = directories.iter().flat_map(|directory| {
        let entries = std::fs::read_dir(directory).expect("a directory");
        entries.flatten().map(|entry| entry.path())
    });
    let is_left = |path: &PathBuf| {
        let name = path.file_name().unwrap_or_default();
        name.to_string_lossy().starts_with("tmp_")
    };
    files.filter(is_left).collect()
}

/// Objects that a process found and did not write are kept until it ends, and refs that were set
/// meanwhile count.
#[test]
fn nothing_is_pruned_while_another_process_writes() {
    let scratch = Scratch::new();
    let top = scene(&scratch, 0);
    std::fs::write(top.join("new"), "new\n").expect("a file");
    let blob = git(&top, &["hash-object", "-w", "new"]).trim().to_owned();
    let environment = pronto::environment::Environment::empty(&top);
    let repository = pronto::Repository::open(top.join(".git"), &environment);
    let repository = repository.expect("it can be opened");
    let store = repository.objects().expect("it can be opened");
    let written = store.write(gix_object::Kind::Blob, b"new\n");
    assert_eq!(written.expect("it is there").to_string(), blob);
    let other = pronto::Repository::open(top.join(".git"), &environment);
    let notices = std::sync::Arc::new(pronto::NoticeQueue::default());
    let other = other
        .expect("it can be opened")
        .with_notices(std::sync::Arc::clone(&notices));
    let watch = Watch::none();
    let prune = |patience| {
        let mut options = prune::Options::default();
        options.patience = patience;
        prune::prune(&other, &options, &mut |_| {}, &watch)
    };
    assert!(prune(Duration::ZERO).expect("it can be done").gave_up);
    assert_eq!(notices.take_of(pronto::Severity::Warning).len(), 1);
    git(&top, &["cat-file", "-e", &blob]);
    store.finish_writing();
    // A process that another test forks holds the lock, too, until it executes its program.
    let outcome = prune(Duration::from_secs(20)).expect("it can be done");
    assert_eq!((outcome.objects, outcome.gave_up), (1, false));
    let gone = call(&top, process("git"), &["cat-file", "-e", &blob]);
    assert!(!gone.status.success());
}
