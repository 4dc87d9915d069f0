//! Random changes to a worktree that is monitored, with kills, restarts and more events than are kept:
//! with the monitor status says what it says without.

use std::path::{Path, PathBuf};
use std::time::Duration;

use super::monitor::{Monitor, compare, git, repository, told, truth};
use crate::support::{Scratch, process, pronto};

/// Changes of the storm, unless `PRONTO_STORM` says how many.
const STORM: u64 = 3_000;
/// Changes between two comparisons.
const BETWEEN: u64 = 40;
/// Files made while the monitor cannot read: more events than a queue holds by default.
const FLOOD: u32 = 9_000;

struct Random(u64);

impl Random {
    fn below(&mut self, limit: u64) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mixed = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        (mixed ^ (mixed >> 31)) % limit
    }

    fn directory(&mut self, top: &Path) -> PathBuf {
        let mut path = top.join(format!("d{}", self.below(7)));
        for letter in ["e", "f", "g"].iter().take(self.below(4) as usize) {
            path.push(format!("{letter}{}", self.below(4)));
        }
        path
    }

    fn file(&mut self, top: &Path) -> PathBuf {
        let name = match self.below(10) {
            0 => ".gitignore".to_owned(),
            1 => format!("x{}.o", self.below(3)),
            2 => "build".to_owned(),
            _ => format!("file{}", self.below(120)),
        };
        self.directory(top).join(name)
    }
}

/// One random change; what cannot be does not happen.
fn change(top: &Path, random: &mut Random) {
    match random.below(20) {
        0..6 => {
            let file = random.file(top);
            let _ = std::fs::create_dir_all(file.parent().expect("it is below"));
            let content = match file.ends_with(".gitignore") {
                true => ["file1*\n", "!x1.o\n", "g0/\n", ""][random.below(4) as usize].to_owned(),
                false => format!("{}\n", random.below(100)),
            };
            let _ = std::fs::write(file, content);
        }
        6..9 => drop(std::fs::remove_file(random.file(top))),
        9..12 => {
            let (from, to) = (random.file(top), random.file(top));
            let _ = std::fs::rename(from, to);
        }
        12..15 => {
            let (from, to) = (random.directory(top), random.directory(top));
            let _ = std::fs::rename(from, to);
        }
        15 => drop(std::fs::remove_dir_all(random.directory(top))),
        16 => drop(std::fs::create_dir_all(random.directory(top))),
        17 => {
            // Out of the worktree, and perhaps back from there.
            let outside = top.with_extension(format!("{}", random.below(2)));
            let inside = random.directory(top);
            if std::fs::rename(&inside, &outside).is_err() {
                let _ = std::fs::rename(&outside, &inside);
            }
        }
        18 => {
            let file = random.file(top);
            if let Ok(old) = std::fs::read(&file) {
                let _ = std::fs::write(&file, old);
            }
        }
        _ => {
            use std::os::unix::fs::PermissionsExt;
            let mode = if random.below(2) == 0 { 0o755 } else { 0o644 };
            let permissions = std::fs::Permissions::from_mode(mode);
            let file = random.file(top);
            if file.is_file() {
                let _ = std::fs::set_permissions(file, permissions);
            }
        }
    }
}

#[test]
fn a_storm_hides_nothing_from_the_monitor() {
    let scratch = Scratch::new();
    let top = repository(&scratch);
    storm(&top);
}

#[test]
fn a_storm_hides_nothing_from_a_mark_of_the_file_system() {
    if !rustix::process::geteuid().is_root() {
        println!("SKIPPED: marking a file system needs privileges");
        assert!(std::env::var_os("CI").is_none(), "CI may not skip");
        return;
    }
    let scratch = Scratch::new();
    let top = repository(&scratch);
    git(&top, &["config", "fsmonitor.source", "fanotify"]);
    let started = pronto()
        .args(["fsmonitor--daemon", "start"])
        .current_dir(&top)
        .output();
    if !started.expect("it starts").status.success() {
        println!("SKIPPED: this file system cannot be marked (that of the tests of watching can)");
        return;
    }
    let stopped = pronto()
        .args(["fsmonitor--daemon", "stop"])
        .current_dir(&top)
        .output();
    assert!(stopped.expect("it starts").status.success());
    storm(&top);
}

fn storm(top: &Path) {
    let storm = std::env::var("PRONTO_STORM")
        .ok()
        .and_then(|count| count.parse().ok());
    let storm: u64 = storm.unwrap_or(STORM);
    let peer = std::env::var_os("PRONTO_GIT_WITH_MONITOR").map(PathBuf::from);
    if peer.is_none() {
        println!("SKIPPED: asking pronto's monitor by git, which PRONTO_GIT_WITH_MONITOR names");
    }
    let mut monitor = Monitor::start(top);
    let mut random = Random(storm);
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
                // If it was moved away, and nothing of it is staged, there is nothing to add.
                let mut add = process("git");
                let output = add.arg("-C").arg(top).args(["add", "-A", "d1"]).output();
                drop(output.expect("git starts"));
            }
            3 => drop(git(top, &["-c", "core.fsmonitor=false", "reset", "-q"])),
            _ => {}
        }
        compare(top, at);
        if let Some(peer) = &peer {
            assert_eq!(
                told(top, peer, "-unormal"),
                truth(top, "-unormal"),
                "git, {at}"
            );
        }
    }
    // More events than are kept for who does not read them.
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
    /// Kills it without a warning, changes something meanwhile, and starts another one.
    fn restarted(monitor: Monitor, top: &Path) -> Monitor {
        drop(monitor);
        std::fs::write(top.join("meanwhile"), "x").expect("a file");
        Monitor::start(top)
    }
}
