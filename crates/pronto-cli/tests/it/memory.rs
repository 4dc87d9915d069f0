//! Memory limits of commands: they run under a limit for their data (`ulimit -d`).

use std::fs::File;
use std::path::Path;
use std::process::Output;

use crate::support::{Scratch, process, pronto, pronto_path, stderr, stdout};

/// `pronto` with `arguments`, with `limit_mib` for itself and a stack for each thread.
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
    // New ones are deflated at once; those that are tracked are digested first.
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
