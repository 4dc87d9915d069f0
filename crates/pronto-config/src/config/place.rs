//! The repository whose configuration is read.

use std::path::{Path, PathBuf};

use bstr::BString;

/// The repository whose configuration is read.
#[derive(Clone, Debug)]
pub struct RepositoryPaths {
    /// The directory of the repository, or of its linked worktree (`GIT_DIR`).
    pub git_dir: PathBuf,
    /// The common directory of all worktrees (`GIT_COMMON_DIR`).
    pub common_dir: PathBuf,
    /// `common_dir` as messages print it (`.git`).
    pub display_common_dir: PathBuf,
    /// `git_dir` as messages print it.
    pub display_git_dir: PathBuf,
    /// The function that reads the current branch of a worktree from a reftable. Without it, only
    /// the file `HEAD` is read.
    pub branch_in_tables: Option<BranchInTables>,
}

/// Returns the ref to which `HEAD` of a Git directory points, from its reftables.
pub type BranchInTables = fn(&Path) -> Option<BString>;
