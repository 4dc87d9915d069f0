//! Finds the git programs of this machine.

use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};
use std::sync::OnceLock;

use crate::{on_path, output_if_installed};

/// Major and minor number of a release of git.
pub type Release = [u32; 2];

/// The release that pronto is compared with.
pub const REFERENCE: Release = [2, 55];

/// The environment variable that names a git to use instead of one on `PATH` or beside the
/// workspace.
pub const VARIABLE: &str = "PRONTO_TEST_GIT";

/// Advice if [`reference()`] finds no git.
pub const NO_REFERENCE: &str =
    "put git 2.55 on PATH or beside the workspace, or have PRONTO_TEST_GIT name it";

/// Returns a git of release [`REFERENCE`] or newer: the one that [`VARIABLE`] names, one on `PATH`,
/// or one beside the workspace. The search runs once for each process.
///
/// # Panics
/// If [`VARIABLE`] names no such git.
#[must_use]
pub fn reference() -> Option<&'static Path> {
    static FOUND: OnceLock<Option<PathBuf>> = OnceLock::new();
    let find = || {
        let is_new = |path: &PathBuf| release(path).is_some_and(|release| release >= REFERENCE);
        if let Some(named) = std::env::var_os(VARIABLE) {
            let named = PathBuf::from(named);
            assert!(is_new(&named), "{VARIABLE} names no git 2.55: {named:?}");
            return Some(named);
        }
        let path = std::env::var_os("PATH").unwrap_or_default();
        let on_path = std::env::split_paths(&path).map(|folder| folder.join("git"));
        let files = on_path.filter(|path| path.is_file());
        files.chain(beside()).find(is_new)
    };
    FOUND.get_or_init(find).as_deref()
}

/// Lists the git programs in a `git-suite` directory beside the workspace, or beside a directory
/// above.
#[must_use]
pub fn beside() -> Vec<PathBuf> {
    let folders = Path::new(env!("CARGO_MANIFEST_DIR")).ancestors();
    folders
        .flat_map(|folder| ["git-suite", "shared/git-suite"].map(|name| folder.join(name)))
        .map(|suite| suite.join("git-2.55/bin/git"))
        .filter(|path| path.is_file())
        .collect()
}

/// Runs the git on `PATH` in `directory` with `input`, without configuration, templates and home, with
/// fixed dates and names. So equal steps make equal objects. Waits until git ends.
///
/// # Panics
/// Git cannot be started or waited for.
#[must_use]
pub fn isolated(directory: &Path, arguments: &[&str], input: &[u8]) -> Output {
    let mut child = Command::new(on_path("git"))
        .args(arguments)
        .current_dir(directory)
        .env_clear()
        .env("PATH", std::env::var_os("PATH").unwrap_or_default())
        .env("HOME", "/nonexistent")
        .env("LC_ALL", "C")
        .env("GIT_CONFIG_NOSYSTEM", "1")
        .env("GIT_TERMINAL_PROMPT", "0")
        // No sample hooks: directories are copied and compared.
        .env("GIT_TEMPLATE_DIR", "")
        .envs([("GIT_AUTHOR_NAME", "a"), ("GIT_AUTHOR_EMAIL", "a@x")])
        .envs([("GIT_COMMITTER_NAME", "c"), ("GIT_COMMITTER_EMAIL", "c@x")])
        .env("GIT_AUTHOR_DATE", "1112911993 -0700")
        .env("GIT_COMMITTER_DATE", "1112911993 -0700")
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .expect("git starts");
    let mut pipe = child.stdin.take().expect("a pipe");
    let input = input.to_owned();
    // Git need not read its input, and may write before it has read all.
    let writer = std::thread::spawn(move || pipe.write_all(&input));
    let output = child.wait_with_output().expect("git ends");
    let _ = writer.join();
    output
}

/// Returns the release of a git program, or `None` if there is no such program.
///
/// # Panics
/// If the program cannot be run for another reason.
#[must_use]
pub fn release(git: &Path) -> Option<Release> {
    let output = output_if_installed(Command::new(git).arg("version"))?;
    let text = String::from_utf8(output.stdout).ok()?;
    let mut numbers = text.strip_prefix("git version ")?.split('.');
    let mut number = || numbers.next()?.trim().parse().ok();
    Some([number()?, number()?])
}
