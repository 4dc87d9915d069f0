//! The permitted bases of a peer's deltas: objects received from it, and objects in trees of the
//! commits at which the received history begins, which both sides know. All other objects count as
//! absent. Otherwise a peer that knows the id of a hidden object could obtain it by an empty delta.
//!
//! Costs: nothing before a base is requested; then trees are read until it is found.

use std::collections::{BTreeSet, HashSet};
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use gix_object::Kind as ObjectKind;
use pronto_hash::{ObjectId, oid};
use pronto_odb::Store;
use pronto_pack::indexer::Existing;

use super::walk;
use pronto::links::{links_in, tree_entries};
use pronto::objects::from_odb;
use pronto::{Repository, Result};

/// A commit and what it builds on.
pub(super) type Link = (ObjectId, Vec<ObjectId>);

/// What deltas may build on.
pub(super) struct Bases {
    repository: Arc<Repository>,
    /// All that is here, and what has come.
    store: Store,
    /// Only what has come.
    arrived: Store,
    /// Commits that are known of both.
    known: Vec<ObjectId>,
    edges: Mutex<Edges>,
    /// How many bytes of bases may still be put into packs.
    left_bytes: AtomicU64,
}

/// The commits at which what has come begins.
#[derive(Default)]
struct Edges {
    commits: BTreeSet<ObjectId>,
    /// Trees of these commits that were not read.
    unread: Vec<ObjectId>,
    /// What was found in their trees.
    contained: HashSet<ObjectId>,
}

impl Bases {
    /// `edges` are those of an earlier session: they count if they are still known of both.
    ///
    /// # Errors
    /// A commit that is here cannot be read.
    pub(super) fn new(
        repository: Arc<Repository>,
        (store, arrived): (Store, Store),
        known: Vec<ObjectId>,
        edges: Vec<ObjectId>,
    ) -> Result<Self> {
        let bases = Bases {
            repository,
            store,
            arrived,
            known,
            edges: Mutex::default(),
            left_bytes: AtomicU64::new(u64::MAX),
        };
        bases.add(edges)?;
        Ok(bases)
    }

    /// Records commits that have come.
    ///
    /// # Errors
    /// A commit that is here cannot be read.
    pub(super) fn arrive(&self, links: &[Link]) -> Result<()> {
        let own: HashSet<&ObjectId> = links.iter().map(|(id, _)| id).collect();
        let parents = links.iter().flat_map(|(_, parents)| parents);
        self.add(parents.filter(|id| !own.contains(id)).copied().collect())
    }

    /// No more than so many bytes of bases may be put into packs from here on.
    pub(super) fn limit(&self, bytes: u64) {
        self.left_bytes.store(bytes, Relaxed);
    }

    /// What has come is there to be found.
    ///
    /// # Errors
    /// It cannot be listed.
    pub(super) fn refresh(&self) -> Result<()> {
        self.arrived.refresh().map_err(from_odb)?;
        Ok(())
    }

    /// The commits at which what has come begins.
    pub(super) fn edges(&self) -> Vec<ObjectId> {
        self.locked().commits.iter().copied().collect()
    }

    fn locked(&self) -> MutexGuard<'_, Edges> {
        self.edges.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Adds those that are here and known of both.
    fn add(&self, mut commits: Vec<ObjectId>) -> Result<()> {
        let mut edges = self.locked();
        commits.sort_unstable();
        commits.dedup();
        let mut new = Vec::new();
        for id in commits {
            if edges.commits.contains(&id) || self.arrived.contains(&id).map_err(from_odb)? {
                continue;
            }
            let header = self.store.header(&id).map_err(from_odb)?;
            if header.is_some_and(|header| header.kind == ObjectKind::Commit) {
                new.push(id);
            }
        }
        let mut buffer = Vec::new();
        for id in walk::reached(&self.repository, &new, &self.known)? {
            let tree = links_in(&self.store, &id, &mut buffer)?.tree;
            edges.commits.insert(id);
            if edges.contained.insert(tree) {
                edges.unread.push(tree);
            }
        }
        Ok(())
    }

    fn allows(&self, id: &oid) -> Result<bool> {
        if self.arrived.contains(id).map_err(from_odb)? {
            return Ok(true);
        }
        let mut edges = self.locked();
        let (length, mut content) = (self.store.kind().len_in_bytes(), Vec::new());
        while !edges.contained.contains(id) {
            let Some(tree) = edges.unread.pop() else {
                return Ok(false);
            };
            let found = self.store.find(&tree, &mut content).map_err(from_odb)?;
            if found != Some(ObjectKind::Tree) {
                continue;
            }
            for entry in tree_entries(&content, length).filter(|entry| !entry.is_submodule()) {
                if let Ok(child) = ObjectId::try_from(entry.id)
                    && edges.contained.insert(child)
                    && entry.is_directory()
                {
                    edges.unread.push(child);
                }
            }
        }
        Ok(true)
    }
}

/// The bases of one segment.
pub(super) struct SegmentBases<'a> {
    pub(super) bases: &'a Bases,
    /// Commits of the segment.
    pub(super) links: &'a Mutex<Vec<Link>>,
}

impl SegmentBases<'_> {
    /// Reads what the peer may know of, without making it part of the pack.
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
        let found = self.bases.store.find(id, out);
        found.map_err(from_odb).map_err(unreadable)
    }
}

impl Existing for SegmentBases<'_> {
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
        let found = self.bases.store.find(id, out);
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
    let message = "its deltas build on more than is taken at once";
    pronto_pack::Error::new(pronto_pack::ErrorKind::Limit, message)
}
