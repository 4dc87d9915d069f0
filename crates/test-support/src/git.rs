//! Finds git programs on this machine.

use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};
use std::sync::OnceLock;

use crate::{on_path, output_if_installed};

/// The major and minor version number of git.
pub type Release = [u32; 2];

/// The release of git with which pronto is compared.
pub const REFERENCE: Release = [2, 55];

/// The environment variable with the path of the git to use.
pub const VARIABLE: &str = "PRONTO_TEST_GIT";

/// The name of a file in the directory of a release in [`cache()`], which marks a complete build.
pub const COMPLETE: &str = "complete";

/// Returns a git of release [`REFERENCE`] or newer: the git in [`VARIABLE`], the newest git in
/// [`cache()`], or the git on `PATH`. The search runs once in each process.
///
/// # Panics
/// Panics if [`VARIABLE`] is set and does not name such a git.
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
        let built = built().map(|directory| directory.join("bin/git"));
        built
            .into_iter()
            .chain(on_path.filter(|path| path.is_file()))
            .find(is_new)
    };
    FOUND.get_or_init(find).as_deref()
}

/// Returns the directory in which `cargo xtask reference-git` builds: `pronto/reference-git` in the
/// user's cache (`XDG_CACHE_HOME`, or `.cache` in `HOME`). Returns `None` if neither variable is
/// set.
#[must_use]
pub fn cache() -> Option<PathBuf> {
    let variable = |name| std::env::var_os(name).filter(|value| !value.is_empty());
    let cache = variable("XDG_CACHE_HOME").map(PathBuf::from);
    let cache = cache.or_else(|| Some(PathBuf::from(variable("HOME")?).join(".cache")))?;
    Some(cache.join("pronto/reference-git"))
}

/// Returns the directory of the newest release in [`cache()`] with a complete build. The directory
/// contains the installed programs (`bin`, `libexec`) and the source with Git's own tests
/// (`source`).
#[must_use]
pub fn built() -> Option<PathBuf> {
    let entries = std::fs::read_dir(cache()?).ok()?;
    let directories = entries.filter_map(|entry| Some(entry.ok()?.path()));
    directories
        .filter(|directory| directory.join(COMPLETE).is_file())
        .max_by_key(|directory| version(directory))
}

/// Returns the version in the name of a directory as numbers: `[2, 55, 0]`.
fn version(directory: &Path) -> Vec<u32> {
    let name = directory.file_name().unwrap_or_default().to_string_lossy();
    name.split(['.', '-'])
        .map_while(|part| part.parse().ok())
        .collect()
}

/// Runs the git on `PATH` in `directory` with `input`, without configuration, templates and a home
/// directory, and with fixed dates and names. So equal commands create equal objects. Waits until
/// git exits.
///
/// # Panics
/// Panics if git cannot be started or waited for.
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
        // Without sample hooks, because directories are copied and compared.
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
    // A separate thread, because git may exit without reading its input, or write before it has
    // read all of it.
    let writer = std::thread::spawn(move || pipe.write_all(&input));
    let output = child.wait_with_output().expect("git ends");
    let _ = writer.join();
    output
}

/// Returns the release of a git program, or `None` if there is no such program.
///
/// # Panics
/// Panics if the program cannot be run for another reason.
#[must_use]
pub fn release(git: &Path) -> Option<Release> {
    let output = output_if_installed(Command::new(git).arg("version"))?;
    let text = String::from_utf8(output.stdout).ok()?;
    let mut numbers = text.strip_prefix("git version ")?.split('.');
    let mut number = || numbers.next()?.trim().parse().ok();
    Some([number()?, number()?])
}
