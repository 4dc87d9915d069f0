//! A file that differs between two sides. A side is a tree, the index or the worktree.

use bstr::BString;
use pronto_hash::ObjectId;

/// The file on one side of a difference.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DifferenceSide {
    /// The mode, as in an index entry: `0o100644`, `0o100755`, `0o120000`, `0o160000`, or `0o40000`
    /// for a tree.
    pub mode: u32,
    /// The object id, or the null id for a file of the worktree that was not hashed.
    pub id: ObjectId,
}

/// A path that differs between two sides.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Difference {
    /// The path; for a rename or a copy, the new path.
    pub path: BString,
    /// The file on the old side, or `None` for an addition.
    pub old: Option<DifferenceSide>,
    /// The file on the new side, or `None` for a deletion.
    pub new: Option<DifferenceSide>,
    /// The source of a renamed or copied file.
    pub origin: Option<RenameOrigin>,
    /// Whether the path is unmerged. Both sides may then be `None`.
    pub unmerged: bool,
}

/// The source of a rename or a copy.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RenameOrigin {
    /// The old path.
    pub path: BString,
    /// The similarity, out of [`MOST_SIMILAR`], relative to the size of the larger file.
    pub score: u32,
    /// Whether this is a copy: the old path still exists, or is also the source of another file.
    pub copy: bool,
}

/// The similarity score of two identical files.
pub const MOST_SIMILAR: u32 = 60_000;

/// The kind of a change, as `--name-status` and `status --short` show it with a letter.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum ChangeKind {
    /// The path is new (`A`).
    Added,
    /// The path is a copy of another one (`C`).
    Copied,
    /// The path is gone (`D`).
    Deleted,
    /// The content or the permissions have changed (`M`).
    Modified,
    /// The file has moved from another path (`R`).
    Renamed,
    /// The type has changed between regular file, symbolic link and submodule (`T`).
    TypeChanged,
    /// The path is in conflict (`U`).
    Unmerged,
}

impl ChangeKind {
    /// Returns the status letter of Git.
    pub fn letter(self) -> u8 {
        match self {
            ChangeKind::Added => b'A',
            ChangeKind::Copied => b'C',
            ChangeKind::Deleted => b'D',
            ChangeKind::Modified => b'M',
            ChangeKind::Renamed => b'R',
            ChangeKind::TypeChanged => b'T',
            ChangeKind::Unmerged => b'U',
        }
    }
}

impl Difference {
    /// Returns the kind of the change.
    pub fn kind(&self) -> ChangeKind {
        match (&self.origin, &self.old, &self.new) {
            _ if self.unmerged => ChangeKind::Unmerged,
            (Some(origin), ..) if origin.copy => ChangeKind::Copied,
            (Some(_), ..) => ChangeKind::Renamed,
            (None, None, _) => ChangeKind::Added,
            (None, _, None) => ChangeKind::Deleted,
            (None, Some(old), Some(new)) if (old.mode ^ new.mode) & 0o170_000 != 0 => {
                ChangeKind::TypeChanged
            }
            _ => ChangeKind::Modified,
        }
    }

    /// Returns the status letter of Git for the change (`--name-status`).
    pub fn letter(&self) -> u8 {
        self.kind().letter()
    }
}
