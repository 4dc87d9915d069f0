//! `fsmonitor--daemon` and `core.fsmonitor`: status reports the same with and without a monitor.

use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, SystemTime};

use crate::support::{Scratch, process, pronto, pronto_path, stdout};
use crate::system_calls::strace_is_installed;

pub(crate) fn git(directory: &Path, arguments: &[&str]) -> String {
    let output = process("git")
        .arg("-C")
        .arg(directory)
        .args(arguments)
        .output();
    let output = output.expect("git starts");
    assert!(output.status.success(), "git {arguments:?}: {output:?}");
    stdout(&output)
}

/// A repository with some files and a monitor.
pub(crate) fn repository(scratch: &Scratch) -> PathBuf {
    let top = scratch.path().join("repository");
    git(scratch.path(), &["init", "-q", "-b", "main", "repository"]);
    git(&top, &["config", "user.name", "a"]);
    git(&top, &["config", "user.email", "a@x"]);
    for at in 0..120 {
        let directory = top.join(format!("d{}/e{}/f{}", at % 5, at % 3, at % 2));
        std::fs::create_dir_all(&directory).expect("a directory");
        std::fs::write(directory.join(format!("file{at}")), format!("{at}\n")).expect("a file");
    }
    std::fs::write(top.join(".gitignore"), "*.o\nbuild/\n").expect("a file");
    git(&top, &["add", "."]);
    git(&top, &["commit", "-qm", "one"]);
    git(&top, &["config", "core.untrackedCache", "true"]);
    git(&top, &["config", "core.fsmonitor", "true"]);
    // Not the events of the whole file system.
    git(&top, &["config", "fsmonitor.source", "inotify"]);
    top
}

/// The monitor, as a child that can be killed.
pub(crate) struct Monitor(Child);

impl Monitor {
    pub(crate) fn start(top: &Path) -> Monitor {
        let child = pronto()
            .args(["fsmonitor--daemon", "run"])
            .current_dir(top)
            .stdin(Stdio::null())
            .spawn()
            .expect("it starts");
        let monitor = Monitor(child);
        for _ in 0..2000 {
            let status = pronto()
                .args(["fsmonitor--daemon", "status"])
                .current_dir(top)
                .output();
            if status.expect("it starts").status.success() {
                return monitor;
            }
            std::thread::sleep(Duration::from_millis(5));
        }
        panic!("the monitor does not listen");
    }

    pub(crate) fn signal(&self, name: &str) {
        let id = self.0.id().to_string();
        let status = Command::new("kill").args([name, &id]).status();
        assert!(status.expect("kill is there").success());
    }
}

impl Drop for Monitor {
    fn drop(&mut self) {
        // It may have ended already.
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

const PLAIN: [&str; 5] = [
    "--no-optional-locks",
    "-c",
    "core.fsmonitor=false",
    "-c",
    "core.untrackedCache=false",
];

/// Returns the output without a monitor and without a cache.
pub(crate) fn truth(top: &Path, mode: &str) -> String {
    let status = ["status", "--porcelain", "--no-renames", mode];
    git(top, &[&PLAIN[..], &status].concat())
}

pub(crate) fn reported(top: &Path, program: &Path, mode: &str) -> String {
    let output = process(program)
        .args(["status", "--porcelain", "--no-renames", mode])
        .current_dir(top)
        .env("PRONTO_NO_FALLBACK", "1")
        .output()
        .expect("it starts");
    assert!(output.status.success(), "{output:?}");
    stdout(&output)
}

/// Sets the time of the index back, so that it may be written. The time never moves forward: stock
/// git compares seconds, and would then miss changes in the second of `add`.
fn settle(top: &Path) {
    // The index was not written for a while, so it may be written.
    let index = std::fs::File::options()
        .append(true)
        .open(top.join(".git/index"));
    let before = SystemTime::now() - Duration::from_secs(3);
    let index = index.expect("it is there");
    let metadata = index.metadata().expect("it is there");
    let is = metadata.modified().expect("the system says it");
    index.set_modified(before.min(is)).expect("it is ours");
}

pub(crate) fn compare(top: &Path, at: u64) {
    settle(top);
    for mode in ["-unormal", "-uall", "-uno", "-unormal"] {
        assert_eq!(
            reported(top, pronto_path(), mode),
            truth(top, mode),
            "change {at}, {mode}"
        );
    }
}

/// Sets the time of `path` back, so that it is old enough to be cached.
fn age(path: &Path, to: SystemTime) {
    let file = std::fs::File::open(path).expect("it is there");
    file.set_modified(to).expect("it is ours");
}

#[test]
fn untracked_directories_are_valid_only_after_a_complete_walk() {
    let scratch = Scratch::new();
    let top = repository(&scratch);
    let past = SystemTime::now() - Duration::from_secs(3600);
    let untracked = top.join("untracked");
    // In any order of the walk some come before the file.
    let below: Vec<PathBuf> = (0..20).map(|at| untracked.join(format!("s{at}"))).collect();
    for directory in &below {
        std::fs::create_dir_all(directory).expect("a directory");
        age(directory, past);
    }
    std::fs::write(untracked.join("file"), "x").expect("a file");
    age(&untracked, past);
    age(&top, past);
    let monitor = Monitor::start(&top);
    compare(&top, 0);
    compare(&top, 1);
    drop(monitor);
    for directory in &below {
        std::fs::write(directory.join("file"), "x").expect("a file");
        age(directory, past + Duration::from_secs(60));
    }
    let _monitor = Monitor::start(&top);
    compare(&top, 2);
    std::fs::remove_file(untracked.join("file")).expect("it is there");
    compare(&top, 3);
}

#[test]
fn without_changes_no_index_entry_is_read() {
    let scratch = Scratch::new();
    let top = repository(&scratch);
    age_all(&top);
    let _monitor = Monitor::start(&top);
    compare(&top, 0);
    compare(&top, 1);
    let trace = scratch.path().join("trace");
    let reads_entries = |mode: &str| {
        let _ = std::fs::remove_file(&trace);
        let output = process(pronto_path())
            .args(["status", mode])
            .current_dir(&top)
            .env("GIT_TRACE2_PERF", &trace)
            .output()
            .expect("it starts");
        assert!(output.status.success());
        let plain = [&PLAIN[..], &["status", mode]].concat();
        assert_eq!(stdout(&output), git(&top, &plain));
        let trace = std::fs::read_to_string(&trace).expect("it was written");
        trace.contains("do_read_index")
    };
    for mode in ["-uno", "-unormal", "-uall"] {
        assert!(!reads_entries(mode), "{mode}");
    }
    std::fs::write(top.join("new"), "x").expect("a file");
    assert!(reads_entries("-unormal"));
    std::fs::remove_file(top.join("new")).expect("it is there");
    git(&top, &["commit", "-q", "--allow-empty", "-m", "two"]);
    compare(&top, 2);
    compare(&top, 3);
    assert!(!reads_entries("-unormal"));
    // Another commit with another tree.
    git(&top, &["update-ref", "HEAD", "HEAD^{commit}"]);
    std::fs::write(top.join("d0/new"), "x").expect("a file");
    git(&top, &["add", "d0/new"]);
    compare(&top, 4);
    compare(&top, 5);
    assert!(reads_entries("-uno"));
}

#[test]
fn without_changes_no_directory_is_read_for_all_untracked_files() {
    for shown in ["normal", "all"] {
        for cached in ["true", "keep"] {
            let scratch = Scratch::new();
            let top = repository(&scratch);
            git(&top, &["config", "status.showUntrackedFiles", shown]);
            git(&top, &["config", "core.untrackedCache", cached]);
            for path in [
                "new",
                "d0/new",
                "d0/e0/new",
                "un/tracked/x",
                "un/tracked/y/z",
            ] {
                let path = top.join(path);
                let parent = path.parent().expect("it is below");
                std::fs::create_dir_all(parent).expect("a directory");
                std::fs::write(path, "x").expect("a file");
            }
            git(&top, &["init", "-q", "un/nested"]);
            age_all(&top);
            let _monitor = Monitor::start(&top);
            for at in 0..4 {
                compare(&top, at);
            }
            let trace = scratch.path().join("trace");
            let directories_read = || {
                let _ = std::fs::remove_file(&trace);
                let output = process(pronto_path())
                    .args(["status", "--porcelain", "-uall"])
                    .current_dir(&top)
                    .env("GIT_TRACE2_PERF", &trace)
                    .output()
                    .expect("it starts");
                assert_eq!(stdout(&output), truth(&top, "-uall"));
                let trace = std::fs::read_to_string(&trace).expect("it was written");
                let line = trace.lines().find(|line| line.contains("opendir"));
                let line = line.expect("it is in the trace");
                let count = line.rsplit(':').next().unwrap_or_default().trim();
                count.parse::<u32>().expect("it is a number")
            };
            assert_eq!(directories_read(), 0, "{shown}, {cached}");
            // Only what has changed is read, and the index may be another one.
            std::fs::write(top.join("un/tracked/y/new"), "x").expect("a file");
            assert!((1..=4).contains(&directories_read()), "{shown}, {cached}");
            git(&top, &["add", "d0/e0/new"]);
            compare(&top, 5);
            git(&top, &["rm", "-q", "--cached", "d0/e0/new"]);
            git(&top, &["add", "un/tracked/x"]);
            for at in 6..9 {
                compare(&top, at);
            }
            assert_eq!(directories_read(), 0, "{shown}, {cached}");
        }
    }
}

/// Puts all directories of a worktree in the past.
fn age_all(top: &Path) {
    let past = SystemTime::now() - Duration::from_secs(3600);
    let mut directories = vec![top.to_owned()];
    while let Some(directory) = directories.pop() {
        age(&directory, past);
        let below = std::fs::read_dir(&directory).expect("it is there");
        let below = below.map(|entry| entry.expect("it can be read").path());
        directories.extend(below.filter(|path| path.is_dir() && !path.ends_with(".git")));
    }
}

#[test]
fn a_partly_read_directory_is_read_again() {
    let scratch = Scratch::new();
    let top = repository(&scratch);
    let past = SystemTime::now() - Duration::from_secs(3600);
    let untracked = top.join("untracked");
    let below: Vec<PathBuf> = (0..6).map(|at| untracked.join(format!("s{at}"))).collect();
    for directory in &below {
        std::fs::create_dir_all(directory).expect("a directory");
        std::fs::write(directory.join("file"), "x").expect("a file");
        age(directory, past);
    }
    age(&untracked, past);
    age(&top, past);
    let monitored = Monitor::start(&top);
    // In either order; then also without a monitor.
    for (at, directory) in below.iter().enumerate() {
        compare(&top, at as u64);
        std::fs::remove_file(directory.join("file")).expect("it is there");
    }
    compare(&top, 6);
    git(&top, &["config", "core.fsmonitor", "false"]);
    drop(monitored);
    for (at, directory) in below.iter().enumerate() {
        std::fs::write(directory.join("file"), "x").expect("a file");
        age(directory, past + Duration::from_secs(60));
        compare(&top, 7 + at as u64);
    }
    for (at, directory) in below.iter().enumerate() {
        std::fs::remove_file(directory.join("file")).expect("it is there");
        age(directory, past + Duration::from_secs(120));
        compare(&top, 20 + at as u64);
    }
    // A directory that is no longer a repository.
    git(&top, &["init", "-q", "untracked/nested"]);
    age(&untracked.join("nested"), past);
    age(&untracked, past);
    compare(&top, 30);
    std::fs::remove_dir_all(untracked.join("nested/.git")).expect("it is there");
    age(&untracked.join("nested"), past);
    compare(&top, 31);
    std::fs::write(untracked.join("nested/file"), "x").expect("a file");
    age(&untracked.join("nested"), past);
    compare(&top, 32);
}

#[test]
fn a_status_of_some_paths_does_not_hide_changes_of_others() {
    let scratch = Scratch::new();
    let top = repository(&scratch);
    git(&top, &["config", "core.trustCtime", "false"]);
    let _monitor = Monitor::start(&top);
    compare(&top, 0);
    compare(&top, 1);
    let file = top.join("d0/e0/f0/file0");
    let (index, moment) = (
        top.join(".git/index"),
        SystemTime::now() - Duration::from_secs(60),
    );
    age(&file, moment);
    git(&top, &["add", "d0"]);
    settle(&top);
    assert_eq!(reported(&top, pronto_path(), "-uno"), "");
    // Only its content and the age of the index reveal that it has changed.
    std::fs::write(&file, "9\n").expect("a file");
    age(&file, moment);
    age(&index, moment);
    for number in 0..200 {
        std::fs::write(top.join(format!("d1/{number}")), "x").expect("a file");
    }
    let output = process(pronto_path())
        .args(["status", "--porcelain", "d1"])
        .current_dir(&top)
        .output();
    assert!(output.expect("it starts").status.success());
    assert!(truth(&top, "-uno").contains(" M d0/e0/f0/file0\n"));
    assert_eq!(reported(&top, pronto_path(), "-uno"), " M d0/e0/f0/file0\n");
}

#[test]
fn a_monitor_is_started_queried_and_stopped() {
    let scratch = Scratch::new();
    let top = repository(&scratch);
    let call = |command: &str| {
        let output = pronto()
            .args(["fsmonitor--daemon", command])
            .current_dir(&top)
            .output();
        output.expect("it starts")
    };
    let shown = top.canonicalize().expect("it is there");
    let shown = shown.display();
    let status = call("status");
    assert_eq!(status.status.code(), Some(1));
    assert_eq!(
        stdout(&status),
        format!("fsmonitor-daemon is not watching '{shown}'\n")
    );
    assert_eq!(call("stop").status.code(), Some(128));
    // Status starts the monitor.
    compare(&top, 0);
    let status = call("status");
    assert_eq!(
        stdout(&status),
        format!("fsmonitor-daemon is watching '{shown}'\n")
    );
    let second = call("start");
    assert_eq!(second.status.code(), Some(128));
    assert!(crate::support::stderr(&second).contains("already running"));
    std::fs::write(top.join("d0/new"), "x").expect("a file");
    compare(&top, 1);
    assert!(call("stop").status.success());
    assert!(!top.join(".git/fsmonitor--daemon.ipc").exists());
}

#[test]
fn hooks_are_called_in_both_versions() {
    for version in [1, 2] {
        let scratch = Scratch::new();
        let top = repository(&scratch);
        // The hook names one file. A second changed file is not reported, which shows that the hook
        // is used.
        let token = if version == 2 {
            "printf 'token\\0'\n"
        } else {
            ""
        };
        let script = format!(
            "#!/bin/sh\necho \"$@\" >>{}/asked\n[ \"$1\" = {version} ] || exit 1\n{token}printf 'd0/e0/f0/file0\\0'\n",
            scratch.path().display()
        );
        let hook = scratch.script("hooks", "monitor", &script);
        git(&top, &["config", "core.fsmonitor", &hook.to_string_lossy()]);
        settle(&top);
        assert_eq!(reported(&top, pronto_path(), "-uno"), "");
        std::fs::write(top.join("d0/e0/f0/file0"), "changed\n").expect("a file");
        std::fs::write(top.join("d1/e1/f1/file1"), "changed\n").expect("a file");
        assert_eq!(reported(&top, pronto_path(), "-uno"), " M d0/e0/f0/file0\n");
        let asked = std::fs::read_to_string(scratch.path().join("asked")).expect("it was asked");
        assert!(
            asked
                .lines()
                .any(|line| line.starts_with(&format!("{version} "))),
            "{asked}"
        );
        assert_eq!(asked.contains("2 token"), version == 2, "{asked}");
    }
}

#[test]
fn unchanged_files_are_not_read_with_a_monitor() {
    if !strace_is_installed() {
        return;
    }
    let scratch = Scratch::new();
    let top = repository(&scratch);
    std::fs::create_dir_all(top.join("d0/untracked/deep")).expect("a directory");
    std::fs::write(top.join("d0/untracked/deep/file"), "x").expect("a file");
    std::fs::create_dir(top.join("nested")).expect("a directory");
    std::fs::write(top.join("nested/file"), "x").expect("a file");
    let _monitor = Monitor::start(&top);
    std::thread::sleep(Duration::from_millis(1100));
    compare(&top, 0);
    // A known directory becomes a repository.
    git(&top, &["init", "-q", "nested"]);
    std::thread::sleep(Duration::from_millis(1100));
    compare(&top, 0);
    compare(&top, 0);
    let looked = |calls: &str| {
        let log = scratch.path().join("log");
        let status = process("strace")
            .args(["-f", "-e", calls, "-o"])
            .arg(&log)
            .arg(pronto_path())
            .args(["status", "--porcelain"])
            .current_dir(&top)
            .output();
        assert!(status.expect("strace starts").status.success());
        let log = std::fs::read_to_string(log).expect("strace wrote it");
        let below = |line: &&str| {
            ["\"d", "\"file", "\"untracked", "\"deep", "\"nested"]
                .iter()
                .any(|name| line.contains(name))
        };
        log.lines()
            .filter(below)
            .map(str::to_owned)
            .collect::<Vec<_>>()
    };
    let calls = "trace=%stat,%lstat,newfstatat,statx,open,openat,openat2";
    assert_eq!(looked(calls), Vec::<String>::new());
    std::fs::write(top.join("d1/e1/f1/file1"), "changed\n").expect("a file");
    let after = looked(calls);
    assert!(
        after.len() <= 6 && after.iter().any(|line| line.contains("\"file1\"")),
        "{after:?}"
    );
}
