//! The paths of the other worktrees of a repository, found without opening them.

use std::path::{Path, PathBuf};

use pronto_io::untrusted::{self, LARGEST_POINTER_BYTES, SymlinkPolicy};
use pronto_worktree::checkout;

use crate::path;

/// The subdirectory of the repository with a directory for each linked worktree.
pub const DIRECTORY: &str = "worktrees";

/// Returns the worktrees of the repository at `common` except that of `own`, the most recently used
/// first.
pub(crate) fn siblings(common: &Path, own: &Path) -> Vec<checkout::SourceWorktree> {
    let mut found = Vec::new();
    let mut add = |top: PathBuf, index: PathBuf| {
        if let Ok(used) = std::fs::metadata(&index).and_then(|index| index.modified()) {
            found.push((used, checkout::SourceWorktree { top, index }));
        }
    };
    let main = common.parent().filter(|_| common.ends_with(".git"));
    if let (Some(top), true) = (main, common != own) {
        add(top.to_owned(), common.join("index"));
    }
    let listing = std::fs::read_dir(common.join(DIRECTORY));
    for entry in listing.into_iter().flatten().flatten() {
        let own_dir = entry.path();
        let Ok(place) = untrusted::read(
            &own_dir.join("gitdir"),
            SymlinkPolicy::Follow,
            LARGEST_POINTER_BYTES,
        ) else {
            continue;
        };
        let file = path::normalize(&own_dir.join(path::borrow(place.trim_ascii_end())));
        if let (Some(top), true) = (file.parent(), own_dir != own) {
            add(top.to_owned(), own_dir.join("index"));
        }
    }
    found.sort_by(|(one, _), (other, _)| other.cmp(one));
    found.into_iter().map(|(_, place)| place).collect()
}
