//! The memory of commands, which run under a limit of their data segment (`ulimit -d`).

use std::fs::File;
use std::io::Write as _;
use std::path::Path;
use std::process::{Child, Output, Stdio};
use std::time::Duration;

use crate::support::{Scratch, process, pronto, pronto_path, stderr, stdout};

/// Runs `pronto` with `arguments` and a limit of `limit_mib` plus a stack for each thread.
fn limited(directory: &Path, limit_mib: usize, arguments: &[&str]) -> Output {
    let cores = std::thread::available_parallelism().map_or(1, usize::from);
    let limit_kib = (limit_mib + 4 * cores) << 10;
    let output = process("sh")
        .current_dir(directory)
        .arg("-c")
        .arg(format!("ulimit -d {limit_kib} && exec \"$0\" \"$@\""))
        .arg(pronto_path())
        .args(arguments)
        .output();
    output.expect("a shell")
}

#[test]
fn add_streams_large_files() {
    let scratch = Scratch::new();
    let top = scratch.path();
    let init = pronto().current_dir(top).args(["init", "-q"]).status();
    assert!(init.expect("it runs").success());
    let large = |name: &str, mib: u64| {
        let file = File::create(top.join(name)).expect("a file");
        file.set_len(mib << 20).expect("it can grow");
    };
    for number in 0..4 {
        large(&format!("large{number}"), 96 + number);
    }
    // New files are deflated immediately, tracked ones are hashed first.
    for round in 0..3 {
        let added = limited(top, 48, &["add", "."]);
        assert!(added.status.success(), "{}", stderr(&added));
        let mut count = process("find");
        count.current_dir(top).arg(".git/objects");
        let found = count.args(["-type", "f"]).output().expect("find runs");
        assert_eq!(stdout(&found).lines().count(), 4 + usize::from(round == 2));
        if round == 1 {
            large("large0", 64);
        } else {
            // Its stat data change, its content does not.
            File::open(top.join("large1"))
                .and_then(|file| file.set_modified(std::time::UNIX_EPOCH))
                .expect("it can be touched");
        }
    }
    let fsck = process("git")
        .current_dir(top)
        .args(["fsck", "--strict"])
        .output();
    assert!(fsck.expect("git runs").status.success());
}

/// The anonymous memory of a receiver, in MiB, whatever the history.
const RECEIVER_MIB: u64 = 128;

/// Makes a history of `commits` commits that change deep directories.
fn history(top: &Path, commits: u32) {
    let mut stream = String::new();
    for commit in 0..commits {
        stream += "commit refs/heads/main\n";
        stream += &format!(
            "committer C <c@example.com> {} +0000\n",
            1_700_000_000 + commit
        );
        stream += "data 1\nx\n";
        for file in 0..3 {
            let path = format!("d{}/e{}/f{file}", commit % 31, commit % 7);
            let content = format!("{commit}\n").repeat(40);
            stream += &format!(
                "M 100644 inline {path}\ndata {}\n{content}\n",
                content.len()
            );
        }
    }
    let mut import = process("git")
        .current_dir(top)
        .args(["fast-import", "--quiet"])
        .stdin(Stdio::piped())
        .spawn()
        .expect("git starts");
    let mut input = import.stdin.take().expect("it is piped");
    input.write_all(stream.as_bytes()).expect("git reads it");
    drop(input);
    assert!(import.wait().expect("it ends").success());
}

/// The most anonymous memory that `child` has until it ends, in bytes.
fn peak_of(child: &mut Child) -> u64 {
    let path = format!("/proc/{}/status", child.id());
    let mut peak = 0;
    while child.try_wait().expect("it is ours").is_none() {
        let status = std::fs::read_to_string(&path).unwrap_or_default();
        let line = status
            .lines()
            .find_map(|line| line.strip_prefix("RssAnon:"));
        let kib = line.and_then(|line| line.trim().strip_suffix(" kB"));
        let kib: u64 = kib.and_then(|kib| kib.parse().ok()).unwrap_or(0);
        peak = peak.max(kib << 10);
        std::thread::sleep(Duration::from_millis(2));
    }
    peak
}

#[test]
fn sync_receives_within_its_memory() {
    let scratch = Scratch::new();
    let init = |name: &str| {
        let path = scratch.path().join(name);
        let init = pronto().args(["init", "-q", "--bare"]).arg(&path).status();
        assert!(init.expect("it runs").success());
        path
    };
    let source = match std::env::var_os("PRONTO_TEST_HISTORY") {
        Some(source) => {
            let copy = scratch.path().join("source");
            let mut clone = process("git");
            clone
                .args(["clone", "-q", "--bare", "--shared"])
                .arg(source)
                .arg(&copy);
            assert!(clone.status().expect("git runs").success());
            copy
        }
        None => {
            let source = init("source");
            history(&source, 4_000);
            source
        }
    };
    let copy = init("copy");
    let mut sync = pronto()
        .current_dir(&copy)
        .args(["sync", "-q", "--pull", "--name", "source"])
        .arg(&source)
        .spawn()
        .expect("it starts");
    let peak = peak_of(&mut sync);
    assert!(sync.wait().expect("it ended").success());
    assert!(peak > 0 && peak <= RECEIVER_MIB << 20, "{} MiB", peak >> 20);
    let count = |top: &Path| {
        let mut list = process("git");
        list.current_dir(top)
            .args(["rev-list", "--all", "--objects"]);
        stdout(&list.output().expect("git runs")).lines().count()
    };
    assert_eq!(count(&copy), count(&source));
}
