//! A directory with a `pronto` in it, and processes with a known environment.

use std::ffi::OsStr;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

/// A scratch directory that is removed in the end.
pub(crate) struct Scratch {
    directory: tempfile::TempDir,
}

impl Scratch {
    pub(crate) fn new() -> Self {
        Scratch {
            directory: tempfile::tempdir().expect("a scratch directory"),
        }
    }

    pub(crate) fn path(&self) -> &Path {
        self.directory.path()
    }

    /// A directory with a program called `name` that is ours, made by `make` (link, copy).
    pub(crate) fn install(
        &self,
        directory: &str,
        name: &str,
        make: impl FnOnce(&Path, &Path) -> std::io::Result<()>,
    ) -> PathBuf {
        let directory = self.path().join(directory);
        std::fs::create_dir_all(&directory).expect("a directory");
        let path = directory.join(name);
        make(pronto_path(), &path).expect("the program is installed");
        path
    }

    /// An executable script.
    pub(crate) fn script(&self, directory: &str, name: &str, text: &str) -> PathBuf {
        let directory = self.path().join(directory);
        std::fs::create_dir_all(&directory).expect("a directory");
        let path = directory.join(name);
        write_program(&path, text);
        path
    }
}

/// Runs a program in `directory`, handing nothing over, at home in the directory above.
pub(crate) fn run(program: impl AsRef<OsStr>, directory: &Path, arguments: &[&str]) -> Output {
    process(program)
        .args(arguments)
        .env("PRONTO_NO_FALLBACK", "1")
        .env("HOME", directory.parent().expect("it has one"))
        .current_dir(directory)
        .output()
        .expect("it starts")
}

/// Writes an executable file. Another process does it: a child that a thread of this one starts
/// meanwhile would inherit the open file, and nobody could execute it as long as that lives.
pub(crate) fn write_program(path: &Path, text: &str) {
    let mut shell = Command::new("sh")
        .args(["-c", r#"cat >"$1" && chmod 755 "$1""#, "sh"])
        .arg(path)
        .stdin(std::process::Stdio::piped())
        .spawn()
        .expect("sh can be started");
    let mut input = shell.stdin.take().expect("it was asked for");
    std::io::Write::write_all(&mut input, text.as_bytes()).expect("a script");
    drop(input);
    assert!(shell.wait().expect("it ends").success(), "a script");
}

/// Copies a program, by another process for the same reason.
pub(crate) fn copy_program(from: &Path, to: &Path) -> std::io::Result<()> {
    let status = Command::new("cp").args([from, to]).status()?;
    match status.success() {
        true => Ok(()),
        false => Err(std::io::Error::other("cp failed")),
    }
}

/// The binary under test.
pub(crate) fn pronto_path() -> &'static Path {
    Path::new(env!("CARGO_BIN_EXE_pronto"))
}

/// `program` with an environment that holds nothing but what git needs.
pub(crate) fn process(program: impl AsRef<OsStr>) -> Command {
    let mut command = Command::new(program);
    command
        .env_clear()
        .env("PATH", std::env::var_os("PATH").unwrap_or_default())
        .env("HOME", "/nonexistent")
        .env("LC_ALL", "C")
        .env("GIT_CONFIG_NOSYSTEM", "1");
    command
}

/// Our own program in a clean environment.
pub(crate) fn pronto() -> Command {
    process(pronto_path())
}

/// Our own program, for interrupting it: a shell that starts the tests in the background has them
/// ignore such signals, and so would we.
pub(crate) fn interruptible_pronto() -> Command {
    let mut command = process("env");
    command
        .args(["--default-signal=INT", "--default-signal=TERM"])
        .arg(pronto_path());
    command
}

pub(crate) fn stdout(output: &Output) -> String {
    String::from_utf8_lossy(&output.stdout).into_owned()
}

pub(crate) fn stderr(output: &Output) -> String {
    String::from_utf8_lossy(&output.stderr).into_owned()
}

/// `PATH` with `first` in front.
pub(crate) fn path_with(first: &Path) -> std::ffi::OsString {
    let mut path = first.as_os_str().to_owned();
    path.push(":");
    path.push(std::env::var_os("PATH").unwrap_or_default());
    path
}
