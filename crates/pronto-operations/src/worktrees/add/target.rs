//! The target of the `HEAD` of a new worktree.

use bstr::BString;
use pronto_hash::ObjectId;

use crate::refs::{Expected, RefName, bad_name};
use crate::{Repository, Result};

/// The target of `HEAD`.
pub(super) enum Target {
    Branch(BString, ObjectId),
    Commit(ObjectId),
    Unborn(BString),
}

impl Target {
    /// Returns the commit; `None` for an unborn branch.
    pub(super) fn commit(&self) -> Option<ObjectId> {
        match self {
            Target::Branch(_, commit) | Target::Commit(commit) => Some(*commit),
            Target::Unborn(_) => None,
        }
    }

    /// Writes `HEAD` of `inside`.
    pub(super) fn write(&self, inside: &Repository) -> Result<()> {
        let mut transaction = inside.transaction();
        match self {
            Target::Branch(full, _) | Target::Unborn(full) => {
                transaction.set_symbolic(
                    "HEAD",
                    RefName::new(full.clone()).map_err(bad_name)?,
                    None,
                );
            }
            Target::Commit(commit) => {
                transaction.update("HEAD", *commit, Expected::Anything, "");
            }
        }
        transaction.commit()
    }
}
