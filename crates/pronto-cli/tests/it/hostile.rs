//! Hostile repositories: names that some file system treats as `.git` or as a path above the
//! worktree, trees with duplicate names, symbolic links through which files would be written, links
//! that another process creates, and trees of extreme size. These are refused as in git, and
//! nothing is written outside of the worktree, into `.git`, or through a link.

use std::collections::BTreeMap;
use std::io::{BufRead, BufReader, Write};
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, ChildStdout, Output, Stdio};

use crate::faults::git;
use crate::support::{Scratch, process, pronto_path, stderr, stdout};

pub(crate) const FILE: &str = "100644";
pub(crate) const LINK: &str = "120000";
pub(crate) const DIRECTORY: &str = "40000";
pub(crate) const SUBMODULE: &str = "160000";

/// A repository, files outside of it that must not change, and a process that writes trees.
pub(crate) struct Scene {
    pub(crate) scratch: Scratch,
    pub(crate) trees: Trees,
    /// A blob, and the target of a symbolic link that leads out of the worktree.
    pub(crate) blob: String,
    pub(crate) link: String,
    /// The first commit, of a file `first`.
    pub(crate) base: String,
}

/// `git mktree --batch`, which accepts trees in any order.
pub(crate) struct Trees {
    process: Child,
    input: ChildStdin,
    output: BufReader<ChildStdout>,
}

impl Drop for Trees {
    fn drop(&mut self) {
        // It waits for more input.
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

impl Trees {
    fn new(work: &Path) -> Trees {
        let mut process = process("git")
            .args(["mktree", "-z", "--batch", "--missing"])
            .current_dir(work)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .expect("git starts");
        Trees {
            input: process.stdin.take().expect("it is a pipe"),
            output: BufReader::new(process.stdout.take().expect("it is a pipe")),
            process,
        }
    }

    /// Writes a tree of entries with mode, name and id, which are sorted.
    pub(crate) fn make(&mut self, entries: &[(&str, &[u8], &str)]) -> String {
        for (mode, name, id) in entries {
            let kind = match *mode {
                DIRECTORY => "tree",
                SUBMODULE => "commit",
                _ => "blob",
            };
            let mut line = format!("{mode} {kind} {id}\t").into_bytes();
            line.extend_from_slice(name);
            line.push(0);
            self.input.write_all(&line).expect("git reads");
        }
        self.input.write_all(&[0]).expect("git reads");
        self.input.flush().expect("git reads");
        let mut id = String::new();
        self.output.read_line(&mut id).expect("git answers");
        id.trim().to_owned()
    }
}

impl Scene {
    pub(crate) fn new() -> Scene {
        let scratch = Scratch::new();
        let outside = scratch.path().join("outside");
        std::fs::create_dir(&outside).expect("a directory");
        std::fs::write(outside.join("file"), "outside\n").expect("a file");
        let work = scratch.path().join("work");
        std::fs::create_dir_all(&work).expect("a directory");
        expect(&work, &["init", "-q", "-b", "main"]);
        std::fs::write(work.join("first"), "first\n").expect("a file");
        expect(&work, &["add", "."]);
        expect(&work, &["commit", "-qm", "one"]);
        std::fs::write(
            scratch.path().join("target"),
            outside.as_os_str().as_bytes(),
        )
        .expect("a file");
        let hash = |path: &str| expect(&work, &["hash-object", "-w", "--no-filters", path]);
        let (blob, link) = (hash("first"), hash("../target"));
        std::fs::remove_file(scratch.path().join("target")).expect("it was there");
        Scene {
            trees: Trees::new(&work),
            base: expect(&work, &["rev-parse", "HEAD"]),
            scratch,
            blob,
            link,
        }
    }

    pub(crate) fn work(&self) -> PathBuf {
        self.scratch.path().join("work")
    }

    /// The directory that must not change.
    pub(crate) fn outside(&self) -> PathBuf {
        self.scratch.path().join("outside")
    }

    pub(crate) fn commit(&self, tree: &str) -> String {
        expect(&self.work(), &["commit-tree", "-m", "made", tree])
    }

    /// Writes a tree of these bytes, which git would refuse to write.
    fn raw_tree(&self, entries: &[(&str, &str, &str)]) -> String {
        let mut bytes = Vec::new();
        for (mode, name, id) in entries {
            bytes.extend_from_slice(format!("{mode} {name}\0").as_bytes());
            let digits = id.as_bytes().chunks(2);
            bytes.extend(digits.map(|two| {
                let two = std::str::from_utf8(two).expect("digits");
                u8::from_str_radix(two, 16).expect("digits")
            }));
        }
        let path = self.scratch.path().join("tree");
        std::fs::write(&path, bytes).expect("a file");
        let arguments = ["hash-object", "-t", "tree", "-w", "--literally", "../tree"];
        let id = expect(&self.work(), &arguments);
        std::fs::remove_file(path).expect("it was there");
        id
    }

    /// Lists all files here and in `.git`, except for objects. They must not change.
    pub(crate) fn everything(&self) -> BTreeMap<PathBuf, Vec<u8>> {
        let mut found = BTreeMap::new();
        list(self.scratch.path(), &mut found);
        found
    }

    fn run(&self, program: &Path, arguments: &[&str]) -> Output {
        run(program, &self.work(), arguments)
    }

    /// Runs `arguments` with both programs. Both must refuse with the same code, `message` must be
    /// printed, and nothing may change.
    fn refuses(&self, arguments: &[&str], message: &str) {
        let before = self.everything();
        // Git restores the files of a tree that it does not refuse.
        let is_lax = arguments.contains(&"restore");
        let theirs = (!is_lax).then(|| self.run(Path::new("git"), arguments));
        let ours = self.run(pronto_path(), arguments);
        let said = stderr(&ours);
        assert!(!ours.status.success(), "{arguments:?} is not refused");
        assert!(said.contains(message), "{arguments:?}: {said}");
        let after = self.everything();
        assert!(before == after, "{arguments:?} changes something: {said}");
        if let Some(theirs) = theirs {
            let expected = theirs.status.code();
            assert_eq!(ours.status.code(), expected, "{arguments:?}: {said}");
            assert!(stderr(&theirs).contains(message), "{}", stderr(&theirs));
        }
    }

    /// Clones `commit`. There must be a repository without files, and nothing outside of it.
    fn clone_is_refused(&self, commit: &str, message: &str) {
        expect(&self.work(), &["update-ref", "refs/heads/bad", commit]);
        let before = self.everything();
        let arguments = ["clone", "-q", "-b", "bad", "work", "cloned"];
        for program in [Path::new("git"), pronto_path()] {
            let output = run(program, self.scratch.path(), &arguments);
            let said = stderr(&output);
            assert_eq!(output.status.code(), Some(128), "{said}");
            assert!(said.contains(message), "{program:?}: {said}");
            assert!(
                said.contains("Clone succeeded, but checkout failed"),
                "{said}"
            );
            let cloned = self.scratch.path().join("cloned");
            let names = std::fs::read_dir(&cloned).expect("it stays");
            assert_eq!(names.count(), 1, "nothing but .git: {said}");
            std::fs::remove_dir_all(cloned).expect("it is there");
        }
        assert!(before == self.everything(), "something is beside the clone");
        expect(&self.work(), &["update-ref", "-d", "refs/heads/bad"]);
    }
}

pub(crate) fn run(program: &Path, directory: &Path, arguments: &[&str]) -> Output {
    process(program)
        .args(arguments)
        .env("PRONTO_NO_FALLBACK", "1")
        .current_dir(directory)
        .output()
        .expect("it starts")
}

pub(crate) fn expect(directory: &Path, arguments: &[&str]) -> String {
    let output = git(directory, arguments);
    let said = stderr(&output);
    assert!(output.status.success(), "{arguments:?}: {said}");
    stdout(&output).trim().to_owned()
}

pub(crate) fn list(directory: &Path, found: &mut BTreeMap<PathBuf, Vec<u8>>) {
    for entry in std::fs::read_dir(directory).expect("it lists") {
        let path = entry.expect("an entry").path();
        let kind = path.symlink_metadata().expect("it is there").file_type();
        if kind.is_symlink() {
            let target = std::fs::read_link(&path).expect("a link");
            found.insert(path, target.as_os_str().as_bytes().to_owned());
        } else if kind.is_file() {
            let content = std::fs::read(&path).expect("a file");
            found.insert(path, content);
        } else if !path.ends_with(".git/objects") {
            list(&path, found);
            found.insert(path, Vec::new());
        }
    }
}

/// Names, their types, and the settings under which they are refused.
const NAMES: &[(&[u8], &str, &[&str])] = &[
    (b".git", DIRECTORY, &[]),
    (b".git", LINK, &[]),
    (b".GIT", DIRECTORY, &["core.protectNTFS=false"]),
    (b".gIt", SUBMODULE, &["core.protectNTFS=false"]),
    (b"git~1", DIRECTORY, &[]),
    (b"GIT~1", FILE, &[]),
    (b".git ", DIRECTORY, &[]),
    (b".git.", DIRECTORY, &[]),
    (b".git . .", DIRECTORY, &[]),
    (b".git::$INDEX_ALLOCATION", DIRECTORY, &[]),
    (b"git~1:x", FILE, &[]),
    (b".git\\x", FILE, &[]),
    (b"a\\.GIT\\x", FILE, &[]),
    (b"..", DIRECTORY, &[]),
    (b".", DIRECTORY, &[]),
    (b".gitmodules", LINK, &[]),
    (b".GITMODULES", LINK, &["core.protectNTFS=false"]),
    (b"gitmod~1", LINK, &[]),
    (b"GI7EBA~1", LINK, &[]),
    (b".gitmodules .", LINK, &[]),
    (b".g\xe2\x80\x8cit", DIRECTORY, &["core.protectHFS=true"]),
    (b"\xe2\x80\xae.git", DIRECTORY, &["core.protectHFS=true"]),
    (b".GIT\xef\xbb\xbf", FILE, &["core.protectHFS=true"]),
    (b".git\xff", DIRECTORY, &["core.protectHFS=true"]),
    (b".gitmod\xe2\x80\x8fules", LINK, &["core.protectHFS=true"]),
];

/// The calls that check out the commit `BAD`.
const CALLS: &[&[&str]] = &[
    &["checkout", "-q", "BAD"],
    &["checkout", "-q", "-f", "BAD"],
    &["checkout", "-q", "-b", "new", "BAD"],
    &["switch", "-q", "--detach", "BAD"],
    &["switch", "-q", "--discard-changes", "--detach", "BAD"],
    &["reset", "-q", "--hard", "BAD"],
    &["reset", "-q", "--keep", "BAD"],
    &["reset", "-q", "--merge", "BAD"],
    &["reset", "-q", "BAD"],
    &["read-tree", "BAD"],
    &["read-tree", "-m", "-u", "BAD"],
    &["read-tree", "-m", "-u", "HEAD", "BAD"],
    &["read-tree", "-m", "-u", "HEAD", "HEAD", "BAD"],
    &["read-tree", "--reset", "-u", "BAD"],
    &["read-tree", "--prefix=below/", "-u", "BAD"],
    &["restore", "--source=BAD", "."],
    &["restore", "--source=BAD", "--staged", "--worktree", "."],
];

fn hostile_commit(scene: &mut Scene, name: &[u8], mode: &str) -> String {
    let (blob, link, base) = (scene.blob.clone(), scene.link.clone(), scene.base.clone());
    let id = match mode {
        FILE => blob.clone(),
        LINK => link,
        SUBMODULE => base,
        _ => scene.trees.make(&[(FILE, b"x", &blob)]),
    };
    let tree = scene
        .trees
        .make(&[(FILE, b"first", &blob), (mode, name, &id)]);
    let above = scene.trees.make(&[(DIRECTORY, b"dir", &tree)]);
    // At the top and in a subdirectory.
    let top = [tree, above][usize::from(name.len().is_multiple_of(2))].clone();
    scene.commit(&top)
}

#[test]
fn no_spelling_of_the_git_directory_is_checked_out() {
    let mut scene = Scene::new();
    for (name, mode, settings) in NAMES {
        let commit = hostile_commit(&mut scene, name, mode);
        for call in [&CALLS[0], &CALLS[5]] {
            let mut arguments: Vec<&str> = Vec::new();
            settings
                .iter()
                .for_each(|setting| arguments.extend(["-c", setting]));
            arguments.extend(call.iter().map(|word| match *word {
                "BAD" => &commit,
                word => word,
            }));
            scene.refuses(&arguments, "invalid path '");
        }
    }
}

#[test]
fn no_command_writes_into_the_repository() {
    let mut scene = Scene::new();
    for (name, mode) in [
        (&b".git"[..], DIRECTORY),
        (b"..", DIRECTORY),
        (b"git~1", LINK),
    ] {
        let commit = hostile_commit(&mut scene, name, mode);
        for call in CALLS {
            let with = |word: &&str| word.replace("BAD", &commit);
            let arguments: Vec<String> = call.iter().map(with).collect();
            let arguments: Vec<&str> = arguments.iter().map(String::as_str).collect();
            scene.refuses(&arguments, "invalid path '");
        }
        scene.clone_is_refused(&commit, "invalid path '");
        // Also when it enters the patterns of a sparse checkout.
        expect(
            &scene.work(),
            &["sparse-checkout", "set", "--no-cone", "first"],
        );
        scene.refuses(&["checkout", "-q", &commit], "invalid path '");
        scene.refuses(&["read-tree", "-m", "-u", &commit], "invalid path '");
        expect(&scene.work(), &["sparse-checkout", "disable"]);
    }
}

#[test]
fn names_with_slashes_and_without_letters_are_refused() {
    let scene = Scene::new();
    let blob = &scene.blob;
    // Git accepts some of these.
    for name in [
        "",
        "/x",
        "a/b",
        "../x",
        "a/../../x",
        "a//b",
        "a/.git/x",
        "/",
    ] {
        let commit = scene.commit(&scene.raw_tree(&[(FILE, name, blob)]));
        let before = scene.everything();
        for call in [
            "checkout -q",
            "reset -q --hard",
            "read-tree -m -u",
            "read-tree",
        ] {
            let arguments: Vec<&str> = call.split(' ').chain([&*commit]).collect();
            let output = scene.run(pronto_path(), &arguments);
            assert!(!output.status.success(), "{call}: {name}");
            assert!(
                stderr(&output).contains("invalid path '"),
                "{}",
                stderr(&output)
            );
        }
        assert!(before == scene.everything(), "{name}");
    }
}

#[test]
fn trees_with_duplicate_names_are_refused_and_unsorted_ones_accepted() {
    let mut scene = Scene::new();
    let (blob, link) = (scene.blob.clone(), scene.link.clone());
    let below = scene.trees.make(&[(FILE, b"x", &blob)]);
    for entries in [
        &[(FILE, "a", &blob), (FILE, "a", &blob)][..],
        &[(FILE, "a", &blob), (LINK, "a", &link)],
        &[(LINK, "a", &link), (DIRECTORY, "a", &below)],
        &[
            (FILE, "a", &blob),
            (FILE, "a.b", &blob),
            (DIRECTORY, "a", &below),
        ],
        &[(DIRECTORY, "a", &below), (LINK, "a", &link)],
        &[(DIRECTORY, "a", &below), (SUBMODULE, "a", &scene.base)],
    ] {
        let entries: Vec<_> = entries
            .iter()
            .map(|(m, n, i)| (*m, *n, i.as_str()))
            .collect();
        let commit = scene.commit(&scene.raw_tree(&entries));
        expect(&scene.work(), &["update-ref", "refs/heads/bad", &commit]);
        let before = scene.everything();
        for call in [
            "checkout -q",
            "reset -q --hard",
            "read-tree -m -u",
            "restore . -s",
        ] {
            let arguments: Vec<&str> = call.split(' ').chain([&*commit]).collect();
            let output = scene.run(pronto_path(), &arguments);
            assert!(!output.status.success(), "{call}: {entries:?}");
            let said = stderr(&output);
            assert!(
                said.contains("'a': the tree has it twice"),
                "{call}: {said}"
            );
        }
        assert!(before == scene.everything(), "{entries:?}");
        let clone = ["clone", "-q", "-b", "bad", "work", "cloned"];
        let output = run(pronto_path(), scene.scratch.path(), &clone);
        assert_eq!(output.status.code(), Some(128), "{}", stderr(&output));
        std::fs::remove_dir_all(scene.scratch.path().join("cloned")).expect("it stays");
        expect(&scene.work(), &["update-ref", "-d", "refs/heads/bad"]);
    }
    // Switches to such a tree and back, as git does.
    let entries = [
        (FILE, "first", &*blob),
        (DIRECTORY, "b", &below),
        (FILE, "b.c", &blob),
        (FILE, "a", &blob),
    ];
    let commit = scene.commit(&scene.raw_tree(&entries));
    for call in ["checkout -q --detach", "reset -q --hard", "read-tree -m -u"] {
        let states = [Path::new("git"), pronto_path()].map(|program| {
            expect(&scene.work(), &["checkout", "-qf", "main"]);
            expect(&scene.work(), &["reset", "-q", "--hard", &scene.base]);
            let arguments: Vec<&str> = call.split(' ').chain([&*commit]).collect();
            let output = scene.run(program, &arguments);
            assert!(output.status.success(), "{call}: {}", stderr(&output));
            let index = expect(&scene.work(), &["ls-files", "-s"]);
            let files = scene.everything().into_iter();
            let files = files.filter(|(path, _)| !path.to_string_lossy().contains("/.git/"));
            let state = (index, files.collect::<BTreeMap<_, _>>());
            let output = scene.run(program, &["checkout", "-q", "-f", &scene.base]);
            assert!(output.status.success(), "{call}: {}", stderr(&output));
            (state, expect(&scene.work(), &["status", "--porcelain"]))
        });
        assert!(states[0] == states[1], "{call}: {states:?}");
        assert!(states[1].0.0.contains("b/x"), "{call}: {states:?}");
    }
}
