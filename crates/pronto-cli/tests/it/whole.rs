//! Whole repositories, by every transport: what a clone leaves behind is compared with what stock
//! git leaves behind, and what `status` says of it with what git says, in every format.
//!
//! `PRONTO_TEST_REPOSITORIES` names repositories (their paths, separated by colons) of any size;
//! without it a small one is made.

use std::collections::BTreeSet;
use std::ffi::OsString;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use test_support::{INSTALL, report_skip};

use crate::servers::{Daemon, Login, Ssh, Tls, Web};

const VARIABLE: &str = "PRONTO_TEST_REPOSITORIES";

/// The arguments of status that both programs are compared with.
const FORMATS: &[&[&str]] = &[
    &[],
    &["--long", "-uno"],
    &["-uall"],
    &["--short"],
    &["--short", "-b", "--ahead-behind"],
    &["--porcelain"],
    &["--porcelain", "-z", "-b"],
    &["--porcelain=v2"],
    &["--porcelain=v2", "--branch", "--show-stash"],
    &["--porcelain=v2", "-z", "-uall"],
    &["--ignored"],
    &["--short", "--ignored=matching", "-uall"],
    &["--short", "--ignored=traditional", "-unormal"],
    &["--no-renames", "--porcelain=v2"],
    &["--find-renames=20", "--short"],
    &["--", "Documentation", "t", "*.c"],
];

/// The directories of one served repository and its clone.
struct Place {
    folder: tempfile::TempDir,
    name: String,
}

impl Place {
    fn new(repository: &Path) -> Self {
        let parent =
            std::env::var_os("PRONTO_TEST_FOLDER").unwrap_or_else(|| OsString::from("/tmp"));
        let folder = tempfile::tempdir_in(parent).expect("a folder");
        let name = "origin.git".to_owned();
        std::os::unix::fs::symlink(repository, folder.path().join(&name)).expect("a link");
        Place { folder, name }
    }

    fn path(&self) -> &Path {
        self.folder.path()
    }

    fn run(&self, program: &str, arguments: &[&str]) -> Vec<u8> {
        let mut command = self.command(program);
        let output = command.args(arguments).output().expect("it is installed");
        let said = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success(), "{program} {arguments:?}: {said}");
        output.stdout
    }

    fn command(&self, program: &str) -> Command {
        let mut command = Command::new(program);
        command
            .current_dir(self.path())
            .env("HOME", self.path())
            .env("GIT_CONFIG_NOSYSTEM", "1")
            .env("GIT_CONFIG_GLOBAL", self.path().join("gitconfig"))
            .env_remove("GIT_SSL_CAINFO")
            .env_remove("GIT_SSL_NO_VERIFY")
            .env("GIT_TERMINAL_PROMPT", "0")
            .env("PRONTO_NO_FALLBACK", "1")
            .envs([("GIT_COMMITTER_NAME", "c"), ("GIT_COMMITTER_EMAIL", "c@x")])
            .env("GIT_COMMITTER_DATE", "1112911993 -0700");
        command
    }

    /// Everything of the clone `copy` that does not depend on how it travelled.
    fn state(&self, copy: &str, url: &str) -> Vec<(String, String)> {
        let folder = self.path().join(copy).join(".git");
        let mut state = Vec::new();
        for name in ["HEAD", "config", "packed-refs", "logs/HEAD"] {
            let text = fs::read_to_string(folder.join(name)).expect("git has it too");
            state.push((name.to_owned(), text.replace(url, "URL")));
        }
        for question in [
            &["for-each-ref"][..],
            &["symbolic-ref", "refs/remotes/origin/HEAD"],
            &["ls-files", "-s"],
            &["status", "--porcelain"],
            &["stash", "list"],
            &["rev-parse", "--is-shallow-repository"],
        ] {
            let answer = self.run("git", &[&["-C", copy], question].concat());
            let answer = String::from_utf8_lossy(&answer).into_owned();
            state.push((question.join(" "), answer));
        }
        state
    }

    /// Asks both programs for every format.
    fn compare_statuses(&self, copy: &str) {
        for format in FORMATS {
            let arguments = [&["-C", copy, "status"], *format].concat();
            let ours = self.run(env!("CARGO_BIN_EXE_pronto"), &arguments);
            let theirs = self.run("git", &arguments);
            if ours != theirs {
                let at = (ours.iter().zip(&theirs)).position(|(one, other)| one != other);
                let at = at.unwrap_or(ours.len().min(theirs.len()));
                let from = at.saturating_sub(200);
                panic!(
                    "status {format:?} differs at byte {at}:\n{}\n--- git:\n{}",
                    String::from_utf8_lossy(&ours[from..ours.len().min(at + 200)]),
                    String::from_utf8_lossy(&theirs[from..theirs.len().min(at + 200)]),
                );
            }
        }
    }

    /// Changes files of the clone in every way that status tells apart.
    fn change(&self, copy: &str) {
        let files = self.run("git", &["-C", copy, "ls-files", "-z"]);
        let files: Vec<&str> = files
            .split(|&byte| byte == 0)
            .filter_map(|name| std::str::from_utf8(name).ok())
            .filter(|name| !name.is_empty())
            .collect();
        let top = self.path().join(copy);
        let step = (files.len() / 40).max(1);
        for (at, name) in files.iter().step_by(step).enumerate() {
            let path = top.join(name);
            match at % 5 {
                0 => fs::write(&path, "changed\n").expect("a file"),
                1 => fs::remove_file(&path).expect("it was there"),
                2 => drop(self.run("git", &["-C", copy, "rm", "-q", "--cached", name])),
                3 => {
                    let moved = format!("{name}.moved");
                    self.run("git", &["-C", copy, "mv", "-f", name, &moved]);
                }
                _ => {
                    fs::write(&path, "staged\n").expect("a file");
                    self.run("git", &["-C", copy, "add", "-f", "--", name]);
                    fs::write(&path, "and changed again\n").expect("a file");
                }
            }
            if let Some(folder) = path.parent() {
                fs::create_dir_all(folder.join("new folder/within")).expect("a folder");
                fs::write(folder.join("new folder/within/ä file"), "new\n").expect("a file");
                fs::write(folder.join("object.o"), "perhaps ignored\n").expect("a file");
            }
        }
    }
}

/// A repository with a few hundred files and some history.
fn small_repository(folder: &Path) -> PathBuf {
    let git = |arguments: &[&str]| {
        let status = Command::new("git")
            .args(arguments)
            .current_dir(folder)
            .envs([("GIT_AUTHOR_NAME", "a"), ("GIT_AUTHOR_EMAIL", "a@x")])
            .envs([("GIT_COMMITTER_NAME", "c"), ("GIT_COMMITTER_EMAIL", "c@x")])
            .status();
        assert!(status.expect("git is installed").success(), "{arguments:?}");
    };
    git(&["init", "-q", "-b", "main", "small"]);
    let top = folder.join("small");
    for round in 0..8 {
        for at in 0..200 {
            let directory = top.join(format!("d{}/e{}", at % 7, at % 3));
            fs::create_dir_all(&directory).expect("a folder");
            let text = format!("{}\n", (at + round * (at % 2)) * 7919).repeat(at + 1);
            fs::write(directory.join(format!("file{at}.c")), text).expect("a file");
        }
        fs::write(top.join(".gitignore"), "*.o\n").expect("a file");
        git(&["-C", "small", "add", "."]);
        git(&[
            "-C",
            "small",
            "commit",
            "-q",
            "-m",
            &format!("round {round}"),
        ]);
        git(&["-C", "small", "tag", "-m", "tagged", &format!("v{round}")]);
    }
    git(&["-C", "small", "branch", "side", "HEAD~3"]);
    top.join(".git")
}

/// Names of the packs of a clone: the checksums of their content.
fn packs(copy: &Path) -> BTreeSet<OsString> {
    let folder = fs::read_dir(copy.join(".git/objects/pack")).expect("a clone");
    let names = folder.map(|entry| entry.expect("an entry").file_name());
    names
        .filter(|name| name.to_string_lossy().ends_with(".pack"))
        .collect()
}

fn compare_by_every_transport(repository: &Path) {
    let place = Place::new(repository);
    let root = place.path().to_owned();
    let local = format!("file://{}/{}", root.display(), place.name);
    place.run("git", &["clone", "-q", &local, "theirs"]);
    let theirs = place.state("theirs", &local);
    let mut checked = BTreeSet::new();
    let mut compare = |name: &str, url: &str, options: &[&str]| {
        let begun = std::time::Instant::now();
        let arguments = [options, &["clone", "-q", url, "ours"]].concat();
        place.run(env!("CARGO_BIN_EXE_pronto"), &arguments);
        let took = begun.elapsed();
        for (ours, theirs) in place.state("ours", url).iter().zip(&theirs) {
            assert!(ours == theirs, "{name}: {} differs", ours.0);
        }
        // A pack of the same checksum has been checked already.
        if checked.insert(packs(&root.join("ours"))) {
            place.run("git", &["-C", "ours", "fsck", "--full", "--strict"]);
        }
        println!("{}: {name}: the same, {took:.1?}", repository.display());
        fs::remove_dir_all(root.join("ours")).expect("our own clone");
    };
    compare("file", &local, &[]);
    compare("path", &root.join(&place.name).to_string_lossy(), &[]);
    compare("git", &Daemon::start(&root).url(&place.name), &[]);
    match Web::start(&root, Login::Open) {
        Some(web) => {
            compare("http", &web.url(&place.name), &[]);
            match Tls::before(web.port()) {
                Some(tls) => {
                    let setting = format!("http.sslCAInfo={}", tls.authority.display());
                    compare("https", &tls.url(&place.name), &["-c", &setting]);
                }
                None => report_skip(&"openssl is not installed", &INSTALL),
            }
        }
        None => report_skip(&"lighttpd is not installed", &INSTALL),
    }
    if let Some(web) = Web::start(&root, Login::Basic) {
        let helper = "credential.helper=!f() { echo username=me; echo password=secret; }; f";
        compare("password", &web.url(&place.name), &["-c", helper]);
    }
    match Ssh::start() {
        Some(ssh) => {
            let setting = format!("core.sshCommand={}", ssh.command());
            let url = ssh.url(&root.join(&place.name));
            compare("ssh", &url, &["-c", &setting]);
        }
        None => report_skip(&"sshd is not installed", &INSTALL),
    }
    place.run(
        env!("CARGO_BIN_EXE_pronto"),
        &["clone", "-q", &local, "ours"],
    );
    place.compare_statuses("ours");
    place.change("ours");
    place.compare_statuses("ours");
    println!(
        "{}: {} statuses: the same",
        repository.display(),
        2 * FORMATS.len()
    );
}

#[test]
fn clones_and_statuses_are_those_of_git() {
    match std::env::var_os(VARIABLE) {
        Some(paths) => {
            for path in std::env::split_paths(&paths) {
                compare_by_every_transport(&path);
            }
        }
        None => {
            let folder = tempfile::tempdir().expect("a folder");
            compare_by_every_transport(&small_repository(folder.path()));
        }
    }
}
