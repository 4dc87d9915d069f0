//! The cached trees (`TREE` extension): the tree ids of directories of the index.

use crate::bytes::{take, take_until};
use crate::nesting::{self, Nesting};
use bstr::{BStr, BString, ByteSlice};
use pronto_hash::{Kind, ObjectId, oid};
use pronto_io::short::Short as _;
use std::cmp::Ordering;
use std::collections::HashMap;

/// The nesting depth above which cached trees are discarded; they only save work.
const DEEPEST: usize = 2048;

/// The cached trees (cache-tree), with one node for each directory. The node of a directory that
/// has changed since is invalid and has no tree id.
///
/// A child is found by its name in logarithmic time, independent of the number of its siblings.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CachedTree {
    /// The nodes in the order of the file: each node precedes all nodes below. Never empty.
    nodes: Vec<CachedTreeNode>,
    /// The positions of the children of all nodes; the children of a node are consecutive and
    /// ordered.
    children: Vec<u32>,
    /// Whether the children of each node are in Git's order.
    is_sorted: bool,
}

#[derive(Clone, Debug, PartialEq, Eq)]
struct CachedTreeNode {
    name: BString,
    /// The number of index entries below the directory, if the node is valid.
    entries: Option<u32>,
    id: ObjectId,
    children: u32,
    /// The position in `children` of the first child.
    first_child: u32,
    /// The position after all nodes below.
    end: usize,
}

/// Compares the names of two subdirectories of a directory in Git's order.
fn order(one: &BStr, two: &BStr) -> Ordering {
    one.len().cmp(&two.len()).then_with(|| one.cmp(two))
}

/// One directory of a [`CachedTree`].
#[derive(Clone, Copy, Debug)]
pub struct CachedTreeDirectory<'a> {
    tree: &'a CachedTree,
    at: usize,
}

impl CachedTree {
    /// Parses the extension; `None` if the extension is malformed.
    pub(crate) fn parse(mut data: &[u8], kind: Kind) -> Option<CachedTree> {
        let mut nodes: Vec<CachedTreeNode> = Vec::new();
        let mut nesting = Nesting::default();
        loop {
            let node = parse_node(&mut data, kind)?;
            let (at, children) = (nodes.len(), u64::from(node.children));
            nodes.push(node);
            let end = nodes.len();
            if !nesting.push(at, children, DEEPEST, |at| nodes[at].end = end) {
                return None;
            }
            if nesting.is_complete() {
                return Some(CachedTree::new(nodes));
            }
        }
    }

    /// Returns the tree id of the top directory and the number of its index entries, if the node is
    /// valid. Parses only the first node.
    pub(crate) fn parse_root(mut data: &[u8], kind: Kind) -> Option<(ObjectId, usize)> {
        let node = parse_node(&mut data, kind)?;
        Some((node.id, node.entries? as usize))
    }

    fn new(nodes: Vec<CachedTreeNode>) -> CachedTree {
        let mut tree = CachedTree {
            children: Vec::with_capacity(nodes.len().saturating_sub(1)),
            nodes,
            is_sorted: true,
        };
        tree.list_children();
        tree
    }

    /// Fills the list of the children of all nodes. Linear.
    fn list_children(&mut self) {
        self.children.clear();
        self.is_sorted = true;
        for at in 0..self.nodes.len() {
            self.nodes[at].first_child = self.children.len() as u32;
            let nodes = &self.nodes;
            let mut last: Option<usize> = None;
            for child in nesting::children(at, |at| nodes[at].end) {
                let name = nodes[child].name.as_bstr();
                let before = last.map(|last| nodes[last].name.as_bstr());
                self.is_sorted &= before.is_none_or(|before| order(before, name).is_lt());
                self.children.push(child as u32);
                last = Some(child);
            }
        }
    }

    /// Appends the encoded content of the extension.
    pub(crate) fn encode(&self, out: &mut Vec<u8>) {
        for node in &self.nodes {
            out.extend_from_slice(&node.name);
            let entries = node.entries.map_or(-1, i64::from);
            out.extend_from_slice(format!("\0{entries} {}\n", node.children).as_bytes());
            if node.entries.is_some() {
                out.extend_from_slice(node.id.as_slice());
            }
        }
    }

    /// Returns the top directory.
    pub fn root(&self) -> CachedTreeDirectory<'_> {
        CachedTreeDirectory { tree: self, at: 0 }
    }

    /// Returns the directory at `path` (empty for the top directory), if it has a node.
    pub fn lookup(&self, path: &BStr) -> Option<CachedTreeDirectory<'_>> {
        let mut directory = self.root();
        if !path.is_empty() {
            for name in path.split_at_each(b'/') {
                directory = directory.child(name.as_bstr())?;
            }
        }
        Some(directory)
    }

    /// Returns the number of directories with a valid tree id.
    pub fn known_count(&self) -> usize {
        self.nodes
            .iter()
            .filter(|node| node.entries.is_some())
            .count()
    }

    /// Invalidates all directories above `path`, because the entry of `path` changes. If `path`
    /// itself is a directory, removes its node.
    pub fn invalidate(&mut self, path: &BStr) {
        let mut at = 0;
        let mut above = Vec::new();
        let mut rest = path.as_bytes();
        loop {
            self.nodes[at].entries = None;
            above.push(at);
            let (name, below) = match rest.position_of(b'/') {
                Some(slash) => (&rest[..slash], Some(&rest[slash + 1..])),
                None => (rest, None),
            };
            let directory = CachedTreeDirectory { tree: self, at };
            let Some(child) = directory.child(name.as_bstr()).map(|child| child.at) else {
                return;
            };
            match below {
                Some(below) => (at, rest) = (child, below),
                None => return self.remove(child, &above),
            }
        }
    }

    fn remove(&mut self, child: usize, above: &[usize]) {
        let end = self.nodes[child].end;
        self.nodes.drain(child..end);
        for node in &mut self.nodes {
            if node.end >= end {
                node.end -= end - child;
            }
        }
        if let Some(&parent) = above.last() {
            self.nodes[parent].children -= 1;
        }
        self.list_children();
    }

    /// Returns a builder that starts at the tree `root` of the top directory.
    pub fn builder(root: ObjectId) -> TreeBuilder {
        TreeBuilder {
            nodes: vec![Building::new("".into(), root)],
            open: vec![0],
        }
    }
}

fn parse_node(data: &mut &[u8], kind: Kind) -> Option<CachedTreeNode> {
    let name = take_until(data, 0)?.into();
    let entries = parse_number(take_until(data, b' ')?)?;
    let children = u32::try_from(parse_number(take_until(data, b'\n')?)?).ok()?;
    let mut id = kind.null();
    let entries = u32::try_from(entries).ok();
    if entries.is_some() {
        id = ObjectId::from_bytes_or_panic(take(data, kind.len_in_bytes())?);
    }
    Some(CachedTreeNode {
        name,
        entries,
        id,
        children,
        first_child: 0,
        end: 0,
    })
}

fn parse_number(digits: &[u8]) -> Option<i64> {
    let number = std::str::from_utf8(digits).ok()?.parse().ok()?;
    (-1..=i64::from(i32::MAX))
        .contains(&number)
        .then_some(number)
}

impl<'a> CachedTreeDirectory<'a> {
    fn node(&self) -> &'a CachedTreeNode {
        &self.tree.nodes[self.at]
    }

    /// Returns the tree id, if the node is valid.
    pub fn id(&self) -> Option<&'a oid> {
        self.node().entries.map(|_| self.node().id.as_ref())
    }

    /// Returns the tree id that the [`TreeBuilder`] last recorded for this directory. Unlike
    /// [`id`](Self::id), the result includes directories that are invalid because the index does
    /// not match the tree (intent-to-add entries). The result has no meaning for a node that was
    /// read from a file or has been invalidated since.
    pub fn made_id(&self) -> &'a oid {
        self.node().id.as_ref()
    }

    /// Returns the number of index entries below the directory, if the node is valid.
    pub fn entry_count(&self) -> Option<usize> {
        self.node().entries.map(|count| count as usize)
    }

    /// Returns the null id, which represents an unknown object.
    pub(crate) fn null(&self) -> ObjectId {
        self.node().id.kind().null()
    }

    /// Returns the name of the directory in its parent; empty for the top directory.
    pub fn name(&self) -> &'a BStr {
        self.node().name.as_bstr()
    }

    /// Returns the direct subdirectories.
    pub fn children(&self) -> impl Iterator<Item = CachedTreeDirectory<'a>> + use<'a> {
        let tree = self.tree;
        let at = |at: &u32| CachedTreeDirectory {
            tree,
            at: *at as usize,
        };
        self.positions().iter().map(at)
    }

    fn positions(&self) -> &'a [u32] {
        let (first, count) = (self.node().first_child, self.node().children);
        let range = first as usize..first as usize + count as usize;
        self.tree.children.get(range).unwrap_or_default()
    }

    /// Returns the direct subdirectory `name`. Logarithmic, if the children are in Git's order.
    pub fn child(&self, name: &BStr) -> Option<CachedTreeDirectory<'a>> {
        if !self.tree.is_sorted {
            return self.children().find(|child| child.name() == name);
        }
        let nodes = &self.tree.nodes;
        let positions = self.positions();
        let found =
            positions.binary_search_by(|&at| order(nodes[at as usize].name.as_bstr(), name));
        Some(CachedTreeDirectory {
            tree: self.tree,
            at: positions[found.ok()?] as usize,
        })
    }
}

/// Builds a [`CachedTree`]. For each directory, the caller calls [`enter`](TreeBuilder::enter) and
/// [`leave`](TreeBuilder::leave), and adds the number of entries directly in the directory.
#[derive(Debug)]
pub struct TreeBuilder {
    nodes: Vec<Building>,
    open: Vec<usize>,
}

#[derive(Debug)]
struct Building {
    name: BString,
    id: ObjectId,
    /// The number of index entries; `None` if the directory or a directory below is invalid.
    entries: Option<u32>,
    children: Vec<usize>,
}

impl Building {
    fn new(name: BString, id: ObjectId) -> Building {
        Building {
            name,
            id,
            entries: Some(0),
            children: Vec::new(),
        }
    }
}

impl TreeBuilder {
    /// Enters the subdirectory `name`, whose tree id is `id`.
    pub fn enter(&mut self, name: &BStr, id: ObjectId) {
        let at = self.nodes.len();
        self.nodes.push(Building::new(name.to_owned(), id));
        if let Some(&parent) = self.open.last() {
            self.nodes[parent].children.push(at);
        }
        self.open.push(at);
    }

    /// Sets the tree id of the current directory, if it was not known when the directory was
    /// entered.
    pub fn set_id(&mut self, id: ObjectId) {
        if let Some(&at) = self.open.last() {
            self.nodes[at].id = id;
        }
    }

    /// Adds `count` to the number of index entries directly in the current directory.
    pub fn add_entries(&mut self, count: usize) {
        if let Some(&at) = self.open.last() {
            let building = &mut self.nodes[at];
            let count = u32::try_from(count).ok();
            building.entries = building
                .entries
                .zip(count)
                .and_then(|(a, b)| a.checked_add(b));
        }
    }

    /// Marks the current directory and all directories above as invalid, because the index does not
    /// match the tree of the current directory.
    pub fn spoil(&mut self) {
        if let Some(&at) = self.open.last() {
            self.nodes[at].entries = None;
        }
    }

    /// Copies the nodes of `directory` and all directories below to the current directory.
    pub fn copy(&mut self, directory: CachedTreeDirectory<'_>) {
        self.count_files(directory);
        // The end positions of the entered directories.
        let mut ends = Vec::new();
        for at in directory.at + 1..directory.node().end {
            while ends.pop_if(|end| *end <= at).is_some() {
                self.leave();
            }
            let below = CachedTreeDirectory { at, ..directory };
            self.enter(below.name(), below.node().id);
            self.count_files(below);
            ends.push(below.node().end);
        }
        ends.into_iter().for_each(|_| self.leave());
    }

    /// Does the same as [`copy`](Self::copy), but replaces the directories whose paths are keys of
    /// `below` with the cached trees in `below`. These paths end with a slash.
    pub(crate) fn graft(
        &mut self,
        top: CachedTreeDirectory<'_>,
        below: &HashMap<BString, CachedTree>,
    ) {
        self.count_files(top);
        let (nodes, mut path) = (&top.tree.nodes, BString::default());
        // The entered directories: the end position, and the length of the parent path.
        let mut entered: Vec<(usize, usize)> = Vec::new();
        let mut at = top.at + 1;
        while at < top.node().end {
            while let Some((_, len)) = entered.pop_if(|(end, _)| *end <= at) {
                self.leave();
                path.truncate(len);
            }
            let directory = CachedTreeDirectory { at, ..top };
            let id = directory.id().map(oid::to_owned);
            self.enter(directory.name(), id.unwrap_or_else(|| directory.null()));
            entered.push((nodes[at].end, path.len()));
            path.extend_from_slice(directory.name());
            path.push(b'/');
            if let Some(tree) = below.get(&path) {
                self.copy(tree.root());
                at = nodes[at].end;
            } else {
                self.count_files(directory);
                at += 1;
            }
        }
        entered.into_iter().for_each(|_| self.leave());
    }

    /// Adds the number of index entries directly in `directory`, which is the current directory.
    fn count_files(&mut self, directory: CachedTreeDirectory<'_>) {
        let below = directory.children().map(|child| child.entry_count());
        let below: usize = below.map(Option::unwrap_or_default).sum();
        match directory.entry_count() {
            Some(count) => self.add_entries(count.saturating_sub(below)),
            None => self.spoil(),
        }
    }

    /// Leaves the current directory and returns to its parent.
    pub fn leave(&mut self) {
        let Some(child) = self.open.pop() else { return };
        let below = self.nodes[child].entries;
        if let Some(&at) = self.open.last() {
            let building = &mut self.nodes[at];
            building.entries = building
                .entries
                .zip(below)
                .and_then(|(a, b)| a.checked_add(b));
        }
    }

    /// Returns the cached trees as Git would store them. Directories that are still entered are
    /// left.
    pub fn finish(mut self) -> CachedTree {
        while !self.open.is_empty() {
            self.leave();
        }
        for at in 0..self.nodes.len() {
            let mut children = std::mem::take(&mut self.nodes[at].children);
            children.sort_by(|&one, &two| {
                let (one, two) = (&self.nodes[one].name, &self.nodes[two].name);
                order(one.as_bstr(), two.as_bstr())
            });
            self.nodes[at].children = children;
        }
        let mut nodes: Vec<CachedTreeNode> = Vec::with_capacity(self.nodes.len());
        // A position to visit, or a position whose nodes are complete.
        let mut todo = vec![Ok(0)];
        while let Some(step) = todo.pop() {
            match step {
                Ok(at) => {
                    let building = &mut self.nodes[at];
                    todo.push(Err(nodes.len()));
                    todo.extend(building.children.iter().rev().map(|&child| Ok(child)));
                    nodes.push(CachedTreeNode {
                        name: std::mem::take(&mut building.name),
                        entries: building.entries,
                        id: building.id,
                        children: building.children.len() as u32,
                        first_child: 0,
                        end: 0,
                    });
                }
                Err(done) => nodes[done].end = nodes.len(),
            }
        }
        CachedTree::new(nodes)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sample() -> CachedTree {
        let id = Kind::Sha1.null();
        let mut builder = CachedTree::builder(id);
        builder.add_entries(1);
        for (name, entries) in [("long", 2), ("b", 3), ("a", 4)] {
            builder.enter(name.into(), id);
            builder.add_entries(entries);
            builder.enter("x".into(), id);
            builder.add_entries(1);
            builder.leave();
            builder.leave();
        }
        builder.finish()
    }

    #[test]
    fn what_is_built_is_read_back() {
        let tree = sample();
        let mut bytes = Vec::new();
        tree.encode(&mut bytes);
        assert_eq!(CachedTree::parse(&bytes, Kind::Sha1), Some(tree.clone()));
        let names: Vec<_> = tree
            .root()
            .children()
            .map(|child| child.name().to_owned())
            .collect();
        assert_eq!(names, ["a", "b", "long"]);
        assert_eq!(tree.root().entry_count(), Some(13));
        let below = tree.lookup("long/x".into()).expect("it is known");
        assert_eq!(below.entry_count(), Some(1));
        for cut in 0..bytes.len() {
            assert_eq!(CachedTree::parse(&bytes[..cut], Kind::Sha1), None);
        }
    }

    #[test]
    fn children_are_found_in_whatever_order_they_are() {
        let bytes = b"\x003 2\naaaaaaaaaaaaaaaaaaaaba\x001 0\nbbbbbbbbbbbbbbbbbbbba\x001 1\n\
            ccccccccccccccccccccx\x001 0\ndddddddddddddddddddd";
        let tree = CachedTree::parse(bytes, Kind::Sha1).expect("it is well formed");
        assert!(!tree.is_sorted);
        for path in ["ba", "a", "a/x"] {
            assert!(tree.lookup(path.into()).is_some(), "{path}");
        }
        assert!(tree.lookup("b".into()).is_none());
        assert!(sample().is_sorted);
        assert!(sample().lookup("c".into()).is_none());
    }

    #[test]
    fn a_changed_path_spoils_what_is_above_it() {
        let mut tree = sample();
        tree.invalidate("b/file".into());
        assert!(tree.root().id().is_none());
        assert!(tree.lookup("b".into()).expect("it stays").id().is_none());
        assert!(tree.lookup("b/x".into()).expect("it stays").id().is_some());
        assert!(tree.lookup("long".into()).expect("it stays").id().is_some());
        tree.invalidate("b".into());
        assert!(tree.lookup("b".into()).is_none());
        let mut bytes = Vec::new();
        tree.encode(&mut bytes);
        assert_eq!(CachedTree::parse(&bytes, Kind::Sha1), Some(tree));
    }
}
