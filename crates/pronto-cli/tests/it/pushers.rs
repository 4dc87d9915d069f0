//! Shared steps of tests that push repeatedly.

use std::path::Path;

use crate::serve::{git, git_succeeds};
use crate::support::{Scratch, pronto, stderr, stdout};

/// Runs git, fails unless it succeeds, and returns its output without the last line feed.
pub(crate) fn read(scratch: &Scratch, at: &Path, arguments: &[&str]) -> String {
    git_succeeds(scratch, at, arguments).trim_end().to_owned()
}

/// Creates a commit in a clone, and returns its id.
pub(crate) fn commit(scratch: &Scratch, clone: &Path, text: &str) -> String {
    std::fs::write(clone.join("file"), text).expect("a file");
    git_succeeds(scratch, clone, &["add", "file"]);
    git_succeeds(scratch, clone, &["commit", "-q", "-m", text]);
    read(scratch, clone, &["rev-parse", "HEAD"])
}

/// Pushes `HEAD` of a clone to a ref. The error is the output of git.
pub(crate) fn push(scratch: &Scratch, clone: &Path, url: &str, to: &str) -> Result<(), String> {
    let change = format!("HEAD:{to}");
    let output = git(scratch, clone, &["push", "-q", url, &change]);
    match output.status.success() {
        true => Ok(()),
        false => Err(stderr(&output)),
    }
}

/// Runs `pronto store`, fails unless it succeeds, and returns its output.
pub(crate) fn store(
    scratch: &Scratch,
    variables: &[(&'static str, String)],
    arguments: &[&str],
) -> String {
    let mut command = pronto();
    command.arg("store").args(arguments);
    command.envs(variables.iter().map(|(name, value)| (name, value)));
    let output = command.current_dir(scratch.path()).output();
    let output = output.expect("it starts");
    let (printed, said) = (stdout(&output), stderr(&output));
    assert!(output.status.success(), "{arguments:?}: {printed}{said}");
    printed
}
