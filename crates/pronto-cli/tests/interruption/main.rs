//! Interrupts clones, checkouts and adds at different moments by SIGKILL and SIGINT. Stock git must
//! never find a broken repository, and the next run must succeed or name the obstacle.

use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process};
use test_support::DEFAULT_SIGNALS;

/// The number of interrupted commands of each kind.
const ROUNDS: u64 = 40;

/// Returns the value of `PRONTO_TEST_KILLS`, or [`ROUNDS`].
fn rounds() -> u64 {
    let reported = std::env::var("PRONTO_TEST_KILLS").ok();
    reported
        .and_then(|text| text.parse().ok())
        .unwrap_or(ROUNDS)
}

#[test]
fn a_killed_clone_leaves_no_repository_that_git_finds_broken() {
    let place = Place::new("clone-kill");
    place.stop_clones(Signal::KILL, |place, _, target| {
        if place.is_repository(target) {
            place.assert_sound(target);
            place.git(target, &["status", "--porcelain"]);
        }
    });
}

#[test]
fn an_interrupted_clone_removes_what_it_made() {
    let place = Place::new("clone-int");
    place.stop_clones(Signal::INT, |place, finished, target| {
        // If the signal comes after the end, the clone must be complete.
        if finished || target.exists() {
            place.assert_sound(target);
            let dirty = place.git(target, &["status", "--porcelain"]);
            assert!(
                dirty.stdout.is_empty(),
                "an interrupted clone left half of its files"
            );
        }
    });
}

#[test]
fn a_killed_checkout_can_be_run_again() {
    let place = Place::new("checkout-kill");
    place.stop_checkouts(Signal::KILL, |place, target, revision| {
        let again = place
            .pronto(target, &["checkout", "-q", "-f", revision])
            .output();
        let again = again.expect("pronto starts");
        if !again.status.success() {
            let said = String::from_utf8_lossy(&again.stderr).into_owned();
            let lock = target.join(".git/index.lock");
            let names_the_lock = said.contains(".lock") && said.contains("remove the file");
            assert!(
                names_the_lock,
                "pronto does not say what stands in the way: {said}"
            );
            for stale in [lock, target.join(".git/HEAD.lock")] {
                let _ = std::fs::remove_file(stale);
            }
        }
    });
}

#[test]
fn an_interrupted_checkout_leaves_no_lock() {
    let place = Place::new("checkout-int");
    place.stop_checkouts(Signal::INT, |_, target, _| {
        for lock in ["index.lock", "HEAD.lock"] {
            let lock = target.join(".git").join(lock);
            assert!(
                !lock.exists(),
                "an interrupted checkout left {}",
                lock.display()
            );
        }
    });
}

#[test]
fn a_killed_add_leaves_no_partial_objects() {
    const KILLS: u64 = 20;
    let place = Place::new("add-kill");
    let work = place.base.path().join("work");
    std::fs::create_dir_all(&work).expect("a directory");
    place.git(&work, &["init", "-q"]);
    for file in 0..900 {
        let directory = work.join(format!("d{}", file % 30));
        std::fs::create_dir_all(&directory).expect("a directory");
        let text = format!("file {file}\n").repeat(500 + file);
        std::fs::write(directory.join(format!("f{file}")), text).expect("a file");
    }
    let fresh = || {
        let git = work.join(".git");
        for name in ["objects", "index", "index.lock"] {
            let path = git.join(name);
            let _ = std::fs::remove_dir_all(&path);
            let _ = std::fs::remove_file(&path);
        }
        std::fs::create_dir_all(git.join("objects/pack")).expect("a directory");
        std::fs::create_dir_all(git.join("objects/info")).expect("a directory");
    };
    let spawn = || place.pronto(&work, &["add", "-A"]).spawn();
    let whole = time(|| {
        let mut child = spawn().expect("pronto starts");
        child.wait().expect("it ends").success()
    });
    let expected = place.git(&work, &["ls-files", "-s"]).stdout;
    for round in 0..KILLS {
        fresh();
        let child = spawn().expect("pronto starts");
        stop(child, Signal::KILL, delay(whole, round * rounds() / KILLS));
        place.assert_sound(&work);
        let staged = place.git(&work, &["ls-files", "-s"]).stdout;
        assert!(
            staged.is_empty() || staged == expected,
            "a killed add staged a part"
        );
        let _ = std::fs::remove_file(work.join(".git/index.lock"));
        let again = place.pronto(&work, &["add", "-A"]).output();
        assert!(again.expect("pronto starts").status.success());
        place.assert_sound(&work);
        assert_eq!(place.git(&work, &["ls-files", "-s"]).stdout, expected);
    }
}

/// A source repository with two very different trees, and a directory for clones.
struct Place {
    base: tempfile::TempDir,
}

impl Place {
    fn new(name: &str) -> Self {
        let base = tempfile::Builder::new()
            .prefix(&format!("pronto-{name}-"))
            .tempdir();
        let place = Place {
            base: base.expect("a temporary directory"),
        };
        let source = place.source();
        std::fs::create_dir_all(&source).expect("a directory");
        place.git(&source, &["init", "-q", "-b", "main"]);
        place.git(&source, &["config", "user.name", "A U Thor"]);
        place.git(&source, &["config", "user.email", "author@example.com"]);
        for (round, tag) in ["one", "two"].into_iter().enumerate() {
            for file in 0..600 {
                let directory = source.join(format!("d{}/e{}", file % 20, (file + round) % 7));
                std::fs::create_dir_all(&directory).expect("a directory");
                let text = format!("{tag} {file}\n").repeat(100 + file);
                std::fs::write(directory.join(format!("f{file}")), text).expect("a file");
            }
            place.git(&source, &["add", "-A"]);
            place.git(&source, &["commit", "-q", "-m", tag]);
            place.git(&source, &["tag", tag]);
        }
        place
    }

    fn source(&self) -> PathBuf {
        self.base.path().join("source")
    }

    /// Interrupts clones, each after another fraction of the duration of a complete one.
    fn stop_clones(&self, signal: Signal, check: impl Fn(&Self, bool, &Path)) {
        let url = format!("file://{}", self.source().display());
        let arguments = |target: &str| ["clone", "-q", &url, target].map(str::to_owned);
        let spawn = |target: &str| {
            let arguments = arguments(target);
            let arguments: Vec<&str> = arguments.iter().map(String::as_str).collect();
            self.pronto(self.base.path(), &arguments)
                .spawn()
                .expect("pronto starts")
        };
        let whole = time(|| spawn("whole").wait().expect("it ends").success());
        for round in 0..rounds() {
            let name = format!("clone{round}");
            let finished = stop(spawn(&name), signal, delay(whole, round));
            let target = self.base.path().join(&name);
            check(self, finished, &target);
            let _ = std::fs::remove_dir_all(&target);
        }
        assert_eq!(
            self.leftovers(),
            ["source", "whole"],
            "something was left beside the clones"
        );
    }

    /// Switches between the two trees. Each switch is interrupted, checked, and completed.
    fn stop_checkouts(&self, signal: Signal, check: impl Fn(&Self, &Path, &str)) {
        let target = self.base.path().join("work");
        self.git(self.base.path(), &["clone", "-q", "source", "work"]);
        let spawn = |revision: &str| {
            let command = ["checkout", "-q", "-f", revision];
            self.pronto(&target, &command)
                .spawn()
                .expect("pronto starts")
        };
        let whole = time(|| spawn("one").wait().expect("it ends").success());
        for round in 0..rounds() {
            let revision = ["two", "one"][round as usize % 2];
            stop(spawn(revision), signal, delay(whole, round));
            check(self, &target, revision);
            let done = self
                .pronto(&target, &["checkout", "-q", "-f", revision])
                .output();
            let done = done.expect("pronto starts");
            assert!(
                done.status.success(),
                "{}",
                String::from_utf8_lossy(&done.stderr)
            );
            let dirty = self.git(&target, &["status", "--porcelain"]);
            assert!(
                dirty.stdout.is_empty(),
                "{}",
                String::from_utf8_lossy(&dirty.stdout)
            );
        }
        self.assert_sound(&target);
    }

    fn leftovers(&self) -> Vec<String> {
        let entries = std::fs::read_dir(self.base.path()).expect("it can be listed");
        let mut names: Vec<String> = entries
            .map(|entry| {
                entry
                    .expect("an entry")
                    .file_name()
                    .to_string_lossy()
                    .into_owned()
            })
            .collect();
        names.sort();
        names
    }

    fn is_repository(&self, target: &Path) -> bool {
        let mut command = self.command(target, "git");
        target.exists()
            && command
                .args(["rev-parse", "--git-dir"])
                .output()
                .is_ok_and(|o| o.status.success())
    }

    fn assert_sound(&self, target: &Path) {
        self.git(target, &["fsck", "--full", "--strict"]);
    }

    fn pronto(&self, directory: &Path, arguments: &[&str]) -> Command {
        let mut command = self.command(directory, "env");
        command
            .args(DEFAULT_SIGNALS)
            .arg(env!("CARGO_BIN_EXE_pronto"))
            .args(arguments)
            .env("PRONTO_NO_FALLBACK", "1");
        command
    }

    fn command(&self, directory: &Path, program: &str) -> Command {
        let mut command = Command::new(program);
        command
            .current_dir(directory)
            .env("GIT_CONFIG_NOSYSTEM", "1")
            .env("GIT_CONFIG_GLOBAL", "/dev/null")
            .env("GIT_CEILING_DIRECTORIES", self.base.path())
            .env("LC_ALL", "C")
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped());
        command
    }

    fn git(&self, directory: &Path, arguments: &[&str]) -> Output {
        let output = self
            .command(directory, "git")
            .args(arguments)
            .output()
            .expect("git starts");
        let said = String::from_utf8_lossy(&output.stderr);
        assert!(
            output.status.success(),
            "git {} failed: {said}",
            arguments.join(" ")
        );
        output
    }
}

/// Returns the duration of a complete run, which must succeed.
fn time(run: impl FnOnce() -> bool) -> Duration {
    let start = Instant::now();
    assert!(run(), "the undisturbed run succeeds");
    start.elapsed()
}

/// Returns a moment within the run or shortly after its end. Rounds are spread evenly, in a mixed
/// order.
fn delay(whole: Duration, round: u64) -> Duration {
    let rounds = rounds();
    let fraction = (round * 61 % rounds) as f64 / rounds as f64;
    whole.mul_f64(fraction * 1.05)
}

/// Sends `signal` after `delay`. Returns whether the process had succeeded before.
fn stop(mut child: Child, signal: Signal, delay: Duration) -> bool {
    std::thread::sleep(delay);
    let process = Pid::from_child(&child);
    // It may have ended already.
    let _ = kill_process(process, signal);
    child.wait().expect("it can be waited for").success()
}
