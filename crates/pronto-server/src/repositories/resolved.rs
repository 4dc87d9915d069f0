//! The repository to which a name resolves.

use std::path::{Path, PathBuf};

use pronto::Repository;

/// The repository to which a name resolves.
pub(super) struct NamedRepository {
    pub(super) repository: Repository,
    /// The directory below the root with the name, with or without the suffix `.git`.
    pub(super) directory: PathBuf,
}

impl NamedRepository {
    /// Returns whether the directory is the repository or its worktree, so that it does not link to
    /// files of another name.
    pub(super) fn is_whole(&self) -> bool {
        let is_directory =
            |path: &Path| std::fs::symlink_metadata(path).is_ok_and(|found| found.is_dir());
        let git_dir = self.repository.git_dir();
        let is_at = |path: &Path| {
            is_directory(path) && std::fs::canonicalize(path).is_ok_and(|real| real == git_dir)
        };
        let worktree = self.directory.join(".git");
        is_directory(&self.directory) && (is_at(&self.directory) || is_at(&worktree))
    }
}
