//! Finding the stock git that rows run against as control, and the one that builds repositories.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::OnceLock;

/// The first version that the control may have.
const OLDEST: [u32; 2] = [2, 55];

/// Names the control, if it is neither on PATH nor beside the workspace.
const VARIABLE: &str = "PRONTO_TEST_GIT";

/// The control.
///
/// # Errors
/// The reason why there is none.
pub(crate) fn find() -> Result<&'static Path, String> {
    static FOUND: OnceLock<Option<PathBuf>> = OnceLock::new();
    let found = FOUND.get_or_init(|| candidates().into_iter().find(|path| is_new(path)));
    found.as_deref().ok_or_else(|| {
        format!(
            "no git {}.{} or newer on PATH, in {VARIABLE}, or beside the workspace",
            OLDEST[0], OLDEST[1]
        )
    })
}

/// Whether a machine without control fails: it is the one that checks changes, and has the git.
pub(crate) fn is_required() -> bool {
    std::env::var_os("CI").is_some() && !beside().is_empty()
}

/// A directory with the control under all names that transports start it by: a git that was moved
/// may have lost its links.
pub(crate) fn programs() -> Option<&'static Path> {
    static MADE: OnceLock<Option<tempfile::TempDir>> = OnceLock::new();
    let made = MADE.get_or_init(|| {
        let git = find().ok()?;
        let output = Command::new(git).arg("--exec-path").output().ok()?;
        let text = String::from_utf8(output.stdout).ok()?;
        let http = Path::new(text.trim()).join("git-remote-http");
        let made = tempfile::tempdir().ok()?;
        for (target, name) in [
            (git, "git"),
            (git, "git-upload-pack"),
            (git, "git-receive-pack"),
            (&http, "git-remote-https"),
        ] {
            std::os::unix::fs::symlink(target, made.path().join(name)).ok()?;
        }
        Some(made)
    });
    made.as_ref().map(tempfile::TempDir::path)
}

fn candidates() -> Vec<PathBuf> {
    let mut paths: Vec<PathBuf> = std::env::var_os(VARIABLE)
        .map(PathBuf::from)
        .into_iter()
        .collect();
    let path = std::env::var_os("PATH").unwrap_or_default();
    paths.extend(std::env::split_paths(&path).map(|folder| folder.join("git")));
    paths.extend(beside());
    paths
}

/// A git suite beside the workspace, or beside a directory above it.
fn beside() -> Vec<PathBuf> {
    let folders = Path::new(env!("CARGO_MANIFEST_DIR")).ancestors();
    folders
        .flat_map(|folder| ["git-suite", "shared/git-suite"].map(|name| folder.join(name)))
        .map(|suite| suite.join("git-2.55/bin/git"))
        .filter(|path| path.is_file())
        .collect()
}

fn is_new(path: &Path) -> bool {
    let Ok(output) = Command::new(path).arg("version").output() else {
        return false;
    };
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    let Some(version) = text.strip_prefix("git version ") else {
        return false;
    };
    let mut numbers = version
        .split('.')
        .map_while(|part| part.trim().parse().ok());
    let found = [numbers.next().unwrap_or(0), numbers.next().unwrap_or(0)];
    found >= OLDEST
}
