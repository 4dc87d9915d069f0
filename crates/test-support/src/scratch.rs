//! A directory of a test, and programs in it.

use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

/// A directory that is removed when this is dropped.
pub struct Scratch(tempfile::TempDir);

impl Default for Scratch {
    fn default() -> Self {
        Scratch::new()
    }
}

impl Scratch {
    /// Makes one among the temporary files.
    ///
    /// # Panics
    /// If it cannot be made.
    #[must_use]
    pub fn new() -> Self {
        Scratch(tempfile::tempdir().expect("a scratch directory"))
    }

    /// Makes one in `directory`, for tests that need another file system.
    ///
    /// # Errors
    /// Those of making a directory.
    pub fn within(directory: &Path) -> io::Result<Self> {
        tempfile::tempdir_in(directory).map(Scratch)
    }

    /// Returns the path of the directory.
    #[must_use]
    pub fn path(&self) -> &Path {
        self.0.path()
    }

    /// A path in it.
    #[must_use]
    pub fn join(&self, name: impl AsRef<Path>) -> PathBuf {
        self.path().join(name)
    }

    /// Makes the directory `directory` in it, with the executable file `name` of the content `text`.
    ///
    /// # Panics
    /// If that is not possible.
    pub fn script(&self, directory: &str, name: &str, text: &str) -> PathBuf {
        let directory = self.join(directory);
        std::fs::create_dir_all(&directory).expect("a directory");
        let path = directory.join(name);
        write_program(&path, text);
        path
    }
}

/// Writes an executable file from another process. Otherwise a child that another thread starts at
/// the same time would inherit the open file, and the file could not be executed as long as that
/// child lives.
///
/// # Panics
/// If that is not possible.
pub fn write_program(path: &Path, text: &str) {
    let mut shell = Command::new("sh")
        .args(["-c", r#"cat >"$1" && chmod 755 "$1""#, "sh"])
        .arg(path)
        .stdin(Stdio::piped())
        .spawn()
        .expect("sh can be started");
    let mut input = shell.stdin.take().expect("it was asked for");
    input.write_all(text.as_bytes()).expect("a script");
    drop(input);
    assert!(shell.wait().expect("it ends").success(), "a script");
}

/// Copies a program, by another process for the same reason as [`write_program`].
///
/// # Errors
/// If that fails.
pub fn copy_program(from: &Path, to: &Path) -> io::Result<()> {
    let status = Command::new("cp").args([from, to]).status()?;
    match status.success() {
        true => Ok(()),
        false => Err(io::Error::other("cp failed")),
    }
}
