//! The positions of the entries of a large index, which status stores in a file beside the index.
//! Stock git ignores that file.

use std::path::Path;
use std::time::{Duration, SystemTime};

use crate::support::{Scratch, pronto, run, stderr, stdout};

const FILES: usize = 4200;

fn set_time(path: &Path, seconds_ago: u64) {
    let time = SystemTime::now() - Duration::from_secs(seconds_ago);
    let file = std::fs::File::options().write(true).open(path);
    let file = file.expect("it is there");
    file.set_modified(time).expect("the time is set");
}

fn status(top: &Path, locks: &str) -> String {
    let mut command = pronto();
    command.current_dir(top).args(["status", "--porcelain"]);
    let output = command.env("GIT_OPTIONAL_LOCKS", locks).output();
    let output = output.expect("it runs");
    assert!(output.status.success(), "{}", stderr(&output));
    stdout(&output)
}

#[test]
fn status_stores_lengths_and_reports_the_same() {
    let scratch = Scratch::new();
    let top = scratch.path();
    run("git", top, &["init", "-q"]);
    for number in 0..FILES {
        let directory = top.join(format!("d{:02}", number % 40));
        std::fs::create_dir_all(&directory).expect("a directory");
        let file = directory.join(format!("f{number}"));
        std::fs::write(&file, "1\n").expect("a file");
        set_time(&file, 1000);
    }
    let kept = top.join(".git/index.pronto");
    let index = top.join(".git/index");
    run("git", top, &["add", "."]);
    run("git", top, &["write-tree"]);
    let all_added = status(top, "0");
    assert_eq!(all_added.lines().count(), FILES);
    assert!(!kept.exists(), "no time has gone by, and it may not write");
    set_time(&index, 100);
    assert_eq!(status(top, "0"), all_added);
    assert!(!kept.exists(), "it may not write");
    assert_eq!(status(top, "1"), all_added);
    assert!(
        kept.exists(),
        "{}",
        stderr(&run("ls", top, &["-la", ".git"]))
    );

    std::fs::write(top.join("d07/f7"), "changed\n").expect("a file");
    std::fs::remove_file(top.join("d39/f39")).expect("it is there");
    std::fs::write(top.join("d00/new"), "new\n").expect("a file");
    let seen = status(top, "1");
    let expected = run("git", top, &["status", "--porcelain"]);
    assert_eq!(stderr(&expected), "");
    assert_eq!(seen, stdout(&expected));
    // For another index the file is not used.
    run("git", top, &["rm", "-q", "--cached", "d00/f0"]);
    let seen = status(top, "1");
    let expected = run("git", top, &["status", "--porcelain"]);
    assert_eq!(seen, stdout(&expected));
    assert!(seen.contains("?? d00/f0"), "{seen}");
}
