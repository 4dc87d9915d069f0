//! An entry of the index.

use crate::stat::Stat;
use bstr::{BStr, BString};
use pronto_hash::{ObjectId, oid};
use std::cmp::Ordering;

/// The modes an entry can have.
pub mod mode {
    /// A file.
    pub const FILE: u32 = 0o100644;
    /// A file that its owner may execute.
    pub const EXECUTABLE: u32 = 0o100755;
    /// A symbolic link.
    pub const SYMLINK: u32 = 0o120000;
    /// A commit of another repository.
    pub const GITLINK: u32 = 0o160000;
    /// A directory as one entry (sparse index).
    pub const TREE: u32 = 0o040000;
    /// The bits that tell the type.
    pub const TYPE: u32 = 0o170000;
}

/// The flags of an entry, laid out as Git lays them out in memory: the lower half is what every
/// version stores, the upper half is the extended flags, and what is in neither is never stored.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Flags(u32);

impl Flags {
    /// `update-index --assume-unchanged`.
    pub const ASSUME_VALID: Flags = Flags(0x8000);
    /// The path is not to be in the worktree.
    pub const SKIP_WORKTREE: Flags = Flags(1 << 30);
    /// `add --intent-to-add`: the entry has no content yet.
    pub const INTENT_TO_ADD: Flags = Flags(1 << 29);
    /// The file was examined in this run and matches the entry. Never stored.
    pub const UP_TO_DATE: Flags = Flags(1 << 18);

    pub(crate) const EXTENDED: u32 = 0x4000;
    /// [`SKIP_WORKTREE`](Self::SKIP_WORKTREE) as the second pair of bytes has it.
    pub(crate) const STORED_SKIP_WORKTREE: u16 = (Self::SKIP_WORKTREE.0 >> 16) as u16;
    const STAGE: u32 = 0x3000;
    const STORED_EXTENDED: u32 = Self::SKIP_WORKTREE.0 | Self::INTENT_TO_ADD.0;

    /// The flags from the two fields of the file. `None` if there is one that is not known.
    pub(crate) fn from_stored(flags: u16, extended: u16) -> Option<Flags> {
        let upper = u32::from(extended) << 16;
        (upper & !Self::STORED_EXTENDED == 0)
            .then_some(Flags((u32::from(flags) & (0x8000 | Self::STAGE)) | upper))
    }

    /// The two fields of the file, without the length of the name.
    pub(crate) fn to_stored(self) -> (u16, u16) {
        let extended = self.0 & Self::STORED_EXTENDED;
        let mark = if extended == 0 { 0 } else { Self::EXTENDED };
        (
            (self.0 & (0x8000 | Self::STAGE) | mark) as u16,
            (extended >> 16) as u16,
        )
    }

    /// Flags with nothing but a stage (0 to 3; more is cut off).
    #[must_use]
    pub fn with_stage(self, stage: u8) -> Flags {
        Flags(self.0 & !Self::STAGE | (u32::from(stage & 3) << 12))
    }

    /// The stage: zero for a merged entry, 1 for the common ancestor, 2 for ours, 3 for theirs.
    pub fn stage(self) -> u8 {
        ((self.0 & Self::STAGE) >> 12) as u8
    }

    /// Whether all bits of `other` are set.
    pub fn contains(self, other: Flags) -> bool {
        self.0 & other.0 == other.0
    }

    /// The flags with those of `other` added.
    #[must_use]
    pub fn with(self, other: Flags) -> Flags {
        Flags(self.0 | other.0)
    }

    /// The flags with those of `other` taken away.
    #[must_use]
    pub fn without(self, other: Flags) -> Flags {
        Flags(self.0 & !other.0)
    }

    /// Whether an index with this entry needs version 3 or more.
    pub fn is_extended(self) -> bool {
        self.0 & Self::STORED_EXTENDED != 0
    }

    /// All bits, as `git ls-files --debug` shows them (less the length of the name).
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
    /// The object that is staged.
    pub id: ObjectId,
    /// One of [`mode`]'s.
    pub mode: u32,
    /// Stage and marks.
    pub flags: Flags,
    /// The stat data of the file when it last equalled the object.
    pub stat: Stat,
}

/// An entry within an index.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct EntryRef<'a> {
    /// The path from the top of the worktree.
    pub path: &'a BStr,
    /// The object that is staged.
    pub id: &'a oid,
    /// One of [`mode`]'s.
    pub mode: u32,
    /// Stage and marks.
    pub flags: Flags,
    /// The stat data of the file when it last equalled the object.
    pub stat: Stat,
}

impl Entry {
    /// A view of the entry.
    pub fn as_ref(&self) -> EntryRef<'_> {
        EntryRef {
            path: self.path.as_ref(),
            id: &self.id,
            mode: self.mode,
            flags: self.flags,
            stat: self.stat,
        }
    }

    /// The stage, see [`Flags::stage`].
    pub fn stage(&self) -> u8 {
        self.flags.stage()
    }
}

impl EntryRef<'_> {
    /// A copy that owns its path.
    pub fn to_owned(&self) -> Entry {
        Entry {
            path: self.path.to_owned(),
            id: self.id.to_owned(),
            mode: self.mode,
            flags: self.flags,
            stat: self.stat,
        }
    }

    /// The stage, see [`Flags::stage`].
    pub fn stage(&self) -> u8 {
        self.flags.stage()
    }

    /// Returns whether the entry is a submodule, which a pathspec for a directory can mean.
    pub fn is_submodule(&self) -> bool {
        self.mode & mode::TYPE == mode::GITLINK
    }

    /// Whether the entry represents a whole directory (sparse index).
    pub fn is_sparse_directory(&self) -> bool {
        self.mode == mode::TREE && self.path.ends_with(b"/")
    }
}

/// The order of entries: by the bytes of the path, then by stage.
pub(crate) fn order(one: (&[u8], u8), two: (&[u8], u8)) -> Ordering {
    one.0.cmp(two.0).then(one.1.cmp(&two.1))
}
