//! Checks that all objects that are reachable from the peer's tips were received, or existed before
//! and are known to both sides.
//!
//! This check is stricter than `remote::connectivity`. An object of this repository does not count
//! unless it is reachable from refs that the peer may see, or from refs that the peer sent before.
//! Otherwise a peer that knows the id of a hidden object could make the object a part of its
//! history, and receive it with the next sync.

use std::cmp::Ordering;
use std::collections::{HashMap, HashSet};
use std::iter::Peekable;
use std::sync::Arc;

use gix_object::Kind as ObjectKind;
use pronto_hash::ObjectId;
use pronto_netsync::repository::OfferedRef;
use pronto_odb::{NumberedObjects, ObjectSet, Store};

use super::walk;
use pronto::links::links_in;
use pronto::objects::from_odb;
use pronto::{Repository, Result};
use pronto_object::{TagRef, TreeEntries, TreeEntry};

/// A connectivity check of received history. Its memory is one bit for each object of the
/// repository in each set, and 12 bytes for each received commit.
pub(super) struct ConnectivityCheck<'a> {
    repository: &'a Repository,
    /// All objects of this repository, and the received ones.
    store: &'a Store,
    /// The received objects only.
    arrived: Store,
    /// The numbers of the received objects.
    received: Arc<NumberedObjects>,
    known: CommonObjects<'a>,
    /// The boundary of the new history: commits that existed before and are parents of received
    /// commits.
    boundary: HashSet<ObjectId>,
    /// The entries of the trees of the boundary, which are read at the first use.
    old: Option<Contained>,
    /// Received commits that were visited.
    commits: ObjectSet,
    seen: Contained,
    buffer: Vec<u8>,
    /// The commit whose tree was read last, and that tree. In a linear history, this commit is the
    /// next parent.
    last: Option<(ObjectId, ObjectId)>,
}

/// The objects that both repositories have.
#[derive(Clone, Copy)]
pub(super) struct CommonObjects<'a> {
    /// The commits of refs that the peer may see, or has sent before.
    pub(super) commits: &'a [ObjectId],
    /// The tags, with the commits to which they peel.
    pub(super) tags: &'a HashMap<ObjectId, ObjectId>,
}

/// The entries of trees. A malicious author may use the same object as a directory in one tree and
/// as a file in another one, so the two kinds are kept separately.
#[derive(Clone)]
struct Contained {
    trees: ObjectSet,
    blobs: ObjectSet,
}

impl Contained {
    fn new(store: &Store) -> Result<Self> {
        let numbered = Arc::new(store.numbered().map_err(from_odb)?);
        Ok(Contained {
            trees: ObjectSet::new(Arc::clone(&numbered)),
            blobs: ObjectSet::new(numbered),
        })
    }

    /// Records the entries of `tree` that are not submodules. Appends new directories to `unread`.
    fn add_entries(
        &mut self,
        tree: &[u8],
        id_len: usize,
        unread: &mut Vec<ObjectId>,
    ) -> Result<()> {
        for entry in TreeEntries::new(tree, id_len).filter(|entry| !entry.is_submodule()) {
            let Ok(child) = ObjectId::try_from(entry.id) else {
                continue;
            };
            if !entry.is_directory() {
                self.blobs.insert(&child).map_err(from_odb)?;
            } else if self.trees.insert(&child).map_err(from_odb)? {
                unread.push(child);
            }
        }
        Ok(())
    }
}

/// A problem with the received objects.
pub(super) enum ConnectivityFault {
    /// An object is missing, or has another type than the object that references it requires.
    Missing(ObjectId),
    /// The offer with this index does not peel to the commit that the peer has stated.
    Misled(usize),
}

/// A tree, and the trees at the same path in the parents.
struct ReceivedTree {
    tree: ObjectId,
    before: Vec<ObjectId>,
}

/// A step of the walk over received commits, which are identified by numbers.
enum CommitWalkStep {
    /// Visit the parents of the commit.
    Enter(u32),
    /// Check the tree of the commit, after its parents.
    Leave(u32),
}

/// The largest number of nested tags between a tip and its commit.
const MOST_TAGS: usize = 64;

impl<'a> ConnectivityCheck<'a> {
    /// Prepares a check of the objects in `arrived`, which are also part of `store`.
    ///
    /// # Errors
    /// Fails if the indexes of packs cannot be read.
    pub(super) fn new(
        repository: &'a Repository,
        store: &'a Store,
        arrived: Store,
        known: CommonObjects<'a>,
    ) -> Result<Self> {
        let received = Arc::new(arrived.numbered().map_err(from_odb)?);
        Ok(ConnectivityCheck {
            repository,
            arrived,
            known,
            boundary: HashSet::new(),
            old: None,
            commits: ObjectSet::new(Arc::clone(&received)),
            received,
            seen: Contained::new(store)?,
            store,
            buffer: Vec::new(),
            last: None,
        })
    }

    /// Returns the first problem with `offers` and the objects that are reachable from them. An
    /// existing object that is not known to both sides has the same result as a missing object.
    pub(super) fn judge(
        &mut self,
        offers: &[&OfferedRef],
    ) -> Result<Result<(), ConnectivityFault>> {
        let mut commits = Vec::new();
        for (at, offer) in offers.iter().enumerate() {
            let commit = match self.commit_of(offer.id)? {
                Ok(commit) => commit,
                Err(missing) => return Ok(Err(ConnectivityFault::Missing(missing))),
            };
            if commit != offer.commit() || offer.peeled.is_some() != (commit != offer.id) {
                return Ok(Err(ConnectivityFault::Misled(at)));
            }
            commits.push(commit);
        }
        let missing = self.first_missing(&commits)?;
        Ok(missing.map_or(Ok(()), |id| Err(ConnectivityFault::Missing(id))))
    }

    /// Returns the first missing object that is reachable from `tips`.
    fn first_missing(&mut self, tips: &[ObjectId]) -> Result<Option<ObjectId>> {
        let new = self.arrived_commits(tips)?;
        if let Some(unknown) = self.unknown_of_boundary()? {
            return Ok(Some(unknown));
        }
        for number in new {
            let id = self.received.id(number).map_err(from_odb)?;
            let links = links_in(&self.arrived, &id, &mut self.buffer)?;
            let mut before = Vec::with_capacity(links.parents.len());
            for parent in &links.parents {
                before.push(self.tree_of(parent)?);
            }
            self.last = Some((id, links.tree));
            let tree = links.tree;
            if let Some(missing) = self.trees(ReceivedTree { tree, before })? {
                return Ok(Some(missing));
            }
        }
        Ok(None)
    }

    /// Returns the tree of a commit.
    fn tree_of(&mut self, commit: &ObjectId) -> Result<ObjectId> {
        match self.last {
            Some((last, tree)) if last == *commit => Ok(tree),
            _ => Ok(links_in(self.store, commit, &mut self.buffer)?.tree),
        }
    }

    /// Returns the numbers of the received commits in topological order, parents first, so that the
    /// entries of a parent's tree were checked before they are skipped in the child's tree. Records
    /// the boundary without reading its trees.
    fn arrived_commits(&mut self, tips: &[ObjectId]) -> Result<Vec<u32>> {
        let (mut new, mut left) = (Vec::new(), Vec::new());
        for tip in tips.iter().rev() {
            left.extend(self.enter(tip)?);
            while let Some(step) = left.pop() {
                let number = match step {
                    CommitWalkStep::Enter(number) => number,
                    CommitWalkStep::Leave(number) => {
                        new.push(number);
                        continue;
                    }
                };
                if !self.commits.insert_number(number) {
                    continue;
                }
                let id = self.received.id(number).map_err(from_odb)?;
                let links = links_in(&self.arrived, &id, &mut self.buffer)?;
                left.push(CommitWalkStep::Leave(number));
                for parent in &links.parents {
                    left.extend(self.enter(parent)?);
                }
            }
        }
        Ok(new)
    }

    /// Returns the step for a commit if it was received. Otherwise adds the commit to the boundary.
    fn enter(&mut self, commit: &ObjectId) -> Result<Option<CommitWalkStep>> {
        let number = self.received.find(commit).map_err(from_odb)?;
        if number.is_none() {
            self.boundary.insert(*commit);
        }
        Ok(number.map(CommitWalkStep::Enter))
    }

    /// Returns the boundary commit with the smallest id that is not known to both sides, whether it
    /// exists here or not. The choice does not depend on which of several commits exist here.
    fn unknown_of_boundary(&self) -> Result<Option<ObjectId>> {
        let mut here = Vec::new();
        for id in &self.boundary {
            let header = self.store.header(id).map_err(from_odb)?;
            if header.is_some_and(|header| header.kind == ObjectKind::Commit) {
                here.push(*id);
            }
        }
        let reached = walk::reached(self.repository, &here, self.known.commits)?;
        let unknown = self.boundary.iter().filter(|id| !reached.contains(*id));
        Ok(unknown.min().copied())
    }

    /// Returns the commit to which a tip peels through tags that were all received or are known, or
    /// the missing object. An object that was not received is treated as a commit.
    fn commit_of(&self, tip: ObjectId) -> Result<Result<ObjectId, ObjectId>> {
        let (mut id, mut content) = (tip, Vec::new());
        for _ in 0..MOST_TAGS {
            match self.arrived.find(&id, &mut content).map_err(from_odb)? {
                None => return Ok(Ok(self.known.tags.get(&id).copied().unwrap_or(id))),
                Some(ObjectKind::Commit) => return Ok(Ok(id)),
                Some(ObjectKind::Tag) => match TagRef::new(&content).target() {
                    Some(target) => id = target,
                    None => return Ok(Err(id)),
                },
                Some(_) => return Ok(Err(id)),
            }
        }
        Ok(Err(id))
    }

    /// Returns the first missing object of a tree. The trees of the parents were checked before.
    fn trees(&mut self, place: ReceivedTree) -> Result<Option<ObjectId>> {
        let mut places = vec![place];
        let id_len = self.store.kind().len_in_bytes();
        while let Some(ReceivedTree { tree, before }) = places.pop() {
            if before.contains(&tree) || tree.is_empty_tree() {
                continue;
            }
            if !self.seen.trees.insert(&tree).map_err(from_odb)? {
                continue;
            }
            let content = match self.tree(&tree)? {
                Some(content) if self.is_there(&tree, ObjectKind::Tree)? => content,
                _ => return Ok(Some(tree)),
            };
            let mut contents = Vec::with_capacity(before.len());
            for base in &before {
                contents.push(self.tree(base)?.unwrap_or_default());
            }
            let entries = |tree| TreeEntries::new(tree, id_len).peekable();
            let mut parents: Vec<_> = contents.iter().map(|tree| entries(tree)).collect();
            for entry in TreeEntries::new(&content, id_len) {
                let same = parents
                    .iter_mut()
                    .filter_map(|tree| same_place(tree, &entry));
                let before: Vec<&[u8]> = same.collect();
                if entry.is_submodule() || before.contains(&entry.id) {
                    continue;
                }
                let Ok(child) = ObjectId::try_from(entry.id) else {
                    return Ok(Some(tree));
                };
                if entry.is_directory() {
                    let before = before.into_iter().flat_map(ObjectId::try_from).collect();
                    places.push(ReceivedTree {
                        tree: child,
                        before,
                    });
                } else if self.seen.blobs.insert(&child).map_err(from_odb)?
                    && !self.is_there(&child, ObjectKind::Blob)?
                {
                    return Ok(Some(child));
                }
            }
        }
        Ok(None)
    }

    /// Returns the content of a tree, or `None` if the object is missing or not a tree.
    fn tree(&self, id: &ObjectId) -> Result<Option<Vec<u8>>> {
        let mut content = Vec::new();
        let kind = self.store.find(id, &mut content).map_err(from_odb)?;
        Ok((kind == Some(ObjectKind::Tree)).then_some(content))
    }

    /// Returns whether a tree or blob was received, or is in a tree of the boundary.
    fn is_there(&mut self, id: &ObjectId, kind: ObjectKind) -> Result<bool> {
        if let Some(header) = self.arrived.header(id).map_err(from_odb)? {
            return Ok(header.kind == kind);
        }
        let old = match self.old.take() {
            Some(old) => old,
            None => self.all_of_boundary()?,
        };
        let old = self.old.insert(old);
        let contained = match kind {
            ObjectKind::Tree => &old.trees,
            _ => &old.blobs,
        };
        contained.contains(id).map_err(from_odb)
    }

    /// Returns all entries of the trees of the boundary.
    fn all_of_boundary(&mut self) -> Result<Contained> {
        let (mut all, mut left) = (Contained::new(self.store)?, Vec::new());
        let id_len = self.store.kind().len_in_bytes();
        for commit in &self.boundary {
            let tree = links_in(self.store, commit, &mut self.buffer)?.tree;
            if all.trees.insert(&tree).map_err(from_odb)? {
                left.push(tree);
            }
        }
        while let Some(id) = left.pop() {
            let content = self.tree(&id)?.unwrap_or_default();
            all.add_entries(&content, id_len, &mut left)?;
        }
        Ok(all)
    }
}

/// Returns the id at the path of `entry` in a parent's tree, whose remaining entries are `parent`:
/// the entry with the same name, if both are directories or neither is. A tree that is not in Git's
/// sort order can hide the entry, in which case more objects are checked.
fn same_place<'a>(
    parent: &mut Peekable<TreeEntries<'a>>,
    entry: &TreeEntry<'_>,
) -> Option<&'a [u8]> {
    while (parent.next_if(|other| compare(other, entry) == Ordering::Less)).is_some() {}
    let same = parent.next_if(|other| compare(other, entry) == Ordering::Equal)?;
    (!same.is_submodule()).then_some(same.id)
}

/// Compares entries in the sort order of a tree, where a directory name ends with a slash.
fn compare(one: &TreeEntry<'_>, other: &TreeEntry<'_>) -> Ordering {
    let common = one.name.len().min(other.name.len());
    let next = |entry: &TreeEntry<'_>| match entry.name.get(common) {
        Some(&byte) => byte,
        None if entry.is_directory() => b'/',
        None => 0,
    };
    (one.name[..common].cmp(&other.name[..common]))
        .then_with(|| next(one).cmp(&next(other)))
        .then_with(|| one.name.len().cmp(&other.name.len()))
}
