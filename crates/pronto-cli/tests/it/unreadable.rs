//! Directories that are searchable but not readable, readable but not searchable, or neither, for a
//! user without special permissions.

use std::fs::{self, Permissions};
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::path::Path;
use std::process::{Command, Output};

use crate::support::{Scratch, pronto, run, stderr, stdout};

/// Runs `command` in `top` without the capabilities of root.
fn output(command: &Command, top: &Path, arguments: &[&str]) -> Output {
    let is_root = fs::metadata(top).expect("it is there").uid() == 0;
    let mut bound = match is_root {
        true => {
            let mut bound = Command::new("setpriv");
            bound.arg("--bounding-set=-dac_override,-dac_read_search");
            bound.arg(command.get_program());
            bound
        }
        false => Command::new(command.get_program()),
    };
    let changes = command.get_envs();
    bound.envs(changes.filter_map(|(name, value)| Some((name, value?))));
    bound
        .args(arguments)
        .current_dir(top)
        .output()
        .expect("it runs")
}

/// Makes everything readable again, so that it can be removed.
struct Restore<'a>(&'a Path);

impl Drop for Restore<'_> {
    fn drop(&mut self) {
        for name in ["entered", "read", "closed"] {
            let _ = fs::set_permissions(self.0.join(name), Permissions::from_mode(0o755));
        }
    }
}

#[test]
fn unreadable_directories_are_searched() {
    let scratch = Scratch::new();
    let top = scratch.path();
    let git = |arguments: &[&str]| {
        let output = run("git", top, arguments);
        assert!(output.status.success(), "{}", stderr(&output));
    };
    git(&["init", "-q"]);
    for name in ["entered", "read", "closed"] {
        // Some subdirectories that are visited from the top, and some that are not.
        for file in 0..30 {
            let below = top.join(name).join(format!("below{}", file / 20));
            fs::create_dir_all(&below).expect("directories");
            fs::write(top.join(format!("{name}/f{file}")), "1\n").expect("a file");
            fs::write(below.join(format!("g{file}")), "1\n").expect("a file");
        }
    }
    git(&["add", "-A"]);
    git(&[
        "-c",
        "user.name=a",
        "-c",
        "user.email=a@b",
        "commit",
        "-qm1",
    ]);
    for name in ["entered", "read", "closed"] {
        fs::write(top.join(format!("{name}/f3")), "changed\n").expect("a file");
        fs::remove_file(top.join(format!("{name}/below0/g4"))).expect("it is there");
        fs::write(top.join(format!("{name}/below0/new")), "new\n").expect("a file");
        fs::write(top.join(format!("{name}/new")), "new\n").expect("a file");
    }
    let _restore = Restore(top);
    for (name, mode) in [("entered", 0o311), ("read", 0o644), ("closed", 0o000)] {
        fs::set_permissions(top.join(name), Permissions::from_mode(mode)).expect("they are set");
    }
    let theirs = Command::new("git");
    for arguments in [
        &["status", "--porcelain", "--", "entered"][..],
        &["status", "--porcelain", "-uno", "--", "entered"],
        &["status", "--porcelain", "-uall", "--", "entered"],
        &["diff-files", "--", "entered"],
        &["diff-files", "--", "entered", "read", "closed"],
        &["status", "--porcelain", "-uno"],
        &["status", "--porcelain"],
    ] {
        let expected = output(&theirs, top, arguments);
        let ours = output(&pronto(), top, arguments);
        let context = format!("{arguments:?}: {}{}", stderr(&expected), stderr(&ours));
        assert_eq!(stdout(&ours), stdout(&expected), "{context}");
        assert_eq!(ours.status.code(), expected.status.code(), "{context}");
    }
    let reported = stderr(&output(&pronto(), top, &["status", "--porcelain"]));
    let expected = "could not open directory 'entered/': Permission denied";
    assert!(reported.contains(expected), "{reported}");
}
