//! The programs of the reference git that are links to others.
//!
//! A copy of the runner's directory may have text files in place of the links: the file contains
//! the target of the link. The system does not run such a file, and takes the program of an older
//! git further back in the search path.

use std::io;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};

/// No target of a link is longer.
const LONGEST_TARGET_BYTES: u64 = 64;

/// Returns a directory like `suite` in which links are links. Makes it in `out`: `source` and other
/// directories without such files are links to those of `suite`, the rest is copied.
///
/// # Errors
/// A file cannot be read, linked or copied.
pub(super) fn with_links(suite: &Path, out: &Path) -> Result<PathBuf, String> {
    let copy = out.join("suite");
    let made = || -> io::Result<()> {
        if copy.exists() {
            std::fs::remove_dir_all(&copy)?;
        }
        std::fs::create_dir_all(&copy)?;
        let suite = suite.canonicalize()?;
        for entry in std::fs::read_dir(&suite)? {
            let entry = entry?;
            let target = copy.join(entry.file_name());
            if entry.path().join("bin").is_dir() {
                copy_programs(&entry.path(), &target)?;
            } else {
                symlink(entry.path(), target)?;
            }
        }
        Ok(())
    };
    made().map_err(|error| format!("cannot make '{}': {error}", copy.display()))?;
    Ok(copy)
}

/// Copies the directory `from` with everything in it to `to`, and makes links of text files that
/// contain the target of one. Files are hard links where the file system permits.
fn copy_programs(from: &Path, to: &Path) -> io::Result<()> {
    std::fs::create_dir(to)?;
    for entry in std::fs::read_dir(from)? {
        let entry = entry?;
        let (path, target) = (entry.path(), to.join(entry.file_name()));
        if entry.file_type()?.is_dir() {
            copy_programs(&path, &target)?;
        } else if entry.file_type()?.is_symlink() {
            symlink(std::fs::read_link(&path)?, target)?;
        } else if let Some(link) = target_of(&path) {
            symlink(link, target)?;
        } else if std::fs::hard_link(&path, &target).is_err() {
            std::fs::copy(&path, &target)?;
        }
    }
    Ok(())
}

/// Returns the target of the link that the file at `path` stands for.
fn target_of(path: &Path) -> Option<PathBuf> {
    if std::fs::symlink_metadata(path).ok()?.len() > LONGEST_TARGET_BYTES {
        return None;
    }
    let text = std::fs::read_to_string(path).ok()?;
    let target = PathBuf::from(text.trim_end());
    let is_program = !text.is_empty() && path.parent()?.join(&target).is_file();
    is_program.then_some(target)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_text_file_with_the_path_of_a_program_becomes_a_link() {
        let root = std::env::temp_dir().join(format!("pronto-links-{}", std::process::id()));
        let suite = root.join("suite");
        let core = suite.join("git/libexec");
        for directory in [&suite.join("git/bin"), &core, &suite.join("source")] {
            std::fs::create_dir_all(directory).expect("a directory");
        }
        let files = [
            ("run", "a runner"),
            ("git/bin/git", "#!/bin/sh\n"),
            ("git/bin/git-pull", "git"),
            ("git/bin/odd", "none"),
            ("git/libexec/git-add", "../bin/git"),
        ];
        for (name, content) in files {
            std::fs::write(suite.join(name), content).expect("a file");
        }
        std::fs::create_dir_all(root.join("out/suite/old")).expect("a directory");
        let whole = with_links(&suite, &root.join("out")).expect("a directory");
        let link = |name| std::fs::read_link(whole.join(name)).ok();
        let links = ["git/bin/git-pull", "git/libexec/git-add", "git/bin/odd"].map(link);
        let is_whole = whole.join("run").is_file() && whole.join("git/bin/git").is_file();
        let is_new = !whole.join("old").exists();
        std::fs::remove_dir_all(&root).expect("it is ours");
        assert_eq!(links, [Some("git".into()), Some("../bin/git".into()), None]);
        assert!(is_whole && is_new);
    }
}
