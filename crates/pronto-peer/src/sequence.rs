//! The sequence of all objects to send, each after the objects that it references. So every prefix
//! of the sequence is closed, given the objects of the receiver. The same commits give the same
//! sequence.
//!
//! Cost: each tree that differs from the trees of the parents is read once, together with them.
//! Equal trees are not read. The ids of all returned objects are kept in memory.

use std::cmp::Reverse;
use std::collections::{BinaryHeap, HashMap, HashSet, VecDeque};

use gix_object::Kind as ObjectKind;
use pronto_hash::ObjectId;
use pronto_odb::Store;
use pronto_odb::packing::PackMember;
use pronto_pack::bitmap::name_hash;

use super::walk::ExclusiveCommit;
use pronto::links::links_in;
use pronto::objects::from_odb;
use pronto::{Error, ErrorKind, Result};
use pronto_object::{TagRef, TreeEntries};

/// An iterator over the objects to send.
pub(super) struct Sequence {
    store: Store,
    commits: VecDeque<ObjectId>,
    tags: VecDeque<ObjectId>,
    seen: HashSet<ObjectId>,
    ready: VecDeque<PendingObject>,
    buffer: Vec<u8>,
}

/// An object to send.
#[derive(Clone, Debug)]
pub(super) struct PendingObject {
    pub(super) member: PackMember,
    /// The objects at the same path in the parents, which the receiver has by then.
    pub(super) before: Vec<ObjectId>,
}

/// A tree of which not all children were visited.
struct PendingParent {
    step: PendingObject,
    /// The children that differ from the entries of the same name in all bases, in reverse order.
    children: Vec<ChildEntry>,
}

struct ChildEntry {
    step: PendingObject,
    is_directory: bool,
}

impl PendingObject {
    /// Returns the step for an object without a name.
    fn of(id: ObjectId) -> Self {
        PendingObject {
            member: PackMember { id, name_hash: 0 },
            before: Vec::new(),
        }
    }
}

impl Sequence {
    /// Returns the sequence of the objects of `new`, followed by the tags among `tips`.
    pub(super) fn new(store: Store, new: &[ExclusiveCommit], tips: &[ObjectId]) -> Result<Self> {
        let mut sequence = Sequence {
            store,
            commits: parents_first(new).into(),
            tags: VecDeque::new(),
            seen: HashSet::new(),
            ready: VecDeque::new(),
            buffer: Vec::new(),
        };
        for tip in tips {
            sequence.tags_of(*tip)?;
        }
        Ok(sequence)
    }

    /// Returns the next object.
    pub(super) fn next(&mut self) -> Result<Option<PendingObject>> {
        loop {
            if let Some(step) = self.ready.pop_front() {
                return Ok(Some(step));
            }
            let Some(commit) = self.commits.pop_front() else {
                return Ok(self.tags.pop_front().map(PendingObject::of));
            };
            let links = links_in(&self.store, &commit, &mut self.buffer)?;
            let mut bases = Vec::new();
            for parent in &links.parents {
                bases.push(links_in(&self.store, parent, &mut self.buffer)?.tree);
            }
            if !bases.contains(&links.tree) {
                let mut root = PendingObject::of(links.tree);
                root.before = bases;
                self.tree(root)?;
            }
            self.ready.push_back(PendingObject::of(commit));
        }
    }

    /// Records the tags on the path from `tip` to its commit, the innermost first.
    fn tags_of(&mut self, tip: ObjectId) -> Result<()> {
        let (mut id, mut chain) = (tip, Vec::new());
        loop {
            let header = self.store.header(&id).map_err(from_odb)?;
            if header.map(|header| header.kind) != Some(ObjectKind::Tag) {
                break;
            }
            self.store.find(&id, &mut self.buffer).map_err(from_odb)?;
            let malformed = || Error::new(ErrorKind::Corrupt, "malformed tag").on_object(id);
            let target = TagRef::new(&self.buffer).target().ok_or_else(malformed)?;
            chain.push(id);
            id = target;
        }
        for id in chain.into_iter().rev() {
            if self.seen.insert(id) {
                self.tags.push_back(id);
            }
        }
        Ok(())
    }

    /// Queues the new objects below a tree, and then the tree.
    fn tree(&mut self, root: PendingObject) -> Result<()> {
        if !self.seen.insert(root.member.id) {
            return Ok(());
        }
        let mut stack = vec![self.open(root)?];
        while let Some(top) = stack.last_mut() {
            let Some(child) = top.children.pop() else {
                self.ready.extend(stack.pop().map(|open| open.step));
                continue;
            };
            if !self.seen.insert(child.step.member.id) {
                continue;
            }
            if child.is_directory {
                stack.push(self.open(child.step)?);
            } else {
                self.ready.push_back(child.step);
            }
        }
        Ok(())
    }

    fn open(&mut self, step: PendingObject) -> Result<PendingParent> {
        let id = step.member.id;
        let length = id.kind().len_in_bytes();
        let mut read = |id: &ObjectId| -> Result<Vec<u8>> {
            let mut content = Vec::new();
            match self.store.find(id, &mut content).map_err(from_odb)? {
                Some(ObjectKind::Tree) => Ok(content),
                _ => {
                    let message = format!("unable to read tree ({id})");
                    Err(Error::new(ErrorKind::Object, message))
                }
            }
        };
        let content = read(&id)?;
        let contents: Vec<Vec<u8>> = step.before.iter().map(&mut read).collect::<Result<_>>()?;
        let by_name: Vec<HashMap<_, _>> = contents
            .iter()
            .map(|content| {
                let entries =
                    TreeEntries::new(content, length).filter(|entry| !entry.is_submodule());
                entries
                    .map(|entry| (entry.name, (entry.id, entry.is_directory())))
                    .collect()
            })
            .collect();
        // Only the root tree has no name.
        let path = match step.member.name_hash {
            0 => 0,
            name => name_hash(name, b"/"),
        };
        let mut children = Vec::new();
        for entry in TreeEntries::new(&content, length) {
            let before: Vec<_> = (by_name.iter())
                .filter_map(|base| base.get(entry.name))
                .collect();
            if entry.is_submodule() || before.contains(&&(entry.id, entry.is_directory())) {
                continue;
            }
            let Ok(child) = ObjectId::try_from(entry.id) else {
                continue;
            };
            let is_directory = entry.is_directory();
            let alike = before.iter().filter(|(_, before)| *before == is_directory);
            children.push(ChildEntry {
                step: PendingObject {
                    member: PackMember {
                        id: child,
                        name_hash: name_hash(path, entry.name),
                    },
                    before: (alike.flat_map(|(id, _)| ObjectId::try_from(*id))).collect(),
                },
                is_directory,
            });
        }
        children.reverse();
        Ok(PendingParent { step, children })
    }
}

/// Returns the commits in topological order, parents first. Among the commits that can be next, the
/// oldest is next.
fn parents_first(new: &[ExclusiveCommit]) -> Vec<ObjectId> {
    let places: HashMap<ObjectId, usize> = (new.iter().enumerate())
        .map(|(at, commit)| (commit.id, at))
        .collect();
    let mut waiting = vec![0usize; new.len()];
    let mut children: Vec<Vec<usize>> = vec![Vec::new(); new.len()];
    for (at, commit) in new.iter().enumerate() {
        for parent in &commit.parents {
            if let Some(&parent) = places.get(parent) {
                waiting[at] += 1;
                children[parent].push(at);
            }
        }
    }
    let place = |at: usize| Reverse((new[at].time, new[at].id, at));
    let mut queue: BinaryHeap<_> = (0..new.len())
        .filter(|&at| waiting[at] == 0)
        .map(place)
        .collect();
    let mut order = Vec::with_capacity(new.len());
    while let Some(Reverse((_, id, at))) = queue.pop() {
        order.push(id);
        for &child in &children[at] {
            waiting[child] -= 1;
            if waiting[child] == 0 {
                queue.push(place(child));
            }
        }
    }
    order
}
