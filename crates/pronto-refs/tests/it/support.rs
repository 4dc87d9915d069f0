//! Tables and repositories for tests, and the git to compare with.

use std::path::{Path, PathBuf};
use std::process::Command;

use bstr::BStr;
use pronto_hash::{Kind, ObjectId};
use pronto_io::view::FileView;
use pronto_refs::reftable::{
    LogEntry, LogRecord, RefRecord, RefTable, RefValue, TableWriteOptions, TableWriter,
    UpdateIndexRange,
};
use test_support::report_missing_reference;

/// Returns an object id derived from `number`.
pub(crate) fn id(kind: Kind, number: u64) -> ObjectId {
    let mut bytes = vec![0; kind.len_in_bytes()];
    // Pseudo-random numbers for ids.
    let mut state = number.wrapping_add(1).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    for chunk in bytes.chunks_mut(8) {
        state = (state ^ (state >> 29)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        chunk.copy_from_slice(&state.to_be_bytes()[..chunk.len()]);
    }
    ObjectId::try_from(bytes.as_slice()).expect("the right length")
}

/// The contents of a table.
pub(crate) struct Content<'a> {
    pub(crate) refs: Vec<RefRecord<'a>>,
    pub(crate) logs: Vec<LogRecord<'a>>,
}

pub(crate) fn write(kind: Kind, content: &Content<'_>, options: TableWriteOptions) -> Vec<u8> {
    let limits = UpdateIndexRange { min: 1, max: 9 };
    let mut writer = TableWriter::new(Vec::new(), kind, limits, options).expect("fine options");
    for record in &content.refs {
        writer.add_ref(record).expect("a fine record");
    }
    for record in &content.logs {
        writer.add_log(record).expect("a fine record");
    }
    let written = writer.finish().expect("memory can be written");
    assert_eq!(written.len, written.sink.len() as u64);
    written.sink
}

pub(crate) fn open(bytes: &[u8]) -> RefTable {
    RefTable::from_view(FileView::from_bytes(bytes.to_vec()), "a table").expect("a table")
}

pub(crate) fn direct<'a>(name: &'a str, id: &'a ObjectId) -> RefRecord<'a> {
    RefRecord {
        name: BStr::new(name),
        update_index: 2,
        value: RefValue::Direct(id),
    }
}

pub(crate) fn log<'a>(name: &'a str, update_index: u64, ids: &'a [ObjectId; 2]) -> LogRecord<'a> {
    LogRecord {
        name: BStr::new(name),
        update_index,
        entry: Some(LogEntry {
            old: &ids[0],
            new: &ids[1],
            name: BStr::new("A U Thor"),
            email: BStr::new("author@example.com"),
            time: 1_234_567_890,
            time_zone: -830,
            message: BStr::new("commit: a message\n"),
        }),
    }
}

/// Returns the git to compare with, or reports a skip.
pub(crate) fn git() -> Option<&'static Path> {
    let found = test_support::git::reference();
    if found.is_none() {
        report_missing_reference(&"no git 2.55 or newer");
    }
    found
}

/// A repository with reftables, created by git.
pub(crate) struct Repository {
    pub(crate) git: &'static Path,
    directory: tempfile::TempDir,
}

impl Repository {
    /// Creates a bare repository. `None` without git.
    pub(crate) fn new(format: &str) -> Option<Repository> {
        let repository = Repository {
            git: git()?,
            directory: tempfile::tempdir().expect("a directory"),
        };
        let object_format = format!("--object-format={format}");
        let init = [
            "init",
            "-q",
            "--bare",
            "--ref-format=reftable",
            "-b",
            "main",
        ];
        repository.run(&[&init[..], &[&object_format, "."]].concat(), "");
        Some(repository)
    }

    pub(crate) fn tables(&self) -> PathBuf {
        self.directory.path().join("reftable")
    }

    pub(crate) fn command(&self, arguments: &[&str]) -> Command {
        let mut command = Command::new(self.git);
        // A moved git starts itself from PATH.
        let folders = std::env::var_os("PATH").unwrap_or_default();
        let folders = std::env::split_paths(&folders);
        let own = self.git.parent().map(Path::to_owned);
        let path = std::env::join_paths(own.into_iter().chain(folders)).expect("a PATH");
        command
            .env("PATH", path)
            .current_dir(self.directory.path())
            .args(arguments)
            .env("GIT_CONFIG_GLOBAL", "/dev/null")
            .env("GIT_CONFIG_NOSYSTEM", "1")
            .env("GIT_AUTHOR_NAME", "A U Thor")
            .env("GIT_AUTHOR_EMAIL", "author@example.com")
            .env("GIT_COMMITTER_NAME", "A U Thor")
            .env("GIT_COMMITTER_EMAIL", "author@example.com")
            .env("GIT_COMMITTER_DATE", "1234567890 -0830")
            .env("GIT_AUTHOR_DATE", "1234567890 -0830");
        command
    }

    /// Runs git, which must succeed, and returns its output.
    pub(crate) fn run(&self, arguments: &[&str], input: &str) -> String {
        use std::io::Write;
        use std::process::Stdio;
        let mut child = self
            .command(arguments)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .expect("git starts");
        let mut stdin = child.stdin.take().expect("it is piped");
        std::thread::scope(|scope| {
            scope.spawn(move || stdin.write_all(input.as_bytes()));
            let output = child.wait_with_output().expect("git ends");
            let stderr = String::from_utf8_lossy(&output.stderr);
            assert!(output.status.success(), "{arguments:?}: {stderr}");
            String::from_utf8_lossy(&output.stdout).into_owned()
        })
    }

    /// Creates a chain of commits, oldest first.
    pub(crate) fn commits(&self, count: usize) -> Vec<ObjectId> {
        let tree = self.run(&["mktree"], "");
        let mut commits: Vec<String> = Vec::new();
        for number in 0..count {
            let mut arguments = vec!["commit-tree", tree.trim(), "-m", "x"];
            if let Some(parent) = commits.last() {
                arguments.extend(["-p", parent]);
            }
            let message = format!("{number}");
            arguments[3] = &message;
            commits.push(self.run(&arguments, "").trim().to_owned());
        }
        let ids = commits.iter();
        ids.map(|hex| ObjectId::from_hex(hex.as_bytes()).expect("an id"))
            .collect()
    }
}
