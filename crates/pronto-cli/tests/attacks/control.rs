//! Finds the git that control runs use, and the git that builds repositories.

use std::path::Path;
use std::process::Command;
use std::sync::OnceLock;

use test_support::git;

/// Returns the git for control runs.
///
/// # Errors
/// Fails with the reason if there is none.
pub(crate) fn find() -> Result<&'static Path, String> {
    git::reference().ok_or_else(|| {
        let [major, minor] = git::REFERENCE;
        format!(
            "no git {major}.{minor} or newer is built, on PATH, or in {}",
            git::VARIABLE
        )
    })
}

/// Creates a directory with git under all names that transports use. An installation that was moved
/// may lack the links.
pub(crate) fn programs() -> Option<&'static Path> {
    static MADE: OnceLock<Option<tempfile::TempDir>> = OnceLock::new();
    let made = MADE.get_or_init(|| {
        let git = find().ok()?;
        let output = Command::new(git).arg("--exec-path").output();
        let text = String::from_utf8(output.expect("git runs").stdout);
        let text = text.expect("a path in UTF-8");
        let http = Path::new(text.trim()).join("git-remote-http");
        let made = tempfile::tempdir().expect("a directory");
        for (target, name) in [
            (git, "git"),
            (git, "git-upload-pack"),
            (git, "git-receive-pack"),
            (&http, "git-remote-https"),
        ] {
            let link = made.path().join(name);
            std::os::unix::fs::symlink(target, link).expect("a link");
        }
        Some(made)
    });
    made.as_ref().map(tempfile::TempDir::path)
}
