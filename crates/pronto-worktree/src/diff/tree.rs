//! Compares a tree with the index. Directories with an equal cached tree are not entered.

use super::{Difference, Side};
use crate::Error;
use crate::names::{Name, compare};
use crate::objects::check_depth;
use crate::pathspec::{self, Pathspec};
use crate::tree_list::{ReadTree, TreeEntry, read_tree};
use bstr::{BStr, BString, ByteSlice};
use pronto_hash::oid;
use pronto_index::{CachedDirectory, CachedTree, Flags, Index, mode};
use std::cmp::Ordering;
use std::ops::Range;

/// Returns whether `side` is a submodule, which a pathspec for a directory can mean.
fn is_submodule(side: &Side) -> bool {
    side.mode & mode::TYPE == mode::GITLINK
}

/// The comparison of an index with a tree.
#[derive(Debug, Default)]
pub struct Comparison {
    /// The differences, in the order of paths.
    pub differences: Vec<Difference>,
    /// Whether directories match their tree although no cached tree says so:
    /// [`cached_trees`](super::cached_trees) would find more.
    pub is_cache_stale: bool,
}

/// The treatment of intent-to-add entries (`add --intent-to-add`).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Announced {
    /// Absent.
    Absent,
    /// Empty files.
    Empty,
}

/// Compares `index` with the tree `root` (`None` for the empty one). `cached` are the cached trees
/// of the index. Reads one tree object for each directory that differs or whose cached tree is not
/// known.
///
/// # Errors
/// Those of `read`; [`ErrorKind::CorruptObject`](crate::ErrorKind::CorruptObject) for a tree that is invalid.
pub fn tree_and_index(
    root: Option<&oid>,
    index: &Index,
    cached: Option<&CachedTree>,
    pathspec: &Pathspec,
    announced: Announced,
    read: &mut ReadTree<'_>,
) -> Result<Comparison, Error> {
    let mut walk = Walk {
        index,
        announced,
        pathspec,
        read,
        found: Vec::new(),
        impure: 0,
        is_cache_stale: false,
    };
    let cached = cached.map(CachedTree::root);
    walk.directory(root, 0..index.len(), &mut BString::default(), cached, 0)?;
    walk.found.sort_by(|one, two| one.path.cmp(&two.path));
    Ok(Comparison {
        differences: walk.found,
        is_cache_stale: walk.is_cache_stale && pathspec.is_empty(),
    })
}

struct Walk<'a, 'r> {
    index: &'a Index,
    announced: Announced,
    pathspec: &'a Pathspec,
    read: &'a mut ReadTree<'r>,
    found: Vec<Difference>,
    /// The number of entries that keep a directory from equalling its tree without being a
    /// difference.
    impure: usize,
    is_cache_stale: bool,
}

impl Walk<'_, '_> {
    fn directory(
        &mut self,
        tree: Option<&oid>,
        entries: Range<usize>,
        prefix: &mut BString,
        cached: Option<CachedDirectory<'_>>,
        depth: usize,
    ) -> Result<(), Error> {
        let known = cached
            .filter(|cached| cached.entry_count() == Some(entries.len()))
            .and_then(|cached| cached.id());
        if known.is_some() && known == tree {
            return Ok(());
        }
        check_depth(depth)?;
        let tree_entries = tree
            .map(|tree| read_tree(tree, self.read))
            .transpose()?
            .unwrap_or_default();
        let before = (self.found.len(), self.impure);
        let mut trees = tree_entries.into_iter().peekable();
        let mut at = entries.start;
        while at < entries.end || trees.peek().is_some() {
            let child =
                (at < entries.end).then(|| Name::at(self.index, at, entries.end, prefix.len()));
            let order = match (&child, trees.peek()) {
                (None, _) => Ordering::Greater,
                (_, None) => Ordering::Less,
                (Some(child), Some(tree)) => compare(child.key(), tree.key()),
            };
            let child = child.filter(|_| order.is_le());
            let tree = if order.is_ge() { trees.next() } else { None };
            if let Some(child) = &child {
                at = child.entries.end;
            }
            self.pair(tree, child, prefix, cached, depth)?;
        }
        let is_same = before == (self.found.len(), self.impure);
        self.is_cache_stale |= tree.is_some() && is_same && known.is_none();
        Ok(())
    }

    /// A name that is in the tree, in the index, or in both.
    fn pair(
        &mut self,
        tree: Option<TreeEntry>,
        child: Option<Name<'_>>,
        prefix: &mut BString,
        cached: Option<CachedDirectory<'_>>,
        depth: usize,
    ) -> Result<(), Error> {
        let len = prefix.len();
        let Some(name) = child
            .as_ref()
            .map(|child| child.name)
            .or(tree.as_ref().map(|tree| tree.name.as_ref()))
        else {
            return Ok(());
        };
        let name: &[u8] = name;
        prefix.extend_from_slice(name);
        // No tree is written for a directory without entries, nor with modes of old.
        let odd = tree
            .as_ref()
            .is_some_and(|tree| !tree.is_canonical || (tree.is_directory() && child.is_none()));
        self.impure += usize::from(odd);
        let is_directory = tree.as_ref().is_some_and(TreeEntry::is_directory)
            || child.as_ref().is_some_and(|child| child.is_directory);
        if is_directory {
            let sparse = child
                .as_ref()
                .filter(|child| child.is_sparse(self.index, prefix.len()))
                .map(|child| self.index.entry(child.entries.start).id);
            if self.pathspec.directory(prefix.as_bstr()) == pathspec::Directory::Outside {
                // Nothing in it is selected.
            } else if let Some(id) = sparse {
                prefix.push(b'/');
                let old = tree.map(|tree| tree.side.id);
                self.two_trees(old.as_deref(), Some(id), prefix, depth + 1)?;
            } else {
                let below = cached.and_then(|cached| cached.child(name.as_bstr()));
                prefix.push(b'/');
                let entries = child.map(|child| child.entries).unwrap_or_default();
                let id = tree.map(|tree| tree.side.id);
                self.directory(id.as_deref(), entries, prefix, below, depth + 1)?;
            }
        } else if self.pathspec.matches(prefix.as_bstr(), {
            let first = child.as_ref().map(|child| child.entries.start);
            tree.as_ref().is_some_and(|tree| is_submodule(&tree.side))
                || first.is_some_and(|first| self.index.entry(first).is_submodule())
        }) {
            self.file(tree.map(|tree| tree.side), child, prefix.as_bstr());
        }
        prefix.truncate(len);
        Ok(())
    }

    /// A directory for which the index has one entry, of the tree `new`.
    fn two_trees(
        &mut self,
        old: Option<&oid>,
        new: Option<&oid>,
        prefix: &mut BString,
        depth: usize,
    ) -> Result<(), Error> {
        if old == new {
            return Ok(());
        }
        check_depth(depth)?;
        let mut entries = |tree: Option<&oid>| match tree {
            Some(tree) => read_tree(tree, self.read),
            None => Ok(Vec::new()),
        };
        let mut old = entries(old)?.into_iter().peekable();
        let mut new = entries(new)?.into_iter().peekable();
        loop {
            let order = match (old.peek(), new.peek()) {
                (None, None) => return Ok(()),
                (None, _) => Ordering::Greater,
                (_, None) => Ordering::Less,
                (Some(old), Some(new)) => compare(old.key(), new.key()),
            };
            let old = if order.is_le() { old.next() } else { None };
            let new = if order.is_ge() { new.next() } else { None };
            let Some(one) = new.as_ref().or(old.as_ref()) else {
                continue;
            };
            let len = prefix.len();
            prefix.extend_from_slice(&one.name);
            let (old, new) = (
                old.as_ref().map(TreeEntry::side),
                new.as_ref().map(TreeEntry::side),
            );
            if !one.is_directory() {
                let is_submodule = new.or(old).is_some_and(|side| is_submodule(&side));
                if old != new && self.pathspec.matches(prefix.as_bstr(), is_submodule) {
                    self.found.push(Difference {
                        path: prefix.clone(),
                        old,
                        new,
                        origin: None,
                        unmerged: false,
                    });
                }
            } else if self.pathspec.directory(prefix.as_bstr()) != pathspec::Directory::Outside {
                prefix.push(b'/');
                let id = |side: &Option<Side>| side.map(|side| side.id);
                let (old, new) = (id(&old), id(&new));
                self.two_trees(old.as_deref(), new.as_deref(), prefix, depth + 1)?;
            }
            prefix.truncate(len);
        }
    }

    fn file(&mut self, old: Option<Side>, child: Option<Name<'_>>, path: &BStr) {
        let mut unmerged = false;
        let new = child.and_then(|child| {
            let entry = self.index.entry(child.entries.start);
            unmerged = entry.stage() != 0;
            let announced = entry.flags.contains(Flags::INTENT_TO_ADD);
            self.impure += usize::from(announced);
            let counts = self.announced == Announced::Empty || !announced;
            let present = !unmerged && counts;
            present.then(|| Side {
                mode: entry.mode,
                id: entry.id.to_owned(),
            })
        });
        if unmerged || old != new {
            self.found.push(Difference {
                path: path.to_owned(),
                old,
                new,
                origin: None,
                unmerged,
            });
        }
    }
}
