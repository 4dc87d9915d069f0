//! Temporary directories for tests, and programs in them.

use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

/// A temporary directory. Dropping it removes the directory.
pub struct Scratch(tempfile::TempDir);

impl Default for Scratch {
    fn default() -> Self {
        Scratch::new()
    }
}

impl Scratch {
    /// Creates a directory in the system's directory for temporary files.
    ///
    /// # Panics
    /// Panics if the directory cannot be created.
    #[must_use]
    pub fn new() -> Self {
        Scratch(tempfile::tempdir().expect("a scratch directory"))
    }

    /// Creates a directory in `directory`, for tests that need another file system.
    ///
    /// # Errors
    /// Fails with the error of the system if the directory cannot be created.
    pub fn within(directory: &Path) -> io::Result<Self> {
        tempfile::tempdir_in(directory).map(Scratch)
    }

    /// Returns the path of the directory.
    #[must_use]
    pub fn path(&self) -> &Path {
        self.0.path()
    }

    /// Returns the path of `name` in the directory.
    #[must_use]
    pub fn join(&self, name: impl AsRef<Path>) -> PathBuf {
        self.path().join(name)
    }

    /// Creates the subdirectory `directory` with an executable file `name` that contains `text`.
    /// Returns the path of the file.
    ///
    /// # Panics
    /// Panics if a file or directory cannot be written.
    pub fn script(&self, directory: &str, name: &str, text: &str) -> PathBuf {
        let directory = self.join(directory);
        std::fs::create_dir_all(&directory).expect("a directory");
        let path = directory.join(name);
        write_program(&path, text);
        path
    }
}

/// Writes an executable file in another process. If this process wrote the file, a child that
/// another thread starts at the same time would inherit the open descriptor, and executing the file
/// would fail (`ETXTBSY`) until that child exits.
///
/// # Panics
/// Panics if a file or directory cannot be written.
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

/// Copies a program in another process, for the reason given for [`write_program`].
///
/// # Errors
/// Fails if the copy fails.
pub fn copy_program(from: &Path, to: &Path) -> io::Result<()> {
    let status = Command::new("cp").args([from, to]).status()?;
    match status.success() {
        true => Ok(()),
        false => Err(io::Error::other("cp failed")),
    }
}
