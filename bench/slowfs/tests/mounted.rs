//! Tests on real mounts: stock git works, delays and faults have their effect, and calls are
//! counted.

use std::path::Path;
use std::process::Command;
use std::time::{Duration, Instant};

use test_support::{Need, lacks};

use slowfs::{CallFault, Folding, FsCall, Model, SlowMount};

/// Runs `test` on a mount, or skips it if mounting is not possible.
fn on_mount(model: Model, test: impl FnOnce(&SlowMount, &Path)) {
    let (real, at) = (
        tempfile::tempdir().expect("a directory"),
        tempfile::tempdir().expect("one"),
    );
    if let Some(mount) = mounted(real.path(), at.path(), model) {
        test(&mount, at.path());
    }
}

/// Mounts `real` at `at`, or reports a skip if mounting is not possible.
fn mounted(real: &Path, at: &Path, model: Model) -> Option<SlowMount> {
    let mount = SlowMount::new(real, at, model);
    Need::Fuse.note();
    match mount {
        Ok(mount) => Some(mount),
        Err(error) => lacks!(Need::Fuse, error),
    }
}

#[test]
fn stock_git_works_on_it() {
    on_mount(Model::default(), |mount, at| {
        let script = "git init -q r && cd r && echo one >a && mkdir -p d/e && echo two >d/e/b &&
            ln -s a link && chmod +x d/e/b && git add -A &&
            git -c user.name=n -c user.email=e commit -q -m m && rm -r d && git checkout -q . &&
            git mv a c && git gc -q && git fsck --strict && test -z \"$(git status --porcelain -- d)\"";
        let output = Command::new("sh")
            .args(["-c", script])
            .current_dir(at)
            .output()
            .expect("sh");
        assert!(
            output.status.success(),
            "{}",
            String::from_utf8_lossy(&output.stderr)
        );
        assert!(mount.model().count(FsCall::Create) > 0);
    });
}

#[test]
fn delays_are_felt_and_overlap() {
    let mut model = Model::default();
    model.delay(FsCall::Create, Duration::from_millis(20));
    on_mount(model, |mount, at| {
        let start = Instant::now();
        std::thread::scope(|scope| {
            for name in ["a", "b", "c", "d", "e", "f", "g", "h"] {
                let _ = std::fs::create_dir(at.join(name));
                scope.spawn(move || std::fs::write(at.join(name).join("file"), "x"));
            }
        });
        assert!(
            start.elapsed() >= Duration::from_millis(20),
            "there was no delay"
        );
        assert!(
            mount.model().most_in_flight() > 1,
            "calls wait for each other"
        );
    });
}

#[test]
fn a_fault_happens_once_and_where_it_should() {
    let model = Model::default();
    let no_space = 28;
    model.fault(FsCall::Create, 2, CallFault::Error(no_space));
    on_mount(model, |mount, at| {
        let results = ["a", "b", "c"].map(|name| std::fs::write(at.join(name), "x"));
        let errors = results.map(|result| result.err().and_then(|error| error.raw_os_error()));
        assert_eq!(errors, [None, Some(no_space), None]);
        assert_eq!(mount.model().count(FsCall::Create), 3);
    });
}

#[test]
fn folded_names_are_one_file() {
    let mut model = Model::default();
    model.folding = Folding::CaseAndComposition;
    on_mount(model, |_, at| {
        std::fs::write(at.join("Caf\u{e9}"), "x").expect("it can be written");
        assert_eq!(
            std::fs::read(at.join("cafe\u{301}")).expect("it is there"),
            b"x"
        );
        let again = std::fs::File::options()
            .write(true)
            .create_new(true)
            .open(at.join("CAF\u{c9}"));
        assert_eq!(
            again.err().map(|e| e.kind()),
            Some(std::io::ErrorKind::AlreadyExists)
        );
    });
}

#[test]
fn a_directory_is_not_taken_for_one_that_is_gone() {
    on_mount(Model::default(), |_, at| {
        // Most file systems reuse a free inode number for the next file.
        for round in 0..20 {
            let [old, new] = ["old", "new"].map(|name| at.join(format!("{name}{round}")));
            std::fs::create_dir(&old).expect("it can be made");
            let kept = std::fs::File::open(&old).expect("it opens");
            std::fs::remove_dir(&old).expect("it is empty");
            std::fs::create_dir(&new).expect("it can be made");
            std::fs::write(new.join("file"), "x").expect("it is not dead");
            drop(kept);
        }
    });
}

#[test]
fn a_busy_mount_leaves_the_tree() {
    let (real, at) = (
        tempfile::tempdir().expect("a directory"),
        tempfile::tempdir().expect("one"),
    );
    std::fs::write(real.path().join("file"), "x").expect("a file");
    let Some(mount) = mounted(real.path(), at.path(), Model::default()) else {
        return;
    };
    let open = std::fs::File::open(at.path().join("file")).expect("it is there");
    drop(mount);
    assert!(!at.path().join("file").exists());
    assert_eq!(open.metadata().expect("it is served").len(), 1);
}
