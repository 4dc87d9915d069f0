//! Maintenance: commands do not wait for it, only one process runs it at a time, and a killed
//! process does no harm.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use test_support::{Need, lacks};

use crate::support::{self, Scratch, path_with, process, pronto_path, stderr};

/// The time limit for an effect of another process.
const PATIENCE: Duration = Duration::from_secs(60);

fn git(directory: &Path, arguments: &[&str]) {
    let manual = ["-c", "maintenance.auto=false"];
    support::git(directory, &[&manual[..], arguments].concat());
}

fn pronto(directory: &Path) -> Command {
    let mut command = process(pronto_path());
    command
        .current_dir(directory)
        .env("HOME", directory)
        .env("GIT_AUTHOR_NAME", "a")
        .env("GIT_AUTHOR_EMAIL", "a@x")
        .env("GIT_COMMITTER_NAME", "a")
        .env("GIT_COMMITTER_EMAIL", "a@x");
    command
}

/// Creates a repository in which maintenance runs only `task`.
fn repository(scratch: &Scratch, task: &str) -> PathBuf {
    git(scratch.path(), &["init", "-q", "-b", "main", "repository"]);
    let top = scratch.path().join("repository");
    git(&top, &["config", "maintenance.strategy", "gc"]);
    git(&top, &["config", "maintenance.gc.enabled", "false"]);
    git(
        &top,
        &["config", &format!("maintenance.{task}.enabled"), "true"],
    );
    top
}

/// Like [`repository`], with `gc` due and a hook with this text.
fn with_hook(scratch: &Scratch, text: &str) -> PathBuf {
    let top = repository(scratch, "gc");
    for name in ["one", "two"] {
        git(&top, &["commit", "-q", "--allow-empty", "-m", name]);
        git(&top, &["repack", "-dq"]);
    }
    git(&top, &["config", "gc.autoPackLimit", "1"]);
    scratch.script("repository/.git/hooks", "pre-auto-gc", text);
    top
}

/// Creates a commit with the program under test.
fn commit(top: &Path, change: impl FnOnce(&mut Command)) {
    let file = top.join("file");
    let content = fs::read(&file).unwrap_or_default();
    fs::write(&file, [&content[..], b"x"].concat()).expect("a file");
    git(top, &["add", "file"]);
    let mut command = pronto(top);
    command.args(["commit", "-q", "-m", "x"]);
    change(&mut command);
    let done = command.output().expect("it starts");
    assert!(done.status.success(), "{done:?}");
}

fn wait_for(what: &str, mut is_so: impl FnMut() -> bool) {
    let begun = Instant::now();
    while !is_so() {
        assert!(begun.elapsed() < PATIENCE, "{what}");
        std::thread::sleep(Duration::from_millis(5));
    }
}

#[test]
fn automatic_maintenance_needs_no_git() {
    let scratch = Scratch::new();
    let top = repository(&scratch, "commit-graph");
    git(&top, &["config", "maintenance.commit-graph.auto", "1"]);
    git(&top, &["config", "maintenance.autoDetach", "false"]);
    let mark = scratch.path().join("ran");
    let trap = format!("#!/bin/sh\n: >'{}'\n", mark.display());
    let evil = scratch.script("evil", "git", &trap);
    commit(&top, |command| {
        command
            .env("PATH", path_with(evil.parent().expect("it has one")))
            .env("PRONTO_NO_FALLBACK", "1");
    });
    let chain = top.join(".git/objects/info/commit-graphs/commit-graph-chain");
    assert!(chain.exists() && !mark.exists());
}

#[test]
fn fetches_in_advance_need_no_git() {
    let scratch = Scratch::new();
    let top = repository(&scratch, "commit-graph");
    git(&top, &["commit", "-q", "--allow-empty", "-m", "one"]);
    let address = format!("file://{}", top.display());
    let copy = scratch.path().join("copy");
    git(
        &top,
        &[
            "clone",
            "-q",
            "--bare",
            &address,
            &copy.display().to_string(),
        ],
    );
    git(
        &copy,
        &[
            "config",
            "remote.origin.fetch",
            "+refs/heads/*:refs/remotes/origin/*",
        ],
    );
    let mark = scratch.path().join("ran");
    let trap = format!("#!/bin/sh\n: >'{}'\n", mark.display());
    let evil = scratch.script("evil", "git", &trap);
    let run = |arguments: &[&str]| {
        let mut command = pronto(&copy);
        command
            .args(arguments)
            .env("PATH", path_with(evil.parent().expect("it has one")))
            .env("PRONTO_NO_FALLBACK", "1");
        let done = command.output().expect("it starts");
        assert!(done.status.success(), "{done:?}");
    };
    run(&["maintenance", "run", "--task=prefetch"]);
    let stored = "refs/prefetch/remotes/origin/main";
    git(&copy, &["show-ref", "--verify", "-q", stored]);
    assert!(!copy.join("refs/remotes").exists());
    run(&[
        "fetch",
        "-q",
        "--write-commit-graph",
        "--no-auto-maintenance",
    ]);
    let chain = copy.join("objects/info/commit-graphs/commit-graph-chain");
    assert!(chain.exists() && !mark.exists());
}

#[test]
fn commands_do_not_wait_for_maintenance() {
    let scratch = Scratch::new();
    let fifo = |name: &str| {
        let path = scratch.path().join(name);
        let made = process("mkfifo").arg(&path).status();
        assert!(made.expect("mkfifo starts").success());
        path
    };
    let (go, ended) = (fifo("go"), fifo("ended"));
    // The first maintenance ends when this test allows it, after the command that started it.
    let hook = format!(
        "#!/bin/sh\ntest -e done && exit 1\n: >done\nread line <'{}'\n\
         echo \"$line $(cut -d' ' -f5,6,19 /proc/self/stat)\" >'{}'\nexit 1\n",
        go.display(),
        ended.display()
    );
    let top = with_hook(&scratch, &hook);
    commit(&top, |_| {});
    fs::write(&go, "now\n").expect("maintenance waits");
    let said = fs::read_to_string(&ended).expect("maintenance ends");
    let words: Vec<&str> = said.split_whitespace().collect();
    assert_eq!((words[0], words[3]), ("now", "10"), "{said}");
    assert_eq!(words[1], words[2], "it leads a session of its own: {said}");
}

#[test]
fn only_one_maintenance_runs_at_a_time() {
    let scratch = Scratch::new();
    let place = scratch.path().display();
    let hook = format!(
        "#!/bin/sh\necho >>'{place}/calls'\nmkdir '{place}/at-it' || echo >>'{place}/twice'\n\
         sleep 0.1\nrmdir '{place}/at-it'\nexit 1\n"
    );
    let top = with_hook(&scratch, &hook);
    let start = |_| {
        let mut command = pronto(&top);
        command.args(["maintenance", "run", "--auto", "--quiet"]);
        command.spawn().expect("it starts")
    };
    for mut child in (0..16).map(start).collect::<Vec<_>>() {
        assert!(child.wait().expect("it ends").success());
    }
    assert!(scratch.path().join("calls").exists());
    assert!(!scratch.path().join("twice").exists());
    assert!(!top.join(".git/objects/maintenance.lock").exists());
}

#[test]
fn killed_maintenance_does_not_stop_the_next() {
    let scratch = Scratch::new();
    let mark = scratch.path().join("hook");
    let hook = format!("#!/bin/sh\n: >'{}'\nsleep 1000\n", mark.display());
    let top = with_hook(&scratch, &hook);
    let mut killed = pronto(&top)
        .args(["maintenance", "run", "--auto"])
        .process_group(0)
        .spawn()
        .expect("it starts");
    wait_for("the hook runs", || mark.exists());
    let lock = top.join(".git/objects/maintenance.lock");
    let mode = fs::metadata(&lock)
        .expect("it is held")
        .permissions()
        .mode();
    let group = format!("-{}", killed.id());
    let kill = |signal| {
        let mut kill = process("kill");
        kill.args([signal, "--", &group]).stderr(Stdio::null());
        kill.status().expect("kill starts").success()
    };
    assert!(kill("-9"));
    killed.wait().expect("it ends");
    // The hook has the lock, too.
    wait_for("the processes of the group end", || !kill("-0"));
    assert!(lock.exists(), "nobody could remove it");
    if mode & 0o1000 == 0 {
        lacks!(Need::NamelessFiles, "its file has a name");
    }
    let next = pronto(&top)
        .args(["maintenance", "run", "--no-quiet", "--task=worktree-prune"])
        .output()
        .expect("it starts");
    assert!(next.status.success(), "{next:?}");
    assert_eq!(stderr(&next), "");
    assert!(!lock.exists());
}

#[test]
fn ineffective_maintenance_is_not_repeated_immediately() {
    let scratch = Scratch::new();
    // The first run packs loose objects, and the second one removes them.
    let top = repository(&scratch, "loose-objects");
    git(&top, &["config", "maintenance.loose-objects.auto", "1"]);
    // Each commit has a trace of its own: maintenance in the background still writes to that of the first.
    let started = |name: &str| {
        let trace = scratch.path().join(name);
        commit(&top, |command| {
            command.env("GIT_TRACE2_EVENT", &trace);
        });
        let said = fs::read_to_string(trace).expect("a trace");
        said.contains("\"maintenance\"")
    };
    assert!(started("trace-1"));
    let tried = top.join(".git/pronto-maintenance/loose-objects");
    let log = top.join(".git/gc.log");
    wait_for("it is remembered", || tried.exists() || log.exists());
    wait_for("it ends", || !top.join(".git/gc.log.lock").exists());
    assert!(!started("trace-2"));
    // An explicit call runs it.
    let done = pronto(&top)
        .args(["maintenance", "is-needed", "--auto"])
        .status();
    assert!(done.expect("it starts").success());
}

#[test]
fn a_failure_is_not_repeated_by_each_command() {
    let scratch = Scratch::new();
    let top = repository(&scratch, "commit-graph");
    git(&top, &["config", "maintenance.commit-graph.auto", "1"]);
    fs::create_dir_all(top.join(".git/objects/info")).expect("a directory");
    // Nothing can be written there.
    fs::write(top.join(".git/objects/info/commit-graphs"), "").expect("a file");
    commit(&top, |_| {});
    let log = top.join(".git/gc.log");
    wait_for("it fails", || log.exists());
    let said = fs::read_to_string(&log).expect("a log");
    assert!(said.contains("task 'commit-graph' failed"), "{said}");
    let trace = scratch.path().join("trace");
    commit(&top, |command| {
        command.env("GIT_TRACE2_EVENT", &trace);
    });
    let said = fs::read_to_string(&trace).expect("a trace");
    assert!(!said.contains("\"maintenance\""), "{said}");
}

/// Garbage collection is killed three times, or as often as `PRONTO_TEST_KILLS` says.
#[test]
fn killed_garbage_collection_loses_nothing() {
    let kills = std::env::var("PRONTO_TEST_KILLS");
    let kills: u64 = kills.map_or(3, |kills| kills.parse().expect("a number"));
    let scratch = Scratch::new();
    git(scratch.path(), &["init", "-q", "-b", "main", "repository"]);
    let top = scratch.path().join("repository");
    for round in 0..kills {
        for _ in 0..6 {
            // pronto takes over the locks of a killed process, and git would refuse.
            commit(&top, |command| {
                command
                    .env("GIT_CONFIG_COUNT", "1")
                    .env("GIT_CONFIG_KEY_0", "maintenance.auto")
                    .env("GIT_CONFIG_VALUE_0", "false");
            });
        }
        git(&top, &["branch", &format!("b{round}")]);
        let mut child = pronto(&top)
            .args(["gc", "--quiet"])
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .process_group(0)
            .spawn()
            .expect("it starts");
        std::thread::sleep(Duration::from_millis(round * 37 % 150));
        let group = format!("-{}", child.id());
        // It may have ended.
        let _ = process("kill")
            .args(["-9", "--", &group])
            .stderr(Stdio::null())
            .status();
        child.wait().expect("it ends");
        git(&top, &["fsck", "--full", "--no-progress"]);
    }
    let _ = fs::remove_file(top.join(".git/packed-refs.lock"));
    let done = pronto(&top).args(["gc", "--quiet", "--force"]).output();
    let done = done.expect("it starts");
    assert!(done.status.success(), "{done:?}");
    git(&top, &["fsck", "--full", "--no-progress"]);
    let count = process("git")
        .current_dir(&top)
        .args(["rev-list", "--count", "--all"])
        .output()
        .expect("git starts");
    assert_eq!(count.stdout, format!("{}\n", kills * 6).into_bytes());
}
