//! The links of the trees of a pack to other objects, computed for all trees at once.
//!
//! Each deltified tree is inflated once, directly after its base, and only the entries that the
//! delta does not copy are parsed and searched. Delta families with different roots are processed
//! in parallel.
//!
//! Costs: for each tree one inflation, one copy of its content, and four bytes for each entry while
//! the tree is a base; for each entry that is not copied one search in the index and one in the
//! table of names. The result takes 16 bytes for each object of the pack, 12 for each entry that is
//! not copied and for each run of copied entries, and each name once for each thread. In total, the
//! result is limited to 192 MiB and 192 bytes for each object of the pack, and to 64 MiB of names
//! for each thread; contents are limited to 64 MiB for each thread. A tree that would exceed these
//! limits is *unknown*, and must be read like any other object.

mod scan;
pub(super) mod shape;
mod work;

use std::ops::Range;

use pronto_hash::ObjectId;

use super::{PackOrder, PackReader};
use crate::idx::PackIndex;

pub use scan::Scan;

/// The value for a missing row.
const NONE: u32 = u32::MAX;

/// The type of a tree entry.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TreeEntryKind {
    /// A subdirectory.
    Tree,
    /// A file or a symbolic link.
    Blob,
    /// A submodule (gitlink).
    Submodule,
}

/// The target of a tree entry.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LinkTarget<'a> {
    /// An object of the pack, with its row in the index.
    Row(u32),
    /// An object outside the pack.
    Outside(&'a ObjectId),
}

/// A part of the list of entries of a tree.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum EntryListPiece<'a> {
    /// Entries that are copied from the delta base of the tree.
    Copied {
        /// The number of the first entry in the base.
        first: u32,
        /// The number of entries.
        count: u32,
    },
    /// An entry that is not copied.
    Entry {
        /// The type of the entry.
        child: TreeEntryKind,
        /// The target of the entry.
        to: LinkTarget<'a>,
        /// The name of the entry.
        name: &'a [u8],
    },
}

#[derive(Clone, Copy, Debug)]
enum Tag {
    Copied,
    Tree,
    Blob,
    Submodule,
    OutsideTree,
    OutsideBlob,
}

/// The stored form of a piece. For a run: the first entry and the count. For an entry: the row or
/// the number of the outside id, and the number of the name.
#[derive(Clone, Copy, Debug)]
struct StoredLink {
    tag: Tag,
    target: u32,
    name: u32,
}

/// The results of one worker.
#[derive(Debug, Default)]
struct LinkArena {
    pieces: Vec<StoredLink>,
    names: Vec<u8>,
    /// The end of each name in the names.
    ends: Vec<u32>,
    outside: Vec<ObjectId>,
}

#[derive(Clone, Copy, Debug)]
struct TreeRecord {
    /// The number of the arena, or `NONE` if the tree is unknown.
    arena: u32,
    start: u32,
    len: u32,
    /// The row of the delta base.
    base: u32,
}

/// A pack with its index and its order.
#[derive(Clone, Copy, Debug)]
pub struct PackFiles<'a> {
    /// The pack.
    pub pack: &'a PackReader,
    /// The index of the pack.
    pub index: &'a PackIndex,
    /// The entries of the pack in pack order.
    pub order: &'a PackOrder,
}

/// The links of the trees of a pack.
#[derive(Debug)]
pub struct TreeLinks {
    /// The records, by row of the index.
    records: Vec<TreeRecord>,
    arenas: Vec<LinkArena>,
}

/// The entries of a tree.
#[derive(Clone, Copy, Debug)]
pub struct Tree<'a> {
    arena: &'a LinkArena,
    pieces: &'a [StoredLink],
    base: u32,
}

impl TreeLinks {
    /// Returns the tree in this row of the index; `None` if the object is not a tree or is unknown.
    pub fn get(&self, row: u32) -> Option<Tree<'_>> {
        let record = self.records.get(row as usize)?;
        let arena = self.arenas.get(record.arena as usize)?;
        let pieces = arena.pieces.get(record.start as usize..)?;
        Some(Tree {
            arena,
            pieces: pieces.get(..record.len as usize)?,
            base: record.base,
        })
    }

    /// Calls `visit` with the entries of the tree at `row`, in their order. Skips submodules,
    /// entries that link to a row for which `is_seen` returns `true`, and entries that are copied,
    /// through any number of deltas, from a tree for which `is_done` returns `true`. Costs one step
    /// for each entry and run that is not skipped in this way. Returns `false` if the tree is
    /// unknown.
    pub fn each_new<'a>(
        &'a self,
        row: u32,
        is_seen: impl Fn(u32) -> bool,
        is_done: impl Fn(u32) -> bool,
        mut visit: impl FnMut(TreeEntryKind, LinkTarget<'a>, &'a [u8]),
    ) -> bool {
        let Some(tree) = self.get(row) else {
            return false;
        };
        // A delta cannot be its own base, so there are no more levels than trees.
        let mut levels = vec![OpenTree::new(tree, 0..u32::MAX)];
        while let Some(level) = levels.last_mut() {
            let (arena, base) = (level.tree.arena, level.tree.base);
            match level.next() {
                None => _ = levels.pop(),
                Some(TreeItem::Entry(stored)) => {
                    // Most entries have been seen, so their names are not read.
                    let is_inside = matches!(stored.tag, Tag::Tree | Tag::Blob);
                    if is_inside && is_seen(stored.target) {
                        continue;
                    }
                    if let EntryListPiece::Entry { child, to, name } = arena.piece(stored)
                        && child != TreeEntryKind::Submodule
                    {
                        visit(child, to, name);
                    }
                }
                Some(TreeItem::Copied(range)) if !is_done(base) => {
                    let base = self.get(base);
                    levels.extend(base.map(|base| OpenTree::new(base, range)));
                }
                Some(TreeItem::Copied(_)) => {}
            }
        }
        true
    }
}

impl<'a> Tree<'a> {
    /// Returns the row in the index of the delta base of the tree.
    pub fn base(&self) -> Option<u32> {
        (self.base != NONE).then_some(self.base)
    }

    /// Returns the pieces of the list of entries.
    pub fn pieces(self) -> impl Iterator<Item = EntryListPiece<'a>> {
        self.pieces
            .iter()
            .map(move |stored| self.arena.piece(stored))
    }
}

impl LinkArena {
    fn piece(&self, stored: &StoredLink) -> EntryListPiece<'_> {
        let (child, is_outside) = match stored.tag {
            Tag::Copied => {
                return EntryListPiece::Copied {
                    first: stored.target,
                    count: stored.name,
                };
            }
            Tag::Tree => (TreeEntryKind::Tree, false),
            Tag::Blob => (TreeEntryKind::Blob, false),
            Tag::OutsideTree => (TreeEntryKind::Tree, true),
            Tag::OutsideBlob => (TreeEntryKind::Blob, true),
            Tag::Submodule => (TreeEntryKind::Submodule, true),
        };
        EntryListPiece::Entry {
            child,
            to: match is_outside {
                false => LinkTarget::Row(stored.target),
                true => LinkTarget::Outside(&self.outside[stored.target as usize]),
            },
            name: self.name(stored.name),
        }
    }

    fn name(&self, number: u32) -> &[u8] {
        let number = number as usize;
        let start = match number {
            0 => 0,
            _ => self.ends[number - 1],
        };
        &self.names[start as usize..self.ends[number] as usize]
    }
}

/// The next item of a tree.
enum TreeItem<'a> {
    Entry(&'a StoredLink),
    /// A range of entries of the base.
    Copied(Range<u32>),
}

/// A tree of which a range of entries is being visited.
struct OpenTree<'a> {
    tree: Tree<'a>,
    next: usize,
    /// The number of the first entry of the next piece.
    at: u32,
    wanted: Range<u32>,
}

impl<'a> OpenTree<'a> {
    fn new(tree: Tree<'a>, wanted: Range<u32>) -> Self {
        OpenTree {
            tree,
            next: 0,
            at: 0,
            wanted,
        }
    }

    /// Returns the next piece within the range.
    #[inline]
    fn next(&mut self) -> Option<TreeItem<'a>> {
        loop {
            if self.at >= self.wanted.end {
                return None;
            }
            let stored = self.tree.pieces.get(self.next)?;
            self.next += 1;
            let start = self.at;
            let Tag::Copied = stored.tag else {
                self.at += 1;
                if start >= self.wanted.start {
                    return Some(TreeItem::Entry(stored));
                }
                continue;
            };
            self.at = start.saturating_add(stored.name);
            let from = start.max(self.wanted.start);
            let to = self.at.min(self.wanted.end);
            if from < to {
                let first = stored.target.saturating_add(from - start);
                return Some(TreeItem::Copied(first..first.saturating_add(to - from)));
            }
        }
    }
}
