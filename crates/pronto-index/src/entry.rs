//! The entries of an index.

use crate::stat::Stat;
use bstr::{BStr, BString};
use pronto_hash::{ObjectId, oid};

/// The modes of index entries.
pub mod mode {
    /// A regular file.
    pub const FILE: u32 = 0o100644;
    /// A regular file that is executable.
    pub const EXECUTABLE: u32 = 0o100755;
    /// A symbolic link.
    pub const SYMLINK: u32 = 0o120000;
    /// A submodule: the commit of another repository.
    pub const GITLINK: u32 = 0o160000;
    /// A directory as a single entry (sparse index).
    pub const TREE: u32 = 0o040000;
    /// The bits that encode the type.
    pub const TYPE: u32 = 0o170000;
}

/// The flags of an entry, in the layout that Git uses in memory. The lower half contains the flags
/// that every version stores, the upper half contains the extended flags, and other bits are never
/// stored.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Flags(u32);

impl Flags {
    /// The file is assumed to be unchanged (`git update-index --assume-unchanged`).
    pub const ASSUME_VALID: Flags = Flags(0x8000);
    /// The path is outside the sparse checkout (`git update-index --skip-worktree`).
    pub const SKIP_WORKTREE: Flags = Flags(1 << 30);
    /// The entry has no content yet (`git add --intent-to-add`).
    pub const INTENT_TO_ADD: Flags = Flags(1 << 29);
    /// The file was examined in this run and matches the entry. Never stored.
    pub const UP_TO_DATE: Flags = Flags(1 << 18);

    pub(crate) const EXTENDED: u32 = 0x4000;
    /// The bit of [`SKIP_WORKTREE`](Self::SKIP_WORKTREE) in the stored extended flags.
    pub(crate) const STORED_SKIP_WORKTREE: u16 = (Self::SKIP_WORKTREE.0 >> 16) as u16;
    const STAGE: u32 = 0x3000;
    const STORED_EXTENDED: u32 = Self::SKIP_WORKTREE.0 | Self::INTENT_TO_ADD.0;

    /// Decodes the flags from the two fields of the file; `None` if an unknown flag is set.
    pub(crate) fn from_stored(flags: u16, extended: u16) -> Option<Flags> {
        let upper = u32::from(extended) << 16;
        (upper & !Self::STORED_EXTENDED == 0)
            .then_some(Flags((u32::from(flags) & (0x8000 | Self::STAGE)) | upper))
    }

    /// Encodes the two fields of the file, without the length of the name.
    pub(crate) fn to_stored(self) -> (u16, u16) {
        let extended = self.0 & Self::STORED_EXTENDED;
        let mark = if extended == 0 { 0 } else { Self::EXTENDED };
        (
            (self.0 & (0x8000 | Self::STAGE) | mark) as u16,
            (extended >> 16) as u16,
        )
    }

    /// Returns the flags with the stage replaced by `stage` (0 to 3; higher bits are ignored).
    #[must_use]
    pub fn with_stage(self, stage: u8) -> Flags {
        Flags(self.0 & !Self::STAGE | (u32::from(stage & 3) << 12))
    }

    /// Returns the stage: 0 for a merged entry, 1 for the merge base, 2 for ours, 3 for theirs.
    pub fn stage(self) -> u8 {
        ((self.0 & Self::STAGE) >> 12) as u8
    }

    /// Returns whether all bits of `other` are set.
    pub fn contains(self, other: Flags) -> bool {
        self.0 & other.0 == other.0
    }

    /// Returns the flags with the bits of `other` set.
    #[must_use]
    pub fn with(self, other: Flags) -> Flags {
        Flags(self.0 | other.0)
    }

    /// Returns the flags with the bits of `other` cleared.
    #[must_use]
    pub fn without(self, other: Flags) -> Flags {
        Flags(self.0 & !other.0)
    }

    /// Returns whether an index with this entry requires version 3 or later.
    pub fn is_extended(self) -> bool {
        self.0 & Self::STORED_EXTENDED != 0
    }

    /// Returns all bits, as `git ls-files --debug` shows them (without the length of the name).
    pub fn bits(self) -> u32 {
        self.0
            | if self.is_extended() {
                Self::EXTENDED
            } else {
                0
            }
    }
}

/// An entry that owns its path.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Entry {
    /// The path from the top of the worktree.
    pub path: BString,
    /// The id of the staged object.
    pub id: ObjectId,
    /// The mode of the entry, one of the constants in [`mode`].
    pub mode: u32,
    /// The stage and the flags.
    pub flags: Flags,
    /// The stat data of the file from the last time at which the file matched the object.
    pub stat: Stat,
}

/// An entry that borrows its path and object id.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct EntryRef<'a> {
    /// The path from the top of the worktree.
    pub path: &'a BStr,
    /// The id of the staged object.
    pub id: &'a oid,
    /// The mode of the entry, one of the constants in [`mode`].
    pub mode: u32,
    /// The stage and the flags.
    pub flags: Flags,
    /// The stat data of the file from the last time at which the file matched the object.
    pub stat: Stat,
}

impl Entry {
    /// Returns a borrowed view of the entry.
    pub fn as_ref(&self) -> EntryRef<'_> {
        EntryRef {
            path: self.path.as_ref(),
            id: &self.id,
            mode: self.mode,
            flags: self.flags,
            stat: self.stat,
        }
    }

    /// Returns the stage, see [`Flags::stage`].
    pub fn stage(&self) -> u8 {
        self.flags.stage()
    }
}

impl<'a> EntryRef<'a> {
    /// Returns the sort key of the entry.
    pub(crate) fn key(&self) -> EntryKey<'a> {
        EntryKey {
            path: self.path,
            stage: self.stage(),
        }
    }

    /// Returns a copy that owns its path.
    pub fn to_owned(&self) -> Entry {
        Entry {
            path: self.path.to_owned(),
            id: self.id.to_owned(),
            mode: self.mode,
            flags: self.flags,
            stat: self.stat,
        }
    }

    /// Returns the stage, see [`Flags::stage`].
    pub fn stage(&self) -> u8 {
        self.flags.stage()
    }

    /// Returns whether the entry is a submodule, which a pathspec with a trailing slash can match.
    pub fn is_submodule(&self) -> bool {
        self.mode & mode::TYPE == mode::GITLINK
    }

    /// Returns whether the entry represents a whole directory (sparse index).
    pub fn is_sparse_directory(&self) -> bool {
        self.mode == mode::TREE && self.path.ends_with(b"/")
    }
}

/// The sort key of an entry: the bytes of its path, then the stage.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct EntryKey<'a> {
    pub(crate) path: &'a [u8],
    pub(crate) stage: u8,
}
