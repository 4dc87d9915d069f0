//! Status on a file system that lets everyone wait: more threads come, even for one directory, and
//! what is found is what git finds.

use std::time::Duration;

use slowfs::{Fault, Model, Mount};

use crate::support::{Scratch, process, pronto, stderr, stdout};

const DIRECTORIES: usize = 30;
const FILES_OF_EACH: usize = 20;
/// Of one directory more.
const FILES_OF_LARGE: usize = 500;

#[test]
fn threads_come_where_the_file_system_waits() {
    let scratch = Scratch::new();
    let (real, work) = (scratch.path().join("real"), scratch.path().join("work"));
    std::fs::create_dir(&real).expect("a directory");
    std::fs::create_dir(&work).expect("a directory");
    let git = |directory: &std::path::Path, arguments: &[&str]| {
        let output = process("git")
            .args(arguments)
            .current_dir(directory)
            .output()
            .expect("git starts");
        assert!(output.status.success(), "{}", stderr(&output));
        stdout(&output)
    };
    git(&real, &["init", "-q", "--separate-git-dir=../git"]);
    for directory in 0..=DIRECTORIES {
        let at = real.join(format!("d{directory}"));
        std::fs::create_dir(&at).expect("a directory");
        let large = directory == DIRECTORIES;
        for file in 0..if large { FILES_OF_LARGE } else { FILES_OF_EACH } {
            std::fs::write(at.join(format!("f{file}")), format!("{file}\n")).expect("a file");
        }
        std::fs::create_dir(at.join("below")).expect("a directory");
        std::fs::write(at.join("below/g"), "g\n").expect("a file");
    }
    git(&real, &["add", "-A"]);
    git(
        &real,
        &[
            "-c",
            "user.name=a",
            "-c",
            "user.email=a@x",
            "commit",
            "-qm",
            "one",
        ],
    );
    for file in [3, 77, 333] {
        let at = real.join(format!("d{DIRECTORIES}"));
        std::fs::remove_file(at.join(format!("f{file}"))).expect("it is there");
        std::fs::write(at.join(format!("f{}", file + 1)), "longer than it was\n").expect("a file");
        std::fs::write(at.join(format!("new{file}")), "new\n").expect("a file");
    }
    std::fs::remove_dir_all(real.join("d5")).expect("it is there");
    let mut model = Model::default();
    model.delay_metadata(Duration::from_millis(2));
    let mount = match Mount::new(&real, &work, model) {
        Ok(mount) => mount,
        Err(error) => {
            println!("SKIPPED: cannot mount a FUSE file system here: {error}");
            assert!(std::env::var_os("CI").is_none(), "CI may not skip");
            return;
        }
    };
    for arguments in [
        &["status", "--porcelain"][..],
        &["status", "--porcelain", "-uno"],
        &["status", "--porcelain", "-uall", "--", "d30", "d4"],
    ] {
        let theirs = git(&work, arguments);
        let output = pronto()
            .args(arguments)
            .env("PRONTO_NO_FALLBACK", "1")
            .current_dir(&work)
            .output()
            .expect("pronto starts");
        assert_eq!(
            stdout(&output),
            theirs,
            "{arguments:?}: {}",
            stderr(&output)
        );
    }
    let most = mount.model().most_in_flight();
    assert!(most > 8, "at most {most} calls at once");
    // A file that cannot be looked at is named, and nothing else suffers.
    mount.model().reset();
    mount
        .model()
        .fault(slowfs::Call::Lookup, 400, Fault::Error(5));
    let output = pronto()
        .args(["status", "--porcelain", "-uno"])
        .current_dir(&work)
        .output();
    mount.model().clear_faults();
    let output = output.expect("pronto starts");
    assert!(
        stdout(&output).contains(" D d5/f0\n"),
        "{}",
        stdout(&output)
    );
}
