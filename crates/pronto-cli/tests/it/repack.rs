//! Compares `repack` with git: the same objects in the same number of packs, and the same loose
//! objects. Killing it at any moment loses no object.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};
use std::time::Duration;

use crate::support::{Scratch, process, pronto_path};

/// The contents of a repository.
#[derive(Debug, PartialEq, Eq)]
struct Contents {
    /// The objects of each pack.
    packs: BTreeSet<Vec<String>>,
    loose: Vec<String>,
    /// Other files by their extension, and files in other directories.
    others: Vec<String>,
}

struct Scene {
    scratch: Scratch,
}

impl Scene {
    /// Packs of one and of several commits, loose objects, objects that only reflogs or the index
    /// refer to, and unreachable objects, packed and loose.
    fn new() -> Scene {
        let scene = Scene {
            scratch: Scratch::new(),
        };
        let name = "first";
        scene.git(name, &["init", "-q", "-b", "main", "."]);
        // The default since git 2.41.
        scene.git(name, &["config", "pack.writeReverseIndex", "true"]);
        for number in 0..12 {
            let file = format!("f{}", number % 4);
            let lines = (0..60 + number).map(|line| format!("{} {line}\n", line * 7919 % 503));
            scene.write(name, &file, &lines.collect::<String>());
            scene.git(name, &["add", "."]);
            scene.git(name, &["commit", "-q", "-m", &number.to_string()]);
            if matches!(number, 4 | 7 | 8) {
                scene.git(name, &["repack", "-q", "-d"]);
            }
        }
        scene.git(name, &["tag", "-m", "tagged", "v1", "HEAD~3"]);
        // Only a reflog refers to this commit.
        scene.write(name, "lost", "only logs know\n");
        scene.git(name, &["add", "."]);
        scene.git(name, &["commit", "-q", "-m", "lost"]);
        scene.git(name, &["reset", "-q", "--hard", "HEAD~1"]);
        // These are unreachable.
        let pack = scene.path(name).join(".git/objects/pack/pack");
        for text in ["packed and forgotten\n", "loose and forgotten\n"] {
            scene.write(name, "scrap", text);
            let id = scene.git(name, &["hash-object", "-w", "scrap"]);
            if text.starts_with("packed") {
                let base = pack.to_str().expect("it is text");
                scene.feed(name, &["pack-objects", "-q", base], &id);
                scene.git(name, &["prune-packed"]);
            }
        }
        scene.write(name, "scrap", "staged\n");
        scene.git(name, &["add", "scrap"]);
        scene
    }

    fn path(&self, name: &str) -> PathBuf {
        let path = self.scratch.path().join(name);
        std::fs::create_dir_all(&path).expect("a directory");
        path
    }

    fn write(&self, name: &str, file: &str, text: &str) {
        std::fs::write(self.path(name).join(file), text).expect("a file");
    }

    fn command(&self, program: &Path, name: &str, arguments: &[&str]) -> Command {
        let mut command = process(program);
        command
            .args(arguments)
            .current_dir(self.path(name))
            .env("HOME", self.scratch.path())
            .env("GIT_CONFIG_NOSYSTEM", "1")
            .env("PRONTO_NO_FALLBACK", "1")
            .envs([("GIT_AUTHOR_NAME", "a"), ("GIT_AUTHOR_EMAIL", "a@x")])
            .envs([("GIT_COMMITTER_NAME", "c"), ("GIT_COMMITTER_EMAIL", "c@x")])
            .envs(["GIT_AUTHOR_DATE", "GIT_COMMITTER_DATE"].map(|name| (name, "1100000000 +0000")));
        command
    }

    fn run(&self, program: &Path, name: &str, arguments: &[&str]) -> Output {
        let output = self.command(program, name, arguments).output();
        output.expect("it can be started")
    }

    fn git(&self, name: &str, arguments: &[&str]) -> String {
        let output = self.run(Path::new("git"), name, arguments);
        let said = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success(), "git {arguments:?}: {said}");
        String::from_utf8_lossy(&output.stdout).into_owned()
    }

    fn feed(&self, name: &str, arguments: &[&str], input: &str) {
        let file = self.path("input").join("input");
        std::fs::write(&file, input).expect("a file");
        let file = std::fs::File::open(file).expect("it is there");
        let status = (self.command(Path::new("git"), name, arguments))
            .stdin(file)
            .stdout(std::process::Stdio::null())
            .status();
        assert!(status.expect("git starts").success(), "{arguments:?}");
    }

    /// A copy of the first repository.
    fn copy(&self, name: &str) {
        let (from, to) = (self.path("first"), self.scratch.path().join(name));
        let _ = std::fs::remove_dir_all(&to);
        let copied = process("cp").arg("-a").args([&from, &to]).status();
        assert!(copied.expect("cp starts").success());
    }

    fn contents(&self, name: &str) -> Contents {
        let objects = self.path(name).join(".git/objects");
        let list = |directory: &Path| -> Vec<PathBuf> {
            let entries = std::fs::read_dir(directory).expect("a directory");
            let mut paths: Vec<_> = entries
                .map(|entry| entry.expect("it is listed").path())
                .collect();
            paths.sort();
            paths
        };
        let mut contents = Contents {
            packs: BTreeSet::new(),
            loose: Vec::new(),
            others: Vec::new(),
        };
        for path in list(&objects.join("pack")) {
            let ending = path.extension().unwrap_or_default().to_string_lossy();
            let name = path.file_name().unwrap_or_default().to_string_lossy();
            match &*ending {
                "idx" => {
                    let file = std::fs::File::open(&path).expect("it is there");
                    let listed = process("git").arg("show-index").stdin(file).output();
                    let listed = listed.expect("git can be started").stdout;
                    let listed = String::from_utf8(listed).expect("it is text");
                    let ids = listed.lines().filter_map(|line| line.split(' ').nth(1));
                    contents.packs.insert(ids.map(str::to_owned).collect());
                }
                _ if name.starts_with("multi-pack-index-") => {
                    contents.others.push(format!("midx.{ending}"));
                }
                "" => contents.others.push(name.into_owned()),
                _ => contents.others.push(ending.into_owned()),
            }
        }
        contents.others.sort();
        for directory in list(&objects) {
            let name = directory.file_name().unwrap_or_default();
            let name = name.to_string_lossy().into_owned();
            if name.len() == 2 {
                let files = list(&directory).into_iter();
                let names = files.map(|file| file.file_name().unwrap_or_default().to_owned());
                let ids = names.map(|rest| format!("{name}{}", rest.to_string_lossy()));
                contents.loose.extend(ids);
            }
        }
        contents
    }

    /// Repacks copies with both programs, after `prepare` has changed them, and compares the
    /// results.
    fn compare(&self, arguments: &[&str], prepare: &dyn Fn(&str)) {
        let call = [&["repack"], arguments].concat();
        let programs = [(Path::new("git"), "theirs"), (pronto_path(), "ours")];
        let [theirs, ours] = programs.map(|(program, name)| {
            self.copy(name);
            prepare(name);
            let output = self.run(program, name, &call);
            self.git(name, &["fsck", "--full", "--strict"]);
            let info = self.path(name).join(".git/info/refs");
            (
                output.status.code(),
                String::from_utf8_lossy(&output.stdout).into_owned(),
                String::from_utf8_lossy(&output.stderr).into_owned(),
                self.contents(name),
                std::fs::read_to_string(info).ok(),
            )
        });
        assert_eq!(ours, theirs, "{arguments:?}");
    }
}

/// Returns the packs of a repository, smallest first.
fn packs(scene: &Scene, name: &str) -> Vec<PathBuf> {
    let directory = scene.path(name).join(".git/objects/pack");
    let entries = std::fs::read_dir(directory).expect("a directory");
    let paths = entries.map(|entry| entry.expect("it is listed").path());
    let is_pack = |path: &PathBuf| path.extension().is_some_and(|ending| ending == "pack");
    let mut packs: Vec<_> = paths.filter(is_pack).collect();
    packs.sort_by_key(|path| (path.metadata().expect("it is there").len(), path.clone()));
    packs
}

#[test]
fn repositories_are_repacked_as_in_git() {
    let scene = Scene::new();
    let nothing = |_: &str| {};
    for arguments in [
        &[][..],
        &["-d"],
        &["-a"],
        &["-a", "-d"],
        &["-A", "-d", "-q", "-n"],
        &["-a", "-d", "-f", "--window=5", "--depth=3", "--threads=1"],
        &["-a", "-d", "-F", "-q"],
        &["-a", "-d", "-b"],
        &["-a", "-b", "-m"],
        &["-a", "-d", "--write-midx", "--write-bitmap-index"],
        &["-d", "-m"],
        &["-b"],
        &["-a", "--geometric=2"],
        &["--geometric=2"],
        &["--geometric=2", "-d"],
        &["-g", "3", "-d", "--write-midx", "-b"],
        &["-g", "100", "-d", "-m"],
    ] {
        scene.compare(arguments, &nothing);
    }
}

#[test]
fn kept_packs_stay() {
    let scene = Scene::new();
    let keep = |name: &str| {
        let smallest = &packs(&scene, name)[1];
        std::fs::write(smallest.with_extension("keep"), "").expect("a file");
    };
    let named = packs(&scene, "first")[2].clone();
    let named = format!(
        "--keep-pack={}",
        named.file_name().expect("a name").to_string_lossy()
    );
    for arguments in [
        &["-a", "-d"][..],
        &["-A", "-d"],
        &["-a", "-d", "-b"],
        &["-a", "-d", "-b", "--no-pack-kept-objects"],
        &["-a", "-d", "--pack-kept-objects"],
        &["-a", "-d", &named],
        &["-g2", "-d"],
        &["-g2", "-d", "-m", &named],
    ] {
        scene.compare(arguments, &keep);
    }
}

#[test]
fn objects_of_alternates_stay_there() {
    let scene = Scene::new();
    let borrow = |name: &str| {
        let other = scene.path("other");
        let _ = std::fs::remove_dir_all(&other);
        scene.git(
            "first",
            &["clone", "-q", "--bare", "--no-local", ".", "../other"],
        );
        let alternates = scene.path(name).join(".git/objects/info/alternates");
        let text = format!("{}\n", other.join("objects").display());
        std::fs::write(alternates, text).expect("a file");
    };
    scene.compare(&["-a", "-d", "-l"], &borrow);
    scene.compare(&["-a", "-d", "-l", "-b"], &borrow);
    scene.compare(&["-A", "-d"], &borrow);
    scene.compare(&["-d", "-l"], &borrow);
}

#[test]
fn a_multi_pack_index_is_removed_before_its_packs() {
    let scene = Scene::new();
    let index = |name: &str| {
        scene.git(name, &["multi-pack-index", "write", "--bitmap"]);
    };
    scene.compare(&["-a", "-d"], &index);
    scene.compare(&["-d"], &index);
    scene.compare(&["-g2", "-d"], &index);
    scene.compare(&["-a", "-d", "-m"], &index);
}

#[test]
fn nothing_is_lost_at_any_kill() {
    let scene = Scene::new();
    let wanted = scene.git("first", &["rev-list", "--objects", "--all", "--reflog"]);
    let loose_too = scene.git(
        "first",
        &["cat-file", "--batch-all-objects", "--batch-check"],
    );
    // From the start to long after the end.
    for milliseconds in [0, 1, 2, 4, 6, 9, 13, 18, 25, 35, 50, 80, 150] {
        for call in [
            &["repack", "-A", "-d", "-q"][..],
            &["repack", "-g2", "-d", "-m"],
        ] {
            scene.copy("ours");
            let mut child = scene.command(pronto_path(), "ours", call);
            let mut child = child.spawn().expect("it can be started");
            std::thread::sleep(Duration::from_millis(milliseconds));
            let _ = child.kill();
            let _ = child.wait();
            scene.git("ours", &["fsck", "--full", "--strict"]);
            let left = scene.git("ours", &["rev-list", "--objects", "--all", "--reflog"]);
            assert_eq!(left, wanted, "{call:?} killed after {milliseconds} ms");
            // Unreachable objects are kept too.
            let all = ["cat-file", "--batch-all-objects", "--batch-check"];
            assert_eq!(scene.git("ours", &all), loose_too);
            let again = scene.run(pronto_path(), "ours", &["repack", "-a", "-d", "-q"]);
            assert!(again.status.success(), "{again:?}");
            scene.git("ours", &["fsck", "--full", "--strict"]);
        }
    }
}
