//! Which objects are to stay whole: those at paths of which attributes files say `-delta`.

use bstr::BStr;
use pronto_io::dir::Directory;
use pronto_worktree::attributes::{Attributes, Directories, FromWorktree, Source, Stack, State};

use crate::errors::from_worktree;
use crate::{Repository, Result};

/// Tells of one path after another whether what is there stays whole in packs: an attributes file
/// says `-delta`. Cheapest when the paths of a directory come together. For one thread.
pub struct KeptWhole(Stack);

impl Repository {
    /// A way to ask which paths stay whole. As Git does it, the attributes files that lie in the
    /// work tree are asked, those of the repository and of the user, and none that are recorded.
    ///
    /// # Errors
    /// A configured value or a file cannot be read.
    pub fn kept_whole(&self) -> Result<KeptWhole> {
        // A work tree that is gone has no files.
        let top = self.work_tree().and_then(|path| Directory::open(path).ok());
        let source: Box<dyn Source> = match top {
            Some(top) => Box::new(FromWorktree {
                top,
                otherwise: Directories::new(),
            }),
            None => Box::new(Directories::new()),
        };
        let attributes = Attributes::new(&["delta"], &self.attribute_files()?, source);
        Ok(KeptWhole(attributes.map_err(from_worktree)?.stack()))
    }
}

impl KeptWhole {
    /// Whether what is at `path`, from the top of the work tree, stays whole. Reads each attributes
    /// file on the way once.
    ///
    /// # Errors
    /// One cannot be read.
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
