//! Objects that are not stored as deltas, because their paths have the attribute `-delta`.

use bstr::BStr;
use pronto_io::dir::Directory;
use pronto_repository::errors::from_worktree;
use pronto_repository::{Repository, Result};
use pronto_worktree::attributes::{
    AttributeStack, AttributeState, Attributes, AttributesByDirectory, FromWorktree, ReadAttributes,
};

/// Reports for paths whether their objects must not be stored as deltas (attribute `-delta`).
/// Consecutive paths in the same directory are cheapest. Each value is used by one thread at a time.
pub struct KeptWhole(AttributeStack);

/// Creates a [`KeptWhole`]. As in Git, the attributes files of the worktree, the repository and the
/// user are read, but not those in trees.
///
/// # Errors
/// Fails with `ErrorKind::ConfigValue` if a setting is malformed, or if a file cannot be read.
pub fn kept_whole(repository: &Repository) -> Result<KeptWhole> {
    // Without a worktree there are no attributes files in directories.
    let top = repository
        .work_tree()
        .and_then(|path| Directory::open(path).ok());
    let source: Box<dyn ReadAttributes> = match top {
        Some(top) => Box::new(FromWorktree::new(top, AttributesByDirectory::new())),
        None => Box::new(AttributesByDirectory::new()),
    };
    let attributes = Attributes::new(&["delta"], &repository.attribute_files()?, source);
    Ok(KeptWhole(attributes.map_err(from_worktree)?.stack()))
}

impl KeptWhole {
    /// Returns whether the object at `path`, relative to the top of the worktree, must not be stored as
    /// a delta. Each attributes file on the path is read once.
    ///
    /// # Errors
    /// Fails with `ErrorKind::Worktree` or `ErrorKind::Io` if an attributes file cannot be read.
    pub fn has(&mut self, path: &BStr) -> Result<bool> {
        let states = self.0.states(path).map_err(from_worktree)?;
        Ok(states.first() == Some(&AttributeState::Unset))
    }
}

impl std::fmt::Debug for KeptWhole {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("KeptWhole").finish_non_exhaustive()
    }
}
