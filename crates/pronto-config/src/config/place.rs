//! The repository whose configuration is read.

use std::path::{Path, PathBuf};

use bstr::BString;

/// The repository whose configuration is read.
#[derive(Clone, Debug)]
pub struct Place {
    /// Its directory: that of this worktree.
    pub git_dir: PathBuf,
    /// The directory that all its worktrees share.
    pub common_dir: PathBuf,
    /// `common_dir` as messages spell it (`.git`).
    pub spoken_common_dir: PathBuf,
    /// `git_dir` as messages spell it.
    pub spoken_git_dir: PathBuf,
    /// The function that reads the branch of the worktree from a reftable; without it, only `HEAD`
    /// itself is read.
    pub branch_in_tables: Option<BranchInTables>,
}

/// Reads the ref that `HEAD` of a Git directory points to from its reftables.
pub type BranchInTables = fn(&Path) -> Option<BString>;
