//! The reasons why paths cannot be restored.

use std::fmt;

use bstr::BString;

use super::ConflictSide;

/// The reason why a path cannot be restored. [`Display`](fmt::Display) gives Git's message.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum PathError {
    /// This pathspec matches no path.
    Unmatched(BString),
    /// The path is unmerged.
    Unmerged(BString),
    /// A conflict cannot be recreated, because the index lacks a version of the path.
    IncompleteConflict(BString),
    /// A conflict lacks the version of the requested side.
    MissingStage {
        /// The path.
        path: BString,
        /// The requested side.
        stage: ConflictSide,
    },
}

impl fmt::Display for PathError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            PathError::Unmatched(spec) => {
                write!(
                    f,
                    "pathspec '{spec}' did not match any file(s) known to git"
                )
            }
            PathError::Unmerged(path) => write!(f, "path '{path}' is unmerged"),
            PathError::IncompleteConflict(path) => {
                write!(f, "path '{path}' does not have all necessary versions")
            }
            PathError::MissingStage { path, stage } => {
                let owner = match stage {
                    ConflictSide::Ours => "our",
                    ConflictSide::Theirs => "their",
                };
                write!(f, "path '{path}' does not have {owner} version")
            }
        }
    }
}
