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

/// The environment variable that names a git to use instead of the one that was built or one on `PATH`.
pub const VARIABLE: &str = "PRONTO_TEST_GIT";

/// The name of a file in the directory of a release in [`cache()`]: its build is complete.
pub const COMPLETE: &str = "complete";

/// Returns a git of release [`REFERENCE`] or newer: the one that [`VARIABLE`] names, the newest in
/// [`cache()`], or one on `PATH`. The search runs once for each process.
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
        let built = built().map(|directory| directory.join("bin/git"));
        built
            .into_iter()
            .chain(on_path.filter(|path| path.is_file()))
            .find(is_new)
    };
    FOUND.get_or_init(find).as_deref()
}

/// Returns the directory in which `cargo xtask reference-git` builds: `pronto/reference-git` in the user's
/// cache (`XDG_CACHE_HOME`, or `.cache` in `HOME`). `None` if neither variable is set.
#[must_use]
pub fn cache() -> Option<PathBuf> {
    let variable = |name| std::env::var_os(name).filter(|value| !value.is_empty());
    let cache = variable("XDG_CACHE_HOME").map(PathBuf::from);
    let cache = cache.or_else(|| Some(PathBuf::from(variable("HOME")?).join(".cache")))?;
    Some(cache.join("pronto/reference-git"))
}

/// Returns the directory of the newest release in [`cache()`] whose build is complete. It holds the
/// installed programs (`bin`, `libexec`) and the source with Git's own tests (`source`).
#[must_use]
pub fn built() -> Option<PathBuf> {
    let entries = std::fs::read_dir(cache()?).ok()?;
    let directories = entries.filter_map(|entry| Some(entry.ok()?.path()));
    directories
        .filter(|directory| directory.join(COMPLETE).is_file())
        .max_by_key(|directory| version(directory))
}

/// Returns the numbers of the version that a directory is called after: `[2, 55, 0]`.
fn version(directory: &Path) -> Vec<u32> {
    let name = directory.file_name().unwrap_or_default().to_string_lossy();
    name.split(['.', '-'])
        .map_while(|part| part.parse().ok())
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
