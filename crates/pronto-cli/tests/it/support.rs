//! Helpers for tests: directories with a copy of `pronto`, and processes with a fixed environment.

use std::ffi::OsStr;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use test_support::{DEFAULT_SIGNALS, on_path};
pub(crate) use test_support::{Scratch, copy_program, write_program};

/// Creates the program under another name in a directory of `scratch`. `make` links or copies the
/// file.
pub(crate) fn install(
    scratch: &Scratch,
    directory: &str,
    name: &str,
    make: impl FnOnce(&Path, &Path) -> std::io::Result<()>,
) -> PathBuf {
    let directory = scratch.join(directory);
    std::fs::create_dir_all(&directory).expect("a directory");
    let path = directory.join(name);
    make(pronto_path(), &path).expect("the program is installed");
    path
}

/// Runs a program in `directory` without fallback to git. The home directory is its parent.
pub(crate) fn run(program: impl AsRef<OsStr>, directory: &Path, arguments: &[&str]) -> Output {
    process(program)
        .args(arguments)
        .env("PRONTO_NO_FALLBACK", "1")
        .env("HOME", directory.parent().expect("it has one"))
        .current_dir(directory)
        .output()
        .expect("it starts")
}

/// Runs git in `directory` with an identity, fails unless it succeeds, and returns its output,
/// trimmed.
pub(crate) fn git(directory: &Path, arguments: &[&str]) -> String {
    let identity = ["-c", "user.name=a", "-c", "user.email=a@x"];
    let output = run("git", directory, &[&identity[..], arguments].concat());
    let said = stderr(&output);
    assert!(output.status.success(), "git {arguments:?}: {said}");
    stdout(&output).trim().to_owned()
}

/// The binary under test.
pub(crate) fn pronto_path() -> &'static Path {
    Path::new(env!("CARGO_BIN_EXE_pronto"))
}

/// Creates a command with only the environment that git needs.
pub(crate) fn process(program: impl AsRef<OsStr>) -> Command {
    let mut command = Command::new(on_path(program));
    command
        .env_clear()
        .env("PATH", std::env::var_os("PATH").unwrap_or_default())
        .env("HOME", "/nonexistent")
        .env("LC_ALL", "C")
        .env("GIT_CONFIG_NOSYSTEM", "1");
    command
}

/// Creates a command for pronto with a clean environment.
pub(crate) fn pronto() -> Command {
    process(pronto_path())
}

/// Creates a command for pronto with the default action for each signal.
pub(crate) fn interruptible_pronto() -> Command {
    let mut command = process("/usr/bin/env");
    command.args(DEFAULT_SIGNALS).arg(pronto_path());
    command
}

pub(crate) fn stdout(output: &Output) -> String {
    String::from_utf8_lossy(&output.stdout).into_owned()
}

pub(crate) fn stderr(output: &Output) -> String {
    String::from_utf8_lossy(&output.stderr).into_owned()
}

/// Returns `PATH` with `first` at its front.
pub(crate) fn path_with(first: &Path) -> std::ffi::OsString {
    let mut path = first.as_os_str().to_owned();
    path.push(":");
    path.push(std::env::var_os("PATH").unwrap_or_default());
    path
}
