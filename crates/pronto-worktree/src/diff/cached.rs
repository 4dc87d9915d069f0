//! The possible cached trees of an index: its own, and those of a tree that it matches.

use crate::Error;
use crate::names::{Name, compare};
use crate::objects::check_depth;
use crate::tree_list::{ReadTree, TreeEntry, read_tree};
use bstr::ByteSlice;
use pronto_hash::oid;
use pronto_index::{CachedDirectory, CachedTree, CachedTreeBuilder, Flags, Index};
use std::cmp::Ordering;
use std::ops::Range;

/// The cached trees of `index`: what `cached` knows stays, and a directory that makes the tree
/// that is at its place in the tree `root` gets that. Reads the trees that are not known.
///
/// # Errors
/// Those of `read`; [`CorruptObject`](crate::ErrorKind::CorruptObject) for a tree that is invalid.
pub fn cached_trees(
    root: &oid,
    index: &Index,
    cached: Option<&CachedTree>,
    read: &mut ReadTree<'_>,
) -> Result<CachedTree, Error> {
    let mut walk = Walk {
        index,
        read,
        builder: CachedTree::builder(root.to_owned()),
    };
    let cached = cached.map(CachedTree::root);
    walk.directory(root, 0..index.len(), 0, cached, 0)?;
    Ok(walk.builder.finish())
}

struct Walk<'a, 'r> {
    index: &'a Index,
    read: &'a mut ReadTree<'r>,
    builder: CachedTreeBuilder,
}

impl Walk<'_, '_> {
    /// Fills in the directory that was entered, whose cached tree is not known.
    fn directory(
        &mut self,
        tree: &oid,
        entries: Range<usize>,
        prefix_len: usize,
        cached: Option<CachedDirectory<'_>>,
        depth: usize,
    ) -> Result<(), Error> {
        check_depth(depth)?;
        let mut trees = read_tree(tree, self.read)?.into_iter().peekable();
        let mut at = entries.start;
        while at < entries.end || trees.peek().is_some() {
            let child =
                (at < entries.end).then(|| Name::at(self.index, at, entries.end, prefix_len));
            let order = match (&child, trees.peek()) {
                (None, _) => Ordering::Greater,
                (_, None) => Ordering::Less,
                (Some(child), Some(tree)) => compare(child.key(), tree.key()),
            };
            let tree = if order.is_ge() { trees.next() } else { None };
            let Some(child) = child.filter(|_| order.is_le()) else {
                // It is in the tree alone.
                self.builder.spoil();
                continue;
            };
            at = child.entries.end;
            if tree.as_ref().is_some_and(|tree| !tree.is_canonical) {
                self.builder.spoil();
            }
            if child.is_directory {
                self.below(tree, &child, prefix_len, cached, depth)?;
            } else {
                self.file(tree.as_ref(), &child);
            }
        }
        Ok(())
    }

    fn below(
        &mut self,
        tree: Option<TreeEntry>,
        child: &Name<'_>,
        prefix_len: usize,
        cached: Option<CachedDirectory<'_>>,
        depth: usize,
    ) -> Result<(), Error> {
        let name = child.name.as_bstr();
        let cached = cached.and_then(|cached| cached.child(name));
        let known = cached
            .filter(|cached| cached.entry_count() == Some(child.entries.len()))
            .and_then(|cached| cached.id());
        let tree = tree
            .filter(TreeEntry::is_directory)
            .map(|tree| tree.side.id);
        if child.is_sparse(self.index, prefix_len + child.name.len()) {
            let entry = self.index.entry(child.entries.start);
            self.builder.enter(name, entry.id.to_owned());
            self.builder.add_entries(1);
            self.builder.leave();
            return Ok(());
        }
        let null = self.index.kind().null();
        let id = known.map(oid::to_owned).or(tree).unwrap_or(null);
        self.builder.enter(name, id);
        match (cached, tree) {
            (Some(cached), _) if known.is_some() => self.builder.copy(cached),
            (_, Some(tree)) => {
                let prefix_len = prefix_len + child.name.len() + 1;
                self.directory(&tree, child.entries.clone(), prefix_len, cached, depth + 1)?;
            }
            (Some(cached), None) => {
                self.builder.copy(cached);
                self.builder.spoil();
            }
            (None, None) => self.builder.spoil(),
        }
        self.builder.leave();
        Ok(())
    }

    fn file(&mut self, tree: Option<&TreeEntry>, child: &Name<'_>) {
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
