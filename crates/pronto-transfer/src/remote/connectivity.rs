//! Checks the connectivity of objects: all linked objects exist.
//!
//! For a pack that must be complete (a clone), [`PackLinks`] examines every object during indexing. For
//! a pack that builds on existing objects (a fetch), [`is_connected`] walks from the new tips to
//! the objects that were reachable before.

use std::collections::{BTreeSet, BinaryHeap, HashMap, HashSet};
use std::sync::{Mutex, PoisonError};

use gix_object::Kind as ObjectKind;
use pronto_hash::{Kind, ObjectId, oid};
use pronto_odb::Store;
use pronto_pack::indexer::Inspect;

use super::negotiate::NegotiationHistory;
use crate::Result;
use crate::objects::from_odb;
use pronto_object::{CommitLinks, TagRef, TreeEntries};

/// Collects the ids that the objects of a pack link to.
pub struct PackLinks<'a> {
    hash: Kind,
    shallow: &'a BTreeSet<ObjectId>,
    /// Collectors that no thread uses at the moment.
    idle: Mutex<Vec<LinkCollector>>,
}

/// The links that one thread has collected. Most entries of a tree also are in the previous version
/// of the tree, so that a small cache of recent entries catches nearly all duplicates.
struct LinkCollector {
    recent: Vec<u128>,
    ids: Vec<ObjectId>,
}

const RECENT: usize = 1 << 15;

/// The number of ids above which a collector removes duplicates.
const CROWDED: usize = 1 << 20;

impl<'a> PackLinks<'a> {
    /// Creates a collector for objects of the format `hash`. The parents of the commits in
    /// `shallow` need not exist.
    pub fn new(hash: Kind, shallow: &'a BTreeSet<ObjectId>) -> Self {
        PackLinks {
            hash,
            shallow,
            idle: Mutex::default(),
        }
    }

    /// Returns the first collected id that is missing from `store`.
    ///
    /// # Errors
    /// Fails if an object cannot be read.
    pub fn first_missing(self, store: &Store) -> Result<Option<ObjectId>> {
        let ids = self.into_ids();
        let found = store.contains_batch(&ids).map_err(from_odb)?;
        let missing = found.iter().position(|found| !found);
        Ok(missing.map(|at| ids[at]))
    }

    /// Returns all collected ids, sorted, without duplicates.
    pub fn into_ids(self) -> Vec<ObjectId> {
        let idle = self
            .idle
            .into_inner()
            .unwrap_or_else(PoisonError::into_inner);
        let mut ids: Vec<ObjectId> = Vec::new();
        for collector in idle {
            ids.extend(collector.ids);
        }
        ids.sort_unstable();
        ids.dedup();
        ids
    }

    fn borrow(&self) -> LinkCollector {
        let mut idle = self.idle.lock().unwrap_or_else(PoisonError::into_inner);
        idle.pop().unwrap_or_else(|| LinkCollector {
            recent: vec![0; RECENT],
            ids: Vec::new(),
        })
    }

    fn give_back(&self, collector: LinkCollector) {
        let mut idle = self.idle.lock().unwrap_or_else(PoisonError::into_inner);
        idle.push(collector);
    }
}

impl LinkCollector {
    fn add(&mut self, id: &[u8]) {
        let Some(key) = id.first_chunk::<16>() else {
            return;
        };
        let key = u128::from_ne_bytes(*key);
        let slot = &mut self.recent[key as usize % RECENT];
        if *slot == key {
            return;
        }
        *slot = key;
        self.ids.extend(ObjectId::try_from(id));
        if self.ids.len() == self.ids.capacity() && self.ids.len() >= CROWDED {
            self.ids.sort_unstable();
            self.ids.dedup();
        }
    }
}

impl Inspect for PackLinks<'_> {
    fn object(
        &self,
        kind: ObjectKind,
        id: &ObjectId,
        content: &[u8],
    ) -> Result<(), pronto_pack::Error> {
        if kind == ObjectKind::Blob {
            return Ok(());
        }
        let mut collector = self.borrow();
        match kind {
            ObjectKind::Tree => {
                for entry in TreeEntries::new(content, self.hash.len_in_bytes()) {
                    if !entry.is_submodule() {
                        collector.add(entry.id);
                    }
                }
            }
            ObjectKind::Commit => {
                if let Some(links) = CommitLinks::parse(content) {
                    collector.add(links.tree.as_slice());
                    if !self.shallow.contains(id) {
                        for parent in &links.parents {
                            collector.add(parent.as_slice());
                        }
                    }
                }
            }
            _ => {
                if let Some(target) = TagRef::new(content).target() {
                    collector.add(target.as_slice());
                }
            }
        }
        self.give_back(collector);
        Ok(())
    }

    fn large_blob(&self, _id: &ObjectId, _size_bytes: u64) -> Result<(), pronto_pack::Error> {
        Ok(())
    }
}

/// The shallow boundaries of the known and the new history.
#[derive(Clone, Copy, Debug)]
pub struct Cuts<'a> {
    /// The shallow commits of the known history.
    pub old: &'a BTreeSet<ObjectId>,
    /// The shallow commits of the new history.
    pub new: &'a BTreeSet<ObjectId>,
}

impl<'a> Cuts<'a> {
    /// Returns the same boundary for the known and the new history.
    pub fn unchanged(cut: &'a BTreeSet<ObjectId>) -> Self {
        Cuts { old: cut, new: cut }
    }
}

/// Returns whether all objects that are reachable from `tips`, but not from `known`, exist in
/// `store`.
///
/// Reads the commits between `known` and `tips`, and the trees that differ between a commit and its
/// first parent.
///
/// # Errors
/// Fails with [`ErrorKind::Object`](crate::ErrorKind::Object) if an existing object cannot be read.
pub fn is_connected(
    store: &Store,
    tips: &[ObjectId],
    known: &[ObjectId],
    cuts: Cuts<'_>,
) -> Result<bool> {
    let mut walk = ConnectivityWalk {
        store,
        old_cut: cuts.old,
        history: NegotiationHistory::new(store, cuts.new),
        nodes: HashMap::new(),
        queue: BinaryHeap::new(),
        new_queued: 0,
        seen: HashSet::new(),
        left: Vec::new(),
    };
    for id in known {
        if let Some(id) = walk.history.peel(id).map_err(from_odb)? {
            walk.push(&id, true)?;
        }
    }
    for id in tips {
        if !walk.push_tip(id)? {
            return Ok(false);
        }
    }
    walk.run()
}

struct ConnectivityWalk<'a> {
    store: &'a Store,
    /// The shallow commits of the known history.
    old_cut: &'a BTreeSet<ObjectId>,
    history: NegotiationHistory<'a>,
    nodes: HashMap<ObjectId, CommitNode>,
    queue: BinaryHeap<(i64, ObjectId)>,
    new_queued: usize,
    /// The trees and blobs that are checked or queued.
    seen: HashSet<ObjectId>,
    /// The queue of trees to check, each with a similar tree that is checked separately.
    left: Vec<(ObjectId, Option<ObjectId>)>,
}

struct CommitNode {
    links: CommitLinks,
    is_known: bool,
    is_queued: bool,
}

impl ConnectivityWalk<'_> {
    /// Queues the commit `id`. Returns `false` if the commit is missing.
    fn push(&mut self, id: &ObjectId, is_known: bool) -> Result<bool> {
        if let Some(node) = self.nodes.get_mut(id) {
            if is_known && !node.is_known {
                node.is_known = true;
                if node.is_queued {
                    self.new_queued -= 1;
                } else {
                    node.is_queued = true;
                    self.queue.push((node.links.time, *id));
                }
            }
            return Ok(true);
        }
        let Some(links) = self.history.links(id).map_err(from_odb)? else {
            return Ok(false);
        };
        self.queue.push((links.time, *id));
        self.new_queued += usize::from(!is_known);
        let node = CommitNode {
            links,
            is_known,
            is_queued: true,
        };
        self.nodes.insert(*id, node);
        Ok(true)
    }

    /// Queues the object of a new ref. Returns `false` if the object is missing.
    fn push_tip(&mut self, id: &oid) -> Result<bool> {
        let mut id = id.to_owned();
        let mut content = Vec::new();
        loop {
            match self.store.find(&id, &mut content).map_err(from_odb)? {
                None => return Ok(false),
                Some(ObjectKind::Commit) => return self.push(&id, false),
                Some(ObjectKind::Tree) => {
                    self.left.push((id, None));
                    return Ok(true);
                }
                Some(ObjectKind::Blob) => return Ok(true),
                Some(ObjectKind::Tag) => match TagRef::new(&content).target() {
                    Some(target) => id = target,
                    None => return Ok(false),
                },
            }
        }
    }

    fn run(mut self) -> Result<bool> {
        let mut new = Vec::new();
        while self.new_queued > 0 {
            let Some((_, id)) = self.queue.pop() else {
                break;
            };
            let Some(node) = self.nodes.get_mut(&id) else {
                continue;
            };
            node.is_queued = false;
            let is_known = node.is_known;
            let parents = match is_known && self.old_cut.contains(&id) {
                true => Vec::new(),
                false => node.links.parents.clone(),
            };
            if !is_known {
                self.new_queued -= 1;
                new.push(id);
            }
            for parent in &parents {
                // Known history may be shallow or promised, so that missing parents are allowed.
                if !self.push(parent, is_known)? && !is_known {
                    return Ok(false);
                }
            }
        }
        for id in &self.children_first(&new) {
            let links = &self.nodes[id].links;
            let base = links
                .parents
                .first()
                .and_then(|parent| self.nodes.get(parent));
            let base = base.map(|node| node.links.tree);
            self.left.push((links.tree, base));
        }
        self.check_trees()
    }

    /// Returns the commits so that each one precedes its first parent. A parent's tree is therefore
    /// checked first, and its entries are skipped in the child's tree.
    fn children_first(&self, new: &[ObjectId]) -> Vec<ObjectId> {
        let mut left: HashSet<&ObjectId> = new.iter().collect();
        let (mut order, mut chain) = (Vec::with_capacity(new.len()), Vec::new());
        for id in new.iter().rev() {
            let mut next = Some(id);
            while let Some(id) = next.filter(|id| left.remove(id)) {
                chain.push(*id);
                next = self.nodes[id].links.parents.first();
            }
            order.extend(chain.drain(..).rev());
        }
        order.reverse();
        order
    }

    fn check_trees(&mut self) -> Result<bool> {
        let (mut content, mut base_content) = (Vec::new(), Vec::new());
        let length = self.store.kind().len_in_bytes();
        while let Some((id, base)) = self.left.pop() {
            if Some(id) == base || !self.seen.insert(id) {
                continue;
            }
            if self.store.find(&id, &mut content).map_err(from_odb)? != Some(ObjectKind::Tree) {
                return Ok(false);
            }
            base_content.clear();
            if let Some(base) = &base {
                let found = self.store.find(base, &mut base_content).map_err(from_odb)?;
                if found != Some(ObjectKind::Tree) {
                    base_content.clear();
                }
            }
            // The commit of a submodule need not exist.
            let mut bases: HashMap<&[u8], (&[u8], bool)> = HashMap::new();
            for entry in TreeEntries::new(&base_content, length) {
                if !entry.is_submodule() {
                    bases.insert(entry.name, (entry.id, entry.is_directory()));
                }
            }
            for entry in TreeEntries::new(&content, length) {
                let before = bases.get(entry.name).copied();
                if entry.is_submodule() || before == Some((entry.id, entry.is_directory())) {
                    continue;
                }
                let Ok(child) = ObjectId::try_from(entry.id) else {
                    return Ok(false);
                };
                if entry.is_directory() {
                    let before = before.filter(|(_, is_directory)| *is_directory);
                    let before = before.and_then(|(id, _)| ObjectId::try_from(id).ok());
                    self.left.push((child, before));
                } else if self.seen.insert(child)
                    && !self.store.contains(&child).map_err(from_odb)?
                {
                    return Ok(false);
                }
            }
        }
        Ok(true)
    }
}
