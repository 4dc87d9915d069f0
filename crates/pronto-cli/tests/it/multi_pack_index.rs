//! `multi-pack-index repack`, `expire` and `write --incremental`. The names of new packs differ
//! from those of git, so their contents are compared.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::Output;

use crate::support::{Scratch, process, pronto_path};

/// Two repositories with the same packs, one for git and one for pronto.
struct Scene {
    scratch: Scratch,
}

const BOTH: [&str; 2] = ["theirs", "ours"];

impl Scene {
    /// Six packs of one commit each, one for each day. The last two have the same age.
    fn new() -> Scene {
        let scene = Scene {
            scratch: Scratch::new(),
        };
        scene.git("theirs", &["init", "-q", "-b", "main", "."]);
        for number in 0..6 {
            scene.pack("theirs", number);
        }
        let ours = scene.path("ours");
        std::fs::remove_dir(&ours).expect("it was empty");
        let (from, to) = (scene.path("theirs"), &ours);
        let copied = process("cp").arg("-a").args([&from, to]).status();
        assert!(copied.expect("cp starts").success());
        scene
    }

    /// Creates a directory.
    fn path(&self, name: &str) -> PathBuf {
        let path = self.scratch.path().join(name);
        std::fs::create_dir_all(&path).expect("a directory");
        path
    }

    fn run(&self, (program, name): (&Path, &str), arguments: &[&str]) -> Output {
        process(program)
            .args(arguments)
            .current_dir(self.path(name))
            .env("HOME", self.scratch.path())
            .env("GIT_CONFIG_NOSYSTEM", "1")
            .env("PRONTO_NO_FALLBACK", "1")
            .envs([("GIT_AUTHOR_NAME", "a"), ("GIT_AUTHOR_EMAIL", "a@x")])
            .envs([("GIT_COMMITTER_NAME", "c"), ("GIT_COMMITTER_EMAIL", "c@x")])
            .envs(["GIT_AUTHOR_DATE", "GIT_COMMITTER_DATE"].map(|name| (name, "1100000000 +0000")))
            .output()
            .expect("it can be started")
    }

    fn git(&self, name: &str, arguments: &[&str]) -> String {
        let output = self.run((Path::new("git"), name), arguments);
        let said = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success(), "git {arguments:?}: {said}");
        String::from_utf8_lossy(&output.stdout).into_owned()
    }

    /// Adds a pack.
    fn pack(&self, name: &str, number: u32) {
        let lines = (0..40 << (number % 3)).map(|line| format!("{} {line}\n", line * 7919 % 6007));
        let file = self.path(name).join(format!("f{number}"));
        std::fs::write(file, lines.collect::<String>()).expect("a file");
        self.git(name, &["add", "."]);
        self.git(name, &["commit", "-q", "-m", &number.to_string()]);
        let before = self.packs(name);
        self.git(name, &["repack", "-d", "-q"]);
        for pack in self
            .packs(name)
            .keys()
            .filter(|pack| !before.contains_key(*pack))
        {
            let file = std::fs::File::options()
                .append(true)
                .open(pack.with_extension("pack"));
            let day = std::time::Duration::from_secs(86_400 * u64::from(number.min(4) + 10_000));
            let file = file.or_else(|_| std::fs::File::open(pack.with_extension("pack")));
            let dated = file.and_then(|file| file.set_modified(std::time::UNIX_EPOCH + day));
            dated.expect("it can be dated");
        }
    }

    /// Returns the packs with their object ids.
    fn packs(&self, name: &str) -> BTreeMap<PathBuf, Vec<String>> {
        let directory = self.path(name).join(".git/objects/pack");
        let entries = std::fs::read_dir(directory).expect("a directory");
        let paths = entries.map(|entry| entry.expect("it is listed").path());
        let indexes = paths.filter(|path| path.extension().is_some_and(|ending| ending == "idx"));
        indexes
            .map(|path| {
                let file = std::fs::File::open(&path).expect("it is there");
                let listed = process("git").arg("show-index").stdin(file).output();
                let listed = listed.expect("git can be started").stdout;
                let listed = String::from_utf8(listed).expect("it is text");
                let ids = listed.lines().filter_map(|line| line.split(' ').nth(1));
                let ids = ids.map(str::to_owned).collect();
                (path, ids)
            })
            .collect()
    }

    /// Returns the contents of the packs without their names, and the other files in the directory.
    fn contents(&self, name: &str) -> (Vec<Vec<String>>, Vec<String>) {
        let mut packs: Vec<_> = self.packs(name).into_values().collect();
        packs.sort();
        let directory = self.path(name).join(".git/objects/pack");
        let entries = std::fs::read_dir(directory).expect("a directory");
        let names = entries.map(|entry| entry.expect("it is listed").file_name());
        let names = names.map(|name| name.to_string_lossy().into_owned());
        let mut others: Vec<_> = names.filter(|name| !name.starts_with("pack-")).collect();
        others.sort();
        (packs, others)
    }

    /// Runs both programs with the same arguments and compares the results.
    fn both(&self, arguments: &[&str]) {
        let call = [&["multi-pack-index"], arguments].concat();
        let programs = [Path::new("git"), pronto_path()];
        let [theirs, ours] = [0, 1].map(|at| {
            let output = self.run((programs[at], BOTH[at]), &call);
            let said = String::from_utf8_lossy(&output.stderr).into_owned();
            let sound = self.git(BOTH[at], &["multi-pack-index", "verify"]);
            self.git(BOTH[at], &["fsck", "--full", "--strict"]);
            (output.status.code(), said, sound, self.contents(BOTH[at]))
        });
        assert_eq!(ours, theirs, "{arguments:?}");
    }
}

#[test]
fn packs_are_combined_as_in_git() {
    let scene = Scene::new();
    scene.both(&["repack"]);
    scene.both(&["write"]);
    scene.both(&["repack", "--batch-size=1"]);
    for size in ["400", "1k", "3000", "1m"] {
        scene.both(&["repack", "--no-progress", "--batch-size", size]);
        scene.both(&["expire"]);
    }
    for name in BOTH {
        scene.pack(name, 7);
        scene.pack(name, 8);
    }
    scene.both(&["write"]);
    scene.both(&["repack"]);
    scene.both(&["expire"]);
    assert_eq!(scene.packs("ours").len(), 1);
    scene.both(&["repack"]);
}

#[test]
fn packs_that_are_kept_or_cruft_are_left_alone() {
    let scene = Scene::new();
    for name in BOTH {
        let packs: Vec<_> = scene.packs(name).into_keys().collect();
        std::fs::write(packs[0].with_extension("keep"), "").expect("a file");
        scene.git(name, &["multi-pack-index", "write"]);
    }
    scene.both(&["repack"]);
    scene.both(&["expire"]);
    assert_eq!(scene.packs("ours").len(), 2);
    for name in BOTH {
        scene.git(name, &["config", "repack.packKeptObjects", "true"]);
        scene.git(name, &["config", "repack.useDeltaBaseOffset", "false"]);
    }
    scene.both(&["repack", "--batch-size=0"]);
    scene.both(&["expire"]);
}

#[test]
fn packs_are_not_combined_while_another_process_does() {
    let scene = Scene::new();
    scene.git("ours", &["multi-pack-index", "write"]);
    let lock = scene
        .path("ours")
        .join(".git/objects/pack/multi-pack-index.lock");
    std::fs::write(&lock, "").expect("a file");
    let output = scene.run((pronto_path(), "ours"), &["multi-pack-index", "repack"]);
    assert_eq!(output.status.code(), Some(128));
    std::fs::remove_file(&lock).expect("it is there");
    // The new pack exists, but no index names it.
    scene.git("ours", &["multi-pack-index", "verify"]);
    scene.git("ours", &["fsck", "--full", "--strict"]);
}

/// Returns the layers of a chain with the number of packs of each.
fn layers(scene: &Scene) -> Vec<u32> {
    let directory = scene
        .path("ours")
        .join(".git/objects/pack/multi-pack-index.d");
    let chain = std::fs::read_to_string(directory.join("multi-pack-index-chain"));
    let chain = chain.expect("there is a chain");
    let read = |id: &str| {
        let layer = std::fs::read(directory.join(format!("multi-pack-index-{id}.midx")));
        let layer = layer.expect("the chain names what is there");
        u32::from_be_bytes(layer[8..12].try_into().expect("four bytes"))
    };
    chain.lines().map(read).collect()
}

#[test]
fn new_packs_become_a_new_layer() {
    let scene = Scene::new();
    let pronto = |arguments: &[&str]| {
        let output = scene.run((pronto_path(), "ours"), arguments);
        let said = String::from_utf8_lossy(&output.stderr).into_owned();
        (output.status.code(), said)
    };
    let done = (Some(0), String::new());
    let single = scene
        .path("ours")
        .join(".git/objects/pack/multi-pack-index");
    assert_eq!(pronto(&["multi-pack-index", "write"]), done);
    assert!(single.exists());
    scene.pack("ours", 7);
    let incremental = ["multi-pack-index", "write", "--incremental"];
    assert_eq!(pronto(&incremental), done);
    assert_eq!(layers(&scene), [6, 1]);
    assert!(!single.exists());
    assert_eq!(pronto(&incremental), done);
    assert_eq!(layers(&scene), [6, 1]);
    scene.pack("ours", 8);
    scene.git("ours", &["repack", "-q", "-a"]);
    let unknown = [&incremental[..], &["--preferred-pack=none"]].concat();
    let warned = "warning: unknown preferred pack: 'none'\n".to_owned();
    assert_eq!(pronto(&unknown), (Some(0), warned));
    assert_eq!(layers(&scene), [6, 1, 2]);
    assert_eq!(pronto(&["multi-pack-index", "verify"]), done);
    assert_eq!(pronto(&["cat-file", "-p", "HEAD:f3"]).0, Some(0));
    for what in [("repack", "repack"), ("expire", "expire packs from")] {
        let (command, cannot) = what;
        let said = format!("fatal: cannot {cannot} an incremental multi-pack-index\n");
        assert_eq!(pronto(&["multi-pack-index", command]), (Some(128), said));
    }
    let lock = scene
        .path("ours")
        .join(".git/objects/pack/multi-pack-index.d");
    let lock = lock.join("multi-pack-index-chain.lock");
    std::fs::write(&lock, "").expect("a file");
    scene.pack("ours", 9);
    assert_eq!(pronto(&incremental).0, Some(128));
    std::fs::remove_file(&lock).expect("it is there");
    // A single file replaces the chain.
    assert_eq!(pronto(&["multi-pack-index", "write"]), done);
    assert!(single.exists());
    let left = std::fs::read_dir(lock.parent().expect("it has one")).expect("a directory");
    assert_eq!(left.count(), 0);
    scene.git("ours", &["multi-pack-index", "verify"]);
    scene.git("ours", &["fsck", "--full", "--strict"]);
}
