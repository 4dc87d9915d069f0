//! Creates repositories with stock git, without the user's configuration.

use std::path::{Path, PathBuf};
use std::process::{Command, Output};
use std::sync::Arc;

use pronto::{Environment, NoticeQueue, Repository};

/// A temporary directory, its path without symbolic links.
pub(crate) struct Sandbox {
    pub(crate) root: PathBuf,
    _guard: tempfile::TempDir,
}

impl Sandbox {
    pub(crate) fn new() -> Self {
        let guard = tempfile::tempdir().expect("a temporary directory");
        let root = guard.path().canonicalize().expect("it exists");
        Sandbox {
            root,
            _guard: guard,
        }
    }

    /// Runs stock git in `directory` below the root.
    pub(crate) fn git(&self, directory: &str, arguments: &[&str]) -> String {
        let output = self.run_git(directory, arguments);
        let error = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success(), "git {arguments:?}: {error}");
        text(&output)
    }

    /// Like [`git`](Self::git), where git may fail.
    pub(crate) fn git_or_nothing(&self, directory: &str, arguments: &[&str]) -> String {
        text(&self.run_git(directory, arguments))
    }

    fn run_git(&self, directory: &str, arguments: &[&str]) -> Output {
        self.run(Path::new("git"), directory, arguments)
    }

    /// Runs `git` in `directory` below the root.
    pub(crate) fn run(&self, git: &Path, directory: &str, arguments: &[&str]) -> Output {
        Command::new(git)
            .args(arguments)
            .current_dir(self.root.join(directory))
            .env_clear()
            .env("PATH", std::env::var_os("PATH").unwrap_or_default())
            .env("HOME", &self.root)
            .env("GIT_CONFIG_NOSYSTEM", "1")
            .env("GIT_TEMPLATE_DIR", "/usr/share/git-core/templates")
            .env("GIT_AUTHOR_NAME", "A U Thor")
            .env("GIT_AUTHOR_EMAIL", "author@example.com")
            .env("GIT_COMMITTER_NAME", "C O Mitter")
            .env("GIT_COMMITTER_EMAIL", "committer@example.com")
            .env("GIT_AUTHOR_DATE", "1112911993 -0700")
            .env("GIT_COMMITTER_DATE", "1112911993 -0700")
            .output()
            .expect("git can be started")
    }

    /// A repository with one commit on `main`, in `directory`.
    pub(crate) fn repository(&self, directory: &str) {
        self.git("", &["init", "-q", "-b", "main", directory]);
        self.git(directory, &["commit", "-q", "--allow-empty", "-m", "one"]);
    }

    /// A sandbox with the repository `r`, which has the files `a`, `b` and `d/c` in one commit.
    pub(crate) fn with_files() -> Self {
        let sandbox = Sandbox::new();
        sandbox.git("", &["init", "-q", "-b", "main", "r"]);
        sandbox.git("r", &["config", "user.name", "A U Thor"]);
        sandbox.git("r", &["config", "user.email", "author@example.com"]);
        for path in ["a", "b", "d/c"] {
            sandbox.write(path, path);
        }
        sandbox.git("r", &["add", "."]);
        sandbox.git("r", &["commit", "-q", "-m", "one"]);
        sandbox
    }

    /// Writes a file of the repository `r`.
    pub(crate) fn write(&self, path: &str, content: &str) {
        let path = self.root.join("r").join(path);
        std::fs::create_dir_all(path.parent().expect("it is below")).expect("a directory");
        std::fs::write(path, content).expect("a file");
    }

    /// Reads a file of the repository `r`, if it exists.
    pub(crate) fn read(&self, path: &str) -> Option<String> {
        std::fs::read_to_string(self.root.join("r").join(path)).ok()
    }

    pub(crate) fn environment(&self, directory: &str) -> Environment {
        let mut environment = Environment::empty(self.root.join(directory));
        environment.set("HOME", &self.root);
        environment.set("GIT_CONFIG_NOSYSTEM", "1");
        environment.set("GIT_COMMITTER_NAME", "C O Mitter");
        environment.set("GIT_COMMITTER_EMAIL", "committer@example.com");
        environment.set("GIT_COMMITTER_DATE", "1112911993 -0700");
        environment
    }

    pub(crate) fn open(&self, directory: &str) -> Repository {
        let environment = self.environment(directory);
        Repository::discover(Path::new("."), &environment).expect("a repository")
    }

    /// Opens a repository, with a queue of its notices.
    pub(crate) fn open_noticing(&self, directory: &str) -> (Repository, Arc<NoticeQueue>) {
        let notices = Arc::new(NoticeQueue::default());
        let repository = self.open(directory).with_notices(Arc::clone(&notices));
        (repository, notices)
    }
}

fn text(output: &Output) -> String {
    String::from_utf8_lossy(&output.stdout)
        .trim_end()
        .to_owned()
}
