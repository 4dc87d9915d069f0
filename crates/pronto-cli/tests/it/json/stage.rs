//! A repository with an origin, and calls with `--json`.

use std::fs;
use std::path::PathBuf;

use serde_json::Value;

use super::schema::Schema;
use crate::support::{git, process, pronto_path};

/// A directory with a repository `work` and a bare repository `origin`, and a home.
pub(super) struct Stage(pub(super) tempfile::TempDir);

/// The result of a call with `--json`.
pub(super) struct Call {
    pub(super) code: Option<i32>,
    pub(super) document: Value,
    pub(super) stderr: String,
}

impl Call {
    pub(super) fn at(&self, pointer: &str) -> &Value {
        let found = self.document.pointer(pointer);
        found.unwrap_or_else(|| panic!("no {pointer}: {}", self.document))
    }

    pub(super) fn text(&self, pointer: &str) -> &str {
        let value = self.at(pointer);
        value
            .as_str()
            .unwrap_or_else(|| panic!("{pointer}: {value}"))
    }
}

impl Stage {
    pub(super) fn new() -> Self {
        let stage = Stage(tempfile::tempdir().expect("a directory"));
        fs::create_dir(stage.path("home")).expect("a directory");
        fs::create_dir(stage.path("work")).expect("a directory");
        stage.git("work", &["init", "-q", "-b", "main"]);
        stage.commit("work", "file", "one\n");
        stage.git("work", &["clone", "-q", "--bare", ".", "../origin"]);
        stage.git("work", &["remote", "add", "origin", "../origin"]);
        stage.git("work", &["fetch", "-q", "origin"]);
        stage.git("work", &["branch", "-q", "-u", "origin/main"]);
        stage
    }

    pub(super) fn path(&self, name: &str) -> PathBuf {
        self.0.path().join(name)
    }

    pub(super) fn git(&self, place: &str, arguments: &[&str]) -> String {
        git(&self.path(place), arguments)
    }

    pub(super) fn commit(&self, place: &str, name: &str, content: &str) {
        fs::write(self.path(place).join(name), content).expect("a file");
        self.git(place, &["add", "-A"]);
        self.git(place, &["commit", "-q", "-m", name]);
    }

    /// Runs pronto in `place`, with git for the calls that it hands over.
    pub(super) fn run(&self, place: &str, arguments: &[&str]) -> Call {
        let output = process(pronto_path())
            .args(arguments)
            .current_dir(self.path(place))
            .env("HOME", self.path("home"))
            .env("GIT_COMMITTER_NAME", "a")
            .env("GIT_COMMITTER_EMAIL", "a@x")
            .output()
            .expect("it starts");
        let stderr = String::from_utf8_lossy(&output.stderr).into_owned();
        let stdout = String::from_utf8(output.stdout).expect("a document is UTF-8");
        let lines = stdout.lines().count();
        assert_eq!(lines, 1, "{arguments:?}: {stdout}{stderr}");
        assert!(stdout.ends_with("}\n"), "{stdout}");
        let document = serde_json::from_str(&stdout).expect("it is well formed");
        Call {
            code: output.status.code(),
            document,
            stderr,
        }
    }

    /// Runs a call that succeeds with a document of `schema`.
    pub(super) fn ok(&self, schema: &str, place: &str, arguments: &[&str]) -> Call {
        self.code(0, schema, place, arguments)
    }

    /// Runs a call that exits with `code` and a document of `schema`.
    pub(super) fn code(&self, code: i32, schema: &str, place: &str, arguments: &[&str]) -> Call {
        let call = self.run(place, arguments);
        assert_eq!(call.code, Some(code), "{arguments:?}: {}", call.stderr);
        Schema::read(schema).validate(&call.document);
        call
    }
}
