//! The programs of the reference git that are links to others.
//!
//! A copy of the runner's directory may have text files in place of the links: the file contains the
//! name of the program. The system does not run such a file, and takes the program of an older git
//! further back in the search path.

use std::ffi::OsString;
use std::path::{Path, PathBuf};

/// No name of a program is longer.
const LONGEST_NAME: u64 = 64;

/// Returns the search path of this process, after a directory with links for those programs of the
/// git in `suite` that are text files. The directory is made in `out`.
pub(super) fn search_path(suite: &Path, out: &Path) -> Result<OsString, String> {
    let links = out.join("links");
    let failed = |error: std::io::Error| format!("cannot make '{}': {error}", links.display());
    if links.exists() {
        std::fs::remove_dir_all(&links).map_err(failed)?;
    }
    std::fs::create_dir_all(&links).map_err(failed)?;
    for entry in std::fs::read_dir(suite).map_err(failed)?.flatten() {
        let programs = entry.path().join("bin");
        for file in std::fs::read_dir(&programs).into_iter().flatten().flatten() {
            if let Some(target) = target_of(&file.path()) {
                std::os::unix::fs::symlink(target, links.join(file.file_name())).map_err(failed)?;
            }
        }
    }
    let path = std::env::var_os("PATH").unwrap_or_default();
    let all = std::iter::once(links).chain(std::env::split_paths(&path));
    std::env::join_paths(all).map_err(|error| error.to_string())
}

/// Returns the program whose name the file at `path` contains, if it is a link in the form of text.
fn target_of(path: &Path) -> Option<PathBuf> {
    let metadata = std::fs::symlink_metadata(path).ok()?;
    if !metadata.is_file() || metadata.len() > LONGEST_NAME {
        return None;
    }
    let text = std::fs::read_to_string(path).ok()?;
    let target = path.parent()?.join(text.trim_end());
    target.is_file().then_some(target)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_text_file_with_the_name_of_a_program_is_a_link() {
        let root = std::env::temp_dir().join(format!("pronto-links-{}", std::process::id()));
        let programs = root.join("suite/git/bin");
        std::fs::create_dir_all(&programs).expect("a directory");
        for (name, content) in [("git", "#!/bin/sh\n"), ("git-pull", "git"), ("odd", "none")] {
            std::fs::write(programs.join(name), content).expect("a file");
        }
        let path = search_path(&root.join("suite"), &root.join("out")).expect("a path");
        let first = std::env::split_paths(&path).next().expect("one");
        let made: Vec<_> = std::fs::read_dir(&first)
            .expect("a directory")
            .flatten()
            .map(|entry| (entry.file_name(), std::fs::read_link(entry.path()).ok()))
            .collect();
        std::fs::remove_dir_all(&root).expect("it is ours");
        assert_eq!(made, [("git-pull".into(), Some(programs.join("git")))]);
    }
}
