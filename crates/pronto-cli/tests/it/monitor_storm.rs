//! Random changes in a monitored worktree, with kills, restarts and overflows of the event queue.
//! Status reports the same with and without the monitor.

use std::path::{Path, PathBuf};
use std::time::Duration;

use test_support::git::reference;
use test_support::{Need, Random, lacks, need, report_missing_reference};

use super::monitor::{Monitor, compare, git, reported, repository, truth};
use crate::support::{Scratch, process, pronto, stdout};

/// The number of changes, unless `PRONTO_STORM` is set.
const STORM: u64 = 3_000;
/// The number of changes between two comparisons.
const BETWEEN: u64 = 40;
/// The number of files created while the monitor is stopped: more events than the default queue
/// holds.
const FLOOD: u32 = 9_000;

fn directory(random: &mut Random, top: &Path) -> PathBuf {
    let mut path = top.join(format!("d{}", random.below(7)));
    for letter in ["e", "f", "g"].iter().take(random.index(4)) {
        path.push(format!("{letter}{}", random.below(4)));
    }
    path
}

fn file(random: &mut Random, top: &Path) -> PathBuf {
    let name = match random.below(10) {
        0 => ".gitignore".to_owned(),
        1 => format!("x{}.o", random.below(3)),
        2 => "build".to_owned(),
        _ => format!("file{}", random.below(120)),
    };
    directory(random, top).join(name)
}

/// Makes one random change, if it is possible.
fn change(top: &Path, random: &mut Random) {
    match random.below(20) {
        0..6 => {
            let file = file(random, top);
            let _ = std::fs::create_dir_all(file.parent().expect("it is below"));
            let content = match file.ends_with(".gitignore") {
                true => ["file1*\n", "!x1.o\n", "g0/\n", ""][random.below(4) as usize].to_owned(),
                false => format!("{}\n", random.below(100)),
            };
            let _ = std::fs::write(file, content);
        }
        6..9 => drop(std::fs::remove_file(file(random, top))),
        9..12 => {
            let (from, to) = (file(random, top), file(random, top));
            let _ = std::fs::rename(from, to);
        }
        12..15 => {
            let (from, to) = (directory(random, top), directory(random, top));
            let _ = std::fs::rename(from, to);
        }
        15 => drop(std::fs::remove_dir_all(directory(random, top))),
        16 => drop(std::fs::create_dir_all(directory(random, top))),
        17 => {
            // Out of the worktree, and possibly back.
            let outside = top.with_extension(format!("{}", random.below(2)));
            let inside = directory(random, top);
            if std::fs::rename(&inside, &outside).is_err() {
                let _ = std::fs::rename(&outside, &inside);
            }
        }
        18 => {
            let file = file(random, top);
            if let Ok(old) = std::fs::read(&file) {
                let _ = std::fs::write(&file, old);
            }
        }
        _ => {
            use std::os::unix::fs::PermissionsExt;
            let mode = if random.below(2) == 0 { 0o755 } else { 0o644 };
            let permissions = std::fs::Permissions::from_mode(mode);
            let file = file(random, top);
            if file.is_file() {
                let _ = std::fs::set_permissions(file, permissions);
            }
        }
    }
}

#[test]
fn the_monitor_misses_no_change() {
    let scratch = Scratch::new();
    let top = repository(&scratch);
    storm(&top);
}

#[test]
fn a_cache_of_all_files_misses_no_change() {
    let scratch = Scratch::new();
    let top = repository(&scratch);
    git(&top, &["config", "status.showUntrackedFiles", "all"]);
    storm(&top);
}

#[test]
fn a_file_system_mark_misses_no_change() {
    need!(Need::Root);
    Need::Fanotify.note();
    let started = |scratch: Scratch| {
        let top = repository(&scratch);
        git(&top, &["config", "fsmonitor.source", "fanotify"]);
        let mut start = pronto();
        let start = start.args(["fsmonitor--daemon", "start"]).current_dir(&top);
        let is_marked = start.output().expect("it starts").status.success();
        is_marked.then_some((scratch, top))
    };
    // Not every file system can be marked by fanotify. tmpfs can.
    let memory = || Scratch::within(Path::new("/dev/shm")).ok();
    let place = started(Scratch::new()).or_else(|| started(memory()?));
    let Some((_scratch, top)) = place else {
        lacks!(Need::Fanotify, "neither TMPDIR nor /dev/shm can be marked");
    };
    let stopped = pronto()
        .args(["fsmonitor--daemon", "stop"])
        .current_dir(&top)
        .output();
    assert!(stopped.expect("it starts").status.success());
    storm(&top);
}

/// A git that can query a monitor.
fn git_with_monitor() -> Option<&'static Path> {
    let git = reference()?;
    let version = process(git).args(["version", "--build-options"]).output();
    let has_monitor = stdout(&version.expect("git starts")).contains("fsmonitor--daemon");
    has_monitor.then_some(git)
}

fn storm(top: &Path) {
    let storm = std::env::var("PRONTO_STORM")
        .ok()
        .and_then(|count| count.parse().ok());
    let storm: u64 = storm.unwrap_or(STORM);
    let peer = git_with_monitor();
    if peer.is_none() {
        report_missing_reference(&"no git that asks monitors");
    }
    let mut monitor = Monitor::start(top);
    let mut random = Random::new(storm);
    for at in 1..=storm {
        change(top, &mut random);
        if at % BETWEEN != 0 {
            continue;
        }
        match random.below(12) {
            0 => {
                monitor = Monitor::restarted(monitor, top);
            }
            1 => std::thread::sleep(Duration::from_millis(1100)),
            2 => {
                // If it was moved away and is not staged, there is nothing to add.
                let mut add = process("git");
                let output = add.arg("-C").arg(top).args(["add", "-A", "d1"]).output();
                drop(output.expect("git starts"));
            }
            3 => drop(git(top, &["-c", "core.fsmonitor=false", "reset", "-q"])),
            _ => {}
        }
        compare(top, at);
        if let Some(peer) = peer {
            assert_eq!(
                reported(top, peer, "-unormal"),
                truth(top, "-unormal"),
                "git, {at}"
            );
        }
    }
    // More events than the queue keeps.
    compare(top, storm);
    monitor.signal("-STOP");
    let flood = top.join("flood");
    std::fs::create_dir_all(&flood).expect("a directory");
    for number in 0..FLOOD {
        let path = flood.join(format!("{number}"));
        std::fs::write(&path, "x").expect("a file");
        std::fs::remove_file(&path).expect("it is there");
    }
    std::fs::write(top.join("d0/after"), "the flood").expect("a file");
    std::fs::create_dir_all(top.join("d0/later/on")).expect("a directory");
    monitor.signal("-CONT");
    std::fs::write(top.join("d0/later/on/file"), "x").expect("a file");
    compare(top, storm + 1);
    std::fs::write(top.join("d0/later/on/another"), "x").expect("a file");
    compare(top, storm + 2);
}

impl Monitor {
    /// Kills the monitor, changes files, and starts another monitor.
    fn restarted(monitor: Monitor, top: &Path) -> Monitor {
        drop(monitor);
        std::fs::write(top.join("meanwhile"), "x").expect("a file");
        Monitor::start(top)
    }
}
