//! Every change of a path from one type to another, combined with every change of the worktree.
//! One, two and any number of workers leave the same files, print the same messages and exit with
//! the same code as git.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;
use std::io::Write as _;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::{Path, PathBuf};
use std::process::{Output, Stdio};

use slowfs::Folding;

use crate::faults::{Place, git};
use crate::support::{Scratch, process, pronto_path, stderr, stdout};

/// The types of a path in a tree.
const SORTS: [&str; 6] = ["none", "file", "program", "directory", "link", "submodule"];

/// The changes of a path in the worktree before the checkout. A suffix `-ig` makes the path
/// ignored.
const DISTURBANCES: [&str; 11] = [
    "nothing", "gone", "file", "program", "full", "empty", "link", "within", "file-ig", "full-ig",
    "link-ig",
];

/// A path with its types in both commits, and its change in the worktree in between.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
struct Change {
    from: &'static str,
    /// One of [`SORTS`], or `same`.
    to: &'static str,
    disturbance: &'static str,
}

impl Change {
    fn name(self) -> String {
        format!("{}.{}.{}", self.from, self.to, self.disturbance)
    }

    fn all() -> impl Iterator<Item = Change> {
        let targets = || SORTS.into_iter().chain(["same"]);
        let pairs = SORTS
            .into_iter()
            .flat_map(move |from| targets().map(move |to| (from, to)));
        pairs.flat_map(|(from, to)| {
            DISTURBANCES.map(|disturbance| Change {
                from,
                to,
                disturbance,
            })
        })
    }

    /// Those for the call `number`: a quarter, another one for the next call. All of them with
    /// `PRONTO_TEST_MATRIX=all`.
    fn some(number: usize) -> BTreeSet<Change> {
        let each = if is_whole() { 1 } else { 4 };
        let chosen = Change::all().skip(number % each);
        chosen.step_by(each).collect()
    }

    /// Changes the path in the worktree.
    fn disturb(self, work: &Path) {
        let path = work.join(self.name());
        let clear = || {
            let is_directory = path.symlink_metadata().is_ok_and(|it| it.is_dir());
            let _ = if is_directory {
                std::fs::remove_dir_all(&path)
            } else {
                std::fs::remove_file(&path)
            };
        };
        let write = |path: &Path| std::fs::write(path, "disturbed\n").expect("a file");
        match self.disturbance.trim_end_matches("-ig") {
            "nothing" => {}
            "gone" => clear(),
            "file" => {
                clear();
                write(&path);
            }
            "program" => {
                clear();
                write(&path);
                let all = std::fs::Permissions::from_mode(0o755);
                std::fs::set_permissions(&path, all).expect("it is ours");
            }
            "full" => {
                clear();
                std::fs::create_dir(&path).expect("a directory");
                write(&path.join("u"));
            }
            "empty" => {
                clear();
                std::fs::create_dir(&path).expect("a directory");
            }
            "link" => {
                clear();
                symlink("elsewhere", &path).expect("a link");
            }
            "within" => {
                if path.symlink_metadata().is_ok_and(|it| it.is_dir()) {
                    write(&path.join("x"));
                    write(&path.join("new"));
                }
            }
            disturbance => unreachable!("{disturbance}"),
        }
    }
}

/// The worktree of a repository with both commits.
struct Scene {
    work: PathBuf,
    commits: [String; 2],
}

impl Scene {
    fn new(work: &Path, paths: &BTreeSet<Change>) -> Scene {
        std::fs::create_dir_all(work).expect("a directory");
        expect(work, &["init", "-q", "-b", "main"]);
        std::fs::write(work.join(".git/info/exclude"), "*-ig\n").expect("a file");
        let blob = |content: &str| hash(work, content);
        let (contents, links) = (
            [blob("one\n"), blob("two, and longer\n")],
            [blob("target"), blob("other target")],
        );
        let submodule = "1234567890123456789012345678901234567890";
        let submodules = [submodule, "2234567890123456789012345678901234567890"];
        let commits = [0, 1].map(|at| {
            let mut info = String::new();
            for path in paths {
                let (sort, version) = match (at, path.to) {
                    (0, _) | (1, "same") => (path.from, 0),
                    (_, to) => (to, 1),
                };
                let (name, content) = (path.name(), &contents[version]);
                let _ = match sort {
                    "none" => Ok(()),
                    "file" => writeln!(info, "100644 {content}\t{name}"),
                    "program" => writeln!(info, "100755 {content}\t{name}"),
                    "link" => writeln!(info, "120000 {}\t{name}", links[version]),
                    "submodule" => writeln!(info, "160000 {}\t{name}", submodules[version]),
                    _ => writeln!(
                        info,
                        "100644 {content}\t{name}/x\n100644 {content}\t{name}/y/z"
                    ),
                };
            }
            commit(work, &info)
        });
        Scene {
            work: work.to_owned(),
            commits,
        }
    }

    /// Checks out the first commit and changes `paths` in the worktree.
    fn prepare(&self, paths: &BTreeSet<Change>) {
        for entry in std::fs::read_dir(&self.work).expect("it lists") {
            let path = entry.expect("an entry").path();
            if path.ends_with(".git") {
                continue;
            }
            let is_directory = path.symlink_metadata().expect("it is there").is_dir();
            if is_directory {
                std::fs::remove_dir_all(path).expect("it is ours");
            } else {
                std::fs::remove_file(path).expect("it is ours");
            }
        }
        let _ = std::fs::remove_file(self.work.join(".git/index"));
        expect(
            &self.work,
            &["checkout", "-q", "-f", "--detach", &self.commits[0]],
        );
        paths.iter().for_each(|path| path.disturb(&self.work));
    }

    /// Runs `call` and returns its output and the state of the worktree.
    fn run(&self, program: &Path, setting: &str, call: &[String]) -> State {
        let output = process(program)
            .args(["-c", setting, "-c", "checkout.thresholdForParallelism=0"])
            .args(call)
            .env("PRONTO_NO_FALLBACK", "1")
            .current_dir(&self.work)
            .output()
            .expect("it starts");
        State::of(&self.work, &output)
    }

    /// Splits the call `text`, with the commits in place of `A` and `B`.
    fn call(&self, text: &str) -> Vec<String> {
        let word = |word: &str| match word {
            "A" => self.commits[0].clone(),
            "B" => self.commits[1].clone(),
            word => word.to_owned(),
        };
        text.split(' ').map(word).collect()
    }

    /// Compares pronto with git over `paths`. Returns the result of git.
    fn compare(&self, text: &str, paths: &BTreeSet<Change>) -> State {
        let call = self.call(text);
        self.prepare(paths);
        let theirs = self.run(Path::new("git"), "checkout.workers=1", &call);
        for workers in ["1", "2", "auto"] {
            self.prepare(paths);
            let setting = format!("checkout.workers={workers}");
            let ours = self.run(pronto_path(), &setting, &call);
            let context = format!("{text} with {workers} workers");
            ours.assert_is(&theirs, &context);
        }
        theirs
    }
}

/// Whether the whole product is tested (`PRONTO_TEST_MATRIX=all`).
fn is_whole() -> bool {
    std::env::var("PRONTO_TEST_MATRIX").is_ok_and(|value| value == "all")
}

/// The state of the worktree after a call, and its output.
#[derive(PartialEq, Eq)]
pub(crate) struct State {
    files: BTreeMap<String, String>,
    /// Entries with sizes and flags.
    index: Vec<String>,
    said: BTreeSet<String>,
    code: Option<i32>,
}

impl State {
    pub(crate) fn of(work: &Path, output: &Output) -> State {
        let mut files = BTreeMap::new();
        list(work, work, &mut files);
        let said = format!("{}{}", stdout(output), stderr(output));
        State {
            files,
            index: index(work),
            said: said.lines().map(str::to_owned).collect(),
            code: output.status.code(),
        }
    }

    pub(crate) fn assert_is(&self, expected: &State, context: &str) {
        let context = format!("{context}, {:?}: {:?}", self.code, self.said);
        let context = context.as_str();
        differ(&self.files, &expected.files, context);
        differ(&lines(&self.index), &lines(&expected.index), context);
        differ(&lines(&self.said), &lines(&expected.said), context);
        assert_eq!(self.code, expected.code, "{context}");
    }
}

fn lines<'a>(lines: impl IntoIterator<Item = &'a String>) -> BTreeMap<String, String> {
    let pairs = lines
        .into_iter()
        .map(|line| (line.clone(), "there".to_owned()));
    pairs.collect()
}

/// Fails with a list of differences.
fn differ(ours: &BTreeMap<String, String>, theirs: &BTreeMap<String, String>, context: &str) {
    let mut report = String::new();
    for key in ours.keys().chain(theirs.keys()).collect::<BTreeSet<_>>() {
        let (one, other) = (ours.get(key), theirs.get(key));
        if one != other {
            let _ = writeln!(report, "{key}: {one:?}, with git {other:?}");
        }
    }
    assert!(report.is_empty(), "{context}:\n{report}");
}

fn list(top: &Path, directory: &Path, found: &mut BTreeMap<String, String>) {
    for entry in std::fs::read_dir(directory).expect("it lists") {
        let path = entry.expect("an entry").path();
        if path == top.join(".git") {
            continue;
        }
        let name = path
            .strip_prefix(top)
            .expect("below")
            .to_string_lossy()
            .into_owned();
        let metadata = path.symlink_metadata().expect("it is there");
        let shown = if metadata.is_dir() {
            list(top, &path, found);
            "directory".to_owned()
        } else if metadata.is_symlink() {
            format!(
                "-> {}",
                std::fs::read_link(&path).expect("a link").display()
            )
        } else {
            let mode = metadata.permissions().mode() & 0o777;
            let content = std::fs::read(&path).expect("a file");
            format!("{mode:o} {}", String::from_utf8_lossy(&content))
        };
        found.insert(name, shown);
    }
}

/// Returns the entries of the index with their stat data, except for times, devices and owners.
fn index(work: &Path) -> Vec<String> {
    let shown = expect(work, &["ls-files", "--stage", "--debug"]);
    let is_noise = |line: &&str| {
        let line = line.trim_start();
        ["ctime:", "mtime:", "dev:", "uid:"]
            .iter()
            .any(|noise| line.starts_with(noise))
    };
    let mut entries: Vec<String> = Vec::new();
    for line in shown.lines().filter(|line| !is_noise(line)) {
        // For a submodule it is the size of a directory, which depends on the file system.
        let is_link = entries
            .last()
            .is_some_and(|last| last.starts_with("160000"));
        let line = match line.split_once("size: ") {
            Some((start, size)) if is_link && !size.starts_with('0') => start,
            _ => line,
        };
        match entries.last_mut() {
            Some(last) if line.starts_with(' ') => last.push_str(line),
            _ => entries.push(line.to_owned()),
        }
    }
    entries
}

fn expect(directory: &Path, arguments: &[&str]) -> String {
    let output = git(directory, arguments);
    let said = stderr(&output);
    assert!(output.status.success(), "{arguments:?}: {said}");
    stdout(&output).trim().to_owned()
}

fn feed(work: &Path, arguments: &[&str], input: &str) -> String {
    let mut child = process("git")
        .args(arguments)
        .current_dir(work)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .expect("git starts");
    let mut pipe = child.stdin.take().expect("it is a pipe");
    pipe.write_all(input.as_bytes()).expect("git reads");
    drop(pipe);
    let output = child.wait_with_output().expect("it ends");
    assert!(output.status.success(), "{arguments:?}");
    stdout(&output).trim().to_owned()
}

fn hash(work: &Path, content: &str) -> String {
    feed(
        work,
        &["hash-object", "-w", "--no-filters", "--stdin"],
        content,
    )
}

/// Creates a commit of the entries that `info` lists.
fn commit(work: &Path, info: &str) -> String {
    let _ = std::fs::remove_file(work.join(".git/index"));
    feed(work, &["update-index", "--add", "--index-info"], info);
    let tree = expect(work, &["write-tree"]);
    expect(work, &["commit-tree", "-m", "made", &tree])
}

/// Calls that overwrite local changes.
const FORCED: [&str; 5] = [
    "checkout -q -f --detach B",
    "switch -q --discard-changes --detach B",
    "reset -q --hard B",
    "read-tree --reset -u B",
    "checkout -q -f B -- .",
];

/// Calls that refuse to lose local changes.
const CAREFUL: [&str; 4] = [
    "checkout -q --detach B",
    "switch -q --detach --no-overwrite-ignore B",
    "read-tree -m -u A B",
    "read-tree -m -u B",
];

#[test]
fn every_change_of_type_with_force() {
    let scratch = Scratch::new();
    for (number, text) in FORCED.into_iter().enumerate() {
        let paths = Change::some(number);
        let scene = Scene::new(&scratch.path().join(format!("work{number}")), &paths);
        scene.compare(text, &paths);
    }
}

#[test]
fn every_change_of_type_without_force() {
    let scratch = Scratch::new();
    for (number, text) in CAREFUL.into_iter().enumerate() {
        let mut paths = Change::some(number);
        let scene = Scene::new(&scratch.path().join(format!("work{number}")), &paths);
        let (all, mut rounds) = (paths.len(), 0);
        loop {
            let theirs = scene.compare(text, &paths);
            if theirs.code == Some(0) {
                break;
            }
            // The paths that git names are not changed in the next round.
            let before = paths.len();
            paths.retain(|path| {
                let name = path.name();
                !theirs.said.iter().any(|line| line.contains(&name))
            });
            assert!(paths.len() < before, "{text}: {:?}", theirs.said);
            rounds += 1;
            if rounds == 1 && text.starts_with("read-tree") {
                // It names only one path.
                paths.retain(|path| path.disturbance == "nothing" || path.disturbance == "gone");
            }
        }
        println!(
            "{text}: {rounds} refusals, then {} of {all} paths",
            paths.len()
        );
        assert!(paths.len() > all / 8, "{text}");
    }
}

#[test]
fn every_change_of_type_without_regard_to_case() {
    let Some(place) = Place::new(Folding::Case) else {
        return;
    };
    let mut paths = Change::some(0);
    paths.retain(|path| path.disturbance != "within");
    let scene = Scene::new(&place.work().join("work"), &paths);
    assert_eq!(expect(&scene.work, &["config", "core.ignorecase"]), "true");
    scene.compare(FORCED[0], &paths);
    paths.retain(|path| path.disturbance == "nothing");
    scene.compare(CAREFUL[0], &paths);
}
