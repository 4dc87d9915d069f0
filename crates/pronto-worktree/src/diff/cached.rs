//! The cached trees of an index (cache-tree): the recorded ones, and those found by a comparison with a
//! tree.

use crate::Error;
use crate::names::{IndexedName, compare};
use crate::objects::check_depth;
use crate::tree_list::{ListedTreeEntry, ReadTree, read_tree};
use bstr::ByteSlice;
use pronto_hash::{ObjectId, oid};
use pronto_index::{CachedDirectory, CachedTree, CachedTreeBuilder, Flags, Index};
use std::cmp::Ordering;
use std::iter::Peekable;
use std::ops::Range;
use std::vec::IntoIter;

/// Returns the cached trees of `index`: the valid ones in `cached`, and for each other directory that
/// matches its tree in `root`, that tree. Reads the trees of directories without a valid cached tree.
///
/// # Errors
/// Fails with [`CorruptObject`](crate::ErrorKind::CorruptObject) if a tree is malformed, or if `read`
/// fails.
pub fn cached_trees(
    root: &oid,
    index: &Index,
    cached: Option<&CachedTree>,
    read: &mut ReadTree<'_>,
) -> Result<CachedTree, Error> {
    let mut walk = CachedTreeWalk {
        index,
        read,
        builder: CachedTree::builder(root.to_owned()),
    };
    let cached = cached.map(CachedTree::root);
    walk.run(root, cached)?;
    Ok(walk.builder.finish())
}

struct CachedTreeWalk<'a, 'r> {
    index: &'a Index,
    read: &'a mut ReadTree<'r>,
    builder: CachedTreeBuilder,
}

/// A directory without a valid cached tree. Levels are on an explicit stack, because nested trees could
/// overflow the stack of a thread.
struct UncachedDirectory<'a> {
    trees: Peekable<IntoIter<ListedTreeEntry>>,
    /// The entries that were not compared yet.
    entries: Range<usize>,
    prefix_len: usize,
    cached: Option<CachedDirectory<'a>>,
}

/// The tree of a directory, and its outdated cached tree.
struct OutdatedTree<'a> {
    tree: ObjectId,
    cached: Option<CachedDirectory<'a>>,
}

impl<'a> CachedTreeWalk<'a, '_> {
    /// Computes the cached trees of the top directory and of those below.
    fn run(&mut self, root: &oid, cached: Option<CachedDirectory<'a>>) -> Result<(), Error> {
        let mut levels = vec![self.level(root, 0..self.index.len(), 0, cached)?];
        while let Some(level) = levels.last_mut() {
            let Range { start, end } = level.entries;
            let child =
                (start < end).then(|| IndexedName::at(self.index, start, end, level.prefix_len));
            let order = match (&child, level.trees.peek()) {
                (None, None) => {
                    levels.pop();
                    if !levels.is_empty() {
                        self.builder.leave();
                    }
                    continue;
                }
                (None, _) => Ordering::Greater,
                (_, None) => Ordering::Less,
                (Some(child), Some(tree)) => compare(child.key(), tree.key()),
            };
            let tree = match order.is_ge() {
                true => level.trees.next(),
                false => None,
            };
            let Some(child) = child.filter(|_| order.is_le()) else {
                // The directory exists only in the tree.
                self.builder.spoil();
                continue;
            };
            level.entries.start = child.entries.end;
            if tree.as_ref().is_some_and(|tree| !tree.is_canonical) {
                self.builder.spoil();
            }
            if !child.is_directory {
                self.file(tree.as_ref(), &child);
            } else if let Some(below) = self.enter(tree, &child, level) {
                let prefix_len = level.prefix_len + child.name.len() + 1;
                check_depth(levels.len())?;
                let below = self.level(&below.tree, child.entries, prefix_len, below.cached)?;
                levels.push(below);
            }
        }
        Ok(())
    }

    fn level(
        &mut self,
        tree: &oid,
        entries: Range<usize>,
        prefix_len: usize,
        cached: Option<CachedDirectory<'a>>,
    ) -> Result<UncachedDirectory<'a>, Error> {
        Ok(UncachedDirectory {
            trees: read_tree(tree, self.read)?.into_iter().peekable(),
            entries,
            prefix_len,
            cached,
        })
    }

    /// Enters a directory of `above`. Leaves it at once if its cached tree is known; otherwise returns
    /// the tree with which it is compared.
    fn enter(
        &mut self,
        tree: Option<ListedTreeEntry>,
        child: &IndexedName<'_>,
        above: &UncachedDirectory<'a>,
    ) -> Option<OutdatedTree<'a>> {
        let name = child.name.as_bstr();
        let cached = above.cached.and_then(|cached| cached.child(name));
        let known = cached
            .filter(|cached| cached.entry_count() == Some(child.entries.len()))
            .and_then(|cached| cached.id());
        let tree = tree
            .filter(ListedTreeEntry::is_directory)
            .map(|tree| tree.side.id);
        if child.is_sparse(self.index, above.prefix_len + child.name.len()) {
            let entry = self.index.entry(child.entries.start);
            self.builder.enter(name, entry.id.to_owned());
            self.builder.add_entries(1);
            self.builder.leave();
            return None;
        }
        let null = self.index.kind().null();
        let id = known.map(oid::to_owned).or(tree).unwrap_or(null);
        self.builder.enter(name, id);
        match (cached, tree) {
            (Some(cached), _) if known.is_some() => self.builder.copy(cached),
            (_, Some(tree)) => return Some(OutdatedTree { tree, cached }),
            (Some(cached), None) => {
                self.builder.copy(cached);
                self.builder.spoil();
            }
            (None, None) => self.builder.spoil(),
        }
        self.builder.leave();
        None
    }

    fn file(&mut self, tree: Option<&ListedTreeEntry>, child: &IndexedName<'_>) {
        let entry = self.index.entry(child.entries.start);
        let same = tree.is_some_and(|tree| {
            tree.side.mode == entry.mode && *tree.side.id == *entry.id && !tree.is_directory()
        });
        if same && entry.stage() == 0 && !entry.flags.contains(Flags::INTENT_TO_ADD) {
            self.builder.add_entries(1);
        } else {
            self.builder.spoil();
        }
    }
}
