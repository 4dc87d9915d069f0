//! Objects that are stored whole: those at paths with the attribute `-delta`.

use bstr::BStr;
use pronto_io::dir::Directory;
use pronto_repository::errors::from_worktree;
use pronto_repository::{Repository, Result};
use pronto_worktree::attributes::{Attributes, Directories, FromWorktree, Source, Stack, State};

/// Reports for paths whether their objects are stored whole in packs, because an attributes file
/// says `-delta`. Cheapest if the paths of a directory are consecutive. For one thread.
pub struct KeptWhole(Stack);

/// Returns a checker for paths that are stored whole. As in Git, attributes files of the
/// worktree, the repository and the user are read, and none that are recorded in trees.
///
/// # Errors
/// A configured value or a file cannot be read.
pub fn kept_whole(repository: &Repository) -> Result<KeptWhole> {
    // A missing worktree has no files.
    let top = repository
        .work_tree()
        .and_then(|path| Directory::open(path).ok());
    let source: Box<dyn Source> = match top {
        Some(top) => Box::new(FromWorktree::new(top, Directories::new())),
        None => Box::new(Directories::new()),
    };
    let attributes = Attributes::new(&["delta"], &repository.attribute_files()?, source);
    Ok(KeptWhole(attributes.map_err(from_worktree)?.stack()))
}

impl KeptWhole {
    /// Returns whether the object at `path`, relative to the top of the worktree, is stored whole.
    /// Reads each attributes file on the way once.
    ///
    /// # Errors
    /// An attributes file cannot be read.
    pub fn has(&mut self, path: &BStr) -> Result<bool> {
        let states = self.0.states(path).map_err(from_worktree)?;
        Ok(states.first() == Some(&State::Unset))
    }
}

impl std::fmt::Debug for KeptWhole {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("KeptWhole").finish_non_exhaustive()
    }
}
