//! Checkouts on a file system on which one call fails. All other files are written, the failed file
//! is named, no file is truncated, the index is correct, and running the command again completes
//! the checkout.

use std::collections::BTreeSet;
use std::ops::RangeInclusive;
use std::path::{Path, PathBuf};
use std::process::Output;

use slowfs::{CallFault, Folding, Model, SlowMount};

use test_support::{Need, lacks};

use crate::support::{Scratch, process, pronto, stderr, stdout};

const EINTR: i32 = 4;
const EIO: i32 = 5;
const EACCES: i32 = 13;
const ENOSPC: i32 = 28;

/// Enough for checkout to use several workers.
const FILES: usize = 200;

/// The number of calls that fail by default, spread evenly. `PRONTO_TEST_FAULTS=all` makes each
/// call fail in each way, which takes hours. `PRONTO_TEST_FAULTS=1-3000` selects the calls with
/// these numbers.
const SAMPLE: u64 = 40;

/// A repository whose worktree is on a `slowfs` mount.
pub(crate) struct Place {
    // The mount is dropped before the directories.
    pub(crate) mount: SlowMount,
    pub(crate) scratch: Scratch,
}

impl Place {
    /// Returns `None` and reports a skip if mounting is not possible.
    pub(crate) fn new(folding: Folding) -> Option<Place> {
        let mut model = Model::default();
        model.folding = folding;
        // The kernel caches nothing, so that every call is counted.
        model.cache = std::time::Duration::ZERO;
        Place::on(Scratch::new(), model)
    }

    /// Like [`new`](Self::new), on the existing directory `real` in `scratch`.
    pub(crate) fn on(scratch: Scratch, model: Model) -> Option<Place> {
        let (real, at) = (scratch.path().join("real"), scratch.path().join("work"));
        std::fs::create_dir_all(&real).expect("a directory");
        std::fs::create_dir(&at).expect("a directory");
        Need::Fuse.note();
        match SlowMount::new(&real, &at, model) {
            Ok(mount) => Some(Place { mount, scratch }),
            Err(error) => {
                lacks!(Need::Fuse, error);
            }
        }
    }

    /// Mounts again, so that the kernel has cached nothing.
    pub(crate) fn anew(self, model: Model) -> Place {
        let Place { mount, scratch } = self;
        drop(mount);
        let (real, at) = (scratch.path().join("real"), scratch.path().join("work"));
        let mount = SlowMount::new(&real, &at, model).expect("it was mounted before");
        Place { mount, scratch }
    }

    pub(crate) fn work(&self) -> PathBuf {
        self.scratch.path().join("work")
    }

    /// Returns the real directory behind the mount.
    pub(crate) fn real(&self) -> PathBuf {
        self.scratch.path().join("real")
    }

    pub(crate) fn git(&self, arguments: &[&str]) -> Output {
        let output = git(&self.work(), arguments);
        assert!(
            output.status.success(),
            "{arguments:?}: {}",
            stderr(&output)
        );
        output
    }

    pub(crate) fn pronto(&self, arguments: &[&str]) -> Output {
        // pronto changes the directory itself, because that call may fail.
        pronto()
            .arg("-C")
            .arg(self.work())
            .args(arguments)
            .env("PRONTO_NO_FALLBACK", "1")
            .current_dir(self.scratch.path())
            .output()
            .expect("pronto starts")
    }
}

pub(crate) fn git(directory: &Path, arguments: &[&str]) -> Output {
    process("git")
        .args(["-c", "user.name=a", "-c", "user.email=a@x"])
        .args(["-c", "core.fsmonitor=false"])
        .args(arguments)
        .current_dir(directory)
        .output()
        .expect("git starts")
}

fn content(version: &str, file: usize) -> String {
    format!("{version} of file {file}\n").repeat(3 + file % 40)
}

fn name(file: usize) -> String {
    format!("d{}/e{}/f{file}", file % 5, file % 23)
}

/// Two commits, `one` and `two`: a fifth of the files is missing in each, others differ.
fn history(place: &Place) {
    let source = place.scratch.path().join("source");
    std::fs::create_dir(&source).expect("a directory");
    let run = |arguments: &[&str]| assert!(git(&source, arguments).status.success());
    run(&["init", "-q", "-b", "main"]);
    for (round, tag) in ["one", "two"].into_iter().enumerate() {
        for file in 0..FILES {
            let path = source.join(name(file));
            let version = if file % 3 == 0 { "each" } else { tag };
            std::fs::create_dir_all(path.parent().expect("it has one")).expect("directories");
            if file % 5 == round {
                let _ = std::fs::remove_file(path);
            } else {
                std::fs::write(path, content(version, file)).expect("a file");
            }
        }
        run(&["add", "-A"]);
        run(&["commit", "-qm", tag]);
        run(&["tag", tag]);
    }
    // The repository is outside of the mount, so that only calls in the worktree fail.
    let work = place.work();
    let arguments = [
        "clone",
        "-q",
        "--no-checkout",
        "--separate-git-dir=git",
        "source",
    ];
    let cloned = process("git")
        .args(arguments)
        .arg(&work)
        .current_dir(place.scratch.path())
        .output();
    let cloned = cloned.expect("git starts");
    assert!(cloned.status.success(), "{}", stderr(&cloned));
}

/// Returns the paths that `git status` reports.
fn dirty(place: &Place) -> BTreeSet<String> {
    let output = place.git(&["status", "--porcelain", "--no-renames", "-uall"]);
    let paths = stdout(&output);
    paths.lines().map(|line| line[3..].to_owned()).collect()
}

/// Asserts that each file has the content of one of the commits.
fn assert_whole(place: &Place, context: &str) {
    for file in 0..FILES {
        let Ok(found) = std::fs::read_to_string(place.real().join(name(file))) else {
            continue;
        };
        let versions = ["each", "one", "two"].map(|version| content(version, file));
        assert!(
            versions.contains(&found),
            "{context}: {} is cut short",
            name(file)
        );
    }
}

/// Checks out `revision` without faults, and compares the worktree with it.
fn bring_to(place: &Place, revision: &str) {
    check_out(place, revision);
    assert_eq!(dirty(place), BTreeSet::new());
}

/// Checks out `revision` without faults.
fn check_out(place: &Place, revision: &str) {
    let done = place.pronto(&["checkout", "-q", "-f", "--detach", revision]);
    assert!(done.status.success(), "{}", stderr(&done));
}

#[test]
fn a_failing_call_costs_at_most_one_file() {
    each_call_fails("never");
}

#[test]
fn a_failing_call_in_place_costs_at_most_one_file() {
    each_call_fails("always");
}

/// Tests with the value `in_place` of `checkout.inPlace`.
fn each_call_fails(in_place: &str) {
    let setting = format!("checkout.inPlace={in_place}");
    let arguments = ["-c", &setting, "checkout", "-q", "-f", "--detach", "two"];
    let Some(place) = Place::new(Folding::None) else {
        return;
    };
    history(&place);
    bring_to(&place, "one");
    let model = place.mount.model();
    model.reset();
    let done = place.pronto(&arguments);
    assert!(done.status.success(), "{}", stderr(&done));
    let calls = model.total();
    bring_to(&place, "one");
    let asked = asked_calls(calls);
    let is_part = asked.as_ref().is_some_and(|asked| *asked != (1..=calls));
    let faults = [
        CallFault::Error(ENOSPC),
        CallFault::Error(EIO),
        CallFault::Error(EACCES),
        CallFault::Error(EINTR),
        CallFault::Short,
    ];
    let (mut fatal, mut failed, mut unharmed) = (0, 0, 0);
    let mut run = |number: u64, fault: CallFault| {
        let mut context = format!("call {number} of {calls}: {fault:?}");
        model.reset();
        model.fault_at(number, fault);
        let output = place.pronto(&arguments);
        model.clear_faults();
        let said = stderr(&output);
        context = format!("{context} of {:?}: {said}", model.last_fault());
        assert_whole(&place, &context);
        match output.status.code() {
            Some(0) => {
                unharmed += 1;
                // A path that could not be removed is reported, as in git, and stays untracked.
                for path in dirty(&place) {
                    let _ = std::fs::remove_file(place.work().join(&path));
                    assert!(
                        said.contains(&path),
                        "{context}: {path} goes unmentioned: {said}"
                    );
                }
            }
            Some(1) => {
                failed += 1;
                let left = dirty(&place);
                assert!(left.len() <= 1, "{context}: {left:?}: {said}");
                for path in &left {
                    assert!(
                        said.contains(path),
                        "{context}: {path} goes unmentioned: {said}"
                    );
                }
            }
            Some(128) => {
                fatal += 1;
                assert!(said.contains("fatal: "), "{context}: {said}");
            }
            code => panic!("{context}: {code:?}: {said}"),
        }
        bring_to(&place, "two");
        check_out(&place, "one");
    };
    match asked {
        Some(numbers) => numbers.for_each(|number| {
            faults.iter().for_each(|fault| run(number, *fault));
        }),
        None => {
            let numbers = (1..=calls).step_by((calls / SAMPLE).max(1) as usize);
            let in_turn = faults.iter().cycle();
            numbers
                .zip(in_turn)
                .for_each(|(number, fault)| run(number, *fault));
        }
    }
    println!("{calls} calls: {unharmed} faults did no harm, {failed} cost a file, {fatal} all");
    if is_part {
        assert!(fatal + failed + unharmed > 0, "there are such calls");
    } else {
        assert!(failed > 0 && unharmed > 0, "the faults are felt");
    }
}

/// Returns the calls that `PRONTO_TEST_FAULTS` selects.
fn asked_calls(calls: u64) -> Option<RangeInclusive<u64>> {
    let asked = std::env::var("PRONTO_TEST_FAULTS").ok()?;
    if asked == "all" {
        return Some(1..=calls);
    }
    let (first, last) = asked.split_once('-').expect("all, or FIRST-LAST");
    let number = |text: &str| text.parse::<u64>().expect("the number of a call");
    Some(number(first)..=number(last).min(calls))
}

#[test]
fn a_failing_close_costs_its_file() {
    let Some(place) = Place::new(Folding::None) else {
        return;
    };
    history(&place);
    bring_to(&place, "one");
    let model = place.mount.model();
    model.reset();
    for number in [3, 40, 41, 90] {
        model.fault(slowfs::FsCall::Flush, number, CallFault::Error(ENOSPC));
    }
    model.fault(
        slowfs::FsCall::Flush,
        60,
        CallFault::Late(std::time::Duration::from_millis(50)),
    );
    let output = place.pronto(&["checkout", "-q", "-f", "--detach", "two"]);
    model.clear_faults();
    assert_eq!(output.status.code(), Some(1), "{}", stderr(&output));
    let left = dirty(&place);
    assert!((1..=4).contains(&left.len()), "{left:?}");
    for path in &left {
        assert!(stderr(&output).contains(path), "{path} goes unmentioned");
        assert!(!place.real().join(path).exists(), "{path} may not be whole");
    }
    bring_to(&place, "two");
}

/// A network file system may create a file and then lose the reply.
#[test]
fn a_file_whose_creation_seems_to_fail_is_removed() {
    let Some(place) = Place::new(Folding::None) else {
        return;
    };
    history(&place);
    let model = place.mount.model();
    for error in [ENOSPC, EIO, EACCES, EINTR] {
        bring_to(&place, "one");
        model.reset();
        model.fault(slowfs::FsCall::Create, 7, CallFault::MadeAndLost(error));
        let output = place.pronto(&["checkout", "-q", "-f", "--detach", "two"]);
        model.clear_faults();
        let said = stderr(&output);
        let left = dirty(&place);
        // An interrupted call is repeated.
        let lost = usize::from(error != EINTR);
        assert_eq!(output.status.code(), Some(lost as i32), "{error}: {said}");
        assert_eq!(left.len(), lost, "{error}: {left:?}");
        for path in &left {
            assert!(said.contains(path), "{path} goes unmentioned: {said}");
        }
        assert_whole(&place, &said);
    }
    bring_to(&place, "two");
}

#[test]
fn a_missing_and_a_corrupt_object_cost_a_file_each() {
    let scratch = Scratch::new();
    let work = scratch.path().join("work");
    std::fs::create_dir(&work).expect("a directory");
    let run = |arguments: &[&str]| {
        let output = git(&work, arguments);
        assert!(
            output.status.success(),
            "{arguments:?}: {}",
            stderr(&output)
        );
        stdout(&output).trim().to_owned()
    };
    run(&["init", "-q"]);
    for file in 0..60 {
        std::fs::write(work.join(format!("f{file}")), content("only", file)).expect("a file");
    }
    run(&["add", "."]);
    run(&["commit", "-qm", "one"]);
    let object = |file: &str| {
        let id = run(&["rev-parse", &format!("HEAD:{file}")]);
        work.join(".git/objects").join(&id[..2]).join(&id[2..])
    };
    let (missing, corrupt) = (object("f7"), object("f9"));
    let saved = std::fs::read(&missing).expect("it is loose");
    std::fs::remove_file(&missing).expect("it is there");
    let whole = std::fs::read(&corrupt).expect("it is loose");
    std::fs::remove_file(&corrupt).expect("it is there");
    std::fs::write(&corrupt, &whole[..whole.len() / 2]).expect("it can be replaced");
    for workers in ["1", "2", "auto"] {
        for file in 0..60 {
            let _ = std::fs::remove_file(work.join(format!("f{file}")));
        }
        let output = pronto()
            .args(["-c", &format!("checkout.workers={workers}")])
            .args(["checkout", "-q", "-f"])
            .env("PRONTO_NO_FALLBACK", "1")
            .current_dir(&work)
            .output()
            .expect("pronto starts");
        // Git dies of a damaged object, and of a missing one alone it does not.
        assert_eq!(output.status.code(), Some(128), "{}", stderr(&output));
        let said = stderr(&output);
        assert!(said.contains("f7 (") && said.contains("f9 ("), "{said}");
        assert_eq!(run(&["status", "--porcelain"]), "D f7\n D f9");
    }
    std::fs::write(&missing, saved).expect("it can be put back");
    std::fs::remove_file(&corrupt).expect("it is there");
    std::fs::write(&corrupt, whole).expect("it can be put back");
    let output = pronto()
        .args(["checkout", "-q", "-f"])
        .current_dir(&work)
        .output();
    assert!(output.expect("pronto starts").status.success());
    assert_eq!(run(&["status", "--porcelain"]), "");
}
