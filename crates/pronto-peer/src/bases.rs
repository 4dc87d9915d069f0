//! The permitted bases of a peer's deltas: objects that were received from the peer, and objects in
//! trees of the boundary commits of the received history, which both sides have. All other objects
//! are treated as missing. Otherwise a peer that knows the id of a hidden object could obtain the
//! object with an empty delta.
//!
//! Cost: none before a base is requested; then trees are read until the base is found.

use std::collections::{BTreeSet, HashSet};
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use gix_object::Kind as ObjectKind;
use pronto_hash::{ObjectId, oid};
use pronto_odb::{ObjectSet, Store};
use pronto_pack::indexer::ExistingObjects;

use super::walk;
use pronto::links::links_in;
use pronto::objects::from_odb;
use pronto::{Repository, Result};
use pronto_object::TreeEntries;

/// A commit and its parents.
pub(super) struct CommitParents {
    pub(super) commit: ObjectId,
    pub(super) parents: Vec<ObjectId>,
}

/// The stores that a transfer reads.
pub(super) struct Stores {
    /// All objects of this repository, and the received ones.
    pub(super) all: Store,
    /// The received objects only.
    pub(super) arrived: Store,
}

/// The permitted bases of deltas.
pub(super) struct PermittedBases {
    repository: Arc<Repository>,
    stores: Stores,
    /// The commits that both sides have.
    known: Vec<ObjectId>,
    edges: Mutex<HistoryEdges>,
    /// The remaining number of bytes of bases that may be added to packs.
    left_bytes: AtomicU64,
}

/// The boundary commits of the received history.
#[derive(Default)]
struct HistoryEdges {
    commits: BTreeSet<ObjectId>,
    /// The trees of these commits that were not read yet.
    unread: Vec<ObjectId>,
    /// The objects that were found in the trees, or `None` before the first commit.
    contained: Option<ObjectSet>,
}

impl HistoryEdges {
    /// Records that a tree at the boundary references `id`. Returns whether the id is new.
    fn insert(&mut self, store: &Store, id: &ObjectId) -> Result<bool> {
        let contained = match self.contained.take() {
            Some(contained) => contained,
            None => ObjectSet::new(Arc::new(store.numbered().map_err(from_odb)?)),
        };
        let contained = self.contained.insert(contained);
        contained.insert(id).map_err(from_odb)
    }

    fn contains(&self, id: &oid) -> Result<bool> {
        let contained = self.contained.as_ref();
        contained.map_or(Ok(false), |contained| {
            contained.contains(id).map_err(from_odb)
        })
    }
}

impl PermittedBases {
    /// Starts with the `edges` of an earlier session. Edges that both sides no longer have are
    /// ignored.
    ///
    /// # Errors
    /// Fails if an existing commit cannot be read.
    pub(super) fn new(
        repository: Arc<Repository>,
        stores: Stores,
        known: Vec<ObjectId>,
        edges: Vec<ObjectId>,
    ) -> Result<Self> {
        let bases = PermittedBases {
            repository,
            stores,
            known,
            edges: Mutex::default(),
            left_bytes: AtomicU64::new(u64::MAX),
        };
        bases.add(edges)?;
        Ok(bases)
    }

    /// Records received commits.
    ///
    /// # Errors
    /// Fails if an existing commit cannot be read.
    pub(super) fn arrive(&self, links: &[CommitParents]) -> Result<()> {
        let own: HashSet<&ObjectId> = links.iter().map(|link| &link.commit).collect();
        let parents = links.iter().flat_map(|link| &link.parents);
        self.add(parents.filter(|id| !own.contains(id)).copied().collect())
    }

    /// Limits the number of bytes of bases that may be added to packs from now on.
    pub(super) fn limit(&self, bytes: u64) {
        self.left_bytes.store(bytes, Relaxed);
    }

    /// Lists the received packs again.
    ///
    /// # Errors
    /// Fails if a directory cannot be listed.
    pub(super) fn refresh(&self) -> Result<()> {
        self.stores.arrived.refresh().map_err(from_odb)?;
        Ok(())
    }

    /// Returns the boundary commits of the received history.
    pub(super) fn edges(&self) -> Vec<ObjectId> {
        self.locked().commits.iter().copied().collect()
    }

    fn locked(&self) -> MutexGuard<'_, HistoryEdges> {
        self.edges.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Adds the commits of `commits` that exist here and that both sides have.
    fn add(&self, mut commits: Vec<ObjectId>) -> Result<()> {
        let mut edges = self.locked();
        commits.sort_unstable();
        commits.dedup();
        let mut new = Vec::new();
        for id in commits {
            if edges.commits.contains(&id) || self.stores.arrived.contains(&id).map_err(from_odb)? {
                continue;
            }
            let header = self.stores.all.header(&id).map_err(from_odb)?;
            if header.is_some_and(|header| header.kind == ObjectKind::Commit) {
                new.push(id);
            }
        }
        let mut buffer = Vec::new();
        for id in walk::reached(&self.repository, &new, &self.known)? {
            let tree = links_in(&self.stores.all, &id, &mut buffer)?.tree;
            edges.commits.insert(id);
            if edges.insert(&self.stores.all, &tree)? {
                edges.unread.push(tree);
            }
        }
        Ok(())
    }

    fn allows(&self, id: &oid) -> Result<bool> {
        if self.stores.arrived.contains(id).map_err(from_odb)? {
            return Ok(true);
        }
        let mut edges = self.locked();
        let (length, mut content) = (self.stores.all.kind().len_in_bytes(), Vec::new());
        while !edges.contains(id)? {
            let Some(tree) = edges.unread.pop() else {
                return Ok(false);
            };
            let found = self
                .stores
                .all
                .find(&tree, &mut content)
                .map_err(from_odb)?;
            if found != Some(ObjectKind::Tree) {
                continue;
            }
            for entry in TreeEntries::new(&content, length).filter(|entry| !entry.is_submodule()) {
                let Ok(child) = ObjectId::try_from(entry.id) else {
                    continue;
                };
                if edges.insert(&self.stores.all, &child)? && entry.is_directory() {
                    edges.unread.push(child);
                }
            }
        }
        Ok(true)
    }
}

/// The permitted bases while a segment is received.
pub(super) struct SegmentBases<'a> {
    pub(super) bases: &'a PermittedBases,
    /// The commits of the segment.
    pub(super) links: &'a Mutex<Vec<CommitParents>>,
}

impl SegmentBases<'_> {
    /// Reads an object that is visible to the peer, without adding it to the pack.
    pub(super) fn look(
        &self,
        id: &oid,
        out: &mut Vec<u8>,
    ) -> Result<Option<ObjectKind>, pronto_pack::Error> {
        let links = self.links.lock().unwrap_or_else(PoisonError::into_inner);
        self.bases.arrive(&links).map_err(unreadable)?;
        drop(links);
        if !self.bases.allows(id).map_err(unreadable)? {
            return Ok(None);
        }
        let found = self.bases.stores.all.find(id, out);
        found.map_err(from_odb).map_err(unreadable)
    }
}

impl ExistingObjects for SegmentBases<'_> {
    fn contains_batch(
        &self,
        ids: &[ObjectId],
        found: &mut Vec<usize>,
    ) -> Result<(), pronto_pack::Error> {
        let links = self.links.lock().unwrap_or_else(PoisonError::into_inner);
        self.bases.arrive(&links).map_err(unreadable)?;
        for (at, id) in ids.iter().enumerate() {
            if self.bases.allows(id).map_err(unreadable)? {
                found.push(at);
            }
        }
        Ok(())
    }

    fn find(&self, id: &oid, out: &mut Vec<u8>) -> Result<Option<ObjectKind>, pronto_pack::Error> {
        if !self.bases.allows(id).map_err(unreadable)? {
            return Ok(None);
        }
        let found = self.bases.stores.all.find(id, out);
        let kind = found.map_err(from_odb).map_err(unreadable)?;
        let left = &self.bases.left_bytes;
        let rest = left.load(Relaxed).checked_sub(out.len() as u64);
        left.store(rest.ok_or_else(too_much)?, Relaxed);
        Ok(kind)
    }
}

fn unreadable(error: pronto::Error) -> pronto_pack::Error {
    error.map_kind(|_| pronto_pack::ErrorKind::Io)
}

#[cold]
fn too_much() -> pronto_pack::Error {
    let message = "the delta bases of the segment exceed the limit of this session";
    pronto_pack::Error::new(pronto_pack::ErrorKind::Limit, message)
}
