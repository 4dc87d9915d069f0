//! Sparse indexes (`sdir`): expands sparse directory entries, and collapses directories to such
//! entries.
//!
//! A sparse directory entry has mode `040000`, a trailing slash in its path, the skip-worktree bit,
//! and a tree as its object; its cached tree is valid, counts one entry and has no children. The
//! format is described in Git's `technical/sparse-index` and in the `gitformat-index` manual page.
//!
//! Costs: [`Index::expand`] copies all entries once, and reads each tree below sparse directory
//! entries once. [`IndexContent::collapse`] is linear in the entries of directories that stay in part,
//! and copies no paths and no ids.

use crate::cached_tree::{CachedTree, CachedTreeDirectory, TreeBuilder};
use crate::entry::{EntryRef, Flags};
use crate::error::Error;
use crate::index::Index;
use crate::layout::{self, UnpackedEntries};
use crate::mode;
use crate::stat::Stat;
use crate::writer::IndexContent;
use bstr::{BStr, BString, ByteSlice};
use pronto_hash::oid;
use std::collections::HashMap;
use std::ops::Range;

/// Receives the entries of an expanded directory in order.
#[derive(Debug)]
pub struct Filler<'a> {
    entries: &'a mut UnpackedEntries,
}

impl Filler<'_> {
    /// Adds the entry of `path`, which is relative to the top of the worktree.
    ///
    /// # Errors
    /// Fails with [`ErrorKind::Corrupt`](crate::ErrorKind::Corrupt) if the entries need more than 4
    /// GiB.
    pub fn push(&mut self, path: &BStr, mode: u32, id: &oid) -> Result<(), Error> {
        let entry = EntryRef {
            path,
            id,
            mode,
            flags: Flags::SKIP_WORKTREE,
            stat: Stat::default(),
        };
        let mut fixed = Vec::with_capacity(80);
        layout::push_fixed(&mut fixed, &entry);
        self.entries.push(&fixed, path)
    }
}

impl Index {
    /// Returns the index with sparse directory entries replaced by the entries below them. `fill`
    /// pushes these entries and returns the cached trees of the directory, or returns `None` to
    /// keep the sparse directory entry. The data of the file system monitor are discarded, as in
    /// Git, because its positions refer to the old entries.
    ///
    /// # Errors
    /// Fails with the error of `fill`.
    pub fn expand<E>(
        mut self,
        mut fill: impl FnMut(EntryRef<'_>, &mut Filler<'_>) -> Result<Option<CachedTree>, E>,
    ) -> Result<Index, E>
    where
        E: From<Error>,
    {
        let hash_len = self.hash_len();
        let mut entries = UnpackedEntries::default();
        let mut below: HashMap<BString, CachedTree> = HashMap::new();
        let mut is_sparse = false;
        for (position, entry) in self.iter().enumerate() {
            if entry.is_sparse_directory() {
                let filler = &mut Filler {
                    entries: &mut entries,
                };
                if let Some(tree) = fill(entry, filler)? {
                    below.insert(entry.path.to_owned(), tree);
                    continue;
                }
                is_sparse = true;
            }
            let (bytes, start) = self.raw(position);
            entries.push(layout::fixed_part(bytes, start, hash_len), entry.path)?;
        }
        let cached = self.cached_tree().map(|cached| {
            let root = cached.root();
            let id = root.id().map_or(self.kind().null(), oid::to_owned);
            let mut builder = CachedTree::builder(id);
            builder.graft(root, &below);
            builder.finish()
        });
        self.replace_entries(entries, cached, is_sparse);
        Ok(self)
    }
}

/// The extent to which a sparse checkout contains a directory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Cover {
    /// The whole directory.
    Whole,
    /// The files of the directory, and some of its subdirectories.
    Part,
    /// No file of the directory.
    Nothing,
}

impl<'a> IndexContent<'a> {
    /// Replaces each directory that is completely outside of the sparse checkout with one entry, if
    /// `trees` contains its tree. `cover` returns the extent of a path without a trailing slash.
    /// Directories with submodules, or with a file that is present in the worktree, are kept; if
    /// there are conflicts, nothing is collapsed. The data of the file system monitor are
    /// discarded, as in Git.
    ///
    /// The second returned value is `false` if directories remain whose trees are unknown. Then the
    /// caller may call this function again with more trees.
    #[must_use]
    pub fn collapse(
        mut self,
        trees: &'a CachedTree,
        cover: &mut dyn FnMut(&BStr) -> Cover,
    ) -> (IndexContent<'a>, bool) {
        if self.entries.iter().any(|entry| entry.stage() != 0) {
            return (self, true);
        }
        let root = trees.root();
        let id = root.id().map_or(self.kind.null(), oid::to_owned);
        let mut collapse = Collapse {
            entries: &self.entries,
            kept: Vec::new(),
            builder: CachedTree::builder(id),
            cover,
            is_complete: true,
        };
        collapse.run(root);
        let (kept, is_complete) = (collapse.kept, collapse.is_complete);
        let tree = collapse.builder.finish();
        self.entries = kept;
        self.tree = Some(std::borrow::Cow::Owned(tree));
        self.fsmonitor = None;
        self.sparse = true;
        (self, is_complete)
    }
}

struct Collapse<'a, 'c> {
    entries: &'c [EntryRef<'a>],
    kept: Vec<EntryRef<'a>>,
    builder: TreeBuilder,
    cover: &'c mut dyn FnMut(&BStr) -> Cover,
    is_complete: bool,
}

/// A directory of the index that is being collapsed.
struct CollapsedDirectory<'a> {
    /// The position after the entries of the directory.
    end: usize,
    /// The length of the path of the directory, including its trailing slash.
    prefix_len: usize,
    /// The cached tree of the directory, which may be invalid; subdirectories may be valid.
    known: Option<CachedTreeDirectory<'a>>,
}

impl<'a> Collapse<'a, '_> {
    /// Visits all entries. The stack of open directories is on the heap, because paths can be
    /// nested deeper than the stack of a thread permits.
    fn run(&mut self, root: CachedTreeDirectory<'a>) {
        let entries = self.entries;
        let mut level = self.level(0..entries.len(), 0, Some(root));
        let mut outer = Vec::new();
        let mut at = 0;
        loop {
            if at == level.end {
                let Some(above) = outer.pop() else { return };
                self.builder.leave();
                level = above;
                continue;
            }
            let path: &'a BStr = entries[at].path;
            let rest = path.get(level.prefix_len..);
            let Some(slash) = rest.and_then(|rest| rest.find_byte(b'/')) else {
                self.kept.push(entries[at]);
                self.builder.add_entries(1);
                at += 1;
                continue;
            };
            let end = level.prefix_len + slash;
            let count = entries[at..level.end]
                .partition_point(|entry| entry.path.starts_with(&path[..=end]));
            let name = path[level.prefix_len..end].as_bstr();
            let known = level.known.and_then(|known| known.child(name));
            let id = id_of(known, count);
            let null = entries[at].id.kind().null();
            self.builder.enter(name, id.map_or(null, oid::to_owned));
            if self.enters(at..at + count, path[..=end].as_bstr(), known) {
                let below = self.level(at..at + count, end + 1, known);
                outer.push(std::mem::replace(&mut level, below));
            } else {
                self.builder.leave();
                at += count;
            }
        }
    }

    fn level(
        &mut self,
        range: Range<usize>,
        prefix_len: usize,
        known: Option<CachedTreeDirectory<'a>>,
    ) -> CollapsedDirectory<'a> {
        if id_of(known, range.len()).is_none() {
            self.builder.spoil();
        }
        CollapsedDirectory {
            end: range.end,
            prefix_len,
            known,
        }
    }

    /// Adds the entries of the directory at `path`, which ends with a slash. Returns `true` if the
    /// caller must enter the directory instead and visit its entries.
    fn enters(
        &mut self,
        range: Range<usize>,
        path: &'a BStr,
        known: Option<CachedTreeDirectory<'a>>,
    ) -> bool {
        let id = id_of(known, range.len());
        let entries = &self.entries[range];
        match ((self.cover)(path[..path.len() - 1].as_bstr()), known, id) {
            (Cover::Nothing, _, None) if entries.iter().all(may_collapse) => {
                self.is_complete = false;
                true
            }
            (Cover::Nothing, _, Some(id)) if entries.iter().all(may_collapse) => {
                self.kept.push(EntryRef {
                    path,
                    id,
                    mode: mode::TREE,
                    flags: Flags::SKIP_WORKTREE,
                    stat: Stat::default(),
                });
                self.builder.add_entries(1);
                false
            }
            (Cover::Whole, Some(known), Some(_)) => {
                self.kept.extend_from_slice(entries);
                self.builder.copy(known);
                false
            }
            _ => true,
        }
    }
}

/// Returns the tree id of a directory with `count` entries, if its cached tree is valid.
fn id_of(known: Option<CachedTreeDirectory<'_>>, count: usize) -> Option<&oid> {
    known
        .filter(|known| known.entry_count() == Some(count))
        .and_then(|known| known.id())
}

fn may_collapse(entry: &EntryRef<'_>) -> bool {
    entry.flags.contains(Flags::SKIP_WORKTREE) && entry.mode & mode::TYPE != mode::GITLINK
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Entry, Flags, Writer};
    use pronto_hash::{Kind, ObjectId};

    fn id(byte: u8) -> ObjectId {
        ObjectId::from_bytes_or_panic(&[byte; 20])
    }

    fn entry(path: &str, skipped: bool) -> Entry {
        let flags = match skipped {
            true => Flags::SKIP_WORKTREE,
            false => Flags::default(),
        };
        Entry {
            path: path.into(),
            id: id(path.len() as u8),
            mode: mode::FILE,
            flags,
            stat: Stat::default(),
        }
    }

    /// `a` is a part: `a/b` is outside, `a/f` is not. `c` is outside but for `c/there`.
    fn sample() -> (Vec<Entry>, CachedTree) {
        let entries = [
            ("a/b/c/x", true),
            ("a/b/y", true),
            ("a/f", false),
            ("c/d/x", true),
            ("c/there", false),
            ("top", false),
        ];
        let mut trees = CachedTree::builder(id(90));
        trees.enter("a".into(), id(91));
        trees.enter("b".into(), id(92));
        trees.enter("c".into(), id(93));
        trees.add_entries(1);
        trees.leave();
        trees.add_entries(1);
        trees.leave();
        trees.add_entries(1);
        trees.leave();
        trees.enter("c".into(), id(94));
        trees.enter("d".into(), id(95));
        trees.add_entries(1);
        trees.leave();
        trees.add_entries(1);
        trees.leave();
        trees.add_entries(1);
        let entries = entries.map(|(path, skipped)| entry(path, skipped));
        (entries.into(), trees.finish())
    }

    fn cover(directory: &BStr) -> Cover {
        match directory.as_bytes() {
            b"a" => Cover::Part,
            _ => Cover::Nothing,
        }
    }

    #[test]
    fn what_is_collapsed_expands_to_what_it_was() {
        let (entries, trees) = sample();
        let content = IndexContent::new(Kind::Sha1, entries.iter().map(Entry::as_ref));
        let (content, is_complete) = content.collapse(&trees, &mut cover);
        assert!(is_complete);
        let bytes = Writer::default().encode(&content).expect("it is sound");
        let index = Index::from_bytes(bytes, Kind::Sha1).expect("it is read");
        assert!(index.is_sparse());
        let paths: Vec<_> = index.iter().map(|entry| entry.path.to_string()).collect();
        assert_eq!(paths, ["a/b/", "a/f", "c/d/", "c/there", "top"]);
        let cached = index.cached_tree().expect("it has some");
        let below = cached.lookup("a/b".into()).expect("it is known");
        assert_eq!(
            (below.entry_count(), below.children().count()),
            (Some(1), 0)
        );
        assert_eq!(cached.root().entry_count(), Some(5));
        let expanded = index.expand(|directory, filler| -> Result<_, Error> {
            let mut tree = CachedTree::builder(directory.id.to_owned());
            if directory.path == "a/b/" {
                tree.enter("c".into(), id(93));
                filler.push("a/b/c/x".into(), mode::FILE, &id(7))?;
                tree.add_entries(1);
                tree.leave();
                filler.push("a/b/y".into(), mode::FILE, &id(5))?;
            } else {
                filler.push("c/d/x".into(), mode::FILE, &id(5))?;
            }
            tree.add_entries(1);
            Ok(Some(tree.finish()))
        });
        let expanded = expanded.expect("nothing fails");
        assert!(expanded.is_expanded() && !expanded.is_sparse());
        let back: Vec<Entry> = expanded.iter().map(|entry| entry.to_owned()).collect();
        assert_eq!(back, entries);
        assert_eq!(expanded.cached_tree(), Some(trees));
    }

    #[test]
    fn trees_that_are_not_known_keep_their_entries() {
        let (entries, mut trees) = sample();
        trees.invalidate("c/d/x".into());
        let content = IndexContent::new(Kind::Sha1, entries.iter().map(Entry::as_ref));
        let (content, is_complete) = content.collapse(&trees, &mut cover);
        assert!(!is_complete);
        let paths: Vec<_> = content.entries.iter().map(|entry| entry.path).collect();
        assert_eq!(paths, ["a/b/", "a/f", "c/d/x", "c/there", "top"]);
        let tree = content.tree.as_ref().expect("it is there");
        assert!(tree.root().id().is_none());
        assert!(tree.lookup("a".into()).expect("it stays").id().is_some());
    }
    #[test]
    fn deep_directories_need_no_stack() {
        let levels = 2_000;
        let check = move || {
            let path = "d/".repeat(levels);
            let mut trees = CachedTree::builder(id(1));
            (0..levels).for_each(|_| trees.enter("d".into(), id(2)));
            trees.add_entries(1);
            let trees = trees.finish();
            let mut copy = CachedTree::builder(id(1));
            copy.copy(trees.root());
            assert_eq!(copy.finish(), trees);

            let entries = [entry(&format!("{path}x"), true)];
            let content = IndexContent::new(Kind::Sha1, entries.iter().map(Entry::as_ref));
            let mut cover = |directory: &BStr| match directory.len() + 1 == path.len() {
                true => Cover::Nothing,
                false => Cover::Part,
            };
            let (content, is_complete) = content.collapse(&trees, &mut cover);
            assert!(is_complete);
            assert_eq!(content.entries[0].path, path);
            let bytes = Writer::default().encode(&content).expect("it is sound");
            let index = Index::from_bytes(bytes, Kind::Sha1).expect("it is read");
            let expanded = index.expand(|directory, filler| -> Result<_, Error> {
                let mut tree = CachedTree::builder(directory.id.to_owned());
                filler.push(entries[0].path.as_bstr(), mode::FILE, &id(3))?;
                tree.add_entries(1);
                Ok(Some(tree.finish()))
            });
            let expanded = expanded.expect("nothing fails");
            assert_eq!(expanded.cached_tree(), Some(trees));
        };
        let thread = std::thread::Builder::new().stack_size(128 << 10);
        let thread = thread.spawn(check).expect("a thread");
        thread.join().expect("the test holds");
    }
}
