//! A repository created by stock git.

use pronto_hash::Kind;
use pronto_index::Index;
use std::path::{Path, PathBuf};
use std::process::Command;

pub(crate) struct Repository {
    directory: tempfile::TempDir,
    pub(crate) kind: Kind,
}

impl Repository {
    pub(crate) fn new(kind: Kind) -> Repository {
        let directory = tempfile::tempdir().expect("a temporary directory");
        let repository = Repository { directory, kind };
        repository.git(&["init", "-q", &format!("--object-format={kind}")]);
        repository.git(&["config", "user.name", "A"]);
        repository.git(&["config", "user.email", "a@example.com"]);
        repository
    }

    /// A commit of some files in directories, a link, a program and a long name.
    pub(crate) fn with_files(kind: Kind) -> Repository {
        let repository = Self::new(kind);
        for number in 0..40 {
            let path = format!("dir{}/sub{}/file{number}", number % 3, number % 5);
            repository.write(&path, &format!("content {number}\n"));
        }
        repository.write("empty", "");
        repository.write(
            &format!("long/{}/{}", "n".repeat(200), "m".repeat(200)),
            "x",
        );
        std::os::unix::fs::symlink("empty", repository.path("link")).expect("a link");
        repository.git(&["add", "."]);
        repository.git(&["update-index", "--chmod=+x", "dir0/sub0/file0"]);
        repository.git(&["commit", "-qm", "one"]);
        repository
    }

    pub(crate) fn path(&self, relative: &str) -> PathBuf {
        self.directory.path().join(relative)
    }

    pub(crate) fn index_path(&self) -> PathBuf {
        self.path(".git/index")
    }

    pub(crate) fn index(&self) -> Index {
        Index::open(&self.index_path(), self.kind).expect("git wrote it")
    }

    pub(crate) fn write(&self, relative: &str, content: &str) {
        let path = self.path(relative);
        std::fs::create_dir_all(path.parent().expect("it is in a directory")).expect("made");
        std::fs::write(path, content).expect("written");
    }

    pub(crate) fn git(&self, args: &[&str]) -> String {
        let output = self.try_git(args);
        assert!(
            output.status.success(),
            "git {args:?}: {}",
            String::from_utf8_lossy(&output.stderr)
        );
        String::from_utf8_lossy(&output.stdout).into_owned()
    }

    /// Runs stock git here.
    pub(crate) fn command(&self) -> Command {
        git_in(self.directory.path())
    }

    pub(crate) fn try_git(&self, args: &[&str]) -> std::process::Output {
        self.command().args(args).output().expect("git runs")
    }
}

fn git_in(directory: &Path) -> Command {
    let mut command = Command::new("git");
    command
        .current_dir(directory)
        .env_clear()
        .env("PATH", std::env::var_os("PATH").unwrap_or_default())
        .env("HOME", directory)
        .env("GIT_CONFIG_NOSYSTEM", "1");
    command
}

/// Returns the entries as `git ls-files --debug` lists them.
pub(crate) fn listing(index: &Index) -> String {
    use std::fmt::Write;
    let mut out = String::new();
    for entry in index.iter() {
        let stat = entry.stat;
        writeln!(
            out,
            "{:06o} {} {}\t{}\n  ctime: {}:{}\n  mtime: {}:{}\n  dev: {}\tino: {}\n  uid: {}\tgid: {}\n  size: {}\tflags: {:x}",
            entry.mode,
            entry.id,
            entry.stage(),
            entry.path,
            stat.ctime.seconds,
            stat.ctime.nanoseconds,
            stat.mtime.seconds,
            stat.mtime.nanoseconds,
            stat.device,
            stat.inode,
            stat.uid,
            stat.gid,
            stat.size_bytes,
            entry.flags.bits(),
        )
        .expect("a string takes all");
    }
    out
}

pub(crate) const KINDS: [Kind; 2] = [Kind::Sha1, Kind::Sha256];
