//! Repositories with reftables: pronto leaves the same state as git 2.55, and each program reads
//! the tables of the other.

use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use test_support::report_missing_reference;

use crate::support::{Scratch, process, pronto_path, stderr, stdout};

/// A git that supports reftables.
fn reference() -> Option<&'static Path> {
    let found = test_support::git::reference();
    if found.is_none() {
        report_missing_reference(&"no git that knows reftables");
    }
    found
}

/// One of the two programs, with its own directory.
struct Side {
    program: PathBuf,
    git: &'static Path,
    scratch: Scratch,
}

impl Side {
    fn new(program: &Path, git: &'static Path) -> Self {
        Side {
            program: program.to_owned(),
            git,
            scratch: Scratch::new(),
        }
    }

    fn command(&self, program: &Path, directory: &str) -> Command {
        let mut command = process(program);
        let path = std::env::var_os("PATH").unwrap_or_default();
        let first = self.git.parent().expect("a directory").to_owned();
        let all = std::iter::once(first).chain(std::env::split_paths(&path));
        command.env("PATH", std::env::join_paths(all).expect("no colons in it"));
        for role in ["AUTHOR", "COMMITTER"] {
            command.env(format!("GIT_{role}_NAME"), "A U Thor");
            command.env(format!("GIT_{role}_EMAIL"), "author@example.com");
            command.env(format!("GIT_{role}_DATE"), "1112911993 -0830");
        }
        command.env("PRONTO_NO_FALLBACK", "1");
        command.current_dir(self.scratch.path().join(directory));
        command
    }

    fn run(&self, directory: &str, arguments: &[&str]) -> Output {
        let mut command = self.command(&self.program, directory);
        command.args(arguments).output().expect("it starts")
    }

    /// Runs a call that has to succeed.
    fn ok(&self, directory: &str, arguments: &[&str]) -> String {
        let output = self.run(directory, arguments);
        let said = stderr(&output);
        assert!(
            output.status.success(),
            "{:?} {arguments:?}: {said}",
            self.program
        );
        stdout(&output)
    }

    /// Runs git and returns its output.
    fn git(&self, directory: &str, arguments: &[&str]) -> String {
        let output = self.command(self.git, directory).args(arguments).output();
        let output = output.expect("it starts");
        let said = stderr(&output);
        assert!(output.status.success(), "git {arguments:?}: {said}");
        stdout(&output)
    }

    /// Returns the state of a worktree as git reports it.
    fn state(&self, directory: &str) -> String {
        let asked: [&[&str]; 6] = [
            &["for-each-ref", "--include-root-refs"],
            &["reflog", "show", "--all", "--format=%gD %H %gn %ge %gs"],
            &["reflog", "list"],
            &["symbolic-ref", "-q", "HEAD"],
            &["refs", "verify"],
            &["fsck", "--no-dangling"],
        ];
        let mut state = String::new();
        for arguments in asked {
            if arguments[0] == "symbolic-ref" {
                let output = self.command(self.git, directory).args(arguments).output();
                state.push_str(&stdout(&output.expect("it starts")));
            } else {
                state.push_str(&self.git(directory, arguments));
            }
            state.push_str("--\n");
        }
        state
    }
}

/// Runs `script` with pronto and with git, and compares the state of `places` afterwards.
fn compare(places: &[&str], script: impl Fn(&Side)) {
    let Some(git) = reference() else {
        return;
    };
    let states = [pronto_path(), git].map(|program| {
        let side = Side::new(program, git);
        side.ok(
            ".",
            &["init", "-q", "--ref-format=reftable", "-b", "main", "work"],
        );
        std::fs::write(side.scratch.path().join("work/file"), "one\n").expect("a file");
        side.ok("work", &["add", "."]);
        side.ok("work", &["commit", "-q", "-m", "one"]);
        script(&side);
        let head = std::fs::read_to_string(side.scratch.path().join("work/.git/HEAD"));
        assert_eq!(head.expect("a file"), "ref: refs/heads/.invalid\n");
        places
            .iter()
            .map(|place| side.state(place))
            .collect::<Vec<_>>()
    });
    let [ours, theirs] = states;
    assert_eq!(ours, theirs, "- pronto, + git");
}

#[test]
fn branches_and_reflogs_equal_those_of_git() {
    compare(&["work"], |side| {
        side.ok("work", &["switch", "-q", "-c", "other"]);
        std::fs::write(side.scratch.path().join("work/file"), "two\n").expect("a file");
        side.ok("work", &["add", "."]);
        side.ok("work", &["commit", "-q", "-m", "two"]);
        side.ok("work", &["reset", "-q", "--hard", "HEAD~1"]);
        side.ok("work", &["switch", "-q", "--detach", "main"]);
        side.ok(
            "work",
            &["symbolic-ref", "refs/heads/alias", "refs/heads/main"],
        );
        side.ok("work", &["pack-refs", "--all"]);
        let tables = side.scratch.path().join("work/.git/reftable/tables.list");
        let tables = std::fs::read_to_string(tables).expect("a list");
        assert_eq!(tables.lines().count(), 1, "{tables}");
    });
}

#[test]
fn remotes_are_renamed_as_in_git() {
    compare(&["work"], |side| {
        // A server of another release may not know reftables.
        side.git(".", &["init", "-q", "-b", "main", "source"]);
        let commit = ["commit", "-q", "--allow-empty", "-m"];
        side.git("source", &[&commit[..], &["one"]].concat());
        side.git("source", &["branch", "side"]);
        side.git("work", &["remote", "add", "origin", "../source"]);
        // git 2.55 leaves the reflogs of symbolic refs under their old names.
        let never = ["config", "remote.origin.followRemoteHEAD", "never"];
        side.git("work", &never);
        side.git("work", &["fetch", "-q", "origin"]);
        side.git("source", &[&commit[..], &["two"]].concat());
        side.git("work", &["fetch", "-q", "origin"]);
        side.ok("work", &["remote", "rename", "origin", "first"]);
        side.ok("work", &["remote", "rename", "first", "second/nested"]);
        side.ok("work", &["remote", "rename", "second/nested", "third"]);
    });
}

#[test]
fn worktrees_have_their_own_tables() {
    compare(&["work", "linked"], |side| {
        side.ok(
            "work",
            &["worktree", "add", "-q", "-b", "side", "../linked"],
        );
        std::fs::write(side.scratch.path().join("linked/file"), "two\n").expect("a file");
        side.ok("linked", &["add", "."]);
        side.ok("linked", &["commit", "-q", "-m", "two"]);
        side.ok("linked", &["reset", "-q", "--hard", "main"]);
        let taken = side.run("work", &["switch", "-q", "side"]);
        assert_eq!(taken.status.code(), Some(128), "{}", stderr(&taken));
        let names = ["worktrees/linked/HEAD", "main-worktree/HEAD", "ORIG_HEAD"];
        let found = side.ok("linked", &[&["rev-parse"][..], &names].concat());
        assert_eq!(found.lines().count(), 3, "{found}");
        let below = side.scratch.path().join("work/.git/worktrees/linked");
        assert!(below.join("reftable/tables.list").is_file());
        assert!(below.join("refs/heads").is_file());
    });
}

#[test]
fn reflogs_are_changed_as_in_git() {
    compare(&["work"], |side| {
        for at in 0..4 {
            std::fs::write(side.scratch.path().join("work/file"), format!("{at}\n"))
                .expect("a file");
            side.ok("work", &["add", "."]);
            side.ok("work", &["commit", "-q", "-m", &format!("commit {at}")]);
        }
        side.ok(
            "work",
            &["reflog", "delete", "--rewrite", "--updateref", "main@{1}"],
        );
        side.ok("work", &["reflog", "delete", "HEAD@{2}"]);
        let head = side.git("work", &["rev-parse", "HEAD"]);
        let null = "0".repeat(40);
        let write = ["reflog", "write", "refs/heads/x", &null, head.trim(), "why"];
        side.ok("work", &write);
        side.ok("work", &["reflog", "expire", "--expire=all", "main"]);
        side.ok("work", &["reflog", "exists", "refs/heads/main"]);
        side.ok("work", &["reflog", "drop", "HEAD"]);
    });
}

#[test]
fn objects_in_reflogs_are_not_pruned() {
    let Some(git) = reference() else {
        return;
    };
    let side = Side::new(pronto_path(), git);
    side.ok(
        ".",
        &["init", "-q", "--ref-format=reftable", "-b", "main", "work"],
    );
    side.git("work", &["commit", "-q", "--allow-empty", "-m", "one"]);
    side.ok("work", &["worktree", "add", "-q", "--detach", "../linked"]);
    side.git("linked", &["commit", "-q", "--allow-empty", "-m", "two"]);
    let two = side.git("linked", &["rev-parse", "HEAD"]);
    side.ok("linked", &["reset", "-q", "--hard", "main"]);
    // A commit that is reachable only from a reference of the other worktree.
    let tree = side.git("work", &["rev-parse", "HEAD^{tree}"]);
    let three = side.git("work", &["commit-tree", "-m", "three", tree.trim()]);
    side.git(
        "linked",
        &["update-ref", "refs/worktree/kept", three.trim()],
    );
    let lost = side.git("work", &["commit-tree", "-m", "lost", tree.trim()]);
    side.ok("work", &["prune", "--expire=now"]);
    for kept in [&two, &three] {
        side.git("work", &["cat-file", "-e", kept.trim()]);
    }
    let mut look = side.command(git, "work");
    let looked = look.args(["cat-file", "-e", lost.trim()]).output();
    assert_eq!(looked.expect("it starts").status.code(), Some(1));
}

#[test]
fn refused_changes_leave_no_lock() {
    compare(&["work"], |side| {
        let calls: [&[&str]; 3] = [
            &["switch", "-q", "-c", "main/below"],
            &["symbolic-ref", "refs/heads", "refs/heads/main"],
            &["worktree", "add", "-q", "../x", "main"],
        ];
        for call in calls {
            let output = side.run("work", call);
            assert!(!output.status.success(), "{call:?}");
        }
        let tables = side.scratch.path().join("work/.git/reftable");
        let locks = std::fs::read_dir(tables).expect("a directory").flatten();
        let locks = locks.filter(|entry| entry.path().extension().is_some_and(|end| end == "lock"));
        assert_eq!(locks.count(), 0);
    });
}

#[test]
fn formats_are_chosen_as_in_git() {
    let Some(git) = reference() else {
        return;
    };
    type Call<'a> = (&'a [(&'a str, &'a str)], &'a [&'a str]);
    let calls: [Call<'_>; 8] = [
        (&[], &["init", "-q", "--ref-format=reftable", "a"]),
        (&[], &["init", "-q", "--ref-format=files", "a"]),
        (
            &[("GIT_DEFAULT_REF_FORMAT", "reftable")],
            &["init", "-q", "b"],
        ),
        (
            &[("GIT_DEFAULT_REF_FORMAT", "nonsense")],
            &["init", "-q", "c"],
        ),
        (
            &[],
            &["-c", "init.defaultRefFormat=reftable", "init", "-q", "d"],
        ),
        (
            &[],
            &["-c", "init.defaultRefFormat=nonsense", "init", "-q", "e"],
        ),
        (&[], &["-c", "feature.experimental=true", "init", "-q", "f"]),
        (
            &[],
            &[
                "init",
                "-q",
                "--ref-format=reftable",
                "--object-format=sha256",
                "--shared",
                "g",
            ],
        ),
    ];
    let found = [pronto_path(), git].map(|program| {
        let side = Side::new(program, git);
        let mut all = String::new();
        for (variables, arguments) in calls {
            let mut command = side.command(&side.program, ".");
            command.envs(variables.iter().copied()).args(arguments);
            let output = command.output().expect("it starts");
            let (code, said) = (output.status.code(), stderr(&output));
            all.push_str(&format!("{code:?} {said}"));
            let made = side.scratch.path().join(arguments.last().expect("a name"));
            let config = std::fs::read_to_string(made.join(".git/config"));
            all.push_str(&config.unwrap_or_default());
        }
        all
    });
    assert_eq!(found[0], found[1], "- pronto, + git");
}

/// Creates a repository with one commit whose refs are files.
fn make_files(side: &Side, directory: &str) {
    side.ok(".", &["init", "-q", "-b", "main", directory]);
    let file = side.scratch.path().join(directory).join("file");
    std::fs::write(file, "one\n").expect("a file");
    side.ok(directory, &["add", "."]);
    side.ok(directory, &["commit", "-q", "-m", "one"]);
    side.git(directory, &["tag", "-a", "-m", "x", "heavy"]);
    side.git(directory, &["branch", "other"]);
}

#[test]
fn clones_with_reftables_equal_those_of_git() {
    compare(&["copy", "bare", "branch"], |side| {
        make_files(side, "source");
        let calls: [&[&str]; 3] = [
            &["source", "copy"],
            &["--bare", "source", "bare"],
            &["--single-branch", "source", "branch"],
        ];
        for call in calls {
            let clone = ["clone", "-q", "--ref-format=reftable"];
            side.ok(".", &[&clone[..], call].concat());
            // Reflogs name the source, whose path differs.
            let copy = call.last().expect("a name");
            side.ok(copy, &["reflog", "expire", "--expire=all", "--all"]);
        }
    });
}

/// Holds up the replacement of the configuration file, which ends a migration.
fn fail_migration(side: &Side, storage: &str) {
    let lock = side.scratch.path().join("work/.git/config.lock");
    let file = std::fs::File::create_new(&lock).expect("it is free");
    let long_ago = std::time::SystemTime::now() - std::time::Duration::from_secs(600);
    file.set_modified(long_ago).expect("a time");
    let format = format!("--ref-format={storage}");
    let output = side.run("work", &["refs", "migrate", &format]);
    assert_eq!(output.status.code(), Some(255), "{}", stderr(&output));
    std::fs::remove_file(&lock).expect("the lock");
}

#[test]
fn an_interrupted_migration_leaves_the_old_storage() {
    let Some(git) = reference() else {
        return;
    };
    let side = Side::new(pronto_path(), git);
    make_files(&side, "work");
    let before = side.state("work");

    fail_migration(&side, "reftable");
    assert_eq!(side.state("work"), before);
    // Other processes change the old storage, beside tables that are out of date.
    side.git("work", &["branch", "-D", "other"]);
    let before = side.state("work");
    side.ok("work", &["refs", "migrate", "--ref-format=reftable"]);
    assert_eq!(side.state("work"), before);

    // Files that a process left which was killed after the change of the configuration.
    let own = side.scratch.path().join("work/.git");
    let id = side.git("work", &["rev-parse", "HEAD"]);
    let old = format!(
        "# pack-refs with: peeled fully-peeled sorted \n{} refs/x\n",
        id.trim()
    );
    std::fs::write(own.join("packed-refs"), old).expect("a file");
    std::fs::write(own.join("OLD_HEAD"), &id).expect("a file");
    std::fs::create_dir_all(own.join("refs/tags")).expect("a directory");
    std::fs::write(own.join("refs/tags/old"), &id).expect("a file");
    std::fs::create_dir_all(own.join("logs/refs/heads")).expect("a directory");
    std::fs::write(own.join("logs/refs/heads/old"), "").expect("a file");
    fail_migration(&side, "files");
    assert_eq!(side.state("work"), before);
    side.ok("work", &["refs", "migrate", "--ref-format=files"]);
    assert_eq!(side.state("work"), before);
    assert!(!own.join("reftable").exists() && !own.join("OLD_HEAD").exists());
    let left = std::fs::read_dir(&own).expect("a directory").flatten();
    let left = left.filter(|entry| {
        entry
            .file_name()
            .to_string_lossy()
            .starts_with("ref_migration")
    });
    assert_eq!(left.count(), 0);
}
