//! Lists the files of a repository and its worktrees that name objects: reflogs, indexes and
//! per-worktree refs.

use std::io::ErrorKind as Io;
use std::path::{Path, PathBuf};

use pronto_repository::{Error, ErrorKind, Repository, Result};

/// Returns the common directory of the repository, and the directory below `worktrees` of each
/// linked worktree.
///
/// # Errors
/// Fails with [`ErrorKind::Io`] if the directory `worktrees` cannot be read.
pub(crate) fn git_directories(repository: &Repository) -> Result<Vec<PathBuf>> {
    let common = repository.common_dir().to_owned();
    let linked = common.join("worktrees");
    let mut directories = vec![common];
    match std::fs::read_dir(&linked) {
        Ok(entries) => {
            for entry in entries {
                let entry = entry.map_err(|error| unreadable(&linked, error))?;
                directories.push(entry.path());
            }
        }
        Err(error) if is_missing(&error) => {}
        Err(error) => return Err(unreadable(&linked, error)),
    }
    Ok(directories)
}

/// Returns all files below `root`, sorted. A directory that another process removes meanwhile
/// counts as empty.
///
/// # Errors
/// Fails with [`ErrorKind::Io`] if a directory cannot be read.
pub(crate) fn files_below(root: &Path) -> Result<Vec<PathBuf>> {
    let mut files = Vec::new();
    let mut directories = vec![root.to_owned()];
    while let Some(directory) = directories.pop() {
        let failed = |error| unreadable(&directory, error);
        let entries = match std::fs::read_dir(&directory) {
            Ok(entries) => entries,
            Err(error) if is_missing(&error) => continue,
            Err(error) => return Err(failed(error)),
        };
        for entry in entries {
            let entry = entry.map_err(failed)?;
            match entry.file_type().map_err(failed)?.is_dir() {
                true => directories.push(entry.path()),
                false => files.push(entry.path()),
            }
        }
    }
    files.sort();
    Ok(files)
}

/// Returns whether `error` means that the file does not exist.
pub(crate) fn is_missing(error: &std::io::Error) -> bool {
    matches!(error.kind(), Io::NotFound | Io::NotADirectory)
}

/// Returns the error of a file that cannot be read.
#[cold]
pub(crate) fn unreadable(path: &Path, error: std::io::Error) -> Error {
    let message = format!("failed to read '{}'", path.display());
    Error::new(ErrorKind::Io, message).because(error)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn files_at_all_depths_are_found_in_order() {
        let root = tempfile::tempdir().expect("a directory");
        assert!(
            files_below(&root.path().join("absent"))
                .expect("nothing")
                .is_empty()
        );
        std::fs::create_dir_all(root.path().join("b/c")).expect("a directory");
        for name in ["b/c/d", "b/a", "a"] {
            std::fs::write(root.path().join(name), "").expect("a file");
        }
        let found = files_below(root.path()).expect("they can be listed");
        let expected = ["a", "b/a", "b/c/d"].map(|name| root.path().join(name));
        assert_eq!(found, expected);
    }
}
