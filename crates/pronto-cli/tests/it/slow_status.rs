//! Status on a slow file system uses more threads, even for one directory, and reports the same as
//! git.

use std::path::Path;
use std::time::Duration;

use slowfs::{CallFault, FsCall, Model};

use super::faults::{Place, git};
use crate::support::{Scratch, stderr, stdout};

const DIRECTORIES: usize = 30;
const FILES_OF_EACH: usize = 20;
/// More threads also for one directory.
const FILES_OF_LARGE: usize = 500;
const EIO: i32 = 5;

/// A commit of some directories. One is large, and one was removed since.
fn history(real: &Path) {
    let run = |arguments: &[&str]| {
        let output = git(real, arguments);
        assert!(output.status.success(), "{}", stderr(&output));
    };
    std::fs::create_dir(real).expect("a directory");
    run(&["init", "-q", "--separate-git-dir=../git"]);
    for directory in 0..=DIRECTORIES {
        let at = real.join(format!("d{directory}"));
        std::fs::create_dir_all(at.join("below")).expect("directories");
        let is_large = directory == DIRECTORIES;
        for file in 0..if is_large {
            FILES_OF_LARGE
        } else {
            FILES_OF_EACH
        } {
            std::fs::write(at.join(format!("f{file}")), format!("{file}\n")).expect("a file");
        }
        std::fs::write(at.join("below/g"), "g\n").expect("a file");
    }
    run(&["add", "-A"]);
    run(&["commit", "-qm", "one"]);
    for file in [3, 77, 333] {
        let at = real.join(format!("d{DIRECTORIES}"));
        std::fs::remove_file(at.join(format!("f{file}"))).expect("it is there");
        std::fs::write(at.join(format!("f{}", file + 1)), "longer than it was\n").expect("a file");
        std::fs::write(at.join(format!("new{file}")), "new\n").expect("a file");
    }
    std::fs::remove_dir_all(real.join("d5")).expect("it is there");
}

#[test]
fn a_slow_file_system_gets_more_threads() {
    let scratch = Scratch::new();
    history(&scratch.path().join("real"));
    let mut model = Model::default();
    model.delay_metadata(Duration::from_millis(2));
    let Some(place) = Place::on(scratch, model) else {
        return;
    };
    for arguments in [
        &["status", "--porcelain"][..],
        &["status", "--porcelain", "-uno"],
        &["status", "--porcelain", "-uall", "--", "d30", "d4"],
    ] {
        let (theirs, ours) = (place.git(arguments), place.pronto(arguments));
        let context = format!("{arguments:?}: {}", stderr(&ours));
        assert_eq!(stdout(&ours), stdout(&theirs), "{context}");
    }
    let most = place.mount.model().most_in_flight();
    assert!(most > 8, "at most {most} calls at once");
}

#[test]
fn listings_with_attributes_save_calls() {
    let scratch = Scratch::new();
    history(&scratch.path().join("real"));
    let model = |lists_attributes| {
        let mut model = Model::default();
        model.delay_metadata(Duration::from_millis(2));
        model.lists_attributes = lists_attributes;
        model
    };
    let Some(mut place) = Place::on(scratch, model(false)) else {
        return;
    };
    let mut lookups = Vec::new();
    for lists_attributes in [false, true] {
        for mode in ["-uno", "-unormal"] {
            let arguments = ["status", "--porcelain", mode];
            let theirs = stdout(&git(&place.real(), &arguments));
            place = place.anew(model(lists_attributes));
            assert_eq!(stdout(&place.pronto(&arguments)), theirs);
            lookups.push(place.mount.model().count(FsCall::Lookup));
        }
    }
    // About one call for each file, and half as many if listings return attributes.
    let fewer = |plain: u64, listed: u64| listed * 4 < plain * 3;
    assert!(
        fewer(lookups[0], lookups[2]) && fewer(lookups[1], lookups[3]),
        "{lookups:?}"
    );
}

#[test]
fn a_file_without_readable_metadata_is_reported() {
    let scratch = Scratch::new();
    let real = scratch.path().join("real");
    history(&real);
    let all = stdout(&git(&real, &["status", "--porcelain", "-uno"]));
    let Some(mut place) = Place::on(scratch, Model::default()) else {
        return;
    };
    for number in (20..).step_by(31).take(24) {
        // A lookup that fails is not repeated.
        place = place.anew(Model::default());
        let model = place.mount.model();
        model.fault(FsCall::Lookup, number, CallFault::Error(EIO));
        let output = place.pronto(&["status", "--porcelain", "-uno"]);
        model.clear_faults();
        let (said, reported) = (stdout(&output), stderr(&output));
        let named = reported
            .lines()
            .filter(|line| line.contains("Input/output error"));
        let missing = all.lines().filter(|line| !said.contains(line));
        match named.count() {
            // It was a directory that exists at the second lookup.
            0 => assert_eq!(said, all, "{number}: {reported}"),
            1 => assert!(missing.count() <= 1, "{number}: {said}{reported}"),
            _ => panic!("{number}: more than one is named: {reported}"),
        }
    }
}
