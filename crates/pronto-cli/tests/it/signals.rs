//! Signals during a command, and their exit codes and cleanup.

use std::os::unix::process::ExitStatusExt;
use std::path::Path;
use std::process::{Child, Stdio};
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process};

use crate::support::{Scratch, interruptible_pronto, process};

/// A child that is killed when this is dropped.
struct Running(Child);

impl Drop for Running {
    fn drop(&mut self) {
        // It has ended already if the test succeeded.
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

fn source(scratch: &Scratch) {
    let git = |arguments: &[&str]| {
        let made = process("git")
            .args(arguments)
            .current_dir(scratch.path())
            .status();
        assert!(made.expect("git runs").success());
    };
    git(&["init", "-q", "source"]);
    git(&[
        "-C",
        "source",
        "-c",
        "user.name=a",
        "-c",
        "user.email=a@b",
        "commit",
        "-q",
        "--allow-empty",
        "-m",
        "one",
    ]);
}

fn entries(directory: &Path) -> usize {
    std::fs::read_dir(directory).expect("a directory").count()
}

#[test]
fn an_interrupted_clone_leaves_nothing_and_dies_of_the_signal() {
    let scratch = Scratch::new();
    source(&scratch);
    // A server that lists its refs and then delays the pack.
    let slow = scratch.script(
        "bin",
        "slow",
        "#!/bin/sh\ntouch \"$0.asked\"; exec sleep 20\n",
    );
    let text = format!(
        "#!/bin/sh\nexec git -c uploadpack.packObjectsHook='{}' upload-pack source\n",
        slow.display()
    );
    let ssh = scratch.script("bin", "ssh", &text);
    let asked = slow.with_extension("asked");
    for signal in [Signal::INT, Signal::TERM] {
        let before = entries(scratch.path());
        let child = interruptible_pronto()
            .args(["clone", "-q", "ssh://host/path", "made"])
            .env("GIT_SSH", &ssh)
            .env("GIT_SSH_VARIANT", "simple")
            .env("PRONTO_NO_FALLBACK", "1")
            .current_dir(scratch.path())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .expect("it runs");
        let mut running = Running(child);
        let begun = Instant::now();
        while !asked.exists() {
            assert!(
                begun.elapsed() < Duration::from_secs(20),
                "the clone asks for a pack"
            );
            std::thread::sleep(Duration::from_millis(2));
        }
        assert!(
            entries(scratch.path()) > before,
            "there is something to clean up"
        );
        let process = i32::try_from(running.0.id()).ok().and_then(Pid::from_raw);
        kill_process(process.expect("a process"), signal).expect("it runs still");
        let status = running.0.wait().expect("it ends");
        assert_eq!(status.signal(), Some(signal.as_raw()));
        assert_eq!(entries(scratch.path()), before);
        std::fs::remove_file(&asked).expect("it was there");
    }
}
