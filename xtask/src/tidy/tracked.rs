//! Checks that no tracked file is large. History keeps such files for ever, so build results and
//! downloads must not be committed.

use std::path::Path;
use std::process::Command;

/// The largest size of a tracked file. The largest files are lock files and completions.
const MOST_BYTES: u64 = 256 * 1024;

pub(crate) fn check(root: &Path, problems: &mut Vec<String>) {
    // A source archive has no repository, so no file can have been added.
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
        // A deleted file may still be in the index.
        let bytes = std::fs::symlink_metadata(root.join(name)).map_or(0, |found| found.len());
        if bytes > MOST_BYTES {
            problems.push(format!(
                "{name}: a tracked file of {bytes} bytes, of which {MOST_BYTES} are allowed"
            ));
        }
    }
}
