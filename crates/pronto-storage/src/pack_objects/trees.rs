//! Selects trees and blobs of commits, except those that the receiver has.

use std::collections::{BTreeMap, HashSet};
use std::rc::Rc;

use bstr::{BStr, BString, ByteSlice};
use gix_object::Kind as ObjectKind;
use pronto_hash::{ObjectId, oid};
use pronto_object::TreeEntries;
use pronto_odb::LinkedPack;
use pronto_odb::packing::PackMember;
use pronto_pack::bitmap::name_hash;
use pronto_repository::objects::from_odb;
use pronto_repository::{Error, ErrorKind, Result};

use super::linked::LinkedWalk;
use super::{MOST_EDGES, ObjectSelection, SentCommit};

/// A tree to visit.
struct PendingTree {
    tree: ObjectId,
    /// The hash of its path.
    name: u32,
    /// The hash of the path with a slash at the end, except for the root.
    path: u32,
    /// The path without a slash at the end.
    full: BString,
    /// The trees of the receiver at this path.
    known: Rc<[ObjectId]>,
}

impl ObjectSelection<'_> {
    /// Selects the trees and blobs of the commits, and the other requested objects.
    pub(super) fn trees(&mut self, commits: &[SentCommit], others: Vec<ObjectId>) -> Result<()> {
        self.hide_edges(commits)?;
        let mut known: Vec<ObjectId> = Vec::new();
        for commit in commits {
            for tree in &commit.known {
                if self.select.thin && known.len() < MOST_EDGES && !known.contains(tree) {
                    known.push(*tree);
                }
            }
        }
        let known: Rc<[ObjectId]> = known.into();
        let mut named = HashSet::new();
        let nothing: Rc<[ObjectId]> = Rc::new([]);
        let mut trees = Vec::new();
        for id in others {
            match self
                .store
                .header(&id)
                .map_err(from_odb)?
                .map(|header| header.kind)
            {
                Some(ObjectKind::Tree) => trees.push((id, nothing.clone())),
                _ => _ = self.add(&id, 0),
            }
        }
        let roots = commits.iter().map(|commit| (commit.tree, known.clone()));
        for (root, known) in roots.chain(trees) {
            self.check()?;
            let mut stack = vec![PendingTree {
                tree: root,
                name: 0,
                path: 0,
                full: BString::default(),
                known,
            }];
            while let Some(place) = stack.pop() {
                self.tree(&place, &mut stack, &mut named)?;
            }
        }
        Ok(())
    }

    /// Does the same as [`trees`](Self::trees) for a receiver without objects, with the precomputed
    /// links of the trees of `pack`.
    pub(super) fn linked_trees(
        &mut self,
        pack: &LinkedPack,
        commits: &[SentCommit],
        others: Vec<ObjectId>,
    ) -> Result<()> {
        let store = self.store.clone();
        let mut walk = LinkedWalk::new(&store, pack);
        let mut roots: Vec<ObjectId> = commits.iter().map(|commit| commit.tree).collect();
        for id in others {
            let header = store.header(&id).map_err(from_odb)?;
            match header.map(|header| header.kind) {
                Some(ObjectKind::Tree) => roots.push(id),
                _ => _ = walk.mark(&id)? && self.add(&id, 0),
            }
        }
        for root in &roots {
            self.check()?;
            walk.tree(root, "".into(), |met| {
                self.meter.add(1);
                self.selection.members.push(PackMember {
                    id: met.id,
                    name_hash: met.name_hash,
                });
                self.is_kept_whole(&met.id, met.path).map(|_| ())
            })?;
        }
        Ok(())
    }

    pub(super) fn read_tree(&mut self, id: &oid) -> Result<Vec<u8>> {
        let mut content = std::mem::take(&mut self.buffer);
        match self.store.find(id, &mut content).map_err(from_odb)? {
            Some(ObjectKind::Tree) => Ok(content),
            _ => {
                let message = format!("bad tree object {id}");
                Err(Error::new(ErrorKind::Object, message))
            }
        }
    }

    fn tree(
        &mut self,
        place: &PendingTree,
        stack: &mut Vec<PendingTree>,
        named: &mut HashSet<ObjectId>,
    ) -> Result<()> {
        if !self.add(&place.tree, place.name) {
            return Ok(());
        }
        let is_whole = self.is_kept_whole(&place.tree, place.full.as_bstr())?;
        let known = self.known_entries(&place.known)?;
        let Some(content) = self.promised_tree(&place.tree)? else {
            return Ok(());
        };
        let first = stack.len();
        let mut full = place.full.clone();
        if !full.is_empty() {
            full.push(b'/');
        }
        let directory_len = full.len();
        for entry in TreeEntries::new(&content, place.tree.kind().len_in_bytes()) {
            let Ok(id) = ObjectId::try_from(entry.id) else {
                continue;
            };
            let hash = name_hash(place.path, entry.name);
            let at_path = known.get(entry.name);
            full.truncate(directory_len);
            full.extend_from_slice(entry.name);
            if entry.is_directory() {
                if self.hidden.contains(&id) || self.seen.contains(&id) {
                    continue;
                }
                let trees = at_path.into_iter().flatten().filter(|known| known.1);
                stack.push(PendingTree {
                    tree: id,
                    name: hash,
                    path: name_hash(hash, b"/"),
                    full: full.clone(),
                    known: trees.map(|known| known.0).collect(),
                });
            } else if !entry.is_submodule()
                && self.add(&id, hash)
                && !self.is_kept_whole(&id, full.as_bstr())?
            {
                for (known, is_tree) in at_path.into_iter().flatten() {
                    if !is_tree && named.insert(*known) {
                        self.base(known, hash);
                    }
                }
            }
        }
        for tree in &place.known.clone()[..] {
            if !is_whole && named.insert(*tree) {
                self.base(tree, place.name);
            }
        }
        stack[first..].reverse();
        self.buffer = content;
        Ok(())
    }

    /// Returns whether a selected object must not become a delta because of its path (attribute
    /// `-delta`).
    pub(super) fn is_kept_whole(&mut self, id: &oid, path: &BStr) -> Result<bool> {
        let is_whole = self.kept_whole.has(path)?;
        if is_whole {
            self.selection.whole.insert(id.to_owned());
        }
        Ok(is_whole)
    }

    fn base(&mut self, id: &oid, name_hash: u32) {
        let id = id.to_owned();
        // Git counts bases as enumerated objects, too.
        self.meter.add(1);
        self.selection.bases.push(PackMember { id, name_hash });
    }

    /// Returns the entries of the receiver's trees `trees` by name, and whether each is a tree.
    fn known_entries(
        &mut self,
        trees: &[ObjectId],
    ) -> Result<BTreeMap<BString, Vec<(ObjectId, bool)>>> {
        let mut entries: BTreeMap<BString, Vec<(ObjectId, bool)>> = BTreeMap::new();
        for tree in trees {
            let content = match self.read_tree(tree) {
                // Objects of the receiver need not exist in this repository.
                Err(_) if !self.store.contains(tree).map_err(from_odb)? => continue,
                content => content?,
            };
            for entry in TreeEntries::new(&content, tree.kind().len_in_bytes()) {
                let Ok(id) = ObjectId::try_from(entry.id) else {
                    continue;
                };
                if entry.is_submodule() {
                    continue;
                }
                let known = (id, entry.is_directory());
                let at_name = entries.entry(entry.name.into()).or_default();
                if !at_name.contains(&known) {
                    at_name.push(known);
                }
            }
            self.buffer = content;
        }
        Ok(entries)
    }

    /// Marks a tree and all objects below it as objects of the receiver.
    pub(super) fn hide_tree(&mut self, tree: ObjectId) -> Result<()> {
        let mut stack = vec![tree];
        while let Some(tree) = stack.pop() {
            if !self.hidden.insert(tree) {
                continue;
            }
            // Objects of the receiver need not exist in this repository.
            if !self.store.contains(&tree).map_err(from_odb)? {
                self.note_unknown(&tree);
                continue;
            }
            let content = self.read_tree(&tree)?;
            for entry in TreeEntries::new(&content, tree.kind().len_in_bytes()) {
                let Ok(id) = ObjectId::try_from(entry.id) else {
                    continue;
                };
                if entry.is_directory() {
                    stack.push(id);
                } else if !entry.is_submodule() {
                    self.hidden.insert(id);
                }
            }
            self.buffer = content;
        }
        Ok(())
    }

    /// Marks the objects in the boundary trees as objects of the receiver: all of them, or only those
    /// along paths that differ between both sides.
    pub(super) fn hide_edges(&mut self, commits: &[SentCommit]) -> Result<()> {
        let known: HashSet<ObjectId> = commits
            .iter()
            .flat_map(|commit| commit.known.iter().copied())
            .collect();
        if known.is_empty() {
            return Ok(());
        }
        if !self.select.sparse {
            return known.into_iter().try_for_each(|tree| self.hide_tree(tree));
        }
        let mut trees: HashSet<ObjectId> = commits.iter().map(|commit| commit.tree).collect();
        self.hidden.extend(known.iter().copied());
        trees.extend(known);
        let mut levels = vec![trees];
        while let Some(trees) = levels.pop() {
            self.check()?;
            let is_hidden = |tree: &ObjectId| self.hidden.contains(tree);
            let hidden = trees.iter().filter(|tree| is_hidden(tree)).count();
            // The comparison only matters if both sides have trees at this path.
            if hidden == 0 || hidden == trees.len() {
                continue;
            }
            let mut below: BTreeMap<BString, HashSet<ObjectId>> = BTreeMap::new();
            for tree in &trees {
                self.look_below(tree, &mut below)?;
            }
            levels.extend(below.into_values());
        }
        Ok(())
    }

    fn look_below(
        &mut self,
        tree: &ObjectId,
        below: &mut BTreeMap<BString, HashSet<ObjectId>>,
    ) -> Result<()> {
        let is_hidden = self.hidden.contains(tree);
        if (is_hidden || self.leaves_out()) && !self.store.contains(tree).map_err(from_odb)? {
            if is_hidden {
                self.note_unknown(tree);
            }
            return Ok(());
        }
        let content = self.read_tree(tree)?;
        for entry in TreeEntries::new(&content, tree.kind().len_in_bytes()) {
            let Ok(id) = ObjectId::try_from(entry.id) else {
                continue;
            };
            if entry.is_directory() {
                below.entry(entry.name.into()).or_default().insert(id);
                if is_hidden {
                    self.hidden.insert(id);
                }
            } else if is_hidden && !entry.is_submodule() {
                self.hidden.insert(id);
            }
        }
        self.buffer = content;
        Ok(())
    }
}
