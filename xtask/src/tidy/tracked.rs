//! Checks that no tracked file is large: results of builds and downloads do not belong into history, which keeps them
//! for ever.

use std::path::Path;
use std::process::Command;

/// The most bytes of a tracked file. The largest are lock files and completions.
const MOST_BYTES: u64 = 256 * 1024;

pub(crate) fn check(root: &Path, problems: &mut Vec<String>) {
    // A source archive has no repository, and nothing was added there.
    if !root.join(".git").exists() {
        return;
    }
    let listed = Command::new("git")
        .args(["ls-files", "-z"])
        .current_dir(root)
        .output();
    let names = match listed {
        Ok(output) if output.status.success() => output.stdout,
        Ok(output) => {
            let reason = String::from_utf8_lossy(&output.stderr);
            problems.push(format!("cannot list tracked files: {}", reason.trim()));
            return;
        }
        Err(error) => {
            problems.push(format!("cannot list tracked files: {error}"));
            return;
        }
    };
    let names = String::from_utf8_lossy(&names);
    for name in names.split_terminator('\0') {
        // A file may be deleted and not committed yet.
        let bytes = std::fs::symlink_metadata(root.join(name)).map_or(0, |found| found.len());
        if bytes > MOST_BYTES {
            problems.push(format!(
                "{name}: a tracked file of {bytes} bytes, of which {MOST_BYTES} are allowed"
            ));
        }
    }
}
