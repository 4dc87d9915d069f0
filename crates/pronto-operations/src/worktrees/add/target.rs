//! The target of the `HEAD` of a new worktree.

use bstr::BString;
use pronto_hash::ObjectId;

use crate::refs::{ExpectedValue, RefName, bad_name};
use crate::{Repository, Result};

/// The target of `HEAD`.
pub(super) enum HeadTarget {
    Branch(BString, ObjectId),
    Commit(ObjectId),
    Unborn(BString),
}

impl HeadTarget {
    /// Returns the commit; `None` for an unborn branch.
    pub(super) fn commit(&self) -> Option<ObjectId> {
        match self {
            HeadTarget::Branch(_, commit) | HeadTarget::Commit(commit) => Some(*commit),
            HeadTarget::Unborn(_) => None,
        }
    }

    /// Writes `HEAD` of `inside`.
    pub(super) fn write(&self, inside: &Repository) -> Result<()> {
        let mut transaction = inside.transaction();
        match self {
            HeadTarget::Branch(full, _) | HeadTarget::Unborn(full) => {
                transaction.set_symbolic(
                    "HEAD",
                    RefName::new(full.clone()).map_err(bad_name)?,
                    None,
                );
            }
            HeadTarget::Commit(commit) => {
                transaction.update("HEAD", *commit, ExpectedValue::Anything, "");
            }
        }
        transaction.commit()
    }
}
