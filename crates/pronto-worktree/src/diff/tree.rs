//! Compares a tree with the index. Directories with an equal cached tree are skipped.

use crate::Error;
use crate::names::{IndexedName, compare};
use crate::objects::check_depth;
use crate::pathspec::{self, Pathspec};
use crate::tree_list::{ListedTreeEntry, ReadTree, read_tree};
use bstr::{BString, ByteSlice};
use pronto_diff::{Difference, DifferenceSide};
use pronto_hash::oid;
use pronto_index::{CachedDirectory, CachedTree, Flags, Index, mode};
use std::cmp::Ordering;
use std::iter::Peekable;
use std::ops::Range;
use std::vec::IntoIter;

/// Returns whether `side` is a submodule, which a pathspec with a slash at its end can match.
fn is_submodule(side: &DifferenceSide) -> bool {
    side.mode & mode::TYPE == mode::GITLINK
}

/// The comparison of an index with a tree.
#[derive(Debug, Default)]
pub struct IndexComparison {
    /// The differences, in the order of paths.
    pub differences: Vec<Difference>,
    /// Whether directories match their tree without a valid cached tree, so that
    /// [`cached_trees`](super::cached_trees) would find more.
    pub is_cache_stale: bool,
}

/// The treatment of intent-to-add entries (`git add --intent-to-add`).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum IntentToAdd {
    /// Treat the entries as absent from the index.
    Absent,
    /// Treat the entries as empty files.
    Empty,
}

/// Compares `index` with the tree `root` (`None` for the empty tree). `cached` are the cached trees of
/// the index. Reads one tree object for each directory that differs or has no valid cached tree.
///
/// # Errors
/// Fails with [`ErrorKind::CorruptObject`](crate::ErrorKind::CorruptObject) if a tree is malformed, or
/// if `read` fails.
pub fn tree_and_index(
    root: Option<&oid>,
    index: &Index,
    cached: Option<&CachedTree>,
    pathspec: &Pathspec,
    intent_to_add: IntentToAdd,
    read: &mut ReadTree<'_>,
) -> Result<IndexComparison, Error> {
    let mut walk = TreeIndexWalk {
        index,
        intent_to_add,
        pathspec,
        read,
        path: BString::default(),
        depth: 0,
        found: Vec::new(),
        impure: 0,
        is_cache_stale: false,
    };
    let cached = cached.map(CachedTree::root);
    walk.run(root, cached)?;
    walk.found.sort_by(|one, two| one.path.cmp(&two.path));
    Ok(IndexComparison {
        differences: walk.found,
        is_cache_stale: walk.is_cache_stale && pathspec.is_empty(),
    })
}

struct TreeIndexWalk<'a, 'r> {
    index: &'a Index,
    intent_to_add: IntentToAdd,
    pathspec: &'a Pathspec,
    read: &'a mut ReadTree<'r>,
    /// The path of the current directory, with a slash at its end.
    path: BString,
    /// The number of directories that the walk has entered.
    depth: usize,
    found: Vec<Difference>,
    /// The number of entries that make a directory differ from its tree without being a reported
    /// difference.
    impure: usize,
    is_cache_stale: bool,
}

/// A directory that is being compared. Levels are on an explicit stack, because nested trees could
/// overflow the stack of a thread.
struct ComparedDirectory<'a> {
    old: Peekable<IntoIter<ListedTreeEntry>>,
    new: NewSide<'a>,
    /// The length of the path of the parent directory.
    outer_len: usize,
}

/// The new side of a directory.
enum NewSide<'a> {
    Index(IndexDirectory<'a>),
    /// The tree of a sparse directory entry of the index.
    Tree(Peekable<IntoIter<ListedTreeEntry>>),
}

/// The entries of a directory in the index.
struct IndexDirectory<'a> {
    left: Range<usize>,
    cached: Option<CachedDirectory<'a>>,
    /// The numbers of differences and of impure entries before the directory, if the directory has no
    /// valid cached tree.
    unknown_since: Option<[usize; 2]>,
}

impl ComparedDirectory<'_> {
    fn is_done(&mut self) -> bool {
        let has_new = match &mut self.new {
            NewSide::Index(entries) => !entries.left.is_empty(),
            NewSide::Tree(new) => new.peek().is_some(),
        };
        !has_new && self.old.peek().is_none()
    }
}

impl<'a> TreeIndexWalk<'a, '_> {
    fn run(
        &mut self,
        root: Option<&oid>,
        cached: Option<CachedDirectory<'a>>,
    ) -> Result<(), Error> {
        let top = self.with_index(root, 0..self.index.len(), cached)?;
        let mut levels: Vec<ComparedDirectory<'a>> = top.into_iter().collect();
        self.depth = levels.len();
        while let Some(level) = levels.last_mut() {
            if level.is_done() {
                self.path.truncate(level.outer_len);
                if let Some(level) = levels.pop() {
                    self.end(&level);
                }
                self.depth = levels.len();
                continue;
            }
            let len = self.path.len();
            match self.step(level)? {
                None => self.path.truncate(len),
                Some(mut below) => {
                    below.outer_len = len;
                    levels.push(below);
                    self.depth = levels.len();
                }
            }
        }
        Ok(())
    }

    /// Compares the next name. Returns the directory to enter, if there is one.
    fn step(
        &mut self,
        level: &mut ComparedDirectory<'a>,
    ) -> Result<Option<ComparedDirectory<'a>>, Error> {
        let old = &mut level.old;
        match &mut level.new {
            NewSide::Tree(new) => {
                let order = match (old.peek(), new.peek()) {
                    (None, _) => Ordering::Greater,
                    (_, None) => Ordering::Less,
                    (Some(old), Some(new)) => compare(old.key(), new.key()),
                };
                let old = if order.is_le() { old.next() } else { None };
                let new = if order.is_ge() { new.next() } else { None };
                self.tree_pair(old.as_ref(), new.as_ref())
            }
            NewSide::Index(entries) => {
                let Range { start, end } = entries.left;
                let child =
                    (start < end).then(|| IndexedName::at(self.index, start, end, self.path.len()));
                let order = match (&child, old.peek()) {
                    (None, _) => Ordering::Greater,
                    (_, None) => Ordering::Less,
                    (Some(child), Some(tree)) => compare(child.key(), tree.key()),
                };
                let child = child.filter(|_| order.is_le());
                let old = if order.is_ge() { old.next() } else { None };
                if let Some(child) = &child {
                    entries.left.start = child.entries.end;
                }
                self.pair(old, child, entries.cached)
            }
        }
    }

    /// Compares a directory of the index. Returns `None` if its cached tree equals `tree`.
    fn with_index(
        &mut self,
        tree: Option<&oid>,
        entries: Range<usize>,
        cached: Option<CachedDirectory<'a>>,
    ) -> Result<Option<ComparedDirectory<'a>>, Error> {
        let known = cached
            .filter(|cached| cached.entry_count() == Some(entries.len()))
            .and_then(|cached| cached.id());
        if known.is_some() && known == tree {
            return Ok(None);
        }
        check_depth(self.depth)?;
        let is_unknown = tree.is_some() && known.is_none();
        Ok(Some(ComparedDirectory {
            old: self.entries(tree)?,
            new: NewSide::Index(IndexDirectory {
                left: entries,
                cached,
                unknown_since: is_unknown.then_some([self.found.len(), self.impure]),
            }),
            outer_len: 0,
        }))
    }

    /// Compares a sparse directory entry with the tree `new`. Returns `None` if `new` equals `old`.
    fn with_tree(
        &mut self,
        old: Option<&oid>,
        new: Option<&oid>,
    ) -> Result<Option<ComparedDirectory<'a>>, Error> {
        if old == new {
            return Ok(None);
        }
        check_depth(self.depth)?;
        Ok(Some(ComparedDirectory {
            old: self.entries(old)?,
            new: NewSide::Tree(self.entries(new)?),
            outer_len: 0,
        }))
    }

    fn entries(
        &mut self,
        tree: Option<&oid>,
    ) -> Result<Peekable<IntoIter<ListedTreeEntry>>, Error> {
        let entries = tree.map(|tree| read_tree(tree, self.read)).transpose()?;
        Ok(entries.unwrap_or_default().into_iter().peekable())
    }

    fn end(&mut self, level: &ComparedDirectory<'_>) {
        let now = [self.found.len(), self.impure];
        if let NewSide::Index(entries) = &level.new {
            self.is_cache_stale |= entries.unknown_since == Some(now);
        }
    }

    /// Compares a name of the tree, the index, or both, and appends it to the path. Returns the
    /// directory to enter, if there is one.
    fn pair(
        &mut self,
        tree: Option<ListedTreeEntry>,
        child: Option<IndexedName<'a>>,
        cached: Option<CachedDirectory<'a>>,
    ) -> Result<Option<ComparedDirectory<'a>>, Error> {
        let name = child.as_ref().map(|child| child.name);
        let Some(name) = name.or(tree.as_ref().map(|tree| tree.name.as_ref())) else {
            return Ok(None);
        };
        let name: &[u8] = name;
        self.path.extend_from_slice(name);
        // Git writes no tree for a directory without entries, and no obsolete modes.
        let odd = tree
            .as_ref()
            .is_some_and(|tree| !tree.is_canonical || (tree.is_directory() && child.is_none()));
        self.impure += usize::from(odd);
        let is_directory = tree.as_ref().is_some_and(ListedTreeEntry::is_directory)
            || child.as_ref().is_some_and(|child| child.is_directory);
        if !is_directory {
            let first = child.as_ref().map(|child| child.entries.start);
            let is_submodule = tree.as_ref().is_some_and(|tree| is_submodule(&tree.side))
                || first.is_some_and(|first| self.index.entry(first).is_submodule());
            if self.pathspec.matches(self.path.as_bstr(), is_submodule) {
                self.file(tree.map(|tree| tree.side), child);
            }
            return Ok(None);
        }
        if self.pathspec.directory(self.path.as_bstr()) == pathspec::DirectoryRelation::Outside {
            return Ok(None);
        }
        let sparse = child
            .as_ref()
            .filter(|child| child.is_sparse(self.index, self.path.len()))
            .map(|child| self.index.entry(child.entries.start).id);
        let below = cached.and_then(|cached| cached.child(name.as_bstr()));
        self.path.push(b'/');
        let old = tree.map(|tree| tree.side.id);
        match sparse {
            Some(new) => self.with_tree(old.as_deref(), Some(new)),
            None => {
                let entries = child.map(|child| child.entries).unwrap_or_default();
                self.with_index(old.as_deref(), entries, below)
            }
        }
    }

    /// Does the same for a name of one or both of two trees.
    fn tree_pair(
        &mut self,
        old: Option<&ListedTreeEntry>,
        new: Option<&ListedTreeEntry>,
    ) -> Result<Option<ComparedDirectory<'a>>, Error> {
        let Some(one) = new.or(old) else {
            return Ok(None);
        };
        self.path.extend_from_slice(&one.name);
        let (old, new) = (
            old.map(ListedTreeEntry::side),
            new.map(ListedTreeEntry::side),
        );
        if !one.is_directory() {
            let is_submodule = new.or(old).is_some_and(|side| is_submodule(&side));
            if old != new && self.pathspec.matches(self.path.as_bstr(), is_submodule) {
                self.found.push(Difference {
                    path: self.path.clone(),
                    old,
                    new,
                    origin: None,
                    unmerged: false,
                });
            }
            return Ok(None);
        }
        if self.pathspec.directory(self.path.as_bstr()) == pathspec::DirectoryRelation::Outside {
            return Ok(None);
        }
        self.path.push(b'/');
        let id = |side: &Option<DifferenceSide>| side.map(|side| side.id);
        self.with_tree(id(&old).as_deref(), id(&new).as_deref())
    }

    fn file(&mut self, old: Option<DifferenceSide>, child: Option<IndexedName<'_>>) {
        let mut unmerged = false;
        let new = child.and_then(|child| {
            let entry = self.index.entry(child.entries.start);
            unmerged = entry.stage() != 0;
            let intent_to_add = entry.flags.contains(Flags::INTENT_TO_ADD);
            self.impure += usize::from(intent_to_add);
            let counts = self.intent_to_add == IntentToAdd::Empty || !intent_to_add;
            let present = !unmerged && counts;
            present.then(|| DifferenceSide {
                mode: entry.mode,
                id: entry.id.to_owned(),
            })
        });
        if unmerged || old != new {
            self.found.push(Difference {
                path: self.path.clone(),
                old,
                new,
                origin: None,
                unmerged,
            });
        }
    }
}
