//! Reads what a repository needs when it is opened.

use std::path::{Path, PathBuf};

use pronto_io::untrusted::{self, LARGEST_POINTER_BYTES, SymlinkPolicy};
use pronto_refs::store::tables;

use crate::config::{Config, Loader, RepositoryPaths};
use crate::environment::Environment;
use crate::{RepositoryLayout, Result, path};

pub(super) fn load_config(
    layout: &RepositoryLayout,
    local: Option<Vec<u8>>,
    env: &Environment,
) -> Result<Config> {
    let mut loader = Loader::new(env, Some(place(layout)));
    loader.system()?.global();
    match local {
        Some(bytes) => loader.local_from(bytes),
        None => loader.local(),
    };
    if layout.format.worktree_config {
        loader.worktree();
    }
    loader.command().load()
}

/// Returns the worktree of a repository that was opened by its own path.
pub(super) fn work_tree_of(git_dir: &Path, common_dir: &Path) -> Option<PathBuf> {
    if git_dir != common_dir {
        let back = untrusted::read(
            &git_dir.join("gitdir"),
            SymlinkPolicy::Follow,
            LARGEST_POINTER_BYTES,
        )
        .ok()?;
        let file = git_dir.join(path::borrow(back.trim_ascii_end()));
        return path::normalize(&file).parent().map(Path::to_owned);
    }
    if git_dir.file_name()? == ".git" {
        return git_dir.parent().map(Path::to_owned);
    }
    None
}

/// Returns the location of a repository for the configuration loader, which needs the current branch
/// for `includeIf.onbranch`.
pub(super) fn place(layout: &RepositoryLayout) -> RepositoryPaths {
    RepositoryPaths {
        branch_in_tables: Some(tables::branch_of),
        ..layout.place()
    }
}
