//! Computes the cached trees of the new index from those of the old index and a walk over trees.

use bstr::BStr;
use pronto_hash::ObjectId;
use pronto_index::{CachedDirectory, CachedTree, CachedTreeBuilder, Index};

use super::TreeId;
use crate::tree_walk::{Subtree, WalkEvent};

/// Follows a walk over two trees. If the cached tree of a directory in the old index equals the old
/// tree, the directory has no local changes, and its cached tree in the new index is the new tree.
pub(super) struct Trees<'a> {
    builder: CachedTreeBuilder,
    index: &'a Index,
    top: Option<CachedDirectory<'a>>,
    /// For each directory that the walk has entered: its old cached tree, and whether that equals the
    /// old tree.
    levels: Vec<(Option<CachedDirectory<'a>>, bool)>,
}

impl<'a> Trees<'a> {
    pub(super) fn new(
        new: ObjectId,
        old: TreeId,
        cached: Option<&'a CachedTree>,
        index: &'a Index,
    ) -> Self {
        let top = cached.map(CachedTree::root);
        let clean = makes(top, old) || (old.is_none() && index.is_empty());
        let mut builder = CachedTree::builder(new);
        if !clean {
            builder.spoil();
        }
        Trees {
            builder,
            index,
            top,
            levels: vec![(top, clean)],
        }
    }

    /// Records that both trees are equal, so that all cached trees are kept.
    pub(super) fn same_top(&mut self) {
        if let Some(top) = self.top {
            self.builder.copy(top);
        }
    }

    pub(super) fn step(&mut self, step: &WalkEvent<'_>) {
        let (parent, clean) = self.levels.last().copied().unwrap_or((None, false));
        match step {
            WalkEvent::Enter(subtree) => self.enter(subtree, parent),
            WalkEvent::Leave => {
                self.builder.leave();
                self.levels.pop();
            }
            WalkEvent::Same(subtree) => {
                let cached = parent.and_then(|parent| parent.child(subtree.name()));
                self.copy(subtree.name(), subtree.new, cached);
            }
            WalkEvent::Unchanged => self.builder.add_entries(1),
            WalkEvent::Change(change) if clean && change.new.is_some() => {
                self.builder.add_entries(1)
            }
            WalkEvent::Change(_) | WalkEvent::Gone(..) => {}
        }
    }

    /// Records a directory that stays a sparse directory entry.
    pub(super) fn stands(&mut self, subtree: &Subtree<'_>) {
        self.builder.enter(subtree.name(), subtree.new);
        self.builder.add_entries(1);
        self.builder.leave();
    }

    fn enter(&mut self, subtree: &Subtree<'_>, parent: Option<CachedDirectory<'a>>) {
        let cached = parent.and_then(|parent| parent.child(subtree.name()));
        let clean = match subtree.old {
            Some(_) => makes(cached, subtree.old),
            None => self.index.below(subtree.path).is_empty(),
        };
        self.builder.enter(subtree.name(), subtree.new);
        if !clean {
            self.builder.spoil();
        }
        self.levels.push((cached, clean));
    }

    /// Records an unchanged directory.
    fn copy(&mut self, name: &BStr, id: ObjectId, cached: Option<CachedDirectory<'_>>) {
        self.builder.enter(name, id);
        match cached {
            Some(cached) if makes(Some(cached), Some(id)) => self.builder.copy(cached),
            Some(cached) => {
                self.builder.spoil();
                self.builder.copy(cached);
            }
            None => self.builder.spoil(),
        }
        self.builder.leave();
    }

    pub(super) fn finish(self) -> CachedTree {
        self.builder.finish()
    }
}

fn makes(cached: Option<CachedDirectory<'_>>, tree: TreeId) -> bool {
    match (cached.and_then(|cached| cached.id()), tree) {
        (Some(cached), Some(tree)) => cached == &tree as &pronto_hash::oid,
        _ => false,
    }
}
