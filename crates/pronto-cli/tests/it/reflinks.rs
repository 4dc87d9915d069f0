//! Worktrees that share file contents (`checkout.reflink`), on images of btrfs and XFS.

use std::path::{Path, PathBuf};

use test_support::{Need, lacks};

use crate::support::{Scratch, git, process, pronto_path, run, stderr, stdout};

/// A mounted image of a file system.
struct Volume {
    scratch: Scratch,
}

impl Volume {
    /// Returns `None` and reports a skip if mounting is not possible.
    fn new(kind: &str) -> Option<Volume> {
        let volume = Volume {
            scratch: Scratch::new(),
        };
        let (image, top) = (volume.scratch.path().join("image"), volume.top());
        let make = || -> Result<(), String> {
            let text = |error: std::io::Error| error.to_string();
            std::fs::create_dir(&top).map_err(text)?;
            let file = std::fs::File::create(&image).map_err(text)?;
            file.set_len(400 << 20).map_err(text)?;
            let run = |program: &str, arguments: &[&str]| {
                let mut command = process(program);
                let path = std::env::var("PATH").unwrap_or_default();
                command.env("PATH", format!("{path}:/usr/sbin:/sbin"));
                let output = command.args(arguments).arg(&image).arg(&top).output();
                match output {
                    Ok(output) if output.status.success() => Ok(()),
                    Ok(output) => Err(stderr(&output)),
                    Err(error) => Err(format!("{program}: {error}")),
                }
            };
            let mkfs = format!("exec mkfs.{kind} -q -f \"$0\"");
            run("sh", &["-c", &mkfs])?;
            run("mount", &["-o", "loop"])
        };
        Need::LoopDevice.note();
        match make() {
            Ok(()) => Some(volume),
            Err(reason) => {
                lacks!(Need::LoopDevice, format!("{kind}: {}", reason.trim()));
            }
        }
    }

    fn top(&self) -> PathBuf {
        self.scratch.path().join("volume")
    }
}

impl Drop for Volume {
    fn drop(&mut self) {
        let _ = process("umount").arg(self.top()).status();
    }
}

/// The numbers of files of `LARGE` and `SMALL` bytes.
const FILES: usize = 20;
const LARGE: usize = 50_000;
const SMALL: usize = 5_000;

fn content(size: usize, seed: usize) -> Vec<u8> {
    let mut state = seed as u64 + 1;
    let mut next = || {
        state = state
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1);
        b"abcdefghijklmno\n"[(state >> 60) as usize]
    };
    (0..size).map(|_| next()).collect()
}

fn repository(place: &Path) -> PathBuf {
    let work = place.join("work");
    std::fs::create_dir_all(work.join("d")).expect("a directory");
    git(&work, &["init", "-q", "-b", "main"]);
    for file in 0..FILES {
        let write = |name: String, size| {
            std::fs::write(work.join(name), content(size, file + size)).expect("a file");
        };
        write(format!("d/large{file}"), LARGE);
        write(format!("small{file}"), SMALL);
    }
    git(&work, &["add", "."]);
    git(&work, &["commit", "-qm", "one"]);
    work
}

/// Returns how many files called `name` and a number share blocks with others.
fn shared(top: &Path, name: &str) -> usize {
    let is_shared = |file: &usize| {
        let path = top.join(format!("{name}{file}"));
        let output = process("filefrag")
            .env("PATH", "/usr/sbin:/sbin:/usr/bin:/bin")
            .arg("-vs")
            .arg(&path)
            .output()
            .expect("filefrag is there");
        assert!(output.status.success(), "{}", stderr(&output));
        stdout(&output).contains("shared")
    };
    (0..FILES).filter(is_shared).count()
}

fn add(work: &Path, reflink: &str, name: &str) -> PathBuf {
    let setting = format!("checkout.reflink={reflink}");
    let place = format!("../{name}");
    let made = run(
        pronto_path(),
        work,
        &["-c", &setting, "worktree", "add", "-q", &place],
    );
    assert!(made.status.success(), "{}", stderr(&made));
    assert_eq!(stderr(&made), "");
    let top = work.parent().expect("it has one").join(name);
    assert_eq!(git(&top, &["status", "--porcelain"]), "");
    top
}

fn check_contents(top: &Path) {
    for file in 0..FILES {
        for (name, size) in [("d/large", LARGE), ("small", SMALL)] {
            let found = std::fs::read(top.join(format!("{name}{file}"))).expect("a file");
            assert!(found == content(size, file + size), "{name}{file}");
        }
    }
}

fn sharing_on(kind: &str) {
    let Some(volume) = Volume::new(kind) else {
        return;
    };
    let work = repository(&volume.top());
    let first = add(&work, "auto", "first");
    check_contents(&first);
    assert_eq!(shared(&first, "d/large"), FILES);
    assert_eq!(shared(&first, "small"), FILES);
    let never = add(&work, "never", "never");
    check_contents(&never);
    assert_eq!(shared(&never, "d/large"), 0);
    let always = add(&work, "always", "always");
    check_contents(&always);
    assert_eq!(shared(&always, "d/large"), FILES);
    assert_eq!(shared(&always, "small"), FILES);
    // Writing to one does not change the others.
    std::fs::write(first.join("d/large0"), "other").expect("a file");
    check_contents(&work);
    check_contents(&always);
}

#[test]
fn worktrees_share_contents_on_btrfs() {
    sharing_on("btrfs");
}

#[test]
fn worktrees_share_contents_on_xfs() {
    sharing_on("xfs");
}

#[test]
fn different_contents_are_written() {
    let Some(volume) = Volume::new("btrfs") else {
        return;
    };
    let work = repository(&volume.top());
    // Matching stat data with a content that differs from the blob: only the digest reveals it.
    let attributes = work.join(".git/info/attributes");
    std::fs::write(&attributes, "d/large3 filter=lower\n").expect("a file");
    let other = content(LARGE, 3 + LARGE).to_ascii_uppercase();
    std::fs::write(work.join("d/large3"), other).expect("a file");
    let clean = "filter.lower.clean=tr A-Z a-z";
    let id = git(&work, &["rev-parse", "HEAD:d/large3"]);
    let entry = format!("100644,{id},d/large3");
    git(&work, &["update-index", "--cacheinfo", &entry]);
    git(&work, &["-c", clean, "update-index", "--refresh"]);
    std::fs::remove_file(&attributes).expect("a file");
    // An honest change.
    std::fs::write(work.join("d/large4"), "changed").expect("a file");
    std::fs::remove_file(work.join("d/large5")).expect("a file");
    // At first the files are so new that the clones are read back, later that is not needed.
    for (name, wait) in [("new", 0), ("newer", 3)] {
        std::thread::sleep(std::time::Duration::from_secs(wait));
        let top = add(&work, "auto", name);
        check_contents(&top);
        assert_eq!(shared(&top, "d/large"), FILES - 3);
        let place = top.to_string_lossy();
        git(&work, &["worktree", "remove", &place]);
    }
    // Conversions are applied.
    git(&work, &["config", "core.autocrlf", "true"]);
    let converted = work.parent().expect("it has one").join("converted");
    let place = converted.to_string_lossy();
    let made = run(pronto_path(), &work, &["worktree", "add", "-q", &place]);
    assert!(made.status.success(), "{}", stderr(&made));
    let found = std::fs::read(converted.join("d/large0")).expect("a file");
    let expected = content(LARGE, LARGE);
    let lines = expected.iter().filter(|byte| **byte == b'\n').count();
    assert_eq!(found.len(), expected.len() + lines);
    assert_eq!(shared(&converted, "d/large"), 0);
}

#[test]
fn contents_that_cannot_be_shared_are_written() {
    let scratch = Scratch::new();
    let work = repository(scratch.path());
    let top = add(&work, "auto", "new");
    check_contents(&top);
    let setting = ["-c", "checkout.reflink=often"];
    let refused = run(
        pronto_path(),
        &work,
        &[&setting[..], &["checkout", "-f"]].concat(),
    );
    assert_eq!(
        stderr(&refused),
        "fatal: bad value 'often' for 'checkout.reflink': use 'auto', 'never' or 'always'\n"
    );
}
