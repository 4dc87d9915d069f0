//! Programs on the search path, and privileges of this process.

use std::collections::HashMap;
use std::ffi::{OsStr, OsString};
use std::io::ErrorKind;
use std::path::PathBuf;
use std::process::{Command, Output};
use std::sync::{LazyLock, Mutex, PoisonError};

/// Returns the path of a program on `PATH`. Returns a name that contains a slash, or is not found,
/// unchanged.
///
/// The standard library uses `fork` for a [`Command`](std::process::Command) with a program name
/// and its own search path. `fork` copies the page tables of this process, which are large in tests
/// with many threads. With a path, the standard library uses `posix_spawn`, which copies nothing.
#[must_use]
pub fn on_path(program: impl AsRef<OsStr>) -> PathBuf {
    static FOUND: LazyLock<Mutex<HashMap<OsString, PathBuf>>> = LazyLock::new(Mutex::default);
    let name = program.as_ref();
    if name.as_encoded_bytes().contains(&b'/') {
        return name.into();
    }
    let mut found = FOUND.lock().unwrap_or_else(PoisonError::into_inner);
    let file = found.entry(name.to_owned()).or_insert_with(|| {
        let path = std::env::var_os("PATH").unwrap_or_default();
        let mut files = std::env::split_paths(&path).map(|folder| folder.join(name));
        let file = files.find(|file| file.is_file());
        file.unwrap_or_else(|| name.into())
    });
    file.clone()
}

/// Runs a program and waits until it exits. Returns `None` if the program is not installed.
///
/// # Panics
/// Panics if the program cannot be run for another reason.
#[must_use]
pub fn output_if_installed(command: &mut Command) -> Option<Output> {
    match command.output() {
        Ok(output) => Some(output),
        Err(error) if error.kind() == ErrorKind::NotFound => None,
        Err(error) => panic!("{command:?}: {error}"),
    }
}

/// Returns whether this process may mount file systems: it has the capability `CAP_SYS_ADMIN`.
///
/// # Panics
/// Panics if `/proc` does not contain the capabilities.
#[must_use]
pub fn may_mount() -> bool {
    const CAP_SYS_ADMIN: u32 = 21;
    let status = std::fs::read_to_string("/proc/self/status").expect("there is /proc");
    let line = status.lines().find_map(|line| line.strip_prefix("CapEff:"));
    let line = line.expect("it shows capabilities").trim();
    let effective = u64::from_str_radix(line, 16).expect("a number");
    effective >> CAP_SYS_ADMIN & 1 == 1
}
