//! Many processes in one repository, each in its own worktree. No command fails, and no commit is
//! lost.
//!
//! `PRONTO_TEST_HANDS=PROCESSES,ROUNDS` sets the size. `PRONTO_TEST_HANDS_GIT=PATH` runs that git
//! instead of pronto for comparison. `bench/results/many-hands.md` has the figures.

mod scene;

use std::path::Path;
use std::process::{Command, Output, Stdio};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed};
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process_group};
use test_support::report_missing_reference;

use crate::support::stderr;
use scene::{Refs, Scene, Setting, identified, program, run};

/// The number of processes, and the rounds of each, unless `PRONTO_TEST_HANDS=PROCESSES,ROUNDS` is
/// set.
const HANDS: usize = 6;
const ROUNDS: usize = 3;

/// One of this many commands is killed, within this time.
const KILLED_ONE_OF: u64 = 10;
const KILLED_WITHIN: Duration = Duration::from_millis(40);

/// The number of failures that are printed.
const SHOWN: usize = 15;

fn sizes(hands: usize, rounds: usize) -> (usize, usize) {
    let Ok(text) = std::env::var("PRONTO_TEST_HANDS") else {
        return (hands, rounds);
    };
    let mut numbers = text
        .split(',')
        .map(|number| number.parse().expect("a number"));
    let mut next = || numbers.next().expect("two numbers");
    (next(), next())
}

/// The end of a command.
#[derive(Clone, Copy, PartialEq, Eq)]
enum End {
    Success,
    Failure,
    Killed,
}

/// The progress of one worktree.
struct Life {
    branch: String,
    is_committed: bool,
    is_pushed: bool,
    failures: Vec<String>,
    commands: usize,
    kills: usize,
}

impl Life {
    fn new(hand: usize, round: usize) -> Life {
        Life {
            branch: format!("hand-{hand}-{round}"),
            is_committed: false,
            is_pushed: false,
            failures: Vec::new(),
            commands: 0,
            kills: 0,
        }
    }

    /// Runs one command, which is killed after `killed_after`.
    fn step(
        &mut self,
        directory: &Path,
        arguments: &[&str],
        killed_after: Option<Duration>,
    ) -> End {
        let mut command = identified(program());
        command.args(arguments).current_dir(directory);
        self.commands += 1;
        let (output, was_killed) = output_of(&mut command, killed_after);
        if output.status.success() {
            return End::Success;
        }
        if was_killed && output.status.code().is_none() {
            self.kills += 1;
            return End::Killed;
        }
        let status = output.status;
        self.failures.push(format!(
            "{arguments:?}: {status}: {}",
            stderr(&output).trim_end()
        ));
        End::Failure
    }
}

/// Runs a command, and kills its process group after `killed_after`.
fn output_of(command: &mut Command, killed_after: Option<Duration>) -> (Output, bool) {
    use std::os::unix::process::CommandExt;
    let Some(after) = killed_after else {
        return (command.output().expect("it starts"), false);
    };
    command
        .process_group(0)
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped());
    let child = command.spawn().expect("it starts");
    std::thread::sleep(after);
    // It was not waited for yet, so its id is not reused.
    let group = i32::try_from(child.id()).ok().and_then(Pid::from_raw);
    let _ = kill_process_group(group.expect("a process id"), Signal::KILL);
    (
        child.wait_with_output().expect("it can be waited for"),
        true,
    )
}

/// Pseudo-random numbers that are the same in each run.
static STATE: AtomicU64 = AtomicU64::new(0);

fn random() -> u64 {
    let state = STATE.fetch_add(0x9e37_79b9_7f4a_7c15, Relaxed);
    let mixed = (state ^ (state >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    mixed ^ (mixed >> 31)
}

/// For one of ten commands, returns when it is killed.
fn fate(setting: &Setting) -> Option<Duration> {
    let is_due = setting.kills && random().is_multiple_of(KILLED_ONE_OF);
    is_due.then(|| KILLED_WITHIN.mul_f64((random() % 1024) as f64 / 1024.0))
}

/// Creates a worktree, changes it, commits, pushes and removes it. Stops at a command that fails or
/// is killed.
fn live(scene: &Scene, hand: usize, round: usize) -> Life {
    let mut life = Life::new(hand, round);
    let branch = life.branch.clone();
    let (top, worktree) = (scene.path("work"), scene.path(&branch));
    let place = worktree.to_str().expect("text");
    let fate = || fate(&scene.setting);
    #[rustfmt::skip]
    let added = ["worktree", "add", "-q", "-b", &branch, "--track", place, "origin/main"];
    if life.step(&top, &added, fate()) != End::Success {
        return life;
    }
    std::fs::write(worktree.join("d0/f0"), format!("{branch}\n")).expect("a file");
    for arguments in [
        &["add", "d0/f0"][..],
        &["commit", "-qm", &branch],
        &["fetch", "-q"],
        &["status", "--porcelain"],
    ] {
        if life.step(&worktree, arguments, fate()) != End::Success {
            return life;
        }
        life.is_committed |= arguments[0] == "commit";
    }
    // git does this even for pronto, and leaves locks when it is killed.
    life.is_pushed = life.step(&worktree, &["push", "-q", "origin", "HEAD"], None) == End::Success;
    life.step(&top, &["worktree", "remove", place], fate());
    life
}

/// Runs maintenance until `is_over`. Returns the failures.
fn maintain(scene: &Scene, is_over: &AtomicBool) -> (usize, Vec<String>) {
    let mut life = Life::new(0, 0);
    while scene.setting.maintains && !is_over.load(Relaxed) {
        for arguments in [
            &["repack", "-a", "-d", "-q"][..],
            &["gc", "--prune=now", "--quiet"],
            &["pack-refs", "--all"],
        ] {
            life.step(&scene.path("work"), arguments, None);
        }
    }
    (life.commands, life.failures)
}

/// Runs all processes and asserts that nothing is wrong afterwards.
fn check(name: &str, setting: Setting) {
    let (hands, rounds) = sizes(HANDS, ROUNDS);
    let scene = Scene::new(setting);
    let begun = Instant::now();
    let is_over = AtomicBool::new(false);
    let (lives, (maintained, mut failures)) = std::thread::scope(|scope| {
        let maintenance = scope.spawn(|| maintain(&scene, &is_over));
        let threads: Vec<_> = (0..hands)
            .map(|hand| {
                let scene = &scene;
                scope.spawn(move || {
                    let lives = (0..rounds).map(|round| live(scene, hand, round));
                    lives.collect::<Vec<_>>()
                })
            })
            .collect();
        let ended = threads.into_iter().map(std::thread::ScopedJoinHandle::join);
        let lives: Vec<Vec<Life>> = ended.map(|lives| lives.expect("no panic")).collect();
        is_over.store(true, Relaxed);
        let lives: Vec<Life> = lives.into_iter().flatten().collect();
        (lives, maintenance.join().expect("no panic"))
    });
    let seconds = begun.elapsed().as_secs_f64();
    failures.extend(lives.iter().flat_map(|life| life.failures.clone()));
    let commands = maintained + lives.iter().map(|life| life.commands).sum::<usize>();
    let kills: usize = lives.iter().map(|life| life.kills).sum();
    // Remains of killed processes do not block others.
    let last = Scene {
        setting: Setting::default(),
        ..scene
    };
    let mut after = live(&last, hands, 0);
    after.step(&last.path("work"), &["config", "a.b", "c"], None);
    after.step(&last.path("work"), &["pack-refs", "--all"], None);
    let mut wrong = scene::damages(&last, lives.iter().chain([&after]).map(Life::outcome));
    let locks = scene::locks(&last);
    println!(
        "{name}: {hands} x {rounds}: {commands} commands, {maintained} of maintenance, {kills} killed, {} failed; \
         {} failed afterwards, {} damages, {} locks left, {seconds:.0} s",
        failures.len(),
        after.failures.len(),
        wrong.len(),
        locks.len()
    );
    wrong.extend(failures);
    wrong.extend(after.failures);
    if kills == 0 {
        wrong.extend(locks.iter().map(|lock| format!("left: {}", lock.display())));
    }
    let shown = &wrong[..wrong.len().min(SHOWN)];
    assert!(wrong.is_empty(), "{name}: {}", shown.join("\n"));
}

impl Life {
    fn outcome(&self) -> scene::Outcome<'_> {
        scene::Outcome {
            branch: &self.branch,
            is_committed: self.is_committed,
            is_pushed: self.is_pushed,
        }
    }
}

#[test]
fn concurrent_worktrees_do_not_fail() {
    check("plain", Setting::default());
}

#[test]
fn concurrent_worktrees_with_monitors_do_not_fail() {
    let monitored = Setting {
        config: &[("core.fsmonitor", "true")],
        ..Setting::default()
    };
    check("fsmonitor", monitored);
}

#[test]
fn worktrees_do_not_fail_during_maintenance() {
    let maintained = Setting {
        maintains: true,
        ..Setting::default()
    };
    check("maintenance", maintained);
}

#[test]
fn killed_processes_do_not_block_others() {
    let killed = Setting {
        kills: true,
        ..Setting::default()
    };
    check("killed", killed);
}

#[test]
fn concurrent_worktrees_with_a_reftable_do_not_fail() {
    if test_support::git::reference().is_none() {
        report_missing_reference(&"no git that knows reftables");
        return;
    }
    let tables = Setting {
        refs: Refs::Reftable,
        ..Setting::default()
    };
    check("reftable", tables);
}

/// The number of processes, and the changes of each.
const EDITORS: usize = 6;
const CHANGES: usize = 5;

#[test]
fn no_change_of_the_configuration_is_lost() {
    let (editors, changes) = sizes(EDITORS, CHANGES);
    let scene = Scene::new(Setting::default());
    let top = scene.path("work");
    let begun = Instant::now();
    let edit = |editor: usize| {
        let mut life = Life::new(editor, 0);
        for at in 0..changes {
            let key = format!("editor{editor}.key{at}");
            life.step(&top, &["config", &key, "value"], None);
        }
        life.failures
    };
    let failures: Vec<String> = std::thread::scope(|scope| {
        let edit = &edit;
        let threads: Vec<_> = (0..editors)
            .map(|editor| scope.spawn(move || edit(editor)))
            .collect();
        let ended = threads.into_iter().map(std::thread::ScopedJoinHandle::join);
        ended.flat_map(|failed| failed.expect("no panic")).collect()
    });
    let mut listing = scene::git();
    let keys = run(listing
        .current_dir(&top)
        .args(["config", "--local", "--name-only", "--list"]));
    let found = keys.lines().filter(|key| key.starts_with("editor")).count();
    println!(
        "configuration: {editors} x {changes}: {} failed, {found} found, {:.0} s",
        failures.len(),
        begun.elapsed().as_secs_f64()
    );
    let shown = &failures[..failures.len().min(SHOWN)];
    assert!(failures.is_empty(), "{}", shown.join("\n"));
    assert_eq!(found, editors * changes);
}
